"""A disk on which a process can be killed at every single operation, and on which the power can fail.

Every file of a run goes through `os.open`, `os.write`, `os.fsync`, `os.replace`, `os.unlink`, `os.mkdir`. `Disk`
stands between: it counts the operations, kills its own process before, in the middle of or after a chosen one, and,
for a power cut, first takes from the disk what no `fsync` had made to last.
"""

import os
import random
import signal
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Moment = Literal["before", "middle", "after"]
OPERATIONS = ("write", "fsync", "replace", "unlink", "mkdir")


@dataclass
class Pending:
    """A change of a folder that is not yet sure to last."""

    kind: str
    path: str
    source: str = ""
    old: bytes | None = None  # what the change took away


@dataclass
class Disk:
    """Counts the operations under `root`; dies at number `at` of them, if told to."""

    root: str
    at: int = -1
    moment: Moment = "before"
    power_cut: random.Random | None = None
    count: int = 0
    kinds: list[str] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    lasting: dict[str, bytes] = field(default_factory=dict)  # content of files as of their last fsync
    unsafe: set[str] = field(default_factory=set)  # files written to since
    handles: dict[int, str] = field(default_factory=dict)

    def install(self) -> "Disk":
        """Take the place of the functions of `os`, for good: meant for a child process that ends by itself."""
        self.real = {name: getattr(os, name) for name in (*OPERATIONS, "open", "close", "rename")}
        for name in OPERATIONS:
            setattr(os, name, getattr(self, f"_{name}"))
        os.open, os.close, os.rename = self._open, self._close, self._replace  # type: ignore[assignment]
        return self

    def _mine(self, path: Any) -> bool:
        return os.path.abspath(os.fsdecode(path)).startswith(self.root)

    def _step(self, kind: str, act: Callable[[], Any], half: Callable[[], Any] | None = None) -> Any:
        number, self.count = self.count, self.count + 1
        self.kinds.append(kind)
        if number != self.at:
            return act()
        if self.moment == "middle" and half is not None:
            half()
        elif self.moment != "before":
            act()
        if self.power_cut is not None:
            self._lose(self.power_cut)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nothing survives that")

    # --- the operations -------------------------------------------------------------------------------------------

    def _open(self, path: Any, flags: int, mode: int = 0o777, **rest: Any) -> int:
        known = os.path.lexists(path)
        handle: int = self.real["open"](path, flags, mode, **rest)
        if self._mine(path):
            place = os.path.abspath(os.fsdecode(path))
            self.handles[handle] = place
            if flags & os.O_CREAT and not known:
                self.pending.append(Pending("create", place))
        return handle

    def _close(self, handle: int) -> None:
        self.handles.pop(handle, None)
        self.real["close"](handle)

    def _write(self, handle: int, data: Any) -> int:
        place = self.handles.get(handle)
        if place is None:
            return int(self.real["write"](handle, data))
        self.unsafe.add(place)
        half = bytes(data)[: len(data) // 2]
        done = self._step("write", lambda: self.real["write"](handle, data), lambda: self.real["write"](handle, half))
        return int(done)

    def _fsync(self, handle: int) -> None:
        place = self.handles.get(handle)
        if place is None:
            self.real["fsync"](handle)
            return

        def act() -> None:
            self.real["fsync"](handle)
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                self.pending = [each for each in self.pending if os.path.dirname(each.path) != place]
            else:
                self.lasting[place] = _content(place) or b""
                self.unsafe.discard(place)

        self._step("fsync", act)

    def _replace(self, source: Any, target: Any, **rest: Any) -> None:
        if not self._mine(target):
            self.real["replace"](source, target, **rest)
            return
        here, there = os.path.abspath(os.fsdecode(source)), os.path.abspath(os.fsdecode(target))

        def act() -> None:
            old = _content(there)
            self.real["replace"](here, there)
            self.pending.append(Pending("replace", there, here, old))
            if here in self.lasting:
                self.lasting[there] = self.lasting.pop(here)
            if here in self.unsafe:
                self.unsafe.discard(here)
                self.unsafe.add(there)

        self._step("replace", act)

    def _unlink(self, path: Any, **rest: Any) -> None:
        if rest or not self._mine(path):
            self.real["unlink"](path, **rest)
            return
        place = os.path.abspath(os.fsdecode(path))

        def act() -> None:
            old = _content(place)
            self.real["unlink"](place)
            self.pending.append(Pending("unlink", place, old=old))
            self.lasting.pop(place, None)
            self.unsafe.discard(place)

        if os.path.lexists(place):
            self._step("unlink", act)
        else:
            self.real["unlink"](place)  # says so

    def _mkdir(self, path: Any, mode: int = 0o777, **rest: Any) -> None:
        if not self._mine(path):
            self.real["mkdir"](path, mode, **rest)
            return

        def act() -> None:
            self.real["mkdir"](path, mode)
            self.pending.append(Pending("mkdir", os.path.abspath(os.fsdecode(path))))

        self._step("mkdir", act)

    # --- the power cut --------------------------------------------------------------------------------------------

    def _lose(self, chance: random.Random) -> None:
        """Undo what had not reached the disk: changes of folders from some point on, or any of them; tails of files."""
        for name, real in self.real.items():
            setattr(os, name, real)
        ordered = chance.random() < 0.7  # most file systems keep the order of their changes
        survived = chance.randint(0, len(self.pending))
        lost = [i >= survived if ordered else chance.random() < 0.5 for i in range(len(self.pending))]
        kept_later: set[str] = set()
        for gone, change in reversed(list(zip(lost, self.pending, strict=True))):
            if not gone:
                kept_later.add(change.path)
            elif change.path not in kept_later:
                self._undo(change)
        for place in self.unsafe:
            content = _content(place)
            if content is None:
                continue
            safe = self.lasting.get(place, b"")
            reached = chance.randint(min(len(safe), len(content)), len(content))
            tail = bytes(len(content) - reached) if chance.random() < 0.3 else b""
            Path(place).write_bytes(content[:reached] + tail)

    def _undo(self, change: Pending) -> None:
        place = Path(change.path)
        if change.kind == "mkdir":
            for each in sorted(place.rglob("*"), reverse=True):
                each.rmdir() if each.is_dir() else each.unlink()
            if place.is_dir():
                place.rmdir()
        elif change.kind == "create":
            place.unlink(missing_ok=True)
        elif place.parent.is_dir():
            if change.kind == "replace" and place.is_file():
                place.rename(change.source)
            if change.old is not None:
                place.write_bytes(change.old)


def _content(place: str) -> bytes | None:
    try:
        return Path(place).read_bytes()
    except OSError:
        return None
