"""Samples one at a time, as torch's `DataLoader` asks for them."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from bayspike.seeds import generator_for


class Items:
    """`samples[i]` is spikes `(time, inputs)` and a label; going through samples gives all of them.

    Where a code is random, item i is always the same draw; `spikes` draws afresh.
    """

    def __getitem__(self: Any, index: int) -> tuple[Tensor, int]:
        place = int(index) + (len(self) if index < 0 else 0)
        if not 0 <= place < len(self):
            raise IndexError(f"there are {len(self)} samples, but number {index} was asked for.")
        spikes = self.spikes(torch.tensor([place]), generator_for(0, "item", place))
        return spikes[:, 0], int(self.labels[place])

    def __iter__(self: Any) -> Iterator[tuple[Tensor, int]]:
        return (self[index] for index in range(len(self)))
