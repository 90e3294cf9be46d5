"""A stack of convolutions and poolings by torch's own functions, channels first, one step after the other."""

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, conv2d, max_pool2d, one_hot

from bayspike.spiking.convolution import Convolution
from bayspike.spiking.layers import Layer
from bayspike.spiking.network import Network


def kernels_of(layer: Convolution, matrix: Tensor) -> Tensor:
    """A weight matrix as torch's kernels `(maps, channels, side, side)`."""
    side = layer.kernel.kernel
    return matrix.view(-1, side, side, layer.below.channels).permute(0, 3, 1, 2)


def channels_first(layer: Convolution, flat: Tensor) -> Tensor:
    return layer.maps.view(flat).permute(0, 3, 1, 2)


def pooled(layer: Layer, maps: Tensor) -> Tensor:
    """What enters a layer, channels first."""
    for pool in () if layer.inlet is None else layer.inlet.pools:
        maps = max_pool2d(maps, pool.size) if pool.largest else avg_pool2d(maps, pool.size) * pool.size**2
    return maps


def potential(layer: Layer, matrix: Tensor, traces: Tensor) -> Tensor:
    """W·trace: `(batch, maps, height, width)` of a convolution, `(batch, neurons)` of a dense layer."""
    if isinstance(layer, Convolution):
        return conv2d(traces, kernels_of(layer, matrix), stride=layer.kernel.stride, padding=layer.kernel.border)
    flat = traces if traces.ndim == 2 else traces.permute(0, 2, 3, 1).flatten(1)
    return flat @ matrix.T


def readout_loss(layer: Layer, spikes: Tensor, target: Tensor) -> Tensor:
    """The local cross-entropy of one example, whose spikes have no batch dimension."""
    seen = spikes
    if isinstance(layer, Convolution):
        seen = avg_pool2d(spikes.unsqueeze(0), layer.window)[0] * layer.window**2
        seen = seen.permute(1, 2, 0).flatten()
    return -(target * torch.log_softmax(layer.readout @ seen, dim=0)).sum()


class Stack:
    """Leaky neurons that are set back to zero, traces by the recurrence of `DoubleExponential`, one step of delay."""

    def __init__(self, network: Network, weights: list[Tensor], decays: tuple[float, float]) -> None:
        self.network, self.weights, (self.synapse, self.membrane) = network, weights, decays
        self.hidden = [None] * len(weights)
        self.trace: list[Tensor | None] = [None] * len(weights)
        self.refractory: list[Tensor | float] = [0.0] * len(weights)

    def step(self, spikes: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Traces, refractory terms and spikes of every layer at this step, from inputs `(batch, channels, h, w)`."""
        found = []
        for index, layer in enumerate(self.network.layers):
            arriving = pooled(layer, spikes)
            trace = torch.zeros_like(arriving) if self.trace[index] is None else self.trace[index]
            hidden = torch.zeros_like(arriving) if self.hidden[index] is None else self.hidden[index]
            u = potential(layer, self.weights[index], trace) - self.refractory[index]
            emitted = (u > layer.neuron.threshold).to(u)
            found.append((trace, self.refractory[index] * torch.ones_like(u), emitted))
            self.refractory[index] = self.membrane * (self.refractory[index] + emitted * u)
            self.hidden[index] = self.synapse * hidden + (1 - self.synapse) * arriving
            self.trace[index] = self.membrane * trace + (1 - self.membrane) * self.hidden[index]
            spikes = emitted
        return found


def flat(layer: Layer, maps: Tensor) -> Tensor:
    """The order of a layer's neurons in the network."""
    return maps.permute(0, 2, 3, 1).flatten(1) if isinstance(layer, Convolution) else maps


def targets_of(labels: Tensor, classes: int) -> Tensor:
    return one_hot(labels, classes).to(torch.float64)
