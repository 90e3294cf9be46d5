"""Accuracy and ECE of every task over training, the current task bold (paper, Fig. continual-exp)."""

from typing import Any

import numpy as np

from bayspike.report.markup import Card, Cards, Page, Plot, Section, label, rounded
from bayspike.report.measures import Training, training
from bayspike.report.runs import Comparison, assign_views

MOST_LEGEND = 8
MOST_TASKS = 20  # with a curve each; of longer streams the course tells more


def panel(comparison: Comparison, page: Page) -> Section | None:
    cards = []
    found = {series: curves for series in comparison.series if (curves := training(series)) is not None}
    found = {
        series: curves
        for series, curves in found.items()
        if len(curves.batch) > 1 and curves.accuracy.shape[1] <= MOST_TASKS
    }
    shown = assign_views(comparison, list(found))
    for series, curves in found.items():
        tasks = curves.accuracy.shape[1]
        names = series.jobs[0].task_names
        names = names if len(names) == tasks else [f"task {k + 1}" for k in range(tasks)]
        place = page.add_plot(_plot(curves, names))
        title = series.name + (f" (mean of {curves.seeds} seeds)" if curves.seeds > 1 else "")
        cards.append(Card(title, place, views=shown[series], simulated=series.run.simulated))
    if not cards:
        return None
    lead = (
        "Accuracy (above) and expected calibration error (below) of every task on test data while training goes on; "
        "bold: the task being trained."
    )
    return Section("training", "Training", lead, [Cards(cards)])


def _plot(curves: Training, names: list[str]) -> Plot:
    traces: list[dict[str, Any]] = []
    tasks = len(names)
    x = rounded(curves.batch, 2)
    for k, name in enumerate(names):
        now = curves.current == k
        bold = now.copy()
        bold[:-1] |= now[1:]  # the stretch that ends at a moment was trained on that moment's task
        for axis, values in (("y", curves.accuracy[:, k]), ("y2", curves.ece[:, k])):
            line = {
                "type": "scatter",
                "mode": "lines",
                "x": x,
                "yaxis": axis,
                "name": label(name),
                "legendgroup": str(k),
            }
            thin = {"line": {"color": f"@t{k}", "width": 1.2}, "showlegend": axis == "y" and tasks > 1}
            if axis == "y2":
                thin["line"]["dash"] = "dot"  # type: ignore[index]
            traces.append({**line, **thin, "y": rounded(values)})
            if tasks > 1:
                traces.append(
                    {
                        **line,
                        "y": rounded(np.where(bold, values, np.nan)),
                        "line": {"color": f"@t{k}", "width": 3.5},
                        "showlegend": False,
                        "hoverinfo": "skip",
                    }
                )
    layout = {
        "xaxis": {"title": {"text": "mini-batches"}, "anchor": "y2"},
        "yaxis": {"title": {"text": "accuracy"}, "domain": [0.46, 1], "range": [0, 1.02]},
        "yaxis2": {"title": {"text": "ECE"}, "domain": [0, 0.38], "rangemode": "tozero"},
        "showlegend": 1 < tasks <= MOST_LEGEND,
    }
    return Plot(traces, layout, height=380)
