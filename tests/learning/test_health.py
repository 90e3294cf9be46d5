import math
from dataclasses import replace

import pytest
import torch

from bayspike.errors import UserError
from bayspike.learning.batch import BatchReport
from bayspike.learning.health import check_batch, check_settled
from bayspike.rules import SGD, BernoulliVI, GaussianVI
from bayspike.rules.gaussian import GaussianState


def state(mean: float = 0.0, precision: float = 1.0) -> GaussianState:
    return GaussianState(*(torch.full((2, 2), value) for value in (mean, precision, 0.0, 1.0)))


def report(*rates: float, loss: float = 1.0) -> BatchReport:
    return BatchReport(torch.tensor(loss), torch.tensor(0.5), torch.tensor(rates))


def test_a_healthy_batch_is_left_alone() -> None:
    assert check_batch(report(0.1, 0.2), [state(), state()], "bayes") == []


@pytest.mark.parametrize(
    ("rates", "states", "kind", "knob"),
    [
        ((0.1, 0.0), [state(), state()], "silent", "network.threshold"),
        ((0.1, 0.97), [state(), state()], "saturated", "bayes.lr"),
        ((0.1, 0.1), [state(), state(precision=1e13)], "precision", "bayes.precision_lr"),
    ],
)
def test_what_looks_wrong_is_named_with_its_layer_and_knob(rates, states, kind, knob) -> None:
    (found,) = check_batch(report(*rates), states, "bayes")
    assert (found.kind, found.layer) == (kind, 1)
    assert knob in found.sentence


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_single_bad_weight_stops_training(value: float) -> None:
    bad = state()
    bad.mean[1, 0] = value
    with pytest.raises(UserError, match=r"mean of layer 0 .*sgd\.lr"):
        check_batch(report(0.1), [bad], "sgd")


def test_a_bad_loss_stops_training() -> None:
    with pytest.raises(UserError, match="loss is nan"):
        check_batch(report(0.1, loss=float("nan")), [state()], "sgd")


BATCHES, STEPS = 157, 50  # 10,000 images of one task in mini-batches of 64


def test_a_precision_that_hardly_moves_is_said_with_its_numbers() -> None:
    """The preset in the paper's units: 1/(10 · 1e-8) = 10,000,000 updates to settle, 157 · 50 = 7,850 there are."""
    rule = GaussianVI(lr=100.0, temperature=1e-8, precision_lr=10.0, prior_precision=300.0)
    (found,) = check_settled(rule, BATCHES, STEPS, 0.0, "bayes")
    assert (found.kind, found.layer) == ("unsettled", 0)
    assert "needs 10,000,000 updates" in found.sentence
    assert "had 7,850" in found.sentence
    assert "bayes.temperature" in found.sentence
    (slower,) = check_settled(rule, BATCHES, STEPS, 1.0, "bayes")  # Σ(1 − k/157) over the batches is 79
    assert f"had {50 * sum(1 - k / 157 for k in range(157)):,.0f}" in slower.sentence


def test_logits_that_hardly_settle_are_said_with_their_numbers() -> None:
    """1/(10 · 1e-6) = 100,000 updates, where 7,850 leave them 1 − (1 − 1e-5)^7850, a thirteenth, of their way."""
    (found,) = check_settled(BernoulliVI(lr=10.0, temperature=1e-6), BATCHES, STEPS, 0.0, "bayes-binary")
    assert (found.kind, found.layer) == ("unsettled", 0)
    assert "the logits need 100,000 updates to settle and had 7,850" in found.sentence
    assert "bayes-binary.temperature" in found.sentence


@pytest.mark.parametrize(
    "rule",
    [
        GaussianVI(),
        GaussianVI(remember=300_000.0),
        GaussianVI(remember=float("inf")),
        GaussianVI(lr=64 / 20, temperature=1 / 300_000, horizon=1),  # natural units, written in the paper's
        GaussianVI(lr=100.0, temperature=1e-6, precision_lr=400.0),  # 2,500 updates
        SGD(),
        BernoulliVI(lr=None, temperature=None),
        BernoulliVI(lr=10.0, temperature=1e-4),  # 1,000 updates
        BernoulliVI(lr=10.0, temperature=1e-6, carry=50.0),  # (1 + 5e-4)/5e-4 = 2,001 updates
        BernoulliVI(horizon=5.0),
    ],
)
def test_nothing_is_said_of_a_precision_with_time_enough(rule) -> None:
    assert check_settled(rule, BATCHES, STEPS, 0.0, "bayes") == []


def test_the_warning_tells_what_happens() -> None:
    """By hand: with constant evidence p has come 1 − (1 − ηρ)^M of its way, near 1 − 1/e at the boundary."""
    rate, fixed_point = 1 / 7850, 500.0
    precision = 300.0
    for _ in range(BATCHES * STEPS):
        precision += rate * (fixed_point - precision)
    assert (precision - 300) / 200 == pytest.approx(1 - math.exp(-1), rel=1e-3)
    just = GaussianVI(lr=1.0, temperature=1 / 7851, prior_precision=300.0)
    assert check_settled(just, BATCHES, STEPS, 0.0, "bayes")
    assert not check_settled(replace(just, temperature=1 / 7849), BATCHES, STEPS, 0.0, "bayes")
