"""What happened on a page, as a file that can be done again and must give the same bits.

The file is JSON lines, each sealed by a digest of itself: first the learner that it began with, then every question
with its answers, every lesson with the learner that came of it, every undo and every learner that was loaded. It is
written as things happen, so a page that dies loses the last line at most.
"""

import base64
import binascii
import os
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bayspike import __version__
from bayspike.errors import UserError, require
from bayspike.learner.file import load_state, save_state
from bayspike.learner.state import LearnerState
from bayspike.live.history import History
from bayspike.live.inputs import Input, from_plain
from bayspike.live.lessons import teach
from bayspike.live.moments import Moment, Settings, begin, digest_of
from bayspike.live.playing import Playing
from bayspike.storage.files import json_line, make_folder, parse_json, read_limited, reason, write_all
from bayspike.storage.plain import from_plain as settings_from
from bayspike.storage.sealed import check_seal, seal

KIND, FORMAT = "recording of bayspike live", 1
LARGEST = 2**31  # bytes that are read
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Recorder:
    """Writes one line after the other from `begin` on. Without a path it does nothing."""

    def __init__(self, path: Path | None) -> None:
        self.path, self._handle = path, -1
        require(path is None or not os.path.lexists(path), f"{path} exists: name another file for the recording.")

    def begin(self, state: LearnerState, about: str, settings: Settings) -> None:
        """Make the file, and write down what everything began with."""
        if self.path is None:
            return
        try:
            make_folder(self.path.parent)
            self._handle = os.open(self.path, _FRESH, 0o600)  # what a person drew is nobody else's business
        except OSError as error:
            raise UserError(f"{self.path} cannot be written ({reason(error)}): choose another place.") from error
        self._write(
            {
                "kind": KIND,
                "format": FORMAT,
                "bayspike": __version__,
                "torch": torch.__version__,
                "machine": platform.machine(),
                "threads": torch.get_num_threads(),
                "about": about,
                "settings": asdict(settings),
                "learner": _to_text(state),
                "state": digest_of(state),
            }
        )

    def asked(self, given: Input, playing: Playing, settings: Settings, number: int) -> None:
        """`number` is that of the moment that answered: a lesson may have ended since the question."""
        if playing.last is None:
            return
        self._write(
            {
                "did": "ask",
                "moment": number,
                "input": given.to_plain(),
                "settings": asdict(settings),
                "steps": playing.last.time,
                "answer": playing.last.to_plain(),
                "bits": playing.digest,
            }
        )

    def taught(self, examples: Sequence[Input], words: Sequence[str], moment: Moment) -> None:
        inputs = [each.to_plain() for each in examples]
        self._write({"did": "teach", "examples": inputs, "words": list(words), **_outcome(moment)})

    def undone(self, moment: Moment) -> None:
        self._write({"did": "undo", **_outcome(moment)})

    def loaded(self, moment: Moment) -> None:
        self._write({"did": "load", "about": moment.about, "learner": _to_text(moment.state), **_outcome(moment)})

    def close(self) -> None:
        if self._handle >= 0:
            os.fsync(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _write(self, entry: Mapping[str, Any]) -> None:
        if self._handle < 0:
            return
        try:
            write_all(self._handle, json_line(seal(entry)).encode())
        except OSError as error:
            raise UserError(f"{self.path} cannot be written ({reason(error)}): the recording ends here.") from error


class Replayed(NamedTuple):
    """What was done again, all of it with the same bits."""

    asked: int
    taught: int
    others: int
    torn: bool  # the last line was cut off, as when the page was killed while it wrote


def replay(path: Path, on_entry: Callable[[int, str], None] | None = None) -> Replayed:
    """Do all of a recording again; the first answer or learner that differs in any bit is an error."""
    entries, torn = _read(path)
    head, *rest = entries
    require(
        head.get("kind") == KIND and head.get("format") == FORMAT,
        f"{path} is not a recording of this version of `bayspike live` ({__version__}).",
    )
    before = torch.get_num_threads()
    torch.set_num_threads(_whole(head, "threads", path))  # the order of sums depends on it
    try:
        return _replay(path, head, rest, torn, on_entry)
    except (KeyError, TypeError) as error:
        raise UserError(f"{path} is not a sound recording ({type(error).__name__}: {error}).") from error
    finally:
        torch.set_num_threads(before)


def _replay(
    path: Path,
    head: Mapping[str, Any],
    rest: Sequence[Mapping[str, Any]],
    torn: bool,
    on_entry: Callable[[int, str], None] | None,
) -> Replayed:
    settings = settings_from(Settings, head["settings"], "settings")
    history = History(begin(_from_text(head["learner"], path), str(head["about"]), settings))
    counts = {"ask": 0, "teach": 0, "undo": 0, "load": 0}
    for number, entry in enumerate(rest, start=2):
        did, where = entry.get("did"), f"{path}, line {number}"
        require(did in counts, f"{where}: there is nothing of the kind {did!r} to do.")
        if did == "ask":
            moment = history.find(entry["moment"])
            if moment is None:
                raise UserError(f"{where}: it asks a learner of which nothing is known.")
            _ask_again(moment, entry, where, head)
        else:
            if did == "teach":
                examples = [from_plain(each) for each in entry["examples"]]
                history.add(teach(history.now, examples, [str(word) for word in entry["words"]], settings))
            elif did == "undo":
                history.undo()
            else:
                history.add(begin(_from_text(entry["learner"], path), str(entry["about"]), settings))
            found = _outcome(history.now)
            same = all(found[name] == entry[name] for name in found)
            require(same, f"{where}: the learner that came of it is another, {_versions(head)}.")
        counts[str(did)] += 1
        if on_entry is not None:
            on_entry(number, str(did))
    return Replayed(counts["ask"], counts["teach"], counts["undo"] + counts["load"], torn)


def _ask_again(moment: Moment, entry: Mapping[str, Any], where: str, head: Mapping[str, Any]) -> None:
    given, steps = from_plain(entry["input"]), _whole(entry, "steps", where)
    spikes = given.spikes(moment.state)
    playing = Playing(moment, settings_from(Settings, entry["settings"], "settings"), len(spikes))
    for step in spikes[:steps]:
        playing.push(step)
    same = playing.last is not None and playing.digest == entry["bits"]
    require(
        same and playing.last is not None and playing.last.to_plain() == entry["answer"],
        f"{where}: the answer on {given.name} is another, {_versions(head)}.",
    )


def _versions(head: Mapping[str, Any]) -> str:
    then = f"bayspike {head['bayspike']} and torch {head['torch']} on {head['machine']}"
    now = f"bayspike {__version__} and torch {torch.__version__} on {platform.machine()}"
    return "although versions and machine are the same" if then == now else f"recorded with {then}, now {now}"


def _outcome(moment: Moment) -> dict[str, Any]:
    rivals = {name: digest_of(each) for name, each in moment.rivals.items()}
    marks = {name: each.to_plain() for name, each in moment.marks.items()}
    return {"state": digest_of(moment.state), "rivals": rivals, "marks": marks}


def _read(path: Path) -> tuple[list[dict[str, Any]], bool]:
    lines = read_limited(path, LARGEST, "a recording of `bayspike live`").split(b"\n")
    entries: list[dict[str, Any]] = []
    torn = bool(lines and lines[-1])
    for number, line in enumerate(lines[:-1], start=1):
        try:
            entry = parse_json(line)
            require(isinstance(entry, dict), "no object")
        except ValueError as error:
            raise UserError(f"{path}, line {number} is damaged ({error}).") from error
        check_seal(entry, f"{path}, line {number}")
        entries.append(entry)
    require(len(entries) > 0, f"{path} holds no recording: its first line is not whole.")
    return entries, torn


def _whole(entry: Mapping[str, Any], name: str, where: Path | str) -> int:
    value = entry.get(name)
    require(isinstance(value, int) and 0 < value < 10**6, f"{where}: {name} is not a number of them.")
    assert isinstance(value, int)
    return value


def _to_text(state: LearnerState) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return base64.b64encode(save_state(state, Path(folder) / "learner.bayspike").read_bytes()).decode()


def _from_text(text: str, where: Path) -> LearnerState:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "learner.bayspike"
        try:
            file.write_bytes(base64.b64decode(text, validate=True))
            return load_state(file)
        except (binascii.Error, UserError) as error:
            why = str(error).replace(str(file), "it")
            raise UserError(f"{where}: a learner in it is not sound ({why}).") from error
