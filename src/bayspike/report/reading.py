"""Reading the files of a run directory without trusting them: bounded sizes, no pickle, plain values only."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from bayspike.errors import UserError, require
from bayspike.storage.arrays import array_sizes, read_array
from bayspike.storage.files import parse_json, read_limited

MOST_JSON_BYTES = 256 << 20
MOST_ARRAY_BYTES = 1 << 30

Array = npt.NDArray[Any]


def read_json(path: Path) -> Any:
    """The value in `path`; None where there is no such file."""
    if not path.is_file():
        return None
    content = read_limited(path, MOST_JSON_BYTES, "a result")
    try:
        return parse_json(content.decode("utf-8"))
    except ValueError:
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
            self._sizes = array_sizes(path)
        except UserError:
            raise UserError(f"{path} is not a readable .npz file; remove it or run the experiment again.") from None

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
            array = read_array(self.path, name, MOST_ARRAY_BYTES)
        except UserError:
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
