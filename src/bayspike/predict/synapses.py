"""Weights that stay fixed while a signal lasts, for many members at once (paper, Sec. "Ensemble / Committee").

At inference a weight is drawn once and used at all T time-steps. A filter α is linear and the same for all synapses of
a layer, so W·(α ∗ s) = α ∗ (W·s): here spikes are multiplied first, for all time-steps in one product, and the
*currents* are filtered afterwards. A product with zeros and ones is a sum of rows of Wᵀ, so sparse spikes pay for their
events and not for their channels.

Spikes are `(sets, time, batch, pre)`: one set that all members see (the inputs), or one of each member. Tables are
transposed weights `(members, pre, neurons)`, which puts the row that an event adds into one piece of memory. Within a
product all time-steps of an example come one after the other: they mostly need the same rows, which then are in cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from bayspike.predict.map_blocks import MapBlock
from bayspike.spiking.convolution import Convolution

# Measured on one AVX-512 core, in units of a multiply-add of a dense product: what it costs to look at one cell for an
# event, and to add one weight of an event's row.
COST_OF_CELL, COST_OF_EVENT = 70, 2.0
SMALL_PRODUCT = 1 << 16  # multiply-adds that are done before it is known how best to do them
JOINED = 4  # channels that make one event: more would save additions, but spill the sums of patterns from the cache

Currents = Callable[[slice], Tensor]  # members -> (members, time, batch, neurons)


class Synapses(Protocol):
    """The synapses of one layer, for every member and every example of a batch."""

    @property
    def members(self) -> int: ...

    def arrive(self, spikes: Tensor, ones: bool = True) -> Currents:
        """Take in `(sets, time, batch, pre)` and say how to compute the currents of a slice of the members.

        `ones` says that spikes are zeros and ones; sums of windows are not.
        """
        ...

    def rows(self, rows: slice) -> "Synapses":
        """The same synapses for some examples of the batch."""
        ...

    def columns(self, columns: slice) -> "Synapses":
        """The synapses that leave some of the pre-synaptic neurons."""
        ...


class Events(NamedTuple):
    """The ones of a matrix of zeros and ones, row by row."""

    row: Tensor  # of the flattened (sets · batch · time), (events,)
    entry: Tensor  # the row of the flattened tables that the event adds, (events,)
    start: Tensor  # where the events of each row begin, (rows,)
    weight: Tensor | None = None  # +1 or −1, (events,)


@dataclass(frozen=True)
class SpikeBlock:
    """Spikes ready to be multiplied: as events where that is cheaper, else dense.

    In a large block, `together` neighbouring channels make one event: what each of their patterns adds is summed
    once and looked up ever after (the "four Russians" way to multiply by zeros and ones).
    """

    shape: tuple[int, ...]  # (sets, time, batch, pre)
    dense: Tensor | None  # (sets, batch, time, pre)
    events: Events | None
    together: int = 1

    @staticmethod
    def of(spikes: Tensor, outputs: int, dtype: torch.dtype, *, join: bool = True) -> "SpikeBlock":
        """`outputs` is the number of neurons, over all members, that will see each spike; `join` allows patterns."""
        shape, cells = tuple(spikes.shape), spikes.numel()
        if cells * outputs < SMALL_PRODUCT:
            return SpikeBlock(shape, spikes.transpose(1, 2).to(dtype), None)
        count = float(spikes.sum() if spikes.is_floating_point() else torch.count_nonzero(spikes))
        costs = {together: _cost(shape, outputs, count / cells, together) for together in (1, JOINED)[: 1 + join]}
        together = min(costs, key=costs.__getitem__)
        if costs[together] >= cells * outputs:
            return SpikeBlock(shape, spikes.transpose(1, 2).to(dtype), None)
        return SpikeBlock(shape, None, _events(spikes, together), together)

    def signed(self, signs: Tensor) -> "SpikeBlock":
        """Each spike times the sign `(batch, pre)` of its example and channel; for a block without patterns."""
        if self.events is None:
            assert self.dense is not None
            return SpikeBlock(self.shape, self.dense * signs.unsqueeze(1), None)
        assert self.together == 1
        batch, pre = signs.shape
        example = self.events.row.div(self.shape[1], rounding_mode="floor").remainder_(batch)
        cell = example * pre + self.events.entry.remainder(pre)
        return SpikeBlock(self.shape, None, self.events._replace(weight=signs.flatten()[cell]))

    def times(self, tables: Tensor) -> Tensor:
        """Tables `(members, pre, neurons)` to currents `(members, time, batch, neurons)`."""
        sets, time, batch, pre = self.shape
        members, _, neurons = tables.shape
        if self.events is None:
            assert self.dense is not None
            product = torch.matmul(self.dense.reshape(sets, batch * time, pre), tables)
        elif sets == members:
            product = self._look_up(tables)
        else:
            product = torch.stack([self._look_up(tables[each : each + 1]) for each in range(members)])
        return product.view(members, batch, time, neurons).transpose(1, 2)

    def _look_up(self, tables: Tensor) -> Tensor:
        assert self.events is not None
        _, entry, start, weight = self.events
        entries = _patterns(tables, self.together).flatten(0, 1)
        return embedding_bag(entry, entries, start, mode="sum", per_sample_weights=weight)


def _cost(shape: tuple[int, ...], outputs: int, density: float, together: int) -> float:
    """What a product by events costs, if spikes fall independently; in multiply-adds of a dense product."""
    sets, time, batch, pre = shape
    cells = sets * time * batch * pre
    looking = COST_OF_CELL * cells
    adding = COST_OF_EVENT * cells / together * (1 - (1 - density) ** together) * outputs
    summing = 0 if together == 1 else COST_OF_EVENT * sets * pre / together * (1 << together) * outputs
    return looking + adding + summing


def _events(spikes: Tensor, together: int) -> Events:
    """The events of `(sets, time, batch, pre)`, one channel or JOINED channels at a time."""
    sets, time, batch, pre = spikes.shape
    by_example = spikes.transpose(1, 2)
    if together == JOINED:
        # four bytes of 0 or 1 are one word, in which an event is found and its pattern read (lowest byte first)
        by_example = pad(by_example.to(torch.uint8), (0, -pre % JOINED)).contiguous().view(torch.int32)
    cells = by_example.reshape(sets * batch * time, -1)
    row, column = cells.nonzero().unbind(1)
    entry, entries_a_set = column, cells.shape[1]
    if together == JOINED:
        word = cells.view(-1)[row * cells.shape[1] + column]
        pattern = (word | word >> 7 | word >> 14 | word >> 21) & 15
        entry, entries_a_set = (column << JOINED) + pattern, cells.shape[1] << JOINED
    if sets > 1:
        entry = entry + entries_a_set * row.div(time * batch, rounding_mode="floor")
    a_row = torch.bincount(row, minlength=len(cells))
    return Events(row, entry.to(torch.int32), (a_row.cumsum(0) - a_row).to(torch.int32))


def _patterns(tables: Tensor, together: int) -> Tensor:
    """What every pattern of `together` channels adds: `(members, pre, neurons)` to `(members, patterns, neurons)`."""
    if together == 1:
        return tables
    members, pre, neurons = tables.shape
    grouped = pad(tables, (0, 0, 0, -pre % together)).view(members, -1, together, neurons)
    sums = tables.new_empty(members, grouped.shape[1], 1 << together, neurons)
    sums[:, :, 0] = 0
    for place in range(together):
        half = 1 << place
        torch.add(sums[:, :, :half], grouped[:, :, place : place + 1], out=sums[:, :, half : 2 * half])
    return sums.flatten(1, 2)


@dataclass(frozen=True)
class Fixed:
    """One weight matrix per member, the same for all examples."""

    tables: Tensor  # (members, pre, neurons)
    maps: Convolution | None = None  # whose kernels these are; None: of a dense layer

    @property
    def members(self) -> int:
        return len(self.tables)

    def arrive(self, spikes: Tensor, ones: bool = True) -> Currents:
        block = _block(self.maps, spikes, self.tables, ones)
        return lambda members: block.times(self.tables[members])

    def rows(self, rows: slice) -> "Fixed":
        return self

    def columns(self, columns: slice) -> "Fixed":
        return Fixed(self.tables[:, columns], self.maps)


@dataclass(frozen=True)
class Flipped:
    """A draw of its own for every member and example b: W_b = C + D ∘ r_b c_bᵀ, with random signs r_b and c_b.

    If the entries of D are independent and symmetric about zero, so are those of D ∘ r_b c_bᵀ, distributed alike:
    every example sees an exact draw of the whole matrix. Two examples share the sizes of D. Any one sign of theirs
    is independent between them; jointly they are not, since the signs at the corners of a rectangle multiply to the
    same. Currents are C·s + r_b ∘ D·(c_b ∘ s): two products, the first of which members share when C is one for all.
    """

    centre: Tensor  # C as tables, (1 or members, pre, neurons)
    spread: Tensor  # D as tables, (members, pre, neurons)
    signs_in: Tensor  # c, (batch, pre)
    signs_out: Tensor  # r, (batch, neurons)
    maps: Convolution | None = None  # whose kernels these are: then signs are alike at all places

    @property
    def members(self) -> int:
        return len(self.spread)

    def arrive(self, spikes: Tensor, ones: bool = True) -> Currents:
        block = _block(self.maps, spikes, self.spread, ones, join=False)
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
        return Flipped(self.centre, self.spread, self.signs_in[rows], self.signs_out[rows], self.maps)

    def columns(self, columns: slice) -> "Flipped":
        return Flipped(
            self.centre[:, columns],
            self.spread[:, columns],
            self.signs_in[:, columns].contiguous(),
            self.signs_out,
            self.maps,
        )


@dataclass(frozen=True)
class Own:
    """A weight matrix for every member and example, held in full."""

    tables: Tensor  # (members, batch, pre, neurons)
    maps: Convolution | None = None

    @property
    def members(self) -> int:
        return len(self.tables)

    def arrive(self, spikes: Tensor, ones: bool = True) -> Currents:
        if self.maps is not None:
            block = MapBlock.of(self.maps, spikes, self.tables.dtype)
            return lambda members: block.times_own(self.tables[members])
        by_example = spikes.to(self.tables.dtype).transpose(1, 2)  # (sets, batch, time, pre)
        return lambda members: torch.matmul(by_example, self.tables[members]).transpose(1, 2)

    def rows(self, rows: slice) -> "Own":
        return Own(self.tables[:, rows], self.maps)

    def columns(self, columns: slice) -> "Own":
        return Own(self.tables[:, :, columns], self.maps)


def _block(
    maps: Convolution | None, spikes: Tensor, tables: Tensor, ones: bool, *, join: bool = True
) -> SpikeBlock | MapBlock:
    """Spikes as the kind of layer multiplies them."""
    if maps is not None:
        return MapBlock.of(maps, spikes, tables.dtype)
    return SpikeBlock.of(spikes, _outputs(spikes, tables) if ones else 0, tables.dtype, join=join)


def _outputs(spikes: Tensor, tables: Tensor) -> int:
    """How many neurons, over all members, see each spike; 0 where the tables do not allow events.

    Events of several sets are looked up in all tables at once, which must then lie in one piece of memory. Lateral
    synapses do not: they are part of larger tables, and are multiplied step by step anyhow.
    """
    if len(spikes) == 1:
        return int(tables.shape[2]) * len(tables)
    return int(tables.shape[2]) if tables.is_contiguous() else 0
