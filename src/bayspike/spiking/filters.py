"""Synaptic filters: the pre-synaptic trace α ∗ s (paper, Sec. "Spike Response Model", eq. ind-membrane).

A filter is any linear recurrence driven by spikes, so a neuron model that is linear in its input spikes is a
new filter and nothing else. The convolution is strictly causal (δ > 0): the trace that is used at time t knows
the spikes up to t − 1, which gives one step of delay per layer, as on Loihi.

Filters are normalised so that the weights of different filters are of one scale; the constant folds
into the weights when a network is exported.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from bayspike.errors import require_range


class TraceState(NamedTuple):
    """What a filter remembers: an inner variable, and the trace that the synapses see. Both `(batch, inputs)`."""

    hidden: Tensor
    trace: Tensor


class Filter(Protocol):
    """A linear, strictly causal filter of spikes."""

    @property
    def gain(self) -> float:
        """The constant by which the plain recurrence is normalised."""
        ...

    def start(self, batch: int, inputs: int, dtype: torch.dtype, device: torch.device) -> TraceState:
        """The state before any spike."""
        ...

    def step(self, state: TraceState, spikes: Tensor, spare: TraceState | None = None) -> TraceState:
        """Take in the spikes of time t `(batch, inputs)`; the result's trace is the one of time t + 1.

        `spare` is an old state, no longer needed, whose memory may be used for the result: fresh memory at every step
        would cost more than the arithmetic.
        """
        ...

    def kernel(self, time: int) -> Tensor:
        """The impulse response α_1 … α_time in closed form, `(time,)`, for tests and docs."""
        ...


@dataclass(frozen=True)
class DoubleExponential:
    """The paper's α: a synaptic and a membrane decay, α_δ = g·(m^δ − s^δ)/(m − s).

    With `synapse_decay=0` it is the single exponential of a plain leaky integrate-and-fire neuron. The gain g
    makes a channel that spikes at every step tend to a trace of 1.
    """

    synapse_decay: float = 0.5
    membrane_decay: float = 0.9

    def __post_init__(self) -> None:
        require_range("synapse_decay", self.synapse_decay, 0, 1, high_open=True)
        require_range("membrane_decay", self.membrane_decay, 0, 1, high_open=True)

    @property
    def gain(self) -> float:
        return (1 - self.synapse_decay) * (1 - self.membrane_decay)

    def start(self, batch: int, inputs: int, dtype: torch.dtype, device: torch.device) -> TraceState:
        return _silence(batch, inputs, dtype, device)

    def step(self, state: TraceState, spikes: Tensor, spare: TraceState | None = None) -> TraceState:
        # two leaky averages in a row: of the spikes, and of that average
        hidden, trace = spare or (None, None)
        current = torch.lerp(spikes.to(state.hidden.dtype), state.hidden, self.synapse_decay, out=hidden)
        return TraceState(current, torch.lerp(current, state.trace, self.membrane_decay, out=trace))

    def kernel(self, time: int) -> Tensor:
        delay = torch.arange(1, time + 1, dtype=torch.float64)
        s, m = self.synapse_decay, self.membrane_decay
        if math.isclose(s, m, abs_tol=1e-12):
            return self.gain * delay * m ** (delay - 1)
        return self.gain * (m**delay - s**delay) / (m - s)


@dataclass(frozen=True)
class Resonator:
    """Resonate-and-fire: a damped oscillating kernel, α_δ = g·d^(δ−1)·cos(ω(δ − 1)).

    The state is a complex number z ← d·e^{iω}·z + g·s kept as its imaginary and real parts; the real part is the
    trace. `period` is that of the oscillation in time-steps.
    """

    decay: float = 0.9
    period: float = 10.0

    def __post_init__(self) -> None:
        require_range("decay", self.decay, 0, 1, high_open=True)
        require_range("period", self.period, 2, math.inf)

    @property
    def gain(self) -> float:
        return 1 - self.decay

    def start(self, batch: int, inputs: int, dtype: torch.dtype, device: torch.device) -> TraceState:
        return _silence(batch, inputs, dtype, device)

    def step(self, state: TraceState, spikes: Tensor, spare: TraceState | None = None) -> TraceState:
        del spare
        angle = 2 * math.pi / self.period
        cosine, sine = self.decay * math.cos(angle), self.decay * math.sin(angle)
        imaginary, real = state
        turned = (real * cosine).sub_(imaginary, alpha=sine).add_(spikes, alpha=self.gain)
        return TraceState((imaginary * cosine).add_(real, alpha=sine), turned)

    def kernel(self, time: int) -> Tensor:
        age = torch.arange(time, dtype=torch.float64)
        return self.gain * self.decay**age * torch.cos(2 * math.pi / self.period * age)


def independent_steps(filter: Filter, time: int) -> float:
    """How many independent observations `time` steps of traces amount to: time·Σα²/(Σ|α|)², from 1 to `time`.

    Traces of spikes that are independent from step to step have the autocorrelation of the kernel; a mean over them
    has the variance of a mean over this many independent ones. For one exponential: time·(1 − m)/(1 + m).
    """
    kernel = filter.kernel(max(time, 2))
    return min(float(time), max(1.0, time * float(kernel.square().sum() / kernel.abs().sum().square())))


def _silence(batch: int, inputs: int, dtype: torch.dtype, device: torch.device) -> TraceState:
    hidden, trace = torch.zeros(2, batch, inputs, dtype=dtype, device=device)
    return TraceState(hidden, trace)
