"""The cache of simulated sets: made once, kept as compressed bits, the same bits for the same settings."""

import hashlib
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TypeVar

import numpy as np
from rich.console import Console
from rich.progress import track

from bayspike.data.places import writable_root
from bayspike.errors import UserError

T = TypeVar("T")

# what reading a damaged zip (an .npz is one) can raise; RuntimeError is how an unknown compression or a password shows
ARCHIVE_ERRORS = (OSError, EOFError, ValueError, KeyError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)
VERSION = 1  # raise it whenever a simulator changes, so that old caches are not taken for new ones


def cached(
    name: str, settings: Mapping[str, object], root: Path | None, make: Callable[[], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    """The arrays that `make` gives for these settings, from the cache where they are there already."""
    path = cache_path(name, settings, root)
    if path.is_file():
        try:
            with np.load(path, allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}
        except ARCHIVE_ERRORS as error:
            raise UserError(
                f"The cached set {path} is damaged ({error}): delete the file, and it is made anew."
            ) from error
    arrays = make()
    write_npz(path, arrays)
    return arrays


def cache_path(name: str, settings: Mapping[str, object], root: Path | None) -> Path:
    """The file of a simulated set; its name is fixed by the settings and the simulator's version."""
    text = json.dumps({**settings, "version": VERSION}, sort_keys=True)
    return writable_root(root) / "simulated" / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.npz"


def write_npz(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write compressed arrays so that the file is whole or not there at all."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=path.stem, suffix=".part", delete=False) as stream:
            temporary = Path(stream.name)
            np.savez_compressed(stream, **arrays)  # type: ignore[arg-type]
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): name another folder for the data.") from error
    finally:
        if temporary:
            temporary.unlink(missing_ok=True)


def progress(items: Sequence[T], what: str) -> Iterable[T]:
    """The items, with a progress bar on a terminal."""
    console = Console(stderr=True)
    return track(items, what, console=console, transient=True, disable=not console.is_terminal)
