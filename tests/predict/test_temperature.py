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
        return 300 * loss(log_t) + 0.5 * (log_t / math.log(2)) ** 2

    best = minimize_scalar(improbable, bounds=(-4, 4), method="bounded", options={"xatol": 1e-10})
    fitted = fit_temperature(probabilities, labels)
    assert fitted.value == pytest.approx(math.exp(best.x), rel=1e-5)
    assert fitted.nll_after == pytest.approx(loss(best.x), abs=1e-7)
    assert fitted.nll_before == pytest.approx(loss(0.0))


def test_a_few_right_answers_do_not_make_every_answer_certain() -> None:
    right = torch.tensor([[0.9, 0.1]] * 50, dtype=torch.float64)
    fitted = fit_temperature(right, torch.zeros(50, dtype=torch.int64))
    margin = math.log(9.0)  # b in closed form: 50 · margin · b · sigmoid(−margin · b) = log b / log²2

    def slope(b: float) -> float:
        return math.log(b) / math.log(2) ** 2 - 50 * margin * b / (1 + math.exp(margin * b))

    assert fitted.value == pytest.approx(1 / brentq(slope, 1.0, 100.0), rel=1e-9)
    assert 0.4 < fitted.value < 0.8
    assert fitted.apply(torch.tensor([0.6, 0.4]))[0] < 0.75


def test_every_step_is_fitted_as_if_it_were_the_last() -> None:
    blunt, labels = simulated(0.5, 200, seed=6)
    sharp = simulated(3.0, 200, seed=6)[0]
    silent = torch.full_like(sharp, 0.2)
    fitted = fit_temperature(torch.stack([silent, blunt, sharp]), labels)
    alone = [fit_temperature(each, labels) for each in (silent, blunt, sharp)]
    assert fitted.steps == pytest.approx([each.value for each in alone], rel=1e-12)
    assert (fitted.value, fitted.nll_before, fitted.nll_after) == pytest.approx(
        (alone[2].value, alone[2].nll_before, alone[2].nll_after), rel=1e-12
    )
    assert fitted.steps[0] == pytest.approx(1.0, rel=1e-9)  # of what says nothing every T is as likely
    assert [fitted.at(step) for step in (1, 3, 9)] == [fitted.steps[0], fitted.value, fitted.value]
    scaled = fitted.apply_over_time(torch.stack([silent, blunt, sharp]))
    for step, each in enumerate((silent, blunt, sharp)):
        torch.testing.assert_close(
            scaled[step], each ** (1 / fitted.at(step + 1)) / (each ** (1 / fitted.at(step + 1))).sum(-1, keepdim=True)
        )
        torch.testing.assert_close(fitted.apply(each, step + 1), scaled[step])
    torch.testing.assert_close(fitted.apply_over_time(sharp.unsqueeze(0))[0], fitted.apply(sharp))
    torch.testing.assert_close(alone[1].apply_over_time(torch.stack([blunt, sharp]))[1], alone[1].apply(sharp))


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
    with pytest.raises(UserError, match="shape"):
        fit_temperature(torch.full((2, 2, 3, 2), 0.5), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(UserError, match="temperature"):
        Temperature(1.0, 1, 0.0, 0.0, (0.0, 1.0))
    with pytest.raises(UserError, match="not normalised"):
        fit_temperature(torch.ones(3, 2), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(UserError, match="temperature"):
        Temperature(0.0, 1, 0.0, 0.0)
