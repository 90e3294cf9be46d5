"""Inputs that stay silent through a whole mini-batch.

Their traces are nought, so they drive no neuron and their synapses get no gradient: all that happens to those is the
pull of the prior, which a rule may know how to apply for many time-steps at once (`rest`). Such columns are set aside
while the mini-batch is learnt, and the matrix products run over the other inputs alone. Of the pixels of 64 MNIST
digits about four in ten are silent.
"""

from dataclasses import replace
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from bayspike.rules.base import State
from bayspike.spiking.network import Network

WORTHWHILE = 0.1  # share of silent inputs from which on setting them aside pays


@runtime_checkable
class Resting(Protocol):
    """A rule whose state is matrices of the layer's shape, and which can say what time without input does to them."""

    def rest(self, state: State, steps: int) -> State:
        """The state after `steps` updates without any gradient; the one given is spent."""
        ...


def firing_inputs(spikes: Tensor) -> Tensor | None:
    """Indices of the inputs that fire in this mini-batch, or None if too few are silent to bother."""
    flat = spikes.flatten(0, 1)
    fires = flat.amax(dim=0) != 0
    if spikes.dtype.is_signed:
        fires |= flat.amin(dim=0) != 0
    fires[0] = True  # one input at least
    firing = fires.nonzero().flatten()
    return firing if len(firing) <= (1 - WORTHWHILE) * len(fires) else None


def without_silent_inputs(network: Network, firing: Tensor) -> tuple[Network, Tensor]:
    """The network as if it had the firing inputs only, and the columns of its first layer that are left."""
    first, *others = network.layers
    lateral = torch.arange(first.inputs, first.pre, device=firing.device)
    return Network((replace(first, inputs=len(firing)), *others), network.binary), torch.cat([firing, lateral])


def take_columns(state: State, columns: Tensor) -> State:
    """A copy of the state for some of the pre-synaptic neurons. What is not a matrix is a rule's scratch: dropped."""
    parts = state._asdict().items()
    return state._replace(
        **{name: part.index_select(1, columns) if isinstance(part, Tensor) else None for name, part in parts}
    )


def rejoin(rule: Resting, whole: State, learnt: State, columns: Tensor, steps: int) -> State:
    """Put the columns that have learnt for `steps` back into `whole`, and let the others rest as long."""
    silent = torch.ones(whole[0].shape[1], dtype=torch.bool, device=columns.device)
    silent[columns] = False
    others = silent.nonzero().flatten()
    rested = rule.rest(take_columns(whole, others), steps)
    joined = {}
    for name, part in whole._asdict().items():
        busy, idle = getattr(learnt, name), getattr(rested, name)
        is_matrix = isinstance(part, Tensor)
        joined[name] = part.index_copy_(1, columns, busy).index_copy_(1, others, idle) if is_matrix else None
    return whole._replace(**joined)
