"""Risk against coverage: how wrong are the decisions that remain when the least sure are withheld.

Examples are taken in order of falling confidence; the risk at coverage k/n is the error rate of the first
k. The area under that curve (Geifman and El-Yaniv's AURC) is the mean of the n risks. Examples with equal
confidence cannot be told apart by a threshold, so each stands for the mean error of its group: the curve
does not depend on the order of the data.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require
from bayspike.metrics.checks import check_pair, check_scores


class RiskCoverage(NamedTuple):
    """One point per number of accepted examples, from the surest one to all."""

    coverage: Tensor  # (batch,) 1/n .. 1
    risk: Tensor  # (..., batch) error rate among the accepted
    threshold: Tensor  # (..., batch) least confidence among the accepted
    area: Tensor  # (...)


def risk_coverage(probabilities: Tensor, labels: Tensor, sureness: Tensor | None = None) -> RiskCoverage:
    """The curve for `(..., batch, classes)`; `sureness` `(..., batch)` replaces the confidence if given."""
    probabilities, labels = check_pair(probabilities, labels)
    confidence, decided = probabilities.max(-1)
    if sureness is not None:
        confidence = check_scores(sureness, "sureness")
        require(
            confidence.shape == decided.shape,
            f"sureness must have shape {tuple(decided.shape)}, but has {tuple(confidence.shape)}.",
        )
    rising = (-confidence).sort(-1)
    wrong = (decided != labels).double().gather(-1, rising.indices)
    keys = rising.values.contiguous()
    total = torch.nn.functional.pad(wrong.cumsum(-1), (1, 0))
    first, after = torch.searchsorted(keys, keys, right=False), torch.searchsorted(keys, keys, right=True)
    of_group = (total.gather(-1, after) - total.gather(-1, first)) / (after - first)
    accepted = torch.arange(1, keys.shape[-1] + 1, dtype=torch.float64, device=keys.device)
    risk = of_group.cumsum(-1) / accepted
    return RiskCoverage(accepted / keys.shape[-1], risk, -keys, risk.mean(-1))
