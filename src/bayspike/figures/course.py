"""A stream of tasks as it goes by: the newest task, the last five, all so far, calibration and precision."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayspike.errors import require
from bayspike.figures.output import Figure, Table, field, numbers, require_panels, write_figure
from bayspike.figures.style import WIDTH, new_sheet, plot_line, series_style, styled

PANELS = {
    "newest": "the task just learnt",
    "last_five": "the last five tasks",
    "learnt": "all tasks learnt so far",
    "ece": "ECE of all learnt so far",
}
QUANTILES = 3


@styled
def stream_course(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Any]],
    *,
    sampled: bool = False,
    name: str = "course",
    simulated: bool = False,
) -> Figure:
    """`results[method]` has `newest`, `last_five`, `learnt` and `ece`, each `(tasks,)`, and of a posterior the
    `precision` `(tasks, 3)` below which 5, 50 and 95 % of its synapses lie. `sampled`: not all tasks were looked at."""
    require_panels(results, "results")
    sheet = new_sheet(WIDTH, 4.2)
    grid = sheet.subplots(2, 3).ravel()
    rows: list[tuple[Any, ...]] = []
    for axes, (key, title) in zip(grid, PANELS.items(), strict=False):
        for place, (method, result) in enumerate(results.items()):
            values = numbers(field(result, key, method), f"{key} of {method}", 1, allow_nan=True)
            x = np.arange(1, len(values) + 1)
            plot_line(axes, x, values, series_style(place), method)
            rows += [(method, key, task, f"{value:.6g}") for task, value in zip(x, values, strict=True)]
        title = "ECE of the tasks looked at" if sampled and key == "ece" else title
        axes.set(title=title, xlabel="tasks learnt", ylabel="ECE" if key == "ece" else "accuracy")
        axes.grid(axis="y")
    handles = grid[0].get_legend_handles_labels()
    _share_range(grid[:3])
    grid[3].set_ylim(bottom=0)
    rows += _precision(grid[4], results)
    grid[5].axis("off")
    grid[5].legend(*handles, loc="center left", title="learners", alignment="left")
    caption = (
        "After each task, on test examples: accuracy of the task just learnt, mean accuracy of the last five and of "
        "all tasks learnt so far, and their expected calibration error"
        + (" (of many tasks the newest five and five older ones, which stand for the others)" if sampled else "")
        + ". Precision of the first layer's synapses: median, and the band that holds nine tenths of them."
    )
    table = Table(("method", "measure", "task", "value"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


def _share_range(panels: Any) -> None:
    """One scale for the accuracies, so that they can be held against each other."""
    limits = [axes.get_ylim() for axes in panels]
    for axes in panels:
        axes.set_ylim(min(low for low, _ in limits), min(1.02, max(high for _, high in limits)))


def _precision(axes: Any, results: Mapping[str, Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for place, (method, result) in enumerate(results.items()):
        if result.get("precision") is None:
            continue
        values = numbers(result["precision"], f"precision of {method}", 2)
        require(values.shape[1] == QUANTILES, f"precision of {method!r} must have three quantiles for each task.")
        x, style = np.arange(1, len(values) + 1), series_style(place)
        axes.fill_between(x, values[:, 0], values[:, 2], color=style.colour, alpha=0.15, linewidth=0)
        plot_line(axes, x, values[:, 1], style)
        for key, column in (("precision_05", 0), ("precision_50", 1), ("precision_95", 2)):
            rows += [(method, key, task, f"{v:.6g}") for task, v in zip(x, values[:, column], strict=True)]
    if not rows:
        axes.axis("off")
        return rows
    axes.set_yscale("log")
    axes.set(title="precision", xlabel="tasks learnt", ylabel="precision $p$")
    axes.grid(axis="y")
    return rows
