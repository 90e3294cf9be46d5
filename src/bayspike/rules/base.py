"""The small protocol that every learning rule follows.

A rule is a frozen dataclass of hyper-parameters. Its state for one layer is a NamedTuple of tensors, made by
`init`, replaced by `update` at every time-step and by `end_task` between tasks. `update` may reuse the buffers of the
state it is given: the old state is spent.

    drive(state, generator)   what the forward pass of this time-step uses
    update(state, gradient)   one application of the rule's equation
    end_task(state, fisher)   the posterior becomes the prior (or whatever the rule does to remember)
    posterior(state)          the distribution over the weights, for predictors

To add a rule: write one file with these five methods and list it in `bayspike/rules/__init__.py`. With a sixth,
`rest(state, steps)`, silent inputs cost it nothing (see `bayspike.learning.silent`); with `at(pace)` it may have
units of its own; with `by_means = True` it says that `mean`, `means` and `add_mean_to` are all that it asks of the
gradient of a convolution, whose rows are then made a few examples at a time; with `by_threshold = True` that its `init`
takes the neurons' threshold and the activity of their inputs too.
"""

import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from bayspike.posteriors import draws
from bayspike.posteriors.distributions import Posterior
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Drive, Layer

State = Any  # a NamedTuple of tensors, private to its rule
IN_CACHE = 2**21  # numbers that stay in the cache while they are worked on


class Pace(NamedTuple):
    """What a rule in natural units has to know of a mini-batch and of the task it belongs to."""

    batch: int  # examples of the mini-batch
    steps: int  # time-steps of an example
    examples: float = math.inf  # presentations of the whole task
    observations: float = 1.0  # how many independent observations the steps of one example are worth
    stored: float = 0.0  # stored examples of each earlier class, one that is shifted counted for each of its places
    share: float = 0.0  # the same beside the examples of a class in this task
    first: bool = True  # whether no task came before
    fresh: float = math.inf  # new examples of the task, each counted once however often it is shown


def natural_rates(pace: Pace, remember: float | None, observations: float | None) -> tuple[float, float]:
    """η = c·|B|/T and ρ = 1/(c·N), see `bayspike.rules.gaussian`.

    N is `remember`, or the examples of the task; c is `observations`, or the independent ones of a rule that remembers,
    and each step one where tasks have ends.
    """
    weight, memory = pace.batch / pace.steps, pace.examples if remember is None else remember
    counted = pace.observations if remember is not None else float(pace.steps)
    worth = counted if observations is None else observations
    # no more than half is forgotten in one step, however short the memory
    return worth * weight, 1 / (worth * max(memory, 2 * weight))


@runtime_checkable
class Paced(Protocol):
    """A rule in units of its own, which become rates once the pace is known."""

    def at(self, pace: Pace) -> "Rule": ...


class Rule(Protocol):
    """A learning rule for one layer."""

    @property
    def binary(self) -> bool:
        """Whether the weights are ±1 (sets the default threshold)."""
        ...

    @property
    def samples(self) -> int:
        """How many weight samples a time-step uses: the batch is repeated that often."""
        ...

    @property
    def needs_fisher(self) -> bool:
        """Whether `end_task` wants the diagonal Fisher information of the task."""
        ...

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> State: ...

    def drive(self, state: State, generator: torch.Generator) -> Drive: ...

    def update(self, state: State, gradient: LocalGradient) -> State: ...

    def end_task(self, state: State, fisher: Tensor | None = None) -> State: ...

    def posterior(self, state: State) -> Posterior: ...


def row_blocks(first: Tensor, *others: Tensor) -> list[tuple[Tensor, ...]]:
    """Matrices with as many rows as the first, cut alike into blocks of rows that stay in the cache together.

    An update that passes over a large matrix several times waits for memory; block by block it does not, and
    needs intermediate results of one block only.
    """
    if (len(others) + 2) * first.numel() <= IN_CACHE:
        return [(first, *others)]
    large = 1 + sum(matrix.shape == first.shape for matrix in others)
    count = math.ceil((large + 1) * first.numel() / IN_CACHE)  # one more for intermediate results
    return list(zip(*(matrix.chunk(count) for matrix in (first, *others)), strict=True))


def block_buffer(matrix: Tensor) -> Tensor:
    """Room for the largest block of `matrix`. Kept from step to step, since fresh memory costs as much as the work."""
    return torch.empty_like(row_blocks(matrix)[0][0])


def initial_weights(shape: tuple[int, int], scale: float, generator: torch.Generator) -> Tensor:
    """Normal weights of standard deviation scale/√fan-in, so that the start does not depend on the layer's size."""
    return draws.normal_matrix(shape, generator) * (scale / math.sqrt(shape[1]))


def first_precision(std: float | None, fan_in: int, threshold: float, activity: float) -> float:
    """Of a weight before anything is known: as wide as said, or so that potentials spread by one threshold."""
    return fan_in * activity / threshold**2 if std is None else std**-2


def first_state(rule: "Rule", layer: Layer, shape: tuple[int, int], generator: torch.Generator) -> State:
    """A rule's state before anything is learnt, for weights of this shape of a layer, on the layer's device."""
    known = {"threshold": layer.neuron.threshold, "activity": layer.activity}
    state = rule.init(shape, generator, **(known if getattr(rule, "by_threshold", False) else {}))
    moved = {name: part.to(layer.readout) for name, part in state._asdict().items() if isinstance(part, Tensor)}
    return state._replace(**moved)


def state_bytes(state: State) -> int:
    """Bytes a state keeps, counted over its tensors."""
    return sum(part.numel() * part.element_size() for part in state if isinstance(part, Tensor))
