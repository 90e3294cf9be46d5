"""Ranks as threads of this process, which exchange through a barrier: a group without a network."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from bayspike.posteriors.draws import Rows

T = TypeVar("T")


class Together:
    def __init__(self, ranks: int) -> None:
        self.barrier, self.slots = threading.Barrier(ranks, timeout=60), [None] * ranks


class Threaded:
    """An `Exchange` of one of the threads."""

    def __init__(self, rank: int, ranks: int, shared: Together) -> None:
        self.rank, self.ranks, self.shared = rank, ranks, shared

    def _all(self, value: Any) -> list[Any]:
        self.shared.slots[self.rank] = value
        self.shared.barrier.wait()
        found = list(self.shared.slots)
        self.shared.barrier.wait()
        return found

    def spikes(self, own: Tensor, shares: Sequence[Rows]) -> Tensor:
        return torch.cat(self._all(own.clone()), dim=1)

    def least(self, value: Tensor) -> Tensor:
        return torch.stack(self._all(value)).min()

    def total(self, value: Tensor) -> Tensor:
        return torch.stack(self._all(value)).sum()

    def gather(self, own: Tensor, shares: Sequence[Rows]) -> Tensor | None:
        found = torch.cat(self._all(own.clone()))
        return found if self.rank == 0 else None

    def scatter(self, whole: Tensor | None, shares: Sequence[Rows], like: Tensor) -> Tensor:
        rows = shares[self.rank]
        return self._all(whole)[0][rows.start : rows.stop].clone()


def in_ranks(ranks: int, work: Callable[[Threaded], T]) -> list[T]:
    """The results of all ranks."""
    shared, results = Together(ranks), dict[int, T]()
    failures: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(Threaded(rank, ranks, shared))
        except BaseException as error:
            failures.append(error)
            shared.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for failure in failures:
        raise failure
    return [results[rank] for rank in range(ranks)]
