"""How far a run is, for people: a live bar on a terminal, a line now and then elsewhere, nothing with --quiet."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0


def wide_console() -> Console:
    """Standard output; where it is no terminal, wide enough for a table whose lines are not broken."""
    console = Console()
    return console if console.is_terminal else Console(width=max(console.width, 120))


@dataclass(frozen=True)
class Moment:
    """A run at one moment; batches are counted over all its jobs."""

    done: int
    total: int
    job: str
    task: str
    loss: float
    accuracy: float
    rate: float  # spikes per neuron and time-step, mean over layers
    replay_share: float

    def text(self) -> str:
        return (
            f"{self.job} · task {self.task} · loss {self.loss:.3f} · accuracy {self.accuracy:.0%} · "
            f"spikes {self.rate:.3f} · replay {self.replay_share:.0%}"
        )


class Reporter(Protocol):
    """Who is told how a run goes."""

    def batch(self, moment: Moment) -> None: ...

    def say(self, sentence: str) -> None: ...


class Quiet:
    """Says nothing but warnings."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def batch(self, moment: Moment) -> None:
        pass

    def say(self, sentence: str) -> None:
        if sentence.startswith("warning"):
            self.console.print(sentence, highlight=False, markup=False)


class Lines:
    """A plain line every few seconds, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._started: tuple[float, int] | None = None
        self._last = 0.0

    def batch(self, moment: Moment) -> None:
        now = time.monotonic()
        if self._started is None:
            self._started = (now, moment.done)
        if now - self._last < SECONDS_BETWEEN_LINES:
            return
        self._last = now
        began, first = self._started
        left = ""
        if moment.done > first:
            remaining = (now - began) / (moment.done - first) * (moment.total - moment.done)
            left = f" · about {_duration(remaining)} left"
        self.say(f"{moment.done}/{moment.total} batches{left} · {moment.text()}")

    def say(self, sentence: str) -> None:
        self.console.print(sentence, highlight=False, markup=False, soft_wrap=True)


class Bar:
    """A live bar with the time left."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._bar = progress.add_task("starting", total=None)
        self._known = False

    def batch(self, moment: Moment) -> None:
        if not self._known:  # what an earlier process did must not count as speed
            self.progress.reset(self._bar, total=moment.total, completed=moment.done)
            self._known = True
        self.progress.update(self._bar, total=moment.total, completed=moment.done, description=moment.text())

    def say(self, sentence: str) -> None:
        self.progress.console.print(sentence, highlight=False, markup=False)


@contextmanager
def reporter(console: Console, *, quiet: bool) -> Iterator[Reporter]:
    """The reporter that suits the console."""
    if quiet:
        yield Quiet(console)
    elif not console.is_terminal:
        yield Lines(console)
    else:
        columns = (
            BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
        )  # fmt: skip
        with Progress(*columns, console=console, transient=True) as progress:
            yield Bar(progress)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
