"""Scores, uncertainty, detection of foreign inputs and risk-coverage against other libraries and by hand."""

import math
from types import ModuleType

import numpy as np
import pytest
import torch
from scipy.stats import entropy as scipy_entropy
from sklearn import metrics as sk
from torch import Tensor

from bayspike.errors import UserError
from bayspike.metrics import (
    accuracy,
    aupr,
    auroc,
    brier,
    detect_foreign,
    entropy,
    false_pass_rate,
    fpr95,
    mean_confidence,
    mutual_information,
    nll,
    risk_coverage,
    split_uncertainty,
)


@pytest.fixture
def predictions() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(11)
    logits = torch.randn(7, 200, 5, generator=generator, dtype=torch.float64)
    return logits.softmax(-1), torch.randint(5, (200,), generator=generator)


def test_scores_over_time_equal_scikit_learn(predictions: tuple[Tensor, Tensor]) -> None:
    probabilities, labels = predictions
    for t in range(7):
        p, y = probabilities[t].numpy(), labels.numpy()
        assert accuracy(probabilities, labels)[t].item() == pytest.approx(sk.accuracy_score(y, p.argmax(1)))
        assert nll(probabilities, labels)[t].item() == pytest.approx(sk.log_loss(y, p, labels=range(5)))
        assert brier(probabilities, labels)[t].item() == pytest.approx(
            sk.brier_score_loss(y, p, labels=range(5), scale_by_half=False)
        )
        assert mean_confidence(probabilities)[t].item() == pytest.approx(p.max(1).mean())
    assert accuracy(probabilities[0], labels).shape == ()


def test_scores_by_hand() -> None:
    probabilities = torch.tensor([[0.7, 0.2, 0.1], [0.0, 0.5, 0.5]])
    labels = torch.tensor([0, 0])
    assert accuracy(probabilities, labels).item() == 0.5
    assert brier(probabilities, labels).item() == pytest.approx((0.09 + 0.04 + 0.01 + 1 + 0.25 + 0.25) / 2)
    assert nll(probabilities, labels, floor=1e-6).item() == pytest.approx(-(math.log(0.7) + math.log(1e-6)) / 2)


def test_uncertainty_splits_by_hand() -> None:
    agree = torch.tensor([[[0.8, 0.2]], [[0.8, 0.2]]])
    differ = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    h = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
    split = split_uncertainty(agree)
    assert split.aleatoric.item() == pytest.approx(h, abs=1e-6)
    assert split.epistemic.item() == pytest.approx(0.0, abs=1e-9)
    split = split_uncertainty(differ)
    assert split.total.item() == pytest.approx(math.log(2))
    assert split.aleatoric.item() == pytest.approx(0.0)
    assert split.epistemic.item() == pytest.approx(math.log(2))


def test_mutual_information_is_the_mean_divergence_from_the_mean(predictions: tuple[Tensor, Tensor]) -> None:
    members = predictions[0]  # seven members here
    p = members.numpy()
    mean = p.mean(0)
    expected = np.mean([scipy_entropy(each, mean, axis=-1) for each in p], axis=0)
    np.testing.assert_allclose(mutual_information(members).numpy(), expected, atol=1e-12)
    np.testing.assert_allclose(entropy(members).numpy(), scipy_entropy(p, axis=-1), atol=1e-12)


def test_detection_equals_other_libraries_with_ties(torchmetrics: ModuleType) -> None:
    generator = torch.Generator().manual_seed(2)
    own = (torch.randn(3, 300, generator=generator) * 4).round() / 4  # coarse values: many ties
    foreign = (torch.randn(3, 170, generator=generator) * 4 + 3).round() / 4
    for t in range(3):
        scores = torch.cat([own[t], foreign[t]])
        truth = torch.cat([torch.zeros(300), torch.ones(170)]).long()
        assert auroc(own, foreign)[t].item() == pytest.approx(sk.roc_auc_score(truth, scores))
        assert auroc(own, foreign)[t].item() == pytest.approx(
            torchmetrics.binary_auroc(scores.sigmoid(), truth).item(), abs=1e-6
        )
        assert aupr(own, foreign)[t].item() == pytest.approx(sk.average_precision_score(truth, scores))
        assert aupr(own, foreign)[t].item() == pytest.approx(
            torchmetrics.binary_average_precision(scores.sigmoid(), truth).item(), abs=1e-6
        )
        # own inputs as positives, "own-ness" = -score: least false-positive rate at 95 % true positives
        false_rate, true_rate, _ = sk.roc_curve(1 - truth, -scores, drop_intermediate=False)
        assert fpr95(own, foreign)[t].item() == pytest.approx(false_rate[true_rate >= 0.95].min())


def test_detection_by_hand() -> None:
    own = torch.arange(20.0)
    foreign = torch.tensor([18.0, 18.5, 25.0, 30.0])
    assert fpr95(own, foreign).item() == pytest.approx(0.25)  # threshold 18 lets 19 of 20 pass
    assert false_pass_rate(own, foreign, 1.0).item() == pytest.approx(0.5)
    assert auroc(own, own).item() == pytest.approx(0.5)
    assert auroc(own, own + 100).item() == 1.0
    assert aupr(own, own + 100).item() == 1.0


def test_disagreement_finds_what_confidence_cannot() -> None:
    """Own: members agree on an ambiguous class. Foreign: sure members contradict each other."""
    generator = torch.Generator().manual_seed(4)
    side = torch.rand(2, 50, generator=generator).round()
    foreign = torch.stack([torch.stack([side, 1 - side], -1)[0], torch.stack([1 - side, side], -1)[0]])
    own = torch.full((2, 50, 2), 0.5)
    found = detect_foreign(own.mean(0), foreign.mean(0), own, foreign)
    assert found["confidence"].auroc.item() == 0.5
    assert found["entropy"].auroc.item() == 0.5
    assert found["mutual_information"].auroc.item() == 1.0
    assert found["mutual_information"].fpr95.item() == 0.0
    assert "mutual_information" not in detect_foreign(own.mean(0), foreign.mean(0))


def test_detection_over_time(predictions: tuple[Tensor, Tensor]) -> None:
    probabilities, _ = predictions
    found = detect_foreign(probabilities[:, :120], probabilities[:, 120:])
    assert found["entropy"].auroc.shape == (7,)
    at_three = detect_foreign(probabilities[3, :120], probabilities[3, 120:])
    assert found["confidence"].aupr[3].item() == pytest.approx(at_three["confidence"].aupr.item())


def test_risk_coverage_by_hand() -> None:
    probabilities = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.6, 0.4]])
    curve = risk_coverage(probabilities, torch.tensor([0, 1, 0, 1]))
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.risk.tolist() == pytest.approx([0.0, 1 / 2, 1 / 3, 1 / 2])
    assert curve.threshold.tolist() == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert curve.area.item() == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)


def test_risk_coverage_of_ties_is_the_mean_over_orders() -> None:
    probabilities = torch.tensor([[0.9, 0.1], [0.75, 0.25], [0.75, 0.25], [0.75, 0.25], [0.6, 0.4]])
    labels = torch.tensor([0, 1, 0, 0, 1])
    orders = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]  # which of the tied three is the wrong one
    expected = np.mean([np.cumsum([0, *order, 1]) / np.arange(1, 6) for order in orders], axis=0)
    curve = risk_coverage(probabilities, labels)
    np.testing.assert_allclose(curve.risk.numpy(), expected)
    back = torch.tensor([4, 3, 2, 1, 0])
    np.testing.assert_allclose(risk_coverage(probabilities[back], labels[back]).risk.numpy(), expected)


def test_risk_coverage_over_time_and_own_order(predictions: tuple[Tensor, Tensor]) -> None:
    probabilities, labels = predictions
    curve = risk_coverage(probabilities, labels)
    assert curve.area.shape == (7,)
    assert curve.risk[2].tolist() == pytest.approx(risk_coverage(probabilities[2], labels).risk.tolist())
    assert (curve.risk[:, -1] + accuracy(probabilities, labels)).tolist() == pytest.approx([1.0] * 7)
    right = (probabilities[0].argmax(-1) == labels).double()
    oracle = risk_coverage(probabilities[0], labels, sureness=right)
    kept = int(right.sum())
    assert oracle.risk[kept - 1].item() == 0.0
    assert oracle.risk[kept].item() > 0.0


def test_bad_scores_are_refused() -> None:
    with pytest.raises(UserError, match="NaN"):
        auroc(torch.tensor([float("nan")]), torch.tensor([1.0]))
    with pytest.raises(UserError, match="last dimension"):
        aupr(torch.zeros(2, 3), torch.zeros(3, 3))
    with pytest.raises(UserError, match="at least one"):
        fpr95(torch.zeros(0), torch.zeros(3))
    with pytest.raises(UserError, match="pass_rate"):
        false_pass_rate(torch.zeros(3), torch.zeros(3), 0.0)
    with pytest.raises(UserError, match="together"):
        detect_foreign(torch.full((2, 2), 0.5), torch.full((2, 2), 0.5), torch.full((2, 2, 2), 0.5))
    with pytest.raises(UserError, match="not normalised"):
        split_uncertainty(torch.ones(2, 3, 4))
    with pytest.raises(UserError, match="sureness"):
        risk_coverage(torch.full((3, 2), 0.5), torch.zeros(3, dtype=torch.int64), torch.zeros(2))
