"""Readers of two simpler event files: N-MNIST's `.bin`, and `.npy`, as the pre-cut DVS-Gesture's or with fields."""

import math
import warnings
from io import BytesIO
from pathlib import Path

import numpy as np

from bayspike.data.files.events import Events, checked, read_bytes
from bayspike.errors import UserError, require

_OVERFLOW_ROW = 240  # a y that no pixel has: the time counter of 13 bits went round
_OVERFLOW_STEP = 2**13
_FIELDS = ("x", "y", "p", "t")
_MAX_TIME_MS = 1e9  # eleven days; anything later is damage, and would not fit the clock


def read_nmnist(path: Path, *, sort: bool = False) -> Events:
    """An N-MNIST recording, 34×34: five bytes an event, x, y, then one bit polarity and 23 bits of µs."""
    data = read_bytes(path)
    rest = len(data) % 5
    if rest:
        raise UserError(f"{path} is cut short: the event at byte {len(data) - rest} has {rest} of its 5 bytes.")
    rows = np.frombuffer(data, dtype=np.uint8).reshape(-1, 5)
    high = rows[:, 2].astype(np.int64)
    t = ((high & 127) << 16) | (rows[:, 3].astype(np.int64) << 8) | rows[:, 4]
    overflow = rows[:, 1] == _OVERFLOW_ROW
    kept = np.arange(len(rows))
    if overflow.any():
        t += np.cumsum(overflow) * _OVERFLOW_STEP
        kept = np.flatnonzero(~overflow)
    events = Events(
        t=t[kept],
        x=rows[kept, 0].astype(np.int16),
        y=rows[kept, 1].astype(np.int16),
        p=(high[kept] >> 7).astype(np.uint8),
        width=34,
        height=34,
    )
    return checked(path, events, lambda i: 5 * int(kept[i]) if len(kept) else len(data), sort=sort)


def read_gesture_npy(path: Path, *, width: int = 128, height: int = 128, sort: bool = False) -> Events:
    """An array of rows `x, y, p, t` with `t` in ms (pre-cut DVS-Gesture), or with these as fields, `t` in µs."""
    data = read_bytes(path)
    start, shape, fortran, dtype = _npy_header(path, data)
    fields = len(shape) == 1 and dtype.names is not None and set(_FIELDS) <= set(dtype.names)
    if not fields and (len(shape) != 2 or shape[1] != 4 or dtype.kind not in "iuf"):
        raise UserError(
            f"{path}: the header at byte 0 tells of shape {shape} and type {dtype}; "
            "expected numbers in rows of 4 (x, y, p, t), or with the fields x, y, p and t."
        )
    size = math.prod(shape) * dtype.itemsize
    if size != len(data) - start:
        raise UserError(
            f"{path} is cut short or too long: {size:,} bytes of events are announced, "
            f"but {len(data) - start:,} follow from byte {start} on."
        )
    rows = np.frombuffer(data, dtype=dtype, offset=start).reshape(shape, order="F" if fortran else "C")

    def offset(index: int) -> int:
        return start + dtype.itemsize * (index if fortran or fields else 4 * index)

    if fields:
        columns = [rows[name] for name in _FIELDS]
        require(
            all(column.ndim == 1 and column.dtype.kind in "biuf" for column in columns),
            f"{path}: the fields x, y, p and t of the header at byte 0 must be single numbers.",
        )
        numbers = np.stack([column.astype(np.float64) for column in columns], axis=1)
        numbers[:, 3] /= 1000
    else:
        numbers = rows.astype(np.float64)
    inside = (numbers[:, :2] >= 0) & (numbers[:, :2] < 2**15) & (numbers[:, :2] == np.floor(numbers[:, :2]))
    polarity = (numbers[:, 2] == 0) | (numbers[:, 2] == 1)
    sound = inside.all(1) & polarity & (numbers[:, 3] >= 0) & (numbers[:, 3] < _MAX_TIME_MS)
    if not sound.all():
        first = int(np.argmin(sound))
        raise UserError(
            f"{path}: the event at byte {offset(first)} reads x, y, p, t = {numbers[first].tolist()}; "
            "expected whole x and y of 0 or more, p of 0 or 1 and a time in ms."
        )
    events = Events(
        t=np.rint(numbers[:, 3] * 1000).astype(np.int64),
        x=numbers[:, 0].astype(np.int16),
        y=numbers[:, 1].astype(np.int16),
        p=numbers[:, 2].astype(np.uint8),
        width=width,
        height=height,
    )
    return checked(path, events, offset, sort=sort)


def _npy_header(path: Path, data: bytes) -> tuple[int, tuple[int, ...], bool, "np.dtype[np.generic]"]:
    """Start of the numbers, shape, Fortran order and type, from the header alone: nothing is allocated."""
    stream = BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shape, fortran, dtype = read(stream)
    # numpy parses the header as a Python literal, which can fail in a dozen ways on a damaged file
    except Exception as error:
        kind = type(error).__name__
        raise UserError(f"{path}: byte 0 does not begin a sound .npy header ({kind}).") from error
    require(not dtype.hasobject, f"{path}: the header at byte 0 asks for Python objects: never read.")
    require(all(n >= 0 for n in shape), f"{path}: the header at byte 0 tells of a negative shape {shape}.")
    return stream.tell(), shape, bool(fortran), dtype
