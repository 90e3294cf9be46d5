"""Run directories: what is in them, and how it is written so that a kill at any instant harms nothing.

Every file is whole or not there (`bayspike.storage`). Only the metrics of a job grow line by line: a line torn by a
kill is dropped when the run is taken up again, and so are lines about batches that no checkpoint remembers.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayspike.errors import UserError, require
from bayspike.storage.files import json_line, read_lines, write_lines

FORMAT = 1  # of run directories and checkpoints; raised when an old reader would misread a new file


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

    def model(self, job: str) -> Path:
        """The finished learner of a job, as one file that can go on learning."""
        return self.path / "models" / f"{job}.bayspike"

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
    "results", "figures", "checkpoints", "models", "tensorboard",
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
        self.kept = [entry for entry in read_lines(path) if keep(entry)]
        write_lines(path, self.kept)
        self._stream = path.open("a", encoding="utf-8")

    def append(self, entry: Mapping[str, Any]) -> None:
        self._stream.write(json_line(entry))
        self._stream.flush()

    def sync(self) -> None:
        """Bring all lines to the disk: before a checkpoint that counts on them."""
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        self._stream.close()
