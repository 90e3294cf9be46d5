"""Synaptic intelligence (Zenke, Poole, Ganguli, ICML 2017, eqs. 3 to 5), per local loss.

Along the path of plain gradient descent each weight gathers what it did for the loss, ω ← ω − g·Δw. At the end of a
task that becomes an importance, and the weight is held to where it then stood:

    Ω ← Ω + ω/((w − w_start)² + ξ),      loss + c·Σ Ω·(w − w*)²

The pull is applied implicitly, as EWC's is: w ← (w − ηg + 2ηc·Ω·w*)/(1 + 2ηc·Ω) for any c.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require_range
from bayspike.posteriors.distributions import Point
from bayspike.rules.base import initial_weights
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights


class SIState(NamedTuple):
    weights: Tensor
    path: Tensor  # ω of this task
    importance: Tensor  # Ω
    anchor: Tensor  # w*, where the last task ended: also where this one started


@dataclass(frozen=True)
class SI:
    """strength: c. damping: ξ."""

    lr: float = 0.1
    strength: float = 0.1
    damping: float = 1e-3
    init_scale: float = 1.0

    binary = False
    samples = 1
    needs_fisher = False
    by_means = True

    def __post_init__(self) -> None:
        require_range("lr", self.lr, 0)
        require_range("strength", self.strength, 0)
        require_range("damping", self.damping, 0, low_open=True)
        require_range("init_scale", self.init_scale, 0)

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> SIState:
        weights = initial_weights(shape, self.init_scale, generator)
        return SIState(weights, torch.zeros_like(weights), torch.zeros_like(weights), weights.clone())

    def drive(self, state: SIState, generator: torch.Generator) -> Weights:
        return Weights(state.weights)

    def update(self, state: SIState, gradient: LocalGradient) -> SIState:
        weights, path, importance, anchor = state
        slope = gradient.mean()
        before = weights.clone()
        weights.add_(slope, alpha=-self.lr)
        rate = 2 * self.lr * self.strength
        if rate > 0:
            hold = importance * rate
            weights.addcmul_(hold, anchor).div_(hold.add_(1))
        path.sub_(slope.mul_(before.neg_().add_(weights)))
        return state

    def end_task(self, state: SIState, fisher: Tensor | None = None) -> SIState:
        weights, path, importance, anchor = state
        gained = path.clamp_min(0).div_((weights - anchor).square_().add_(self.damping))
        return SIState(weights, torch.zeros_like(path), importance + gained, weights.clone())

    def posterior(self, state: SIState) -> Point:
        return Point(state.weights)
