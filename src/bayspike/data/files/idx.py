"""Reader of the idx files of MNIST and its kin, plain or gzipped."""

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayspike.data.files.events import read_bytes
from bayspike.errors import UserError, require

_MAX_BYTES = 2**28  # five times the size of MNIST's training images


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """The array of bytes with that many dimensions in an idx file; nothing else is accepted."""
    data = _contents(path)
    start = 4 + 4 * dimensions
    require(len(data) >= start, f"{path} is cut short: the header needs {start} bytes, the file has {len(data)}.")
    magic, *shape = struct.unpack_from(f">I{dimensions}I", data)
    if magic != 0x0800 | dimensions:
        raise UserError(
            f"{path}: byte 0 reads {magic:#010x}, but {0x0800 | dimensions:#010x} begins an idx file of bytes "
            f"with {dimensions} dimensions."
        )
    if math.prod(shape) != len(data) - start:
        raise UserError(
            f"{path} is cut short or too long: shape {tuple(shape)} is announced, "
            f"but {len(data) - start:,} bytes follow from byte {start} on."
        )
    return np.frombuffer(data, dtype=np.uint8, offset=start).reshape(shape)


def _contents(path: Path) -> bytes:
    if path.suffix != ".gz":
        return read_bytes(path, _MAX_BYTES)
    require(path.is_file(), f"{path} is not a file.")
    try:
        with gzip.open(path) as stream:
            data = stream.read(_MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path} is damaged or cut short and cannot be unpacked ({error}).") from error
    require(len(data) <= _MAX_BYTES, f"{path} unpacks to more than the {_MAX_BYTES:,} bytes that are read.")
    return data
