"""A run that is killed at any instant and resumed gives the same bits as one that never was.

Children are forked, so that none has to load torch again, and killed by SIGKILL after a random time: in the middle of
a batch, a checkpoint, an evaluation or a result. BAYSPIKE_KILLS sets how many kills (30 unless told).
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from compared import begin, content, differing
from rich.console import Console

from bayspike.experiments.registry import WORKER, experiment
from bayspike.runs.directory import RunDirectory
from bayspike.runs.engine import open_bench, run_jobs
from bayspike.runs.jobs import Interrupted, Stop, Workbench
from bayspike.runs.outcome.summary import read_results, summarise
from bayspike.runs.plan.config import config_from_json, jobs_of
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.runs.reporting import Moment, Quiet
from bayspike.storage.files import read_json, write_json

KILLS = int(os.environ.get("BAYSPIKE_KILLS", "30"))

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and SIGKILL")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def bench() -> Workbench:
    changes = Changes(
        methods=["bayes", "ewc", "bayes-binary", "tacos"],
        network={"hidden": (12,)},
        training={"batch": 8, "evaluations": 2, "fisher_examples": 5, "coreset_share": 0.2},
        data={"time": 6, "train_examples": 60, "test_examples": 20},
        judging={"members": 2, "interim_examples": 10, "stored_examples": 10},
        run={"threads": 1, "log_every": 2, "checkpoint_seconds": 0.0},
    )
    return open_bench(resolve(experiment("digits"), "demo", changes), experiment("digits"))


def work(run: RunDirectory, bench: Workbench) -> None:
    """What `bayspike resume` does, up to the summary."""
    bench = replace(bench, config=config_from_json(read_json(run.config), "config"))
    run_jobs(run, bench, Quiet(Console(stderr=True)), Stop())
    write_json(run.summary, summarise(bench.experiment, bench.config, read_results(run, bench.config)))


def in_child(run: RunDirectory, bench: Workbench, seconds: float) -> bool:
    """Work in a child that is killed after some time; says whether it was done before that."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work(run, bench)
            code = 0
        finally:
            os._exit(code)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert status == 0, "the child failed by itself"
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return status == 0


class Reference(NamedTuple):
    """A run that nothing disturbed, and how long it took."""

    run: RunDirectory
    content: dict[str, object]
    seconds: float


@pytest.fixture(scope="module")
def reference(bench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Reference:
    run = begin(tmp_path_factory.mktemp("reference") / "run", bench)
    started = time.monotonic()
    work(run, bench)
    return Reference(run, content(run, bench), time.monotonic() - started)


def test_killed_at_random_moments(bench: Workbench, reference: Reference, tmp_path: Path) -> None:
    expected, whole = reference.content, reference.seconds
    moments = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID", "kill"))
    kills, runs = 0, 0
    while kills < KILLS:
        run = begin(tmp_path / f"run{runs}", bench)
        runs += 1
        # from instants after the start to a good part of the whole run, so that every phase is hit
        while not in_child(run, bench, moments.uniform(0.0, 0.2) ** 2 * 25 * whole / 8):
            kills += 1
            if kills % 12 == 0:  # now and then let a run come to its end and compare it
                assert in_child(run, bench, 600.0)
                break
        assert differing(content(run, bench), expected) == []
    assert kills >= KILLS


def test_interrupted_after_every_batch(bench: Workbench, reference: Reference, tmp_path: Path) -> None:
    """Ctrl-C at every possible safe point, one after the other."""

    class Impatient(Quiet):
        def __init__(self, stop: Stop) -> None:
            super().__init__(Console(stderr=True))
            self.stop = stop

        def batch(self, moment: Moment) -> None:
            self.stop.asked = True

    run = begin(tmp_path / "run", bench)
    stops = 0
    while True:
        stop = Stop()
        try:
            run_jobs(run, bench, Impatient(stop), stop)
            break
        except Interrupted:
            stops += 1
    work(run, bench)
    assert stops >= 40
    assert differing(content(run, bench), reference.content) == []


def test_several_jobs_at_a_time_give_the_same_bits(bench: Workbench, reference: Reference, tmp_path: Path) -> None:
    run = begin(tmp_path / "run", bench)
    run_jobs(run, bench, Quiet(Console(stderr=True)), Stop(), parallel=2, worker=WORKER)
    work(run, bench)
    assert differing(content(run, bench), reference.content) == []


def test_kept_checkpoints(bench: Workbench, reference: Reference) -> None:
    run = reference.run
    for job in jobs_of(bench.config):
        names = sorted(path.name for path in run.checkpoints(job.name).iterdir())
        assert len([name for name in names if name.startswith("step-")]) == 4  # two pairs
        assert [name for name in names if not name.startswith("step-")] == [".lock", "best.json", "best.safetensors"]
