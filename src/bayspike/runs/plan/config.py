"""What a run is made of, as plain frozen values: everything that has an influence on its result.

`config.json` of a run directory is a `RunConfig`, complete: nothing is looked up in tables again when a run is
resumed, so a later change of defaults does not change an old run.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bayspike.continual.answers import StoredAs
from bayspike.continual.coresets import Selection
from bayspike.continual.protocol import Evidence, Judged, StreamConfig
from bayspike.continual.replay import Mixing
from bayspike.data.augment import parse_augment
from bayspike.data.delays import NOW
from bayspike.errors import UserError, require, require_range
from bayspike.kernels import Kernels, check_kernels
from bayspike.predict.gathering import Gather, check_gather
from bayspike.spiking.network import NetworkConfig
from bayspike.spiking.neurons import Reset
from bayspike.spiking.stack import parse_stack
from bayspike.storage.plain import from_plain, to_plain

MOST_THREADS = 512
MOST_MEMBERS, MOST_EPOCHS, MOST_SEEDS = 10_000, 100_000, 10_000
MOST_EXAMPLES, MOST_STEPS = 2**40, 100_000
LONGEST_WAIT = 86_400.0  # seconds: a day
MOST_DIGITS = 300  # of a value behind --set


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
    readout_grid: int | None = None
    input_activity: float = 0.1
    layers: str | None = None  # in the words of `bayspike.spiking.stack`; then `hidden` does not count

    def __post_init__(self) -> None:
        if self.layers is not None:
            parse_stack(self.layers)

    @property
    def described(self) -> str:
        return self.layers or "-".join(map(str, self.hidden))

    def config(self, inputs: int, classes: int, binary: bool, seed: int, shape: tuple[int, ...] = ()) -> NetworkConfig:
        """For samples of the given shape, which convolutions need to know."""
        options = {**vars(self), "layers": self.layers or ""}
        if self.layers is not None:
            options |= {"hidden": (), "shape": shape}
        return NetworkConfig(inputs=inputs, classes=classes, binary=binary, seed=seed, **options)


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
    evidence: Evidence = "always"
    judge: Judged = "all"
    augment: str | None = None  # as in shift=2,drop=0.1
    augment_stored: str | None = None
    update_every: int = 1
    kernels: Kernels = "plain"
    stored_as: StoredAs = "labels"

    def __post_init__(self) -> None:
        require_range("epochs", self.epochs, 1, MOST_EPOCHS)
        check_kernels(self.kernels)

    def config(self, seed: int, shape: tuple[int, ...] = (), delays: tuple[int, ...] = NOW) -> StreamConfig:
        """For samples of the given shape and ages, which augmentation needs to know."""
        changes = {
            name: None if written is None else parse_augment(written, shape, delays)
            for name, written in (("augment", self.augment), ("augment_stored", self.augment_stored))
        }
        return StreamConfig(seed=seed, **{**vars(self), **changes})


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
    held_back: float = 0.0  # share (or, from 1 on, number) of every class that is not learnt but kept for calibration

    def __post_init__(self) -> None:
        for name in ("time", "train_examples", "test_examples", "foreign_examples"):
            value = getattr(self, name)
            if value is not None:
                require_range(name, value, 1, MOST_STEPS if name == "time" else MOST_EXAMPLES)
        require_range("held_back", self.held_back, 0)


@dataclass(frozen=True)
class JudgingOptions:
    """How a learner is judged: N_S, the headline predictor, and on how many examples during training (None: all)."""

    members: int = 10
    interim_examples: int | None = 500
    headline: str | None = None  # None: committee for Bayesian methods, point for the others
    stored_examples: int = 500  # whose probabilities at every time-step are kept
    control_examples: int = 500  # on which the posterior is judged beside its controls; 0: not at all
    gather: Gather = "mean"  # how steps become an answer; another than the paper's is judged beside it

    def __post_init__(self) -> None:
        require_range("members", self.members, 1, MOST_MEMBERS)
        require_range("stored_examples", self.stored_examples, 1)
        require_range("control_examples", self.control_examples, 0)
        check_gather(self.gather)
        if self.interim_examples is not None:
            require_range("interim_examples", self.interim_examples, 1)


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
    tasks: str | None = None  # the split as written by the user; None: that of the experiment

    def __post_init__(self) -> None:
        require(len(self.methods) > 0, "a run needs at least one method.")
        require(len(self.seeds) > 0, "a run needs at least one seed.")
        labels = [method.label for method in self.methods]
        require(len(set(labels)) == len(labels), f"two methods of a run have one label: {', '.join(labels)}.")
        require_range("threads", self.threads, 1, MOST_THREADS)
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


def identity(config: RunConfig, job: Job) -> dict[str, Any]:
    """All that a checkpoint must agree with for going on from it to be the same run."""
    return {
        "experiment": config.experiment,
        "seed": job.seed,
        "method": to_plain(job.method),
        "data": {**to_plain(config.data), "root": None},  # where the data lie does not matter, what they are does
        "dataset": to_plain(config.dataset),
        "judging": to_plain(config.judging),
        "threads": config.threads,
        "device": config.device,
        "log_every": config.log_every,
    }


def identity_from_json(value: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The settings that a file was made with; those that came later stand at their defaults, as in `config.json`."""
    found = dict(value)
    for place, kind in (("data", DataOptions), ("judging", JudgingOptions)):
        if place in found:
            found[place] = to_plain(from_plain(kind, found[place], f"{where}: {place}"))
    made = found.get("method")
    if isinstance(made, Mapping):
        kinds: dict[str, type] = {"network": NetworkOptions, "training": TrainingOptions}
        found["method"] = {
            name: to_plain(from_plain(kinds[name], each, f"{where}: {name}")) if name in kinds else each
            for name, each in made.items()
        }
    return found


def parse_setting(text: str, option: str = "--set", example: str = "bayes.lr=1000") -> tuple[str, Any]:
    """`name=value` with the value as JSON, or as a word where it is none."""
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    if not equals or not name:
        raise UserError(f"{option} takes name=value, for example {example}, but got {text[:80]!r}.")
    longest = max((len(digits) for digits in re.findall(r"[0-9]+", value)), default=0)
    require(longest <= MOST_DIGITS, f"{option} {name} has a number of {longest:,} digits: no more than {MOST_DIGITS}.")

    def refuse(word: str) -> None:
        raise UserError(f"{option} {name} must be a finite number, but is {word}.")

    try:
        return name, json.loads(value, parse_constant=refuse)
    except (json.JSONDecodeError, RecursionError):
        named = {"none": None, "true": True, "false": False}
        return name, named.get(value.lower(), value)
