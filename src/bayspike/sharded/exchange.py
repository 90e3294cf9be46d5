"""How processes share a layer, and the little that they tell each other (torch.distributed)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bayspike.errors import require
from bayspike.posteriors.draws import Rows

UNIT = 16  # rows that stay together where there are enough of them: whole bytes of spikes, whole vectors of a product


def share_rows(total: int, ranks: int) -> list[Rows]:
    """The neurons of a layer for every process: in a row, as evenly as whole units allow."""
    require(total >= ranks, f"a layer of {total} neurons cannot be shared by {ranks} processes: start fewer.")
    unit = UNIT if total >= UNIT * ranks else 1
    units = -(-total // unit)
    ends = [min(total, unit * (units * (rank + 1) // ranks)) for rank in range(ranks)]
    return [Rows(start, stop, total) for start, stop in zip([0, *ends[:-1]], ends, strict=True)]


class Exchange(Protocol):
    """What processes that share layers can do together. Every one of them must be called by all, in the same order."""

    rank: int
    ranks: int

    def spikes(self, own: Tensor, shares: Sequence[Rows]) -> Tensor:
        """The spikes of all neurons of a layer `(batch, neurons)`, from each process's own."""
        ...

    def least(self, value: Tensor) -> Tensor: ...

    def total(self, value: Tensor) -> Tensor: ...

    def gather(self, own: Tensor, shares: Sequence[Rows]) -> Tensor | None:
        """The whole of a matrix cut into rows, in the first process; None in the others."""
        ...

    def scatter(self, whole: Tensor | None, shares: Sequence[Rows], like: Tensor) -> Tensor:
        """The inverse; `like` has the shape of one's own part."""
        ...


@dataclass
class Alone:
    """One process that has all rows: nothing is exchanged. For tests and as a reference."""

    rank: int = 0
    ranks: int = 1

    def spikes(self, own: Tensor, shares: Sequence[Rows]) -> Tensor:
        return own

    def least(self, value: Tensor) -> Tensor:
        return value

    def total(self, value: Tensor) -> Tensor:
        return value

    def gather(self, own: Tensor, shares: Sequence[Rows]) -> Tensor | None:
        return own

    def scatter(self, whole: Tensor | None, shares: Sequence[Rows], like: Tensor) -> Tensor:
        assert whole is not None
        return whole


@dataclass
class Group:
    """The processes that torchrun has started. `sent` counts the bytes of spikes that this one has sent to others."""

    rank: int
    ranks: int
    sent: int = 0
    _room: dict[tuple[int, int], list[Tensor]] = field(default_factory=dict)

    def spikes(self, own: Tensor, shares: Sequence[Rows]) -> Tensor:
        from torch import distributed

        batch, width = len(own), max(-(-each.size // 8) for each in shares)
        packed = np.packbits(own.numpy(force=True) != 0, axis=1)
        mine = torch.zeros(batch, width, dtype=torch.uint8)
        mine[:, : packed.shape[1]] = torch.from_numpy(packed)
        room = self._room.setdefault(
            (batch, width), [torch.empty(batch, width, dtype=torch.uint8) for _ in range(self.ranks)]
        )
        distributed.all_gather(room, mine)
        self.sent += mine.numel() * (self.ranks - 1)
        bits = [np.unpackbits(part.numpy(), axis=1, count=each.size) for part, each in zip(room, shares, strict=True)]
        return torch.from_numpy(np.concatenate(bits, axis=1)).to(own)

    def least(self, value: Tensor) -> Tensor:
        from torch import distributed

        found = value.detach().cpu().clone()
        distributed.all_reduce(found, distributed.ReduceOp.MIN)
        return found.to(value.device)

    def total(self, value: Tensor) -> Tensor:
        from torch import distributed

        found = value.detach().cpu().clone()
        distributed.all_reduce(found, distributed.ReduceOp.SUM)
        return found.to(value.device)

    def gather(self, own: Tensor, shares: Sequence[Rows]) -> Tensor | None:
        from torch import distributed

        if self.rank:
            distributed.send(own.cpu().contiguous(), 0)
            return None
        whole = torch.empty(shares[0].total, *own.shape[1:], dtype=own.dtype)
        whole[: shares[0].stop] = own.cpu()
        for rank, each in list(enumerate(shares))[1:]:
            distributed.recv(whole[each.start : each.stop], rank)
        return whole

    def scatter(self, whole: Tensor | None, shares: Sequence[Rows], like: Tensor) -> Tensor:
        from torch import distributed

        if self.rank:
            own = torch.empty(like.shape, dtype=like.dtype)
            distributed.recv(own, 0)
            return own.to(like.device)
        assert whole is not None
        for rank, each in list(enumerate(shares))[1:]:
            distributed.send(whole[each.start : each.stop].cpu().contiguous(), rank)
        return whole[: shares[0].stop].clone().to(like.device)
