"""One look for all figures: Okabe and Ito's colour-blind-safe colours, and never colour alone.

Each series also has its own line style, marker and hatching, so that every figure can be read in
greyscale. Sizes are those of a paper: a sheet is at most 7.2 inches (two columns) wide, text is 8 points.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

import matplotlib
from matplotlib.figure import Figure as Sheet

WIDTH = 7.2  # inches, two columns
COLUMN = 3.5  # inches, one column

BLACK, GREY, LIGHT = "#000000", "#666666", "#d9d9d9"
PALE = "#9CC9E3"  # a light blue that other marks can be drawn over
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
VERMILION, SKY = "#D55E00", "#56B4E9"

OWN_COLOUR, FOREIGN_COLOUR = BLUE, VERMILION

_RC = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same text everywhere
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.titlesize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "grid.linewidth": 0.4,
    "grid.color": LIGHT,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "savefig.dpi": 300,
    "svg.fonttype": "path",
    "svg.hashsalt": "bayspike",  # the same data give the same file
}

P = ParamSpec("P")
R = TypeVar("R")


class SeriesStyle(NamedTuple):
    """How one series is told from the others, with and without colour."""

    colour: str
    line: Any
    marker: str
    hatch: str


_SERIES = (
    SeriesStyle(VERMILION, (0, (4, 1.5)), "s", "////"),
    SeriesStyle(BLUE, "-", "o", ""),
    SeriesStyle(GREEN, (0, (1, 1.2)), "^", "...."),
    SeriesStyle(ORANGE, (0, (5, 1.2, 1, 1.2)), "D", "xxxx"),
    SeriesStyle(PURPLE, (0, (3, 1, 1, 1, 1, 1)), "v", "\\\\\\\\"),
    SeriesStyle(SKY, (0, (8, 2)), "P", "----"),
    SeriesStyle(BLACK, (0, (1, 3)), "X", "++++"),
)
# The paper's order of tasks: blue, red, green, purple, yellow.
_TASKS = tuple(_SERIES[i] for i in (1, 0, 2, 4, 3, 5, 6))
MOST_TASKS = len(_TASKS)


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Run a drawing function with the style set, and leave matplotlib's settings as they were."""

    @wraps(draw)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with matplotlib.rc_context({**matplotlib.rcParamsDefault, "backend": "agg", **_RC}):
            return draw(*args, **kwargs)

    return run


def width_of(columns: int, each: float, extra: float, least: float = 1.9) -> float:
    """A page at most, as long as every column keeps `least` inches: narrower, titles would run into each other."""
    return max(min(WIDTH, extra + each * columns), extra + least * columns)


def new_sheet(width: float, height: float) -> Any:
    """An empty sheet that lays itself out; not registered with pyplot, so nothing is left open."""
    return Sheet(figsize=(width, height), layout="constrained")


def series_style(index: int) -> SeriesStyle:
    """Style of the index-th method: the first (by custom the frequentist) is dashed, the second solid."""
    return _SERIES[index % len(_SERIES)]


def task_style(index: int, tasks: int) -> SeriesStyle:
    """Style of the index-th task; many tasks run through one colour scale from dark to light."""
    if tasks <= MOST_TASKS:
        return _TASKS[index]
    colour = matplotlib.colors.to_hex(matplotlib.colormaps["viridis"](0.92 * index / (tasks - 1)))
    return SeriesStyle(colour, "-", "", "")


def plot_line(axes: Any, x: Any, y: Any, style: SeriesStyle, label: str | None = None, **kwargs: Any) -> None:
    """A line with a few markers spread along it, so that styles can be told apart without crowding."""
    every = max(1, len(x) // 8)
    options = {"markevery": (every // 2, every), "color": style.colour, "linestyle": style.line}
    axes.plot(x, y, marker=style.marker, label=label, **{**options, **kwargs})
