"""Distribution of the mean parameters at the end of training (paper, Fig. weights_distrib)."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayspike.errors import require
from bayspike.figures.output import Figure, Table, field, numbers, require_panels, write_figure
from bayspike.figures.style import BLUE, COLUMN, new_sheet, styled, width_of


def count_means(means: Any, bins: int = 101, step: float | None = None) -> dict[str, Any]:
    """What the figure needs of any number of parameters: `edges`, `counts` and the share of `nonzero` ones.

    There are at most `bins` bins, the middle one centred on zero. For parameters on a fixed-point grid give
    its `step`: each bin then holds equally many grid points, without which the histogram would be ragged.
    """
    require(bins >= 3, f"bins must be at least 3, but is {bins}.")
    require(step is None or step > 0, f"step must be above zero, but is {step!r}.")
    flat = numbers(np.ravel(means), "means", 1)
    limit = float(np.abs(flat).max()) or 1.0
    half = (bins - 1) // 2  # bins on each side of the middle one
    width = limit / half
    if step is not None:
        points = max(1, math.ceil(width / step - 1e-9))
        width = (points + 1 - points % 2) * step  # an odd number of points, so that no edge falls on one
        half = math.ceil(limit / width - 0.5)
    counts, edges = np.histogram(flat, 2 * half + 1, (-(half + 0.5) * width, (half + 0.5) * width))
    return {
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "nonzero": float(np.count_nonzero(flat) / flat.size),
    }


@styled
def mean_parameters(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Any]],
    *,
    name: str = "mean_parameters",
    simulated: bool = False,
) -> Figure:
    """One panel per data set; a result is what `count_means` returns."""
    require_panels(results, "results")
    sheet = new_sheet(width_of(len(results), COLUMN, 0.0, least=1.5), 2.1)
    grid = sheet.subplots(1, len(results), squeeze=False, sharey=True)[0]
    rows: list[tuple[Any, ...]] = []
    for axes, (data, result) in zip(grid, results.items(), strict=True):
        edges = numbers(field(result, "edges", data), f"edges of {data}", 1)
        counts = numbers(field(result, "counts", data), f"counts of {data}", 1)
        share = float(field(result, "nonzero", data))
        require(
            len(edges) == len(counts) + 1 and counts.sum() > 0,
            f"edges of {data!r} must be one more than its counts, which must count some parameter.",
        )
        require(0 <= share <= 1, f"nonzero of {data!r} must lie in [0, 1], but is {share!r}.")
        axes.stairs(counts / counts.sum(), edges, fill=True, color=BLUE, alpha=0.45)
        axes.stairs(counts / counts.sum(), edges, color=BLUE, linewidth=0.8)
        axes.set_yscale("log")
        axes.set(title=f"{data}: {100 * share:.1f} % non-zero", xlabel="mean parameter $m$")
        axes.grid(axis="y")
        rows += [
            (data, f"{edges[k]:.6g}", f"{edges[k + 1]:.6g}", int(counts[k]), f"{share:.6g}") for k in range(len(counts))
        ]
    grid[0].set_ylabel("share of parameters")
    caption = (
        "Distribution of the mean parameter m at the end of training, logarithmic scale, with the share of parameters "
        "that are not zero."
    )
    table = Table(("data", "from", "to", "parameters", "share_nonzero"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)
