"""Figures of continual learning (paper, Figs. continual-exp and continual-final) and the accuracy matrix."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.lines import Line2D

from bayspike.errors import require
from bayspike.figures.output import Array, Figure, Table, field, numbers, require_panels, write_figure
from bayspike.figures.style import (
    BLACK,
    GREY,
    LIGHT,
    MOST_TASKS,
    WIDTH,
    SeriesStyle,
    new_sheet,
    series_style,
    styled,
    task_style,
    width_of,
)

LONGEST_NAME = 7  # letters of a task below its column; longer ones are turned


@styled
def training_curves(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Any]],
    task_names: Sequence[str],
    *,
    unit: str = "epoch",
    name: str = "training_curves",
    simulated: bool = False,
) -> Figure:
    """Accuracy (above) and ECE (below) of every task over training, one column per method.

    A result has `epoch` `(moments,)`, `current_task` `(moments,)`, `accuracy` and `ece` `(moments, tasks)`.
    The line of a task is bold while it is the one being trained.
    """
    require_panels(results, "results")
    tasks = len(task_names)
    sheet = new_sheet(max(WIDTH, width_of(len(results), 1.3, 0.6, least=1.3)), 3.6)
    top, bottom = sheet.subplots(2, len(results), squeeze=False, sharex="col", sharey="row")
    rows: list[tuple[Any, ...]] = []
    for j, (method, result) in enumerate(results.items()):
        epoch = numbers(field(result, "epoch", method), f"epoch of {method}", 1)
        current = numbers(field(result, "current_task", method), f"current_task of {method}", 1)
        for axes, key in ((top[j], "accuracy"), (bottom[j], "ece")):
            values = numbers(field(result, key, method), f"{key} of {method}", 2, allow_nan=True)
            require(
                values.shape == (len(epoch), tasks) and current.shape == epoch.shape,
                f"{key} of {method!r} must have shape ({len(epoch)}, {tasks}): one row per moment, one column per "
                f"task; it has {values.shape}.",
            )
            for start in epoch[:-1][np.diff(current) != 0]:
                axes.axvline(start, color=LIGHT, linewidth=0.8, zorder=0)
            for task in range(tasks):
                _task_line(axes, epoch, values[:, task], current == task, task_style(task, tasks))
            rows += [
                (method, key, f"{epoch[i]:g}", task_names[k], int(current[i] == k), f"{values[i, k]:.6g}")
                for i in range(len(epoch))
                for k in range(tasks)
            ]
            axes.grid(axis="y")
        top[j].set_title(method)
        bottom[j].set_xlabel(unit)
        bottom[j].set_xlim(epoch.min(), epoch.max())
    top[0].set(ylabel="accuracy", ylim=(0, 1.02))
    bottom[0].set_ylabel("ECE")
    bottom[0].set_ylim(bottom=0)
    _task_legend(sheet, [*top, *bottom], task_names)
    caption = (
        "Test accuracy (top) and expected calibration error (bottom) of every task over training; bold: the task "
        "being trained; vertical lines: a new task begins. Tasks: " + ", ".join(task_names) + "."
    )
    table = Table(("method", "measure", unit, "task", "is_current", "value"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


def _task_line(axes: Any, epoch: Array, values: Array, current: Any, style: SeriesStyle) -> None:
    every = max(1, len(epoch) // 6)
    axes.plot(
        epoch,
        values,
        color=style.colour,
        linestyle=style.line,
        marker=style.marker,
        markevery=every,
        markersize=2.5,
        linewidth=0.9,
    )
    # The step that ends at a moment was trained on that moment's task, so the bold line begins one moment earlier.
    bold = current.copy()
    bold[:-1] |= current[1:]
    axes.plot(epoch, np.where(bold, values, np.nan), color=style.colour, linewidth=2.2)
    if len(epoch) <= 30:  # a task seen at one moment only has no line to be bold
        look = {"color": style.colour, "markersize": 5, "clip_on": False}
        shown = axes.plot(epoch[current], values[current], style.marker, **look)
        shown[0].set_in_layout(False)  # it may stick out of its panel without pushing the neighbours away


def _task_legend(sheet: Any, grid: Any, task_names: Sequence[str]) -> None:
    tasks = len(task_names)
    styles = [task_style(k, tasks) for k in range(tasks)]
    if tasks > MOST_TASKS:
        scale = ScalarMappable(
            BoundaryNorm(np.arange(tasks + 1) + 0.5, tasks), ListedColormap([s.colour for s in styles])
        )
        ticks = range(1, tasks + 1, -(-tasks // 10))
        bar = sheet.colorbar(scale, ax=grid, aspect=40, pad=0.015, ticks=ticks, label="task")
        bar.set_ticklabels([task_names[k - 1] for k in ticks])
        bar.outline.set_linewidth(0.4)
        bar.ax.tick_params(which="both", length=0)
        return
    handles = [
        Line2D([], [], color=style.colour, linestyle=style.line, marker=style.marker, markersize=2.5, label=task)
        for style, task in zip(styles, task_names, strict=True)
    ]
    sheet.legend(handles=handles, loc="outside lower center", ncols=tasks)


@styled
def final_boxes(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Any]],
    *,
    name: str = "final_boxes",
    simulated: bool = False,
) -> Figure:
    """Box plots over tasks of the final accuracy and ECE, one box per method.

    A result has `accuracy` and `ece`, each `(tasks,)`. The points are the tasks.
    """
    require_panels(results, "results")
    sheet = new_sheet(min(WIDTH, 1.0 + 1.0 * len(results)), 3.6)
    grid = sheet.subplots(2, 1, sharex=True)
    rows: list[tuple[Any, ...]] = []
    for axes, key, label in zip(grid, ("accuracy", "ece"), ("final accuracy", "final ECE"), strict=True):
        values = [numbers(field(r, key, method), f"{key} of {method}", 1) for method, r in results.items()]
        drawn = axes.boxplot(
            values,
            widths=0.5,
            patch_artist=True,
            medianprops={"color": BLACK, "linewidth": 1.6},
            boxprops={"linewidth": 0.7},
            whiskerprops={"linewidth": 0.7},
            capprops={"linewidth": 0.7},
            flierprops={"marker": "o", "markersize": 4.5, "markeredgewidth": 0.7, "markerfacecolor": "none"},
        )
        for place, (box, each) in enumerate(zip(drawn["boxes"], values, strict=True)):
            style = series_style(place)
            box.set(facecolor=(*_rgb(style.colour), 0.35), hatch=style.hatch, edgecolor=style.colour)
            axes.plot(np.full(len(each), place + 1), each, ".", color=GREY, markersize=3.5, zorder=3)
        axes.set_ylabel(label)
        axes.grid(axis="y")
        rows += [
            (method, key, task, f"{value:.6g}")
            for method, each in zip(results, values, strict=True)
            for task, value in enumerate(each)
        ]
    grid[0].set_ylim(top=1.02)
    grid[1].set_ylim(bottom=0)
    grid[1].set_xticks(range(1, len(results) + 1), list(results))
    caption = (
        "Test accuracy (top) and expected calibration error (bottom) over tasks at the end of training. Bar: median; "
        "box: first to third quartile; whiskers: up to 1.5 times the inter-quartile range; circles: outliers; "
        "points: tasks."
    )
    table = Table(("method", "measure", "task", "value"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


@styled
def accuracy_matrices(
    directory: str | Path,
    results: Mapping[str, Any],
    task_names: Sequence[str],
    *,
    name: str = "accuracy_matrix",
    simulated: bool = False,
) -> Figure:
    """`results[method]` is the accuracy matrix `(stages, tasks)`; NaN where nothing was measured."""
    require_panels(results, "results")
    matrices = {method: numbers(m, f"matrix of {method}", 2, allow_nan=True) for method, m in results.items()}
    columns = len(matrices)
    width = width_of(columns, 2.3, 0.9, least=1.3)
    sheet = new_sheet(width, 0.7 + (width - 0.9) / columns)
    grid = sheet.subplots(1, columns, squeeze=False, sharey=True)[0]
    rows: list[tuple[Any, ...]] = []
    image = None
    for axes, (method, matrix) in zip(grid, matrices.items(), strict=True):
        stages, tasks = matrix.shape
        require(tasks == len(task_names), f"matrix of {method} has {tasks} tasks, not {len(task_names)}.")
        require(
            bool((np.isnan(matrix) | ((matrix >= 0) & (matrix <= 1))).all()),
            f"matrix of {method} must hold accuracies in [0, 1].",
        )
        axes.set_facecolor(LIGHT)
        image = axes.imshow(matrix, cmap="cividis", vmin=0, vmax=1)
        if max(stages, tasks) <= 10:
            for (i, k), value in np.ndenumerate(matrix):
                if not np.isnan(value):
                    shade = "white" if value < 0.5 else BLACK
                    axes.text(k, i, f"{100 * value:.0f}", ha="center", va="center", color=shade, fontsize=6.5)
        axes.set_title(method)
        step = -(-max(stages, tasks) // 10)
        names = list(task_names) if step == 1 else [str(k + 1) for k in range(tasks)]
        turned = 90 if max(map(len, names)) > LONGEST_NAME else 0
        axes.set_xticks(range(0, tasks, step), names[::step], rotation=turned)
        axes.set_yticks(range(0, stages, step), [str(i + 1) for i in range(0, stages, step)])
        axes.tick_params(length=0)
        for side in axes.spines.values():
            side.set_visible(False)
        axes.set_xlabel("tested on task")
        rows += [(method, i + 1, task_names[k], f"{v:.6g}") for (i, k), v in np.ndenumerate(matrix)]
    grid[0].set_ylabel("after training stage")
    bar = sheet.colorbar(image, ax=grid, shrink=0.85, aspect=22, pad=0.015)
    bar.set_label("accuracy")
    bar.outline.set_linewidth(0.4)
    caption = "Accuracy on every task after each training stage; grey, where there is any: not measured."
    table = Table(("method", "stage", "task", "accuracy"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


def _rgb(colour: str) -> tuple[float, float, float]:
    return (int(colour[1:3], 16) / 255, int(colour[3:5], 16) / 255, int(colour[5:7], 16) / 255)
