"""MESU, metaplasticity from synaptic uncertainty (Bonnet et al., Nature Communications 2025, eqs. 7 and 8).

    μ ← μ − σ²·∂C/∂μ + σ²·(μ₀ − μ)/(N·σ₀²)
    σ ← σ − ½σ²·∂C/∂σ + σ·(σ₀² − σ²)/(2N·σ₀²)

with the derivatives by reparametrisation: at w = μ + σ·ε one draw gives ∂C/∂μ = g and ∂C/∂σ = g·ε. The prior is never
replaced, N is the number of examples remembered. Here on the local loss of one time-step, for which a mini-batch of |B|
weighs |B|/T. `GaussianVI(remember=N)` is the same flow with mean(g²) in place of E[g·ε]/σ.
"""

from dataclasses import dataclass, replace

import torch

from bayspike.errors import UserError, require_range
from bayspike.rules.base import Pace
from bayspike.rules.reparametrised import DeviationRule, DeviationState, reparametrised
from bayspike.spiking.local import LocalGradient

SMALLEST_SHARE = 0.1  # of a standard deviation that one step leaves, however large the derivative


@dataclass(frozen=True, kw_only=True)
class MESU(DeviationRule):
    """remember: N. prior_std: σ₀. lr: what a time-step weighs; None: |B|/T, as its authors count examples."""

    remember: float = 300_000.0
    lr: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range("remember", self.remember, 0, low_open=True)
        if self.lr is not None:
            require_range("lr", self.lr, 0)

    def at(self, pace: Pace) -> "MESU":
        return self if self.lr is not None else replace(self, lr=pace.batch / pace.steps)

    def update(self, state: DeviationState, gradient: LocalGradient) -> DeviationState:
        if self.lr is None:
            raise UserError("MESU without lr must know its pace: rule.at(pace), as training does.")
        by_mean, by_std = reparametrised(gradient)
        mean, std = state
        variance, weight, prior = std.square(), self.lr, self.prior_std**2
        mean.sub_(variance * by_mean * weight + variance * mean * (weight / (self.remember * prior)))
        change = -0.5 * variance * by_std * weight + std * (prior - variance) * (weight / (2 * self.remember * prior))
        std.copy_(torch.maximum(std + change, SMALLEST_SHARE * std))
        return state
