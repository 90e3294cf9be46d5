"""Confidence maps on two-moons (paper, Fig. twomoons_exp): the frequentist beside Bayesian ones over rho."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from bayspike.errors import require
from bayspike.figures.output import Figure, Table, numbers, require_panels, write_figure
from bayspike.figures.style import BLACK, WIDTH, new_sheet, styled


@styled
def confidence_maps(
    directory: str | Path,
    maps: Mapping[str, Mapping[str, Any]],
    points: Any,
    labels: Any,
    extent: tuple[float, float, float, float],
    *,
    name: str = "two_moons",
    simulated: bool = False,
) -> Figure:
    """One row per kind of synapse, one column per model.

    `maps[synapses][model]` is the probability of class 1 on a grid `(rows, columns)` whose first row is
    the lowest; `extent` is (left, right, bottom, top) of the grid. `points` `(n, 2)` and `labels` `(n,)`
    are the training data: triangles for class 0, circles for class 1.
    """
    require_panels(maps, "maps")
    points, labels = numbers(points, "points", 2), numbers(labels, "labels", 1)
    require(
        points.shape == (labels.shape[0], 2),
        f"points must have shape ({labels.shape[0]}, 2) to match the labels, but have {points.shape}.",
    )
    columns = max(len(row) for row in maps.values())
    across, up = extent[1] - extent[0], extent[3] - extent[2]
    panel = (WIDTH - 1.3) / columns
    sheet = new_sheet(WIDTH, len(maps) * (panel * up / across + 0.08) + 0.35)
    grid = sheet.subplots(len(maps), columns, squeeze=False, sharex=True, sharey=True)
    rows: list[tuple[Any, ...]] = []
    image = None
    for i, (synapses, models) in enumerate(maps.items()):
        for j in range(columns):
            grid[i, j].set_visible(j < len(models))
        for j, (model, values) in enumerate(models.items()):
            axes = grid[i, j]
            p = numbers(values, f"map of {synapses}, {model}", 2)
            require(bool(((p >= 0) & (p <= 1)).all()), f"map of {synapses}, {model} must lie in [0, 1].")
            image = axes.imshow(p, extent=extent, origin="lower", cmap="PuOr", vmin=0, vmax=1, interpolation="bilinear")
            if p.min() < 0.5 < p.max():
                axes.contour(p, [0.5], extent=extent, origin="lower", colors=BLACK, linewidths=0.8)
            for label, marker in ((0, "^"), (1, "o")):
                x, y = points[labels == label].T
                axes.scatter(x, y, s=5, marker=marker, facecolor="white", edgecolor=BLACK, linewidth=0.35)
            axes.set(xlim=extent[:2], ylim=extent[2:], xticks=[], yticks=[])
            for side in ("top", "right"):
                axes.spines[side].set_visible(True)
            if i == 0 or list(models) != list(next(iter(maps.values()))):
                axes.set_title(model, pad=3)
            rows += _cells(synapses, model, p, extent)
        grid[i, 0].set_ylabel(fill(synapses, 14))
    bar = sheet.colorbar(image, ax=grid, shrink=0.8, aspect=25, pad=0.015, ticks=[0, 0.25, 0.5, 0.75, 1])
    bar.set_ticklabels(["1 △", "0.75 △", "0.5", "0.75 ○", "1 ○"])
    bar.set_label("confidence", fontsize=7)
    bar.outline.set_linewidth(0.4)
    caption = (
        "Predictive probabilities on two-moons. Colour tells the predicted class and its intensity the "
        "confidence; the line is where both classes are equally probable. Triangles: training points of "
        "class 0; circles: class 1, as beside the scale. Rows: " + "; ".join(maps) + "."
    )
    table = Table(("synapses", "model", "x", "y", "probability_of_class_1"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


def _cells(synapses: str, model: str, p: Any, extent: tuple[float, float, float, float]) -> list[tuple[Any, ...]]:
    height, width = p.shape
    xs = [extent[0] + (k + 0.5) * (extent[1] - extent[0]) / width for k in range(width)]
    ys = [extent[2] + (k + 0.5) * (extent[3] - extent[2]) / height for k in range(height)]
    return [
        (synapses, model, f"{x:.6g}", f"{y:.6g}", f"{p[r, c]:.6g}") for r, y in enumerate(ys) for c, x in enumerate(xs)
    ]
