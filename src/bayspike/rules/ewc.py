"""Elastic weight consolidation (paper, Sec. "Regularization-based Continual Learning", eq. ewc).

    objective = mean loss + α · Σ_{k' < k} (w − w^(k'))ᵀ F^(k') (w − w^(k'))

The quadratic penalties of all past tasks add up to one: with S = Σ F^(k') and A = Σ F^(k') w^(k') its gradient is
2α(S·w − A), so all tasks are kept, exactly, in two matrices. The `online` variant forgets by a factor and
anchors at the latest weights alone (Schwarz et al., 2018).

The penalty's part of each step is taken implicitly, w ← (w − η·g + 2ηα·A)/(1 + 2ηα·S): for small ηαS that is the
gradient step of the equation, and no α makes it unstable.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError, require_range
from bayspike.posteriors.distributions import BinaryPoint, Point, binarize
from bayspike.posteriors.grid import Grid
from bayspike.rules.base import initial_weights
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights


class EWCState(NamedTuple):
    weights: Tensor
    importance: Tensor  # S = Σ F
    pull: Tensor  # A = Σ F·w


@dataclass(frozen=True)
class EWC:
    """Frequentist learning that holds on to the weights that mattered.

    strength: α per time-step. binary: ±1 weights by the straight-through estimator, the penalty on the latent ones.
    decay: of older tasks' importance in the `online` variant (1 forgets nothing).
    """

    lr: float = 0.1
    strength: float = 1e-4
    online: bool = False
    decay: float = 1.0
    binary: bool = False
    init_scale: float = 1.0
    grid: Grid | None = None

    samples = 1
    needs_fisher = True

    def __post_init__(self) -> None:
        require_range("lr", self.lr, 0)
        require_range("strength", self.strength, 0)
        require_range("decay", self.decay, 0, 1)
        require_range("init_scale", self.init_scale, 0)

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> EWCState:
        weights = initial_weights(shape, self.init_scale, generator)
        return EWCState(weights, torch.zeros_like(weights), torch.zeros_like(weights))

    def drive(self, state: EWCState, generator: torch.Generator) -> Weights:
        if self.binary:
            return Weights(binarize(state.weights))
        return Weights(state.weights if self.grid is None else self.grid.round(state.weights))

    def update(self, state: EWCState, gradient: LocalGradient) -> EWCState:
        weights, importance, pull = state
        weights.addmm_(gradient.delta.T * (-self.lr / gradient.batch), gradient.pre)
        rate = 2 * self.lr * self.strength
        if rate > 0:
            weights.add_(pull, alpha=rate).div_(importance.mul(rate).add_(1))
        return EWCState(weights, importance, pull)

    def end_task(self, state: EWCState, fisher: Tensor | None = None) -> EWCState:
        if fisher is None:
            raise UserError(
                "EWC needs the Fisher information of the task that ends; pass bayspike.learning.fisher's to end_task."
            )
        weights, importance, pull = state
        if self.online:
            importance = self.decay * importance + fisher
            return EWCState(weights, importance, importance * weights)
        return EWCState(weights, importance + fisher, pull + fisher * weights)

    def posterior(self, state: EWCState) -> Point | BinaryPoint:
        return BinaryPoint(state.weights) if self.binary else Point(state.weights)
