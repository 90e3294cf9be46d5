"""Confidence maps on two-moons (paper, Fig. twomoons_exp)."""

from typing import Any

import numpy as np

from bayspike.report.markup import Card, Cards, Page, Plot, Section, rounded
from bayspike.report.reading import Array
from bayspike.report.runs import Comparison, Job, Series, assign_views

# Purple for class 0, orange for class 1, pale where the model is unsure; readable without telling red from green.
SCALE = [[0, "#5e3c99"], [0.25, "#b2abd2"], [0.5, "#f7f7f7"], [0.75, "#fdb863"], [1, "#e66101"]]


def panel(comparison: Comparison, page: Page) -> Section | None:
    cards = []
    found = {series: each for series in comparison.series if (each := confidence_map(series)) is not None}
    shown = assign_views(comparison, list(found))
    for series, (p, x, y) in found.items():
        job = series.jobs[0]
        place = page.add_plot(_plot(p, x, y, job))
        title = f"{series.name}" + (f" (seed {job.seed})" if len(series.jobs) > 1 else "")
        cards.append(Card(title, place, views=shown[series], simulated=series.run.simulated))
    if not cards:
        return None
    lead = (
        "Colour tells the predicted class, its intensity the confidence; the line is where both are equally probable. "
        "A model that knows its limits grows pale away from the training points (triangles: class 0, circles: class 1)."
    )
    return Section("two-moons", "Confidence maps", lead, [Cards(cards)])


def confidence_map(series: Series) -> tuple[Array, Array, Array] | None:
    """Probability of class 1 on the grid `(gy, gx)` and the grid's x and y, of the first seed."""
    arrays = series.jobs[0].arrays
    grid, x, y = arrays.get(f"grid/{series.predictor}", 3), arrays.get("grid_x", 1), arrays.get("grid_y", 1)
    if grid is None or x is None or y is None or grid.shape != (len(y), len(x), 2):
        return None
    return grid[..., 1], x, y


def _plot(p: Array, x: Array, y: Array, job: Job) -> Plot:
    place = {"x": rounded(x), "y": rounded(y), "z": rounded(p)}
    traces: list[dict[str, Any]] = [
        {
            **place,
            "type": "heatmap",
            "zmin": 0,
            "zmax": 1,
            "zsmooth": "best",
            "colorscale": SCALE,
            "colorbar": {"thickness": 10, "outlinewidth": 0, "title": {"text": "P(1)"}},
            "hovertemplate": "(%{x:.2f}, %{y:.2f}): P(class 1) = %{z:.3f}<extra></extra>",
        },
        {
            **place,
            "type": "contour",
            "contours": {"start": 0.5, "end": 0.5, "size": 1, "coloring": "none"},
            "line": {"color": "#000000", "width": 1.5},
            "showscale": False,
            "hoverinfo": "skip",
        },
    ]
    points, labels = job.arrays.get("points", 2), job.arrays.get("point_labels", 1)
    if points is not None and labels is not None and points.shape == (len(labels), 2):
        for kind, symbol in ((0, "triangle-up"), (1, "circle")):
            chosen = points[np.asarray(labels) == kind]
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "x": rounded(chosen[:, 0]),
                    "y": rounded(chosen[:, 1]),
                    "marker": {
                        "symbol": symbol,
                        "size": 5,
                        "color": "#ffffff",
                        "line": {"color": "#000000", "width": 0.8},
                    },
                    "hoverinfo": "skip",
                }
            )
    layout = {
        "showlegend": False,
        "xaxis": {"range": [float(x.min()), float(x.max())], "showgrid": False, "zeroline": False},
        "yaxis": {"range": [float(y.min()), float(y.max())], "showgrid": False, "zeroline": False},
    }
    return Plot(traces, layout, height=300)
