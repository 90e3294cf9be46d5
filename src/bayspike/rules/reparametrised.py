"""Draws w = μ + σ·ε at the synapses, the derivatives they give, ∂C/∂μ = E[g] and ∂C/∂σ = E[g·ε], and the frame of the
rules that learn by them: no boundary is told, nothing is stored, and only the update differs."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require_range
from bayspike.posteriors import draws
from bayspike.posteriors.distributions import Gaussian
from bayspike.rules.base import initial_weights
from bayspike.spiking.local import LocalGradient


class DeviationState(NamedTuple):
    """A Gaussian posterior by its means and standard deviations."""

    mean: Tensor
    std: Tensor


class DrawnWeights(NamedTuple):
    """Weights `(samples, neurons, pre)` and the normal numbers they were made of."""

    matrices: Tensor
    noise: Tensor

    def __call__(self, pre: Tensor) -> Tensor:
        samples, neurons, fan_in = self.matrices.shape
        repeated = pre.view(samples, -1, fan_in)
        return torch.bmm(repeated, self.matrices.transpose(1, 2)).view(-1, neurons)


def draw_weights(mean: Tensor, std: Tensor, samples: int, generator: torch.Generator) -> DrawnWeights:
    noise = draws.normal((samples, *mean.shape), mean, generator)
    return DrawnWeights(torch.addcmul(mean, noise, std), noise)


def reparametrised(gradient: LocalGradient) -> tuple[Tensor, Tensor]:
    """∂C/∂μ = E[g] and ∂C/∂σ = E[g·ε] over the draws of a time-step, each `(neurons, pre)`."""
    drive = gradient.drive
    assert isinstance(drive, DrawnWeights)
    samples, neurons, fan_in = drive.matrices.shape
    delta = gradient.delta.view(samples, -1, neurons).transpose(1, 2)
    each = torch.bmm(delta, gradient.pre.view(samples, -1, fan_in)).mul_(samples / gradient.batch)
    return each.mean(dim=0), each.mul_(drive.noise).mean(dim=0)


@dataclass(frozen=True, kw_only=True)
class DeviationRule:
    """All of such a rule but `at` and `update`. prior_std: σ₀, where the deviations start."""

    prior_std: float = 0.1
    init_scale: float = 0.3
    samples: int = 1

    binary = False
    needs_fisher = False

    def __post_init__(self) -> None:
        require_range("prior_std", self.prior_std, 0, low_open=True)
        require_range("samples", self.samples, 1)
        require_range("init_scale", self.init_scale, 0)

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> DeviationState:
        mean = initial_weights(shape, self.init_scale, generator)
        return DeviationState(mean, torch.full_like(mean, self.prior_std))

    def drive(self, state: DeviationState, generator: torch.Generator) -> DrawnWeights:
        return draw_weights(state.mean, state.std, self.samples, generator)

    def end_task(self, state: DeviationState, fisher: Tensor | None = None) -> DeviationState:
        return state

    def posterior(self, state: DeviationState) -> Gaussian:
        return Gaussian(state.mean, state.std.square().reciprocal())
