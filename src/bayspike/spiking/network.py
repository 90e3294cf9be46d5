"""Networks: stacks of layers, how they move one step in time, and how they are built (paper, Sec. "SNN Model").

A network is a plain value, and so is the configuration from which it is built again: sizes, constants, and the seed of
the fixed random read-outs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bayspike.errors import UserError, require, require_range
from bayspike.seeds import generator_for
from bayspike.spiking.convolution import Convolution
from bayspike.spiking.filters import DoubleExponential, Filter
from bayspike.spiking.layers import Drive, Layer, LayerStep, Weights, step
from bayspike.spiking.neurons import Neuron, NeuronState, Reset
from bayspike.spiking.plan import LayerPlan, plan_stack
from bayspike.spiking.stack import Conv, Dense, parse_stack

__all__ = [
    "Convolution",
    "Drive",
    "Layer",
    "LayerStep",
    "Network",
    "NetworkConfig",
    "Weights",
    "build",
    "check_spikes",
    "network_step",
    "random_readout",
    "step",
    "unroll",
    "with_more_classes",
]

MOST_SYNAPSES = 2**31  # eight gigabytes for the weights alone
MOST_NEURONS = 2**24  # of one layer


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
    layers: str = ""  # a stack of any layers, in the words of `bayspike.spiking.stack`; then `hidden` is ()
    readout_grid: int | None = None  # read-outs of maps tell so many places a side apart; None: each that is handed on
    input_activity: float = 0.1  # share of the inputs that is active; events are sparser than images, see `Layer`
    shape: tuple[int, ...] = ()  # of the inputs, (height, width) or (channels, height, width); for convolutions

    def __post_init__(self) -> None:
        require_range("inputs", self.inputs, 1)
        require(
            len(self.hidden) > 0 or self.layers != "", "hidden must name at least one layer size, for example (400,)."
        )
        require(
            len(self.hidden) == 0 or self.layers == "", "hidden and layers say the same thing: leave hidden empty, ()."
        )
        require(
            not (self.recurrent and self.layers), "in layers every word says for itself whether it is recurrent: 128r."
        )
        for neurons in self.hidden:
            require_range("a layer size in hidden", neurons, 1)
        require_range("classes", self.classes, 2)
        require_range("readout_scale", self.readout_scale, 0, low_open=True)
        if self.readout_grid is not None:
            require_range("readout_grid", self.readout_grid, 1)
        require_range("input_activity", self.input_activity, 0, 1, low_open=True)
        plans = self.plans()
        synapses = sum(rows * columns for rows, columns in (plan.shape for plan in plans))
        require(
            synapses <= MOST_SYNAPSES,
            f"layers of {self.described} neurons on {self.inputs:,} inputs have {synapses:,} "
            f"synapses, more than the {MOST_SYNAPSES:,} that are allowed: choose a smaller hidden.",
        )
        most = max(plan.neurons for plan in plans)
        require(most <= MOST_NEURONS, f"a layer of {most:,} neurons is larger than the {MOST_NEURONS:,} allowed.")

    @property
    def described(self) -> str:
        """The layers in the words of `bayspike.spiking.stack`."""
        return self.layers or "-".join(str(Dense(neurons, self.recurrent)) for neurons in self.hidden)

    def plans(self) -> list[LayerPlan]:
        """Every layer's sizes, from the input upwards."""
        words = parse_stack(self.layers) if self.layers else [Dense(each, self.recurrent) for each in self.hidden]
        plans = plan_stack(words, self.inputs, self.shape, self.described)
        return plans if self.readout_grid is None else [plan.read_by(self.readout_grid) for plan in plans]


def build(config: NetworkConfig, dtype: torch.dtype = torch.float32, filter: Filter | None = None) -> Network:
    """Make the network of a configuration. The read-outs are drawn from `config.seed` alone."""
    generator = torch.Generator().manual_seed(config.seed)
    synapses = filter or DoubleExponential(config.synapse_decay, config.membrane_decay)
    layers: list[Layer] = []
    for plan in config.plans():
        fan_in = plan.shape[1]
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
        readout = random_readout(config.classes, plan.seen, config.readout_scale, generator, plan.neurons).to(dtype)
        if isinstance(plan.word, Conv):
            maps = Convolution(
                plan.inputs, plan.neurons, neuron, readout, inlet=plan.inlet, kernel=plan.word, window=plan.window
            )
            layers.append(maps)
        else:
            layers.append(Layer(plan.inputs, plan.neurons, neuron, readout, plan.word.recurrent, inlet=plan.inlet))
    layers[0] = replace(layers[0], activity=config.input_activity)
    return Network(tuple(layers), config.binary if config.threshold is None else None)


def random_readout(
    classes: int, seen: int, scale: float, generator: torch.Generator, neurons: int | None = None
) -> Tensor:
    """Fixed random B `(classes, seen)`: normal entries of standard deviation scale/√neurons.

    The scale sets how far logits can spread, hence how sure the network can be at all. Where the read-out sees sums of
    windows there are more `neurons` than numbers seen; by their number logits spread as if it saw every neuron.
    """
    return torch.randn(classes, seen, generator=generator) * (scale / math.sqrt(neurons or seen))


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
            random_readout(
                1, layer.seen, config.readout_scale, generator_for(config.seed, "read-out", index, each), layer.neurons
            )
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
