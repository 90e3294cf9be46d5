"""Sets of classes that hold the right one with a promised probability: what they cover and how large they are.

Half of a seed's stored examples calibrate, the other half is shown; seeds are calibrated each on its own, since each is
another network, and their shown examples are pooled.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bayspike.predict.calibration import SetScores, even_checkpoints, fit_sets, halves, judge_sets
from bayspike.predict.conformal import calibrate, coverage
from bayspike.report.markup import Card, Cards, Cell, Page, Plot, Row, Section, Table, label, rounded, with_spread
from bayspike.report.panels.over_time import DASHES
from bayspike.report.reading import Array
from bayspike.report.runs import HEADLINE, Comparison, Job, Series, assign_views, legend_name, simulated_among, views

PROMISE = 0.9
LEAST = 9  # examples that can hold this promise at all


@dataclass(frozen=True)
class Sets:
    """Of the examples that are shown: curves over t, `(time,)`, and early stopping."""

    coverage: Array
    size: Array
    early: SetScores
    examples: int


def panel(comparison: Comparison, page: Page) -> Section | None:
    found = {series: each for series in comparison.series if (each := sets_over_time(series)) is not None}
    assigned = assign_views(comparison, list(found))
    cards = []
    for view in views(comparison):
        shown = [(series, each) for series, each in found.items() if view in assigned[series]]
        if shown:
            title = "Each method’s headline predictor" if view == HEADLINE else f"Predictor: {view}"
            simulated = simulated_among([series for series, _ in shown])
            cards.append(Card(title, page.add_plot(_plot(shown)), views=[view], simulated=simulated, wide=True))
    if not cards:
        return None
    lead = (
        f"The set at t holds every class that is plausible there, and the right one with probability {PROMISE:.0%} "
        "(dotted): on half of the stored test examples the thresholds were set, the other half is shown. An honest "
        "network that knows little has large sets. The table is for stopping at the first checkpoint where the set is "
        "a single class: its promise holds at all checkpoints at once, so the sets are larger."
    )
    rows = [Row(_cells(series, each), assigned[series]) for series, each in found.items()]
    head = ["Method", "Coverage", "Mean size", "Single class", "Mean stopping step", "Checkpoints", "Examples"]
    return Section("sets", "Prediction sets", lead, [Table(head, rows, name="sets-table", sortable=True), Cards(cards)])


def sets_over_time(series: Series) -> Sets | None:
    """Sets of all seeds, each calibrated on its own; those of another length than the first are left out."""
    found = [each for job in series.jobs if (each := _of_job(job, series.predictor)) is not None]
    found = [each for each in found if len(each.coverage) == len(found[0].coverage)]
    if not found:
        return None
    weights = [each.examples for each in found]

    def pooled(values: list[Array]) -> Array:
        return np.asarray(np.average(np.stack(values), axis=0, weights=weights))

    early = pooled([np.array(each.early, dtype=np.float64) for each in found])
    covered, size, single, stopped_at, checkpoints = (float(value) for value in early)
    return Sets(
        pooled([each.coverage for each in found]),
        pooled([each.size for each in found]),
        SetScores(covered, size, single, stopped_at, round(checkpoints)),
        sum(weights),
    )


def _of_job(job: Job, predictor: str) -> Sets | None:
    pair = job.over_time(predictor)
    if pair is None or len(pair[1]) < 2 * LEAST:
        return None
    p, labels = torch.from_numpy(pair[0]), torch.from_numpy(pair[1])
    calibrating, shown = halves(labels, torch.Generator().manual_seed(0))
    sets = torch.stack([calibrate(each[calibrating], labels[calibrating], 1 - PROMISE).sets(each[shown]) for each in p])
    checkpoints = even_checkpoints(len(p), PROMISE, len(calibrating))
    rule = fit_sets(p[:, calibrating], labels[calibrating], checkpoints, PROMISE)
    return Sets(
        coverage(sets, labels[shown]).numpy(),
        sets.sum(-1).double().mean(-1).numpy(),
        judge_sets(rule, p[:, shown], labels[shown]),
        len(shown),
    )


def _plot(shown: list[tuple[Series, Sets]]) -> Plot:
    last = max(len(each.coverage) for _, each in shown)
    low = min(0.75, *(float(each.coverage.min()) - 0.05 for _, each in shown))
    promise = {"x": [1, last], "y": [PROMISE, PROMISE], "line": {"color": "@ink:0.6", "width": 1, "dash": "dot"}}
    traces: list[dict[str, Any]] = [{"type": "scatter", "mode": "lines", "name": "promise", **promise}]
    for series, each in shown:
        line = {"color": f"@c{series.colour}", "width": 2, "dash": DASHES[series.colour % len(DASHES)]}
        base = {
            "type": "scatter",
            "mode": "lines",
            "x": list(range(1, len(each.coverage) + 1)),
            "name": label(legend_name(series, [one for one, _ in shown])),
            "legendgroup": str(series.colour),
            "line": line,
        }
        traces.append({**base, "y": rounded(each.coverage)})
        traces.append({**base, "y": rounded(each.size), "yaxis": "y2", "showlegend": False})
    layout = {
        "xaxis": {"title": {"text": "time-step t"}, "anchor": "y2"},
        "yaxis": {"title": {"text": "coverage"}, "domain": [0.56, 1], "range": [round(max(low, 0.0), 3), 1.02]},
        "yaxis2": {"title": {"text": "mean size"}, "domain": [0, 0.46], "rangemode": "tozero"},
        "showlegend": True,
    }
    return Plot(traces, layout, height=400 + 20 * len(shown))


def _cells(series: Series, each: Sets) -> list[Cell]:
    early = each.early
    return [
        Cell(series.name, heading=True, simulated=series.run.simulated),
        Cell(with_spread(early.coverage, None, percent=True), early.coverage, "coverage"),
        Cell(with_spread(early.size, None, digits=2), early.size, "size"),
        Cell(with_spread(early.single, None, percent=True), early.single, "single"),
        Cell(with_spread(early.stopped_at, None, digits=1), early.stopped_at, "stopped_at"),
        Cell(str(early.checkpoints), float(early.checkpoints)),
        Cell(str(each.examples), float(each.examples)),
    ]
