"""The tables of docs/results.md and docs/tables.md, made anew from the summaries in docs/results.

    python studies/tables.py            # fill them in again
    python studies/tables.py --check    # say whether they are what the summaries say

A table stands between `<!-- KIND EXPERIMENT -->` and `<!-- end -->`; KIND is one of KINDS below, EXPERIMENT the
name of a summary, or of the lines of a study.
"""

import json
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import foreign_gestures
import gesture_folds
import gesture_trials
import robustness
from cells import CONTROLS, difference, spread, without_empty_columns
from memory_tables import memory, memory_controls, memory_paired

from bayspike.runs.outcome.paired import compare

COLUMNS = (
    "method",
    "predictor",
    "accuracy %",
    "ECE",
    "ECE of a task",
    "NLL",
    "Brier",
    "forgetting",
    "AUROC",
    "seconds",
)


def mean_of_tasks(measure: dict[str, Any]) -> str:
    """As the paper gives its ECE: that of each task's own test examples, averaged over the tasks."""
    tasks = measure.get("per_task") or []
    return f"{sum(tasks) / len(tasks):.4f}" if len(tasks) > 1 else ""


def rows(summary: dict[str, Any]) -> list[list[str]]:
    """A row for every predictor of every method."""
    found = []
    for label, entry in summary["methods"].items():
        for predictor, scores in entry["predictors"].items():
            first = predictor == entry["predictor"]
            foreign = entry.get("ood_auroc")
            found.append(
                [
                    label,
                    predictor,
                    spread(scores["accuracy"], 2, 100),
                    spread(scores["ece"], 4),
                    mean_of_tasks(scores["ece"]),
                    spread(scores["nll"], 3),
                    spread(scores["brier"], 3),
                    spread((entry.get("continual") or {}).get("forgetting"), 3) if first else "",
                    spread(foreign if isinstance(foreign, dict) else {"mean": foreign}, 3) if first else "",
                    f"{entry['seconds']:.0f}" if first else "",
                ]
            )
    return found


def scores(summary: dict[str, Any]) -> str:
    """Every predictor of every method."""
    return without_empty_columns(COLUMNS, rows(summary))


def costs(summary: dict[str, Any]) -> str:
    """What each method keeps and is shown."""
    head = ["method", "bytes per synapse", "coreset images", "bytes kept in all", "presentations", "replayed"]
    lines = []
    for label, entry in summary["methods"].items():
        joules, total = (entry.get("energy") or {}).get("joules"), (entry.get("memory_bytes") or {}).get("total")
        lines.append(
            [
                label,
                f"{entry['bytes_per_synapse']:.0f}",
                str(entry["coreset_examples"]),
                "" if total is None else f"{total:,}",
                str(entry["presentations"]),
                str(entry["replayed"]),
                "" if joules is None else f"{1e6 * joules:.0f} µJ",
            ]
        )
    return without_empty_columns([*head, "energy per decision (estimate)"], lines)


OTHERWISE = ("-weighted", "-logits")  # how predictors end that gather otherwise than by the mean
PAIRED = {
    "accuracy": "accuracy, points",
    "ece": "ECE",
    "nll": "NLL",
    "brier": "Brier",
    "auroc_entropy": "AUROC by entropy",
    "auroc_own": "AUROC by own score",  # the mutual information of a committee, the entropy of a point
}


def paired(summary: dict[str, Any]) -> str:
    """The first method minus each other one, seed by seed, with the 95 % interval; bold where that excludes nought."""
    labels = list(summary["methods"])
    lines = []
    for key, predictors in (("paired", headlines(summary)), ("paired_gathered", gathering_otherwise(summary))):
        found = summary[key] if key in summary else by_seed(summary, predictors)
        for label, entry in found.items():
            known = [entry[name] for name in PAIRED if entry.get(name)]
            seeds = str(known[0]["seeds"]) if known else ""
            names = f"{predictors.get(labels[0])} − {predictors.get(label)}"
            cells = [difference(name, entry.get(name)) for name in PAIRED]
            lines.append([f"{labels[0]} − {label}", names, seeds, *cells])
    if not lines:
        return "No differences: that takes two seeds of two methods, and the summary must have what each of them had."
    return without_empty_columns(["difference", "predictors", "seeds", *PAIRED.values()], lines)


def headlines(summary: dict[str, Any]) -> dict[str, str]:
    return {label: entry["predictor"] for label, entry in summary["methods"].items()}


def gathering_otherwise(summary: dict[str, Any]) -> dict[str, str]:
    """By method the predictor that gathers otherwise than by the mean; in summaries of before its name tells it."""
    found = {
        label: entry.get("gathered") or next((name for name in entry["predictors"] if name.endswith(OTHERWISE)), None)
        for label, entry in summary["methods"].items()
    }
    return {label: name for label, name in found.items() if name is not None}


def by_seed(summary: dict[str, Any], predictors: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The differences of a summary that has none of its own, but the value of every seed."""
    values: dict[str, dict[str, dict[int, float]]] = {}
    for label, predictor in predictors.items():
        entry = summary["methods"][label]
        scored = entry["predictors"][predictor]
        values[label] = {
            name: dict(zip(entry["seeds"], scored[name].get("seeds", []), strict=False))
            for name in PAIRED
            if name in scored
        }
    first, *others = values or [None]
    found = {
        label: {name: compare(values[first][name], each) for name, each in values[label].items()}
        for label in others
        if first is not None
    }
    return {label: entry for label, entry in found.items() if any(entry.values())}


def chip(summary: dict[str, Any]) -> str:
    """Float beside Loihi's integers."""
    lines = ["| method | examples | float accuracy % | fixed-point accuracy % | same decisions % |", "|" + "---|" * 5]
    for label, entry in summary["methods"].items():
        found = entry.get("chip") or {"refused": "not looked at"}
        if "refused" in found:
            lines.append(f"| {label} | | | | {found['refused']} |")
            continue
        before, after, same = (
            spread(found[key], 1, 100) for key in ("float_accuracy", "fixed_accuracy", "same_decisions")
        )
        lines.append(f"| {label} | {found['examples']} | {before} | {after} | {same} |")
    return "\n".join(lines)


def foreign(summary: dict[str, Any]) -> str:
    """AUROC of telling foreign inputs by each score of uncertainty."""
    by = {name: f"by {name.replace('_', ' ')}" for name in ("confidence", "entropy", "mutual_information", "discord")}
    lines = []
    for label, entry in summary["methods"].items():
        found = (entry.get("ood_auroc") or {}).get("by_score", {})
        lines.append([label, entry["predictor"], *(spread(found.get(score), 3) for score in by)])
    return without_empty_columns(["method", "predictor", *by.values()], lines)


def stream(summary: dict[str, Any]) -> str:
    """A stream of many tasks: what is kept of the last five, and whether the newest is learnt as well as ever."""
    head = ["method", "seeds", "the last five %", "ECE of one of them", "ECE, gathered and scaled"]
    head += ["the task just learnt %: tasks 6 to 15", "the last twenty", "seconds"]
    lines = []
    for label, entry in summary["methods"].items():
        newest = entry.get("newest") or {}
        named = [entry["predictor"], *(name for name in entry["predictors"] if name.endswith(("-logits", "-weighted")))]
        errors = [entry["predictors"][name]["ece"]["per_task"][-5:] for name in named[:2]]
        lines.append(
            [
                label,
                f"{len(entry['seeds'])}",
                spread(entry["last_five"], 1, 100),
                *(f"{sum(each) / 5:.3f}" for each in errors),
                *[""] * (2 - len(errors)),
                *(spread(newest.get(part), 1, 100) for part in ("early", "late")),
                f"{entry['seconds']:.0f}",
            ]
        )
    return without_empty_columns(head, lines)


def controls(summary: dict[str, Any], judged: str = "controls") -> str:
    """Every learner beside its controls."""
    head = ["method", "spread", "accuracy %", "ECE", "NLL", "foreign, by mutual information", "foreign, by entropy"]
    head += ["foreign, by discord", "foreign, by the inputs alone"]
    lines = []
    for label, entry in summary["methods"].items():
        for name, shown in CONTROLS.items():
            found = (entry.get(judged) or {}).get(name)
            if found:
                lines.append(
                    [
                        label,
                        shown,
                        spread(found["accuracy"], 2, 100),
                        spread(found["ece"], 4),
                        spread(found["nll"], 3),
                        spread(found["auroc_mutual_information"], 3),
                        spread(found["auroc_entropy"], 3),
                        spread(found.get("auroc_discord"), 3),
                        spread(found.get("auroc_inputs"), 3),
                    ]
                )
    if not lines:
        return "No controls were judged: `bayspike evaluate RUN --controls --keep` does so, then copy its summary.json."
    return without_empty_columns(head, lines)


def controls_gathered(summary: dict[str, Any]) -> str:
    """The same where steps are gathered otherwise than by the mean, each scaled by a temperature of its own."""
    return controls(summary, "controls_gathered")


def pruning(summary: dict[str, Any]) -> str:
    """Accuracy without a share of the synapses, by the order in which they were cut."""
    methods = {label: entry["pruning"] for label, entry in summary["methods"].items() if entry.get("pruning")}
    shares = sorted({row["pruned"] for rows in methods.values() for row in rows if row["pruned"]})
    lines = ["| method | cut by | " + " | ".join(f"{100 * share:g} % cut" for share in (0, *shares)) + " |"]
    lines.append("|" + "---|" * (3 + len(shares)))
    for label, rows in methods.items():
        by_place = {(row["pruned"], row["by"]): spread(row["accuracy"], 2, 100) for row in rows}
        for order, shown in (("size", "size"), ("signal", "signal to noise")):
            if any(by == order for _, by in by_place):
                cells = [by_place.get((0, ""), ""), *(by_place.get((share, order), "") for share in shares)]
                lines.append(f"| {label} | {shown} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


KINDS: dict[str, Callable[[Any], str]] = {
    "memory-controls": memory_controls,
    "memory-paired": memory_paired,
    "memory": memory,
    "controls-gathered": controls_gathered,
    "controls": controls,
    "pruning": pruning,
    "scores": scores,
    "costs": costs,
    "chip": chip,
    "gesture-folds": gesture_folds.table,
    "gesture-trials": gesture_trials.table,
    "robustness-paired": robustness.differences,
    "robustness": robustness.table,
    "foreign-gestures-paired": foreign_gestures.differences,
    "foreign-gestures": foreign_gestures.table,
    "foreign": foreign,
    "paired": paired,
    "stream": stream,
}


def fill(page: str, summaries: Path) -> str:
    """The page with every marked table as the summaries have it."""

    def write(marked: re.Match[str]) -> str:
        lines = summaries / f"{marked['name']}.jsonl"  # of a study; a run has one summary
        if lines.is_file():
            summary = [json.loads(line) for line in lines.read_text().splitlines()]
        else:
            summary = json.loads((summaries / f"{marked['name']}.json").read_text())
        return f"{marked['begin']}\n\n{KINDS[marked['kind']](summary)}\n\n<!-- end -->"

    kinds = "|".join(KINDS)
    return re.sub(
        rf"(?P<begin><!-- (?P<kind>{kinds}) (?P<name>[\w-]+) -->).*?<!-- end -->", write, page, flags=re.DOTALL
    )


if __name__ == "__main__":
    docs = Path(__file__).parents[1] / "docs"
    for path in (docs / "results.md", docs / "tables.md"):
        old = path.read_text()
        new = fill(old, docs / "results")
        if sys.argv[1:] != ["--check"]:
            path.write_text(new)
        elif new != old:
            sys.exit(f"docs/{path.name} is not what docs/results says: run python studies/tables.py.")
