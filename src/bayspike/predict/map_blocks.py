"""Spikes of maps ready to be convolved with kernels that stay fixed while a signal lasts: what `SpikeBlock` is to dense
layers.

All time-steps and examples are one batch of torch's own convolution, which needs no patches in memory.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import conv2d

from bayspike.spiking.convolution import Convolution


@dataclass(frozen=True)
class MapBlock:
    """Spikes `(sets, time, batch, height, width, channels)` as numbers."""

    layer: Convolution
    maps: Tensor

    @staticmethod
    def of(layer: Convolution, spikes: Tensor, dtype: torch.dtype) -> "MapBlock":
        """From `(sets, time, batch, traces)`."""
        return MapBlock(layer, layer.below.view(spikes.to(dtype)))

    def signed(self, signs: Tensor) -> "MapBlock":
        """Each spike times the sign of its example and channel; `(batch, pre)`, alike at all places of a kernel."""
        by_channel = signs[:, : self.layer.below.channels]
        return MapBlock(self.layer, self.maps * by_channel.view(len(signs), 1, 1, -1))

    def times(self, tables: Tensor) -> Tensor:
        """Tables `(members, pre, maps)` to currents `(members, time, batch, neurons)`."""
        sets, time, batch = self.maps.shape[:3]
        by_set = self.maps.flatten(1, 2).permute(0, 1, 4, 2, 3)  # channels first in name, last in memory
        found = tables.new_empty(len(tables), time * batch, self.layer.neurons)
        for member, table in enumerate(tables):
            done = self._convolved(by_set[member if sets > 1 else 0], self._kernels(table))
            self.layer.maps.view(found[member]).copy_(done.permute(0, 2, 3, 1))
        return found.view(len(tables), time, batch, self.layer.neurons)

    def times_own(self, tables: Tensor) -> Tensor:
        """Tables `(members, batch, pre, maps)`, a kernel for every example, to the same."""
        sets, time, batch = self.maps.shape[:3]
        by_set = self.maps.permute(0, 1, 2, 5, 3, 4).flatten(2, 3)  # every example's channels are channels of one map
        found = tables.new_empty(len(tables), time, batch, self.layer.neurons)
        for member, own in enumerate(tables):
            kernels = torch.cat([self._kernels(table) for table in own])
            done = self._convolved(by_set[member if sets > 1 else 0], kernels, groups=batch)
            by_example = done.unflatten(1, (batch, -1)).permute(0, 1, 3, 4, 2)
            self.layer.maps.view(found[member]).copy_(by_example)
        return found

    def _kernels(self, table: Tensor) -> Tensor:
        """`(pre, maps)` as torch's `(maps, channels, side, side)`."""
        side = self.layer.kernel.kernel
        return table.view(side, side, -1, table.shape[1]).permute(3, 2, 0, 1)

    def _convolved(self, maps: Tensor, kernels: Tensor, groups: int = 1) -> Tensor:
        word = self.layer.kernel
        return conv2d(maps, kernels, stride=word.stride, padding=word.border, groups=groups)
