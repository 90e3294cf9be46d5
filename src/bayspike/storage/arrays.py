"""Named arrays in an .npz file: plain numbers only, and never more bytes than the reader allows.

The header of every array is compared with the bytes that are there before anything is allocated, so neither a header
of terabytes nor an archive that unpacks to them does harm.
"""

import io
import math
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require
from bayspike.storage.files import ARCHIVE_ERRORS, write_whole

LARGEST_ARRAYS = 2**31  # bytes of one archive, unpacked
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class Header(NamedTuple):
    """What the first bytes of an .npy file tell."""

    start: int  # of the numbers
    shape: tuple[int, ...]
    fortran: bool
    dtype: "np.dtype[np.generic]"

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(data: bytes) -> Header:
    """The header of an .npy file, from its bytes alone: nothing is allocated. Raises `ValueError` alone."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shape, fortran, dtype = read(stream)
        sound = all(isinstance(each, int) and each >= 0 for each in shape)
    # numpy parses the header as a Python literal, which can fail in a dozen ways on a damaged file
    except Exception as error:
        raise ValueError(f"no sound .npy header ({type(error).__name__})") from error
    if dtype.hasobject:
        raise ValueError("Python objects, which are never read")
    if not sound:
        raise ValueError(f"the shape {shape}")
    return Header(stream.tell(), tuple(shape), bool(fortran), dtype)


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **dict(arrays))
    write_whole(path, buffer.getvalue())


def array_sizes(path: Path) -> dict[str, int]:
    """The arrays of an archive with the bytes they say to unpack to; none is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except ARCHIVE_ERRORS as error:
        raise UserError(f"{path} cannot be read as arrays ({error}).") from error
    return {each.filename.removesuffix(".npy"): each.file_size for each in entries if each.filename.endswith(".npy")}


def read_arrays(path: Path, limit: int = LARGEST_ARRAYS) -> dict[str, NDArray[Any]]:
    """All arrays of an archive that unpacks to at most `limit` bytes."""
    sizes = array_sizes(path)
    require(sum(sizes.values()) <= limit, f"{path} unpacks to more than the {limit:,} bytes that are read.")
    return {name: read_array(path, name, limit) for name in sizes}


def read_array(path: Path, name: str, limit: int = LARGEST_ARRAYS) -> NDArray[Any]:
    """One array of an archive."""
    try:
        with zipfile.ZipFile(path) as archive:
            entry = archive.getinfo(f"{name}.npy")
            require(entry.compress_type in _METHODS, f"{path} is packed in a way that is not read.")
            require(entry.file_size <= limit, f"{name!r} of {path} has more than the {limit:,} bytes that are read.")
            with archive.open(entry) as stream:
                data = stream.read(entry.file_size + 1)
        return array_of(data)
    except UserError:
        raise
    except ARCHIVE_ERRORS as error:
        raise UserError(f"{path} cannot be read as arrays ({error}).") from error


def array_of(data: bytes) -> NDArray[Any]:
    """The array in the bytes of an .npy file. Raises `ValueError` alone."""
    header = read_header(data)
    if header.bytes != len(data) - header.start:
        raise ValueError(f"an array announces {header.bytes:,} bytes, but {len(data) - header.start:,} follow")
    flat = np.frombuffer(data, dtype=header.dtype, offset=header.start) if header.bytes else np.empty(0, header.dtype)
    if math.prod(header.shape) != flat.size:
        raise ValueError(f"the shape {header.shape} does not fit")
    return flat.reshape(header.shape, order="F" if header.fortran else "C").copy()
