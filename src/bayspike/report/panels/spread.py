"""How unsure a posterior is: of each of its inputs after every task, as pictures, and of all its synapses."""

from typing import Any

import numpy as np

from bayspike.report.markup import Plot, label, rounded
from bayspike.report.reading import Array
from bayspike.report.runs import Job

MOST_PICTURES = 6
COLUMNS = 3  # so that they can be made out on a phone


def spread_pictures(job: Job) -> Plot | None:
    """One picture for each task (of many: the first, the last and some between), on one scale; None for a point."""
    spread = spread_by_task(job)
    if spread is None:
        return None
    named = len(job.task_names) == len(spread)
    names = [label(job.task_names[k] if named else f"task {k + 1}") for k in range(len(spread))]
    shown = np.unique(np.linspace(0, len(spread) - 1, min(len(spread), MOST_PICTURES)).round().astype(int))
    columns = min(len(shown), COLUMNS)
    rows = -(-len(shown) // columns)
    bare = {"showticklabels": False, "ticks": "", "showgrid": False, "zeroline": False, "showline": False}
    # From the surest to the least sure, so that what was learnt is seen; differences below a twentieth stay faint.
    highest = float(spread.max())
    lowest = min(float(spread.min()), 0.95 * highest)
    square = {"constrain": "domain"} if spread.shape[1] > 1 else {}
    traces: list[dict[str, Any]] = []
    axes: dict[str, Any] = {"showlegend": False}
    for place, k in enumerate(shown):
        row, column = divmod(place, columns)
        x, y = (f"{axis}{place + 1}" if place else axis for axis in "xy")
        traces.append(
            {
                "type": "heatmap",
                "z": rounded(spread[k], 4),
                "zmin": lowest,
                "zmax": highest,
                "colorscale": "Viridis",
                "showscale": place == len(shown) - 1,
                "colorbar": {"orientation": "h", "thickness": 10, "y": -0.06, "yanchor": "top"},
                "xaxis": x,
                "yaxis": y,
                "hovertemplate": f"σ %{{z}}<extra>{names[k]}</extra>",
            }
        )
        across = {"domain": [column / columns, (column + 0.94) / columns], "title": {"text": names[k]}, "anchor": y}
        across |= square
        top = 1 - row / rows
        down = {"autorange": "reversed", "anchor": x, "domain": [top - (0.84 if rows > 1 else 1) / rows, top]}
        down |= square | ({"scaleanchor": x} if square else {})
        axes |= {x.replace("x", "xaxis"): {**bare, **across}, y.replace("y", "yaxis"): {**bare, **down}}
    axes["margin"] = {"l": 10, "r": 10, "t": 10, "b": 90}
    return Plot(traces, axes, height=110 + (210 if square else 70) * rows)


def spread_by_task(job: Job) -> Array | None:
    """Root mean variance of the first layer's synapses, `(tasks, height, width)`; planes of a picture are averaged."""
    spread, shape = job.arrays.get("spread", 2), job.arrays.get("sample_shape", 1)
    if spread is None or not spread.any():
        return None
    sides = [int(side) for side in shape] if shape is not None else []
    if len(sides) < 2 or int(np.prod(sides)) != spread.shape[1]:
        return np.asarray(spread[:, None, :])
    return np.asarray(spread.reshape(len(spread), -1, *sides[-2:]).mean(axis=1))
