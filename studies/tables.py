"""The tables of docs/results.md from the summaries in docs/results, as Markdown on standard output.

python studies/tables.py docs/results/split-mnist.json
"""

import json
import sys
from pathlib import Path
from typing import Any

COLUMNS = ("method", "predictor", "accuracy %", "ECE", "NLL", "Brier", "forgetting", "AUROC", "seconds")


def spread(measure: dict[str, Any] | None, digits: int, scale: float = 1.0) -> str:
    """Mean ± standard deviation over the seeds."""
    if not measure or measure.get("mean") is None:
        return ""
    text = f"{scale * measure['mean']:.{digits}f}"
    return text if measure.get("std") is None else f"{text} ± {scale * measure['std']:.{digits}f}"


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
                    spread(scores["nll"], 3),
                    spread(scores["brier"], 3),
                    spread((entry.get("continual") or {}).get("forgetting"), 3) if first else "",
                    spread(foreign if isinstance(foreign, dict) else {"mean": foreign}, 3) if first else "",
                    f"{entry['seconds']:.0f}" if first else "",
                ]
            )
    return found


def table(summary: dict[str, Any]) -> str:
    """Markdown; columns that are empty throughout are left out."""
    lines = rows(summary)
    shown = [k for k in range(len(COLUMNS)) if any(line[k] for line in lines)]
    head = ["| " + " | ".join(COLUMNS[k] for k in shown) + " |", "|" + "---|" * len(shown)]
    return "\n".join(head + ["| " + " | ".join(line[k] for k in shown) + " |" for line in lines])


def costs(summary: dict[str, Any]) -> str:
    """What each method keeps and is shown."""
    head = [
        "| method | bytes per synapse | coreset images | presentations | replayed | energy per decision (estimate) |",
        "|---|---|---|---|---|---|",
    ]
    for label, entry in summary["methods"].items():
        joules = (entry.get("energy") or {}).get("joules")
        energy = "" if joules is None else f"{1e6 * joules:.0f} µJ"
        head.append(
            f"| {label} | {entry['bytes_per_synapse']:.0f} | {entry['coreset_examples']} | {entry['presentations']} | "
            f"{entry['replayed']} | {energy} |"
        )
    return "\n".join(head)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        summary = json.loads(Path(name).read_text())
        print(f"{summary['title']}{' (simulated data)' if summary['simulated'] else ''}\n\n{table(summary)}\n")
        print(f"{costs(summary)}\n")
