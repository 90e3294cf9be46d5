"""Accuracy, ECE and mean confidence as the signal arrives (paper, Fig. online)."""

from typing import Any

import numpy as np

from bayspike.report.markup import Card, Cards, Page, Plot, Section, label, rounded
from bayspike.report.measures import MEASURES, Spread, curves_over_time
from bayspike.report.runs import HEADLINE, Comparison, Series, assign_views, legend_name, simulated_among, views

AXES = {"accuracy": ("y", "accuracy"), "ece": ("y2", "ECE"), "confidence": ("y3", "confidence")}
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def panel(comparison: Comparison, page: Page) -> Section | None:
    found = {series: curves for series in comparison.series if (curves := curves_over_time(series)) is not None}
    assigned = assign_views(comparison, list(found))
    cards = []
    for view in views(comparison):
        shown = [(series, curves) for series, curves in found.items() if view in assigned[series]]
        if shown:
            simulated = simulated_among([series for series, _ in shown])
            place = page.add_plot(_plot(shown))
            cards.append(Card(_title(view), place, views=[view], simulated=simulated, wide=True))
    if not cards:
        return None
    lead = (
        "The decision at t is the one given if the signal stopped there. Stored subset of the test data; "
        "lines are means over seeds, bands one standard deviation."
    )
    return Section("over-time", "Accuracy, ECE and confidence over time", lead, [Cards(cards)])


def _title(view: str) -> str:
    return "Each method’s headline predictor" if view == HEADLINE else f"Predictor: {view}"


def _plot(shown: list[tuple[Series, dict[str, Spread]]]) -> Plot:
    traces: list[dict[str, Any]] = []
    for series, curves in shown:
        t = list(range(1, len(curves["accuracy"].mean) + 1))
        for key in MEASURES:
            values = curves[key]
            base = {
                "type": "scatter",
                "mode": "lines",
                "yaxis": AXES[key][0],
                "name": label(legend_name(series, [each for each, _ in shown])),
                "legendgroup": str(series.colour),
            }
            if values.std is not None:
                edge = np.concatenate([values.mean + values.std, (values.mean - values.std)[::-1]])
                traces.append(
                    {
                        **base,
                        "x": t + t[::-1],
                        "y": rounded(edge),
                        "fill": "toself",
                        "fillcolor": f"@c{series.colour}:0.18",
                        "line": {"width": 0},
                        "hoverinfo": "skip",
                        "showlegend": False,
                    }
                )
            traces.append(
                {
                    **base,
                    "x": t,
                    "y": rounded(values.mean),
                    "line": {
                        "color": f"@c{series.colour}",
                        "width": 2,
                        "dash": DASHES[series.colour % len(DASHES)],
                    },
                    "showlegend": key == "accuracy",
                }
            )
    layout = {
        "xaxis": {"title": {"text": "time-step t"}, "anchor": "y3"},
        "yaxis": {"title": {"text": "accuracy"}, "domain": [0.7, 1], "range": [0, 1.02]},
        "yaxis2": {"title": {"text": "ECE"}, "domain": [0.36, 0.64], "rangemode": "tozero"},
        "yaxis3": {"title": {"text": "confidence"}, "domain": [0, 0.3], "range": [0, 1.02]},
        "showlegend": True,
    }
    return Plot(traces, layout, height=520 + 20 * len(shown))
