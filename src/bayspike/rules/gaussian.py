"""Gaussian mean-field variational inference, online (paper, Algorithm 1; eqs. bayes-update-*-ogn, continual:…-final).

At every time-step, with g the per-example gradients at weights drawn from q = N(m, 1/p):

    p ← (1 − ηρ)·p + η·[ mean(g²) + ρ·p₀ ]
    m ← m − η/p · [ mean(g) − ρ·p₀·(m₀ − m) ]

At the end of a task q becomes the prior (m₀, p₀) of the next.

Where the weights are drawn:
- `synapse`: one matrix per time-step (and per sample), shared by the batch: the letter of Algorithm 1.
- `neuron`: given its traces the potential of a neuron is exactly N(m·pre, (1/p)·pre²), and a local loss depends on the
  weights through that potential alone; so it is drawn there, afresh for every example. Same expectations, fewer
  draws, less variance.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError, require_range
from bayspike.local import LocalGradient
from bayspike.network import Drive, Weights
from bayspike.posteriors import Gaussian
from bayspike.quantize import Grid
from bayspike.rules.base import block_buffer, block_count, initial_weights


class Scratch(NamedTuple):
    """What follows from a state, kept from step to step because working it out anew costs passes over the weights."""

    variance: Tensor  # 1/p
    weighted_prior: Tensor  # −p₀·m₀
    block: Tensor  # memory to work in; what it holds between two steps means nothing

    @staticmethod
    def of(state: "GaussianState") -> "Scratch":
        weighted = (state.prior_mean * state.prior_precision).neg_()
        return Scratch(state.precision.reciprocal(), weighted, block_buffer(state.mean))


class GaussianState(NamedTuple):
    """Whoever changes a matrix in place drops the scratch: `state._replace(scratch=None)`."""

    mean: Tensor
    precision: Tensor
    prior_mean: Tensor
    prior_precision: Tensor
    scratch: Scratch | None = None


class SampledWeights(NamedTuple):
    """Weights drawn at the synapses, `(samples, neurons, pre)`; the batch holds one repetition per sample."""

    matrices: Tensor

    def __call__(self, pre: Tensor) -> Tensor:
        samples, neurons, fan_in = self.matrices.shape
        repeated = pre.view(samples, -1, fan_in)
        return torch.bmm(repeated, self.matrices.transpose(1, 2)).view(-1, neurons)


@dataclass
class SampledPotential:
    """Potentials drawn at the neurons, independently for every example."""

    mean: Tensor
    variance: Tensor
    generator: torch.Generator
    rounding: float  # variance that the rounding of a weight adds
    squares: Tensor | None = None  # of the traces it was called with; the update needs them again

    def __call__(self, pre: Tensor) -> Tensor:
        potential, self.squares = pre @ self.mean.T, pre.square()
        variance = self.squares @ self.variance.T
        if self.rounding > 0:
            variance.add_(self.squares.sum(dim=1, keepdim=True), alpha=self.rounding)
        noise = torch.empty_like(potential).normal_(generator=self.generator)
        return potential.addcmul_(variance.sqrt_(), noise)


@dataclass(frozen=True)
class GaussianVI:
    """Bayesian learning of real-valued weights.

    lr, temperature: η and ρ of the paper; their product must stay below 1, which keeps the precision positive.
    precision_lr: a learning rate for the precision alone; None means `lr`, as in the paper.
    prior_precision: p₀ of the first task; the prior mean is zero. init_precision: where p starts (None: at p₀).
    horizon: N of the boundary-free mode, where the prior is q^(1−1/N)·p₀^(1/N) at every step: the pull towards the
    first prior is ρ/N, the end of a task changes nothing, and the precision stays below p₀ + N·max E[g²]/ρ.
    grid: train with weights rounded to 8 bits (straight-through). Rounding a normal draw no finer than the grid adds
    step²/12 to its variance, and a draw at the neurons carries just that.
    """

    lr: float = 1000.0
    temperature: float = 1e-8
    prior_precision: float = 3000.0
    precision_lr: float | None = None
    init_precision: float | None = None
    init_scale: float = 1.0
    sampling: Literal["neuron", "synapse"] = "neuron"
    samples: int = 1
    horizon: float | None = None
    grid: Grid | None = None

    binary = False
    needs_fisher = False

    def __post_init__(self) -> None:
        require_range("lr", self.lr, 0)
        require_range("temperature", self.temperature, 0)
        require_range("lr · temperature", self.lr * self.temperature, 0, 1, high_open=True)
        require_range("precision_lr · temperature", self.precision_rate * self.temperature, 0, 1, high_open=True)
        require_range("prior_precision", self.prior_precision, 0, low_open=True)
        if self.init_precision is not None:
            require_range("init_precision", self.init_precision, 0, low_open=True)
        require_range("init_scale", self.init_scale, 0)
        require_range("samples", self.samples, 1)
        if self.horizon is not None:
            require_range("horizon", self.horizon, 1)
        if self.sampling not in ("neuron", "synapse"):
            raise UserError(f"sampling must be 'neuron' or 'synapse', but is {self.sampling!r}.")

    @property
    def precision_rate(self) -> float:
        return self.lr if self.precision_lr is None else self.precision_lr

    @property
    def pull(self) -> float:
        """ρ, or ρ/N when q itself is most of its own prior: what q^(1−1/N) adds to the update cancels exactly."""
        return self.temperature if self.horizon is None else self.temperature / self.horizon

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> GaussianState:
        mean = initial_weights(shape, self.init_scale, generator)
        start = self.prior_precision if self.init_precision is None else self.init_precision
        return GaussianState(
            mean=mean,
            precision=torch.full_like(mean, start),
            prior_mean=torch.zeros_like(mean),
            prior_precision=torch.full_like(mean, self.prior_precision),
        )

    def drive(self, state: GaussianState, generator: torch.Generator) -> Drive:
        if self.sampling == "neuron":
            rounding = 0.0 if self.grid is None else self.grid.step**2 / 12
            variance = state.precision.reciprocal() if state.scratch is None else state.scratch.variance
            return SampledPotential(state.mean, variance, generator, rounding)
        weights = Gaussian(state.mean, state.precision).sample(self.samples, generator)
        return SampledWeights(weights if self.grid is None else self.grid.round(weights))

    def update(self, state: GaussianState, gradient: LocalGradient) -> GaussianState:
        rate, pull, count = self.precision_rate, self.pull, block_count(state.mean)
        scratch = state.scratch or Scratch.of(state)
        squares = gradient.drive.squares if isinstance(gradient.drive, SampledPotential) else None
        matrices = (*state[:4], scratch.variance, scratch.weighted_prior)
        blocks = zip(*(part.chunk(count) for part in matrices), strict=True)
        gradients = zip(gradient.chunk(count), gradient.squared(squares).chunk(count), strict=True)
        for parts, (g, g_squared) in zip(blocks, gradients, strict=True):
            mean, precision, _, prior_precision, variance, weighted = parts
            precision.lerp_(prior_precision, rate * pull)  # between two positive numbers, whatever the rounding
            g_squared.add_mean_to(precision, rate=rate)
            torch.reciprocal(precision, out=variance)
            step = torch.addcmul(weighted, mean, prior_precision, out=scratch.block[: len(mean)])  # p₀·(m − m₀)
            g.add_mean_to(step, keep=pull)
            mean.addcmul_(step, variance, value=-self.lr)
        return state._replace(scratch=scratch)

    def rest(self, state: GaussianState, steps: int) -> GaussianState:
        """Without gradients the natural parameters p and p·(m − m₀) come closer to the prior's by the same factor,
        1 − ηρ, at every step, as long as both follow the same learning rate."""
        mean, precision, prior_mean, prior_precision, _ = state
        if self.precision_rate != self.lr:
            nothing = mean.new_zeros(1, len(mean)), mean.new_zeros(1, mean.shape[1])
            for _ in range(steps):
                state = self.update(state, LocalGradient(*nothing, Weights(mean), *reversed(nothing)))
            return state
        kept = (1 - self.lr * self.pull) ** steps
        weighted = (mean - prior_mean).mul_(precision).mul_(kept)
        precision.lerp_(prior_precision, 1 - kept)
        torch.addcdiv(prior_mean, weighted, precision, out=mean)
        return state._replace(scratch=None)

    def end_task(self, state: GaussianState, fisher: Tensor | None = None) -> GaussianState:
        if self.horizon is not None:
            return state
        return state._replace(prior_mean=state.mean.clone(), prior_precision=state.precision.clone(), scratch=None)

    def posterior(self, state: GaussianState) -> Gaussian:
        return Gaussian(state.mean, state.precision)

