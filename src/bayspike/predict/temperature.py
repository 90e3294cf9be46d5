"""Temperature scaling: one scalar that sharpens or softens all predictions (Guo et al. 2017), or one for every step.

Not to be confused with the temperature rho of the free energy: this one is fitted after training, on
held-out data, and only where asked for. Figures that use it must say so (`Temperature.note`).

The scaled prediction is softmax(log p / T). Few held-out examples may all be answered rightly, and then the likelihood
alone would make every answer certain (T → 0). So T is the most probable one under a prior that holds a factor of two,
either way, for one standard deviation: with b = 1/T it minimises NLL(b) + (log b)²/(2·log²2), NLL summed over the
examples. NLL is convex in b, since log-sum-exp is; bisection finds where the slope turns from falling to rising.

What is said early in a signal is unsure in another way than what is said at its end. From held-out answers over time
every step has a T of its own, each fitted as the last one's is; a step where nothing is said yet keeps T = 1.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from bayspike.errors import require, require_range
from bayspike.metrics.checks import check_pair, check_probabilities

FLOOR = 1e-12  # probabilities below it count as it: log 0 would say "impossible", which no finite T undoes
LEAST, MOST = 0.01, 100.0  # where no optimum lies inside, T stops here
SPREAD = math.log(2.0)  # of the prior of log T


@dataclass(frozen=True)
class Temperature:
    """The fitted scalar and what it did on the held-out data. `value` 1 changes nothing."""

    value: float  # of the last step
    examples: int
    nll_before: float
    nll_after: float
    steps: tuple[float, ...] = ()  # of every step, where answers over time were held out; the last is `value`

    def __post_init__(self) -> None:
        for each in (self.value, *self.steps):
            require_range("temperature", each, 0.0, low_open=True)

    def at(self, step: int) -> float:
        """T after so many steps, from 1; later ones are as the last."""
        return self.steps[min(step, len(self.steps)) - 1] if self.steps else self.value

    def apply(self, probabilities: Tensor, step: int | None = None) -> Tensor:
        """Scaled probabilities of the same shape and type, at a step or at the end; the decision never changes."""
        return _applied(probabilities, 1.0 / (self.value if step is None else self.at(step)))

    def apply_over_time(self, probabilities: Tensor) -> Tensor:
        """The same of `(time, …)`, every step by its own T. A single row is the end of a signal."""
        rows = len(probabilities)
        if rows == 1 or not self.steps:
            return self.apply(probabilities)
        own = torch.tensor([self.at(step + 1) for step in range(rows)], dtype=torch.float64)
        return _applied(probabilities, 1.0 / own.view(-1, *[1] * (probabilities.dim() - 1)).to(probabilities.device))

    @property
    def note(self) -> str:
        """The sentence to put beside any figure that rests on it."""
        return (
            f"Probabilities scaled by a temperature of {self.value:.3g} fitted on {self.examples} "
            f"held-out examples (negative log-likelihood {self.nll_before:.4f} before, {self.nll_after:.4f} after)."
        )


def fit_temperature(probabilities: Tensor, labels: Tensor) -> Temperature:
    """The most probable T in [0.01, 100] given held-out labels, from probabilities `(n, classes)`; from `(time, n,
    classes)` also that of every step."""
    require(
        probabilities.dim() in (2, 3),
        "temperature is fitted on probabilities of shape (n, classes) or (time, n, classes): "
        f"the shape given is {tuple(probabilities.shape)}.",
    )
    exact, labels = check_pair(probabilities, labels)
    logs = exact.clamp_min(FLOOR).log()
    chosen = labels.view(-1, 1).expand(*logs.shape[:-1], 1)
    of_label = logs.gather(-1, chosen).squeeze(-1)

    def slope(b: Tensor) -> Tensor:
        """Slope along log b; d NLL / d b: log-probability expected by the scaled prediction, less that of the label."""
        rising = ((_scaled(logs, b[..., None, None]).exp() * logs).sum(-1) - of_label).sum(-1)
        return b * rising + b.log() / SPREAD**2

    def loss(b: Tensor) -> float:
        """At the last step."""
        last = _scaled(logs, b[..., None, None]).gather(-1, chosen).mean(dim=(-2, -1))
        return -float(last.flatten()[-1])

    one = exact.new_ones(logs.shape[:-2])
    low, high = one / MOST, one / LEAST
    for _ in range(60):  # halves the interval of log b each time: far below rounding of b
        middle = (low * high).sqrt()
        beyond = slope(middle) > 0
        low, high = torch.where(beyond, low, middle), torch.where(beyond, middle, high)
    b = (low * high).sqrt()
    values = (1 / b).flatten().tolist()
    return Temperature(values[-1], logs.shape[-2], loss(one), loss(b), tuple(values) if b.dim() else ())


def _applied(probabilities: Tensor, b: float | Tensor) -> Tensor:
    exact = check_probabilities(probabilities, least_dims=1)
    return _scaled(exact.clamp_min(FLOOR).log(), b).exp().to(probabilities.dtype)


def _scaled(logs: Tensor, b: float | Tensor) -> Tensor:
    return (b * logs).log_softmax(-1)
