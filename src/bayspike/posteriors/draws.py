"""Random numbers from the caller's generator, drawn where that lives, and moved if they are needed elsewhere.

What draws at every step asks for a generator on its own device first (`on_device`), so that nothing is moved there. A
committee is drawn once, by the caller's generator, and is the same on every device. Where several processes share the
neurons of a layer, each draws for the whole layer and keeps what is for its own rows (`OfRows`): the numbers are those
of one process.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

CHUNK = (
    2**20
)  # numbers drawn at a time; a multiple of 16, in which groups torch draws them, leaves the sequence as it is


class Rows(NamedTuple):
    """Some neurons of a layer, in a row: those from `start` up to, not including, `stop`, of `total`."""

    start: int
    stop: int
    total: int

    @property
    def size(self) -> int:
        return self.stop - self.start


class OfRows(torch.Generator):
    """A generator whose draws, for the neurons of a layer (the second dimension), are those of some rows only."""

    source: torch.Generator
    rows: Rows

    def __new__(cls, source: torch.Generator, rows: Rows) -> "OfRows":
        made = super().__new__(cls)
        made.source, made.rows = source, rows
        return made


def on_device(generator: torch.Generator, device: torch.device) -> torch.Generator:
    """A generator on a device, seeded by one draw of the one given; that one itself where it is there already."""
    if generator.device.type == device.type or device.type == "meta":
        return generator
    seed = torch.randint(2**63 - 1, (), generator=generator, device=generator.device)
    return torch.Generator(device).manual_seed(int(seed))


def normal(shape: Sequence[int], like: Tensor, generator: torch.Generator) -> Tensor:
    """Standard normal numbers of the type and on the device of `like`."""
    if isinstance(generator, OfRows):
        return _kept(normal(_whole(shape, generator), like, generator.source), generator)
    return torch.randn(*shape, generator=generator, dtype=like.dtype, device=generator.device).to(like.device)


def normal_into(room: Tensor, generator: torch.Generator) -> None:
    """The same numbers as `normal` draws, written into memory that is there; on the generator's own device."""
    if isinstance(generator, OfRows):
        room.copy_(normal(room.shape, room, generator))
        return
    torch.randn(room.shape, generator=generator, out=room)


def uniform(shape: Sequence[int], like: Tensor, generator: torch.Generator) -> Tensor:
    """Numbers from [0, 1) of the type and on the device of `like`."""
    if isinstance(generator, OfRows):
        return _kept(uniform(_whole(shape, generator), like, generator.source), generator)
    return torch.rand(*shape, generator=generator, dtype=like.dtype, device=generator.device).to(like.device)


def _whole(shape: Sequence[int], generator: OfRows) -> tuple[int, ...]:
    return (shape[0], generator.rows.total, *shape[2:])


def _kept(drawn: Tensor, generator: OfRows) -> Tensor:
    return drawn[:, generator.rows.start : generator.rows.stop]


def normal_matrix(shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    """Standard normal numbers `(neurons, pre)` in single precision; of some rows without ever holding all of them."""
    if not isinstance(generator, OfRows):
        return torch.randn(*shape, generator=generator)
    rows, width = generator.rows, shape[1]
    kept = torch.empty(rows.size, width)
    at, size = 0, rows.total * width
    while at < size:
        # the last piece is never so small that torch would draw it in another way
        count = CHUNK if size - at >= 2 * CHUNK else size - at
        piece = torch.randn(count, generator=generator.source)
        low, high = max(at, rows.start * width), min(at + count, rows.stop * width)
        if low < high:
            kept.view(-1)[low - rows.start * width : high - rows.start * width] = piece[low - at : high - at]
        at += count
    return kept
