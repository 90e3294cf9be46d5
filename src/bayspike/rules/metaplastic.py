"""Binarised metaplasticity (Laborieux, Ernoult, Hirtzlin & Querlioz, Nature Communications 2021).

A synapse is the sign of a hidden weight h, trained straight through. The further the hidden weight has gone, the less
an update that would bring it back to zero is felt:

    h ← h − η·g·f(h)   where the step shrinks |h|, that is where g·h > 0,     f(h) = 1 − tanh²(m·h)
    h ← h − η·g        elsewhere

with g the mean gradient at w = sign(h). m = 0 is the straight-through estimator. The step is that of the gradient, as
with every rival. The logit of `BernoulliVI` plays the part of h.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require_range
from bayspike.posteriors.distributions import BinaryPoint, binarize
from bayspike.rules.base import initial_weights
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights


class MetaplasticState(NamedTuple):
    hidden: Tensor


@dataclass(frozen=True)
class Metaplastic:
    """Frequentist learning of ±1 weights that resist being flipped back. metaplasticity: m."""

    lr: float = 0.1
    metaplasticity: float = 1.0
    init_scale: float = 1.0

    binary = True
    samples = 1
    needs_fisher = False
    by_means = True

    def __post_init__(self) -> None:
        require_range("lr", self.lr, 0)
        require_range("metaplasticity", self.metaplasticity, 0)
        require_range("init_scale", self.init_scale, 0)

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> MetaplasticState:
        return MetaplasticState(initial_weights(shape, self.init_scale, generator))

    def drive(self, state: MetaplasticState, generator: torch.Generator) -> Weights:
        return Weights(binarize(state.hidden))

    def update(self, state: MetaplasticState, gradient: LocalGradient) -> MetaplasticState:
        hidden, slope = state.hidden, gradient.mean()
        felt = torch.tanh(hidden * self.metaplasticity).square_().neg_().add_(1)
        hidden.sub_(torch.where(slope * hidden > 0, slope * felt, slope), alpha=self.lr)
        return state

    def rest(self, state: MetaplasticState, steps: int) -> MetaplasticState:
        return state

    def end_task(self, state: MetaplasticState, fisher: Tensor | None = None) -> MetaplasticState:
        return state

    def posterior(self, state: MetaplasticState) -> BinaryPoint:
        return BinaryPoint(state.hidden)
