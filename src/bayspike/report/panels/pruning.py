"""Fewer synapses: accuracy against the share that was cut, where it was asked for (`bayspike evaluate --prune`)."""

from typing import Any

import numpy as np

from bayspike.report.markup import Card, Cards, Page, Plot, Section, label, rounded
from bayspike.report.reading import mapping, number, sequence
from bayspike.report.runs import Comparison, Series, simulated_among

ORDERS = {"size": "by |m|", "signal": "by |m|·√p"}
Curve = dict[float, list[float]]  # share cut -> accuracy of every seed


def panel(comparison: Comparison, page: Page) -> Section | None:
    found, seen = [], set()
    for series in comparison.series:
        if (series.run.name, series.label) in seen:
            continue  # predictors of one learner share its synapses
        seen.add((series.run.name, series.label))
        if any(curves := pruned_curves(series)):
            found.append((series, curves))
    if not found:
        return None
    several = len(comparison.runs) > 1
    traces: list[dict[str, Any]] = []
    for series, curves in found:
        name = f"{series.run.name}: {series.label}" if several else series.label
        for order, curve in curves.items():
            shares = sorted(curve)
            line = {"color": f"@c{series.colour}", "width": 2, "dash": "solid" if order == "size" else "dash"}
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines+markers",
                    "x": rounded([100 * (1 - share) for share in shares], 4),
                    "y": rounded([np.mean(curve[share]) for share in shares], 4),
                    "text": [f"{share:.4g}" for share in (100 * np.array(shares)).tolist()],
                    "line": line,
                    "marker": {"size": 7, "symbol": "circle" if order == "size" else "circle-open"},
                    "name": label(f"{name}, {ORDERS[order]}"),
                    "hovertemplate": "%{text} % cut: %{y:.3f}<extra></extra>",
                }
            )
    every = sorted({share for _, curves in found for curve in curves.values() for share in curve})
    layout = {
        "xaxis": {
            "type": "log",
            "autorange": "reversed",
            "title": {"text": "synapses cut (scale: those left)"},
            "tickvals": [100 * (1 - share) for share in every],
            "ticktext": [f"{100 * share:.4g} %" for share in every],
        },
        "yaxis": {"title": {"text": "accuracy"}},
        "showlegend": True,
    }
    simulated = simulated_among([series for series, _ in found])
    place = page.add_plot(Plot(traces, layout, height=320 + 20 * len(traces)))
    lead = (
        "Accuracy without a share of every layer's synapses, mean over seeds: cut in the order of their size, or of a "
        "posterior's signal-to-noise ratio. Each synapse that goes saves its operations on a chip "
        "(bayspike export --prune)."
    )
    card = Card("Accuracy with fewer synapses", place, simulated=simulated, wide=True)
    return Section("pruning", "Fewer synapses", lead, [Cards([], below=[card])])


def pruned_curves(series: Series) -> dict[str, Curve]:
    """By the order in which synapses were cut; the whole network begins every curve."""
    whole: list[float] = []
    curves: dict[str, Curve] = {}
    for job in series.jobs:
        for row in map(mapping, sequence(mapping(job.result.get("pruning")).get("rows"))):
            share, accuracy, by = number(row.get("pruned")), number(row.get("accuracy")), str(row.get("by"))
            if share is None or accuracy is None or not 0 <= share < 1:
                continue
            if share == 0:
                whole.append(accuracy)
            elif by in ORDERS:
                curves.setdefault(by, {}).setdefault(share, []).append(accuracy)
    return {order: {**({0.0: whole} if whole else {}), **curves[order]} for order in ORDERS if order in curves}
