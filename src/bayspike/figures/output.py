"""Writing a figure: PNG, SVG, the numbers behind it as CSV, and its caption as text.

Every file is written beside its final name and moved there when whole, so that a killed run leaves either the
old file or the new one.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bayspike.errors import UserError, require
from bayspike.storage.files import write_whole

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Figure:
    """A written figure: its name, its caption and where its files are."""

    name: str
    caption: str
    png: Path
    svg: Path
    csv: Path
    text: Path
    simulated: bool


class Table(NamedTuple):
    """The numbers of a figure in long form: one observation a row."""

    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]


def write_figure(
    sheet: Any, directory: str | Path, name: str, caption: str, table: Table, *, simulated: bool = False
) -> Figure:
    """Write all four files of `sheet` into `directory`, making it if needed."""
    require(
        name != "" and Path(name).name == name and not name.startswith("."),
        f"figure name {name!r} must be a plain file name without a folder.",
    )
    if simulated:
        caption = f"Simulated data. {caption}"
        sheet.suptitle("Simulated data", style="italic")
    folder = Path(directory)
    paths = {ending: folder / f"{name}.{ending}" for ending in ("png", "svg", "csv", "txt")}
    write_whole(paths["png"], _rendered(sheet, "png", {"Software": None}))
    sheet.set_layout_engine("none")  # keep the layout just made: the same in both, and made once
    write_whole(paths["svg"], _rendered(sheet, "svg", {"Date": None, "Creator": None}))
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(table.rows)
    write_whole(paths["csv"], text.getvalue().encode())
    write_whole(paths["txt"], (caption + "\n").encode())
    return Figure(name, caption, paths["png"], paths["svg"], paths["csv"], paths["txt"], simulated)


def _rendered(sheet: Any, kind: str, metadata: Mapping[str, Any]) -> bytes:
    buffer = io.BytesIO()
    sheet.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def numbers(values: Any, name: str, dims: int, *, allow_nan: bool = False) -> Array:
    """`values` as a float array of `dims` dimensions, refused if empty, of another shape, or not finite."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{name} must be numbers in a regular array.") from None
    require(
        array.ndim == dims and array.size > 0,
        f"{name} must be a non-empty array of {dims} dimension(s), but has shape {array.shape}.",
    )
    finite = np.isfinite(array) | (np.isnan(array) if allow_nan else False)
    require(bool(np.all(finite)), f"{name} must be finite numbers.")
    return array


def field(result: Mapping[str, Any], key: str, where: str) -> Any:
    """`result[key]`, or a sentence that names what is missing from the saved result."""
    if key not in result:
        raise UserError(f"the result for {where!r} has no {key!r}; it has {sorted(result)}.")
    return result[key]


def require_panels(panels: Mapping[Any, Any], name: str) -> None:
    require(len(panels) > 0, f"{name} is empty: there is nothing to draw.")
