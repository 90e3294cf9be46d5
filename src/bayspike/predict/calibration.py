"""What held-out examples can tell about a predictor: a temperature, sets with a promise, a rule for foreign inputs.

All three are fitted on examples that took no part in training. The sets rest on the predictor's own probabilities,
never on scaled ones: their promise asks for a score that has not seen the held-out examples, and a temperature has.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.errors import require, require_range
from bayspike.predict.conformal import EarlyStopping, calibrate_early_stopping, coverage
from bayspike.predict.predictors import Predictor, predict_samples
from bayspike.predict.temperature import Temperature, fit_temperature
from bayspike.predict.watching import ForeignRule, calibrate_foreign


@dataclass(frozen=True)
class Calibration:
    """What was fitted, and on how many held-out examples; None is what was not asked for."""

    examples: int
    temperature: Temperature | None = None
    sets: EarlyStopping | None = None
    foreign: ForeignRule | None = None


def fit(
    predictor: Predictor,
    samples: Samples,
    generator: torch.Generator,
    *,
    temperature: bool = False,
    promise: float | None = None,
    checkpoints: Sequence[int] = (),
    false_alarm: float | None = None,
) -> Calibration:
    """Fit what is asked for to held-out samples; the generator encodes their spikes.

    `temperature` is fitted at every time-step. `promise` is the coverage of sets at the `checkpoints`, `false_alarm`
    the share of own inputs that may be called foreign at any one step.
    """
    if promise is not None:
        check_promise(promise, len(samples), len(checkpoints))
    done = predict_samples(predictor, samples, generator, keep_members="none" if false_alarm is None else "all")
    foreign = None
    if false_alarm is not None and done.members is not None:
        several = predictor.members > 1  # a single network does not disagree with itself
        foreign = calibrate_foreign(done.members, false_alarm, "mutual_information" if several else "entropy")
    labels = samples.labels.to(done.probabilities.device)
    return Calibration(
        len(samples),
        fit_temperature(done.probabilities, labels) if temperature else None,
        None if promise is None else fit_sets(done.probabilities, labels, checkpoints, promise),
        foreign,
    )


def fit_sets(probabilities: Tensor, labels: Tensor, checkpoints: Sequence[int], promise: float) -> EarlyStopping:
    """Sets at `checkpoints` from held-out `(time, n, classes)`; refused where n is too small to promise anything."""
    check_promise(promise, len(labels), len(checkpoints))
    return calibrate_early_stopping(probabilities, labels, checkpoints, 1 - promise)


def check_promise(promise: float, examples: int, checkpoints: int) -> None:
    """With too few examples a set that holds the promise must hold every class: that is refused, not shown."""
    require_range("coverage", promise, 0, 1, low_open=True, high_open=True)
    least = math.ceil(checkpoints / _share(promise)) - 1
    require(
        examples >= least,
        f"{examples} held-out examples cannot promise a coverage of {promise:g} at {checkpoints} time-steps at once: "
        f"give at least {least}, or ask at fewer time-steps.",
    )


def even_checkpoints(time: int, promise: float, examples: int, first: int = 1, most: int = 10) -> tuple[int, ...]:
    """Up to `most` time-steps spread evenly to the last, from `first` on; fewer where `examples` are few."""
    check_promise(promise, examples, 1)
    count = min(most, time, math.floor((examples + 1) * _share(promise)))
    return tuple(sorted({t for k in range(1, count + 1) if (t := math.ceil(time * k / count)) >= min(first, time)}))


def halves(labels: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Two disjoint halves, each with half of every class (give or take one): what calibrates, and what judges."""
    order = torch.randperm(len(labels), generator=generator)
    order = order[labels.cpu()[order].argsort(stable=True)]  # by class, and at random within it
    return order[::2].sort().values, order[1::2].sort().values


class SetScores(NamedTuple):
    """How sets fared that were given as soon as they were of one class, or at the last checkpoint."""

    coverage: float  # share that holds the right class
    size: float  # mean number of classes
    single: float  # share of exactly one class
    stopped_at: float  # mean number of time-steps seen
    checkpoints: int


def judge_sets(rule: EarlyStopping, probabilities: Tensor, labels: Tensor) -> SetScores:
    """Scores of early stopping on examples that took no part in the calibration."""
    decided = rule.decide(probabilities)
    sizes = decided.sets.sum(-1).double()
    return SetScores(
        float(coverage(decided.sets, labels)),
        float(sizes.mean()),
        float((sizes == 1).double().mean()),
        float(decided.stopped_at.double().mean()),
        len(rule.checkpoints),
    )


def _share(promise: float) -> Fraction:
    """1 - promise without the rounding of floats."""
    return 1 - Fraction(promise).limit_denominator(10**9)
