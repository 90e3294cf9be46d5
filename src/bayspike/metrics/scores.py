"""Accuracy, confidence and proper scores (paper, Sec. "Performance Measures").

Every function takes `(..., batch, classes)` and returns `(...)`: a scalar tensor for one prediction per
example, a curve over t for cumulative probabilities `(time, batch, classes)`.
"""

from torch import Tensor

from bayspike.errors import require_range
from bayspike.metrics.checks import check_pair, check_probabilities


def accuracy(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Share of examples whose most probable class (eq. hard-pred) is the label."""
    probabilities, labels = check_pair(probabilities, labels)
    return (probabilities.argmax(-1) == labels).double().mean(-1)


def mean_confidence(probabilities: Tensor) -> Tensor:
    """Mean over the batch of the predicted class's probability (eq. prob)."""
    return check_probabilities(probabilities).amax(-1).mean(-1)


def nll(probabilities: Tensor, labels: Tensor, floor: float = 1e-12) -> Tensor:
    """Mean negative log-likelihood in nats.

    A label given probability zero would make it infinite; probabilities below `floor` count as `floor`.
    """
    require_range("floor", floor, 0.0, 1.0, high_open=True)
    probabilities, labels = check_pair(probabilities, labels)
    chosen = labels.expand(probabilities.shape[:-1]).unsqueeze(-1)
    return -probabilities.gather(-1, chosen).squeeze(-1).clamp_min(floor).log().mean(-1)


def brier(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Brier's score: squared distance to the one-hot label, summed over classes, mean over examples.

    It lies in [0, 2]; for two classes it is twice the binary score of other libraries.
    """
    probabilities, labels = check_pair(probabilities, labels)
    chosen = labels.expand(probabilities.shape[:-1]).unsqueeze(-1)
    of_label = probabilities.gather(-1, chosen).squeeze(-1)
    return (probabilities.square().sum(-1) - 2 * of_label + 1).mean(-1)
