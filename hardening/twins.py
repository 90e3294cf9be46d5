"""A tiny run, and how to tell whether one that was killed again and again became the same as one that never was."""

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from bayspike.experiments.registry import WORKER, experiment
from bayspike.report.finish import finish
from bayspike.runs.directory import RunDirectory, open_run
from bayspike.runs.engine import open_bench, run_jobs, started
from bayspike.runs.jobs import Stop, Workbench
from bayspike.runs.outcome.summary import read_results, summarise
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.runs.reporting import Quiet
from bayspike.storage.files import write_json

TIMES = ("seconds", "digest", "started")  # what the clock decides; a digest vouches for the times, too


def tiny_bench(methods: tuple[str, ...] = ("bayes", "ewc")) -> Workbench:
    """Five tasks, two learners, a checkpoint after every mini-batch: a second of work, hundreds of writes."""
    torch.set_num_threads(1)
    changes = Changes(
        methods=list(methods),
        network={"hidden": (6,)},
        training={"batch": 8, "evaluations": 1, "fisher_examples": 4, "coreset_share": 0.2},
        data={"time": 4, "train_examples": 50, "test_examples": 10},
        judging={"members": 2, "interim_examples": 10, "stored_examples": 5},
        run={"threads": 1, "log_every": 2, "checkpoint_seconds": 0.0},
    )
    return open_bench(resolve(experiment("digits"), "demo", changes), experiment("digits"))


def begin(path: Path, bench: Workbench) -> RunDirectory:
    with started(bench.config, bench.experiment, path, force=False, command=["hardening"]) as (run, _):
        return run


def train(run: RunDirectory, bench: Workbench, parallel: int = 1) -> None:
    """What `bayspike resume` does, up to the summary."""
    run = open_run(run.path)
    with run.locked():
        run_jobs(run, bench, Quiet(Console(quiet=True)), Stop(), parallel, WORKER)
        write_json(run.summary, summarise(bench.experiment, bench.config, read_results(run, bench.config)))


def draw(run: RunDirectory, bench: Workbench) -> None:
    """What follows the last job."""
    with run.locked():
        run.clear_parts()
        finish(run, bench.experiment, bench.config, Quiet(Console(quiet=True)))


@dataclass(frozen=True)
class Twin:
    """A run that nothing disturbed: all its files, and how long it took."""

    run: RunDirectory
    content: dict[str, Any]
    seconds: float


def undisturbed(path: Path, bench: Workbench, work: Callable[[RunDirectory, Workbench], None]) -> Twin:
    run = RunDirectory(path) if path.exists() else begin(path, bench)
    before = time.monotonic()
    work(run, bench)
    return Twin(run, content(run.path), time.monotonic() - before)


def finished_copy(twin: Twin, path: Path) -> RunDirectory:
    """The twin without what is drawn."""
    return RunDirectory(Path(shutil.copytree(twin.run.path, path)))


def content(folder: Path) -> dict[str, Any]:
    """Every file of a run by its name; JSON without times, all else as bytes."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.name == ".lock":
            continue
        data = path.read_bytes()
        name = os.path.relpath(path, folder)
        found[name] = without_times(json.loads(data)) if path.suffix == ".json" else data
    return found


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in TIMES}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def differing(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Names of all that is missing, too much or otherwise."""
    return sorted(name for name in {**expected, **found} if found.get(name) != expected.get(name))
