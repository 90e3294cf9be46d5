"""One value for every event recording: where, when and which way the brightness changed.

The readers in `aedat.py` and `event_files.py` give an `Events`; `binned` turns it into spikes
`(time, inputs)` with the channels in the order polarity, y, x.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require
from bayspike.storage.files import read_limited

MAX_FILE_BYTES = 2**29  # the longest DVS-Gesture recording has a twentieth of that
PIECE = 2**18  # events that are converted or looked at in one go: what is needed beside the result stays small


@dataclass(frozen=True, eq=False)
class Events:
    """Events in the order of time: `t` in µs (int64), `x`, `y` (int16), `p` 0 or 1 (uint8)."""

    t: NDArray[np.int64]
    x: NDArray[np.int16]
    y: NDArray[np.int16]
    p: NDArray[np.uint8]
    width: int
    height: int

    def __len__(self) -> int:
        return len(self.t)

    @property
    def duration(self) -> int:
        """Time from the first to the last event, in µs."""
        return int(self.t[-1] - self.t[0]) if len(self) else 0

    def where(self, chosen: NDArray[np.bool_]) -> "Events":
        return replace(self, t=self.t[chosen], x=self.x[chosen], y=self.y[chosen], p=self.p[chosen])

    def window(self, start: int, stop: int) -> "Events":
        """The events with `start <= t < stop`."""
        first, last = np.searchsorted(self.t, [start, stop])
        part = slice(int(first), int(last))
        return replace(self, t=self.t[part], x=self.x[part], y=self.y[part], p=self.p[part])

    def crop(self, left: int, top: int, width: int, height: int) -> "Events":
        """The events inside a rectangle, with coordinates counted from its corner."""
        inside = (self.x >= left) & (self.x < left + width) & (self.y >= top) & (self.y < top + height)
        part = self.where(inside)
        return replace(part, x=part.x - np.int16(left), y=part.y - np.int16(top), width=width, height=height)

    def mirrored(self) -> "Events":
        """Left and right exchanged."""
        return replace(self, x=(self.width - 1 - self.x).astype(np.int16))

    def upended(self) -> "Events":
        """Top and bottom exchanged."""
        return replace(self, y=(self.height - 1 - self.y).astype(np.int16))


@dataclass(frozen=True)
class View:
    """How a data set looks at its camera: which part of the sensor, and how time is cut."""

    cut: Callable[[Events], Events]
    step: int  # µs of a bin
    downsample: int
    sensor: tuple[int, int]  # width and height of the whole camera
    start: int | None  # µs where the first bin begins; None: at the recording's first event


def binned(
    events: Events,
    time: int,
    step: int,
    *,
    start: int | None = None,
    downsample: int = 1,
    counts: bool = False,
) -> NDArray[np.uint8]:
    """Spikes `(time, 2 * height * width)`: `time` bins of `step` µs from `start` (or the first event) on.

    `downsample` merges squares of that many pixels a side. A channel fires at most once a bin; with
    `counts`, the number of its events is given instead (255 at most). Events outside the bins are left out.
    """
    require(time >= 1 and step >= 1, f"Binning needs time >= 1 and step >= 1 µs, got {time} and {step}.")
    require(downsample >= 1, f"The down-sampling factor must be at least 1, but is {downsample}.")
    width, height = -(-events.width // downsample), -(-events.height // downsample)
    inputs = 2 * width * height
    if len(events) == 0:
        return np.zeros((time, inputs), dtype=np.uint8)
    begin = int(events.t[0]) if start is None else start
    part = events.window(begin, begin + time * step)
    bins = (part.t - begin) // step
    channel = (part.p.astype(np.int64) * height + part.y // downsample) * width + part.x // downsample
    flat = bins * inputs + channel
    if counts:
        total = np.bincount(flat, minlength=time * inputs)
        return np.minimum(total, 255).astype(np.uint8).reshape(time, inputs)
    spikes = np.zeros(time * inputs, dtype=np.uint8)
    spikes[flat] = 1
    return spikes.reshape(time, inputs)


class Collected:
    """Room for at most `count` events, filled piece by piece."""

    def __init__(self, count: int) -> None:
        self._t, self._p = np.empty(count, np.int64), np.empty(count, np.uint8)
        self._x, self._y = np.empty(count, np.int16), np.empty(count, np.int16)
        self._filled = 0

    def add(
        self, t: NDArray[np.generic], x: NDArray[np.generic], y: NDArray[np.generic], p: NDArray[np.generic]
    ) -> None:
        part = slice(self._filled, self._filled + len(t))
        for room, values in ((self._t, t), (self._x, x), (self._y, y), (self._p, p)):
            room[part] = values
        self._filled = part.stop

    def events(self, width: int, height: int) -> Events:
        part = slice(0, self._filled)
        return Events(self._t[part], self._x[part], self._y[part], self._p[part], width, height)


def pieces(count: int) -> Iterator[slice]:
    return (slice(start, min(start + PIECE, count)) for start in range(0, count, PIECE))


def read_bytes(path: Path, limit: int = MAX_FILE_BYTES) -> bytes:
    """The whole of a regular file of at most `limit` bytes."""
    return read_limited(path, limit, "a recording")


def checked(
    path: Path,
    events: Events,
    offset: Callable[[int], int],
    *,
    sort: bool = False,
) -> Events:
    """`events` if they are sound; else one sentence with the file and the byte offset of the first bad one.

    `offset` gives the byte offset of an event from its index. With `sort`, time that runs backwards is
    put in order (stably) instead of refused.
    """
    if len(events) == 0:
        raise UserError(f"{path} holds no events: the recording ends at byte {offset(0)}.")
    first = _first_outside(events)
    if first is not None:
        raise UserError(
            f"{path}: the event at byte {offset(first)} lies at x={events.x[first]}, y={events.y[first]}, "
            f"outside the {events.width}×{events.height} sensor; the file is damaged or of another camera."
        )
    first = _first_backwards(events.t)
    if first is None:
        return events
    if not sort:
        raise UserError(
            f"{path}: time runs backwards at byte {offset(first)} (from {events.t[first - 1]} to "
            f"{events.t[first]} µs); the file is damaged, or read it with sort=True."
        )
    order = np.argsort(events.t, kind="stable")
    return replace(events, t=events.t[order], x=events.x[order], y=events.y[order], p=events.p[order])


def _first_outside(events: Events) -> int | None:
    for part in pieces(len(events)):
        x, y = events.x[part], events.y[part]
        outside = (x >= events.width) | (y >= events.height) | (x < 0) | (y < 0)
        if outside.any():
            return int(part.start + np.argmax(outside))
    return None


def _first_backwards(t: NDArray[np.int64]) -> int | None:
    for part in pieces(len(t) - 1):
        backwards = t[part.start + 1 : part.stop + 1] < t[part]
        if backwards.any():
            return int(part.start + np.argmax(backwards) + 1)
    return None
