"""Reliability diagrams and confidence histograms for every t (paper, Figs. bayes-id-real, bayes-id-bin)."""

import numpy as np

from bayspike.report.markup import Card, Cards, Page, Plot, Section, rounded
from bayspike.report.measures import BINS, Bins, reliability_over_time
from bayspike.report.panels.slider import Slider
from bayspike.report.runs import Comparison, assign_views

CENTRES = [round((m + 0.5) / BINS, 4) for m in range(BINS)]


def panel(comparison: Comparison, page: Page) -> Section | None:
    cards, longest = [], 0
    found = {series: bins for series in comparison.series if (bins := reliability_over_time(series)) is not None}
    shown = assign_views(comparison, list(found))
    for series, bins in found.items():
        longest = max(longest, len(bins.counts))
        place = page.add_plot(_plot(bins))
        cards.append(Card(series.name, place, views=shown[series], simulated=series.run.simulated))
    if not cards:
        return None
    lead = (
        "Bars: share of right decisions among those made with a confidence in the bin; hatched: the distance to their "
        "mean confidence; dashed: perfect calibration. Below, how often each confidence occurs, with mean confidence "
        "(dashed) and accuracy (solid). The decision at t is the one given if the signal stopped there. Drawn from the "
        "stored subset of the test data, all seeds together, so its numbers differ a little from the table's."
    )
    return Section("reliability", "Calibration over time", lead, [Slider("reliability", longest), Cards(cards)])


def _plot(bins: Bins) -> Plot:
    accuracy, confidence = bins.accuracy, bins.confidence  # NaN in empty bins, where nothing is drawn
    low, gap = np.minimum(accuracy, confidence), np.abs(accuracy - confidence)
    sure, right = bins.mean_confidence, bins.mean_accuracy
    last = len(bins.counts) - 1
    bar = {"type": "bar", "x": CENTRES, "width": 1 / BINS}
    hatch = {"color": "@bad:0.15", "line": {"color": "@bad", "width": 1}, "pattern": {"shape": "/", "fgcolor": "@bad"}}
    traces = [
        {**bar, "y": rounded(accuracy[last]), "name": "accuracy", "marker": {"color": "@own:0.55"}},
        {**bar, "y": rounded(gap[last]), "base": rounded(low[last]), "name": "gap to confidence", "marker": hatch},
        _line([0, 1], [0, 1], "perfect", "@ink", "dash", "y"),
        {**bar, "y": rounded(bins.share[last]), "name": "share", "marker": {"color": "@muted:0.6"}, "yaxis": "y2"},
        _line([sure[last]] * 2, [0, 1], "mean confidence", "@bad", "dash", "y2"),
        _line([right[last]] * 2, [0, 1], "mean accuracy", "@own", "solid", "y2"),
    ]
    steps = {
        "traces": {
            "0": {"y": rounded(accuracy)},
            "1": {"y": rounded(gap), "base": rounded(low)},
            "3": {"y": rounded(bins.share)},
            "4": {"x": rounded(np.stack([sure, sure], 1))},
            "5": {"x": rounded(np.stack([right, right], 1))},
        },
        "notes": [
            f"t = {t + 1}: ECE {bins.ece[t]:.3f}, accuracy {100 * right[t]:.1f} %, confidence {sure[t]:.2f}, "
            f"{bins.examples} examples"
            for t in range(len(sure))
        ],
    }
    layout = {
        "barmode": "overlay",
        "showlegend": False,
        "xaxis": {"range": [0, 1], "title": {"text": "confidence"}, "anchor": "y2"},
        "yaxis": {"range": [0, 1], "title": {"text": "accuracy"}, "domain": [0.36, 1]},
        "yaxis2": {"range": [0, 1], "title": {"text": "share"}, "domain": [0, 0.26], "nticks": 3},
    }
    return Plot(traces, layout, steps, height=380)


def _line(x: list[float], y: list[float], name: str, colour: str, dash: str, axis: str) -> dict[str, object]:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": rounded(x),
        "y": y,
        "name": name,
        "yaxis": axis,
        "line": {"color": colour, "width": 1.5, "dash": dash},
        "hoverinfo": "name+x",
    }
