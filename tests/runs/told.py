"""What tests of faults share: a reporter that remembers, and hands that change files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bayspike.cli import main
from bayspike.runs import checkpoints
from bayspike.runs.directory import RunDirectory
from bayspike.runs.engine import run_jobs
from bayspike.runs.jobs import Stop, Workbench
from bayspike.runs.reporting import Moment, Quiet
from bayspike.storage.files import read_json, write_json
from bayspike.storage.sealed import seal

JOB = "bayes-seed0"
OLD = Path(__file__).parent / "fixtures" / "run-0.1"


class Told(Quiet):
    """Remembers what was said, and asks to stop after some batches."""

    def __init__(self, stop: Stop | None = None, after: int = 4) -> None:
        super().__init__(Console(quiet=True))
        self.sentences: list[str] = []
        self.stop, self.left = stop, after
        self.each: Callable[[], None] = lambda: None

    def batch(self, moment: Moment) -> None:
        self.left -= 1
        self.each()
        if self.stop is not None and self.left <= 0:
            self.stop.asked = True

    def say(self, sentence: str) -> None:
        self.sentences.append(sentence)


def go_on(run: RunDirectory, bench: Workbench) -> Told:
    told = Told()
    run_jobs(run, bench, told, Stop())
    return told


def newest(run: RunDirectory) -> Path:
    return checkpoints.steps(run.checkpoints(JOB))[-1]


def changed(path: Path, change: Callable[[dict[str, Any]], None], *, sealed: bool = False) -> None:
    value = read_json(path)
    change(value)
    write_json(path, seal(value) if sealed else value)


def sentence_of(command: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said.startswith("bayspike: ")
    assert said.count("\n") == 1
    return said
