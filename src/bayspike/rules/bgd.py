"""Bayesian gradient descent, the diagonal form of FOO-VB (Zeno, Golan, Hoffer, Soudry, 2018 and 2021, eqs. for μ, σ).

    μ ← μ − η·σ²·E[∂L/∂w]
    σ ← σ·√(1 + (½σ·E[∂L/∂w·ε])²) − ½σ²·E[∂L/∂w·ε]

the closed-form minimum of the first-order expansion of the online free energy, whose prior is the posterior of the last
step; no boundary is needed and nothing is forgotten. L is the sum over a mini-batch; here its weight at one time-step.
"""

from dataclasses import dataclass, replace

from bayspike.errors import UserError, require_range
from bayspike.rules.base import Pace
from bayspike.rules.reparametrised import DeviationRule, DeviationState, reparametrised
from bayspike.spiking.local import LocalGradient


@dataclass(frozen=True, kw_only=True)
class BGD(DeviationRule):
    """lr: η. weight: what a time-step's mean loss counts; None: |B|/T, the examples it stands for."""

    lr: float = 1.0
    weight: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_range("lr", self.lr, 0)
        if self.weight is not None:
            require_range("weight", self.weight, 0)

    def at(self, pace: Pace) -> "BGD":
        return self if self.weight is not None else replace(self, weight=pace.batch / pace.steps)

    def update(self, state: DeviationState, gradient: LocalGradient) -> DeviationState:
        if self.weight is None:
            raise UserError("BGD without weight must know its pace: rule.at(pace), as training does.")
        by_mean, by_std = (part.mul_(self.weight) for part in reparametrised(gradient))
        mean, std = state
        mean.addcmul_(std.square(), by_mean, value=-self.lr)
        half = by_std.mul_(std).mul_(0.5)
        std.mul_(half.square().add_(1).sqrt_().sub_(half))  # σ(√(1 + a²) − a) > 0 for every a
        return state
