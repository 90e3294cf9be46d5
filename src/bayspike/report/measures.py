"""The numbers that the panels and figures draw, computed from stored probabilities with `bayspike.metrics`.

Curves over t are computed for each seed and then averaged; bins pool the examples of all seeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from bayspike import metrics
from bayspike.report.reading import Array, mapping, number, sequence
from bayspike.report.runs import Job, Series

BINS = 10
MEASURES = ("accuracy", "ece", "confidence")


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation over seeds, element-wise; of one seed there is no deviation."""

    mean: Array
    std: Array | None


@dataclass(frozen=True)
class Bins:
    """Reliability bins for every t, `(time, bins)`; means of empty bins are NaN."""

    counts: Array
    confidence: Array
    accuracy: Array
    examples: int

    @property
    def ece(self) -> Array:
        return np.asarray(np.nansum(self.share * np.abs(self.confidence - self.accuracy), -1))

    @property
    def mean_accuracy(self) -> Array:
        return np.asarray(np.nansum(self.share * self.accuracy, -1))

    @property
    def mean_confidence(self) -> Array:
        return np.asarray(np.nansum(self.share * self.confidence, -1))

    @property
    def share(self) -> Array:
        return np.asarray(self.counts / self.counts.sum(-1, keepdims=True))


@dataclass(frozen=True)
class Foreign:
    """Histograms of confidence for every t, `(time, bins)`, and AUROC of one minus the confidence, `(time,)`."""

    own: Array
    foreign: Array
    auroc: Array


def spread(values: Sequence[Array]) -> Spread:
    stacked = np.stack([np.asarray(v, dtype=np.float64) for v in values])
    return Spread(stacked.mean(0), stacked.std(0, ddof=1) if len(stacked) > 1 else None)


def reliability_over_time(series: Series) -> Bins | None:
    """Bins of the stored subset of every seed, pooled."""
    pairs = [pair for job in series.jobs if (pair := job.over_time(series.predictor)) is not None]
    if not pairs or len({(p.shape[0], p.shape[2]) for p, _ in pairs}) > 1:
        return None
    p = torch.from_numpy(np.concatenate([p for p, _ in pairs], axis=1))
    labels = torch.from_numpy(np.concatenate([labels for _, labels in pairs]))
    bins = metrics.reliability_bins(p, labels, BINS)
    return Bins(bins.counts.numpy(), bins.confidence.numpy(), bins.accuracy.numpy(), len(labels))


def curves_over_time(series: Series) -> dict[str, Spread] | None:
    """Accuracy, ECE and mean confidence for every t, over seeds."""
    found: dict[str, list[Array]] = {key: [] for key in MEASURES}
    for job in series.jobs:
        pair = job.over_time(series.predictor)
        if pair is None:
            continue
        p, labels = torch.from_numpy(pair[0]), torch.from_numpy(pair[1])
        found["accuracy"].append(metrics.accuracy(p, labels).numpy())
        found["ece"].append(metrics.ece(p, labels, BINS).numpy())
        found["confidence"].append(metrics.mean_confidence(p).numpy())
    if not found["accuracy"] or len({len(v) for v in found["accuracy"]}) > 1:
        return None
    return {key: spread(values) for key, values in found.items()}


def foreign_over_time(series: Series) -> Foreign | None:
    """Own and foreign confidence of every seed, pooled."""
    own, foreign = [], []
    for job in series.jobs:
        pair, other = job.over_time(series.predictor), job.arrays.get(f"foreign/{series.predictor}", 3)
        if pair is not None and other is not None and other.shape[::2] == pair[0].shape[::2]:
            own.append(pair[0])
            foreign.append(other)
    if not own or len({p.shape[::2] for p in own}) > 1:
        return None
    a, b = (torch.from_numpy(np.concatenate(each, axis=1)) for each in (own, foreign))
    return Foreign(
        metrics.confidence_histogram(a, BINS)[1].numpy(),
        metrics.confidence_histogram(b, BINS)[1].numpy(),
        metrics.auroc(metrics.unsureness(a), metrics.unsureness(b)).numpy(),
    )


def matrix(series: Series) -> Array | None:
    """Accuracy matrix (stages, tasks), mean over seeds; NaN where nothing was measured."""
    found = []
    for job in series.jobs:
        rows = sequence(mapping(job.result.get("accuracy_matrix")).get(series.predictor))
        widths = {len(row) if isinstance(row, list) else 0 for row in rows}
        if len(widths) == 1 and widths != {0}:
            found.append(np.array([[_or_nan(v) for v in row] for row in rows]))
    if not found or len({m.shape for m in found}) > 1:
        return None
    return np.asarray(np.mean(found, axis=0))


@dataclass(frozen=True)
class Training:
    """Scores of every task over training, mean over seeds."""

    batch: Array  # (moments,) batches seen so far, over all tasks
    current: Array  # (moments,) the task being trained
    accuracy: Array  # (moments, tasks)
    ece: Array  # (moments, tasks)
    seeds: int


def training(series: Series) -> Training | None:
    """Evaluations of a method over training; only seeds measured at the same moments as the first are averaged."""
    found = [each for job in series.jobs if (each := _training_of(job, series.predictor)) is not None]
    if not found:
        return None
    first = found[0]
    same = [t for t in found if np.array_equal(t.batch, first.batch) and t.accuracy.shape == first.accuracy.shape]
    return Training(
        first.batch,
        first.current,
        np.mean([t.accuracy for t in same], axis=0),
        np.mean([t.ece for t in same], axis=0),
        len(same),
    )


def _training_of(job: Job, predictor: str) -> Training | None:
    moments, scores = [], []
    for entry in sequence(job.result.get("evaluations")):
        task, batch = (number(mapping(entry).get(key)) for key in ("task", "batch"))
        tasks = sequence(mapping(entry).get("tasks"))
        if mapping(entry).get("predictor") == predictor and task is not None and batch is not None and tasks:
            moments.append((int(task), batch))
            scores.append([[_or_nan(mapping(s).get(key)) for key in ("accuracy", "ece")] for s in tasks])
    if not moments or len({len(s) for s in scores}) > 1:
        return None
    longest: dict[int, float] = {}
    for task, batch in moments:
        longest[task] = max(longest.get(task, 0.0), batch)
    start = {task: sum(longest[other] for other in longest if other < task) for task in longest}
    values = np.array(scores, dtype=np.float64)
    batches = np.array([start[task] + batch for task, batch in moments])
    return Training(batches, np.array([task for task, _ in moments]), values[..., 0], values[..., 1], 1)


def over_seeds(series: Series, *path: str) -> tuple[float, float | None] | None:
    """Mean and sample standard deviation over seeds of one number in the results, found by following `path`."""
    values = []
    for job in series.jobs:
        value: Any = job.result
        for key in path:
            value = mapping(value).get(key)
        values.append(number(value))
    return spread_of(values)


def spread_of(values: Sequence[float | None]) -> tuple[float, float | None] | None:
    """Mean and sample standard deviation of the values that are there."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return float(np.mean(known)), float(np.std(known, ddof=1)) if len(known) > 1 else None


def _or_nan(value: Any) -> float:
    found = number(value)
    return float("nan") if found is None else found
