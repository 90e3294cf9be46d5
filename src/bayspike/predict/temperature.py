"""Temperature scaling: one scalar that sharpens or softens all predictions (Guo et al. 2017).

Not to be confused with the temperature rho of the free energy: this one is fitted after training, on
held-out data, and only where asked for. Figures that use it must say so (`Temperature.note`).

The scaled prediction is softmax(log p / T). Few held-out examples may all be answered rightly, and then the likelihood
alone would make every answer certain (T → 0). So T is the most probable one under a prior that holds a factor of ten,
either way, for one standard deviation: with b = 1/T it minimises NLL(b) + (log b)²/(2·log²10), NLL summed over the
examples. NLL is convex in b, since log-sum-exp is; bisection finds where the slope turns from falling to rising.
"""

import math
from dataclasses import dataclass

from torch import Tensor

from bayspike.errors import require, require_range
from bayspike.metrics.checks import check_pair, check_probabilities

FLOOR = 1e-12  # probabilities below it count as it: log 0 would say "impossible", which no finite T undoes
LEAST, MOST = 0.01, 100.0  # where no optimum lies inside, T stops here
SPREAD = math.log(10.0)  # of the prior of log T


@dataclass(frozen=True)
class Temperature:
    """The fitted scalar and what it did on the held-out data. `value` 1 changes nothing."""

    value: float
    examples: int
    nll_before: float
    nll_after: float

    def __post_init__(self) -> None:
        require_range("temperature", self.value, 0.0, low_open=True)

    def apply(self, probabilities: Tensor) -> Tensor:
        """Scaled probabilities of the same shape and type; the decision never changes."""
        exact = check_probabilities(probabilities, least_dims=1)
        return _scaled(exact.clamp_min(FLOOR).log(), 1.0 / self.value).exp().to(probabilities.dtype)

    @property
    def note(self) -> str:
        """The sentence to put beside any figure that rests on it."""
        return (
            f"Probabilities scaled by a temperature of {self.value:.3g} fitted on {self.examples} "
            f"held-out examples (negative log-likelihood {self.nll_before:.4f} before, {self.nll_after:.4f} after)."
        )


def fit_temperature(probabilities: Tensor, labels: Tensor) -> Temperature:
    """The most probable T in [0.01, 100] given held-out labels, from probabilities `(n, classes)`."""
    require(
        probabilities.dim() == 2,
        "temperature is fitted on probabilities of shape (n, classes): choose the time-step first, "
        f"the shape given is {tuple(probabilities.shape)}.",
    )
    exact, labels = check_pair(probabilities, labels)
    logs = exact.clamp_min(FLOOR).log()
    of_label = logs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)

    def slope(b: float) -> float:
        """Slope along log b; d NLL / d b: log-probability expected by the scaled prediction, less that of the label."""
        rising = float(((_scaled(logs, b).exp() * logs).sum(-1) - of_label).sum())
        return b * rising + math.log(b) / SPREAD**2

    def loss(b: float) -> float:
        return float(-_scaled(logs, b).gather(-1, labels.unsqueeze(-1)).mean())

    low, high = 1 / MOST, 1 / LEAST
    for _ in range(60):  # halves the interval of log b each time: far below rounding of b
        middle = math.sqrt(low * high)
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    b = math.sqrt(low * high)
    return Temperature(1 / b, exact.shape[0], loss(1.0), loss(b))


def _scaled(logs: Tensor, b: float) -> Tensor:
    return (b * logs).log_softmax(-1)
