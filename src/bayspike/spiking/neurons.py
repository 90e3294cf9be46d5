"""Spiking neurons: potential, threshold, reset (paper, Sec. "Spike Response Model", eqs. ind-threshold, ind-membrane).

    u_t = W·trace_t − R_t,      s_t = Θ(u_t − ϑ)

The term R is what a neuron's own spikes subtract. Three kinds of reset are three recursions for it:

- `refractory`  R ← r·R + c·s           the paper's β ∗ s, exponential with decay r and height c
- `zero`        R ← m·(R + s·u)         the membrane falls to zero, as on Loihi; m is the membrane decay
- `subtract`    R ← m·(R + s·ϑ)         the membrane falls by one threshold

The last two are exact: with them the neuron is the usual current-based leaky integrate-and-fire
neuron, written filter-first.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from bayspike.errors import UserError, require_range
from bayspike.spiking.filters import DoubleExponential, Filter, TraceState
from bayspike.spiking.surrogates import surrogate

Reset = Literal["refractory", "zero", "subtract"]


@dataclass(frozen=True)
class Neuron:
    """The constants of a layer's neurons.

    `threshold` is in the units of weight × trace; 1 stands for the 64 of the paper's fixed-point units, since one
    unit is 64 steps of the chip's grid. `slope` is that of the surrogate in units of 1/threshold, so it means the same
    for real-valued and binary weights. `refractory_height` is in units of the threshold.
    """

    filter: Filter = field(default_factory=DoubleExponential)
    threshold: float = 1.0
    reset: Reset = "zero"
    refractory_decay: float = 0.7
    refractory_height: float = 1.0
    surrogate: str = "sigmoid"
    slope: float = 4.0

    def __post_init__(self) -> None:
        require_range("threshold", self.threshold, 0, low_open=True)
        require_range("refractory_decay", self.refractory_decay, 0, 1, high_open=True)
        require_range("refractory_height", self.refractory_height, 0)
        require_range("slope", self.slope, 0, low_open=True)
        surrogate(self.surrogate)
        if self.reset not in get_args(Reset):
            raise UserError(f"reset must be one of {', '.join(get_args(Reset))}, but is {self.reset!r}.")
        if self.reset != "refractory" and not isinstance(self.filter, DoubleExponential):
            raise UserError(
                f"reset={self.reset!r} needs a membrane that decays exponentially, but the filter is "
                f"{type(self.filter).__name__}; choose reset='refractory' or the DoubleExponential filter."
            )

    def post(self, potential: Tensor) -> Tensor:
        """The post-synaptic factor σ'(u − ϑ) of eq. loss-sg-der."""
        return surrogate(self.surrogate)(potential - self.threshold, self.slope / self.threshold)

    def next_refractory(self, refractory: Tensor, spikes: Tensor, potential: Tensor) -> Tensor:
        """R of the next time-step."""
        if self.reset == "refractory":
            height = self.refractory_height * self.threshold
            return refractory.mul(self.refractory_decay).add_(spikes, alpha=height)
        assert isinstance(self.filter, DoubleExponential)
        if self.reset == "zero":
            return torch.addcmul(refractory, spikes, potential).mul_(self.filter.membrane_decay)
        return torch.add(refractory, spikes, alpha=self.threshold).mul_(self.filter.membrane_decay)


class NeuronState(NamedTuple):
    """A layer between two time-steps."""

    synapses: TraceState  # (batch, pre-synaptic neurons)
    refractory: Tensor  # R, (batch, neurons)
    spikes: Tensor  # the last ones emitted, (batch, neurons)
