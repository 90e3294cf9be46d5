"""Run directories: what is in them, and how it is written so that a kill at any instant harms nothing.

Every file is written beside its final name, flushed to the disk and moved into place, so it is whole or not there.
Only the metrics of a job grow line by line: a line torn by a kill is dropped when the run is taken up again, and so are
lines about batches that no checkpoint remembers.
"""

import contextlib
import json
import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require

FORMAT = 1  # of run directories and checkpoints; raised when an old reader would misread a new file
LARGEST_JSON = 2**28  # bytes that are read


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well its file takes the place of `path`, flushed to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        with beside.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(beside, path)
        _sync_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename last; some file systems have no such thing, and the file is whole without it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def plain_numbers(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(each) for each in value]
    return value


def write_json(path: Path, value: Any) -> None:
    with replacing(path) as beside:
        beside.write_text(
            json.dumps(plain_numbers(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8"
        )


def read_json(path: Path) -> Any:
    try:
        require(path.is_file(), f"{path} is missing.")
        require(path.stat().st_size <= LARGEST_JSON, f"{path} is larger than the {LARGEST_JSON:,} bytes that are read.")
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} cannot be read as JSON ({error}).") from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    with replacing(path) as beside, beside.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **dict(arrays))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except Exception as error:  # a damaged zip fails in a dozen ways
        raise UserError(f"{path} cannot be read as arrays ({error}).") from error


@dataclass(frozen=True)
class RunDirectory:
    """The places in a run directory."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def environment(self) -> Path:
        return self.path / "environment.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def summary(self) -> Path:
        return self.path / "summary.json"

    @property
    def figures(self) -> Path:
        return self.path / "figures"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    def result(self, job: str) -> Path:
        return self.path / "results" / f"{job}.json"

    def arrays(self, job: str) -> Path:
        return self.path / "results" / f"{job}.npz"

    def checkpoints(self, job: str) -> Path:
        return self.path / "checkpoints" / job

    def job_metrics(self, job: str) -> Path:
        """The job's own lines, of which `metrics.jsonl` is put together."""
        return self.path / "results" / f"{job}.jsonl"

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Keep a second run or resume out."""
        return locked(self.path / ".lock")


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = False) -> Iterator[None]:
    """Hold a lock file; it falls with the process, however that ends. Another's lock is refused, or waited for."""
    try:
        import fcntl
    except ImportError:  # not on Windows, where nothing guards the directory
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            raise UserError(f"{path.parent} is in use by another bayspike process: wait for it to end.") from error
        yield


OWN_NAMES = (
    "config.json", "environment.json", "metrics.jsonl", "summary.json", "report.html", ".lock",
    "results", "figures", "checkpoints", "tensorboard",
)  # fmt: skip


def create_run(path: Path, *, force: bool) -> RunDirectory:
    """A fresh run directory. One that holds anything is refused, or with `force` emptied if it is a run's."""
    run = RunDirectory(path)
    if path.exists():
        require(path.is_dir(), f"{path} is a file: name a directory for the run.")
        present = sorted(each.name for each in path.iterdir())
        if present:
            require(
                force,
                f"{path} is not empty: go on with `bayspike resume {path}`, choose another --out, or overwrite it "
                "with --force.",
            )
            foreign = [name for name in present if name not in OWN_NAMES and not name.endswith(".part")]
            if foreign:
                raise UserError(f"{path} holds {foreign[0]!r}, which is not part of a run: --force will not delete it.")
            with run.locked():
                _empty(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} cannot be made ({error.strerror}): choose another --out.") from error
    return run


def _empty(path: Path) -> None:
    # config.json goes first: without it nothing can mistake a half-deleted run for one to be resumed
    for name in OWN_NAMES:
        victim = path / name
        if victim.is_dir() and not victim.is_symlink():
            shutil.rmtree(victim)
        elif name != ".lock":
            victim.unlink(missing_ok=True)


def open_run(path: Path) -> RunDirectory:
    """A run directory that is there."""
    run = RunDirectory(path)
    require(path.is_dir(), f"{path} is not a directory: give the directory of a run.")
    require(run.config.is_file(), f"{path} holds no config.json: it is not the directory of a run.")
    return run


class MetricsLog:
    """Lines of metrics, one JSON object each."""

    def __init__(self, path: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
        """Take up a log: torn lines, and those that `keep` refuses, are dropped."""
        self.kept = [entry for entry in read_metrics(path) if keep(entry)]
        write_lines(path, self.kept)
        self._stream = path.open("a", encoding="utf-8")

    def append(self, entry: Mapping[str, Any]) -> None:
        self._stream.write(_line(entry))
        self._stream.flush()

    def sync(self) -> None:
        """Bring all lines to the disk: before a checkpoint that counts on them."""
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        self._stream.close()


def write_lines(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    with replacing(path) as beside:
        beside.write_text("".join(_line(entry) for entry in entries), "utf-8")


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps(plain_numbers(entry), ensure_ascii=False, allow_nan=False) + "\n"


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """All whole lines of a log; a torn last one is passed over."""
    if not path.is_file():
        return []
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries
