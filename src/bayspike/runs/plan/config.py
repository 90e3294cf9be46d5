"""What a run is made of, as plain frozen values: everything that has an influence on its result.

`config.json` of a run directory is a `RunConfig`, complete: nothing is looked up in tables again when a run is
resumed, so a later change of defaults does not change an old run.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bayspike.continual.coresets import Selection
from bayspike.continual.protocol import StreamConfig
from bayspike.continual.replay import Mixing
from bayspike.errors import UserError, require, require_range
from bayspike.spiking.network import NetworkConfig
from bayspike.spiking.neurons import Reset
from bayspike.storage.files import parse_json
from bayspike.storage.plain import from_plain, to_plain

LONGEST_WAIT = 1e7  # seconds between two checkpoints: four months


@dataclass(frozen=True)
class NetworkOptions:
    """The network but for what the data and the rule fix: inputs, classes, and whether weights are binary."""

    hidden: tuple[int, ...] = (400,)
    synapse_decay: float = 0.5
    membrane_decay: float = 0.9
    threshold: float | None = None
    reset: Reset = "zero"
    refractory_decay: float = 0.7
    refractory_height: float = 1.0
    surrogate: str = "sigmoid"
    slope: float = 4.0
    readout_scale: float = 4.0
    recurrent: bool = False

    def config(self, inputs: int, classes: int, binary: bool, seed: int) -> NetworkConfig:
        return NetworkConfig(inputs=inputs, classes=classes, binary=binary, seed=seed, **vars(self))


@dataclass(frozen=True)
class TrainingOptions:
    """How a learner goes through its tasks; see `bayspike.continual.StreamConfig`."""

    epochs: int = 1
    batch: int = 64
    replay: Mixing = "balanced"
    coreset_share: float = 0.075
    coreset_selection: Selection = "random"
    evaluations: int = 1
    fisher_examples: int | None = None
    burn_in: int = 0
    anneal: float = 0.0

    def config(self, seed: int) -> StreamConfig:
        return StreamConfig(seed=seed, **vars(self))


@dataclass(frozen=True)
class DataOptions:
    """Which data, and how much of them. Numbers of examples are of all classes together; None means all."""

    name: str = "digits"
    root: str | None = None
    time: int | None = None
    train_examples: int | None = None
    test_examples: int | None = None
    foreign_examples: int | None = None
    seed: int = 0  # of the split into train and test; the same for all repetitions
    options: Mapping[str, Any] = field(default_factory=dict)  # of the data set's own loader


@dataclass(frozen=True)
class JudgingOptions:
    """How a learner is judged: N_S, the headline predictor, and on how many examples during training (None: all)."""

    members: int = 10
    interim_examples: int | None = 500
    headline: str | None = None  # None: committee for Bayesian methods, point for the others
    stored_examples: int = 500  # whose probabilities at every time-step are kept


@dataclass(frozen=True)
class MethodConfig:
    """One learner: a method with all its hyper-parameters. `label` names it in files and tables."""

    label: str
    method: str
    rule: Mapping[str, Any]
    network: NetworkOptions
    training: TrainingOptions


@dataclass(frozen=True)
class RunConfig:
    """One experiment, several methods, several seeds."""

    experiment: str
    preset: str
    methods: tuple[MethodConfig, ...]
    seeds: tuple[int, ...]
    data: DataOptions
    judging: JudgingOptions
    threads: int = 1
    device: str = "cpu"
    log_every: int = 5  # mini-batches between two lines of metrics.jsonl
    checkpoint_seconds: float = 20.0  # 0: after every mini-batch
    tensorboard: bool = False
    simulated: bool = False
    reduced: tuple[str, ...] = ()  # what is smaller than in the paper, in sentences
    dataset: Mapping[str, Any] = field(default_factory=dict)  # what was really loaded

    def __post_init__(self) -> None:
        require(len(self.methods) > 0, "a run needs at least one method.")
        require(len(self.seeds) > 0, "a run needs at least one seed.")
        labels = [method.label for method in self.methods]
        require(len(set(labels)) == len(labels), f"two methods of a run have one label: {', '.join(labels)}.")
        require_range("threads", self.threads, 1)
        require_range("log_every", self.log_every, 1)
        require_range("checkpoint_seconds", self.checkpoint_seconds, 0, LONGEST_WAIT)
        require(
            all(0 <= seed < 2**31 for seed in self.seeds) and len(set(self.seeds)) == len(self.seeds),
            f"the seeds of a run must be different whole numbers in [0, {2**31 - 1}].",
        )


class Job:
    """One learner with one seed; its name is that of its files."""

    def __init__(self, method: MethodConfig, seed: int) -> None:
        self.method, self.seed = method, seed
        self.name = f"{slug(method.label)}-seed{seed}"


def jobs_of(config: RunConfig) -> list[Job]:
    """Seed by seed, so that after the first all methods can be compared."""
    return [Job(method, seed) for seed in config.seeds for method in config.methods]


def slug(label: str) -> str:
    """A label as part of a file name."""
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", label.replace("ρ", "rho")).strip("_")


def config_to_json(config: RunConfig) -> dict[str, Any]:
    plain: dict[str, Any] = to_plain(config)
    return plain


def config_from_json(value: Any, where: str) -> RunConfig:
    return from_plain(RunConfig, value, where)


def parse_setting(text: str) -> tuple[str, Any]:
    """`name=value` with the value as JSON, or as a word where it is none."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UserError(f"--set takes name=value, for example bayes.lr=1000, but got {text!r}.")
    try:
        return name.strip(), parse_json(value)
    except ValueError:  # a word, or a number that is none: whoever wants a number will refuse it
        named = {"none": None, "true": True, "false": False}
        return name.strip(), named.get(value.strip().lower(), value.strip())
