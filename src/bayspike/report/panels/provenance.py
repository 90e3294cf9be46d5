"""What was run, what was reduced against the paper, on what data, and in which environment."""

from collections.abc import Iterator
from typing import Any

from bayspike.report.markup import Cell, Page, Row, badge, section, shorten, table, text
from bayspike.report.reading import mapping, sequence
from bayspike.report.runs import Comparison, Run

MOST_ROWS = 600


def panel(comparison: Comparison, page: Page) -> str:
    del page
    body = "".join(_run(run, several=len(comparison.runs) > 1) for run in comparison.runs)
    return section("provenance", "Configuration and provenance", "", body)


def _run(run: Run, *, several: bool) -> str:
    parts = [f"<h3>{text(run.name)}{badge(run.simulated)}</h3>" if several else ""]
    protocol = run.summary.get("protocol")
    if isinstance(protocol, str):
        parts.append(f"<p>{text(protocol)}</p>")
    reduced = [str(each) for each in sequence(run.config.get("reduced"))]
    if reduced:
        items = "".join(f"<li>{text(each)}</li>" for each in reduced)
        parts.append(f'<h4>Reduced against the paper</h4><ul class="reduced">{items}</ul>')
    else:
        parts.append("<p>Nothing is recorded as reduced against the paper.</p>")
    parts.append(_details("Methods", _methods(run), opened=True))
    shown: list[tuple[str, Any, bool]] = [
        ("Data set", mapping(run.config.get("dataset")), True),
        ("Environment", run.environment, True),
        ("Configuration", {k: v for k, v in run.config.items() if k not in ("reduced", "dataset", "methods")}, False),
        ("Protocol", mapping(protocol), False),
    ]
    for title, value, opened in shown:
        rows = [Row([Cell(text(key), heading=True), Cell(text(each))]) for key, each in flat(value)][:MOST_ROWS]
        parts.append(_details(title, table(["", ""], rows) if rows else "", opened=opened))
    return f'<div class="provenance">{"".join(parts)}</div>'


def _details(title: str, body: str, *, opened: bool) -> str:
    return f"<details{' open' if opened else ''}><summary>{title}</summary>{body}</details>" if body else ""


def _methods(run: Run) -> str:
    """Every hyper-parameter, one column a method; those in which the methods differ stand out."""
    methods = [dict(flat(each)) for each in sequence(run.config.get("methods")) if isinstance(each, dict)]
    names = [each.pop("label", str(k + 1)) for k, each in enumerate(methods)]
    rows = []
    for key in dict.fromkeys(key for each in methods for key in each):
        values = [each.get(key, "") for each in methods]
        kind = "" if len(set(values)) > 1 else "minor"
        rows.append(Row([Cell(text(key), heading=True), *(Cell(text(value)) for value in values)], kind=kind))
    return f'<div class="methods">{table(["", *names], rows[:MOST_ROWS])}</div>' if rows else ""


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as dotted names with their values; lists of plain values stay on one line."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from flat(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(each, dict | list) for each in value):
        for index, each in enumerate(value):
            key = str(mapping(each).get("label", index))
            yield from flat(each, f"{name}[{shorten(key)}]")
    elif isinstance(value, list):
        yield name, ", ".join(str(each) for each in value)
    else:
        yield name, "–" if value is None else str(value)
