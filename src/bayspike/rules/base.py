"""The small protocol that every learning rule follows.

A rule is a frozen dataclass of hyper-parameters. Its state for one layer is a NamedTuple of tensors, made by
`init`, replaced by `update` at every time-step and by `end_task` between tasks. `update` may reuse the buffers of the
state it is given: the old state is spent.

    drive(state, generator)   what the forward pass of this time-step uses
    update(state, gradient)   one application of the rule's equation
    end_task(state, fisher)   the posterior becomes the prior (or whatever the rule does to remember)
    posterior(state)          the distribution over the weights, for predictors

To add a rule: write one file with these five methods and list it in `bayspike/rules/__init__.py`. With a sixth,
`rest(state, steps)`, silent inputs cost it nothing (see `bayspike.silent`).
"""

import math
from typing import Any, Protocol

import torch
from torch import Tensor

from bayspike.local import LocalGradient
from bayspike.network import Drive
from bayspike.posteriors import Posterior

State = Any  # a NamedTuple of tensors, private to its rule
BLOCK = 320_000  # most weights worked on at once: several matrices of that size stay in the cache


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


def block_count(matrix: Tensor) -> int:
    """Into how many chunks of rows to cut a matrix, so that each stays in the cache while it is worked on.

    An update that passes over a large matrix several times waits for memory; chunk by chunk it does not, and
    needs intermediate results of one chunk only.
    """
    return math.ceil(matrix.numel() / BLOCK)


def block_buffer(matrix: Tensor) -> Tensor:
    """Room for one chunk of `matrix`. Kept from step to step, since fresh memory costs as much as the work on it."""
    return torch.empty_like(matrix.chunk(block_count(matrix))[0])


def initial_weights(shape: tuple[int, int], scale: float, generator: torch.Generator) -> Tensor:
    """Normal weights of standard deviation scale/√fan-in, so that the start does not depend on the layer's size."""
    return torch.randn(*shape, generator=generator) * (scale / math.sqrt(shape[1]))


def state_bytes(state: State) -> int:
    """Bytes a state keeps, counted over its tensors."""
    return sum(part.numel() * part.element_size() for part in state if isinstance(part, Tensor))
