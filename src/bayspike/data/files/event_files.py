"""Readers of two simpler event files: N-MNIST's `.bin`, and `.npy`, as the pre-cut DVS-Gesture's or with fields."""

from pathlib import Path

import numpy as np

from bayspike.data.files.events import Collected, Events, checked, pieces, read_bytes
from bayspike.errors import UserError, require
from bayspike.storage.arrays import read_header

_OVERFLOW_ROW = 240  # a y that no pixel has: the time counter of 13 bits went round
_OVERFLOW_STEP = 2**13
_FIELDS = ("x", "y", "p", "t")
_MAX_TIME_MS = 1e9  # eleven days; anything later is damage, and would not fit the clock


def read_nmnist(path: Path | str, *, sort: bool = False) -> Events:
    """An N-MNIST recording, 34×34: five bytes an event, x, y, then one bit polarity and 23 bits of µs."""
    path = Path(path)
    return parse_nmnist(read_bytes(path), path, sort=sort)


def parse_nmnist(data: bytes, path: Path, *, sort: bool = False) -> Events:
    """The same from the bytes of a file, or of a member of a zip; `path` names it in errors."""
    rest = len(data) % 5
    if rest:
        raise UserError(f"{path} is cut short: the event at byte {len(data) - rest} has {rest} of its 5 bytes.")
    rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, 5)
    found, rounds = Collected(len(rows)), 0
    for part in pieces(len(rows)):
        x, y, high, middle, low = rows[part].T
        t = ((high & 127).astype(np.int64) << 16) | (middle.astype(np.int64) << 8) | low
        overflow = y == _OVERFLOW_ROW
        t += (rounds + np.cumsum(overflow)) * _OVERFLOW_STEP
        rounds += int(overflow.sum())
        kept = ~overflow
        found.add(t[kept], x[kept], y[kept], high[kept] >> 7)

    def offset(index: int) -> int:
        places = np.flatnonzero(rows[:, 1] != _OVERFLOW_ROW)
        return 5 * int(places[index]) if len(places) else len(data)

    return checked(path, found.events(34, 34), offset, sort=sort)


def read_gesture_npy(path: Path | str, *, width: int = 128, height: int = 128, sort: bool = False) -> Events:
    """An array of rows `x, y, p, t` with `t` in ms (pre-cut DVS-Gesture), or with these as fields, `t` in µs."""
    path = Path(path)
    return parse_gesture_npy(read_bytes(path), path, width=width, height=height, sort=sort)


def parse_gesture_npy(data: bytes, path: Path, *, width: int = 128, height: int = 128, sort: bool = False) -> Events:
    """The same from the bytes of a file, or of a member of a zip; `path` names it in errors."""
    try:
        header = read_header(data)
    except ValueError as error:
        raise UserError(f"{path}: byte 0 does not begin an array of numbers ({error}).") from error
    start, shape, fortran, dtype = header
    fields = len(shape) == 1 and dtype.names is not None and set(_FIELDS) <= set(dtype.names)
    if not fields and (len(shape) != 2 or shape[1] != 4 or dtype.kind not in "iuf"):
        raise UserError(
            f"{path}: the header at byte 0 tells of shape {shape} and type {dtype}; "
            "expected numbers in rows of 4 (x, y, p, t), or with the fields x, y, p and t."
        )
    size = header.bytes
    if size != len(data) - start:
        raise UserError(
            f"{path} is cut short or too long: {size:,} bytes of events are announced, "
            f"but {len(data) - start:,} follow from byte {start} on."
        )
    rows = np.frombuffer(data, dtype=dtype, offset=start).reshape(shape, order="F" if fortran else "C")

    def offset(index: int) -> int:
        return start + dtype.itemsize * (index if fortran or fields else 4 * index)

    columns = [rows[name] for name in _FIELDS] if fields else []
    if fields:
        require(
            all(column.ndim == 1 and column.dtype.kind in "biuf" for column in columns),
            f"{path}: the fields x, y, p and t of the header at byte 0 must be single numbers.",
        )
    found = Collected(len(rows))
    for part in pieces(len(rows)):
        if fields:
            numbers = np.stack([column[part].astype(np.float64) for column in columns], axis=1)
            numbers[:, 3] /= 1000
        else:
            numbers = rows[part].astype(np.float64)
        inside = (numbers[:, :2] >= 0) & (numbers[:, :2] < 2**15) & (numbers[:, :2] == np.floor(numbers[:, :2]))
        polarity = (numbers[:, 2] == 0) | (numbers[:, 2] == 1)
        sound = inside.all(1) & polarity & (numbers[:, 3] >= 0) & (numbers[:, 3] < _MAX_TIME_MS)
        if not sound.all():
            first = int(np.argmin(sound))
            raise UserError(
                f"{path}: the event at byte {offset(part.start + first)} reads x, y, p, t = "
                f"{numbers[first].tolist()}; expected whole x and y of 0 or more, p of 0 or 1 and a time in ms."
            )
        x, y, p, t = numbers.T
        found.add(np.rint(t * 1000), x, y, p)
    return checked(path, found.events(width, height), offset, sort=sort)
