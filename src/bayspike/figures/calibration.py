"""Reliability diagrams and confidence histograms (paper, Figs. bayes-id-real, bayes-id-bin, bayes-ood)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bayspike.errors import require
from bayspike.figures.output import Array, Figure, Table, field, numbers, require_panels, write_figure
from bayspike.figures.style import (
    BLACK,
    BLUE,
    FOREIGN_COLOUR,
    GREY,
    LIGHT,
    OWN_COLOUR,
    PALE,
    VERMILION,
    new_sheet,
    styled,
    width_of,
)


@styled
def reliability_diagrams(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Any]],
    *,
    data: str = "in-distribution data",
    name: str = "reliability",
    simulated: bool = False,
) -> Figure:
    """One column per model: reliability above, histogram of confidence below.

    A result has `counts`, `confidence` and `accuracy` of each of M equal bins, as
    `bayspike.metrics.reliability_bins` gives them (NaN in empty bins); ECE and accuracy follow from them.
    """
    require_panels(results, "results")
    columns = len(results)
    width = width_of(columns, 2.2, 0.6)
    sheet = new_sheet(width, 1.25 + 1.5 * (width - 0.6) / columns)  # makes the upper panels about square
    top, bottom = sheet.subplots(
        2, columns, squeeze=False, sharex=True, sharey="row", gridspec_kw={"height_ratios": [2, 1]}
    )
    rows: list[tuple[Any, ...]] = []
    for j, (model, result) in enumerate(results.items()):
        counts = numbers(field(result, "counts", model), f"counts of {model}", 1)
        confidence = numbers(field(result, "confidence", model), f"confidence of {model}", 1, allow_nan=True)
        right = numbers(field(result, "accuracy", model), f"accuracy of {model}", 1, allow_nan=True)
        require(
            counts.shape == confidence.shape == right.shape and counts.sum() > 0,
            f"counts, confidence and accuracy of {model!r} must have one value per bin and count some example.",
        )
        _reliability(top[j], model, counts, confidence, right)
        _confidences(bottom[j], counts, confidence, right)
        m = len(counts)
        rows += [(model, k / m, (k + 1) / m, int(counts[k]), _text(confidence[k]), _text(right[k])) for k in range(m)]
    top[0].set_ylabel("accuracy")
    bottom[0].set_ylabel("share of examples")
    handles, names = top[0].get_legend_handles_labels()
    lines, line_names = bottom[0].get_legend_handles_labels()
    sheet.legend(handles + lines, names + line_names, loc="outside lower center", ncols={1: 2, 2: 3}.get(columns, 5))
    caption = (
        f"Top: reliability diagrams on {data}. Bars: accuracy of the examples whose confidence falls in the bin; "
        "hatched: distance to their mean confidence (above the bar: over-confident, within it: under-confident); "
        "points: accuracy at the mean confidence; dashed: perfect calibration. Bottom: histograms of confidence, "
        "with mean confidence and accuracy. ECE: expected calibration error."
    )
    table = Table(("model", "bin_above", "bin_to", "examples", "mean_confidence", "accuracy"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


def _reliability(axes: Any, model: str, counts: Array, confidence: Array, right: Array) -> None:
    m = len(counts)
    filled = counts > 0
    left = np.arange(m)[filled] / m
    conf, acc, share = confidence[filled], right[filled], counts[filled] / counts.sum()
    axes.bar(left, acc, 1 / m, align="edge", color=PALE, edgecolor="white", linewidth=0.5, label="accuracy")
    axes.bar(
        left,
        np.abs(conf - acc),
        1 / m,
        bottom=np.minimum(conf, acc),
        align="edge",
        facecolor=(0.835, 0.369, 0.0, 0.25),
        edgecolor=VERMILION,
        linewidth=0.5,
        hatch="/////",
        label="gap to confidence",
    )
    axes.plot([0, 1], [0, 1], color=BLACK, linewidth=0.8, linestyle=(0, (4, 2)), label="perfect calibration")
    axes.plot(conf, acc, "o", color="white", markeredgecolor=BLACK, markeredgewidth=0.7, markersize=3.2, clip_on=False)
    error, mean = float((share * np.abs(conf - acc)).sum()), float((share * acc).sum())
    axes.set_title(f"{model}\nECE {error:.3f}, accuracy {100 * mean:.1f} %")
    axes.set(xlim=(0, 1), ylim=(0, 1), xticks=np.linspace(0, 1, 6), yticks=np.linspace(0, 1, 6))


def _confidences(axes: Any, counts: Array, confidence: Array, right: Array) -> None:
    m, share = len(counts), counts / counts.sum()
    axes.bar(np.arange(m) / m, share, 1 / m, align="edge", color=LIGHT, edgecolor=GREY, linewidth=0.5)
    mean, accuracy = (float(np.nansum(share * each)) for each in (confidence, right))
    axes.axvline(mean, color=VERMILION, linestyle=(0, (4, 1.5)), label="mean confidence")
    axes.axvline(accuracy, color=BLUE, label="mean accuracy")
    axes.set(xlim=(0, 1), xlabel="confidence")
    axes.grid(axis="y")


@styled
def foreign_histograms(
    directory: str | Path,
    results: Mapping[str, Mapping[str, Mapping[str, Any]]],
    *,
    name: str = "foreign_confidence",
    simulated: bool = False,
) -> Figure:
    """Confidence of foreign (out-of-distribution) inputs against that of the model's own.

    `results[row][model]` has `foreign` and, optionally, `own`: numbers of examples in M equal bins of
    confidence, as `bayspike.metrics.confidence_histogram` gives them; and optionally `auroc`.
    """
    require_panels(results, "results")
    columns = max(len(models) for models in results.values())
    width = width_of(columns, 2.6, 0.6)
    sheet = new_sheet(width, 0.4 + 1.45 * len(results))
    grid = sheet.subplots(len(results), columns, squeeze=False, sharex=True, sharey="row")
    rows: list[tuple[Any, ...]] = []
    for i, (row, models) in enumerate(results.items()):
        for j in range(columns):
            grid[i, j].set_visible(j < len(models))
        for j, (model, result) in enumerate(models.items()):
            axes = grid[i, j]
            for kind in ("own", "foreign"):
                if kind == "own" and kind not in result:
                    continue
                counts = numbers(field(result, kind, model), f"{kind} of {row}, {model}", 1)
                require(counts.sum() > 0, f"{kind} of {row}, {model} counts no example.")
                _shares(axes, kind, counts)
                m = len(counts)
                rows += [(row, model, kind, k / m, (k + 1) / m, int(counts[k])) for k in range(m)]
            area = f" (AUROC {float(result['auroc']):.2f})" if "auroc" in result else ""
            axes.set(xlim=(0, 1), title=f"{model}{area}")
            axes.grid(axis="y")
        grid[i, 0].set_ylabel(f"{row}\nshare of examples")
    for axes in grid[-1]:
        axes.set_xlabel("confidence")
    handles, names = grid[0, 0].get_legend_handles_labels()
    sheet.legend(handles, names, loc="outside lower center", ncols=2)
    caption = (
        "Histograms of the confidence on out-of-distribution inputs (hatched) against in-distribution ones "
        "(filled). A model that knows what it does not know is less sure of the former. AUROC: how well one "
        "minus the confidence tells them apart (0.5 is chance)."
    )
    table = Table(("row", "model", "inputs", "bin_above", "bin_to", "examples"), rows)
    return write_figure(sheet, directory, name, caption, table, simulated=simulated)


def _shares(axes: Any, kind: str, counts: Array) -> None:
    edges, share = np.linspace(0, 1, len(counts) + 1), counts / counts.sum()
    if kind == "own":
        axes.stairs(share, edges, fill=True, color=OWN_COLOUR, alpha=0.45, label="in-distribution")
        axes.stairs(share, edges, color=OWN_COLOUR, linewidth=0.9)
    else:
        axes.stairs(
            share,
            edges,
            facecolor="none",
            fill=True,
            hatch="/////",
            edgecolor=FOREIGN_COLOUR,
            linewidth=0,
            label="out-of-distribution",
        )
        axes.stairs(share, edges, color=FOREIGN_COLOUR, linewidth=1.3)


def _text(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.6g}"
