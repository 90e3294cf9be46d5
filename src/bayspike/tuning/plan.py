"""What a tuning is: a run's configuration of which only training examples are used, and how it is searched."""

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bayspike.continual.methods import build_rule
from bayspike.data.base import Dataset, stratified_split
from bayspike.errors import require, require_range
from bayspike.runs.engine import open_bench
from bayspike.runs.jobs import Workbench
from bayspike.runs.plan.config import MethodConfig, RunConfig
from bayspike.runs.plan.experiment import Experiment
from bayspike.spiking.filters import DoubleExponential
from bayspike.storage.plain import from_plain, to_plain
from bayspike.tuning.space import Range

Objective = Literal["nll", "accuracy"]
MOST_TRIALS = 100_000


@dataclass(frozen=True)
class TuneConfig:
    """`tune.json`. `base` has one learner a method, whose settings hold for all that is not searched."""

    base: RunConfig
    trials: int
    shared: dict[str, Range]
    own: dict[str, dict[str, Range]]
    objective: Objective = "nll"
    validation: float = 0.2  # share of every class of the training examples
    seed: int = 0  # of the division, the search, and the networks
    prune: bool = True
    storage: str | None = None  # None: a file in the directory
    division: dict[str, Any] = field(default_factory=dict)  # sizes and a digest of the two parts

    def __post_init__(self) -> None:
        require_range("trials", self.trials, 1, MOST_TRIALS)
        require_range("validation", self.validation, 0, 1, low_open=True, high_open=True)
        require_range("seed", self.seed, 0, 2**31 - 1)

    @property
    def methods(self) -> tuple[MethodConfig, ...]:
        return self.base.methods


def tune_from_json(value: Any, where: str) -> TuneConfig:
    require(
        isinstance(value, dict) and isinstance(value.get("shared"), dict) and isinstance(value.get("own"), dict),
        f"{where} does not say what is searched.",
    )
    config = from_plain(TuneConfig, {**value, "shared": {}, "own": {}}, where)
    shared = _ranges(value["shared"], where)
    return replace(config, shared=shared, own={name: _ranges(each, where) for name, each in value["own"].items()})


def _ranges(value: Any, where: str) -> dict[str, Range]:
    require(isinstance(value, dict), f"{where} does not say what is searched.")
    return {name: from_plain(Range, each, f"{where}: {name}") for name, each in value.items()}


def one_learner_each(config: RunConfig) -> RunConfig:
    """Of a method with a list of values one learner is enough: what is in the list is searched, or the first counts."""
    first: dict[str, MethodConfig] = {}
    for each in config.methods:
        first.setdefault(each.method, each)
    return replace(config, methods=tuple(first.values()), seeds=config.seeds[:1])


def divide(dataset: Dataset, share: float, seed: int) -> tuple[Dataset, dict[str, Any]]:
    """The data set whose test part is part of its training examples, and a description of the division.

    The same for every method and every trial: it is a function of the labels, the share and the seed alone.
    """
    learnt_from, judged_by = stratified_split(dataset.train.labels, share, seed)
    digest = hashlib.blake2b(judged_by.numpy().tobytes(), digest_size=8).hexdigest()
    about = {"learnt_from": len(learnt_from), "judged_by": len(judged_by), "digest": digest}
    train, test = dataset.train.subset(learnt_from), dataset.train.subset(judged_by)
    return replace(dataset, train=train, test=test, foreign=None), about


def open_tuning(config: TuneConfig, experiment: Experiment) -> tuple[TuneConfig, Workbench]:
    """The data, divided. A division that is not the one a tuning was begun with is refused."""
    bench = open_bench(config.base, experiment)
    dataset, about = divide(bench.dataset, config.validation, config.seed)
    require(
        not config.division or config.division == about,
        f"The training examples are not those the tuning was begun with: {config.division} then, {about} now.",
    )
    stream = experiment.tasks_of(config.base.preset, dataset, config.base.tasks)
    base = bench.config if not config.division else replace(bench.config, dataset=config.base.dataset)
    config = replace(config, base=base, division=about)
    return config, replace(bench, config=base, dataset=dataset, stream=stream)


def default_threshold(base: MethodConfig, network: dict[str, float], inputs: int) -> float:
    """What a threshold of one stands for: 1, or for weights of ±1 the root of the fan-in times the filter's gain."""
    if not build_rule(base.method, base.rule).binary:
        return 1.0
    options = {**vars(base.network), **network}
    fan_in = inputs + (options["hidden"][0] if options["recurrent"] else 0)
    return math.sqrt(fan_in) * DoubleExponential(options["synapse_decay"], options["membrane_decay"]).gain


def study_name(config: TuneConfig, method: str) -> str:
    """The same for the same tuning on every machine, so that several may work on one study in one database."""
    plain = to_plain(replace(config, trials=1, storage=None))
    plain["base"]["data"]["root"] = None
    plain["base"]["dataset"] = {**plain["base"]["dataset"], "place": None}
    for machine in ("threads", "device", "checkpoint_seconds", "methods"):
        del plain["base"][machine]
    plain["method"] = to_plain(next(each for each in config.methods if each.method == method))
    plain["own"] = plain["own"][method]
    digest = hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=6).hexdigest()
    return f"{config.base.experiment}/{config.base.preset}/{method}/{digest}"


@dataclass(frozen=True)
class TuneDirectory:
    """The places in the directory of a tuning."""

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "tune.json"

    @property
    def database(self) -> Path:
        return self.path / "study.sqlite3"

    @property
    def record(self) -> Path:
        return self.path / "tuning.json"

    @property
    def environment(self) -> Path:
        return self.path / "environment.json"

    @property
    def report(self) -> Path:
        return self.path / "report.html"
