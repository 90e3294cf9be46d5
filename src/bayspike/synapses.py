"""Weights that stay fixed while a signal lasts, for many members at once (paper, Sec. "Ensemble / Committee").

At inference a weight is drawn once and used at all T time-steps. A filter α is linear and the same for all synapses of
a layer, so W·(α ∗ s) = α ∗ (W·s): here spikes are multiplied first, for all time-steps in one product, and the
*currents* are filtered afterwards. A product with zeros and ones is a sum of rows of Wᵀ, so sparse spikes pay for their
events and not for their channels.

Spikes are `(sets, time, batch, pre)`: one set that all members see (the inputs), or one of each member. Tables are
transposed weights `(members, pre, neurons)`, which puts the row that an event adds into one piece of memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

# Measured on one AVX-512 core, in units of a multiply-add of a dense product: what it costs to look at one cell for an
# event, and to add one weight of an event's row.
COST_OF_CELL, COST_OF_EVENT = 70, 2.0

Currents = Callable[[slice], Tensor]  # members -> (members, time, batch, neurons)


class Synapses(Protocol):
    """The synapses of one layer, for every member and every example of a batch."""

    @property
    def members(self) -> int: ...

    def arrive(self, spikes: Tensor) -> Currents:
        """Take in `(sets, time, batch, pre)` and say how to compute the currents of a slice of the members."""
        ...

    def rows(self, rows: slice) -> "Synapses":
        """The same synapses for some examples of the batch."""
        ...

    def columns(self, columns: slice) -> "Synapses":
        """The synapses that leave some of the pre-synaptic neurons."""
        ...


class Events(NamedTuple):
    """The ones of a matrix of zeros and ones, row by row."""

    row: Tensor  # of the flattened (sets · time · batch), (events,)
    column: Tensor  # pre-synaptic neuron, plus `pre` for every set before this one, (events,)
    start: Tensor  # where each row begins, (rows,)
    weight: Tensor | None = None  # +1 or −1, (events,)


@dataclass(frozen=True)
class SpikeBlock:
    """Spikes ready to be multiplied: as events where that is cheaper, else dense."""

    shape: tuple[int, ...]  # (sets, time, batch, pre)
    dense: Tensor | None
    events: Events | None

    @staticmethod
    def of(spikes: Tensor, outputs: int, dtype: torch.dtype) -> "SpikeBlock":
        """`outputs` is the number of neurons, over all members, that will see each of these spikes."""
        shape = tuple(spikes.shape)
        cells = spikes.numel()
        # not worth counting where the product itself is small
        count = int(torch.count_nonzero(spikes)) if cells * outputs > 1 << 16 else cells
        if COST_OF_CELL * cells + COST_OF_EVENT * count * outputs >= cells * outputs:
            return SpikeBlock(shape, spikes.to(dtype), None)
        flat = spikes.reshape(-1, shape[-1])
        row, column = flat.nonzero().unbind(1)
        per_row = torch.bincount(row, minlength=len(flat))
        if shape[0] > 1:
            rows_of_a_set = shape[1] * shape[2]
            column = column + shape[-1] * row.div(rows_of_a_set, rounding_mode="floor")
        start = per_row.cumsum(0) - per_row
        return SpikeBlock(shape, None, Events(row, column.to(torch.int32), start.to(torch.int32)))

    def signed(self, signs: Tensor) -> "SpikeBlock":
        """Each spike times the sign `(batch, pre)` of its example and channel."""
        if self.events is None:
            assert self.dense is not None
            return SpikeBlock(self.shape, self.dense * signs, None)
        batch, pre = signs.shape
        cell = self.events.row.remainder(batch) * pre + self.events.column.remainder(pre)
        return SpikeBlock(self.shape, None, self.events._replace(weight=signs.flatten()[cell]))

    def times(self, tables: Tensor) -> Tensor:
        """Tables `(members, pre, neurons)` to currents `(members, time, batch, neurons)`."""
        sets, time, batch, pre = self.shape
        members, _, neurons = tables.shape
        if self.events is None:
            assert self.dense is not None
            flat = self.dense.reshape(sets, time * batch, pre)
            product = torch.matmul(flat, tables)
        elif sets == 1:
            product = torch.stack([self._gather(table) for table in tables]) if members > 1 else self._gather(tables[0])
        else:
            product = self._gather(tables.reshape(sets * pre, neurons))
        return product.view(members, time, batch, neurons)

    def _gather(self, table: Tensor) -> Tensor:
        assert self.events is not None
        _, column, start, weight = self.events
        return embedding_bag(column, table, start, mode="sum", per_sample_weights=weight)


@dataclass(frozen=True)
class Fixed:
    """One weight matrix per member, the same for all examples."""

    tables: Tensor  # (members, pre, neurons)

    @property
    def members(self) -> int:
        return len(self.tables)

    def arrive(self, spikes: Tensor) -> Currents:
        block = SpikeBlock.of(spikes, _outputs(spikes, self.tables), self.tables.dtype)
        return lambda members: block.times(self.tables[members])

    def rows(self, rows: slice) -> "Fixed":
        return self

    def columns(self, columns: slice) -> "Fixed":
        return Fixed(self.tables[:, columns])


@dataclass(frozen=True)
class Flipped:
    """A draw of its own for every member and example b: W_b = C + D ∘ r_b c_bᵀ, with random signs r_b and c_b.

    If the entries of D are independent and symmetric about zero, so are those of D ∘ r_b c_bᵀ, distributed alike:
    every example sees an exact draw of the whole matrix. Two examples share the sizes of D and nothing of its
    signs. Currents are C·s + r_b ∘ D·(c_b ∘ s): two products, the first of which members share when C is one for all.
    """

    centre: Tensor  # C as tables, (1 or members, pre, neurons)
    spread: Tensor  # D as tables, (members, pre, neurons)
    signs_in: Tensor  # c, (batch, pre)
    signs_out: Tensor  # r, (batch, neurons)

    @property
    def members(self) -> int:
        return len(self.spread)

    def arrive(self, spikes: Tensor) -> Currents:
        block = SpikeBlock.of(spikes, _outputs(spikes, self.spread), self.spread.dtype)
        flipped = block.signed(self.signs_in)
        common = block.times(self.centre) if len(spikes) == len(self.centre) == 1 else None

        def currents(members: slice) -> Tensor:
            own = flipped.times(self.spread[members]).mul_(self.signs_out)
            if common is not None:
                return own.add_(common)
            centre = self.centre.expand_as(self.spread)[members]
            return own.add_(block.times(centre))

        return currents

    def rows(self, rows: slice) -> "Flipped":
        return Flipped(self.centre, self.spread, self.signs_in[rows], self.signs_out[rows])

    def columns(self, columns: slice) -> "Flipped":
        return Flipped(
            self.centre[:, columns], self.spread[:, columns], self.signs_in[:, columns].contiguous(), self.signs_out
        )


@dataclass(frozen=True)
class Own:
    """A weight matrix for every member and example, held in full."""

    tables: Tensor  # (members, batch, pre, neurons)

    @property
    def members(self) -> int:
        return len(self.tables)

    def arrive(self, spikes: Tensor) -> Currents:
        by_example = spikes.to(self.tables.dtype).transpose(1, 2)  # (sets, batch, time, pre)
        return lambda members: torch.matmul(by_example, self.tables[members]).transpose(1, 2).contiguous()

    def rows(self, rows: slice) -> "Own":
        return Own(self.tables[:, rows])

    def columns(self, columns: slice) -> "Own":
        return Own(self.tables[:, :, columns])


def _outputs(spikes: Tensor, tables: Tensor) -> int:
    """How many neurons, over all members, see each spike; 0 where the tables do not allow events.

    Events of several sets are looked up in all tables at once, which must then lie in one piece of memory. Lateral
    synapses do not: they are part of larger tables, and are multiplied step by step anyhow.
    """
    if len(spikes) == 1:
        return int(tables.shape[2]) * len(tables)
    return int(tables.shape[2]) if tables.is_contiguous() else 0
