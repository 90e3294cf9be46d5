"""Telling foreign (out-of-distribution) inputs from the model's own (in-distribution) ones.

A score is a number per example that should be higher for foreign inputs: one minus the confidence, the
entropy, or the mutual information of a committee. Scores are `(..., examples)`; the measures compare the
last dimensions and keep the leading ones, so scores `(time, batch)` give curves over t.

Conventions, which differ in the literature and are therefore fixed here: AUROC does not depend on which
side is called positive. AUPR takes the foreign inputs as positive, so its floor is their share. FPR95 is
the share of foreign inputs that pass as own at the tightest threshold that lets 95 % of own inputs pass.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require, require_range
from bayspike.metrics.checks import check_probabilities, check_scores
from bayspike.metrics.uncertainty import entropy, mutual_information


class ForeignDetection(NamedTuple):
    """How well one score separates; each `(...)`."""

    auroc: Tensor
    aupr: Tensor
    fpr95: Tensor


def auroc(own: Tensor, foreign: Tensor) -> Tensor:
    """P(a foreign score > an own score), ties counted half: the area under the ROC curve."""
    own, foreign = _pair(own, foreign)
    own = own.sort(-1).values
    below = torch.searchsorted(own, foreign, right=False)
    not_above = torch.searchsorted(own, foreign, right=True)
    return (below + not_above).double().mean(-1) / (2 * own.shape[-1])


def aupr(own: Tensor, foreign: Tensor) -> Tensor:
    """Average precision with foreign inputs as the positives (a step-wise area, no interpolation)."""
    own, foreign = _pair(own, foreign)
    own, foreign = own.sort(-1).values, foreign.sort(-1).values
    # Each foreign example adds the precision at its own score as threshold, ties included.
    caught = foreign.shape[-1] - torch.searchsorted(foreign, foreign, right=False)
    alarms = own.shape[-1] - torch.searchsorted(own, foreign, right=False)
    return (caught / (caught + alarms).double()).mean(-1)


def false_pass_rate(own: Tensor, foreign: Tensor, pass_rate: float = 0.95) -> Tensor:
    """Share of foreign inputs that pass when the threshold lets at least `pass_rate` of own inputs pass."""
    require_range("pass_rate", pass_rate, 0.0, 1.0, low_open=True)
    own, foreign = _pair(own, foreign)
    # The tolerance keeps a product such as 0.95 * 20 from being rounded up past the whole number it is.
    rank = math.ceil(pass_rate * own.shape[-1] - 1e-9)
    threshold = own.sort(-1).values[..., rank - 1 : rank]
    return (foreign <= threshold).double().mean(-1)


def fpr95(own: Tensor, foreign: Tensor) -> Tensor:
    """`false_pass_rate` at 95 %."""
    return false_pass_rate(own, foreign, 0.95)


def detect_foreign(
    own: Tensor, foreign: Tensor, own_members: Tensor | None = None, foreign_members: Tensor | None = None
) -> dict[str, ForeignDetection]:
    """All three measures for each score: `confidence`, `entropy` and, given members, `mutual_information`.

    `own` and `foreign` are probabilities `(..., batch, classes)`; members `(members, ..., batch, classes)`.
    """
    require(
        (own_members is None) == (foreign_members is None),
        "own_members and foreign_members must be given together or not at all.",
    )
    scores = {
        "confidence": (unsureness(own), unsureness(foreign)),
        "entropy": (entropy(own), entropy(foreign)),
    }
    if own_members is not None and foreign_members is not None:
        scores["mutual_information"] = (mutual_information(own_members), mutual_information(foreign_members))
    return {name: compare_scores(*pair) for name, pair in scores.items()}


def compare_scores(own: Tensor, foreign: Tensor) -> ForeignDetection:
    """All three measures of one score."""
    return ForeignDetection(auroc(own, foreign), aupr(own, foreign), fpr95(own, foreign))


def unsureness(probabilities: Tensor) -> Tensor:
    """One minus the confidence: `(..., classes)` to `(...)`."""
    return 1.0 - check_probabilities(probabilities, least_dims=1).amax(-1)


def _pair(own: Tensor, foreign: Tensor) -> tuple[Tensor, Tensor]:
    own, foreign = check_scores(own, "own scores"), check_scores(foreign, "foreign scores")
    require(
        own.shape[:-1] == foreign.shape[:-1],
        "own and foreign scores must agree in all but their last dimension, "
        f"but have shapes {tuple(own.shape)} and {tuple(foreign.shape)}.",
    )
    return own.contiguous(), foreign.contiguous()
