"""Confidence on foreign (out-of-distribution) inputs against the model's own, for every t (paper, Fig. bayes-ood)."""

from typing import Any

import numpy as np

from bayspike.report.markup import Card, Cards, Cell, Page, Part, Plot, Row, Section, Table, label, rounded, with_spread
from bayspike.report.measures import Foreign, foreign_over_time, over_seeds
from bayspike.report.panels.over_time import DASHES
from bayspike.report.panels.reliability import CENTRES
from bayspike.report.panels.slider import Slider
from bayspike.report.runs import Comparison, Series, assign_views, legend_name, simulated_among, views

SCORES = {
    "confidence": "one minus confidence",
    "entropy": "entropy",
    "mutual_information": "mutual information",
    "discord": "discord of spikes",
}
MEASURES = {"auroc": "AUROC", "aupr": "AUPR", "fpr95": "FPR95"}


def panel(comparison: Comparison, page: Page) -> Section | None:
    found = {series: each for series in comparison.series if (each := foreign_over_time(series)) is not None}
    assigned = assign_views(comparison, list(found))
    cards = []
    for series, each in found.items():
        place = page.add_plot(_histograms(each))
        cards.append(Card(series.name, place, views=assigned[series], simulated=series.run.simulated))
    lines = []
    for view in views(comparison):
        shown = [(series, each) for series, each in found.items() if view in assigned[series]]
        if shown:
            simulated = simulated_among([series for series, _ in shown])
            place = page.add_plot(_areas(shown))
            lines.append(
                Card("AUROC of one minus the confidence over t", place, views=[view], simulated=simulated, wide=True)
            )
    scores = _scores(comparison)
    if not cards and not scores:
        return None
    lead = (
        "A model that knows what it does not know is less sure of foreign inputs (hatched) than of its own (filled). "
        "AUROC is how well a score tells them apart; 0.5 is chance."
    )
    parts: list[Part] = [scores] if scores else []
    if cards:
        steps = max(len(each.auroc) for each in found.values())
        parts += [Slider("foreign", steps), Cards(cards, below=lines)]
    return Section("foreign", "Foreign inputs", lead, parts)


def _histograms(each: Foreign) -> Plot:
    own, foreign = (np.where(h > 0, h / h.sum(-1, keepdims=True), np.nan) for h in (each.own, each.foreign))
    bar = {"type": "bar", "x": CENTRES, "width": 1 / len(CENTRES)}
    hatch = {
        "color": "@bad:0.12",
        "line": {"color": "@bad", "width": 1.5},
        "pattern": {"shape": "/", "fgcolor": "@bad"},
    }
    traces = [
        {**bar, "y": rounded(own[-1]), "name": "own", "marker": {"color": "@own:0.55"}},
        {**bar, "y": rounded(foreign[-1]), "name": "foreign", "marker": hatch},
    ]
    steps = {
        "traces": {"0": {"y": rounded(own)}, "1": {"y": rounded(foreign)}},
        "notes": [f"t = {t + 1}: AUROC {area:.3f}" for t, area in enumerate(each.auroc)],
    }
    layout = {
        "barmode": "overlay",
        "showlegend": True,
        "xaxis": {"range": [0, 1], "title": {"text": "confidence"}},
        "yaxis": {"range": [0, 1], "title": {"text": "share of inputs"}},
    }
    return Plot(traces, layout, steps, height=300)


def _areas(shown: list[tuple[Series, Foreign]]) -> Plot:
    traces: list[dict[str, Any]] = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": list(range(1, len(each.auroc) + 1)),
            "y": rounded(each.auroc),
            "name": label(legend_name(series, [each for each, _ in shown])),
            "line": {"color": f"@c{series.colour}", "width": 2, "dash": DASHES[series.colour % len(DASHES)]},
        }
        for series, each in shown
    ]
    layout = {
        "xaxis": {"title": {"text": "time-step t"}},
        "yaxis": {"title": {"text": "AUROC"}, "range": [0, 1.02]},
        "showlegend": True,
    }
    return Plot(traces, layout, height=280 + 20 * len(shown))


def _scores(comparison: Comparison) -> Table | None:
    """The final scores of the results, which judge all test examples."""
    rows = []
    scored = [series for series in comparison.series if series.jobs[0].result.get("ood")]
    shown = assign_views(comparison, scored)
    for series in scored:
        for score, name in SCORES.items():
            values = {measure: over_seeds(series, "ood", series.predictor, measure, score) for measure in MEASURES}
            if any(values.values()):
                cells = [
                    Cell(with_spread(*(value or (None, None))), value=value[0] if value else None, key=measure)
                    for measure, value in values.items()
                ]
                title = Cell(series.name, heading=True, simulated=series.run.simulated)
                rows.append(Row([title, Cell(name), *cells], shown[series]))
    if not rows:
        return None
    return Table(["Method", "Score", *MEASURES.values()], rows, name="foreign-scores", sortable=True)
