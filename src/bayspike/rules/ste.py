"""The straight-through estimator for binary weights (paper, Sec. "Straight-Through Estimator").

w^r ← w^r − η · mean gradient, taken at w = sign(w^r)        (eq. st-update)
w = sign(w^r)                                                (eq. st-binarize)
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


class STEState(NamedTuple):
    latent: Tensor


@dataclass(frozen=True)
class STE:
    """Frequentist learning of ±1 weights."""

    lr: float = 0.1
    init_scale: float = 1.0

    binary = True
    samples = 1
    needs_fisher = False
    by_means = True

    def __post_init__(self) -> None:
        require_range("lr", self.lr, 0)
        require_range("init_scale", self.init_scale, 0)

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> STEState:
        return STEState(initial_weights(shape, self.init_scale, generator))

    def drive(self, state: STEState, generator: torch.Generator) -> Weights:
        return Weights(binarize(state.latent))

    def update(self, state: STEState, gradient: LocalGradient) -> STEState:
        return STEState(gradient.add_mean_to(state.latent, rate=-self.lr))

    def rest(self, state: STEState, steps: int) -> STEState:
        return state

    def end_task(self, state: STEState, fisher: Tensor | None = None) -> STEState:
        return state

    def posterior(self, state: STEState) -> BinaryPoint:
        return BinaryPoint(state.latent)
