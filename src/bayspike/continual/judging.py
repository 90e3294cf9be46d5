"""Judging a learner on every task with every predictor (paper, Sec. "Performance Measures").

`judge_with` makes the `evaluate` of `run_stream`: each test set is encoded alike for all predictors, and its decisions
are taken from the probabilities averaged over all time-steps.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bayspike.continual.protocol import Evaluate, Scores
from bayspike.continual.tasks import Task
from bayspike.data.base import Samples
from bayspike.errors import require, require_range
from bayspike.kernels import Kernels
from bayspike.metrics import accuracy, brier, ece, mean_confidence, nll
from bayspike.posteriors.distributions import Posterior
from bayspike.predict.by_name import PREDICTORS, make_predictor
from bayspike.predict.predictors import predict_samples
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network


def score(probabilities: Tensor, labels: Tensor, bins: int = 10) -> Scores:
    """Scores of class probabilities `(examples, classes)`."""
    return Scores(
        accuracy=float(accuracy(probabilities, labels)),
        ece=float(ece(probabilities, labels, bins)),
        nll=float(nll(probabilities, labels)),
        brier=float(brier(probabilities, labels)),
        confidence=float(mean_confidence(probabilities)),
        examples=len(labels),
    )


def verdict(finals: Sequence[Tensor], parts: Sequence[Samples]) -> tuple[tuple[Scores, ...], Scores]:
    """Scores of every part, given its probabilities, and of all parts together."""
    tasks = tuple(score(final, part.labels) for final, part in zip(finals, parts, strict=True))
    overall = score(torch.cat(list(finals)), torch.cat([part.labels for part in parts]))
    return tasks, overall


def judge_with(
    network: Network,
    predictors: Sequence[str] = ("committee",),
    *,
    members: int = 10,
    batch: int = 256,
    kernels: Kernels = "plain",
) -> Evaluate:
    """An `evaluate` for `run_stream` that judges with the named predictors, of `members` draws each.

    A frequentist posterior has one draw only: for it ask for `point` alone.
    """
    require(len(predictors) > 0, "judge_with needs at least one predictor.")
    for kind in predictors:
        require(kind in PREDICTORS, f"a predictor must be one of {', '.join(PREDICTORS)}, but is {kind!r}.")
    require_range("members", members, 1)

    def evaluate(
        posteriors: Sequence[Posterior], judges: Sequence[Task], seed: int
    ) -> dict[str, tuple[tuple[Scores, ...], Scores]]:
        verdicts = {}
        for kind in predictors:
            predictor = make_predictor(
                kind, network, posteriors, members, generator_for(seed, "members"), kernels=kernels
            )
            found = []
            for number, judge in enumerate(judges):
                generator = generator_for(seed, "encode", number)
                done = predict_samples(predictor, judge.test, generator, batch, over_time=False, keep_members="none")
                found.append(done.probabilities[-1].cpu())
            verdicts[kind] = verdict(found, [judge.test for judge in judges])
        return verdicts

    return evaluate
