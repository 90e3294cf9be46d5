"""A trained committee as plain arrays: current-based leaky integrate-and-fire neurons (CUBA-LIF).

With reset to zero the spike response model of the paper is the neuron that chips and exchange formats know:

    i_t = a·i_t−1 + W s_t−1,    v_t = b·v_t−1 + i_t,    s_t = [v_t > threshold],    v_t ← 0 where s_t = 1

with a the synaptic and b the membrane decay. The gain of the filter is folded into W. All exports start here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.errors import UserError, require, require_range
from bayspike.hardware.wiring import Wiring, check_wiring
from bayspike.spiking.convolution import Convolution
from bayspike.spiking.filters import DoubleExponential
from bayspike.spiking.layers import Layer
from bayspike.spiking.maps import Inlet, Maps
from bayspike.spiking.network import Network
from bayspike.spiking.neurons import Neuron
from bayspike.spiking.stack import Conv, Pool


@dataclass(frozen=True)
class CubaLayer:
    """One layer of all members of a committee."""

    weight: NDArray[np.float64]  # (members, neurons, inputs), gain included
    synapse_decay: float
    membrane_decay: float
    threshold: float
    recurrent: NDArray[np.float64] | None = None  # (members, neurons, neurons)
    wiring: Wiring | None = None  # of a convolution, or of pooled inputs; then `weight` is (members, maps, fan-in)

    def __post_init__(self) -> None:
        check_wiring(self.wiring, self.weight.shape, self.recurrent is not None)
        require(
            self.weight.ndim == 3 and bool(np.isfinite(self.weight).all()),
            f"weight must be finite and of the shape (members, neurons, inputs), but has {self.weight.shape}.",
        )
        if self.recurrent is not None:
            expected = (self.members, self.neurons, self.neurons)
            require(
                self.recurrent.shape == expected and bool(np.isfinite(self.recurrent).all()),
                f"recurrent must be finite and of the shape {expected}, but has {self.recurrent.shape}.",
            )
        require_range("synapse_decay", self.synapse_decay, 0, 1, high_open=True)
        require_range("membrane_decay", self.membrane_decay, 0, 1, high_open=True)
        require_range("threshold", self.threshold, 0, low_open=True)

    @property
    def members(self) -> int:
        return int(self.weight.shape[0])

    @property
    def neurons(self) -> int:
        return int(self.weight.shape[1]) * (1 if self.wiring is None else self.wiring.places)

    @property
    def inputs(self) -> int:
        return int(self.weight.shape[2]) if self.wiring is None else self.wiring.inputs

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Which synapses are there, `(neurons, pre)`: one whose weight is 0 in every member was cut."""
        return synapses_there(self.weight, self.recurrent)


@dataclass(frozen=True)
class CubaNetwork:
    """A committee; `readouts` (classes, neurons), one for each layer, are common to all members."""

    layers: tuple[CubaLayer, ...]
    readouts: tuple[NDArray[np.float32], ...]

    @property
    def members(self) -> int:
        return self.layers[0].members

    @property
    def inputs(self) -> int:
        return self.layers[0].inputs


def synapses_there(weight: NDArray[np.generic], recurrent: NDArray[np.generic] | None) -> NDArray[np.bool_]:
    """Which synapses of a layer are not 0 in some member, `(neurons, pre)`."""
    parts = [weight] if recurrent is None else [weight, recurrent]
    there: NDArray[np.bool_] = np.concatenate([(part != 0).any(axis=0) for part in parts], axis=1)
    return there


def from_network(network: Network, weights: Sequence[Tensor]) -> CubaNetwork:
    """The committee of `network` with `weights`, one tensor `(members, neurons, pre)` or `(neurons, pre)` a layer."""
    require(
        len(weights) == len(network.layers),
        f"weights must be one tensor for each of the {len(network.layers)} layers, but are {len(weights)}.",
    )
    layers: list[CubaLayer] = []
    for index, (layer, given) in enumerate(zip(network.layers, weights, strict=True)):
        filter = layer.neuron.filter
        if not isinstance(filter, DoubleExponential):
            raise UserError(
                f"layer {index} cannot be exported: its filter is {type(filter).__name__}, but chips and NIR's CubaLIF "
                f"know only a synaptic and a membrane decay; train with the DoubleExponential filter."
            )
        if layer.neuron.reset != "zero":
            kind = "an exponential refractory kernel" if layer.neuron.reset == "refractory" else "reset by subtraction"
            raise UserError(
                f"layer {index} cannot be exported: it has {kind} (reset={layer.neuron.reset!r}), but Loihi and NIR's "
                f"CubaLIF reset the membrane to zero; train with reset='zero'."
            )
        matrix = given.detach().cpu().double().numpy() * filter.gain
        matrix = matrix[None] if matrix.ndim == 2 else matrix
        require(
            matrix.ndim == 3 and matrix.shape[1:] == layer.shape,
            f"weights of layer {index} must have the shape (members, {layer.shape[0]}, {layer.pre}), "
            f"but have {tuple(given.shape)}.",
        )
        require(
            not layers or matrix.shape[0] == layers[0].members,
            f"layer {index} has {matrix.shape[0]} members, but layer 0 has {layers[0].members if layers else 0}.",
        )
        layers.append(
            CubaLayer(
                weight=matrix[:, :, : layer.forward] if layer.recurrent else matrix,
                synapse_decay=filter.synapse_decay,
                membrane_decay=filter.membrane_decay,
                threshold=layer.neuron.threshold,
                recurrent=matrix[:, :, layer.forward :] if layer.recurrent else None,
                wiring=wiring_of(layer),
            )
        )
    readouts = tuple(_of_every_neuron(layer).detach().cpu().float().numpy() for layer in network.layers)
    return CubaNetwork(tuple(layers), readouts)


def wiring_of(layer: Layer) -> Wiring | None:
    """A layer's inlet and kernel as whole numbers."""
    if layer.inlet is None:
        return None
    pools = tuple(-pool.size if pool.largest else pool.size for pool in layer.inlet.pools)
    kernel = layer.kernel if isinstance(layer, Convolution) else None
    slides = {} if kernel is None else {"kernel": kernel.kernel, "stride": kernel.stride, "padding": kernel.border}
    return Wiring(*layer.inlet.arriving, planes=layer.inlet.first, pools=pools, **slides)


def _of_every_neuron(layer: Layer) -> Tensor:
    """B `(classes, neurons)`: where it sees sums of windows, the neurons of a window share their entries."""
    if not isinstance(layer, Convolution) or layer.window == 1:
        return layer.readout
    ones = torch.ones(len(layer.readout), layer.neurons, dtype=layer.readout.dtype, device=layer.readout.device)
    return layer.error_at_neurons(layer.readout, ones)


def to_network(cuba: CubaNetwork, dtype: torch.dtype = torch.float32) -> tuple[Network, list[Tensor]]:
    """A network of the library and its weights `(members, neurons, pre)` from plain arrays: undoes `from_network`."""
    require(len(cuba.readouts) == len(cuba.layers), "a network needs a read-out for each layer; add them first.")
    layers, weights = [], []
    for layer, readout in zip(cuba.layers, cuba.readouts, strict=True):
        filter = DoubleExponential(layer.synapse_decay, layer.membrane_decay)
        neuron = Neuron(filter=filter, threshold=layer.threshold, reset="zero")
        layers.append(_layer(layer, neuron, torch.from_numpy(readout).to(dtype)))
        parts = [layer.weight] if layer.recurrent is None else [layer.weight, layer.recurrent]
        weights.append(torch.from_numpy(np.concatenate(parts, axis=2) / filter.gain).to(dtype))
    return Network(tuple(layers)), weights


def _layer(layer: CubaLayer, neuron: Neuron, readout: Tensor) -> Layer:
    wiring, recurrent = layer.wiring, layer.recurrent is not None
    if wiring is None:
        return Layer(layer.inputs, layer.neurons, neuron, readout, recurrent)
    pools = tuple(Pool(abs(side), side < 0) for side in wiring.pools)
    inlet = Inlet(Maps(wiring.height, wiring.width, wiring.channels), wiring.planes, pools)
    if not wiring.kernel:
        return Layer(layer.inputs, layer.neurons, neuron, readout, recurrent, inlet=inlet)
    kernel = Conv(int(layer.weight.shape[1]), wiring.kernel, wiring.stride, wiring.padding)
    return Convolution(layer.inputs, layer.neurons, neuron, readout, inlet=inlet, kernel=kernel)
