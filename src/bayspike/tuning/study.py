"""The search for one method: Optuna asks, we answer.

Trials of a method come one after the other, each drawn from the history and a seed of its own. So a tuning that was
interrupted goes on to the same trials, and it makes no difference how many methods are tuned at a time. A database that
several machines share may have several at work on one method; then the order in which they finish matters.
"""

import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayspike.errors import UserError
from bayspike.runs.jobs import Stop, Workbench
from bayspike.runs.reporting import Moment, Reporter
from bayspike.seeds import seed_for
from bayspike.tuning.plan import TuneConfig, TuneDirectory, default_threshold, study_name
from bayspike.tuning.space import searched, settings_for, with_settings
from bayspike.tuning.trial import Diverged, Hopeless, batches_of, run_trial, steps_of

if TYPE_CHECKING:
    import optuna

STARTUP = 8  # trials drawn at random before the history counts
KEPT_PERCENT = 75.0  # of trials at the same moment; one that is worse than so many is hopeless
WAIT_SECONDS = 120  # for a database that another process is writing to


def require_optuna() -> None:
    try:
        import optuna
    except ImportError as error:
        raise UserError("bayspike tune needs Optuna: pip install 'bayspike[tune]'.") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)


def open_storage(config: TuneConfig, directory: TuneDirectory) -> "optuna.storages.BaseStorage":
    import optuna

    url = config.storage or f"sqlite:///{directory.database.resolve()}"
    waiting = {"connect_args": {"timeout": WAIT_SECONDS}} if url.startswith("sqlite:") else {}
    try:
        return optuna.storages.RDBStorage(url, engine_kwargs=waiting)
    except Exception as error:  # what a database driver raises is its own affair
        said = " ".join(str(error).split())[:200]
        raise UserError(f"The database of the trials cannot be used ({type(error).__name__}: {said}).") from error


def open_study(
    config: TuneConfig, method: str, storage: "optuna.storages.BaseStorage", steps: int = 1
) -> "optuna.Study":
    import optuna

    pruner: optuna.pruners.BasePruner = optuna.pruners.NopPruner()
    if config.prune:
        pruner = optuna.pruners.PercentilePruner(KEPT_PERCENT, n_startup_trials=4, n_warmup_steps=steps // 4)
    return optuna.create_study(
        storage=storage,
        study_name=study_name(config, method),
        direction="minimize" if config.objective == "nll" else "maximize",
        pruner=pruner,
        load_if_exists=True,
    )


class OfTrials:
    """Tells of the batches of a trial as of part of all trials of its method."""

    def __init__(self, reporter: Reporter, batches: int, trials: int) -> None:
        self.reporter, self.batches, self.total, self.before = reporter, batches, batches * trials, 0

    def batch(self, moment: Moment) -> None:
        self.reporter.batch(replace(moment, done=self.before + min(moment.done, self.batches), total=self.total))

    def say(self, sentence: str) -> None:
        self.reporter.say(sentence)


def tune_method(
    config: TuneConfig, bench: Workbench, directory: TuneDirectory, method: str, reporter: Reporter, stop: Stop
) -> None:
    """All trials of a method that are left. Raises `Interrupted` when asked to stop."""
    import optuna

    require_optuna()
    base = next(each for each in config.methods if each.method == method)
    ranges = searched(base, config.shared, config.own[method])
    storage = open_storage(config, directory)
    study = open_study(config, method, storage, steps_of(bench, base))
    ours = str(directory.path.resolve())
    told = OfTrials(reporter, batches_of(bench, base), config.trials)
    while (trial := _next(study, config, ours)) is not None:
        told.before = trial.number * told.batches
        begun = time.monotonic()
        drawn = {name: trial.suggest_float(name, each.low, each.high, log=each.log) for name, each in ranges.items()}
        network = {key.removeprefix("network."): value for key, value in drawn.items() if key.startswith("network.")}
        settings = settings_for(drawn, default_threshold(base, network, bench.dataset.train.inputs))
        trial.set_user_attr("settings", settings)

        def judged(step: int, value: float, trial: "optuna.Trial" = trial) -> None:
            known = study.get_trials(deepcopy=False)[trial.number].intermediate_values
            if step not in known:  # it is if the trial was begun before
                trial.report(value, step)
            if trial.should_prune():
                raise Hopeless

        state, value = optuna.trial.TrialState.COMPLETE, None
        try:
            outcome = run_trial(
                bench, with_settings(base, settings), config.seed, config.objective, judged, told, stop,
                f"trial {trial.number + 1}/{config.trials}",
            )  # fmt: skip
            trial.set_user_attr("scores", {**outcome.scores, "rate": outcome.rate})
            value = float(outcome.scores[config.objective])
        except Hopeless:
            state = optuna.trial.TrialState.PRUNED
        except (Diverged, UserError) as error:
            trial.set_user_attr("why", str(error))
            state = optuna.trial.TrialState.FAIL
        trial.set_user_attr("seconds", round(time.monotonic() - begun, 2))
        study.tell(trial, value, state=None if value is not None else state)
        shown = f"{config.objective} {value:.4g}" if value is not None else _STATES[state.name]
        reporter.say(f"{method}, trial {trial.number + 1} of {config.trials}: {shown}  {_shown(settings)}")


_STATES = {
    "COMPLETE": "done",
    "PRUNED": "hopeless",
    "FAIL": "did not learn",
    "RUNNING": "under way",
    "WAITING": "waiting",
}


def _next(study: "optuna.Study", config: TuneConfig, ours: str) -> "optuna.Trial | None":
    """The trial to run now: one that we had begun and not finished, else a new one; None when there are enough."""
    import optuna

    counted = [each for each in study.get_trials(deepcopy=False) if each.state.is_finished() or _owner(each)]
    left = [each for each in counted if each.state == optuna.trial.TrialState.RUNNING and _owner(each) == ours]
    number = left[0].number if left else len(study.get_trials(deepcopy=False))
    # Of its own for every trial: after an interruption the search goes on as it would have. The same for all methods,
    # and what they share is drawn first: the first trials, drawn at random, have the same networks for all.
    study.sampler = optuna.samplers.TPESampler(
        seed=seed_for(config.seed, "tune", number) % 2**32, n_startup_trials=STARTUP, multivariate=True
    )
    if left:
        return optuna.Trial(study, left[0]._trial_id)
    if len(counted) >= config.trials:
        return None
    trial = study.ask()
    trial.set_user_attr("owner", ours)
    return trial


def _owner(trial: Any) -> str:
    return str(trial.user_attrs.get("owner", ""))


def _shown(settings: dict[str, float]) -> str:
    return " ".join(f"{name}={value:g}" for name, value in settings.items())


def trials_of(study: "optuna.Study") -> list[dict[str, Any]]:
    """Every trial as plain values, in order."""
    found = []
    for each in study.get_trials(deepcopy=False):
        attributes = each.user_attrs
        found.append(
            {
                "number": each.number,
                "state": _STATES[each.state.name],
                "value": each.value if each.state.name == "COMPLETE" else None,
                "settings": dict(attributes.get("settings", {})),
                "scores": dict(attributes.get("scores", {})),
                "judged": {str(step): value for step, value in sorted(each.intermediate_values.items())},
                "seconds": attributes.get("seconds"),
                **({"why": attributes["why"]} if "why" in attributes else {}),
            }
        )
    return found


def remove_database(path: Path) -> None:
    """With --force: the trials of an earlier tuning."""
    for each in (path, *path.parent.glob(f"{path.name}-*")):
        each.unlink(missing_ok=True)
