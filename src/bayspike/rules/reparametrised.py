"""Draws w = μ + σ·ε at the synapses, and the derivatives they give: ∂C/∂μ = E[g], ∂C/∂σ = E[g·ε]."""

from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.posteriors import draws
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
