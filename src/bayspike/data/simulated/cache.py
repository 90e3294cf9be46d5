"""The cache of simulated sets: made once, kept as compressed bits, the same bits for the same settings."""

import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np

from bayspike.data.places import writable_root
from bayspike.errors import UserError, require
from bayspike.storage.arrays import read_arrays, write_arrays

VERSION = 1  # raise it whenever a simulator changes, so that old caches are not taken for new ones


def cached(
    name: str,
    settings: Mapping[str, object],
    root: Path | None,
    make: Callable[[], dict[str, np.ndarray]],
    names: Collection[str],
) -> dict[str, np.ndarray]:
    """The arrays called `names` that `make` gives for these settings, from the cache where they are there already."""
    path = cache_path(name, settings, root)
    if path.is_file():
        try:
            arrays = read_arrays(path)
            require(set(arrays) == set(names), f"it holds {', '.join(sorted(arrays)) or 'nothing'}")
        except UserError as error:
            raise UserError(
                f"The cached set {path} is damaged ({error}): delete the file, and it is made anew."
            ) from error
        return arrays
    arrays = make()
    write_arrays(path, arrays)
    return arrays


def cache_path(name: str, settings: Mapping[str, object], root: Path | None) -> Path:
    """The file of a simulated set; its name is fixed by the settings and the simulator's version."""
    text = json.dumps({**settings, "version": VERSION}, sort_keys=True)
    return writable_root(root) / "simulated" / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.npz"
