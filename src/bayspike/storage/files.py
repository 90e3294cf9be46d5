"""Files that are whole or not there.

Everything is written beside its final name, flushed to the disk and moved into place, so a kill at any instant, or a
power cut, leaves the old file or the new one. Reading never runs code and never takes more than a bounded number of
bytes. A disk that is full, read-only or unreadable is one sentence that names the file.
"""

import contextlib
import json
import math
import os
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bayspike.errors import UserError, require

# what reading a damaged zip (an .npz is one) can raise; RuntimeError is how an unknown compression or a password shows
ARCHIVE_ERRORS = (
    OSError, EOFError, ValueError, KeyError, RuntimeError, MemoryError, OverflowError, struct.error, zlib.error,
    zipfile.BadZipFile,
)  # fmt: skip
LARGEST_JSON = 2**28  # bytes that are read
_FRESH = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well its file takes the place of `path`, flushed to the disk."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        make_folder(path.parent)
        beside.unlink(missing_ok=True)  # of an earlier process that had our number
        yield beside
        _sync(beside)
        os.replace(beside, path)
        _sync_folder(path.parent)
    except OSError as error:
        raise UserError(
            f"{path} cannot be written ({reason(error)}): make room or choose another place; nothing that was there "
            "is lost."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> None:
    """Put `content` in the place of `path`, or leave what is there."""
    with replacing(path) as beside:
        handle = os.open(beside, _FRESH, 0o644)
        try:
            write_all(handle, content)
        finally:
            os.close(handle)


def write_all(handle: int, content: bytes) -> None:
    """All of `content` to an open file: one call may take only a part of it."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, so that they outlast a power cut."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    _sync_folder(folder.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def replacing_folder(out: Path) -> Iterator[Path]:
    """A folder to write files to; when the block ends well it takes the place of `out`, flushed to the disk.

    An old folder is moved away first and removed last.
    """
    try:
        make_folder(out.parent)
        staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    except OSError as error:
        raise UserError(f"{out} cannot be written ({reason(error)}): choose another directory.") from error
    try:
        yield staging
        staging.chmod(0o755)
        for path in staging.iterdir():
            _sync(path)
        _sync_folder(staging)
        _move(staging, out)
        _sync_folder(out.parent)
    except OSError as error:
        raise UserError(
            f"{out} cannot be written ({reason(error)}): make room or choose another directory; nothing that was there "
            "is lost."
        ) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _move(staging: Path, out: Path) -> None:
    if not out.exists():
        os.rename(staging, out)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
    os.rename(out, old / out.name)
    try:
        os.rename(staging, out)
    except OSError:
        os.rename(old / out.name, out)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    """Make a rename last; some file systems have no such thing, and the file is whole without it."""
    with contextlib.suppress(OSError):
        _sync(folder)


def reason(error: OSError) -> str:
    """Why, in the system's words."""
    return error.strerror or str(error) or type(error).__name__


def read_limited(path: Path, limit: int, what: str = "a file") -> bytes:
    """The whole of a regular file of at most `limit` bytes; no more than that is ever taken into memory."""
    try:
        require(path.is_file(), f"{path} is not a file: give the path of {what}.")
        size = path.stat().st_size
        require(size <= limit, f"{path} has {size:,} bytes, more than the {limit:,} that are read.")
        with path.open("rb", buffering=0) as stream:
            content = stream.read(size)  # no more than there was: it may be growing
            while len(content) < size and (more := stream.read(size - len(content))):
                content += more
            return content
    except OSError as error:
        raise UserError(f"{path} cannot be read: {reason(error)}.") from error


def plain_numbers(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(each) for each in value]
    return value


def parse_json(text: str | bytes) -> Any:
    """A JSON value; a number that is none (NaN), or that no double holds, is refused. Raises `ValueError` alone."""
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_number)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


def _number(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_number(text[:20])


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(plain_numbers(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_whole(path, text.encode("utf-8", "backslashreplace"))


def read_json(path: Path) -> Any:
    require(os.path.lexists(path), f"{path} is missing.")
    content = read_limited(path, LARGEST_JSON, "a JSON file")
    try:
        return parse_json(content.decode("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} cannot be read as JSON ({error}).") from error


def write_lines(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    write_whole(path, "".join(json_line(entry) for entry in entries).encode("utf-8", "backslashreplace"))


def json_line(entry: Mapping[str, Any]) -> str:
    return json.dumps(plain_numbers(entry), ensure_ascii=False, allow_nan=False) + "\n"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole entries of a file of JSON lines; a torn one is passed over."""
    if not os.path.lexists(path):
        return []
    entries = []
    for line in read_limited(path, LARGEST_JSON, "metrics").split(b"\n"):
        try:
            entry = parse_json(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries


def clear_parts(folder: Path) -> None:
    """Remove what killed processes left half written in a folder."""
    for part in folder.glob(".*.part"):
        if f".{os.getpid()}." not in part.name:
            part.unlink(missing_ok=True)
