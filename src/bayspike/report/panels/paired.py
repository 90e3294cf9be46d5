"""Which leads are more than chance: differences paired by seed, with their intervals (`runs.outcome.paired`)."""

from collections.abc import Mapping
from typing import Any

from bayspike.report.markup import Cell, Page, Row, Section, Table
from bayspike.report.reading import mapping, number
from bayspike.report.runs import Comparison
from bayspike.runs.outcome.paired import better

MEASURES = {"accuracy": "Accuracy, points", "ece": "ECE", "nll": "NLL", "brier": "Brier"}
VERDICTS = {True: "ahead", False: "behind", None: "within chance"}


def panel(comparison: Comparison, page: Page) -> Section | None:
    del page  # nothing to plot here
    rows = []
    for run in comparison.runs:
        first = next(iter(run.methods), "")
        for label, entry in mapping(run.summary.get("paired")).items():
            found = {key: mapping(mapping(entry).get(key)) for key in MEASURES}
            if any(number(each.get("low")) is not None for each in found.values()):
                name = f"{first} − {label}" if len(comparison.runs) == 1 else f"{run.name}: {first} − {label}"
                cells = [_cell(key, each) for key, each in found.items()]
                rows.append(Row([Cell(name, heading=True, simulated=run.simulated), *cells]))
    if not rows:
        return None
    lead = (
        "The first method minus each other one, seed by seed, with the 95 % interval of the mean difference (Student, "
        "paired). A lead whose interval holds zero may be chance, however bold the means look."
    )
    return Section("paired", "Beyond chance?", lead, [Table(["Difference", *MEASURES.values()], rows, "paired")])


def _cell(measure: str, found: Mapping[str, Any]) -> Cell:
    mean, low, high = (number(found.get(key)) for key in ("mean", "low", "high"))
    if mean is None or low is None or high is None:
        return Cell("–")
    scale, places = (100.0, 2) if measure == "accuracy" else (1.0, 4)
    text = f"{scale * mean:+.{places}f} [{scale * low:+.{places}f}, {scale * high:+.{places}f}]".replace("-", "−")
    verdict = VERDICTS[better(measure, {"mean": mean, "low": low, "high": high})]
    return Cell(text, mean, measure, tag=verdict)
