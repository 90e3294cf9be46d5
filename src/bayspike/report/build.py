"""From run directories to one self-contained HTML file.

The page may run only the scripts written here: its content security policy names them by their hashes and forbids
every connection, so a hostile name that slipped through would still be plain text.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from plotly.offline import get_plotlyjs

from bayspike.errors import UserError
from bayspike.report.markup import Page, Paragraph, Section, plain, templates
from bayspike.report.panels import PANELS
from bayspike.report.reading import mapping
from bayspike.report.runs import HEADLINE, Run, compare, load_runs, views
from bayspike.storage.files import write_whole

SCRIPTS = ("theme.js", "plots.js", "stream.js", "page.js")


def write_report(
    run_dirs: Sequence[str | Path],
    out: str | Path | None = None,
    summaries: Sequence[dict[str, Any]] | None = None,
) -> Path:
    """Write the report on one run, or one that compares several, and return where it is.

    Without `out` it becomes `report.html` in the run's directory; for several runs `comparison.html` in the
    first one's, so that no run's own report is replaced. `summaries` stand for the runs' own summary.json.
    """
    runs = load_runs(run_dirs)
    if summaries is not None:
        runs = [replace(run, summary=summary) for run, summary in zip(runs, summaries, strict=True)]
    default = Path(run_dirs[0]) / ("report.html" if len(runs) == 1 else "comparison.html")
    target = Path(out) if out is not None else default
    write_whole(target, build_page(runs).encode("utf-8", "backslashreplace"))
    return target


def build_page(runs: Sequence[Run]) -> str:
    """The whole page as text."""
    comparison = compare(runs)
    page = Page()
    sections: list[Section] = []
    for title, panel in PANELS:
        try:
            found = panel(comparison, page)
        except UserError as error:  # one unreadable file costs its panel, not the report
            found = Section(f"missing-{len(sections)}", title, "", [Paragraph(f"Not shown: {error}", kind="missing")])
        if found:
            sections.append(found)
    static = files("bayspike.report") / "static"
    library = get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")
    script = "\n".join((static / name).read_text(encoding="utf-8") for name in SCRIPTS)
    template = templates().get_template("page.html")
    return template.render(
        policy=_policy(library, script),
        title=_title(runs),
        runs=[_Line(_facts(run), run.simulated) for run in runs],
        views=views(comparison),
        headline=HEADLINE,
        sections=sections,
        data=plain({"plots": page.plots, "streams": page.streams}),
        style=Markup((static / "report.css").read_text(encoding="utf-8")),
        plotly=Markup(library),
        script=Markup(script),
    )


def _policy(*scripts: str) -> str:
    hashes = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _title(runs: Sequence[Run]) -> str:
    experiments = list(dict.fromkeys(run.experiment for run in runs))
    return (f"{len(runs)} runs: " if len(runs) > 1 else "") + " · ".join(experiments)


class _Line(NamedTuple):
    facts: str
    simulated: bool


def _facts(run: Run) -> str:
    """Which run this is, and what its data really are, where they say so: which part of a larger set, for instance."""
    preset, started = run.config.get("preset"), str(run.environment.get("started") or "")
    data = mapping(run.config.get("dataset")).get("about")
    facts = [run.name, preset and f"preset {preset}", started[:16].replace("T", " "), data]
    return " · ".join(str(fact) for fact in facts if fact)
