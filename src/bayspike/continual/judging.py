"""Judging a learner on every task with every predictor (paper, Sec. "Performance Measures").

`judge_with` makes the `evaluate` of `run_stream`: each test set is encoded alike for all predictors, and its decisions
are taken from the probabilities averaged over all time-steps.
"""

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from bayspike.continual.protocol import Evaluate, Scores, generator_for
from bayspike.continual.tasks import Task
from bayspike.errors import require, require_range
from bayspike.metrics import accuracy, brier, ece, mean_confidence, nll
from bayspike.network import Network
from bayspike.posteriors import Posterior
from bayspike.predictors import Committee, Ensemble, Point, Predictor, predict_samples

Kind = Literal["point", "committee", "ensemble"]


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


def judge_with(
    network: Network, predictors: Sequence[Kind] = ("committee",), *, members: int = 10, batch: int = 256
) -> Evaluate:
    """An `evaluate` for `run_stream` that judges with the named predictors, of `members` draws each.

    A frequentist posterior has one draw only: for it ask for `point` alone.
    """
    require(len(predictors) > 0, "judge_with needs at least one predictor.")
    for kind in predictors:
        require(kind in get_args(Kind), f"a predictor must be one of {', '.join(get_args(Kind))}, but is {kind!r}.")
    require_range("members", members, 1)
    make: dict[str, Callable[[Sequence[Posterior], torch.Generator], Predictor]] = {
        "point": lambda posteriors, _: Point.of(network, posteriors),
        "committee": lambda posteriors, generator: Committee.draw(network, posteriors, members, generator=generator),
        "ensemble": lambda posteriors, _: Ensemble(network, posteriors, members),
    }

    def evaluate(
        posteriors: Sequence[Posterior], judges: Sequence[Task], seed: int
    ) -> dict[str, tuple[tuple[Scores, ...], Scores]]:
        verdicts = {}
        for kind in predictors:
            predictor = make[kind](posteriors, generator_for(seed, "members"))
            found = []
            for number, judge in enumerate(judges):
                generator = generator_for(seed, "encode", number)
                done = predict_samples(predictor, judge.test, generator, batch, over_time=False, keep_members="none")
                found.append(done.probabilities[-1].cpu())
            tasks = tuple(score(part, judge.test.labels) for part, judge in zip(found, judges, strict=True))
            labels = torch.cat([judge.test.labels for judge in judges])
            verdicts[str(kind)] = (tasks, score(torch.cat(found), labels))
        return verdicts

    return evaluate
