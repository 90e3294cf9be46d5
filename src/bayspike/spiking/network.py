"""Layers and networks of spiking neurons, and how they move one step in time (paper, Sec. "SNN Model").

A network is a plain value: sizes, constants and the fixed random read-outs B of every layer. Weights are not
part of it; they come from a learning rule's state (in training) or from a posterior (at inference) as a
*drive*: something that turns pre-synaptic traces into the synaptic part of the potential.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from bayspike.errors import UserError, require, require_range
from bayspike.seeds import generator_for
from bayspike.spiking.filters import DoubleExponential, Filter, TraceState
from bayspike.spiking.neurons import Neuron, NeuronState, Reset

MOST_SYNAPSES = 2**31  # eight gigabytes for the weights alone


class Drive(Protocol):
    """Synapses as the forward pass sees them: traces `(batch, pre)` in, synaptic potential `(batch, neurons)` out."""

    def __call__(self, pre: Tensor) -> Tensor: ...


class Weights(NamedTuple):
    """The simplest drive: one weight matrix `(neurons, pre)` for the whole batch."""

    matrix: Tensor

    def __call__(self, pre: Tensor) -> Tensor:
        return pre @ self.matrix.T


@dataclass(frozen=True)
class Layer:
    """Fully connected spiking neurons with a fixed random read-out.

    A recurrent layer sees its own last spikes as further inputs: for a local three-factor rule lateral synapses are
    only more pre-synaptic traces. The block includes each neuron's synapse onto itself, a learnt addition to β.
    """

    inputs: int
    neurons: int
    neuron: Neuron
    readout: Tensor  # B, (classes, neurons), fixed
    recurrent: bool = False
    later: int = 0  # how many rows of B, the last ones, were added after the layer was made

    def __post_init__(self) -> None:
        require_range("inputs", self.inputs, 1)
        require_range("neurons", self.neurons, 1)
        require(
            self.readout.ndim == 2 and self.readout.shape[1] == self.neurons,
            f"readout must have the shape (classes, {self.neurons}), but has {tuple(self.readout.shape)}.",
        )

    @property
    def pre(self) -> int:
        """Number of pre-synaptic neurons of each neuron: the fan-in."""
        return self.inputs + (self.neurons if self.recurrent else 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of a weight matrix of this layer."""
        return (self.neurons, self.pre)

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
        return NeuronState(self.neuron.filter.start(batch, self.pre, dtype, device), zeros, zeros)


class LayerStep(NamedTuple):
    """What one time-step of one layer leaves behind."""

    state: NeuronState
    pre: Tensor  # traces that drove it, (batch, pre)
    potential: Tensor  # u, (batch, neurons)
    spikes: Tensor  # s, (batch, neurons), in the layer's dtype


def step(
    layer: Layer, state: NeuronState, spikes_in: Tensor, drive: Drive, spare: TraceState | None = None
) -> LayerStep:
    """One time-step: emit spikes from past traces, then take in `spikes_in` `(batch, inputs)` for the next step.

    `spare`: memory for the new traces, see `Filter.step`.
    """
    neuron, pre = layer.neuron, state.synapses.trace
    potential = drive(pre).sub_(state.refractory)
    spikes = torch.gt(potential, neuron.threshold, out=torch.empty_like(potential))  # vectorised, unlike a bool result
    arriving = torch.cat([spikes_in.to(spikes.dtype), spikes], dim=1) if layer.recurrent else spikes_in
    following = NeuronState(
        neuron.filter.step(state.synapses, arriving, spare),
        neuron.next_refractory(state.refractory, spikes, potential),
        spikes,
    )
    return LayerStep(following, pre, potential, spikes)


@dataclass(frozen=True)
class Network:
    """A stack of layers. `binary`: whether its thresholds are those for weights of ±1; None where chosen by hand."""

    layers: tuple[Layer, ...]
    binary: bool | None = None

    def __post_init__(self) -> None:
        require(len(self.layers) > 0, "a network needs at least one layer, but got none.")
        for below, above in zip(self.layers, self.layers[1:], strict=False):
            require(
                below.neurons == above.inputs,
                f"a layer of {below.neurons} neurons cannot feed a layer with {above.inputs} inputs.",
            )

    @property
    def inputs(self) -> int:
        return self.layers[0].inputs

    @property
    def classes(self) -> int:
        return int(self.layers[-1].readout.shape[0])

    def start(self, batch: int) -> tuple[NeuronState, ...]:
        return tuple(layer.start(batch) for layer in self.layers)

    def to(self, device: torch.device | str) -> "Network":
        """The same network with its read-outs on another device."""
        moved = (replace(layer, readout=layer.readout.to(device)) for layer in self.layers)
        return Network(tuple(moved), self.binary)


def network_step(
    network: Network, states: Sequence[NeuronState], spikes_in: Tensor, drives: Sequence[Drive]
) -> list[LayerStep]:
    """One time-step of all layers, from the bottom up: each passes the spikes it emits now to the next one's future."""
    steps = []
    for layer, state, drive in zip(network.layers, states, drives, strict=True):
        steps.append(step(layer, state, spikes_in, drive))
        spikes_in = steps[-1].spikes
    return steps


def unroll(network: Network, spikes: Tensor, weights: Sequence[Tensor]) -> list[Tensor]:
    """Run fixed weights over `spikes` `(time, batch, inputs)`; spikes of every layer `(time, batch, neurons)`.

    The plain loop over time. The predictors have a faster way to the same numbers.
    """
    states: Sequence[NeuronState] = network.start(spikes.shape[1])
    drives = [Weights(matrix) for matrix in weights]
    record: list[list[Tensor]] = [[] for _ in network.layers]
    for spikes_t in spikes:
        steps = network_step(network, states, spikes_t, drives)
        states = [done.state for done in steps]
        for out, done in zip(record, steps, strict=True):
            out.append(done.spikes)
    return [torch.stack(out) for out in record]


@dataclass(frozen=True)
class NetworkConfig:
    """All that is needed to build a network again: plain numbers and words."""

    inputs: int
    hidden: tuple[int, ...]
    classes: int
    binary: bool = False
    synapse_decay: float = 0.5
    membrane_decay: float = 0.9
    threshold: float | None = None  # None: 1 (64 in fixed-point units), or √fan-in · filter gain if binary
    reset: Reset = "zero"
    refractory_decay: float = 0.7
    refractory_height: float = 1.0
    surrogate: str = "sigmoid"
    slope: float = 4.0
    readout_scale: float = 4.0
    recurrent: bool = False
    seed: int = 0  # of the read-outs

    def __post_init__(self) -> None:
        require_range("inputs", self.inputs, 1)
        require(len(self.hidden) > 0, "hidden must name at least one layer size, for example (400,).")
        for neurons in self.hidden:
            require_range("a layer size in hidden", neurons, 1)
        require_range("classes", self.classes, 2)
        require_range("readout_scale", self.readout_scale, 0, low_open=True)
        widths = (self.inputs, *self.hidden)
        synapses = sum(above * (below + (above if self.recurrent else 0)) for below, above in pairwise(widths))
        require(
            synapses <= MOST_SYNAPSES,
            f"layers of {'-'.join(map(str, self.hidden))} neurons on {self.inputs:,} inputs have {synapses:,} "
            f"synapses, more than the {MOST_SYNAPSES:,} that are allowed: choose a smaller hidden.",
        )


def build(config: NetworkConfig, dtype: torch.dtype = torch.float32, filter: Filter | None = None) -> Network:
    """Make the network of a configuration. The read-outs are drawn from `config.seed` alone."""
    generator = torch.Generator().manual_seed(config.seed)
    synapses = filter or DoubleExponential(config.synapse_decay, config.membrane_decay)
    layers = []
    inputs = config.inputs
    for neurons in config.hidden:
        fan_in = inputs + (neurons if config.recurrent else 0)
        # The paper's root of the fan-in is for traces as they are summed; ours are normalised by the filter's gain.
        default = math.sqrt(fan_in) * synapses.gain if config.binary else 1.0
        neuron = Neuron(
            filter=synapses,
            threshold=default if config.threshold is None else config.threshold,
            reset=config.reset,
            refractory_decay=config.refractory_decay,
            refractory_height=config.refractory_height,
            surrogate=config.surrogate,
            slope=config.slope,
        )
        readout = random_readout(config.classes, neurons, config.readout_scale, generator).to(dtype)
        layers.append(Layer(inputs, neurons, neuron, readout, config.recurrent))
        inputs = neurons
    return Network(tuple(layers), config.binary if config.threshold is None else None)


def random_readout(classes: int, neurons: int, scale: float, generator: torch.Generator) -> Tensor:
    """Fixed random B `(classes, neurons)`: normal entries of standard deviation scale/√neurons.

    The scale sets how far logits can spread, hence how sure the network can be at all.
    """
    return torch.randn(classes, neurons, generator=generator) * (scale / math.sqrt(neurons))


def with_more_classes(network: Network, config: NetworkConfig, classes: int) -> Network:
    """The network with rows for classes that came later, each drawn from the seed, its layer and its number alone.

    Nothing else moves: rows that are there stay as they are, and it makes no difference in how many steps it grew.
    """
    require(
        classes >= network.classes,
        f"a network of {network.classes} classes cannot be made one of {classes}: classes are only added.",
    )
    if classes == network.classes:
        return network
    layers = []
    for index, layer in enumerate(network.layers):
        rows = [
            random_readout(1, layer.neurons, config.readout_scale, generator_for(config.seed, "read-out", index, each))
            for each in range(network.classes, classes)
        ]
        readout = torch.cat([layer.readout, torch.cat(rows).to(layer.readout)])
        layers.append(replace(layer, readout=readout, later=layer.later + len(rows)))
    return Network(tuple(layers), network.binary)


def check_spikes(network: Network, spikes: Tensor) -> None:
    """Refuse a block of input spikes that does not fit the network."""
    if spikes.ndim != 3 or spikes.shape[2] != network.inputs:
        raise UserError(f"spikes must have the shape (time, batch, {network.inputs}), but have {tuple(spikes.shape)}.")
    if spikes.numel() == 0:
        raise UserError(f"spikes need at least one time-step and one example, but have {tuple(spikes.shape)}.")
    if spikes.is_floating_point() and not bool(torch.isfinite(spikes).all()):
        raise UserError("spikes hold values that are not finite; check the encoder or the file they came from.")
