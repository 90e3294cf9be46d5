"""Files that are whole or not there.

Everything is written beside its final name, flushed to the disk and moved into place, so a kill at any instant leaves
the old file or the new one. Reading never runs code: JSON, and arrays without pickled objects.
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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require

# what reading a damaged zip (an .npz is one) can raise; RuntimeError is how an unknown compression or a password shows
ARCHIVE_ERRORS = (OSError, EOFError, ValueError, KeyError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)
LARGEST_JSON = 2**28  # bytes that are read


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to; when the block ends well its file takes the place of `path`, flushed to the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        with beside.open("rb") as stream:
            os.fsync(stream.fileno())
        os.replace(beside, path)
        _sync_folder(path.parent)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing_folder(out: Path) -> Iterator[Path]:
    """A folder to write files to; when the block ends well it takes the place of `out`, flushed to the disk.

    An old folder is moved away first and removed last.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield staging
        staging.chmod(0o755)
        for path in staging.iterdir():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
        _sync_folder(staging)
        _move(staging, out)
        _sync_folder(out.parent)
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
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def plain_numbers(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): plain_numbers(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_numbers(each) for each in value]
    return value


def write_json(path: Path, value: Any) -> None:
    with replacing(path) as beside:
        beside.write_text(
            json.dumps(plain_numbers(value), indent=1, ensure_ascii=False, allow_nan=False) + "\n", "utf-8"
        )


def read_json(path: Path) -> Any:
    try:
        require(path.is_file(), f"{path} is missing.")
        require(path.stat().st_size <= LARGEST_JSON, f"{path} is larger than the {LARGEST_JSON:,} bytes that are read.")
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path} cannot be read as JSON ({error}).") from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    with replacing(path) as beside, beside.open("wb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **dict(arrays))


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except Exception as error:  # a damaged zip fails in a dozen ways
        raise UserError(f"{path} cannot be read as arrays ({error}).") from error


def write_lines(path: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    with replacing(path) as beside:
        beside.write_text("".join(json_line(entry) for entry in entries), "utf-8")


def json_line(entry: Mapping[str, Any]) -> str:
    return json.dumps(plain_numbers(entry), ensure_ascii=False, allow_nan=False) + "\n"


def read_lines(path: Path) -> list[dict[str, Any]]:
    """All whole entries of a file of JSON lines; a torn last one is passed over."""
    if not path.is_file():
        return []
    entries = []
    for line in path.read_bytes().split(b"\n"):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            entries.append(entry)
    return entries
