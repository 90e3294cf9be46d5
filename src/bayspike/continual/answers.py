"""Stored examples that carry what the learner said of them when their task ended.

A label tells a replayed example's class and nothing else; the answer of that time tells also which other classes it
was near, and how sure one could be. Ten classes are ten bytes beside an image of 784. Replaying against answers is
known from distillation (Li & Hoiem, Learning without forgetting; Buzzega et al., Dark experience replay); here the
answer is that of a committee, or of the point where there is no spread, averaged over the time-steps.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.posteriors.distributions import Point as PointMass
from bayspike.posteriors.distributions import Posterior
from bayspike.predict.predictors import Committee, Point, Predictor, predict_samples
from bayspike.seeds import generator_for
from bayspike.spiking.local import one_hot_targets
from bayspike.spiking.network import Network

StoredAs = Literal["labels", "answers"]
MEMBERS = 10


def said_of(samples: Samples, network: Network, learnt: Sequence[Posterior], seed: int) -> Tensor:
    """The learner's answer to each sample in whole 255ths, `(samples, classes)`, one byte each."""
    predictor: Predictor
    if all(isinstance(each, PointMass) for each in learnt):
        predictor = Point.of(network, learnt)
    else:
        predictor = Committee.draw(network, learnt, MEMBERS, generator=generator_for(seed, "members"))
    drawn = generator_for(seed, "encode")
    done = predict_samples(predictor, samples, drawn, over_time=False, keep_members="none")
    return done.probabilities[-1].mul(255).round().to(torch.uint8).cpu()


def targets_of(
    labels: Tensor, sources: Tensor, indices: Tensor, answers: Sequence[Tensor], classes: int, dtype: torch.dtype
) -> Tensor:
    """What the presentations of a mini-batch are to be taken for, `(batch, classes)`, in the order of `replay.fetch`.

    Labels are those that `fetch` gave. Number k of `answers` belongs to source k + 1; an answer that was rounded away
    altogether leaves the label.
    """
    targets = one_hot_targets(labels, classes, dtype)
    order = sources.argsort(stable=True)  # by source, and within one as they came
    sources, indices = sources[order], indices[order]
    for source, said in enumerate(answers, start=1):
        here = (sources == source).nonzero().flatten()
        answer = said[indices[here]].to(dtype)
        total = answer.sum(dim=1, keepdim=True)
        told = (total > 0).flatten()
        targets[here[told], : answer.shape[1]] = answer[told] / total[told]
        targets[here[told], answer.shape[1] :] = 0  # classes that were not known then
    return targets
