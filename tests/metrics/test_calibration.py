"""Calibration measures against hand computation, known values, torchmetrics and scikit-learn."""

from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.calibration import calibration_curve
from torch import Tensor

from bayspike.errors import UserError
from bayspike.metrics import (
    adaptive_ece,
    chance_ece,
    classwise_ece,
    confidence_histogram,
    ece,
    reliability_bins,
)


def two_classes(confidences: Tensor) -> Tensor:
    """Predictions of class 0 with the given confidences (from 1/2 up)."""
    return torch.stack([confidences, 1 - confidences], -1)


def random_predictions(n: int, classes: int, seed: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(n, classes, generator=generator, dtype=torch.float64)
    return logits.softmax(-1).to(dtype), torch.randint(classes, (n,), generator=generator)


def plain_ece(values: list[float], hits: list[float], bins: int) -> float:
    """The equation with exact fractions and a loop, nothing shared with the code under test."""
    total = 0.0
    for m in range(1, bins + 1):
        low, high = Fraction(m - 1, bins), Fraction(m, bins)
        inside = [i for i, value in enumerate(values) if low < Fraction(value) <= high or (m == 1 and value == 0.0)]
        if inside:
            conf = sum(values[i] for i in inside) / len(inside)
            acc = sum(hits[i] for i in inside) / len(inside)
            total += len(inside) * abs(conf - acc)
    return total / len(values)


def test_hand_computed_bins_and_ece() -> None:
    probabilities = two_classes(torch.tensor([0.55, 0.60, 0.75, 0.95, 1.00], dtype=torch.float64))
    labels = torch.tensor([0, 1, 0, 0, 1])
    bins = reliability_bins(probabilities, labels, bins=10)
    assert bins.counts.tolist() == [0, 0, 0, 0, 0, 2, 0, 1, 0, 2]  # 0.60 closes the sixth bin
    assert bins.confidence[5].item() == pytest.approx(0.575)
    assert bins.accuracy[5].item() == pytest.approx(0.5)
    assert bins.accuracy[9].item() == pytest.approx(0.5)
    assert bins.accuracy[0].isnan()
    # (2 * |0.575 - 0.5| + 1 * |0.75 - 1| + 2 * |0.975 - 0.5|) / 5
    assert ece(probabilities, labels, bins=10).item() == pytest.approx((0.15 + 0.25 + 0.95) / 5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bins", [1, 3, 7, 10, 15, 100])
def test_a_confidence_on_an_edge_closes_its_bin(bins: int, dtype: torch.dtype) -> None:
    for m in range(1, bins + 1):
        edge = torch.tensor([m / bins], dtype=dtype)
        rest = ((1 - edge) / bins).expand(bins)  # small enough for the edge to be the confidence
        counts = reliability_bins(torch.cat([edge, rest]).unsqueeze(0), torch.tensor([0]), bins).counts
        assert counts.sum() == 1
        assert counts.argmax() == m - 1


def test_neighbours_of_an_edge_fall_on_their_sides() -> None:
    edge = torch.tensor([0.7], dtype=torch.float32)
    above = torch.nextafter(edge, torch.ones(1))
    below = torch.nextafter(edge, torch.zeros(1))
    labels = torch.tensor([0])
    found = [int(reliability_bins(two_classes(value), labels, 10).counts.argmax()) for value in (below, edge, above)]
    assert found == [6, 6, 7]


def test_confidence_one_is_counted_and_zero_class_probability_too() -> None:
    sure = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert reliability_bins(sure, torch.tensor([0, 1]), 10).counts[-1] == 2
    # class 0 is predicted with certainty and right half of the time; so is class 1: both errors are 1/2
    assert classwise_ece(sure, torch.tensor([0, 1]), 10).item() == pytest.approx(0.5)


@given(seed=st.integers(0, 10_000), bins=st.integers(1, 20), n=st.integers(1, 40), classes=st.integers(2, 5))
@settings(max_examples=40, deadline=None)
def test_ece_and_classwise_ece_equal_the_plain_sums(seed: int, bins: int, n: int, classes: int) -> None:
    probabilities, labels = random_predictions(n, classes, seed)
    confidence, decided = probabilities.max(-1)
    expected = plain_ece(confidence.tolist(), (decided == labels).double().tolist(), bins)
    assert ece(probabilities, labels, bins).item() == pytest.approx(expected, abs=1e-12)
    by_class = [plain_ece(probabilities[:, k].tolist(), (labels == k).double().tolist(), bins) for k in range(classes)]
    assert classwise_ece(probabilities, labels, bins).item() == pytest.approx(sum(by_class) / classes, abs=1e-12)


def test_ece_agrees_with_torchmetrics_away_from_edges(torchmetrics: ModuleType) -> None:
    probabilities, labels = random_predictions(5000, 10, seed=3, dtype=torch.float32)
    theirs = torchmetrics.multiclass_calibration_error(probabilities, labels, num_classes=10, n_bins=15, norm="l1")
    assert ece(probabilities, labels, bins=15).item() == pytest.approx(theirs.item(), abs=1e-6)


def test_known_difference_to_torchmetrics_on_edges(torchmetrics: ModuleType) -> None:
    """torchmetrics closes its bins on the left: 0.75 joins (0.75, 1] there, [0.5, 0.75] here.

    Confidence 1.0 then has no bin of its own range there and gets an extra one, so that it never averages
    out with confidences just below it.
    """
    probabilities = two_classes(torch.tensor([0.75, 0.875, 0.625]))
    labels = torch.tensor([1, 0, 0])
    ours = ece(probabilities, labels, bins=4)
    theirs = torchmetrics.multiclass_calibration_error(probabilities, labels, num_classes=2, n_bins=4, norm="l1")
    # ours: {0.625 right, 0.75 wrong} and {0.875 right}; theirs: {0.625 right} and {0.75 wrong, 0.875 right}
    assert ours.item() == pytest.approx((abs(1.375 - 1) + abs(0.875 - 1)) / 3)
    assert theirs.item() == pytest.approx((abs(0.625 - 1) + abs(1.625 - 1)) / 3)
    ones = two_classes(torch.tensor([1.0, 0.9375]))
    labels = torch.tensor([1, 0])
    ours = ece(ones, labels, bins=4)
    theirs = torchmetrics.multiclass_calibration_error(ones, labels, num_classes=2, n_bins=4, norm="l1")
    assert ours.item() == pytest.approx(abs(1.9375 - 1) / 2)  # both in the last bin
    assert theirs.item() == pytest.approx((1.0 + 0.0625) / 2)  # 1.0 alone in a bin beyond the last


def test_bins_agree_with_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(5)
    p = torch.rand(4000, generator=generator, dtype=torch.float64)
    y = (torch.rand(4000, generator=generator, dtype=torch.float64) < p.square()).long()
    share, mean = calibration_curve(y.numpy(), p.numpy(), n_bins=10)
    counts = torch.histc(p, 10, 0, 1) / len(p)
    expected = float((counts * torch.tensor(abs(share - mean))).sum())
    rows = torch.stack([1 - p, p], -1)
    # for two classes both classes see the same gaps: class-wise ECE is the binary calibration error
    assert classwise_ece(rows, y, 10).item() == pytest.approx(expected, abs=1e-9)


def test_ece_of_a_calibrated_predictor_vanishes_and_of_an_overconfident_one_is_known() -> None:
    generator = torch.Generator().manual_seed(0)
    n = 400_000
    confidence = 0.5 + 0.5 * torch.rand(n, generator=generator, dtype=torch.float64)
    wrong = (torch.rand(n, generator=generator, dtype=torch.float64) > confidence).long()
    for measure in (ece, adaptive_ece, classwise_ece):
        assert measure(two_classes(confidence), wrong).item() < 0.006
        few = measure(two_classes(confidence[:100]), wrong[:100]).item()
        assert measure(two_classes(confidence), wrong).item() < few
    # right 70 % of the time whatever the confidence U(0.9, 1): the error is 0.95 - 0.7
    sure = two_classes(0.9 + 0.1 * torch.rand(n, generator=generator, dtype=torch.float64))
    wrong = (torch.rand(n, generator=generator) > 0.7).long()
    for measure in (ece, adaptive_ece):
        assert measure(sure, wrong).item() == pytest.approx(0.25, abs=0.004)


def test_adaptive_bins_hold_equally_many() -> None:
    confidence = torch.tensor([0.51, 0.52, 0.53, 0.90, 0.95, 0.99], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 0, 0, 0])
    # three bins of two: (1.03 - 2, 1.43 - 1, 1.94 - 2) / 6
    expected = (0.97 + 0.43 + 0.06) / 6
    assert adaptive_ece(two_classes(confidence), labels, bins=3).item() == pytest.approx(expected)
    shuffle = torch.tensor([3, 0, 5, 1, 4, 2])
    assert adaptive_ece(two_classes(confidence[shuffle]), labels[shuffle], bins=3).item() == pytest.approx(expected)


def test_adaptive_ties_share_a_bin() -> None:
    tied = two_classes(torch.full((6,), 0.75, dtype=torch.float64))
    for labels in (torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([1, 0, 1, 0, 1, 0])):
        assert adaptive_ece(tied, labels, bins=3).item() == pytest.approx(0.25)


def test_confidence_histogram_counts_everything() -> None:
    probabilities = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.6, 0.4], [0.39, 0.61]])
    edges, counts = confidence_histogram(probabilities, bins=10)
    assert edges.tolist() == pytest.approx([m / 10 for m in range(11)])
    assert counts.tolist() == [0, 0, 0, 0, 1, 1, 1, 0, 0, 1]


def test_leading_dimensions_are_time() -> None:
    first, labels = random_predictions(50, 4, seed=1)
    second, _ = random_predictions(50, 4, seed=2)
    both = torch.stack([first, second])
    for measure in (ece, adaptive_ece, classwise_ece):
        over_time = measure(both, labels)
        assert over_time.tolist() == pytest.approx([measure(first, labels).item(), measure(second, labels).item()])
    assert reliability_bins(both, labels).counts.shape == (2, 10)
    assert confidence_histogram(both)[1].sum(-1).tolist() == [50, 50]


@pytest.mark.parametrize(
    ("probabilities", "labels", "words"),
    [
        (torch.tensor([[0.5, float("nan")]]), torch.tensor([0]), "NaN"),
        (torch.tensor([[2.0, 1.0]]), torch.tensor([0]), "not normalised"),
        (torch.tensor([[1.5, -0.5]]), torch.tensor([0]), "not normalised"),
        (torch.tensor([[0.5, 0.5]]), torch.tensor([2]), "0..1"),
        (torch.tensor([[0.5, 0.5]]), torch.tensor([-1]), "0..1"),
        (torch.tensor([[0.5, 0.5]]), torch.tensor([0, 1]), "shape"),
        (torch.tensor([[0.5, 0.5]]), torch.tensor([0.0]), "integers"),
        (torch.tensor([0.5, 0.5]), torch.tensor([0]), "shape"),
        (torch.tensor([[1.0]]), torch.tensor([0]), "two classes"),
        (torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64), "no example"),
        (torch.tensor([[1, 0]]), torch.tensor([0]), "floating point"),
    ],
)
def test_bad_input_is_refused(probabilities: Tensor, labels: Tensor, words: str) -> None:
    for measure in (ece, adaptive_ece, classwise_ece, reliability_bins):
        with pytest.raises(UserError, match=words):
            measure(probabilities, labels)


def test_bad_number_of_bins_is_refused() -> None:
    with pytest.raises(UserError, match="bins"):
        ece(torch.tensor([[0.5, 0.5]]), torch.tensor([0]), bins=0)


def test_the_error_by_chance_is_that_of_a_fair_coin() -> None:
    """All confidences alike: the mean distance of a binomial share from its mean."""
    count, p = 50, 0.7
    probabilities = torch.tensor([[p, 1 - p]], dtype=torch.float64).expand(count, 2)
    shares = np.arange(count + 1) / count
    expected = float((binom.pmf(np.arange(count + 1), count, p) * abs(shares - p)).sum())
    assert chance_ece(probabilities, draws=4000) == pytest.approx(expected, rel=0.05)
    assert chance_ece(torch.tensor([[1.0, 0.0]] * 20)) == 0
    with pytest.raises(UserError, match="chance_ece takes"):
        chance_ece(torch.full((3, 4, 2), 0.5))
