"""One job in a process of its own, from the inside (`workers` is the parent's side)."""

import json
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bayspike.errors import UserError
from bayspike.runs.directory import open_run
from bayspike.runs.engine import take_up
from bayspike.runs.jobs import Interrupted, Stop, run_job
from bayspike.runs.plan.config import jobs_of
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.plan.prepare import prepare
from bayspike.runs.reporting import Moment, Reporter
from bayspike.storage.files import plain_numbers


class Telling:
    """The reporter of a worker."""

    def _tell(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps(plain_numbers(message)) + "\n")
        sys.stdout.flush()

    def batch(self, moment: Moment) -> None:
        self._tell({"batch": asdict(moment)})

    def say(self, sentence: str) -> None:
        self._tell({"say": sentence})

    def error(self, sentence: str) -> None:
        self._tell({"error": sentence})


def hold_lifeline(stop: Stop) -> None:
    """Watch standard input from a thread of its own."""

    def watch() -> None:
        for _ in sys.stdin:
            stop.asked = True
        os._exit(1)  # the parent is gone: nobody is left to work for

    threading.Thread(target=watch, daemon=True).start()


def told_by(job: str, directory: Path, carry_out: Callable[[Reporter, Stop], None]) -> int:
    """The whole life of a worker: it works, tells, and heeds its lifeline; returns its exit code."""
    stop, telling = Stop(), Telling()
    hold_lifeline(stop)
    try:
        carry_out(telling, stop)
    except Interrupted:
        return 130
    except UserError as error:
        telling.error(str(error))
        return 2
    except (OSError, MemoryError) as error:
        telling.error(f"{job} cannot go on in {directory} ({type(error).__name__}: {error}).")
        return 2
    return 0


def work(directory: Path, job: str, find: Callable[[str], Experiment]) -> int:
    """One job of a run."""

    def carry_out(reporter: Reporter, stop: Stop) -> None:
        run = open_run(directory)
        bench = take_up(run, find)
        chosen = next(each for each in jobs_of(bench.config) if each.name == job)
        run_job(run, bench, prepare(bench.config, chosen, bench.dataset, bench.stream), reporter, stop)

    return told_by(job, directory, carry_out)
