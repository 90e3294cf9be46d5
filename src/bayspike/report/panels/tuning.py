"""What was tried: every trial of the tuning that a run's settings are from, with the ranges that were searched."""

from collections.abc import Mapping, Sequence
from typing import Any

from bayspike.report.markup import Cell, Page, Paragraph, Part, Row, Section, Table, with_spread
from bayspike.report.reading import mapping, number, read_mapping, sequence
from bayspike.report.runs import Comparison

MOST_TRIALS = 500  # of a method that are shown


def panel(comparison: Comparison, page: Page) -> Section | None:
    del page
    parts: list[Part] = []
    for run in comparison.runs:
        record = read_mapping(run.path / "tuning.json")
        if record:
            parts += tuning_parts(record, run.name if len(comparison.runs) > 1 else "")
    return Section("tuning", "What was tried", "", parts) if parts else None


def tuning_parts(record: Mapping[str, Any], name: str = "") -> list[Part]:
    """The protocol in a sentence, the ranges, and a table of all trials."""
    division = mapping(record.get("division"))
    simulated = " The data are simulated." if record.get("simulated") else ""
    lead = (
        f"{record.get('trials')} trials a method, chosen by {record.get('objective')}: learnt from "
        f"{division.get('learnt_from')} training examples, judged by {division.get('judged_by')} others, the same for "
        f"every method and trial; the test examples took no part. What methods share has one range for all.{simulated}"
    )
    methods = {str(label): mapping(found) for label, found in mapping(record.get("methods")).items()}
    ranges = [
        _range_row("all methods", setting, mapping(each)) for setting, each in mapping(record.get("shared")).items()
    ]
    for label, found in methods.items():
        ranges += [_range_row(label, setting, mapping(each)) for setting, each in mapping(found.get("own")).items()]
    shared = [str(setting) for setting in mapping(record.get("shared"))]
    rows = [row for label, found in methods.items() for row in _trials(label, found, shared)]
    head = ["Method", "Trial", "", "Accuracy", "ECE", "NLL", *(name.rpartition(".")[2] for name in shared)]
    return [
        Paragraph(lead, heading=name),
        Table([*head, "Its own", "Seconds"], rows, "trials", sortable=True),
        Paragraph("The ranges that were searched.", heading="Ranges"),
        Table(["Of", "Setting", "From", "To", "Searched"], ranges, "ranges"),
    ]


def _range_row(whose: str, setting: str, each: Mapping[str, Any]) -> Row:
    ends = [number(each.get(end)) for end in ("low", "high")]
    unit = " × default" if setting == "network.threshold" else ""
    cells = [Cell("–" if end is None else f"{end:g}{unit}", end) for end in ends]
    return Row(
        [Cell(whose, heading=True), Cell(setting), *cells, Cell("by logarithm" if each.get("log") else "evenly")]
    )


def _trials(label: str, found: Mapping[str, Any], shared: Sequence[str]) -> list[Row]:
    best = mapping(found.get("best")).get("number")
    rows = []
    for trial in [mapping(each) for each in sequence(found.get("trials"))][:MOST_TRIALS]:
        scores, count = mapping(trial.get("scores")), number(trial.get("number"))
        values = {key: number(scores.get(key)) for key in ("accuracy", "ece", "nll")}
        chosen = count is not None and count == best
        settings = {str(name): number(each) for name, each in mapping(trial.get("settings")).items()}
        own = ", ".join(f"{name} {_short(value)}" for name, value in settings.items() if name not in shared)
        seconds = number(trial.get("seconds"))
        cells = [
            Cell(label, heading=True),
            Cell("–" if count is None else f"{count + 1:g}", count),
            Cell("chosen" if chosen else str(trial.get("state") or "")),
            *(Cell(with_spread(value, None, percent=key == "accuracy"), value) for key, value in values.items()),
            *(Cell(_short(settings.get(name)), settings.get(name)) for name in shared),
            Cell(own, tag=str(trial.get("why") or "")),
            Cell("–" if seconds is None else f"{seconds:.0f}", seconds),
        ]
        rows.append(Row(cells, kind="" if chosen else "minor"))
    return rows


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
