"""Measures of continual learning, from the accuracy matrix.

Row i of `matrix` is what was measured after training stage i, column j is task j. By default stage i
trains task i; where tasks come back, `stage_tasks[i]` names the task that stage i trained. Let f(j) be
the first stage that trained task j and S the last stage.

| measure           | definition: mean over tasks j of        | sign                              |
|-------------------|-----------------------------------------|-----------------------------------|
| average accuracy  | A[S, j]                                 | higher is better                  |
| forgetting        | max over f(j) <= i < S of A[i,j] - A[S,j] | positive: worse than at its best  |
| backward transfer | A[S, j] - A[f(j), j]                    | negative: later tasks did harm    |
| forward transfer  | A[f(j) - 1, j] - baseline[j]            | positive: earlier tasks helped    |
| plasticity        | A[f(j), j]                              | higher: new tasks are learnt well |

Entries that were not measured are NaN. What a task came to just after its first training and in the end must be there;
forgetting takes the best of what was measured between.
Forgetting and backward transfer leave out tasks first trained in the last stage, forward transfer the
task of the first stage; with nothing left to average they are NaN. Forgetting is
that of Chaudhry et al. (2018), its maximum taken from the task's first training on; the transfers are
those of Lopez-Paz and Ranzato (2017).
The baseline is the accuracy of the untrained network on each task.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require


class ContinualSummary(NamedTuple):
    """See the table above; `forward_transfer` is None without a baseline."""

    average_accuracy: float
    forgetting: float
    backward_transfer: float
    forward_transfer: float | None
    plasticity: float


def average_accuracy(matrix: Tensor, stage_tasks: Sequence[int] | None = None) -> float:
    """Mean accuracy over all tasks after the last stage."""
    matrix, _ = _checked(matrix, stage_tasks)
    return float(matrix[-1].mean())


def forgetting(matrix: Tensor, stage_tasks: Sequence[int] | None = None) -> float:
    """Mean drop from a task's best accuracy to its last; positive means forgotten."""
    matrix, first = _checked(matrix, stage_tasks)
    last = matrix.shape[0] - 1
    best = matrix.nan_to_num(nan=0.0)  # an accuracy is never less
    return _mean([best[f:last, j].max() - matrix[last, j] for j, f in enumerate(first) if f < last])


def backward_transfer(matrix: Tensor, stage_tasks: Sequence[int] | None = None) -> float:
    """Mean change of a task's accuracy from its first training to the end; negative means harm."""
    matrix, first = _checked(matrix, stage_tasks)
    last = matrix.shape[0] - 1
    return _mean([matrix[last, j] - matrix[f, j] for j, f in enumerate(first) if f < last])


def forward_transfer(matrix: Tensor, baseline: Tensor, stage_tasks: Sequence[int] | None = None) -> float:
    """Mean gain over the untrained network just before a task is first trained; positive means help."""
    matrix, first = _checked(matrix, stage_tasks)
    baseline = baseline.detach().to(torch.float64)
    require(
        baseline.shape == matrix.shape[1:],
        f"baseline must hold one accuracy for each of {matrix.shape[1]} tasks, but has shape {tuple(baseline.shape)}.",
    )
    require(bool(((baseline >= 0) & (baseline <= 1)).all()), "baseline must hold accuracies in [0, 1].")
    gains = [matrix[f - 1, j] - baseline[j] for j, f in enumerate(first) if f > 0]
    require(
        not any(bool(gain.isnan()) for gain in gains),
        "forward transfer needs each task's accuracy before its first training, but the matrix is NaN there.",
    )
    return _mean(gains)


def plasticity(matrix: Tensor, stage_tasks: Sequence[int] | None = None) -> float:
    """Mean accuracy of each task just after it was first trained."""
    matrix, first = _checked(matrix, stage_tasks)
    return _mean([matrix[f, j] for j, f in enumerate(first)])


def summarise_continual(
    matrix: Tensor, baseline: Tensor | None = None, stage_tasks: Sequence[int] | None = None
) -> ContinualSummary:
    """All five at once."""
    return ContinualSummary(
        average_accuracy(matrix, stage_tasks),
        forgetting(matrix, stage_tasks),
        backward_transfer(matrix, stage_tasks),
        None if baseline is None else forward_transfer(matrix, baseline, stage_tasks),
        plasticity(matrix, stage_tasks),
    )


def _mean(values: list[Tensor]) -> float:
    return float(torch.stack(values).mean()) if values else float("nan")


def _checked(matrix: Tensor, stage_tasks: Sequence[int] | None) -> tuple[Tensor, list[int]]:
    """The matrix in float64 and f(j) for each task, whose accuracy at f(j) and in the end is not NaN."""
    require(
        matrix.dim() == 2 and matrix.numel() > 0,
        f"the accuracy matrix must have shape (stages, tasks), but has {tuple(matrix.shape)}.",
    )
    matrix = matrix.detach().to(torch.float64)
    stages, tasks = matrix.shape
    if stage_tasks is None:
        require(
            stages == tasks,
            f"the accuracy matrix is {stages} x {tasks}: unless it is square, "
            "stage_tasks must name the task of each stage.",
        )
        stage_tasks = range(tasks)
    order = [int(task) for task in stage_tasks]
    require(
        len(order) == stages and set(order) == set(range(tasks)),
        f"stage_tasks must name one of tasks 0..{tasks - 1} for each of {stages} stages, and every task "
        f"at least once, but is {order}.",
    )
    first = [order.index(task) for task in range(tasks)]
    needed = torch.zeros(stages, tasks, dtype=torch.bool)
    needed[-1] = needed[first, range(tasks)] = True
    inside = (matrix >= 0) & (matrix <= 1)
    require(
        bool((inside | (matrix.isnan() & ~needed.to(matrix.device))).all()),
        "the accuracy matrix must lie in [0, 1]; NaN is allowed neither just after a task's first training nor in the "
        "last row.",
    )
    return matrix, first
