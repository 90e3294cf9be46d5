"""Is one method better than another, or were the seeds kind to it? Differences paired by seed, with their interval.

Methods of a run share their seeds, hence network, read-out and stream: the difference of two methods on one seed is
free of what that seed does to both. Its mean over n seeds lies within t(n − 1)·s/√n of the true one with the given
confidence, if differences are about normal (Student's paired interval).
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

CONFIDENCE = 0.95
LOWER_IS_BETTER = ("ece", "nll", "brier")


def compare(first: Mapping[int, float], second: Mapping[int, float]) -> dict[str, Any] | None:
    """First minus second over the seeds that both have: mean and interval; None with fewer than two of them."""
    shared = sorted(first.keys() & second.keys())
    if len(shared) < 2:
        return None
    from scipy import stats

    differences = [first[seed] - second[seed] for seed in shared]
    mean = statistics.fmean(differences)
    half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, len(shared) - 1)) * statistics.stdev(differences)
    half /= math.sqrt(len(shared))
    return {"mean": mean, "low": mean - half, "high": mean + half, "seeds": len(shared)}


def against_first(
    by_label: Mapping[str, Sequence[Mapping[str, Any]]], measures: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """For every other method: the first method of the run minus it, by measure, each by its headline predictor."""
    labels = [label for label, results in by_label.items() if results]
    if len(labels) < 2:
        return {}
    table = {label: {name: _by_seed(by_label[label], name) for name in measures} for label in labels}
    found = {
        label: {name: compare(table[labels[0]][name], table[label][name]) for name in measures} for label in labels[1:]
    }
    return {label: entry for label, entry in found.items() if any(entry.values())}


def better(measure: str, found: Mapping[str, Any] | None) -> bool | None:
    """Whether the first is better (True) or worse (False) beyond chance; None where the interval holds zero."""
    if not found or found["low"] <= 0 <= found["high"]:
        return None
    return bool((found["mean"] < 0) == (measure in LOWER_IS_BETTER))


def _by_seed(results: Sequence[Mapping[str, Any]], measure: str) -> dict[int, float]:
    values = {each["seed"]: each["final"][each["headline_predictor"]]["overall"][measure] for each in results}
    return {seed: value for seed, value in values.items() if value is not None}
