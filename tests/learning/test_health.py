import pytest
import torch

from bayspike.errors import UserError
from bayspike.learning.batch import BatchReport
from bayspike.learning.health import check_batch
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
