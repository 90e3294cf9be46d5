"""Spikes, synaptic operations and an energy estimate per decision; the paper could give none.

The figures for Loihi are those of Davies et al., "Loihi: A Neuromorphic Manycore Processor with On-Chip
Learning", IEEE Micro 38(1), 2018, Table 2 (0.75 V, pre-silicon simulation): at least 23.6 pJ for a
synaptic operation and 81 pJ for the update of an active neuron (52 pJ when idle).

What is assumed: each spike causes one operation per synapse it leaves by; every neuron pays an active
update at every time-step. What is left out: static power, routing between cores, input and output, drawing
weights. So the estimate is a floor for the synapses and a ceiling for the neurons, fit to compare
networks and stopping times, not to predict a meter. A committee of N members costs N times one network.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require, require_range


@dataclass(frozen=True)
class ChipEnergy:
    """Joules per elementary operation of a chip, with the source of the figures."""

    synaptic_operation: float
    neuron_update: float
    source: str

    def __post_init__(self) -> None:
        require_range("synaptic_operation", self.synaptic_operation, 0.0)
        require_range("neuron_update", self.neuron_update, 0.0)


LOIHI = ChipEnergy(23.6e-12, 81e-12, "Davies et al., IEEE Micro 38(1), 2018, Table 2: 0.75 V, pre-silicon simulation")


@dataclass(frozen=True)
class Population:
    """Spikes `(time, batch, neurons)` of one set of neurons, and how many synapses each neuron's axon feeds.

    `fan_out` is one number for all neurons (dense layers) or one per neuron (`fan_out_of`). Inputs come
    from outside and are not updated on the chip: give them `updated=False`.
    """

    spikes: Tensor
    fan_out: int | Tensor
    updated: bool = True

    def __post_init__(self) -> None:
        shape = tuple(self.spikes.shape)
        require(len(shape) == 3, f"spikes must have shape (time, batch, neurons), but have {shape}.")
        require(
            not isinstance(self.fan_out, Tensor) or tuple(self.fan_out.shape) == shape[2:],
            f"fan_out must be one number or have shape ({shape[2]},), one per neuron.",
        )
        require(bool((torch.as_tensor(self.fan_out) >= 0).all()), "fan_out must not be negative.")
        require(
            bool(((self.spikes == 0) | (self.spikes == 1)).all()),
            "spikes must be 0 or 1; graded or missing (NaN) values cannot be counted.",
        )


class EnergyOverTime(NamedTuple):
    """Totals up to and including each time-step, `(time, batch)`: row t is the price of deciding at t."""

    spikes: Tensor
    synaptic_operations: Tensor
    neuron_updates: Tensor
    joules: Tensor


def spike_counts(spikes: Tensor) -> Tensor:
    """Number of spikes of each example, `(time, batch, neurons)` to `(batch,)`."""
    require(spikes.dim() == 3, f"spikes must have shape (time, batch, neurons), but have {tuple(spikes.shape)}.")
    return spikes.sum((0, 2), dtype=torch.float64)


def fan_out_of(weights: Tensor) -> Tensor:
    """Synapses that leave each input of `weights` `(out, in)`; zero weights need no synapse."""
    require(weights.dim() == 2, f"weights must have shape (out, in), but have {tuple(weights.shape)}.")
    return (weights != 0).sum(0)


def energy_over_time(populations: Sequence[Population], chip: ChipEnergy = LOIHI, members: int = 1) -> EnergyOverTime:
    """Energy of the whole network, its inputs included, if the signal stopped at each time-step.

    `members` multiplies the totals, for a committee of which one member's spikes are given.
    """
    require(len(populations) > 0, "energy_over_time needs at least one population of neurons.")
    require(members >= 1, f"members must be at least 1, but is {members}.")
    time, batch, _ = populations[0].spikes.shape
    spikes = torch.zeros(time, batch, dtype=torch.float64, device=populations[0].spikes.device)
    operations, updates = spikes.clone(), spikes.clone()
    for population in populations:
        require(
            population.spikes.shape[:2] == (time, batch),
            "all populations must agree in time and batch, "
            f"but have {(time, batch)} and {tuple(population.spikes.shape[:2])}.",
        )
        fired = population.spikes.to(torch.float64)
        spikes += fired.sum(-1)
        operations += (fired * population.fan_out).sum(-1)
        updates += population.spikes.shape[2] if population.updated else 0
    spikes, operations, updates = (members * each.cumsum(0) for each in (spikes, operations, updates))
    joules = operations * chip.synaptic_operation + updates * chip.neuron_update
    return EnergyOverTime(spikes, operations, updates, joules)
