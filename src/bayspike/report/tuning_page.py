"""The page of a tuning by itself: what was tried. One HTML file without scripts, as that of a learner."""

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from bayspike.report.markup import Section, templates
from bayspike.report.panels.tuning import tuning_parts
from bayspike.storage.files import write_whole


def write_tuning_report(record: Mapping[str, Any], out: Path) -> Path:
    """Write the page and return where it is."""
    style = (files("bayspike.report") / "static" / "report.css").read_text(encoding="utf-8")
    title = f"Tuning of {record['experiment']} ({record['preset']})"
    section = Section("tuning", "What was tried", "", tuning_parts(record))
    page = templates().get_template("learner.html").render(title=title, style=Markup(style), sections=[section])
    write_whole(out, page.encode("utf-8", "backslashreplace"))
    return out
