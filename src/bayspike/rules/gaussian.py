"""Gaussian mean-field variational inference, online (paper, Algorithm 1; eqs. bayes-update-*-ogn, continual:…-final).

At every time-step, with g the per-example gradients at weights drawn from q = N(m, 1/p):

    p ← (1 − ηρ)·p + η·[ mean(g²) + ρ·p₀ ]
    m ← m − η/p · [ mean(g) − ρ·κ·p₀·(m₀ − m) ]

At the end of a task q becomes the prior (m₀, p₀) of the next. κ = 1 is the paper; what it minimises is

    E_q[loss] + ρ·[ ½Σ(p₀/p − 1 − log(p₀/p)) + κ·½Σp₀(m − m₀)² ],

the free energy with the part of KL(q‖prior) that holds the mean weighed κ times (generalised variational continual
learning: Loo, Swaroop & Turner, ICLR 2021). Mean field leaves out that inputs fire together, so it takes the loss for
much flatter than it is along directions that many synapses share; κ, the *carry*, makes up for it. As κ grows with ρ·κ
held fixed, what is left of the prior is ρκ·½Σp₀(m − m₀)²: online EWC with the running precision for importance.

Natural units. Count the loss of one example, averaged over its T steps, as c log-likelihoods: c is the number of
independent observations that its steps are worth (`independent_steps`). A mini-batch of |B| at one step then weighs
c·|B|/T, and remembering N examples is

    η = c·|B|/T,    ρ = 1/(c·N):    p ← p + c·(|B|/T)·α·mean(g²) − (|B|/(T·N))·(p − p₀)

With `lr` and `temperature` left out the rule works in these units: N is `remember`, or where that is left out too the
examples of the task at hand, and the learning rate is the inverse of the precision. With `remember` the prior is never
replaced and nobody need say where a task ends; written in variances that is MESU (Bonnet et al., Nature Communications
2025) with mean(g²) for its curvature. α = neurons/`crowd` makes up for mean field along the other side of the matrix:
the read-out's entries shrink as 1/√neurons, so a single neuron's evidence vanishes in a wide layer, while a step that
all neurons take together moves the logits as far as ever. What mean field leaves out along the steps taken does grow
as the width (`studies/width.py`); the constant is fitted.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError, require, require_range
from bayspike.posteriors.distributions import Gaussian
from bayspike.posteriors.grid import Grid
from bayspike.rules.base import Pace, block_buffer, first_precision, initial_weights, natural_rates, row_blocks
from bayspike.rules.carry import carry_at
from bayspike.rules.gaussian_draws import SampledPotential, SampledWeights, Scratch
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Drive

CROWD = 200.0
LITTLE = 0.05  # share of a layer's precision that was learnt at which half of the carry holds


class GaussianState(NamedTuple):
    mean: Tensor
    precision: Tensor
    prior_mean: Tensor
    prior_precision: Tensor
    scratch: "Scratch | None" = None


@dataclass(frozen=True)
class GaussianVI:
    """Bayesian learning of real-valued weights.

    remember: how many examples to remember; infinity never forgets. None: tasks have ends, at which the posterior
    becomes the prior.
    prior_std: how wide a weight may be before anything is known of it; None: so that potentials of a layer in which a
    tenth of the inputs is active (of the first layer the network's `input_activity`) have the spread of a threshold.
    `prior_precision` says the same as 1/std².
    carry: κ, how many times as hard as by the letter the mean is held to the posterior of the last task (in natural
    units from the second task on). None: by what is stored of the earlier tasks, see `bayspike.rules.carry`.
    observations: c, how many observations the steps of one example are worth; None: the independent ones with
    `remember`, else each step one, as in the paper's objective.
    crowd: how many neurons count as one when evidence is gathered; None: 200 with `remember`, else each for itself.
    lr, temperature: η and ρ of the paper in place of natural units; their product must stay below 1, which keeps the
    precision positive. precision_lr: a learning rate for the precision alone; None means `lr`, as in the paper. Below
    `lr` it may leave p far under p₀, where the letter's pull would carry the mean beyond m₀: it ends at m₀ instead.
    init_precision: where p starts (None: at the prior's).
    pull_every: the pull towards the prior, ηρ of the way at every step, is hardly felt in one step yet costs half
    of the update's passes over the weights. Above 1 it is applied once for that many steps (and at the end of a
    mini-batch), implicitly: m ← (m + a·m₀)/(1 + a) with a = n·ηρκ·p₀/p ends between m and m₀ whatever the rates.
    None: 1, the letter, in the paper's units; 10 in natural ones.
    horizon: N of the paper's units in a boundary-free mode, where the prior is q^(1−1/N)·p₀^(1/N) at every step: the
    pull towards the first prior is ρ/N, the end of a task changes nothing. `remember` sets it to 1.
    by_evidence: weigh κ by the share of a layer's precision that tasks have taught; `carry=None` does.
    flat: one precision for the whole layer, the mean of all: a control for what the single synapse's is worth.
    grid: train with weights rounded to 8 bits (straight-through). Rounding a normal draw no finer than the grid adds
    step²/12 to its variance, and a draw at the neurons carries just that.
    """

    remember: float | None = None
    prior_std: float | None = None
    carry: float | None = None
    observations: float | None = None
    crowd: float | None = None
    lr: float | None = None
    temperature: float | None = None
    prior_precision: float | None = None
    precision_lr: float | None = None
    init_precision: float | None = None
    init_scale: float = 0.3
    sampling: Literal["neuron", "synapse"] = "neuron"
    samples: int = 1
    pull_every: int | None = None
    horizon: float | None = None
    flat: bool = False
    by_evidence: bool = False
    grid: Grid | None = None

    binary = False
    needs_fisher = False
    by_means = True
    by_threshold = True

    def __post_init__(self) -> None:
        require(
            (self.lr is None) == (self.temperature is None),
            "lr and temperature belong together: give both, the paper's η and ρ, or neither for natural units.",
        )
        require(
            self.prior_std is None or self.prior_precision is None,
            "prior_std and prior_precision say the same thing: give one of them.",
        )
        if self.pull_every is not None:
            require_range("pull_every", self.pull_every, 1)
        for name in ("remember", "prior_std", "prior_precision", "init_precision", "observations", "crowd"):
            if (value := getattr(self, name)) is not None and value != math.inf:
                require_range(name, value, 0, low_open=True)
        if self.carry is not None:
            require_range("carry", self.carry, 0)
        require_range("init_scale", self.init_scale, 0)
        require_range("samples", self.samples, 1)
        if self.lr is not None and self.temperature is not None:
            require_range("lr", self.lr, 0)
            require_range("temperature", self.temperature, 0)
            require(
                self.remember is None, "remember is for natural units: leave it out where lr and temperature stand."
            )
            require_range("lr · temperature", self.lr * self.temperature, 0, 1, high_open=True)
            require_range("precision_lr · temperature", self.precision_rate * self.temperature, 0, 1, high_open=True)
        if self.horizon is not None:
            require_range("horizon", self.horizon, 1)
        if self.sampling not in ("neuron", "synapse"):
            raise UserError(f"sampling must be 'neuron' or 'synapse', but is {self.sampling!r}.")

    def at(self, pace: Pace) -> "GaussianVI":
        """The same rule with the η and ρ that natural units turn into at this pace."""
        if self.lr is not None:
            return self if self.pull_every is not None else replace(self, pull_every=1)
        lr, temperature = natural_rates(pace, self.remember, self.observations)
        boundless = self.remember is not None
        crowd = CROWD if boundless else None
        return replace(
            self,
            remember=None,
            lr=lr,
            temperature=temperature,
            horizon=1.0 if boundless else self.horizon,
            carry=carry_at(pace, self.carry, boundless),
            by_evidence=self.by_evidence or self.carry is None,
            crowd=crowd if self.crowd is None else self.crowd,
            pull_every=10 if self.pull_every is None else self.pull_every,
        )

    @property
    def rate(self) -> float:
        if self.lr is None:
            raise UserError(
                "this GaussianVI is in natural units: rule.at(Pace(…)) gives it its rates, as training does."
            )
        return self.lr

    @property
    def precision_rate(self) -> float:
        return self.rate if self.precision_lr is None else self.precision_lr

    @property
    def pull(self) -> float:
        """ρ, or ρ/N when q itself is most of its own prior: what q^(1−1/N) adds to the update cancels exactly."""
        assert self.temperature is not None
        return self.temperature if self.horizon is None else self.temperature / self.horizon

    @property
    def may_overshoot(self) -> bool:
        """Whether the letter's pull of the mean, ηρ·p₀/p of the way, might be more than all of it.

        p is pulled first, and so is η_p·ρ·p₀ at least.
        """
        return self.precision_rate < self.rate

    @property
    def kappa(self) -> float:
        return 1.0 if self.carry is None else self.carry

    def first_precision(self, fan_in: int, threshold: float = 1.0, activity: float = 0.1) -> float:
        """p₀ of the first task."""
        if self.prior_precision is not None:
            return self.prior_precision
        return first_precision(self.prior_std, fan_in, threshold, activity)

    def init(
        self, shape: tuple[int, int], generator: torch.Generator, threshold: float = 1.0, activity: float = 0.1
    ) -> GaussianState:
        mean = initial_weights(shape, self.init_scale, generator)
        prior = self.first_precision(shape[1], threshold, activity)
        return GaussianState(
            mean=mean,
            precision=torch.full_like(mean, prior if self.init_precision is None else self.init_precision),
            prior_mean=torch.zeros_like(mean),
            prior_precision=torch.full_like(mean, prior),
        )

    def drive(self, state: GaussianState, generator: torch.Generator) -> Drive:
        if self.sampling == "neuron":
            rounding = 0.0 if self.grid is None else self.grid.step**2 / 12
            return SampledPotential(state.mean, state.precision, generator, rounding, _scratch(state))
        weights = Gaussian(state.mean, state.precision).sample(self.samples, generator)
        return SampledWeights(weights if self.grid is None else self.grid.round(weights))

    def update(self, state: GaussianState, gradient: LocalGradient) -> GaussianState:
        rate, pull, drive, share = self.precision_rate, self.pull, gradient.drive, 1 / gradient.batch
        carry, counted = self.kappa, 1.0 if self.crowd is None else state.mean.shape[0] / self.crowd
        scratch = drive.scratch if isinstance(drive, SampledPotential) else _scratch(state)
        squares = scratch.squares if isinstance(drive, SampledPotential) else None
        if gradient.places > 1:  # the means over examples are there, and each matrix is the identity times itself
            traces, squared_traces = gradient.means()
            delta = squared = torch.eye(len(traces), dtype=traces.dtype, device=traces.device)
            share = 1.0
        else:
            traces, squared_traces = gradient.pre, gradient.pre.square() if squares is None else squares
            delta, squared = gradient.delta.T, gradient.evidence_of_delta().T
        hold = self.hold(state.prior_precision) if pull > 0 and carry != 1 else 0.0
        # with the pull left out (see `pull_every`) the prior is not touched
        matrices = state[:4] if pull > 0 else state[:2]
        for mean, precision, *prior, rows, squared_rows in row_blocks(*matrices, delta, squared):
            step = scratch.block[: len(mean)]
            if prior:
                prior_mean, prior_precision = prior
                precision.lerp_(prior_precision, rate * pull)  # between two positive numbers, whatever the rounding
            # the means over the mini-batch of g² and g, each added inside its product
            precision.addmm_(squared_rows, squared_traces, alpha=rate * share * counted)
            if prior and carry != 1:  # the letter's explicit step would overshoot where κ is large
                torch.mm(rows, traces, out=step)
                mean.addcdiv_(step, precision, value=-self.rate * share)
                _pull_mean(mean, precision, prior_mean, prior_precision, hold, step)
            else:
                if prior:
                    weight = prior_precision
                    if self.may_overshoot:  # ηρ·p₀/p is 1 at most, and what is below is left to the bit
                        weight = torch.minimum(precision / (self.rate * pull), prior_precision)
                    torch.sub(mean, prior_mean, out=step).mul_(weight)
                step.addmm_(rows, traces, beta=pull, alpha=share)
                mean.addcdiv_(step, precision, value=-self.rate)
        if self.flat:
            state.precision.fill_(state.precision.mean())
        return state if scratch is state.scratch else state._replace(scratch=scratch)

    def without_pull(self) -> "GaussianVI":
        """The rule that takes the steps in between when the pull comes now and then."""
        return replace(self, temperature=0.0)

    def pull_back(self, state: GaussianState, steps: int) -> GaussianState:
        """The pull of several steps at once."""
        scratch, share = _scratch(state), 1 - (1 - self.precision_rate * self.pull) ** steps
        hold = self.hold(state.prior_precision)
        for mean, precision, prior_mean, prior_precision in row_blocks(*state[:4]):
            precision.lerp_(prior_precision, share)
            step = scratch.block[: len(mean)]
            _pull_mean(mean, precision, prior_mean, prior_precision, hold * steps, step)
        return state._replace(scratch=scratch)

    def hold(self, prior_precision: Tensor) -> float:
        """ηρκ: what one step's pull weighs."""
        kappa = self.kappa
        if self.by_evidence and kappa != 1:
            kappa = self.carry_by(float(1 - prior_precision.min() / prior_precision.mean()))
        return self.rate * self.pull * kappa

    def carry_by(self, learnt: float) -> float:
        """κ by the share of a layer's precision that was learnt: where nothing was, there is nothing to hold."""
        return 1 + (self.kappa - 1) * learnt / (learnt + LITTLE)

    def rest(self, state: GaussianState, steps: int) -> GaussianState:
        """Without gradients there is only the pull, as many steps at a time as in training."""
        every = 1 if self.pull_every is None else self.pull_every
        if every == 1 and self.kappa == 1:
            return self._rest_by_the_letter(state, steps)
        for done in range(0, steps, every):
            state = self.pull_back(state, min(every, steps - done))
        return state

    def _rest_by_the_letter(self, state: GaussianState, steps: int) -> GaussianState:
        """p comes closer to p₀ by the same factor at every step, and m to m₀ by 1 − ηρ·p₀/p, but never past it."""
        mean, precision, prior_mean, prior_precision = state[:4]
        precision_rate, rate = self.precision_rate * self.pull, self.rate * self.pull
        if precision_rate == rate:  # then p·(m − m₀) shrinks by a factor of its own: all steps in one
            kept = (1 - rate) ** steps
            weighted = (mean - prior_mean).mul_(precision).mul_(kept)
            precision.lerp_(prior_precision, 1 - kept)
            torch.addcdiv(prior_mean, weighted, precision, out=mean)
            return state
        apart, share = mean - prior_mean, torch.empty_like(mean)
        for _ in range(steps):
            precision.lerp_(prior_precision, precision_rate)
            torch.div(prior_precision, precision, out=share)
            if self.may_overshoot:
                share.clamp_(max=1 / rate)
            apart.addcmul_(apart, share, value=-rate)
        torch.add(prior_mean, apart, out=mean)
        return state

    def end_task(self, state: GaussianState, fisher: Tensor | None = None) -> GaussianState:
        if self.horizon is not None or self.remember is not None:
            return state
        return state._replace(prior_mean=state.mean.clone(), prior_precision=state.precision.clone())

    def posterior(self, state: GaussianState) -> Gaussian:
        return Gaussian(state.mean, state.precision)


def _pull_mean(
    mean: Tensor, precision: Tensor, prior_mean: Tensor, prior_precision: Tensor, weight: float, step: Tensor
) -> None:
    """m ← (m + a·m₀)/(1 + a) with a = weight·p₀/p, in place."""
    torch.sub(prior_mean, mean, out=step).mul_(prior_precision)
    mean.addcdiv_(step, torch.add(precision, prior_precision, alpha=weight), value=weight)


def _scratch(state: GaussianState) -> Scratch:
    if state.scratch is None or state.scratch.block.shape[1] != state.mean.shape[1]:
        return Scratch(block_buffer(state.mean))
    return state.scratch
