"""One file that holds JSON and tensors, sealed by a digest over every byte of it.

It is a zip archive of two members, `about.json` and `tensors.safetensors`, not compressed: so it can be opened with any
tool, the same content always gives the same bytes, and nothing is larger when read than it was on the disk. The
archive's comment, its last 32 bytes, is the digest of all bytes before. Reading never runs code.
"""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from bayspike.errors import UserError, require
from bayspike.storage.files import ARCHIVE_ERRORS, plain_numbers, reason, replacing

ABOUT, TENSORS = "about.json", "tensors.safetensors"
SEAL = 32  # characters of the digest
LARGEST_FILE, LARGEST_ABOUT = 2**33, 2**26  # bytes that are read
MAGIC = b"PK\x03\x04"


def write_sealed(path: Path, about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write both, atomically."""
    plain = json.dumps(plain_numbers(about), ensure_ascii=False, allow_nan=False, indent=1)
    numbers = save({name: each.detach().cpu().contiguous() for name, each in tensors.items()})
    try:
        with replacing(path) as beside:
            with zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED) as archive:
                archive.comment = b"0" * SEAL
                for name, content in ((ABOUT, plain.encode()), (TENSORS, numbers)):
                    entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # of no moment, and of no system
                    entry.create_system = 3
                    archive.writestr(entry, content)
            with beside.open("r+b") as stream:
                seal = _digest(stream, beside.stat().st_size)
                stream.seek(-SEAL, 2)
                stream.write(seal)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({reason(error)}): choose another place.") from error


def read_sealed(path: Path) -> tuple[Any, dict[str, Tensor]]:
    """The JSON and the tensors of a file whose seal is whole; the caller looks at what they say."""
    require(path.is_file(), f"{path} is missing, or is not a file.")
    size = path.stat().st_size
    require(size <= LARGEST_FILE, f"{path} is larger than the {LARGEST_FILE:,} bytes that are read.")
    try:
        with path.open("rb") as stream:
            require(
                stream.read(len(MAGIC)) == MAGIC, f"{path} is not a file of this kind, or its beginning is damaged."
            )
            stream.seek(max(0, size - SEAL))
            seal = stream.read(SEAL)
            require(
                size > SEAL and _digest(stream, size) == seal,
                f"{path} is damaged or cut off: its content is not what its seal says.",
            )
            with zipfile.ZipFile(stream) as archive:
                return _members(archive, path, size)
    except ARCHIVE_ERRORS as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} cannot be read ({error}).") from error


def is_sealed(path: Path) -> bool:
    """Whether a file looks like one of these, by its first bytes."""
    try:
        with path.open("rb") as stream:
            head = stream.read(30 + len(ABOUT))
    except OSError:
        return False
    return head.startswith(MAGIC) and head.endswith(ABOUT.encode())


def _members(archive: zipfile.ZipFile, path: Path, size: int) -> tuple[Any, dict[str, Tensor]]:
    entries = {entry.filename: entry for entry in archive.infolist()}
    stored = all(each.compress_type == zipfile.ZIP_STORED and each.file_size <= size for each in entries.values())
    require(
        set(entries) == {ABOUT, TENSORS} and len(archive.infolist()) == 2 and stored,
        f"{path} does not hold {ABOUT} and {TENSORS}, as they are, and nothing else.",
    )
    require(entries[ABOUT].file_size <= LARGEST_ABOUT, f"{path}: {ABOUT} is larger than {LARGEST_ABOUT:,} bytes.")
    try:
        about = json.loads(archive.read(ABOUT), parse_constant=_refuse)
        # copies of our own: aligned, whatever their place in the file
        tensors = {name: each.clone() for name, each in load(archive.read(TENSORS)).items()}
    except (ValueError, RecursionError, SafetensorError) as error:
        raise UserError(f"{path} cannot be read ({error}).") from error
    return about, tensors


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def _digest(stream: BinaryIO, size: int) -> bytes:
    """Of all bytes but the seal."""
    hashed, left = hashlib.blake2b(digest_size=SEAL // 2), size - SEAL
    stream.seek(0)
    while left > 0 and (block := stream.read(min(left, 1 << 20))):
        hashed.update(block)
        left -= len(block)
    return hashed.hexdigest().encode()
