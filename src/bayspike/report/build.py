"""From run directories to one self-contained HTML file.

The page may run only the scripts written here: its content security policy names them by their hashes and forbids
every connection, so a hostile name that slipped through would still be plain text.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from plotly.offline import get_plotlyjs

from bayspike.errors import UserError
from bayspike.report.markup import Page, badge, embed_json, section, text
from bayspike.report.panels import PANELS
from bayspike.report.runs import HEADLINE, Comparison, Run, compare, load_runs, views
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
    sections = []
    for title, panel in PANELS:
        try:
            sections.append(panel(comparison, page))
        except UserError as error:  # one unreadable file costs its panel, not the report
            sections.append(
                section(f"missing-{len(sections)}", title, "", f'<p class="missing">Not shown: {text(error)}</p>')
            )
    static = files("bayspike.report") / "static"
    library = get_plotlyjs().replace("\r\n", "\n").replace("\r", "\n")
    script = "\n".join((static / name).read_text(encoding="utf-8") for name in SCRIPTS)
    parts = {
        "policy": _policy(library, script),
        "title": text(_title(runs)),
        "style": (static / "report.css").read_text(encoding="utf-8"),
        "header": _header(runs, comparison),
        "links": _links(sections),
        "sections": "".join(sections),
        "data": embed_json({"plots": page.plots, "streams": page.streams}),
        "plotly": library,
        "script": script,
    }
    template = (static / "page.html").read_text(encoding="utf-8")
    # One pass over the template, so that nothing inside a part is taken for a place to fill.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found.group(1)], template)


def _policy(*scripts: str) -> str:
    hashes = (base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts)
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"


def _title(runs: Sequence[Run]) -> str:
    experiments = list(dict.fromkeys(run.experiment for run in runs))
    return (f"{len(runs)} runs: " if len(runs) > 1 else "") + " · ".join(experiments)


def _header(runs: Sequence[Run], comparison: Comparison) -> str:
    lines = []
    for run in runs:
        preset, started = run.config.get("preset"), str(run.environment.get("started") or "")
        facts = [run.name, preset and f"preset {preset}", started[:16].replace("T", " ")]
        lines.append(f"<li>{text(' · '.join(str(f) for f in facts if f))}{badge(run.simulated)}</li>")
    warning = ""
    if any(run.simulated for run in runs):
        which = "" if all(run.simulated for run in runs) else " of runs marked so"
        warning = f'<p class="warning">Simulated data: the inputs{which} were generated, not recorded.</p>'
    choices = views(comparison)
    menu = ""
    if len(choices) > 1:
        options = "".join(
            f'<option value="{text(view)}">{"each method’s headline" if view == HEADLINE else text(view)}</option>'
            for view in choices
        )
        menu = f'<label class="menu">Predictor <select id="view">{options}</select></label>'
    return f'<h1>{text(_title(runs))}</h1><ul class="runs">{"".join(lines)}</ul>{warning}{menu}'


def _links(sections: Sequence[str]) -> str:
    """A table of contents from the headings that the panels wrote."""
    found = [re.match(r'<section id="([\w-]+)"><h2>(.*?)</h2>', each) for each in sections if each]
    return "".join(f'<a href="#{m.group(1)}">{m.group(2)}</a>' for m in found if m)
