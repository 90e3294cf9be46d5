"""Neurons that lie in maps, a height and a width of several channels, and how spikes of such maps are pooled.

Within the network maps are flattened with the channels last, `(height, width, channels)`: the channels of one place
lie side by side, so a product over patches leaves them where they belong. Samples come with the channels first.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.spiking.stack import Pool


class Maps(NamedTuple):
    """The shape of what a layer hands on, channels last."""

    height: int
    width: int
    channels: int

    @property
    def size(self) -> int:
        return self.height * self.width * self.channels

    def pooled(self, size: int) -> "Maps":
        return Maps(self.height // size, self.width // size, self.channels)

    def view(self, flat: Tensor) -> Tensor:
        """`(…, size)` as `(…, height, width, channels)`."""
        return flat.view(*flat.shape[:-1], *self)


def maps_of(shape: tuple[int, ...], what: str) -> Maps:
    """The maps of a sample of the shape (height, width) or (channels, height, width)."""
    if len(shape) == 2:
        return Maps(shape[0], shape[1], 1)
    if len(shape) == 3:
        return Maps(shape[1], shape[2], shape[0])
    raise UserError(
        f"{what} needs inputs of the shape (height, width) or (channels, height, width), but they have {shape or '()'}."
    )


def window_sums(maps: Maps, flat: Tensor, size: int, largest: bool = False) -> Tensor:
    """The sum (or maximum) over windows of size × size of `(…, maps.size)`, flattened again.

    Slice by slice: reductions over two short dimensions would be many times as slow.
    """
    if size == 1:
        return flat
    whole, smaller = maps.view(flat), maps.pooled(size)
    for axis, count in ((-3, smaller.height), (-2, smaller.width)):
        kept = whole.narrow(axis, 0, count * size).unflatten(axis, (count, size))
        total = kept.select(axis, 0).clone()
        for offset in range(1, size):
            part = kept.select(axis, offset)
            torch.maximum(total, part, out=total) if largest else total.add_(part)
        whole = total
    return whole.flatten(-3)


def times_windows(maps: Maps, flat: Tensor, factors: Tensor, size: int) -> Tensor:
    """`flat (…, maps.size)` times the factor of the window that each entry lies in, in place; nought outside of all.

    With `factors` the derivative by a window's sum, this hands it down to what was summed.
    """
    if size == 1:
        return flat.mul_(factors)
    whole, smaller = maps.view(flat), maps.pooled(size)
    high, wide = smaller.height * size, smaller.width * size
    whole[..., high:, :, :] = 0
    whole[..., wide:, :] = 0
    across = smaller.view(factors).repeat_interleave(size, dim=-2)  # long runs: short ones cost more than they multiply
    kept = whole[..., :high, :wide, :].unflatten(-3, (smaller.height, size))
    kept.mul_(across.unsqueeze(-3))
    return flat


@dataclass(frozen=True)
class Inlet:
    """What happens to spikes on the way into a layer: poolings, and samples with the channels first are turned."""

    arriving: Maps
    first: bool = False  # the channels come first, as in a sample
    pools: tuple[Pool, ...] = ()

    @property
    def leaving(self) -> Maps:
        maps = self.arriving
        for pool in self.pools:
            maps = maps.pooled(pool.size)
        return maps

    @property
    def counts(self) -> bool:
        """Whether what leaves may be other than nought and one."""
        return any(not pool.largest and pool.size > 1 for pool in self.pools)

    def __call__(self, spikes: Tensor) -> Tensor:
        """`(…, inputs)` to `(…, leaving.size)`, channels last."""
        if self.first and self.arriving.channels > 1:
            height, width, channels = self.arriving
            turned = spikes.view(*spikes.shape[:-1], channels, height * width).transpose(-1, -2)
            spikes = turned.reshape(spikes.shape)
        maps = self.arriving
        for pool in self.pools:
            spikes = window_sums(maps, spikes, pool.size, pool.largest)
            maps = maps.pooled(pool.size)
        return spikes
