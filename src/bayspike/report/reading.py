"""Reading the files of a run directory without trusting them: bounded sizes, no pickle, plain values only."""

import json
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bayspike.errors import UserError, require

MOST_JSON_BYTES = 256 << 20
MOST_ARRAY_BYTES = 1 << 30

Array = npt.NDArray[Any]


def read_json(path: Path) -> Any:
    """The value in `path`; None where there is no such file."""
    if not path.is_file():
        return None
    size = path.stat().st_size
    require(size <= MOST_JSON_BYTES, f"{path} has {size} bytes, too many for a result; remove or rewrite it.")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise UserError(f"{path} is not readable JSON; remove it or run the experiment again.") from None


def read_mapping(path: Path) -> dict[str, Any]:
    """The JSON object in `path`; empty where there is no such file."""
    value = read_json(path)
    require(value is None or isinstance(value, dict), f"{path} must hold a JSON object.")
    return value or {}


class Arrays:
    """The arrays of one .npz file, each read when asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sizes: dict[str, int] = {}
        if not path.is_file():
            return
        try:
            with zipfile.ZipFile(path) as archive:
                entries = archive.infolist()
        except (zipfile.BadZipFile, OSError):
            raise UserError(f"{path} is not a readable .npz file; remove it or run the experiment again.") from None
        self._sizes = {e.filename.removesuffix(".npy"): e.file_size for e in entries if e.filename.endswith(".npy")}

    def names(self) -> list[str]:
        return sorted(self._sizes)

    def get(self, name: str, dims: int | None = None) -> Array | None:
        """The array called `name`; None where it is absent, empty, not numeric or of another dimension."""
        if name not in self._sizes:
            return None
        require(
            self._sizes[name] <= MOST_ARRAY_BYTES,
            f"{name!r} of {self.path} has {self._sizes[name]} bytes, too many for a report.",
        )
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                array = np.asarray(archive[name])
        except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zipfile.error):
            raise UserError(
                f"{name!r} of {self.path} is not a readable array; remove the file or run the experiment again."
            ) from None
        usable = array.dtype.kind in "fiub" and array.size > 0 and (dims is None or array.ndim == dims)
        return array if usable else None


def number(value: Any) -> float | None:
    """`value` if it is a finite number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        value = float(value)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


def mapping(value: Any) -> Mapping[str, Any]:
    """`value` if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """`value` if it is a list, else an empty one."""
    return value if isinstance(value, list) else []
