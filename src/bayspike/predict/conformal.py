"""Sets of classes that hold the right one with a promised probability (split-conformal prediction).

The strangeness of class k for an example is 1 - p(k). On n held-out examples the threshold is the
ceil((n+1)(1-alpha))-th smallest strangeness of the right classes; the set of a new example is every class
whose strangeness is at most that. If held-out and new examples are exchangeable, the set holds the right
class with probability at least 1 - alpha, however bad the model is (a bad model pays with large sets).
With too few held-out examples for the asked alpha the threshold is infinite and the set holds every class.

Class-conditional calibration does the same within each class, so that the promise holds for every class
on its own and not only on average.

Early stopping looks at the signal at K checkpoints fixed beforehand, each calibrated at alpha / K
(Bonferroni). All K sets then hold the right class at once with probability at least 1 - alpha, so the
promise survives any rule for when to stop, and the sets seen so far may be intersected.

An empty set says that no class is plausible: the input looks foreign, abstain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require, require_range
from bayspike.metrics.checks import check_labels, check_pair, check_probabilities


def conformal_threshold(strangeness: Tensor, alpha: float | Fraction) -> float:
    """The ceil((n+1)(1-alpha))-th smallest of n values; infinite where n is too small for that rank."""
    require_range("alpha", float(alpha), 0.0, 1.0, low_open=True, high_open=True)
    n = strangeness.shape[0]
    # As fractions, because (n+1)(1-alpha) in floats may land just above the whole number it is.
    rank = math.ceil((n + 1) * (1 - Fraction(alpha).limit_denominator(10**9)))
    return float(strangeness.sort().values[rank - 1]) if rank <= n else math.inf


@dataclass(frozen=True)
class ConformalSets:
    """One threshold per class (all the same unless class-conditional) and the promise they were made for."""

    thresholds: Tensor  # (classes,)
    alpha: float
    class_conditional: bool

    def sets(self, probabilities: Tensor) -> Tensor:
        """Which classes the set of each example holds: `(..., classes)` to boolean `(..., classes)`."""
        return _members(probabilities, self.thresholds)


def calibrate(
    probabilities: Tensor, labels: Tensor, alpha: float = 0.1, *, class_conditional: bool = False
) -> ConformalSets:
    """Thresholds from held-out probabilities `(n, classes)` and labels; never from data trained on."""
    require(
        probabilities.dim() == 2,
        f"probabilities must have shape (n, classes) to calibrate, but have {tuple(probabilities.shape)}.",
    )
    thresholds = _thresholds(probabilities, labels, alpha, class_conditional)
    return ConformalSets(thresholds, alpha, class_conditional)


class EarlyDecision(NamedTuple):
    """The set given when each example stopped."""

    sets: Tensor  # (batch, classes) boolean
    stopped_at: Tensor  # (batch,) number of time-steps seen


@dataclass(frozen=True)
class EarlyStopping:
    """Thresholds for every checkpoint; a checkpoint t means "after t time-steps", from 1 to T."""

    checkpoints: tuple[int, ...]
    thresholds: Tensor  # (checkpoints, classes)
    alpha: float
    class_conditional: bool

    def sets(self, probabilities: Tensor) -> Tensor:
        """The intersected sets at every checkpoint, `(time, batch, classes)` to `(checkpoints, batch, classes)`."""
        _check_series(probabilities, self.checkpoints)
        seen = probabilities[[t - 1 for t in self.checkpoints]]
        single = _members(seen, self.thresholds.unsqueeze(1))
        return single.to(torch.int8).cummin(0).values.bool()

    def narrow(self, so_far: Tensor, probabilities: Tensor, time: int) -> Tensor:
        """The sets `(batch, classes)` of a live signal after step `time`, from those before it, at first all classes.

        Between checkpoints, and after the last, the sets stay as they are.
        """
        if time not in self.checkpoints:
            return so_far
        return so_far & _members(probabilities, self.thresholds[self.checkpoints.index(time)])

    def decide(self, probabilities: Tensor, max_size: int = 1) -> EarlyDecision:
        """Stop each example at the first checkpoint whose set has at most `max_size` classes, or at the last."""
        require(max_size >= 0, f"max_size must not be negative, but is {max_size}.")
        sets = self.sets(probabilities)
        small = sets.sum(-1) <= max_size
        small[-1] = True
        first = small.to(torch.int8).argmax(0)  # sets only shrink, so the first small one opens a run
        examples = torch.arange(sets.shape[1], device=sets.device)
        times = torch.tensor(self.checkpoints, device=sets.device)
        return EarlyDecision(sets[first, examples], times[first])


def calibrate_early_stopping(
    probabilities: Tensor,
    labels: Tensor,
    checkpoints: Sequence[int],
    alpha: float = 0.1,
    *,
    class_conditional: bool = False,
) -> EarlyStopping:
    """Thresholds from held-out cumulative probabilities `(time, n, classes)`, each checkpoint at alpha / K.

    Choose the checkpoints before looking at the held-out data: the promise rests on it.
    """
    chosen = tuple(int(t) for t in checkpoints)
    require(
        len(chosen) > 0 and list(chosen) == sorted(set(chosen)) and chosen[0] >= 1,
        f"checkpoints must be rising numbers of time-steps from 1 on, but are {list(chosen)}.",
    )
    _check_series(probabilities, chosen)
    share = Fraction(alpha).limit_denominator(10**9) / len(chosen)
    thresholds = [_thresholds(probabilities[t - 1], labels, share, class_conditional) for t in chosen]
    return EarlyStopping(chosen, torch.stack(thresholds), alpha, class_conditional)


def coverage(sets: Tensor, labels: Tensor) -> Tensor:
    """Share of examples whose set holds the label: `(..., batch, classes)` to `(...)`."""
    require(
        sets.dtype == torch.bool and sets.dim() >= 2,
        f"sets must be boolean (..., batch, classes), but are {sets.dtype} {tuple(sets.shape)}.",
    )
    labels = check_labels(labels, sets.shape[-2], sets.shape[-1])
    return sets.gather(-1, labels.expand(sets.shape[:-1]).unsqueeze(-1)).squeeze(-1).double().mean(-1)


def _thresholds(probabilities: Tensor, labels: Tensor, alpha: float | Fraction, by_class: bool) -> Tensor:
    exact, labels = check_pair(probabilities, labels)
    strangeness = 1.0 - exact.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    classes = exact.shape[-1]
    if by_class:
        values = [conformal_threshold(strangeness[labels == k], alpha) for k in range(classes)]
    else:
        values = [conformal_threshold(strangeness, alpha)] * classes
    return torch.tensor(values, dtype=torch.float64, device=exact.device)


def _members(probabilities: Tensor, thresholds: Tensor) -> Tensor:
    exact = check_probabilities(probabilities, least_dims=1)
    require(
        exact.shape[-1] == thresholds.shape[-1],
        f"calibrated for {thresholds.shape[-1]} classes, but the probabilities have {exact.shape[-1]}.",
    )
    return (1.0 - exact) <= thresholds.to(exact.device)


def _check_series(probabilities: Tensor, checkpoints: tuple[int, ...]) -> None:
    require(
        probabilities.dim() == 3,
        f"probabilities must have shape (time, batch, classes), but have {tuple(probabilities.shape)}.",
    )
    require(
        probabilities.shape[0] >= checkpoints[-1],
        f"checkpoint {checkpoints[-1]} lies beyond the {probabilities.shape[0]} time-steps of the probabilities.",
    )
