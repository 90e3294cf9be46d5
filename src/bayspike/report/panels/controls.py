"""Is it the posterior? Every learner beside the same means with another spread (`bayspike.predict.controls`)."""

from typing import Any

from bayspike.report.markup import Cell, Page, Row, Section, Table, with_spread
from bayspike.report.measures import over_seeds
from bayspike.report.reading import mapping
from bayspike.report.runs import Comparison, Series

NAMES = {
    "learnt": "as learnt",
    "constant": "constant, same variance",
    "permuted": "permuted",
    "matched": "matched potentials",
    "zero": "none: means alone",
    "point": "none: a point",
    "noise": "its best noise",
}
LONG = "of a layer's root mean square weight"  # in a table that is wide enough
MEASURES = {
    "accuracy": "Accuracy",
    "ece": "ECE",
    "nll": "NLL",
    "auroc_mutual_information": "Foreign, by mutual information",
    "auroc_entropy": "by entropy",
    "auroc_discord": "by discord",
    "auroc_inputs": "by the inputs alone",
}


def panel(comparison: Comparison, page: Page) -> Section | None:
    rows: list[Row] = []
    seen = set()
    for series in comparison.series:
        scores = mapping(mapping(series.jobs[0].result.get("controls")).get("scores"))
        if not scores or (series.run.name, series.label) in seen:
            continue  # predictors of one learner share its controls
        seen.add((series.run.name, series.label))
        name = f"{series.run.name}: {series.label}" if len(comparison.runs) > 1 else series.label
        rows += _rows(series, name, "controls", "scores")
        gathered = mapping(mapping(series.jobs[0].result.get("controls")).get("gathered"))
        if gathered:
            rows += _rows(series, f"{name}, {gathered.get('gather')}, scaled", "controls", "gathered", "scores")
    if not rows:
        return None
    lead = (
        "The same means with other spreads, on the same examples. What a posterior is worth is what it has over all of "
        "its controls; a point has noise of the size that was best on other examples (rms: of a layer's weights). "
        "Learners whose steps are gathered otherwise than by the mean stand there that way too, each scaled by a "
        "temperature of its own. AUROC: how well foreign inputs are told from own ones, 0.5 is chance; by the inputs "
        "alone: without a network, by how often each input fires."
    )
    return Section(
        "controls",
        "Is it the posterior?",
        lead,
        [Table(["Learner", "Spread", *MEASURES.values()], rows, "controls-table")],
    )


def _rows(series: Series, name: str, *path: str) -> list[Row]:
    """A row for every spread that was judged in this way."""
    scores: Any = series.jobs[0].result
    for key in path:
        scores = mapping(mapping(scores).get(key))
    rows = []
    for spread, about in NAMES.items():
        if spread in scores:
            values = {key: over_seeds(series, *path, spread, key) for key in MEASURES}
            cells = [
                Cell(with_spread(*(value or (None, None)), percent=key == "accuracy"), value and value[0], key)
                for key, value in values.items()
            ]
            note = str(mapping(scores[spread]).get("about") or "")
            first = spread in ("learnt", "point")
            title = Cell(name, heading=True, simulated=series.run.simulated) if first else Cell("")
            rows.append(Row([title, Cell(about, tag=note.replace(LONG, "rms")), *cells]))
    return rows
