"""What was run, what was reduced against the paper, on what data, and in which environment."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bayspike.report.markup import Cell, Page, Part, Row, Section, Table, short
from bayspike.report.reading import mapping, sequence
from bayspike.report.runs import Comparison, Run

MOST_ROWS = 600


class Fold(NamedTuple):
    """A table that is folded until it is asked for; left out where it has no rows."""

    title: str
    table: Table
    kind: str = ""  # a class of the style sheet


@dataclass(frozen=True)
class Provenance(Part):
    """What is known of one run."""

    template = "provenance.html"
    title: str
    simulated: bool
    protocol: str
    reduced: Sequence[str]
    command: str  # as a shell takes it
    folds: Sequence[Fold]


def panel(comparison: Comparison, page: Page) -> Section:
    del page
    parts = [_run(run, several=len(comparison.runs) > 1) for run in comparison.runs]
    return Section("provenance", "Configuration and provenance", "", parts)


def _run(run: Run, *, several: bool) -> Provenance:
    protocol = run.summary.get("protocol")
    settings = {k: v for k, v in run.config.items() if k not in ("reduced", "dataset", "methods")}
    folds = [
        Fold("Methods", _methods(run), kind="methods"),
        Fold("Data set", _settings(mapping(run.config.get("dataset")))),
        Fold("Environment", _settings({k: v for k, v in run.environment.items() if k != "command"})),
        Fold("Configuration", _settings(settings)),
        Fold("Protocol", _settings(mapping(protocol))),
    ]
    return Provenance(
        title=run.name if several else "",
        simulated=run.simulated,
        protocol=protocol if isinstance(protocol, str) else "",
        reduced=[str(each) for each in sequence(run.config.get("reduced"))],
        command=shlex.join(str(word) for word in sequence(run.environment.get("command"))),
        folds=folds,
    )


def _settings(value: Mapping[str, Any]) -> Table:
    rows = [Row([Cell(key, heading=True), Cell(each)]) for key, each in flat(value)]
    return Table(["", ""], rows[:MOST_ROWS])


def _methods(run: Run) -> Table:
    """Every hyper-parameter, one column a method; those in which the methods differ stand out."""
    methods = [dict(flat(each)) for each in sequence(run.config.get("methods")) if isinstance(each, dict)]
    names = [each.pop("label", str(k + 1)) for k, each in enumerate(methods)]
    rows = []
    for key in dict.fromkeys(key for each in methods for key in each):
        values = [each.get(key, "") for each in methods]
        kind = "" if len(set(values)) > 1 else "minor"
        rows.append(Row([Cell(key, heading=True), *map(Cell, values)], kind=kind))
    return Table(["", *names], rows[:MOST_ROWS])


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted names with their values; lists of plain values stay on one line."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from flat(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for index, each in enumerate(value):
            key = str(mapping(each).get("label", index))
            yield from flat(each, f"{name}[{short(key)}]")
    elif isinstance(value, list):
        yield name, ", ".join(str(each) for each in value)
    else:
        yield name, "–" if value is None else str(value)
