"""`bayspike tune`."""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bayspike.cli.checks import at_least_one
from bayspike.cli.options import EngineFlags, Where
from bayspike.cli.what import What, cores, typed

if TYPE_CHECKING:
    from bayspike.runs.jobs import Workbench
    from bayspike.tuning.plan import TuneConfig, TuneDirectory


@dataclass(frozen=True)
class Tune(What):
    """Choose hyper-parameters on validation examples, fairly: the same trials, ranges and examples for every method.

    bayspike tune digits --method bayes ewc sgd --trials 20 --out runs/tuned

    bayspike run digits --method bayes ewc sgd --tuned runs/tuned

    bayspike tune digits --method ewc sgd --space 'ewc.strength=[1e-8,1e-2]' 'network.slope=[1,10]'

    bayspike tune split-mnist --storage postgresql://user@host/trials --engine ray --address head:6379

    A part of the training examples, fixed by --seed, judges and is not learnt from; the test examples are never looked
    at. What methods share (read-out, threshold, membrane, first weights) has the same range for all.
    """

    trials: int = 20
    """Trials of every method."""
    space: tuple[str, ...] = ()
    """Other ranges: 'ewc.strength=[1e-8,1e-2]', 'network.slope=[1,10]' for all, init_scale=none for none."""
    objective: Literal["nll", "accuracy"] = "nll"
    """What is to be best on the validation examples."""
    validation: float = 0.2
    """Share of every class of the training examples that judges."""
    seed: int = 0
    """Of the division, the search and the networks."""
    prune: Literal["hopeless", "none"] = "hopeless"
    """Whether a trial that is among the worst quarter at the same moment is given up."""
    storage: str | None = None
    """Database of the trials as a URL, for several machines; by default a SQLite file in the directory."""

    def execute(self) -> int:
        from dataclasses import replace

        from bayspike.experiments.registry import experiment
        from bayspike.runs.plan.resolve import resolve
        from bayspike.tuning.carry_out import begun
        from bayspike.tuning.plan import TuneConfig, one_learner_each
        from bayspike.tuning.space import spaces
        from bayspike.tuning.study import require_optuna

        require_optuna()
        at_least_one(threads=self.threads, parallel=self.parallel, trials=self.trials)
        chosen = experiment(self.experiment)
        base = one_learner_each(resolve(chosen, self.preset, self.changes()))
        if self.threads is None and self.engine.engine == "local":
            at_once = min(self.parallel or cores(), len(base.methods))
            base = replace(base, threads=max(1, cores() // at_once))
        shared, own = spaces(base.methods, self.space)
        config = TuneConfig(
            base=base,
            trials=self.trials,
            shared=shared,
            own={name: dict(each) for name, each in own.items()},
            objective=self.objective,
            validation=self.validation,
            seed=self.seed,
            prune=self.prune == "hopeless",
            storage=self.storage,
        )
        with (
            self.engine.open(base.threads, base.device, self.parallel, cores()) as where,
            begun(config, chosen, self.place("tune-"), force=self.force, command=typed()) as (directory, whole, bench),
        ):
            return tune(directory, whole, bench, where, quiet=self.quiet)


def go_on_tuning(path: Path, engine: EngineFlags, *, parallel: int | None, quiet: bool) -> int:
    from bayspike.experiments.registry import experiment
    from bayspike.runs.locks import locked
    from bayspike.tuning.carry_out import take_up
    from bayspike.tuning.plan import TuneDirectory
    from bayspike.tuning.study import require_optuna

    require_optuna()
    directory = TuneDirectory(path)
    with locked(path / ".lock"):
        config, bench = take_up(directory, experiment)
        base = config.base
        with engine.open(base.threads, base.device, parallel, cores()) as where:
            return tune(directory, config, bench, where, quiet=quiet)


def tune(directory: "TuneDirectory", config: "TuneConfig", bench: "Workbench", where: Where, *, quiet: bool) -> int:
    """All trials that are left, then the record, the report, a table and the command that uses them."""
    from rich.console import Console

    from bayspike.experiments.registry import TUNER
    from bayspike.report.tuning_page import write_tuning_report
    from bayspike.runs.engine import stopping_at_safe_points
    from bayspike.runs.jobs import Interrupted
    from bayspike.runs.reporting import reporter, wide_console
    from bayspike.tuning.carry_out import run_methods
    from bayspike.tuning.record import read_record

    base = config.base
    with stopping_at_safe_points() as stop:
        try:
            with reporter(Console(stderr=True), quiet=quiet) as told:
                told.say(
                    f"{bench.experiment.title} ({base.preset}): {config.trials} trials a method, learnt from "
                    f"{config.division['learnt_from']} training examples, judged by {config.division['judged_by']} "
                    f"others, in {directory.path}"
                )
                run_methods(directory, config, bench, told, stop, where.at_once, TUNER, where.engine)
        except (Interrupted, KeyboardInterrupt):
            print(f"Interrupted; all trials are kept. Go on with: bayspike resume {directory.path}", file=sys.stderr)
            return 130
    record = read_record(directory.record)
    wide_console().print(table(record))
    print(f"Report: {write_tuning_report(record, directory.report)}")
    learners = as_options(record["methods"])
    print(f"Use them: bayspike run {base.experiment} --preset {base.preset} {learners} --tuned {directory.path}")
    return 0


def as_options(names: Collection[str]) -> str:
    """The options that name these learners: `--method` those of the package, `--rule` one's own."""
    own = [name for name in names if ":" in name]
    built_in = [name for name in names if ":" not in name]
    options = (("--method", built_in), ("--rule", own))
    return " ".join(" ".join((option, *some)) for option, some in options if some)


def table(record: dict[str, Any]) -> Any:
    """The best of every method."""
    from rich.table import Table

    shown = Table(title=f"Best of {record['trials']} trials, on validation examples")
    for heading in ("method", "trial", "accuracy", "ECE", "NLL", "settings"):
        shown.add_column(heading, justify="right" if heading in ("accuracy", "ECE", "NLL") else "left")
    for name, found in record["methods"].items():
        best = found["best"]
        if best is None:
            shown.add_row(name, "none came to its end")
            continue
        scores, settings = best["scores"], " ".join(f"{key}={value:g}" for key, value in best["settings"].items())
        shown.add_row(
            name, str(best["number"] + 1), f"{scores['accuracy']:.2%}", f"{scores['ece']:.3f}", f"{scores['nll']:.3f}",
            settings,
        )  # fmt: skip
    return shown
