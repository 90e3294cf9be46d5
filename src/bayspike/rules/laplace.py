"""A posterior by Laplace's method, carried from task to task (Kirkpatrick et al. 2017; Ritter, Botev & Barber 2018).

The means learn by gradient descent; when a task ends, the curvature of its loss at the weights that were found is added
to the precision of every synapse, and N(w, 1/P) is the prior of the next task:

    P ← P + F        w* ← w        with P = p₀ at the beginning, w* = 0

F = Σ_examples (∇_w Σ_t L)² is the Fisher information of `bayspike.learning.fisher`, so that each time-step of each
example counts as one log-likelihood. The negative log-posterior of a task of N presentations of T steps, divided by
N·T, is what is minimised:

    mean loss + κ/(2·N·T) · (w − w*)ᵀ P (w − w*)

which is elastic weight consolidation with the one strength that Bayes' rule gives it, anchored at the latest weights;
the carry κ (1: the letter) makes up for what the diagonal leaves out, as in `bayspike.rules.gaussian`. Unlike there a
step is not divided by the precision: what is sure is held by its anchor alone, and stays quick to learn.
The pull's part of a step is implicit, so that no κ makes it unstable.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError, require_range
from bayspike.posteriors.distributions import Gaussian
from bayspike.posteriors.grid import Grid
from bayspike.rules.base import Pace, first_precision, initial_weights
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights


class LaplaceState(NamedTuple):
    weights: Tensor
    precision: Tensor  # P
    anchor: Tensor  # w*


@dataclass(frozen=True)
class Laplace:
    """Gradient descent whose weights become a normal distribution at the end of each task.

    prior_std: how wide a weight may be before anything is known of it; None: by fan-in, threshold and activity, as in
    `GaussianVI`. carry: κ, how hard earlier tasks hold. strength: κ/(2·N·T) itself; None: from the task's pace.
    """

    lr: float = 0.1
    prior_std: float | None = None
    carry: float = 1.0
    strength: float | None = None
    init_scale: float = 1.0
    grid: Grid | None = None

    samples = 1
    binary = False
    needs_fisher = True
    bayesian = True
    by_threshold = True
    by_means = True

    def __post_init__(self) -> None:
        for name in ("lr", "carry", "init_scale"):
            require_range(name, getattr(self, name), 0)
        if self.strength is not None:
            require_range("strength", self.strength, 0)
        if self.prior_std is not None:
            require_range("prior_std", self.prior_std, 0, low_open=True)

    def at(self, pace: Pace) -> "Laplace":
        """The same rule with the strength that Bayes' rule has at this pace."""
        if self.strength is not None:
            return self
        return replace(self, strength=self.carry / (2 * pace.examples * pace.steps))

    def init(
        self, shape: tuple[int, int], generator: torch.Generator, threshold: float = 1.0, activity: float = 0.1
    ) -> LaplaceState:
        weights = initial_weights(shape, self.init_scale, generator)
        first = first_precision(self.prior_std, shape[1], threshold, activity)
        return LaplaceState(weights, torch.full_like(weights, first), torch.zeros_like(weights))

    def drive(self, state: LaplaceState, generator: torch.Generator) -> Weights:
        return Weights(state.weights if self.grid is None else self.grid.round(state.weights))

    def update(self, state: LaplaceState, gradient: LocalGradient) -> LaplaceState:
        weights, precision, anchor = state
        if self.strength is None:
            raise UserError("this Laplace does not know its task yet: rule.at(Pace(…)) tells it, as training does.")
        gradient.add_mean_to(weights, rate=-self.lr)
        rate = 2 * self.lr * self.strength
        if rate > 0:
            held = precision.mul(rate)
            weights.addcmul_(held, anchor).div_(held.add_(1))
        return state

    def end_task(self, state: LaplaceState, fisher: Tensor | None = None) -> LaplaceState:
        if fisher is None:
            raise UserError("Laplace needs the Fisher information of the task that ends, as EWC does.")
        return LaplaceState(state.weights, state.precision + fisher, state.weights.clone())

    def posterior(self, state: LaplaceState) -> Gaussian:
        return Gaussian(state.weights, state.precision)
