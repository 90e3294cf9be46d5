"""Online stochastic gradient descent (paper, Sec. "Surrogate Gradient", eq. sg-sgd).

    w ← w − η · mean gradient

at every time-step. With a `grid` the forward pass sees weights rounded to the chip's 8 bits and the gradient passes
straight through the rounding.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require_range
from bayspike.posteriors.distributions import Point
from bayspike.posteriors.grid import Grid
from bayspike.rules.base import initial_weights
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights


class SGDState(NamedTuple):
    weights: Tensor


@dataclass(frozen=True)
class SGD:
    """Frequentist learning of real-valued weights."""

    lr: float = 0.1
    init_scale: float = 1.0
    grid: Grid | None = None

    binary = False
    samples = 1
    needs_fisher = False
    by_means = True

    def __post_init__(self) -> None:
        require_range("lr", self.lr, 0)
        require_range("init_scale", self.init_scale, 0)

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> SGDState:
        return SGDState(initial_weights(shape, self.init_scale, generator))

    def drive(self, state: SGDState, generator: torch.Generator) -> Weights:
        return Weights(state.weights if self.grid is None else self.grid.round(state.weights))

    def update(self, state: SGDState, gradient: LocalGradient) -> SGDState:
        return SGDState(gradient.add_mean_to(state.weights, rate=-self.lr))

    def rest(self, state: SGDState, steps: int) -> SGDState:
        return state

    def end_task(self, state: SGDState, fisher: Tensor | None = None) -> SGDState:
        return state

    def posterior(self, state: SGDState) -> Point:
        return Point(state.weights)
