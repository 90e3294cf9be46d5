"""Layers of spiking neurons, and how one moves a step in time (paper, Sec. "SNN Model").

A layer is a plain value: sizes, constants and its fixed random read-out B. Weights are no part of it; they come from a
learning rule's state (in training) or from a posterior (at inference) as a *drive*: something that turns pre-synaptic
traces into the synaptic part of the potential.

One contract holds for all kinds of layers. However its neurons lie, a layer has one weight matrix of the shape `shape`,
which rules and drives multiply with rows of traces: a dense layer has one row an example, a convolution one for each of
its `places`. `gather` makes these rows, `read` says what the read-out sees of the layer's spikes, and
`error_at_neurons` hands the derivative of the loss by that back to the neurons.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from bayspike.errors import require, require_range
from bayspike.spiking.filters import TraceState
from bayspike.spiking.maps import Inlet
from bayspike.spiking.neurons import Neuron, NeuronState


class Drive(Protocol):
    """Synapses as the forward pass sees them: traces `(rows, pre)` in, synaptic potential `(rows, neurons)` out.

    Rows are examples, or for a convolution the places of all examples, one example after the other. For a
    convolution a drive may offer a faster way than its rows, see `OfMaps`.
    """

    def __call__(self, pre: Tensor) -> Tensor: ...


@runtime_checkable
class OfMaps(Protocol):
    """A drive that knows how to drive a convolution."""

    def of_maps(self, layer: "Layer", traces: Tensor) -> Tensor:
        """Traces `(batch, traces)` to potentials `(batch, neurons)`."""
        ...


class Weights(NamedTuple):
    """The simplest drive: one weight matrix `(neurons, pre)` for the whole batch."""

    matrix: Tensor

    def __call__(self, pre: Tensor) -> Tensor:
        return pre @ self.matrix.T

    def of_maps(self, layer: "Layer", traces: Tensor) -> Tensor:
        return layer.product(traces, self.matrix)


@dataclass(frozen=True)
class Layer:
    """Fully connected spiking neurons with a fixed random read-out; other kinds of layers are derived from it.

    A recurrent layer sees its own last spikes as further inputs: for a local three-factor rule lateral synapses are
    only more pre-synaptic traces. The block includes each neuron's synapse onto itself, a learnt addition to β.
    """

    inputs: int
    neurons: int
    neuron: Neuron
    readout: Tensor  # B, (classes, read), fixed
    recurrent: bool = False
    later: int = 0  # how many rows of B, the last ones, were added after the layer was made
    inlet: Inlet | None = None  # what happens to spikes on the way in; None: nothing
    activity: float = 0.1  # share of the inputs thought to be active before any was seen; a default prior is made by it

    def __post_init__(self) -> None:
        require_range("inputs", self.inputs, 1)
        require_range("neurons", self.neurons, 1)
        require(
            self.readout.ndim == 2 and self.readout.shape[1] == self.seen,
            f"readout must have the shape (classes, {self.seen}), but has {tuple(self.readout.shape)}.",
        )

    @property
    def forward(self) -> int:
        """Number of traces of what comes from below."""
        return self.inputs if self.inlet is None else self.inlet.leaving.size

    @property
    def traces(self) -> int:
        """Number of traces that a layer keeps for each example."""
        return self.forward + (self.neurons if self.recurrent else 0)

    @property
    def pre(self) -> int:
        """Number of pre-synaptic neurons of each neuron: the fan-in."""
        return self.traces

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a weight matrix of this layer."""
        return (self.neurons, self.pre)

    @property
    def places(self) -> int:
        """How many rows of traces, and as many of potentials, one example has."""
        return 1

    @property
    def seen(self) -> int:
        """How many numbers the read-out sees."""
        return self.neurons

    def gather(self, traces: Tensor, room: Tensor | None = None) -> Tensor:
        """The rows `(batch · places, pre)` of traces `(batch, traces)`; `room` is memory that may be used for them."""
        return traces

    def product(self, traces: Tensor, matrix: Tensor) -> Tensor:
        """The weight matrix times the rows of traces `(batch, traces)`: `(batch, neurons)`."""
        return traces @ matrix.T

    def rows_of(self, spikes: Tensor) -> Tensor:
        """Spikes `(batch, inputs)` as they arrive, in rows as their traces will be."""
        arrived = spikes if self.inlet is None else self.inlet(spikes)
        return self.gather(arrived.to(self.readout.dtype))

    def read(self, spikes: Tensor) -> Tensor:
        """What the read-out sees of spikes `(…, neurons)`."""
        return spikes

    def error_at_neurons(self, error: Tensor, post: Tensor) -> Tensor:
        """The derivative by what the read-out sees times `post` of each neuron; either may be overwritten."""
        return error.mul_(post)

    def logits(self, spikes: Tensor) -> Tensor:
        """B times spikes `(…, neurons, batch)`.

        How a product is rounded depends on its shape. So rows that were added later are multiplied one by one: the
        logits of the other classes stay what they were, bit for bit.
        """
        if not self.later:
            return torch.matmul(self.readout, spikes)
        first = len(self.readout) - self.later
        rows = [self.readout[:first], *self.readout[first:].split(1)]
        return torch.cat([torch.matmul(each, spikes) for each in rows], dim=-2)

    def start(self, batch: int) -> NeuronState:
        """The state before the first time-step."""
        dtype, device = self.readout.dtype, self.readout.device
        zeros = torch.zeros(batch, self.neurons, dtype=dtype, device=device)
        return NeuronState(self.neuron.filter.start(batch, self.traces, dtype, device), zeros, zeros)


class LayerStep(NamedTuple):
    """What one time-step of one layer leaves behind."""

    state: NeuronState
    pre: Tensor  # traces that drove it, (batch · places, pre); or (batch, traces), see `step`
    potential: Tensor  # u, (batch, neurons)
    spikes: Tensor  # s, (batch, neurons), in the layer's dtype


def driven_by(
    layer: Layer, traces: Tensor, drive: Drive, room: Tensor | None = None, rows: bool = True
) -> tuple[Tensor, Tensor]:
    """Of traces `(batch, traces)` the rows that drive the neurons, see `step`, and what they drive them with."""
    if layer.places > 1 and isinstance(drive, OfMaps):
        driven = drive.of_maps(layer, traces)
        return layer.gather(traces, room) if rows else traces, driven
    pre = layer.gather(traces, room)
    return pre, drive(pre)


def step(
    layer: Layer,
    state: NeuronState,
    spikes_in: Tensor,
    drive: Drive,
    spare: TraceState | None = None,
    room: Tensor | None = None,
    rows: bool = True,
) -> LayerStep:
    """One time-step: emit spikes from past traces, then take in `spikes_in` `(batch, inputs)` for the next step.

    `spare`: memory for the new traces, see `Filter.step`; `room`: for the rows that are multiplied, see `Layer.gather`.
    Without `rows` the result has the traces of a convolution themselves, where its drive can do without rows.
    """
    neuron = layer.neuron
    pre, driven = driven_by(layer, state.synapses.trace, drive, room, rows)
    potential = driven.view(state.refractory.shape).sub_(state.refractory)
    spikes = torch.gt(potential, neuron.threshold, out=torch.empty_like(potential))  # vectorised, unlike a bool result
    arriving = spikes_in if layer.inlet is None else layer.inlet(spikes_in)
    if layer.recurrent:
        arriving = torch.cat([arriving.to(spikes.dtype), spikes], dim=1)
    following = NeuronState(
        neuron.filter.step(state.synapses, arriving, spare),
        neuron.next_refractory(state.refractory, spikes, potential),
        spikes,
    )
    return LayerStep(following, pre, potential, spikes)
