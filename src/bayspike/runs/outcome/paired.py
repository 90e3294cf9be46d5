"""Is one method better than another, or were the seeds kind to it? Differences paired by seed, with their interval.

Methods of a run share their seeds, hence network, read-out and stream: the difference of two methods on one seed is
free of what that seed does to both. Its mean over n seeds lies within t(n − 1)·s/√n of the true one with the given
confidence, if differences are about normal (Student's paired interval).
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

CONFIDENCE = 0.95
LOWER_IS_BETTER = ("ece", "nll", "brier")

# How well foreign inputs are told from own ones: by one score for all, or each method by that of its own kind, the
# mutual information of members that can disagree and the entropy of a point.
FOREIGN = {
    "auroc_confidence": ("confidence",),
    "auroc_entropy": ("entropy",),
    "auroc_own": ("mutual_information", "entropy"),
}


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


def headline(result: Mapping[str, Any]) -> str | None:
    """The predictor that stands for a method."""
    return str(result["headline_predictor"])


def gathered(result: Mapping[str, Any]) -> str | None:
    """The one that makes an answer of the steps otherwise than the paper does; None where there is none."""
    beside = result.get("gathered")  # a result of version 0.2 has no such entry
    return None if not beside else str(beside["predictor"])


def against_first(
    by_label: Mapping[str, Sequence[Mapping[str, Any]]],
    measures: Sequence[str],
    predictor: Callable[[Mapping[str, Any]], str | None] = headline,
) -> dict[str, dict[str, Any]]:
    """For every other method: the first method of the run minus it, by measure, each by the predictor named; and by
    AUROC where there are foreign inputs."""
    labels = [label for label, results in by_label.items() if results]
    names = (*measures, *FOREIGN)
    table = {label: {name: _by_seed(by_label[label], name, predictor) for name in names} for label in labels}
    found = {
        label: {name: compare(table[labels[0]][name], table[label][name]) for name in names} for label in labels[1:]
    }
    return {
        label: {name: each for name, each in entry.items() if each is not None or name not in FOREIGN}
        for label, entry in found.items()
        if any(entry.values())
    }


def better(measure: str, found: Mapping[str, Any] | None) -> bool | None:
    """Whether the first is better (True) or worse (False) beyond chance; None where the interval holds zero."""
    if not found or found["low"] <= 0 <= found["high"]:
        return None
    return bool((found["mean"] < 0) == (measure in LOWER_IS_BETTER))


def _by_seed(
    results: Sequence[Mapping[str, Any]], measure: str, predictor: Callable[[Mapping[str, Any]], str | None]
) -> dict[int, float]:
    values = {each["seed"]: _value(each, measure, predictor(each)) for each in results}
    return {seed: value for seed, value in values.items() if value is not None}


def _value(result: Mapping[str, Any], measure: str, predictor: str | None) -> float | None:
    if predictor is None:
        return None
    if measure not in FOREIGN:
        scored: float | None = result["final"][predictor]["overall"][measure]
        return scored
    areas = (result.get("ood") or {}).get(predictor, {}).get("auroc", {})
    return next((areas[score] for score in FOREIGN[measure] if areas.get(score) is not None), None)
