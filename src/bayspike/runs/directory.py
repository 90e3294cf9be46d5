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
from shlex import quote
from typing import Any

from bayspike.errors import UserError, require
from bayspike.runs.locks import Held, locked
from bayspike.storage.files import clear_parts, json_line, make_folder, read_lines, reason, write_all, write_lines

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
    def tuning(self) -> Path:
        """The record of the tuning that the settings are from, if they are from one."""
        return self.path / "tuning.json"

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

    def asked(self, job: str) -> Path:
        """What was asked of a finished job later on, see `outcome.asked`."""
        return self.path / "asked" / f"{job}.json"

    def checkpoints(self, job: str) -> Path:
        return self.path / "checkpoints" / job

    def model(self, job: str) -> Path:
        """The finished learner of a job, as one file that can go on learning."""
        return self.path / "models" / f"{job}.bayspike"

    def job_metrics(self, job: str) -> Path:
        """The job's own lines, of which `metrics.jsonl` is put together."""
        return self.path / "results" / f"{job}.jsonl"

    def locked(self) -> contextlib.AbstractContextManager[Held]:
        """Keep a second run or resume out."""
        return locked(self.path / ".lock")

    def clear_parts(self) -> None:
        """Remove what killed processes left half written; only whoever holds the lock may do so."""
        for folder in (self.path, self.path / "results", self.path / "asked", self.path / "models", self.figures):
            clear_parts(folder)


OWN_NAMES = (
    "config.json", "environment.json", "metrics.jsonl", "summary.json", "report.html", "tuning.json", ".lock",
    "results", "asked", "figures", "checkpoints", "models", "tensorboard",
)  # fmt: skip


# what a start that was killed before its first sign of life leaves behind: nothing that anyone could miss
BEGINNINGS = ("environment.json", ".lock")


@contextlib.contextmanager
def claimed_run(path: Path, *, force: bool) -> Iterator[RunDirectory]:
    """A fresh run directory that is ours until the block ends.

    One that holds anything is refused, or with `force` emptied if it is a run's.
    """
    run = RunDirectory(path)
    _check_free(path, force)
    try:
        make_folder(path)
    except OSError as error:
        raise UserError(f"{path} cannot be made ({reason(error)}): choose another --out.") from error
    with run.locked():
        _check_free(path, force)  # again: nobody can change it now
        try:
            _empty(path)
        except OSError as error:
            raise UserError(f"{path} cannot be emptied ({reason(error)}): choose another --out.") from error
        yield run


def create_run(path: Path, *, force: bool) -> RunDirectory:
    """A fresh run directory, let go of at once."""
    with claimed_run(path, force=force) as run:
        return run


def _check_free(path: Path, force: bool) -> None:
    if not path.exists():
        return
    require(path.is_dir(), f"{path} is a file: name a directory for the run.")
    try:
        present = sorted(each.name for each in path.iterdir())
    except OSError as error:
        raise UserError(f"{path} cannot be looked into ({reason(error)}): choose another --out.") from error
    present = [name for name in present if not _is_part(name)]
    foreign = [name for name in present if name not in OWN_NAMES]
    if all(name in BEGINNINGS for name in present):
        return
    if not force:
        if (path / "config.json").is_file():
            raise UserError(
                f"{path} is not empty: go on with `bayspike resume {quote(str(path))}`, choose another --out, or "
                "overwrite it with --force."
            )
        rest = "." if foreign else ", or overwrite what is left of a run there with --force."
        raise UserError(f"{path} is not empty and not a run: choose another --out{rest}")
    if foreign:
        raise UserError(f"{path} holds {foreign[0]!r}, which is not part of a run: --force will not delete it.")


def _is_part(name: str) -> bool:
    """Whether it is the unfinished form of one of our files."""
    return name.endswith(".part") and any(name.startswith(f".{own}.") for own in OWN_NAMES)


def _empty(path: Path) -> None:
    # config.json goes first: without it nothing can mistake a half-deleted run for one to be resumed
    for name in OWN_NAMES:
        victim = path / name
        if victim.is_dir() and not victim.is_symlink():
            shutil.rmtree(victim)
        elif name != ".lock":
            victim.unlink(missing_ok=True)
    clear_parts(path)


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
        self.path = path
        write_lines(path, self.kept)
        with self._telling():
            self._handle = os.open(path, os.O_WRONLY | os.O_APPEND)

    def append(self, entry: Mapping[str, Any]) -> None:
        with self._telling():
            write_all(self._handle, json_line(entry).encode("utf-8", "backslashreplace"))

    def sync(self) -> None:
        """Bring all lines to the disk: before a checkpoint that counts on them."""
        with self._telling():
            os.fsync(self._handle)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._handle)

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise UserError(
                f"{self.path} cannot be written ({reason(error)}): make room, then go on with `bayspike resume`; "
                "everything up to the last checkpoint is kept."
            ) from error
