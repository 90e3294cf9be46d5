"""What the cells of the docs' tables have in common."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from bayspike.runs.outcome.paired import better

CONTROLS = {
    "learnt": "as learnt",
    "constant": "constant",
    "permuted": "permuted",
    "matched": "matched",
    "zero": "zero",
    "point": "a point",
    "noise": "its best noise",
}


def spread(measure: dict[str, Any] | None, digits: int, scale: float = 1.0) -> str:
    """Mean ± standard deviation over the seeds."""
    if not measure or measure.get("mean") is None:
        return ""
    text = f"{scale * measure['mean']:.{digits}f}"
    return text if measure.get("std") is None else f"{text} ± {scale * measure['std']:.{digits}f}"


def of_seeds(found: Sequence[Mapping[str, Any]], measure: str, digits: int, scale: float = 1.0) -> str:
    """Mean ± standard deviation over single lines; empty where a line has no such measure."""
    values = [line.get(measure) for line in found]
    if any(value is None for value in values):
        return ""
    std = stdev(values) if len(values) > 1 else None
    return spread({"mean": fmean(values), "std": std}, digits, scale)


def without_empty_columns(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Markdown; columns that are empty throughout are left out."""
    shown = [k for k in range(len(head)) if any(line[k] for line in lines)]
    table = ["| " + " | ".join(head[k] for k in shown) + " |", "|" + "---|" * len(shown)]
    return "\n".join(table + ["| " + " | ".join(line[k] for k in shown) + " |" for line in lines])


def difference(measure: str, found: Mapping[str, Any] | None) -> str:
    if not found:
        return ""
    scale, places = (100.0, 2) if measure == "accuracy" else (1.0, 4)
    mean, low, high = (f"{scale * found[key]:+.{places}f}" for key in ("mean", "low", "high"))
    text = f"{mean} [{low}, {high}]".replace("-", "−")
    return text if better(measure, found) is None else f"**{text}**"


def settings_of(run: Path) -> str:
    """A short name of all that a run was begun with, but for where its data lay: other settings, another name."""
    config = json.loads((run / "config.json").read_text("utf-8"))
    config["data"].pop("root", None)
    config["dataset"].pop("place", None)
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:12]
