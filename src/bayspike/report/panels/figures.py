"""The run's figures with their captions, as pictures inside the page."""

import base64
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from bayspike.report.markup import Page, Part, Section
from bayspike.report.reading import sequence
from bayspike.report.runs import Comparison, Run

MOST_BYTES = 12 << 20  # of all pictures together; beyond it only the captions are shown
PNG = b"\x89PNG\r\n\x1a\n"


class Picture(NamedTuple):
    """A figure with its PNG in base64, if there is one; its size keeps its place while it is not drawn yet."""

    title: str
    caption: str
    png: str | None
    simulated: bool
    width: int = 0
    height: int = 0


@dataclass(frozen=True)
class Pictures(Part):
    """The figures, one below the other."""

    template = "pictures.html"
    pictures: Sequence[Picture]


def panel(comparison: Comparison, page: Page) -> Section | None:
    del page
    pictures, left = [], MOST_BYTES
    for run in comparison.runs:
        for entry in run.figures:
            content = _picture(run, entry, left)
            png = None if content is None else base64.b64encode(content).decode()
            left -= len(png or "")
            width, height = struct.unpack(">II", content[16:24]) if content else (0, 0)
            name = str(entry.get("name", "figure"))
            title = name if len(comparison.runs) == 1 else f"{run.name}: {name}"
            pictures.append(Picture(title, str(entry.get("caption", "")), png, run.simulated, width, height))
    if not pictures:
        return None
    lead = "Drawn for print; the same files, with their numbers as CSV, are in the run's folder <code>figures</code>."
    return Section("figures", "Figures", Markup(lead), [Pictures(pictures)])


def _picture(run: Run, entry: dict[str, Any], most: int) -> bytes | None:
    """The figure's PNG. Only plain names inside the run's own folder are followed."""
    folder = run.path / "figures"
    for file in sequence(entry.get("files")):
        name = Path(str(file)).name
        path = folder / name
        if not name.endswith(".png") or path.is_symlink() or not path.is_file() or path.stat().st_size * 4 > most * 3:
            continue
        content = path.read_bytes()
        if content.startswith(PNG) and len(content) > 24:
            return content
    return None
