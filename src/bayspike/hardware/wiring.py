"""How the inputs of a layer reach its weights where it is not plainly dense: poolings, and places of a convolution.

Plain whole numbers and numpy, so that files can hold them and the integer network needs no torch. Neurons of maps lie
with the channels last, `(height, width, channels)`; the first layer's inputs may come with the channels first.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from bayspike.errors import require

MOST_PLACES = 2**24  # inputs, places or rows that a file may call for


@dataclass(frozen=True)
class Wiring:
    """Of maps of height × width × channels that arrive, of poolings, and of a kernel that slides over what is left.

    `pools` are sides of windows, a negative one for a maximum. A `kernel` of 0 is a dense layer on pooled inputs.
    """

    height: int
    width: int
    channels: int
    planes: bool = False  # the channels come first, as in a sample
    pools: tuple[int, ...] = ()
    kernel: int = 0
    stride: int = 1
    padding: int = 0

    def __post_init__(self) -> None:
        sizes = (self.height, self.width, self.channels, self.stride, *map(abs, self.pools))
        require(
            all(size > 0 for size in sizes) and 0 <= self.padding <= self.kernel and self.inputs <= MOST_PLACES,
            f"a layer cannot be wired as {self}.",
        )
        height, width, _ = self.pooled
        require(
            height > 0 and width > 0 and min(self.maps) > 0 and self.places * max(1, self.kernel**2) <= MOST_PLACES,
            f"nothing, or too much, is left of a layer wired as {self}.",
        )

    @property
    def inputs(self) -> int:
        return self.height * self.width * self.channels

    @property
    def pooled(self) -> tuple[int, int, int]:
        height, width = self.height, self.width
        for side in self.pools:
            height, width = height // abs(side), width // abs(side)
        return height, width, self.channels

    @property
    def maps(self) -> tuple[int, int]:
        """Height and width of what the layer hands on; one place for a dense layer."""
        if not self.kernel:
            return 1, 1
        height, width, _ = self.pooled
        return tuple((side + 2 * self.padding - self.kernel) // self.stride + 1 for side in (height, width))  # type: ignore[return-value]

    @property
    def places(self) -> int:
        return self.maps[0] * self.maps[1]

    @property
    def fan_in(self) -> int:
        """Columns of the weight matrix."""
        height, width, channels = self.pooled
        return channels * (self.kernel**2 if self.kernel else height * width)

    @property
    def largest(self) -> int:
        """The largest sum of spikes that one weight can see."""
        return int(np.prod([side**2 for side in self.pools if side > 0], dtype=np.int64))

    def rows(self, spikes: NDArray[Any]) -> NDArray[Any]:
        """Spikes `(…, inputs)` as rows `(…, places, fan_in)`, each in the order (down, across, channel)."""
        before = spikes.shape[:-1]
        if self.planes:
            maps = np.moveaxis(spikes.reshape(*before, self.channels, self.height, self.width), -3, -1)
        else:
            maps = spikes.reshape(*before, self.height, self.width, self.channels)
        for side in self.pools:
            maps = _pooled(maps, abs(side), largest=side < 0)
        if not self.kernel:
            return maps.reshape(*before, 1, self.fan_in)
        border = [(0, 0)] * len(before) + [(self.padding, self.padding)] * 2 + [(0, 0)]
        windows = sliding_window_view(np.pad(maps, border), (self.kernel, self.kernel), axis=(-3, -2))
        taken = windows[..., :: self.stride, :: self.stride, :, :, :]  # (…, height, width, channels, down, across)
        return np.moveaxis(taken, -3, -1).reshape(*before, self.places, self.fan_in)

    def as_numbers(self) -> NDArray[np.int32]:
        """For files."""
        numbers = (self.height, self.width, self.channels, self.planes, self.kernel, self.stride, self.padding)
        return np.array([*numbers, *self.pools], np.int32)

    @staticmethod
    def from_numbers(numbers: NDArray[Any]) -> "Wiring":
        require(numbers.ndim == 1 and 7 <= len(numbers) <= 32, "a layer's wiring is not told soundly.")
        height, width, channels, planes, kernel, stride, padding, *pools = (int(each) for each in numbers)
        return Wiring(height, width, channels, bool(planes), tuple(pools), kernel, stride, padding)


def _pooled(maps: NDArray[Any], side: int, largest: bool) -> NDArray[Any]:
    height, width, channels = maps.shape[-3:]
    cut = maps[..., : height // side * side, : width // side * side, :]
    windows = cut.reshape(*maps.shape[:-3], height // side, side, width // side, side, channels)
    if largest:
        return np.asarray(windows.max(axis=(-4, -2)))
    kind = np.int64 if maps.dtype.kind in "biu" else maps.dtype
    return np.asarray(windows.sum(axis=(-4, -2), dtype=kind))


def check_wiring(wiring: Wiring | None, shape: tuple[int, ...], recurrent: bool) -> None:
    """Refuse weights `(members, maps, fan-in)` that do not fit."""
    if wiring is None or len(shape) != 3:
        return
    require(shape[2] == wiring.fan_in, f"weight must have {wiring.fan_in} columns to be wired so, but has {shape}.")
    require(not (recurrent and wiring.kernel), "a convolution cannot be recurrent.")


def without_pools(matrix: NDArray[Any], wiring: Wiring | None, where: str) -> tuple[NDArray[Any], Wiring | None]:
    """Weights `(rows, fan-in)` for formats without poolings: sums become repeated weights, exactly the same network.

    A kernel grows by the side of the windows, and so do stride and padding; a dense layer has a column for each input,
    nought for rows and columns that no window covers.
    """
    if wiring is None:
        return matrix, None
    require(min(wiring.pools, default=1) > 0, f"{where} pools by the maximum, which this format cannot say: use sums.")
    side = math.prod(wiring.pools)
    height, width, channels = wiring.pooled
    if not wiring.kernel:
        columns = matrix.reshape(len(matrix), height, width, channels).repeat(side, axis=1).repeat(side, axis=2)
        over = ((0, 0), (0, wiring.height - height * side), (0, wiring.width - width * side), (0, 0))
        return np.ascontiguousarray(np.pad(columns, over).reshape(len(matrix), -1)), None
    for below, left in ((wiring.height, height), (wiring.width, width)):
        last = (left + 2 * wiring.padding - wiring.kernel) // wiring.stride
        beyond = last * wiring.stride - wiring.padding + wiring.kernel > left
        require(
            below == left * side or not beyond,
            f"{where}: its windows of {side} leave over some of the {below} rows or columns below, which this format "
            f"without poolings cannot say; choose maps that {side} divides, or a convolution without padding (p0).",
        )
    kernels = matrix.reshape(len(matrix), wiring.kernel, wiring.kernel, channels)
    grown = np.ascontiguousarray(kernels.repeat(side, axis=1).repeat(side, axis=2).reshape(len(matrix), -1))
    kernel, stride, padding = (each * side for each in (wiring.kernel, wiring.stride, wiring.padding))
    return grown, replace(wiring, pools=(), kernel=kernel, stride=stride, padding=padding)
