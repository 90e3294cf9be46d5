"""The fitted temperature against a known truth, a general optimiser and the stationarity condition."""

import math

import pytest
import torch
from scipy.optimize import brentq, minimize_scalar
from torch import Tensor

from bayspike.errors import UserError
from bayspike.metrics import ece
from bayspike.predict.temperature import Temperature, fit_temperature


def simulated(truth: float, n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Labels drawn from softmax(logits); the model reports softmax(truth * logits)."""
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(n, 5, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(-1)
    return (truth * logits).softmax(-1), labels


@pytest.mark.parametrize("truth", [0.4, 1.0, 3.0])
def test_recovers_the_truth_and_mends_calibration(truth: float) -> None:
    probabilities, labels = simulated(truth, 40_000, seed=1)
    fitted = fit_temperature(probabilities, labels)
    assert fitted.value == pytest.approx(truth, rel=0.03)
    fresh, fresh_labels = simulated(truth, 40_000, seed=2)
    assert ece(fitted.apply(fresh), fresh_labels).item() < 0.015
    if truth != 1.0:
        assert ece(fresh, fresh_labels).item() > 0.1
        assert fitted.nll_after < fitted.nll_before


def test_equals_a_general_optimiser() -> None:
    probabilities, labels = simulated(2.0, 300, seed=3)

    def loss(log_t: float) -> float:
        scaled = probabilities ** math.exp(-log_t)
        scaled = scaled / scaled.sum(-1, keepdim=True)
        return float(-scaled[torch.arange(300), labels].log().mean())

    def improbable(log_t: float) -> float:
        return 300 * loss(log_t) + 0.5 * (log_t / math.log(10)) ** 2

    best = minimize_scalar(improbable, bounds=(-4, 4), method="bounded", options={"xatol": 1e-10})
    fitted = fit_temperature(probabilities, labels)
    assert fitted.value == pytest.approx(math.exp(best.x), rel=1e-5)
    assert fitted.nll_after == pytest.approx(loss(best.x), abs=1e-7)
    assert fitted.nll_before == pytest.approx(loss(0.0))


def test_a_few_right_answers_do_not_make_every_answer_certain() -> None:
    right = torch.tensor([[0.9, 0.1]] * 50, dtype=torch.float64)
    fitted = fit_temperature(right, torch.zeros(50, dtype=torch.int64))
    margin = math.log(9.0)  # b in closed form: 50 · margin · b · sigmoid(−margin · b) = log b / log²10

    def slope(b: float) -> float:
        return math.log(b) / math.log(10) ** 2 - 50 * margin * b / (1 + math.exp(margin * b))

    assert fitted.value == pytest.approx(1 / brentq(slope, 1.0, 100.0), rel=1e-9)
    assert 0.2 < fitted.value < 0.5
    assert fitted.apply(torch.tensor([0.6, 0.4]))[0] < 0.9


def test_apply_keeps_decision_shape_and_type() -> None:
    probabilities = simulated(1.0, 60, seed=4)[0].float().view(3, 20, 5)
    scaled = Temperature(2.5, 60, 0.0, 0.0).apply(probabilities)
    assert scaled.shape == probabilities.shape
    assert scaled.dtype == torch.float32
    assert torch.equal(scaled.argmax(-1), probabilities.argmax(-1))
    expected = probabilities.sqrt() / probabilities.sqrt().sum(-1, keepdim=True)
    torch.testing.assert_close(Temperature(2.0, 60, 0.0, 0.0).apply(probabilities), expected)


def test_extremes_stay_finite() -> None:
    sure_and_wrong = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    fitted = fit_temperature(sure_and_wrong, torch.tensor([1, 0]))
    assert 1.0 < fitted.value <= 100.0
    assert torch.isfinite(fitted.apply(sure_and_wrong)).all()


def test_says_what_was_done() -> None:
    note = fit_temperature(*simulated(2.0, 500, seed=5)).note
    assert "temperature" in note
    assert "500 held-out examples" in note


def test_bad_input_is_refused() -> None:
    with pytest.raises(UserError, match="time-step"):
        fit_temperature(torch.full((2, 3, 2), 0.5), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(UserError, match="not normalised"):
        fit_temperature(torch.ones(3, 2), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(UserError, match="temperature"):
        Temperature(0.0, 1, 0.0, 0.0)
