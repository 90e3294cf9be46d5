"""The course of a stream, task after task, from what was judged while it was learnt.

After each task: the accuracy of the task just learnt (does the learner stay plastic?), of the last five, of all so
far; the calibration error of those that were looked at; and where the precisions of a posterior stand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayspike.report.reading import Array, mapping, number, sequence

LAST = 5
FEWEST = 3  # tasks that make a course


@dataclass(frozen=True)
class Course:
    """One row for every task; NaN where something was not measured."""

    newest: Array  # (tasks,)
    last_five: Array  # (tasks,)
    learnt: Array  # (tasks,) those before the last five by the mean of the ones that were looked at
    ece: Array  # (tasks,) of their examples together
    precision: Array | None  # (tasks, layers, 3): below which 5, 50 and 95 % of a layer's lie
    sampled: bool  # whether some of the tasks learnt were not looked at


def course_of(result: Mapping[str, Any], predictor: str, precision: Array | None = None) -> Course | None:
    """The course of one job; None where its stages are not its tasks, or too few."""
    tasks = len(sequence(result.get("task_names")))
    last: dict[int, Mapping[str, Any]] = {}
    for entry in map(mapping, sequence(result.get("evaluations"))):
        stage = number(entry.get("task"))
        if entry.get("predictor") == predictor and stage is not None:
            last[int(stage)] = entry
    whole = all(len(sequence(last[k].get("tasks"))) == tasks for k in last)
    if tasks < FEWEST or sorted(last) != list(range(tasks)) or not whole:
        return None
    rows = np.array([[_accuracy(each) for each in sequence(last[k]["tasks"])] for k in range(tasks)])
    known = ~np.isnan(rows)
    seen = np.tril(np.ones((tasks, tasks), dtype=bool))
    recent = seen & ~np.tril(np.ones((tasks, tasks), dtype=bool), -LAST)
    errors = [
        number(mapping(last[k].get("overall")).get("ece")) if not known[k, k + 1 :].any() else None
        for k in range(tasks)
    ]
    if precision is not None and (precision.ndim != 3 or precision.shape[::2] != (tasks, 3)):
        precision = None
    return Course(
        newest=np.diagonal(rows).copy(),
        last_five=_mean_of(rows, recent & known),
        learnt=_mean_of_all(rows, recent & known, seen & ~recent & known),
        ece=np.array([np.nan if each is None else each for each in errors]),
        precision=precision,
        sampled=bool((seen & ~known).any()),
    )


def mean_course(courses: Sequence[Course]) -> Course | None:
    """Over seeds, as far as they have as many tasks as the first."""
    same = [each for each in courses if each.newest.shape == courses[0].newest.shape]
    if not same:
        return None
    spread = [each.precision for each in same if each.precision is not None]
    curves = [[getattr(each, name) for each in same] for name in ("newest", "last_five", "learnt", "ece")]
    newest, last_five, learnt, ece = (np.mean(curve, axis=0) for curve in curves)
    # precisions span orders of magnitude: their geometric mean
    precision = np.exp(np.mean(np.log(spread), axis=0)) if len(spread) == len(same) else None
    return Course(newest, last_five, learnt, ece, precision, any(each.sampled for each in same))


def last_tasks(result: Mapping[str, Any], predictor: str, count: int = LAST) -> float | None:
    """Mean accuracy of the last tasks in the final examination."""
    finals = sequence(mapping(mapping(result.get("final")).get(predictor)).get("per_task"))
    values = [number(mapping(each).get("accuracy")) for each in finals[-count:]]
    known = [each for each in values if each is not None]
    return float(np.mean(known)) if known and len(known) == len(values) else None


def _accuracy(scores: Any) -> float:
    found = number(mapping(scores).get("accuracy"))
    return float("nan") if found is None else found


def _mean_of(rows: Array, which: Array) -> Array:
    """The mean of the chosen entries of every row; NaN where there are none."""
    counts = which.sum(axis=1)
    total = np.where(which, np.nan_to_num(rows), 0.0).sum(axis=1)
    return np.where(counts > 0, total / np.maximum(counts, 1), np.nan)


def _mean_of_all(rows: Array, recent: Array, older: Array) -> Array:
    """The mean of all tasks so far, where of the older ones a few stand for the others."""
    tasks = np.arange(1, len(rows) + 1)
    rest = np.maximum(tasks - LAST, 0)
    new, old = _mean_of(rows, recent), np.where(rest > 0, _mean_of(rows, older), 0.0)
    looked_at = _mean_of(rows, recent | older)
    return np.where(np.isnan(new + old), looked_at, ((tasks - rest) * new + rest * old) / tasks)
