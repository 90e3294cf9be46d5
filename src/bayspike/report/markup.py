"""Pieces of the page. No string from a run is trusted: each passes through `text` (HTML), `label` (plotly) or JSON."""

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

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

    def add_plot(self, plot: Plot) -> str:
        """Keep the plot's data and return the element that will hold it."""
        name = f"plot-{len(self.plots)}"
        spec: dict[str, Any] = {"data": plot.traces, "layout": plot.layout}
        if plot.steps is not None:
            spec["steps"] = plot.steps
        self.plots[name] = spec
        return f'<div class="plot" id="{name}" style="height:{int(plot.height)}px"></div>'


def text(value: Any) -> str:
    """Any value as HTML text, safe in elements and in quoted attributes."""
    return html.escape(shorten(value), quote=True)


def label(value: Any, longest: int = LONGEST_LABEL) -> str:
    """Any value as text in a plot: plotly reads a little HTML, so what looks like it is written as entities."""
    return html.escape(shorten(value, longest), quote=False)


def shorten(value: Any, longest: int = LONGEST_TEXT) -> str:
    string = str(value)
    return string if len(string) <= longest else string[: longest - 1] + "…"


def embed_json(value: Any) -> str:
    """JSON that may stand inside a script element: no `<`, `>` or `&` survives, NaN becomes null."""
    packed = json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)
    return packed.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value


def rounded(values: Any, digits: int = 3) -> list[Any]:
    """An array as nested lists of short numbers; NaN becomes null on the page."""
    return np.round(np.asarray(values, dtype=np.float64), digits).tolist()  # type: ignore[no-any-return]


def section(name: str, title: str, lead: str, body: str) -> str:
    """A panel; `lead` is our own text, one or two sentences."""
    return (
        f'<section id="{text(name)}"><h2>{text(title)}</h2>'
        + (f'<p class="lead">{lead}</p>' if lead else "")
        + body
        + "</section>"
    )


def card(title: str, body: str, *, views: Sequence[str] = (), simulated: Simulated = False, wide: bool = False) -> str:
    """A titled box. `views` names the choices of the predictor menu under which it is shown; none: always."""
    return (
        f'<figure class="card{" wide" if wide else ""}"{_views(views)}><figcaption>{text(title)}{badge(simulated)}'
        f'<span class="note"></span></figcaption>{body}</figure>'
    )


def badge(simulated: Simulated) -> str:
    """A flag on whatever shows simulated data; "partly" where it shows real ones as well."""
    words = "partly simulated data" if simulated == "partly" else "simulated data"
    return f' <span class="badge">{words}</span>' if simulated else ""


class Cell(NamedTuple):
    """A table cell of markup; `value` is what it sorts by, unrounded, `key` what it is."""

    content: str
    value: float | None = None
    key: str = ""
    heading: bool = False


class Row(NamedTuple):
    """Cells, and the choices of the predictor menu under which they are shown; none: always."""

    cells: Sequence[Cell]
    views: Sequence[str] = ()
    kind: str = ""  # a class of the style sheet


def table(head: Sequence[str], rows: Sequence[Row], *, name: str = "", sortable: bool = False) -> str:
    """A table; columns that hold a number are set to the right. Headings are text."""
    numeric = [any(row.cells[k].value is not None for row in rows) for k in range(len(head))]
    heading = "".join(f'<th scope="col"{_aligned(n)}>{text(h)}</th>' for h, n in zip(head, numeric, strict=True))
    body = "".join(_row(row, numeric) for row in rows)
    identity = f' id="{text(name)}"' if name else ""
    return (
        f'<div class="scroll"><table{" class=sortable" if sortable else ""}{identity}>'
        f"<thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(row: Row, numeric: Sequence[bool]) -> str:
    cells = "".join(_cell(each, n) for each, n in zip(row.cells, numeric, strict=True))
    return f"<tr{_views(row.views)}{_kind(row.kind)}>{cells}</tr>"


def _cell(cell: Cell, numeric: bool) -> str:
    tag, scope = ("th", ' scope="row"') if cell.heading else ("td", "")
    value = f' data-value="{cell.value!r}"' if cell.value is not None else ""
    key = f' data-key="{text(cell.key)}"' if cell.key else ""
    return f"<{tag}{scope}{_aligned(numeric)}{value}{key}>{cell.content}</{tag}>"


def _kind(kind: str) -> str:
    return f' class="{kind}"' if kind else ""


def _aligned(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _views(views: Sequence[str]) -> str:
    return f' data-views="{html.escape(json.dumps(list(views)))}"' if views else ""


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
