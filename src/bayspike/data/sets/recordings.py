"""Many event recordings into one block of packed spikes, a file at a time."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from bayspike.data.base import SpikeSamples
from bayspike.data.encoders import pack
from bayspike.errors import require, require_range

T = TypeVar("T")

_MANY = 2_000  # fewer files than this are read before a progress bar would be of use


def packed_recordings(
    sources: Sequence[T],
    labels: Sequence[int],
    encode: Callable[[T], NDArray[np.uint8]],
    time: int,
    inputs: int,
    what: str,
) -> SpikeSamples:
    """`encode` every source to spikes `(time, inputs)` and keep them as bits."""
    require(len(sources) > 0, f"There are no recordings of {what}.")
    packed = np.empty((len(sources), time, -(-inputs // 8)), dtype=np.uint8)
    for index, source in enumerate(with_bar(sources, f"reading {what}", least=_MANY)):
        packed[index] = pack(encode(source))
    return SpikeSamples(torch.from_numpy(packed), torch.tensor(labels, dtype=torch.int64), time, inputs)


def per_class_limit(labels: Sequence[int], limit: int | None) -> list[int]:
    """Indices of the first `limit` members of every class, in order; all of them without a limit."""
    if limit is not None:
        require_range("per_class", limit, 1)
    seen: dict[int, int] = {}
    kept = []
    for index, label in enumerate(labels):
        seen[label] = seen.get(label, 0) + 1
        if limit is None or seen[label] <= limit:
            kept.append(index)
    return kept


def bin_length(span: int, time: int) -> int:
    """Length in µs of each of `time` equal bins over `span` µs."""
    require(1 <= time <= span, f"The number of time-steps must lie in [1, {span}], but is {time}.")
    return span // time


def with_bar(items: Sequence[T], what: str, least: int = 0) -> Iterable[T]:
    """The items, with a progress bar on a terminal where there are at least so many."""
    console = Console(stderr=True)
    return track(
        items, what, console=console, transient=True, disable=not (console.is_terminal and len(items) >= least)
    )
