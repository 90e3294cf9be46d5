"""Which leads are more than chance: differences paired by seed, with their intervals (`runs.outcome.paired`)."""

from collections.abc import Iterator, Mapping
from typing import Any

from bayspike.report.markup import Cell, Page, Row, Section, Table
from bayspike.report.reading import mapping, number
from bayspike.report.runs import Comparison, Run
from bayspike.runs.outcome.paired import better

MEASURES = {"accuracy": "Accuracy, points", "ece": "ECE", "nll": "NLL", "brier": "Brier"}
FOREIGN = {"auroc_entropy": "AUROC by entropy", "auroc_own": "AUROC by own score"}
VERDICTS = {True: "ahead", False: "behind", None: "within chance"}


def panel(comparison: Comparison, page: Page) -> Section | None:
    del page  # nothing to plot here
    found = [
        (run, name, mapping(entry))
        for run in comparison.runs
        for name, entry in _differences(run, several=len(comparison.runs) > 1)
        if any(_known(entry, key) for key in MEASURES)
    ]
    if not found:
        return None
    foreign = any(_known(entry, key) for _, _, entry in found for key in FOREIGN)
    columns = {**MEASURES, **(FOREIGN if foreign else {})}
    rows = [
        Row(
            [
                Cell(name, heading=True, simulated=run.simulated),
                *(_cell(key, mapping(entry.get(key))) for key in columns),
            ]
        )
        for run, name, entry in found
    ]
    lead = (
        "The first method minus each other one, seed by seed, with the 95 % interval of the mean difference (Student, "
        "paired). A lead whose interval holds zero may be chance, however bold the means look."
    )
    if foreign:
        lead += (
            " AUROC of telling foreign inputs from own ones: by the entropy of all answers, and each by its own score, "
            "the mutual information of a committee and the entropy of a point."
        )
    return Section("paired", "Beyond chance?", lead, [Table(["Difference", *columns.values()], rows, "paired")])


def _differences(run: Run, *, several: bool) -> Iterator[tuple[str, Any]]:
    """Every other method by its headline predictor, then by the one that gathers otherwise than the paper's."""
    first = next(iter(run.methods), "")
    for key in ("paired", "paired_gathered"):
        for label, entry in mapping(run.summary.get(key)).items():
            name = f"{first} − {label}"
            if key == "paired_gathered":
                name += (
                    f" ({run.methods.get(first, {}).get('gathered')} − {run.methods.get(label, {}).get('gathered')})"
                )
            yield f"{run.name}: {name}" if several else name, entry


def _known(entry: Any, measure: str) -> bool:
    return number(mapping(mapping(entry).get(measure)).get("low")) is not None


def _cell(measure: str, found: Mapping[str, Any]) -> Cell:
    mean, low, high = (number(found.get(key)) for key in ("mean", "low", "high"))
    if mean is None or low is None or high is None:
        return Cell("–")
    scale, places = (100.0, 2) if measure == "accuracy" else (1.0, 4)
    text = f"{scale * mean:+.{places}f} [{scale * low:+.{places}f}, {scale * high:+.{places}f}]".replace("-", "−")
    verdict = VERDICTS[better(measure, {"mean": mean, "low": low, "high": high})]
    return Cell(text, mean, measure, tag=verdict)
