"""What a committee does not know, split in two (in nats).

With members s, the entropy of the mean prediction is the total uncertainty; the mean entropy of the
members is the part that more knowledge of the weights would not remove (aleatoric); the difference is the
mutual information between the class and the choice of member: their disagreement (epistemic).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require
from bayspike.metrics.checks import as_tensor, check_probabilities


class Uncertainty(NamedTuple):
    """`total = aleatoric + epistemic`, each `(..., batch)` and at least 0."""

    total: Tensor
    aleatoric: Tensor
    epistemic: Tensor


def entropy(probabilities: Tensor) -> Tensor:
    """Entropy of each prediction: `(..., classes)` to `(...)`."""
    return _entropy(check_probabilities(probabilities, least_dims=1))


def split_uncertainty(members: Tensor) -> Uncertainty:
    """From per-member probabilities `(members, ..., classes)`; the first dimension is averaged away."""
    members = as_tensor(members, "members")
    require(
        members.dim() >= 2,
        f"members must have shape (members, ..., classes), but have {tuple(members.shape)}.",
    )
    exact = check_probabilities(members, "members")
    total = _entropy(exact.mean(0))
    aleatoric = _entropy(exact).mean(0)
    epistemic = (total - aleatoric).clamp_min(0.0)  # rounding alone can take it below zero
    return Uncertainty(aleatoric + epistemic, aleatoric, epistemic)


def mutual_information(members: Tensor) -> Tensor:
    """The epistemic part alone: `(members, ..., classes)` to `(...)`."""
    return split_uncertainty(members).epistemic


def _entropy(exact: Tensor) -> Tensor:
    terms: Tensor = torch.special.entr(exact)  # -p log p, with 0 log 0 = 0
    return terms.sum(-1)
