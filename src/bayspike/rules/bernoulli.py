"""Bernoulli mean-field variational inference for ±1 weights (paper, Algorithm 2; eqs. bayes-update, GS-trick,
bayes-RP-grad and bayesbisnn-cont).

    w^r ← (1 − ηρ)·w^r − η·[ ∂/∂μ E_q[mean loss] − ρ·w^r₀ ]

on the natural parameters w^r, with μ = tanh(w^r). The derivative is estimated

- at the `synapse`: relaxed weights w = tanh((w^r + δ)/τ), δ a logistic draw, and the factor
  (1 − w²)/(τ(1 − tanh²(w^r))) times the gradient at w: the letter of Algorithm 2;
- at the `neuron`: an *approximation* by the central limit theorem, u ~ N(μ·pre, (1 − μ²)·pre²), differentiated
  with respect to μ directly through mean and variance. No relaxation, fewer draws; good for large fan-in.

At the end of a task the logits become the prior's w^r₀ of the next. The logit is both the weight (its sign) and how
sure the posterior is of it (its size): a synapse with a large logit takes much evidence to flip, which is the hidden
variable of binarised metaplasticity (Laborieux et al., Nature Communications 2021). A `carry` κ weighs the pull to the
prior of an earlier task κ times, applied implicitly; natural units are those of `GaussianVI`: η = c·|B|/T, ρ = 1/(c·N).
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError, require, require_range
from bayspike.posteriors import draws
from bayspike.posteriors.distributions import Bernoulli
from bayspike.rules.base import Pace, initial_weights, natural_rates, row_blocks
from bayspike.rules.carry import carry_at
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Drive

LARGEST_EXPONENT = 80.0  # e^80 is finite in single precision
SMALLEST_UNIFORM = 1e-7  # keeps the logistic draw finite
CERTAIN = 0.01  # share of the largest possible variance below which a neuron counts as certain


class BernoulliState(NamedTuple):
    logits: Tensor
    prior_logits: Tensor


class RelaxedWeights(NamedTuple):
    """Relaxed binary weights `(samples, neurons, pre)` and their derivatives with respect to μ."""

    matrices: Tensor
    slope: Tensor

    def __call__(self, pre: Tensor) -> Tensor:
        samples, neurons, fan_in = self.matrices.shape
        repeated = pre.view(samples, -1, fan_in)
        return torch.bmm(repeated, self.matrices.transpose(1, 2)).view(-1, neurons)


@dataclass
class SampledBinaryPotential:
    """Potentials drawn at the neurons by the central limit theorem. Remembers noise/σ for the derivative."""

    mean: Tensor  # μ
    generator: torch.Generator
    noise_over_spread: Tensor | None = None

    def __call__(self, pre: Tensor) -> Tensor:
        potential, squares = pre @ self.mean.T, pre.square()
        variance = torch.empty_like(potential)
        for mean, out in row_blocks(self.mean, variance.T):
            torch.mm(squares, mean.square().neg_().add_(1).T, out=out.T)
        noise = draws.normal(potential.shape, potential, self.generator)
        kick = variance.sqrt().mul_(noise)
        # noise/σ grows without bound where nearly all weights are certain; the floor lets it fade there instead
        floor = squares.sum(dim=1, keepdim=True).mul_(CERTAIN).add_(torch.finfo(pre.dtype).tiny)
        self.noise_over_spread = kick / variance.clamp_(min=floor)
        return potential.add_(kick)


@dataclass(frozen=True)
class BernoulliVI:
    """Bayesian learning of ±1 weights.

    lr, temperature, tau: η, ρ and τ of the paper; with `lr=None, temperature=None` the rule works in natural units.
    remember: examples remembered, in natural units; None: tasks have ends, at which the posterior becomes the prior.
    carry: κ. None: 1, the letter, in the paper's units; in natural ones by what is stored (`bayspike.rules.carry`).
    observations: what the steps of one example are worth in natural units; None: the independent ones with `remember`,
    else each step one.
    init_scale: spread of the first logits around the prior's 0.
    horizon: N of the boundary-free mode (see `GaussianVI`).
    """

    lr: float | None = 10.0
    temperature: float | None = 1e-6
    tau: float = 1.0
    remember: float | None = None
    carry: float | None = None
    observations: float | None = None
    init_scale: float = 1.0
    sampling: Literal["neuron", "synapse"] = "synapse"
    samples: int = 1
    horizon: float | None = None

    binary = True
    needs_fisher = False

    def __post_init__(self) -> None:
        require(
            (self.lr is None) == (self.temperature is None),
            "lr and temperature belong together: give both, the paper's η and ρ, or neither for natural units.",
        )
        if self.lr is not None and self.temperature is not None:
            require_range("lr", self.lr, 0)
            require_range("temperature", self.temperature, 0)
            require(self.remember is None, "remember is for natural units: set lr and temperature to None beside it.")
            require_range("lr · temperature", self.lr * self.temperature, 0, 1)
        if self.remember is not None and self.remember != math.inf:
            require_range("remember", self.remember, 0, low_open=True)
        if self.observations is not None:
            require_range("observations", self.observations, 0, low_open=True)
        if self.carry is not None:
            require_range("carry", self.carry, 0)
        require_range("tau", self.tau, 0, low_open=True)
        require_range("init_scale", self.init_scale, 0)
        require_range("samples", self.samples, 1)
        if self.horizon is not None:
            require_range("horizon", self.horizon, 1)
        if self.sampling not in ("neuron", "synapse"):
            raise UserError(f"sampling must be 'neuron' or 'synapse', but is {self.sampling!r}.")

    def at(self, pace: Pace) -> "BernoulliVI":
        """The same rule with the η and ρ that natural units turn into at this pace."""
        if self.lr is not None:
            return self
        lr, temperature = natural_rates(pace, self.remember, self.observations)
        return replace(
            self,
            remember=None,
            lr=lr,
            temperature=temperature,
            horizon=self.horizon if self.remember is None else 1.0,
            carry=carry_at(pace, self.carry, self.remember is not None),
        )

    @property
    def rate(self) -> float:
        if self.lr is None:
            raise UserError("this BernoulliVI is in natural units: rule.at(pace) gives it its rates, as training does.")
        return self.lr

    @property
    def share(self) -> float:
        """How far one step brings the logits to the prior's: ηρ by the letter; with a carry a/(1 + a), a = ηρκ."""
        rate, temperature = self.rate, self.temperature or 0.0
        pull = rate * (temperature if self.horizon is None else temperature / self.horizon)
        return pull if self.carry in (None, 1) else pull * self.carry / (1 + pull * self.carry)

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> BernoulliState:
        logits = initial_weights(shape, self.init_scale, generator)
        return BernoulliState(logits, torch.zeros_like(logits))

    def drive(self, state: BernoulliState, generator: torch.Generator) -> Drive:
        if self.sampling == "neuron":
            return SampledBinaryPotential(_tanh(state.logits), generator)
        uniform = draws.uniform((self.samples, *state.logits.shape), state.logits, generator)
        shifted = (
            uniform.clamp_(SMALLEST_UNIFORM, 1 - SMALLEST_UNIFORM).logit_().mul_(0.5).add_(state.logits).div_(self.tau)
        )
        return RelaxedWeights(_tanh(shifted), relaxation_slope(state.logits, shifted, self.tau))

    def update(self, state: BernoulliState, gradient: LocalGradient) -> BernoulliState:
        drive, delta, pre = gradient.drive, gradient.delta, gradient.pre
        logits, prior = state
        logits.lerp_(prior, self.share)
        if isinstance(drive, SampledBinaryPotential):
            assert drive.noise_over_spread is not None
            gradient.add_mean_to(logits, rate=-self.rate)
            through_variance = gradient._replace(delta=delta * drive.noise_over_spread, pre=pre.square())
            for block, mean, by_spread in row_blocks(logits, drive.mean, through_variance.delta.T):
                block.addcmul_(mean, (by_spread / gradient.batch) @ through_variance.pre, value=self.rate)
            return state
        assert isinstance(drive, RelaxedWeights)
        samples, neurons, fan_in = drive.matrices.shape
        by_example = (delta / gradient.batch).view(samples, -1, neurons).transpose(1, 2)
        for k in range(samples):
            logits.addcmul_(by_example[k] @ pre.view(samples, -1, fan_in)[k], drive.slope[k], value=-self.rate)
        return state

    def rest(self, state: BernoulliState, steps: int) -> BernoulliState:
        """Without gradients the logits come closer to the prior's by the same factor at every step."""
        state.logits.lerp_(state.prior_logits, 1 - (1 - self.share) ** steps)
        return state

    def end_task(self, state: BernoulliState, fisher: Tensor | None = None) -> BernoulliState:
        if self.horizon is not None or self.remember is not None:
            return state
        return BernoulliState(state.logits, state.logits.clone())

    def posterior(self, state: BernoulliState) -> Bernoulli:
        return Bernoulli(state.logits)


def relaxation_slope(logits: Tensor, shifted: Tensor, tau: float) -> Tensor:
    """dw/dμ = (1 − w²)/(τ(1 − tanh²(w^r))) with w = tanh(shifted).

    Both 1 − w² and 1 − tanh² vanish for large logits; as 1 − tanh²(x) = 4·e^(−2|x|)·σ(2|x|)² the quotient is taken in
    the exponent, where it neither overflows nor divides by zero.
    """
    centre, drawn = logits.abs(), shifted.abs()
    exponent = (centre - drawn).mul_(2).clamp_(max=LARGEST_EXPONENT)
    saturation = drawn.mul_(2).sigmoid_().div_(centre.mul_(2).sigmoid_())
    return exponent.exp_().mul_(saturation.square_()).div_(tau)


def _tanh(x: Tensor) -> Tensor:
    """As 2σ(2x) − 1, which costs a third of torch.tanh on a CPU."""
    return (2 * x).sigmoid_().mul_(2).sub_(1)
