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

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError, require_range
from bayspike.posteriors import draws
from bayspike.posteriors.distributions import Gaussian
from bayspike.posteriors.grid import Grid
from bayspike.rules.base import block_buffer, initial_weights, row_blocks
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Drive


class GaussianState(NamedTuple):
    mean: Tensor
    precision: Tensor
    prior_mean: Tensor
    prior_precision: Tensor
    scratch: "Scratch | None" = None


class Scratch(NamedTuple):
    """Memory to work in; what it holds between two steps means nothing."""

    block: Tensor  # as much as one block of a weight matrix
    squares: Tensor | None = None  # of the traces: a drive leaves them for the update


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
    precision: Tensor
    generator: torch.Generator
    rounding: float  # variance that the rounding of a weight adds
    scratch: Scratch

    def __call__(self, pre: Tensor) -> Tensor:
        squares = self.scratch.squares
        if squares is None or squares.shape != pre.shape:
            squares = torch.empty_like(pre)
            self.scratch = Scratch(self.scratch.block, squares)
        torch.mul(pre, pre, out=squares)
        potential = pre @ self.mean.T
        variance = torch.empty_like(potential)
        for precision, out in row_blocks(self.precision, variance.T):
            inverse = torch.reciprocal(precision, out=self.scratch.block[: len(precision)])
            torch.mm(squares, inverse.T, out=out.T)
        if self.rounding > 0:
            variance.add_(squares.sum(dim=1, keepdim=True), alpha=self.rounding)
        noise = draws.normal(potential.shape, potential, self.generator)
        return potential.addcmul_(variance.sqrt_(), noise)


@dataclass(frozen=True)
class GaussianVI:
    """Bayesian learning of real-valued weights.

    lr, temperature: η and ρ of the paper; their product must stay below 1, which keeps the precision positive.
    precision_lr: a learning rate for the precision alone; None means `lr`, as in the paper.
    prior_precision: p₀ of the first task; the prior mean is zero. init_precision: where p starts (None: at p₀).
    pull_every: the pull towards the prior, ηρ of the way at every step, is hardly felt in one step yet costs half
    of the update's passes over the weights. Above 1 it is applied once for that many steps (and at the end of a
    mini-batch); what the steps do differs from Algorithm 1 by a share of pull_every·ηρ.
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
    pull_every: int = 1
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
        require_range("pull_every", self.pull_every, 1)
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
            return SampledPotential(state.mean, state.precision, generator, rounding, _scratch(state))
        weights = Gaussian(state.mean, state.precision).sample(self.samples, generator)
        return SampledWeights(weights if self.grid is None else self.grid.round(weights))

    def update(self, state: GaussianState, gradient: LocalGradient) -> GaussianState:
        rate, pull, drive, share = self.precision_rate, self.pull, gradient.drive, 1 / gradient.batch
        scratch = drive.scratch if isinstance(drive, SampledPotential) else _scratch(state)
        squares = scratch.squares if isinstance(drive, SampledPotential) else None
        traces, squared_traces = gradient.pre, gradient.pre.square() if squares is None else squares
        delta = gradient.delta.T
        # with the pull left out (see `pull_every`) the prior is not touched
        matrices = state[:4] if pull > 0 else state[:2]
        for mean, precision, *prior, rows, squared_rows in row_blocks(*matrices, delta, delta.square()):
            step = scratch.block[: len(mean)]
            if prior:
                prior_mean, prior_precision = prior
                precision.lerp_(prior_precision, rate * pull)  # between two positive numbers, whatever the rounding
                torch.sub(mean, prior_mean, out=step).mul_(prior_precision)
            # the means over the mini-batch of g² and g, each added inside its product
            precision.addmm_(squared_rows, squared_traces, alpha=rate * share)
            step.addmm_(rows, traces, beta=pull, alpha=share)
            mean.addcdiv_(step, precision, value=-self.lr)
        return state if scratch is state.scratch else state._replace(scratch=scratch)

    def without_pull(self) -> "GaussianVI":
        """The rule that takes the steps in between when the pull comes now and then."""
        return replace(self, temperature=0.0)

    def pull_back(self, state: GaussianState, steps: int) -> GaussianState:
        """The pull of several steps at once: one step towards the prior, as many times as long."""
        scratch, share = _scratch(state), 1 - (1 - self.precision_rate * self.pull) ** steps
        for mean, precision, prior_mean, prior_precision in row_blocks(*state[:4]):
            precision.lerp_(prior_precision, share)
            step = torch.sub(mean, prior_mean, out=scratch.block[: len(mean)]).mul_(prior_precision)
            mean.addcdiv_(step, precision, value=-self.lr * self.pull * steps)
        return state._replace(scratch=scratch)

    def rest(self, state: GaussianState, steps: int) -> GaussianState:
        """Without gradients p comes closer to p₀ by the same factor at every step, and m to m₀ by 1 − ηρ·p₀/p."""
        mean, precision, prior_mean, prior_precision, _ = state
        precision_rate, rate = self.precision_rate * self.pull, self.lr * self.pull
        if precision_rate == rate:  # then p·(m − m₀) shrinks by a factor of its own: all steps in one
            kept = (1 - rate) ** steps
            weighted = (mean - prior_mean).mul_(precision).mul_(kept)
            precision.lerp_(prior_precision, 1 - kept)
            torch.addcdiv(prior_mean, weighted, precision, out=mean)
            return state
        apart, share = mean - prior_mean, torch.empty_like(mean)
        for _ in range(steps):
            precision.lerp_(prior_precision, precision_rate)
            apart.addcmul_(apart, torch.div(prior_precision, precision, out=share), value=-rate)
        torch.add(prior_mean, apart, out=mean)
        return state

    def end_task(self, state: GaussianState, fisher: Tensor | None = None) -> GaussianState:
        if self.horizon is not None:
            return state
        return state._replace(prior_mean=state.mean.clone(), prior_precision=state.precision.clone())

    def posterior(self, state: GaussianState) -> Gaussian:
        return Gaussian(state.mean, state.precision)


def _scratch(state: GaussianState) -> Scratch:
    if state.scratch is None or state.scratch.block.shape[1] != state.mean.shape[1]:
        return Scratch(block_buffer(state.mean))
    return state.scratch
