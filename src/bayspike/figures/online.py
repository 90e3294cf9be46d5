"""Curves that do not belong to a training run: against time t (paper, Fig. online) and against coverage."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayspike.errors import require
from bayspike.figures.output import Figure, Table, field, numbers, require_panels, write_figure
from bayspike.figures.style import COLUMN, WIDTH, new_sheet, plot_line, series_style, styled

_MEASURES = (("accuracy", "accuracy"), ("ece", "ECE"), ("confidence", "mean confidence"))


@styled
def measures_over_time(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Mapping[str, Any]]],
    *,
    data: str = "test examples",
    name: str = "over_time",
    simulated: bool = False,
) -> Figure:
    """Accuracy, ECE and mean confidence as the signal arrives; one column per key of `results`.

    `results[column][model]` has `accuracy`, `ece` and `confidence`, each `(time,)`; optionally each with
    `<measure>_spread` `(time,)`, drawn as a band (say, the standard deviation over repetitions).
    """
    require_panels(results, "results")
    width = min(WIDTH, 0.8 + 3.2 * len(results))
    sheet = new_sheet(width, 4.4)
    grid = sheet.subplots(3, len(results), squeeze=False, sharex=True, sharey="row")
    rows: list[tuple[Any, ...]] = []
    order = list(dict.fromkeys(model for models in results.values() for model in models))
    for j, (column, models) in enumerate(results.items()):
        for model, result in models.items():
            style = series_style(order.index(model))
            for i, (key, _) in enumerate(_MEASURES):
                values = numbers(field(result, key, model), f"{key} of {column}, {model}", 1)
                t = np.arange(1, len(values) + 1)
                plot_line(grid[i, j], t, values, style, label=model)
                spread = np.zeros_like(values)
                if f"{key}_spread" in result:
                    spread = numbers(result[f"{key}_spread"], f"{key}_spread of {column}, {model}", 1)
                    require(
                        spread.shape == values.shape,
                        f"{key}_spread of {column}, {model} must be as long as {key}.",
                    )
                    grid[i, j].fill_between(
                        t, values - spread, values + spread, color=style.colour, alpha=0.18, linewidth=0
                    )
                rows += [
                    (column, model, key, int(a), f"{b:.6g}", f"{c:.6g}")
                    for a, b, c in zip(t, values, spread, strict=True)
                ]
        grid[0, j].set_title(column)
        grid[2, j].set_xlabel("time-step $t$")
        grid[2, j].set_xlim(1, max(len(result["accuracy"]) for result in models.values()))
    for i, (_, label) in enumerate(_MEASURES):
        grid[i, 0].set_ylabel(label)
        grid[i, 0].set_ylim(bottom=0)
        for axes in grid[i]:
            axes.grid(axis="y")
    for i in (0, 2):
        grid[i, 0].set_ylim(0, 1.02)
    shown = {name: line for axes in grid[0] for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
    lines = [shown[model] for model in order]
    sheet.legend(lines, order, loc="outside lower center", ncols=min(len(order), 1 + 2 * len(results)))
    caption = (
        f"Accuracy (top), expected calibration error (middle) and mean confidence (bottom) on {data} against the "
        "time-step t: the decision at t is the one given if the signal stopped there. Bands, where drawn, "
        "are the spread over repetitions."
    )
    table = Table(("column", "model", "measure", "t", "value", "spread"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


@styled
def risk_coverage_curves(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Any]],
    *,
    name: str = "risk_coverage",
    simulated: bool = False,
) -> Figure:
    """Error rate among accepted decisions against the share accepted, one line per model.

    A result has `coverage` and `risk`, each `(n,)`, as `bayspike.metrics.risk_coverage` gives them.
    """
    require_panels(results, "results")
    sheet = new_sheet(COLUMN, 2.6)
    axes = sheet.subplots()
    rows: list[tuple[Any, ...]] = []
    for k, (model, result) in enumerate(results.items()):
        coverage = numbers(field(result, "coverage", model), f"coverage of {model}", 1)
        risk = numbers(field(result, "risk", model), f"risk of {model}", 1)
        require(coverage.shape == risk.shape, f"coverage and risk of {model!r} must be equally long.")
        plot_line(axes, coverage, risk, series_style(k), label=f"{model} (area {risk.mean():.3f})")
        rows += [(model, f"{c:.6g}", f"{r:.6g}") for c, r in zip(coverage, risk, strict=True)]
    axes.set(xlim=(0, 1), xlabel="coverage: share of decisions given", ylabel="risk: error rate among them")
    axes.set_ylim(bottom=0)
    axes.grid(axis="y")
    axes.legend(loc="upper left")
    caption = (
        "Risk against coverage: decisions are withheld from the least confident on. Lower is better; the area is the "
        "mean risk over all coverages."
    )
    table = Table(("model", "coverage", "risk"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)
