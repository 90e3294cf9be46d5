"""Distributions over the weights of a layer (paper, Secs. "Gaussian / Bernoulli Mean-Field Variational Inference").

A learning rule's state yields one of these; predictors ask them for samples. A frequentist weight is the
distribution with all mass at one point, so every rule can be asked the same questions.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.posteriors import draws


class Posterior(Protocol):
    """What can be asked of a distribution over a weight matrix `(neurons, pre)`."""

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Independent draws `(count, neurons, pre)`."""
        ...

    def mode(self) -> Tensor:
        """The most probable weights `(neurons, pre)`."""
        ...

    def mean(self) -> Tensor:
        """The expected weights `(neurons, pre)`."""
        ...


def _same_kind(ours: object, theirs: object) -> None:
    if type(ours) is not type(theirs):
        raise UserError(
            f"the divergence needs two distributions of one kind, but got "
            f"{type(ours).__name__} and {type(theirs).__name__}."
        )


@dataclass(frozen=True)
class Gaussian:
    """Independent normal weights, q(w) = N(w | m, 1/p)."""

    centre: Tensor
    precision: Tensor

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        noise = draws.normal((count, *self.centre.shape), self.centre, generator)
        return noise.mul_(self.precision.rsqrt()).add_(self.centre)

    def mode(self) -> Tensor:
        return self.centre

    def mean(self) -> Tensor:
        return self.centre

    def kl(self, other: "Gaussian") -> Tensor:
        """KL(self ‖ other) in nats, summed over the weights."""
        _same_kind(self, other)
        ratio = other.precision / self.precision
        distance = (self.centre - other.centre).square() * other.precision
        return 0.5 * (ratio + distance - 1 - ratio.log()).sum()


@dataclass(frozen=True)
class Bernoulli:
    """Independent ±1 weights with natural parameters w^r: P(+1) = σ(2w^r), mean tanh(w^r) (eq. bernoulli-param)."""

    logits: Tensor

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        uniform = draws.uniform((count, *self.logits.shape), self.logits, generator)
        return torch.where(uniform < torch.sigmoid(2 * self.logits), 1.0, -1.0).to(self.logits.dtype)

    def mode(self) -> Tensor:
        return binarize(self.logits)

    def mean(self) -> Tensor:
        return torch.tanh(self.logits)

    def kl(self, other: "Bernoulli") -> Tensor:
        """KL(self ‖ other) in nats, summed over the weights; finite however large the logits."""
        _same_kind(self, other)
        up, ours, theirs = torch.sigmoid(2 * self.logits), 2 * self.logits, 2 * other.logits
        log = torch.nn.functional.logsigmoid
        return (up * (log(ours) - log(theirs)) + (1 - up) * (log(-ours) - log(-theirs))).sum()


@dataclass(frozen=True)
class Point:
    """All mass at one real-valued weight matrix: the frequentist case."""

    weights: Tensor

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        return self.weights.expand(count, *self.weights.shape)

    def mode(self) -> Tensor:
        return self.weights

    def mean(self) -> Tensor:
        return self.weights


@dataclass(frozen=True)
class BinaryPoint:
    """All mass at the signs of latent real-valued weights: the straight-through case (eq. st-binarize)."""

    latent: Tensor

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        return self.mode().expand(count, *self.latent.shape)

    def mode(self) -> Tensor:
        return binarize(self.latent)

    def mean(self) -> Tensor:
        return self.mode()


def variance_of(posterior: Posterior) -> Tensor:
    """The variance of every weight."""
    if isinstance(posterior, Gaussian):
        return posterior.precision.reciprocal()
    if isinstance(posterior, Bernoulli):
        return 1 - posterior.mean().square()
    return torch.zeros_like(posterior.mean())


def spread_by_input(posterior: Posterior) -> Tensor:
    """How unsure a layer is of each of its inputs, `(pre,)`: the root mean variance of that input's synapses."""
    return variance_of(posterior).mean(dim=0).sqrt()


QUANTILES = (0.05, 0.5, 0.95)


def precision_quantiles(posterior: Posterior) -> list[float]:
    """The precisions below which 5, 50 and 95 % of a layer's lie, in four digits; empty for what has none."""
    if not isinstance(posterior, Gaussian):
        return []
    found = np.quantile(posterior.precision.numpy(force=True), QUANTILES)
    return [float(f"{value:.4g}") for value in found.tolist()]


def binarize(latent: Tensor) -> Tensor:
    """sign(x) with sign(0) = +1 (paper, below eq. st-binarize)."""
    return torch.ge(latent, 0, out=torch.empty_like(latent)).mul_(2).sub_(1)  # many times as fast as torch.where
