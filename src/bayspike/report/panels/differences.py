"""What differs between the runs that are compared: settings, data, learners, software. It is read before any number."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bayspike.report.markup import Cell, Page, Paragraph, Part, Row, Section, Table
from bayspike.report.panels.provenance import flat
from bayspike.report.reading import mapping, sequence
from bayspike.report.runs import Comparison, Run

MOST_ROWS = 80
# What a run is called, where it lies and when it was made says nothing about its results; `reduced` repeats settings.
TOLD_ELSEWHERE = ("reduced", "methods", "dataset", "simulated", "format", "data.root", "dataset.place")
SOFTWARE = ("bayspike", "git", "python", "packages", "processor", "cores", "cuda")


def panel(comparison: Comparison, page: Page) -> Section | None:
    del page
    runs = comparison.runs
    if len(runs) < 2:
        return None
    rows = differing(runs)
    lead = "Settings, data and software in which the runs differ; what is not listed is the same in all of them."
    if not rows:
        same = "Nothing that was recorded differs: these are runs of the same settings, data and software."
        return Section("differences", "What differs", "", [Paragraph(same)])
    table = Table(["", *(run.name for run in runs)], [_row(*each) for each in rows[:MOST_ROWS]], name="differences")
    parts: list[Part] = [table]
    if len(rows) > MOST_ROWS:
        parts.append(Paragraph(f"{len(rows) - MOST_ROWS} more differences are in the configurations, at the end."))
    return Section("differences", "What differs", lead, parts)


def differing(runs: Sequence[Run]) -> list[tuple[str, list[str]]]:
    """Every setting that is not the same in all runs, with its value in each; a dash where a run has none.

    The settings of a learner are compared if several runs have it; which runs have it is said once.
    """
    learners = [_learners(run) for run in runs]
    shared = {label for each in learners for label in each if sum(label in other for other in learners) > 1}
    known = [_settings(run, shared) for run in runs]
    names = dict.fromkeys(name for each in known for name in each)
    values = {name: [each.get(name, "–") for each in known] for name in names}
    return [(name, found) for name, found in values.items() if len(set(found)) > 1]


def _learners(run: Run) -> dict[str, Mapping[str, Any]]:
    found = [each for each in sequence(run.config.get("methods")) if isinstance(each, dict)]
    return {str(each.get("label")): {key: each[key] for key in each if key != "label"} for each in found}


def _settings(run: Run, learners: Collection[str]) -> dict[str, str]:
    own = _learners(run)
    parts: list[tuple[str, Mapping[str, Any]]] = [
        ("", {key: value for key, value in run.config.items() if key not in TOLD_ELSEWHERE}),
        ("dataset", mapping(run.config.get("dataset"))),
        ("", {"learners": list(own)}),
        *((label, own[label]) for label in own if label in learners),
        ("", {key: run.environment[key] for key in SOFTWARE if key in run.environment}),
    ]
    found = (pair for name, part in parts for pair in flat(part, name))
    return {name: value for name, value in found if name not in TOLD_ELSEWHERE}


def _row(name: str, values: Sequence[str]) -> Row:
    return Row([Cell(name, heading=True), *map(Cell, values)])
