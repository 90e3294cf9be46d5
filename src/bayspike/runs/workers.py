"""Several jobs at a time, each in a process of its own: on two cores two networks learn twice as fast as one on both.

A worker tells its parent how it goes by JSON lines on standard output. Its standard input is a lifeline: a line asks it
to stop at the next safe point, and its end says that the parent is gone, upon which the worker ends at once.

Where the processes run is the business of an `Engine`: on this machine (`Local`) or on a cluster (`runs.on_ray`). All
else, who is told what, how a stop is asked for, what a failure means, is the one loop of `run_in_workers`.
"""

import math
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import Empty, Queue
from shlex import quote
from typing import Any, NamedTuple, Protocol

from bayspike.errors import UserError
from bayspike.runs.jobs import Interrupted, Stop
from bayspike.runs.outcome.shapes import fits
from bayspike.runs.reporting import Moment, Reporter
from bayspike.storage.files import parse_json

REFRESH_SECONDS = 15.0
LONGEST_LINE = 500  # characters of what a worker's libraries print
NUMBER = (float, None)
MOMENT = {
    "done": int, "total": int, "job": str, "task": str, "loss": NUMBER, "accuracy": NUMBER, "rate": NUMBER,
    "replay_share": NUMBER,
}  # fmt: skip

Inbox = Queue[tuple[str, dict[str, Any] | None]]  # a job and what it said; None: its process has ended


class Errand(NamedTuple):
    """What a worker process is for: `python -m module directory job`."""

    module: str
    directory: Path
    job: str


class Worker(Protocol):
    """A job under way. What it says goes to an inbox, and None when it has ended."""

    def ask_to_stop(self) -> None: ...

    def wait(self) -> int:
        """The exit code; negative: the signal that killed it."""
        ...

    def kill(self) -> None: ...


class Engine(Protocol):
    """Where workers run."""

    def start(self, errand: Errand, inbox: Inbox) -> Worker: ...


class WorkerProcess:
    """A child process and the thread that listens to it."""

    def __init__(self, errand: Errand, inbox: Inbox) -> None:
        self.job = errand.job
        self.process = subprocess.Popen(
            [sys.executable, "-m", errand.module, str(errand.directory), errand.job],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # a Ctrl-C is the parent's to handle
        )
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def _listen(self, inbox: Inbox) -> None:
        assert self.process.stdout is not None
        try:
            for line in self.process.stdout:
                inbox.put((self.job, understood(line)))
        finally:
            inbox.put((self.job, None))  # whatever happened: nobody must wait for a word that will not come

    def ask_to_stop(self) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("stop\n")
            self.process.stdin.flush()
        except OSError:  # it has just ended by itself
            pass

    def wait(self) -> int:
        return self.process.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Local:
    """Processes of this machine."""

    def start(self, errand: Errand, inbox: Inbox) -> Worker:
        return WorkerProcess(errand, inbox)


LOCAL = Local()


def understood(line: str) -> dict[str, Any]:
    """A line of a worker; one that is none of ours (a library that prints) is passed on as it is."""
    try:
        message = parse_json(line)
    except ValueError:
        message = None
    if isinstance(message, dict):
        if isinstance(message.get("batch"), dict) and fits(message["batch"], MOMENT):
            said = message["batch"]
            return {"batch": {name: math.nan if said[name] is None else said[name] for name in MOMENT}}
        for kind in ("error", "say"):
            if isinstance(message.get(kind), str):
                return {kind: message[kind]}
    return {"say": line.strip()[:LONGEST_LINE]} if line.strip() else {}


def run_in_workers(
    directory: Path,
    module: str,
    jobs: Sequence[str],
    parallel: int,
    reporter: Reporter,
    stop: Stop,
    refresh: Callable[[], None],
    engine: Engine = LOCAL,
) -> None:
    """Run the jobs, `parallel` at a time, each as `python -m module DIRECTORY JOB`; `refresh` is called now and then.

    If one fails, the others stop at a safe point and its error is raised.
    """
    waiting, active = deque(jobs), dict[str, Worker]()
    inbox: Inbox = Queue()
    failure: UserError | None = None
    asked, refreshed = False, time.monotonic()
    try:
        while active or (waiting and not asked):
            while waiting and len(active) < parallel and not asked:
                job = waiting.popleft()
                active[job] = engine.start(Errand(module, directory, job), inbox)
            try:
                job, message = inbox.get(timeout=0.2)
            except Empty:
                job, message = "", {}
            if time.monotonic() - refreshed > REFRESH_SECONDS:
                refresh()
                refreshed = time.monotonic()
            if message is None:
                code = active.pop(job).wait()
                if code not in (0, 130) and failure is None:
                    how = f"was killed by signal {-code}" if code < 0 else f"ended with code {code} (see above)"
                    again = f"bayspike resume {quote(str(directory))}"
                    failure = UserError(f"the process of {job} {how}: go on with `{again}`.")
            elif "error" in message:
                failure = failure or UserError(message["error"])
            elif "say" in message:
                reporter.say(message["say"])
            elif "batch" in message:
                reporter.batch(Moment(**message["batch"]))
            if (stop.asked or failure) and not asked:
                asked = True
                for worker in active.values():
                    worker.ask_to_stop()
    finally:
        for worker in active.values():  # only after a second Ctrl-C: what they have saved is whole
            worker.kill()
    if failure is not None:
        raise failure
    if stop.asked:
        raise Interrupted
