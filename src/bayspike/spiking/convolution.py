"""Convolutions: maps of spiking neurons that share a kernel.

At every place of a map the neurons see a patch of the traces below, and all places have the same weights, one row of
the kernel matrix `(maps, kernel² · channels)` for each map. So a convolution is a dense layer that looks at a patch of
every place in turn, as if places were examples; only the mean over examples (and of the squares of their gradients) is
another, see `LocalGradient`.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.functional import conv2d, pad

from bayspike.errors import require
from bayspike.spiking.layers import Layer
from bayspike.spiking.maps import Maps, times_windows, window_sums
from bayspike.spiking.stack import Conv


@dataclass(frozen=True)
class Convolution(Layer):
    """`neurons` are those of all maps, flattened with the channels last; `inlet` is never None.

    The read-out sees the sums of windows, those of a pooling that follows or larger ones: a fixed read-out B of them is
    one of all neurons in which the neurons of a window share their entries, many times as fast.
    """

    kernel: Conv = field(default=Conv(1, 1))  # its word: maps, side of the kernel, stride, padding
    window: int = 1  # side of the windows whose sums the read-out sees

    def __post_init__(self) -> None:
        require(self.inlet is not None and not self.recurrent, "a convolution needs an inlet, and is not recurrent.")
        require(
            self.neurons == self.maps.size,
            f"a convolution {self.kernel} of maps of {self.below.height} × {self.below.width} has {self.maps.size} "
            f"neurons, not {self.neurons}.",
        )
        super().__post_init__()

    @property
    def below(self) -> Maps:
        """The maps that the kernel slides over."""
        assert self.inlet is not None
        return self.inlet.leaving

    @property
    def maps(self) -> Maps:
        return maps_after(self.below, self.kernel)

    @property
    def pre(self) -> int:
        return self.kernel.kernel**2 * self.below.channels

    @property
    def shape(self) -> tuple[int, int]:
        return (self.kernel.maps, self.pre)

    @property
    def places(self) -> int:
        return self.maps.height * self.maps.width

    @property
    def seen(self) -> int:
        return self.maps.pooled(self.window).size

    def gather(self, traces: Tensor, room: Tensor | None = None) -> Tensor:
        """Every place's patch, in the order (down, across, channel): runs of kernel · channels lie in one piece."""
        side, stride, border = self.kernel.kernel, self.kernel.stride, self.kernel.border
        whole = self.below.view(traces)
        if border:
            whole = pad(whole, (0, 0, border, border, border, border))
        height, width, _ = self.maps
        example, row, column, channel = whole.stride()
        patches = whole.as_strided(
            (len(traces), height, width, side, side, self.below.channels),
            (example, stride * row, stride * column, row, column, channel),
        )
        rows = (len(traces) * self.places, self.pre)
        if room is None or room.shape != rows:
            return patches.reshape(rows)
        room.view(patches.shape).copy_(patches)
        return room

    def product(self, traces: Tensor, matrix: Tensor) -> Tensor:
        side, maps = self.kernel.kernel, self.below.view(traces).permute(0, 3, 1, 2)  # channels last in memory
        kernels = matrix.view(-1, side, side, self.below.channels).permute(0, 3, 1, 2)
        done = conv2d(maps, kernels, stride=self.kernel.stride, padding=self.kernel.border)
        return done.permute(0, 2, 3, 1).reshape(len(traces), self.neurons)

    def read(self, spikes: Tensor) -> Tensor:
        return window_sums(self.maps, spikes, self.window)

    def error_at_neurons(self, error: Tensor, post: Tensor) -> Tensor:
        return times_windows(self.maps, post, error, self.window)

    def logits(self, spikes: Tensor) -> Tensor:
        seen = self.read(spikes.transpose(-1, -2)).transpose(-1, -2) if self.window > 1 else spikes
        return super().logits(seen)


def maps_after(below: Maps, kernel: Conv) -> Maps:
    """The maps that a convolution makes of those below; a side of nought or less where the kernel does not fit."""
    height, width = (
        (side + 2 * kernel.border - kernel.kernel) // kernel.stride + 1 for side in (below.height, below.width)
    )
    return Maps(height, width, kernel.maps)


def fan_out_from_below(layer: Layer) -> int | Tensor:
    """How many synapses of a layer each of its inputs reaches: one number, or one for each, `(inputs,)`.

    What is summed on the way in reaches all synapses of the sum; so the number is the derivative of all rows by the
    input, times the neurons that see each row.
    """
    if layer.inlet is None:
        return layer.neurons
    summing = replace(layer.inlet, pools=tuple(replace(pool, largest=False) for pool in layer.inlet.pools))
    with torch.enable_grad():
        inputs = torch.zeros(1, layer.inputs, requires_grad=True)
        (reached,) = torch.autograd.grad(layer.gather(summing(inputs)).sum(), inputs)
    return reached[0].mul_(layer.shape[0])
