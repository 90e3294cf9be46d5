"""A run through a stream, looked back upon: what it has to keep, and what it learnt and forgot."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.continual.protocol import UNJUDGED, Evaluation, Progress
from bayspike.continual.tasks import Stream
from bayspike.errors import require
from bayspike.metrics.continual import ContinualSummary, summarise_continual
from bayspike.rules.base import state_bytes


class Memory(NamedTuple):
    """What a learner has to keep, in bytes."""

    rule: int  # all of a rule's state: weights, distributions, priors, importances …
    coresets: int
    parameters: int  # of `rule`, the weights alone: what plain gradient descent keeps

    @property
    def overhead(self) -> float:
        """The rule's state as a multiple of the weights alone."""
        return self.rule / self.parameters


def memory_of(stream: Stream, progress: Progress) -> Memory:
    """Count the bytes of the rule's states and of the stored examples."""
    stored = sum(
        len(kept) * task.train.bytes_per_sample for task, kept in zip(stream.tasks, progress.coresets, strict=False)
    )
    stored += sum(said.numel() for said in progress.answers)  # a byte each
    weights = [state[0] for state in progress.states]  # every rule's first matrix has the shape of the weights
    parameters = sum(matrix.numel() * matrix.element_size() for matrix in weights)
    return Memory(sum(state_bytes(state) for state in progress.states), stored, parameters)


def score_matrix(evaluations: Sequence[Evaluation], predictor: str, measure: str) -> Tensor:
    """Row i: a measure of `Scores` for every judge after task i, at the end of that task; `(tasks, judges)`."""
    last = {entry.task: entry for entry in evaluations if entry.predictor == predictor}
    require(len(last) > 0, f"there are no evaluations by a predictor named {predictor!r}.")
    rows = [[getattr(scores, measure) for scores in last[k].tasks] for k in sorted(last)]
    return torch.tensor(rows, dtype=torch.float64)


def accuracy_matrix(evaluations: Sequence[Evaluation], predictor: str) -> Tensor:
    """Row i: accuracy on every judge after task i, as measured at the end of each task; `(tasks, judges)`."""
    return score_matrix(evaluations, predictor, "accuracy")


def summarise(stream: Stream, evaluations: Sequence[Evaluation], predictor: str) -> ContinualSummary:
    """Average accuracy, forgetting, transfers and plasticity of a finished run (see `bayspike.metrics.continual`).

    Where the tasks are not the judges, as in joint training, only the average accuracy has a meaning.
    """
    matrix = accuracy_matrix(evaluations, predictor)
    if stream.stage_judges is None:
        nan = float("nan")
        return ContinualSummary(float(matrix[-1].mean()), nan, nan, None, nan)
    return summarise_continual(matrix, untrained_accuracy(evaluations, predictor), stream.stage_judges)


def untrained_accuracy(evaluations: Sequence[Evaluation], predictor: str) -> Tensor | None:
    """Accuracy of the untrained network on every judge; None where not all of them were looked at."""
    first = next((e for e in evaluations if e.predictor == predictor and e.task == 0 and e.batch == 0), None)
    if first is None or UNJUDGED in first.tasks:
        return None
    return torch.tensor([scores.accuracy for scores in first.tasks])
