"""The run's figures with their captions, as pictures inside the page."""

import base64
from pathlib import Path
from typing import Any

from bayspike.report.markup import Page, badge, section, text
from bayspike.report.reading import sequence
from bayspike.report.runs import Comparison, Run

MOST_BYTES = 12 << 20  # of all pictures together; beyond it only the captions are shown
PNG = b"\x89PNG\r\n\x1a\n"


def panel(comparison: Comparison, page: Page) -> str:
    del page
    parts, left = [], MOST_BYTES
    for run in comparison.runs:
        for entry in run.figures:
            picture = _picture(run, entry, left)
            left -= len(picture or "")
            title = (
                text(entry.get("name", "figure"))
                if len(comparison.runs) == 1
                else text(f"{run.name}: {entry.get('name')}")
            )
            image = f'<img alt="{title}" loading="lazy" src="data:image/png;base64,{picture}">' if picture else ""
            caption = text(entry.get("caption", ""))
            caption = f"<figcaption><b>{title}</b>{badge(run.simulated)} {caption}</figcaption>"
            parts.append(f'<figure class="picture">{image}{caption}</figure>')
    if not parts:
        return ""
    lead = "Drawn for print; the same files, with their numbers as CSV, are in the run's folder <code>figures</code>."
    body = f"<details><summary>{len(parts)} figures</summary>{''.join(parts)}</details>"
    return section("figures", "Figures", lead, body)


def _picture(run: Run, entry: dict[str, Any], most: int) -> str | None:
    """The figure's PNG in base64. Only plain names inside the run's own folder are followed."""
    folder = run.path / "figures"
    for file in sequence(entry.get("files")):
        name = Path(str(file)).name
        path = folder / name
        if not name.endswith(".png") or path.is_symlink() or not path.is_file() or path.stat().st_size * 4 > most * 3:
            continue
        content = path.read_bytes()
        if content.startswith(PNG):
            return base64.b64encode(content).decode()
    return None
