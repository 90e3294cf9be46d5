"""Pieces of the page: what the panels say, as values, and the templates that write it down.

No string from a run is trusted: the templates escape each one, `label` does so for plotly, and JSON for the scripts.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

LONGEST_TEXT = 400
LONGEST_LABEL = 40  # in a plot, where a longer one would push the axes away


Simulated = bool | Literal["partly"]


@dataclass(frozen=True)
class Plot:
    """A plotly figure. Colours may be tokens such as "@c0" or "@ink:0.3", which the page turns into the theme's.

    `steps`, if given, are what changes with t: `{"traces": {index: {key: [value for every t]}}, "notes": [text for
    every t]}`.
    """

    traces: list[dict[str, Any]]
    layout: dict[str, Any]
    steps: dict[str, Any] | None = None
    height: int = 300


@dataclass
class Page:
    """What the panels collect besides their markup: the data of the plots and of the sample streams."""

    plots: dict[str, dict[str, Any]] = field(default_factory=dict)
    streams: list[dict[str, Any]] = field(default_factory=list)

    def add_plot(self, plot: Plot) -> "Placed":
        """Keep the plot's data and return the place that it will take."""
        spec: dict[str, Any] = {"data": plot.traces, "layout": plot.layout}
        if plot.steps is not None:
            spec["steps"] = plot.steps
        placed = Placed(f"plot-{len(self.plots)}", plot.height)
        self.plots[placed.name] = spec
        return placed


class Placed(NamedTuple):
    """The element in which the page draws a plot."""

    name: str
    height: int


@cache
def templates() -> Environment:
    """The templates: every value is escaped, and one that is not there is an error."""
    found = Environment(
        loader=PackageLoader("bayspike.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["short"] = short
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    return found


def label(value: Any, longest: int = LONGEST_LABEL) -> str:
    """Any value as text in a plot: plotly reads a little HTML, so what looks like it is written as entities."""
    return html.escape(short(value, longest), quote=False)


def short(value: Any, longest: int = LONGEST_TEXT) -> str:
    string = str(value)
    return string if len(string) <= longest else string[: longest - 1] + "…"


def plain(value: Any) -> Any:
    """What JSON can hold: arrays become lists, and NaN null."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def rounded(values: Any, digits: int = 3) -> list[Any]:
    """An array as nested lists of short numbers; NaN becomes null on the page."""
    return np.round(np.asarray(values, dtype=np.float64), digits).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Part:
    """Anything a section is made of; its class names the template that writes it."""

    template: ClassVar[str]


@dataclass(frozen=True)
class Section:
    """A panel; `lead` is our own text, one or two sentences."""

    name: str
    title: str
    lead: str | Markup
    parts: Sequence[Part]


@dataclass(frozen=True)
class Card:
    """A titled box. `views` names the choices of the predictor menu under which it is shown; none: always."""

    title: str
    plot: Placed
    views: Sequence[str] = ()
    simulated: Simulated = False
    wide: bool = False


@dataclass(frozen=True)
class Cards(Part):
    """Boxes beside each other, and below them those that take the whole width."""

    template = "cards.html"
    cards: Sequence[Card]
    below: Sequence[Card] = ()


@dataclass(frozen=True)
class Paragraph(Part):
    """A heading, if there is one, and a text of a kind that the style sheet knows."""

    template = "paragraph.html"
    text: str
    heading: str = ""
    kind: str = "lead"


class Cell(NamedTuple):
    """A table cell; `value` is what it sorts by, unrounded, `key` what it is, `tag` a remark behind its text."""

    text: str
    value: float | None = None
    key: str = ""
    heading: bool = False
    simulated: Simulated = False
    tag: str = ""


class Row(NamedTuple):
    """Cells, and the choices of the predictor menu under which they are shown; none: always."""

    cells: Sequence[Cell]
    views: Sequence[str] = ()
    kind: str = ""  # a class of the style sheet


@dataclass(frozen=True)
class Table(Part):
    """A table; columns that hold a number are set to the right."""

    template = "table.html"
    head: Sequence[str]
    rows: Sequence[Row]
    name: str = ""
    sortable: bool = False
    foot: Sequence[Row] = ()  # rows that stay at the bottom, however the others are sorted
    foot_title: str = ""

    @property
    def numeric(self) -> list[bool]:
        return [any(row.cells[k].value is not None for row in self.rows) for k in range(len(self.head))]


def with_spread(mean: float | None, std: float | None, *, percent: bool = False, digits: int = 3) -> str:
    """`91.2 ± 0.4 %` or `0.031 ± 0.002`; a dash where there is nothing."""
    if mean is None:
        return "–"
    scale, places, unit = (100.0, 2, " %") if percent else (1.0, digits, "")
    spread = f" ± {std * scale:.{places}f}" if std is not None else ""
    return f"{mean * scale:.{places}f}{spread}{unit}".replace("-", "−")


def whole(value: float | None) -> str:
    return "–" if value is None else f"{round(value):,}".replace(",", "\u202f")


def size(value: float | None) -> str:
    """A number of bytes in the unit that fits."""
    if value is None:
        return "–"
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"


def energy(joules: float) -> str:
    return f"{joules * 1e6:.3g} µJ" if joules < 1e-3 else f"{joules * 1e3:.3g} mJ"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
