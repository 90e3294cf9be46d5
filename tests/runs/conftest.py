"""A run that was interrupted, and one of old that came to its end."""

import shutil
from pathlib import Path

import pytest
from told import OLD, Told

from bayspike.experiments.registry import experiment
from bayspike.runs.directory import RunDirectory
from bayspike.runs.engine import open_bench, run_jobs, started
from bayspike.runs.jobs import Interrupted, Stop, Workbench
from bayspike.runs.plan.resolve import Changes, resolve


@pytest.fixture(scope="module")
def bench() -> Workbench:
    changes = Changes(
        methods=["bayes"],
        network={"hidden": (4,)},
        training={"batch": 10, "evaluations": 1},
        data={"time": 3, "train_examples": 50, "test_examples": 10},
        judging={"members": 2},
        run={"threads": 1, "checkpoint_seconds": 0.0},
    )
    return open_bench(resolve(experiment("digits"), "demo", changes), experiment("digits"))


@pytest.fixture(scope="module")
def half_done(bench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("half") / "run"
    stop = Stop()
    with started(bench.config, bench.experiment, path, force=False, command=[]) as (run, _), pytest.raises(Interrupted):
        run_jobs(run, bench, Told(stop), stop)
    return path


@pytest.fixture
def half(half_done: Path, tmp_path: Path) -> RunDirectory:
    """A run that was interrupted, with two checkpoints."""
    return RunDirectory(Path(shutil.copytree(half_done, tmp_path / "half")))


@pytest.fixture
def done(tmp_path: Path) -> RunDirectory:
    """A run of version 0.1 that came to its end."""
    return RunDirectory(Path(shutil.copytree(OLD, tmp_path / "done")))
