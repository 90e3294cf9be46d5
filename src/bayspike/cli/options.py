"""The options of `bayspike run`, in groups. None means: as the preset has it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from bayspike.runs.workers import Engine

# Spelt out here so that help and completion come without loading torch; a test compares them with the registries.
ExperimentName = Literal[
    "two-moons", "dvs-gestures", "split-mnist", "mnist-dvs", "split-nmnist", "poker-dvs", "digits", "permuted-mnist",
    "rotated-mnist", "drifting-mnist", "folder", "split-gestures", "split-fashion-mnist",
]  # fmt: skip
MethodName = Literal[
    "bayes", "bayes-binary", "sgd", "ste", "ewc", "ewc-online", "ewc-binary", "tacos", "finetune", "coreset-only",
    "tacos-replay", "joint", "bayes-joint", "bayes-carried", "bayes-stream", "bayes-flat", "mesu", "bgd", "si",
    "metaplastic", "bayes-binary-stream", "laplace",
]  # fmt: skip


@dataclass(frozen=True)
class NetworkFlags:
    """The network."""

    hidden: tuple[int, ...] | None = None
    """Neurons of each layer, for example 256 256."""
    network: str | None = None
    """A stack of any layers, for example 16c5-2p-32c5s2-2p-128: 16 maps with kernels of 5 × 5 (s2: stride 2, p0: no
    padding), 2p sums of 2 × 2 spikes (2m: their maximum), 128 dense neurons (128r: recurrent)."""
    synapse_decay: float | None = None
    """Share of a synaptic current left after a step."""
    membrane_decay: float | None = None
    """Share of a potential left after a step."""
    threshold: float | None = None
    """Firing threshold; by default 1, or the root of the fan-in for binary weights."""
    reset: Literal["refractory", "zero", "subtract"] | None = None
    """What a spike does to its neuron; zero is Loihi's, refractory the paper's kernel."""
    refractory_decay: float | None = None
    """Of the refractory kernel."""
    refractory_height: float | None = None
    """Of the refractory kernel, in thresholds."""
    surrogate: str | None = None
    """Name of the surrogate derivative."""
    slope: float | None = None
    """Of the surrogate derivative."""
    readout_scale: float | None = None
    """Spread of the logits, hence how sure the network can be at all."""
    recurrent: bool | None = None
    """Let each layer see its own spikes (True or False)."""
    readout_grid: int | None = None
    """How many places a side of its maps the fixed read-out of a convolution tells apart; fewer ask more alike of a
    kernel at all its places."""
    input_activity: float | None = None
    """Share of the inputs that is active at a time, by which the first layer's default prior is made; 0.1 fits images,
    0.01 the events of a camera."""


@dataclass(frozen=True)
class TrainingFlags:
    """Training and replay."""

    epochs: int | None = None
    """Passes over the data of each task."""
    batch: int | None = None
    """Examples of a mini-batch."""
    replay: Literal["balanced", "pooled", "none"] | None = None
    """How stored examples are mixed in."""
    coreset_share: float | None = None
    """Share of every class that is stored."""
    coreset_selection: Literal["random", "herding", "medoids", "reservoir"] | None = None
    """Which examples are stored."""
    stored_as: Literal["labels", "answers"] | None = None
    """What a stored example is taken for when it is replayed: its label, or what the learner said at its task's end."""
    evaluations: int | None = None
    """Evaluations during each task."""
    fisher_examples: int | None = None
    """Examples for the Fisher information of EWC."""
    burn_in: int | None = None
    """First time-steps without updates."""
    anneal: float | None = None
    """Share of the learning rate that is taken off, linearly, over each task."""
    evidence: Literal["always", "once"] | None = None
    """Whether a replayed example raises precisions again (the paper's objective), or counts once."""
    judge: Literal["all", "learnt"] | None = None
    """Which tasks are judged during training: all, or those learnt so far (of many the newest five and five more)."""
    augment: str | None = None
    """Small changes to what is learnt from, as in "shift=2,turn=10,stretch=0.1,drop=0.1,jitter=1"; for all alike."""
    augment_stored: str | None = None
    """The same for stored examples alone, which are replayed again and again."""
    update_every: int | None = None
    """Time-steps for which weights stand still before one update; above 1 faster, and not the paper's letter."""
    kernels: Literal["plain", "compiled"] | None = None
    """Inner loops of torch, or compiled ones (extra `fast`): faster, the same within rounding."""


@dataclass(frozen=True)
class DataFlags:
    """Sizes of the data."""

    train_examples: int | None = None
    """Training examples, all classes together."""
    test_examples: int | None = None
    """Test examples, all classes together."""
    foreign_examples: int | None = None
    """Out-of-distribution examples."""
    time: int | None = None
    """Time-steps of an example."""
    held_back: float | None = None
    """Share of every class (from 1 on: number) that is stored for calibration and not learnt; see --gather."""


@dataclass(frozen=True)
class JudgingFlags:
    """Judging."""

    members: int | None = None
    """Networks of a committee or ensemble (N_S)."""
    headline: Literal["committee", "ensemble", "mean"] | None = None
    """The predictor whose figures stand for a Bayesian method."""
    interim_examples: int | None = None
    """Test examples of evaluations during training; the last one always takes all."""
    control_examples: int | None = None
    """Test examples on which a posterior is judged beside its controls, as many others choose; 0: no controls."""
    gather: Literal["mean", "weighted", "logits"] | None = None
    """How the steps of a signal become one answer. Beside mean, the paper's: weighted by what each step knows, or by
    adding logits; either with a temperature fitted on what --held-back stores."""


class Where(NamedTuple):
    """An engine that is open, and how many jobs it is given at a time."""

    engine: "Engine"
    at_once: int


@dataclass(frozen=True)
class EngineFlags:
    """Where jobs run."""

    engine: Literal["local", "ray"] = "local"
    """Processes of this machine, or tasks of a Ray cluster (extra `ray`)."""
    address: str | None = None
    """Of the Ray cluster, for example ray-head:6379; without it one is started on this machine."""

    @contextmanager
    def open(self, threads: int, device: str, parallel: int | None, cores: int) -> "Iterator[Where]":
        """The engine, and how many jobs of so many threads it is given at a time. Opened before anything is begun."""
        from bayspike.errors import require
        from bayspike.runs.workers import LOCAL

        if self.engine == "local":
            require(self.address is None, "--address is that of a Ray cluster: add --engine ray.")
            yield Where(LOCAL, parallel or max(1, cores // threads))
            return
        from bayspike.runs.on_ray import cluster

        with cluster(self.address, threads, int(device.startswith("cuda"))) as engine:
            yield Where(engine, parallel or 10_000)  # Ray knows how many there is room for


def said(flags: Any) -> dict[str, Any]:
    """Only what the user said."""
    return {name: value for name, value in vars(flags).items() if value is not None}
