"""`bayspike run`, `resume` and `report`."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from bayspike.cli.checks import agree, at_least_one
from bayspike.cli.options import EngineFlags, Where
from bayspike.cli.tune import go_on_tuning
from bayspike.cli.what import Flat, What, cores

if TYPE_CHECKING:
    from bayspike.runs.directory import RunDirectory
    from bayspike.runs.jobs import Workbench
    from bayspike.runs.together import Crew


@dataclass(frozen=True)
class Run(What):
    """Run an experiment: train, judge, draw, report.

    bayspike run digits --preset demo --method bayes ewc sgd --out runs/demo

    bayspike run two-moons --preset demo --set 'bayes.temperature=[1e-10,1e-8,1e-6]'

    bayspike run split-mnist --preset paper --data ~/data --seeds 3

    bayspike run mnist-dvs --preset laptop --simulated --hidden 512 256

    bayspike run split-nmnist --preset laptop --network 16c5-2p-32c5-2p-128

    bayspike run folder --data pictures --tasks "cat,dog;bird" --options size=28

    bayspike run folder --dataset mine.loaders:load --rule mine.rules:Momentum

    bayspike run digits --method bayes sgd --tuned runs/tuned

    bayspike run split-mnist --preset paper --engine ray --address head:6379

    torchrun --nproc-per-node 4 -m bayspike run dvs-gestures --preset paper

    Any hyper-parameter of a method is set by --set METHOD.NAME=VALUE (or NAME=VALUE for all methods that have it), its
    network and training by METHOD.network.NAME and METHOD.training.NAME; a list of values makes one learner of each.
    """

    seeds: int | None = None
    """Number of repetitions."""
    tuned: Path | None = None
    """Settings that `bayspike tune` has found: its directory, or the tuning.json in it."""
    tensorboard: bool = False
    """Write TensorBoard event files too."""
    checkpoint_seconds: float = 20.0
    """Time between checkpoints; 0 saves after every mini-batch."""

    def execute(self, typed: Sequence[str] = ()) -> int:
        """Do it; `typed` is the command's own words, which the run keeps."""
        from dataclasses import replace

        from bayspike.experiments.registry import experiment
        from bayspike.runs.engine import started
        from bayspike.runs.plan.config import jobs_of
        from bayspike.runs.plan.resolve import resolve
        from bayspike.runs.tensorboard import require_tensorboard
        from bayspike.runs.together import crew_of_torchrun
        from bayspike.tuning.record import keep_record, read_record, tuned_settings

        if self.tensorboard:
            require_tensorboard()
        at_least_one(threads=self.threads, parallel=self.parallel, seeds=self.seeds)
        chosen, changes = experiment(self.experiment), self.changes()
        run = {**changes.run, "tensorboard": self.tensorboard, "checkpoint_seconds": self.checkpoint_seconds}
        changes = replace(changes, seeds=self.seeds, run=run)
        record = None if self.tuned is None else read_record(self.tuned)
        if record is not None:
            names = changes.methods or chosen.presets[self.preset].methods
            changes = replace(changes, tuned=tuned_settings(record, self.experiment, names))
        config = resolve(chosen, self.preset, changes)
        if self.threads is None and self.engine.engine == "local":  # all cores, shared by as many jobs as there are
            at_once = min(self.parallel or cores(), len(jobs_of(config)))
            config = replace(config, threads=max(1, cores() // at_once))
        with crew_of_torchrun(self.device) as crew:
            if crew is not None and not crew.first:
                return follow(crew)
            command = ["bayspike", *typed]
            begun = started(config, chosen, self.place(), force=self.force, command=command, crew=crew)
            with (
                self.engine.open(config.threads, config.device, self.parallel, cores()) as where,
                begun as (run_directory, bench),
            ):
                if record is not None:
                    keep_record(record, run_directory)
                return carry_out(run_directory, bench, where, crew, quiet=self.quiet)


@dataclass(frozen=True)
class Resume:
    """Go on with a run or a tuning that was interrupted or killed; the result is the same as if it never had been.

    bayspike resume runs/demo

    bayspike resume runs/demo --seeds 5
    """

    directory: tyro.conf.Positional[Path]
    """Directory of the run, or of the tuning."""
    seeds: int | None = None
    """Repetitions that the run is to have in all, where more are wanted than it was begun with."""
    data: Path | None = None
    """Where the data lie now, if they have moved."""
    own_code: bool = False
    """Run the data set or the rule from outside bayspike that the run names."""
    parallel: int | None = None
    """Jobs (methods and seeds) at a time; by default one for each core."""
    restart: bool = False
    """Begin jobs anew whose checkpoints are all damaged or of another format; these are set aside."""
    engine: Annotated[EngineFlags, Flat] = field(default_factory=EngineFlags)
    quiet: bool = False
    """No progress."""

    def execute(self) -> int:
        from bayspike.errors import require
        from bayspike.experiments.registry import experiment
        from bayspike.runs.directory import open_run
        from bayspike.runs.engine import check_jobs, restart_unusable, take_up, with_repetitions
        from bayspike.runs.together import crew_of_torchrun
        from bayspike.tuning.carry_out import is_tuning

        at_least_one(parallel=self.parallel)
        agree(self.own_code)
        if is_tuning(self.directory):
            require(self.seeds is None, f"{self.directory} is a tuning, which has no repetitions: leave out --seeds.")
            return go_on_tuning(self.directory, self.engine, parallel=self.parallel, quiet=self.quiet)
        with crew_of_torchrun("cpu") as crew:
            if crew is not None and not crew.first:
                return follow(crew)
            run = open_run(self.directory)
            with run.locked():
                bench = take_up(run, experiment, self.data)
                if self.seeds is not None:
                    bench = with_repetitions(run, bench, self.seeds)
                if self.restart:
                    restart_unusable(run, bench.config, lambda sentence: print(sentence, file=sys.stderr))
                config = bench.config
                check_jobs(bench, crew)
                with self.engine.open(config.threads, config.device, self.parallel, cores()) as where:
                    return carry_out(run, bench, where, crew, quiet=self.quiet)


@dataclass(frozen=True)
class Report:
    """Make report.html of one run (or tuning) again, or one report that compares several runs.

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
        from bayspike.report.tuning_page import write_tuning_report
        from bayspike.runs.directory import open_run
        from bayspike.tuning.carry_out import is_tuning
        from bayspike.tuning.record import read_record

        require(len(self.directories) > 0, "name at least one directory of a run.")
        if len(self.directories) == 1 and is_learner_file(self.directories[0]):
            page = self.out or self.directories[0].with_suffix(".html")
            require(self.force or not page.exists(), f"{page} is there already: choose another --out or give --force.")
            print(write_learner_report(self.directories[0], page))
            return 0
        if len(self.directories) == 1 and is_tuning(self.directories[0]):
            page = self.out or self.directories[0] / "report.html"
            require(self.out is None or self.force or not page.exists(), f"{page} is there already: give --force.")
            print(write_tuning_report(read_record(self.directories[0]), page))
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


def follow(crew: "Crew") -> int:
    """What a process of torchrun does that is not the first."""
    from bayspike.experiments.registry import experiment
    from bayspike.runs.engine import stopping_at_safe_points

    with stopping_at_safe_points() as stop:
        return crew.follow(experiment, stop)


def carry_out(run: "RunDirectory", bench: "Workbench", where: Where, crew: "Crew | None", *, quiet: bool) -> int:
    """Run all jobs that are left, then summary, figures, report and table; the caller holds the run's lock."""
    from rich.console import Console

    from bayspike.experiments.registry import WORKER
    from bayspike.report.finish import finish, print_table
    from bayspike.runs.engine import run_jobs, stopping_at_safe_points
    from bayspike.runs.jobs import Interrupted
    from bayspike.runs.plan.config import jobs_of
    from bayspike.runs.reporting import reporter, wide_console

    console = Console(stderr=True)
    config = bench.config
    with stopping_at_safe_points() as stop:
        try:
            with reporter(console, quiet=quiet) as told:
                told.say(f"{bench.experiment.title} ({config.preset}) in {run.path}")
                for sentence in config.reduced:
                    told.say(f"reduced against the paper: {sentence}")
                if crew is not None:
                    told.say(f"each network on {crew.group.ranks} processes")
                    crew.tell(config, [job.name for job in jobs_of(config) if not run.result(job.name).is_file()])
                    run_jobs(run, bench, told, stop, crew=crew)
                else:
                    run_jobs(run, bench, told, stop, where.at_once, WORKER, where.engine)
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
