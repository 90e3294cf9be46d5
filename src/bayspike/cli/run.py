"""`bayspike run`, `resume` and `report`."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from bayspike.cli.checks import agree, at_least_one
from bayspike.cli.options import (
    DataFlags,
    ExperimentName,
    JudgingFlags,
    MethodName,
    NetworkFlags,
    TrainingFlags,
    said,
)

if TYPE_CHECKING:
    from bayspike.runs.directory import RunDirectory
    from bayspike.runs.jobs import Workbench

Flat = tyro.conf.arg(name="")


@dataclass(frozen=True)
class Run:
    """Run an experiment: train, judge, draw, report.

    bayspike run digits --preset demo --method bayes ewc sgd --out runs/demo

    bayspike run two-moons --preset demo --set 'bayes.temperature=[1e-10,1e-8,1e-6]'

    bayspike run split-mnist --preset paper --data ~/data --seeds 3

    bayspike run mnist-dvs --preset laptop --simulated --hidden 512 256

    bayspike run split-nmnist --preset laptop --network 16c5-2p-32c5-2p-128

    bayspike run folder --data pictures --tasks "cat,dog;bird" --options size=28

    bayspike run folder --dataset mine.loaders:load --rule mine.rules:Momentum

    Any hyper-parameter of a method is set by --set METHOD.NAME=VALUE (or NAME=VALUE for all methods that have it), its
    network and training by METHOD.network.NAME and METHOD.training.NAME; a list of values makes one learner of each.
    """

    experiment: tyro.conf.Positional[ExperimentName]
    """What to run."""
    method: tuple[MethodName, ...] = ()
    """Which learners; by default those of the preset."""
    rule: tuple[str, ...] = ()
    """Learning rules of your own, as package.module:Class; alone, or beside --method."""
    preset: Literal["demo", "laptop", "paper"] = "demo"
    """Sizes: demo takes about two minutes on two cores, laptop at most thirty, paper is the paper's protocol."""
    seeds: int | None = None
    """Number of repetitions."""
    set: tuple[str, ...] = ()
    """Hyper-parameters, for example bayes.lr=1000 ewc.network.slope=6."""
    data: Path | None = None
    """Folder of data sets, the only one searched; by default $BAYSPIKE_DATA, then the user's cache."""
    dataset: str | None = None
    """Another data set by name, or a function of your own that returns one, as package.module:function."""
    options: tuple[str, ...] = ()
    """Options of the data set's loader, for example size=28 test_share=0.3."""
    tasks: str | None = None
    """Which classes each task has, as in "cat,dog;bird", or the number of tasks."""
    simulated: bool = False
    """Use the simulated stand-in for data that are not at hand."""
    out: Path | None = None
    """Directory of the run; by default a new one under runs/."""
    force: bool = False
    """Overwrite an earlier run in that directory."""
    device: str = "cpu"
    """Where torch computes."""
    threads: int | None = None
    """Threads of each job; by default the cores that --parallel leaves. Part of what makes a run repeatable."""
    parallel: int | None = None
    """Jobs (methods and seeds) at a time; by default one for each core."""
    quiet: bool = False
    """No progress."""
    tensorboard: bool = False
    """Write TensorBoard event files too."""
    checkpoint_seconds: float = 20.0
    """Time between checkpoints; 0 saves after every mini-batch."""
    network: Annotated[NetworkFlags, Flat] = field(default_factory=NetworkFlags)
    training: Annotated[TrainingFlags, Flat] = field(default_factory=TrainingFlags)
    sizes: Annotated[DataFlags, Flat] = field(default_factory=DataFlags)
    judging: Annotated[JudgingFlags, Flat] = field(default_factory=JudgingFlags)

    def execute(self, typed: Sequence[str] = ()) -> int:
        """Do it; `typed` is the command's own words, which the run keeps."""
        from dataclasses import replace

        from bayspike.experiments.registry import experiment
        from bayspike.runs.engine import started
        from bayspike.runs.plan.config import jobs_of
        from bayspike.runs.plan.resolve import Changes, resolve
        from bayspike.runs.tensorboard import require_tensorboard
        from bayspike.storage.named import permit

        if self.tensorboard:
            require_tensorboard()
        at_least_one(threads=self.threads, parallel=self.parallel, seeds=self.seeds)
        for name in (*self.rule, *([self.dataset] if self.dataset else [])):
            permit(name)
        chosen = experiment(self.experiment)
        changes = Changes(
            methods=[*self.method, *self._rules()],
            seeds=self.seeds,
            network=self._network(),
            training=said(self.training),
            data=self._data(),
            judging=said(self.judging),
            settings=self.set,
            simulated=self.simulated,
            run={
                "device": self.device,
                "threads": self.threads or 1,
                "tensorboard": self.tensorboard,
                "checkpoint_seconds": self.checkpoint_seconds,
                "tasks": self.tasks,
            },
        )
        config = resolve(chosen, self.preset, changes)
        if self.threads is None:  # all cores, shared by as many jobs as there are
            at_once = min(self.parallel or cores(), len(jobs_of(config)))
            config = replace(config, threads=max(1, cores() // at_once))
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        out = self.out or Path("runs") / f"{self.experiment}-{self.preset}-{stamp}"
        with started(config, chosen, out, force=self.force, command=["bayspike", *typed]) as (run, bench):
            return carry_out(run, bench, parallel=self.parallel, quiet=self.quiet)

    def _network(self) -> dict[str, Any]:
        """What is said about the network; --hidden and --network are two ways to name its layers."""
        from bayspike.errors import require

        found = said(self.network)
        require(
            not {"hidden", "network"} <= set(found),
            "--hidden and --network both name the layers: leave out one of them.",
        )
        if "network" in found:
            found["layers"] = found.pop("network")
        elif "hidden" in found:
            found["layers"] = None
        return found

    def _rules(self) -> tuple[str, ...]:
        from bayspike.errors import require
        from bayspike.storage.named import is_named

        for name in self.rule:
            require(is_named(name), f"--rule takes package.module:Class, but got {name!r}; built-in ones are --method.")
        return self.rule

    def _data(self) -> dict[str, Any]:
        """What is said about the data."""
        from bayspike.errors import require
        from bayspike.runs.plan.config import parse_setting

        data: dict[str, Any] = said(self.sizes)
        if self.data is not None:
            require(self.data.is_dir(), f"--data {self.data} is not a folder.")
            data["root"] = str(self.data.resolve())
        if self.dataset is not None:
            data["name"] = self.dataset
        pairs = [parse_setting(text, "--options", "size=28") for text in self.options]
        names = [name for name, _ in pairs]
        for name in names:
            require(names.count(name) == 1, f"--options gives {name} twice: give it once.")
        return {**data, "options": dict(pairs)} if pairs else data


@dataclass(frozen=True)
class Resume:
    """Go on with a run that was interrupted or killed; the result is the same as if it never had been.

    bayspike resume runs/demo
    """

    directory: tyro.conf.Positional[Path]
    """Directory of the run."""
    data: Path | None = None
    """Where the data lie now, if they have moved."""
    own_code: bool = False
    """Run the data set or the rule from outside bayspike that the run names."""
    parallel: int | None = None
    """Jobs (methods and seeds) at a time; by default one for each core."""
    restart: bool = False
    """Begin jobs anew whose checkpoints are all damaged or of another format; these are set aside."""
    quiet: bool = False
    """No progress."""

    def execute(self) -> int:
        from bayspike.experiments.registry import experiment
        from bayspike.runs.directory import open_run
        from bayspike.runs.engine import restart_unusable, take_up

        at_least_one(parallel=self.parallel)
        agree(self.own_code)
        run = open_run(self.directory)
        with run.locked():
            bench = take_up(run, experiment, self.data)
            if self.restart:
                restart_unusable(run, bench.config, lambda sentence: print(sentence, file=sys.stderr))
            return carry_out(run, bench, parallel=self.parallel, quiet=self.quiet)


@dataclass(frozen=True)
class Report:
    """Make report.html of one run again, or one report that compares several.

    bayspike report runs/demo

    bayspike report runs/a runs/b --out compare.html
    """

    directories: tyro.conf.Positional[tuple[Path, ...]]
    """Directories of runs, or one learner's file (.bayspike)."""
    out: Path | None = None
    """The file to write; by default report.html in the one run, or in the current folder."""
    force: bool = False
    """Overwrite a file that is there (the report in a run's own directory always is)."""

    def execute(self) -> int:
        from bayspike.errors import require
        from bayspike.learner.file import is_learner_file
        from bayspike.report.finish import write_report_of
        from bayspike.report.learner_page import write_learner_report
        from bayspike.runs.directory import open_run

        require(len(self.directories) > 0, "name at least one directory of a run.")
        if len(self.directories) == 1 and is_learner_file(self.directories[0]):
            page = self.out or self.directories[0].with_suffix(".html")
            require(self.force or not page.exists(), f"{page} is there already: choose another --out or give --force.")
            print(write_learner_report(self.directories[0], page))
            return 0
        places = [each.resolve() for each in self.directories]
        for each in self.directories:
            require(places.count(each.resolve()) == 1, f"{each} is named twice: name every run once.")
        runs = [open_run(each) for each in self.directories]
        own = runs[0].report if len(runs) == 1 else None
        out = self.out or own or Path("report.html")
        require(
            self.force or out == own or not out.exists(),
            f"{out} is there already: choose another --out or give --force.",
        )
        print(write_report_of(runs, out))
        return 0


def cores() -> int:
    """Cores that torch may use: all of ours, or fewer where OMP_NUM_THREADS says so."""
    import os

    wished = os.environ.get("OMP_NUM_THREADS", "")
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(ours, int(wished))) if wished.isdecimal() else ours


def carry_out(run: "RunDirectory", bench: "Workbench", *, parallel: int | None, quiet: bool) -> int:
    """Run all jobs that are left, then summary, figures, report and table; the caller holds the run's lock."""
    from rich.console import Console

    from bayspike.experiments.registry import WORKER
    from bayspike.report.finish import finish, print_table
    from bayspike.runs.engine import run_jobs, stopping_at_safe_points
    from bayspike.runs.jobs import Interrupted
    from bayspike.runs.reporting import reporter, wide_console

    console = Console(stderr=True)
    config = bench.config
    with stopping_at_safe_points() as stop:
        try:
            with reporter(console, quiet=quiet) as told:
                told.say(f"{bench.experiment.title} ({config.preset}) in {run.path}")
                for sentence in config.reduced:
                    told.say(f"reduced against the paper: {sentence}")
                run_jobs(run, bench, told, stop, parallel or max(1, cores() // config.threads), WORKER)
                report = finish(run, bench.experiment, config, told)
        except (Interrupted, KeyboardInterrupt):
            print(
                f"Interrupted; everything is kept. Go on with: bayspike resume {shlex.quote(str(run.path))}",
                file=sys.stderr,
            )
            return 130
    print_table(run, wide_console())
    if report is not None:
        print(f"Report: {report}")
    print(f"Results: {run.path}")
    return 0
