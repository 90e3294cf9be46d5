"""Recordings inside a zip, read in place, as data sets are handed out: any member costs bounded memory, or is refused.

Python's `zipfile` unpacks stored, deflated, bzip2 and LZMA members. What a member says of itself is not trusted: its
size is limited, it is unpacked in small pieces (4 KiB of LZMA may grow seven thousandfold), and an LZMA member may not
ask for a larger dictionary than packers use, since that is allocated before the first byte is read.
"""

import contextlib
import lzma
import struct
import zipfile
from pathlib import Path
from types import TracebackType

from bayspike.data.files.events import read_bytes
from bayspike.errors import UserError, require
from bayspike.storage.files import ARCHIVE_ERRORS

MAX_RECORDING = 2**26  # bytes of a member, unpacked
MOST_MEMBERS = 2**20
_LARGEST_DICTIONARY = 2**26
_PIECE = 2**12
_DAMAGE = (*ARCHIVE_ERRORS, lzma.LZMAError, NotImplementedError)


def members_of(archive: Path) -> list[str]:
    """The names of the files in a zip, in its order."""
    try:
        with zipfile.ZipFile(archive) as opened:
            names = [each.filename for each in opened.infolist() if not each.is_dir()]
    except _DAMAGE as error:
        raise UserError(f"{archive} is damaged or cut short ({error}): fetch it anew.") from error
    require(len(names) <= MOST_MEMBERS, f"{archive} has {len(names):,} members, more than the {MOST_MEMBERS:,} read.")
    require(len(set(names)) == len(names), f"{archive} has two members of one name: fetch it anew.")
    return names


class Archives:
    """Reads files and members of zips; the archive last read from stays open, so let its members follow one another."""

    def __init__(self) -> None:
        self._path, self._opened = Path(), None  # type: Path, zipfile.ZipFile | None

    def __enter__(self) -> "Archives":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    def read(self, path: Path, member: str = "", limit: int = MAX_RECORDING) -> bytes:
        """The bytes of a member, or of the file itself where no member is named; at most `limit`."""
        if not member:
            return read_bytes(path, limit)
        try:
            if self._opened is None or path != self._path:
                self.__exit__(None, None, None)
                self._path, self._opened = path, zipfile.ZipFile(path)
            return _unpacked(self._opened, self._opened.getinfo(member), path / member, limit)
        except _DAMAGE as error:
            if isinstance(error, UserError):
                raise
            raise UserError(f"{path}: the recording {member} is damaged ({error}): fetch the archive anew.") from error


def _unpacked(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: Path, limit: int) -> bytes:
    require(entry.file_size <= limit, f"{name} has {entry.file_size:,} bytes, more than the {limit:,} that are read.")
    if entry.compress_type == zipfile.ZIP_LZMA:
        _check_dictionary(archive, entry, name)
    pieces = bytearray()
    with archive.open(entry) as stream:
        while piece := stream.read(_PIECE):
            pieces += piece
            require(
                len(pieces) <= entry.file_size, f"{name} unpacks to more than the {entry.file_size:,} bytes it says."
            )
    require(
        len(pieces) == entry.file_size,
        f"{name} is cut short: {len(pieces):,} of the {entry.file_size:,} bytes it says could be unpacked.",
    )
    return bytes(pieces)


def _check_dictionary(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: Path) -> None:
    """The member's data begin with two bytes of version, two of length, then a byte of settings and the size."""
    stream = archive.fp
    assert stream is not None
    with contextlib.suppress(struct.error):  # too short for a header: the reader says so
        stream.seek(entry.header_offset + 26)
        named, extra = struct.unpack("<HH", stream.read(4))
        stream.seek(named + extra, 1)
        _, _, _, size = struct.unpack("<HHBI", stream.read(9))
        require(
            size <= _LARGEST_DICTIONARY,
            f"{name} asks for an LZMA dictionary of {size:,} bytes, more than the {_LARGEST_DICTIONARY:,} allowed.",
        )
