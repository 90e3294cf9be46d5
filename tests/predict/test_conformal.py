"""Coverage of conformal sets: exact ranks by hand, the promise by simulation."""

import math

import pytest
import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.predict.conformal import calibrate, calibrate_early_stopping, conformal_threshold, coverage


def simulated(n: int, generator: torch.Generator, classes: int = 4, time: int = 1) -> tuple[Tensor, Tensor]:
    """A mis-calibrated predictor that gets better with time; class 0 is much harder than the others."""
    labels = torch.randint(classes, (n,), generator=generator)
    signal = torch.where(labels == 0, 0.3, 1.5)
    steps = torch.randn(time, n, classes, generator=generator, dtype=torch.float64)
    steps[:, torch.arange(n), labels] += signal
    evidence = steps.cumsum(0) / torch.arange(1, time + 1).sqrt().view(-1, 1, 1)
    return (3 * evidence).softmax(-1), labels


@pytest.mark.parametrize(
    ("n", "alpha", "rank"),
    [(9, 0.1, 9), (19, 0.1, 18), (99, 0.05, 95), (10, 0.1, 10), (999, 0.1, 900), (4, 0.5, 3)],
)
def test_threshold_is_the_promised_rank(n: int, alpha: float, rank: int) -> None:
    values = torch.randperm(n, generator=torch.Generator().manual_seed(n)).double() + 1
    assert conformal_threshold(values, alpha) == rank


def test_too_few_examples_promise_everything() -> None:
    assert conformal_threshold(torch.arange(8.0), 0.1) == math.inf
    fitted = calibrate(torch.tensor([[0.9, 0.1]]), torch.tensor([0]), 0.1)
    assert fitted.sets(torch.tensor([[1.0, 0.0]])).tolist() == [[True, True]]


def test_sets_by_hand() -> None:
    held_out = torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], dtype=torch.float64)
    fitted = calibrate(held_out, torch.tensor([0, 0, 0]), alpha=0.5)  # second smallest of 0.1, 0.2, 0.6
    assert fitted.thresholds.tolist() == pytest.approx([0.2, 0.2])
    new = torch.tensor([[0.8, 0.2], [0.79, 0.21], [0.05, 0.95]], dtype=torch.float64)
    assert fitted.sets(new).tolist() == [[True, False], [False, False], [False, True]]


def test_marginal_coverage_is_the_exact_expectation() -> None:
    """Over calibration draws the mean coverage is ceil((n+1)(1-alpha))/(n+1) for scores without ties."""
    generator = torch.Generator().manual_seed(1)
    n, alpha = 49, 0.2
    found = []
    for _ in range(600):
        probabilities, labels = simulated(n + 200, generator)
        fitted = calibrate(probabilities[0, :n], labels[:n], alpha)
        found.append(coverage(fitted.sets(probabilities[0, n:]), labels[n:]))
    mean = torch.stack(found).mean().item()
    assert mean == pytest.approx(40 / 50, abs=0.01)  # standard error about 0.0026


def test_class_conditional_coverage_holds_where_marginal_does_not() -> None:
    generator = torch.Generator().manual_seed(2)
    probabilities, labels = simulated(40_000, generator)
    half = 20_000
    hard = labels[half:] == 0
    marginal = calibrate(probabilities[0, :half], labels[:half], 0.1).sets(probabilities[0, half:])
    conditional = calibrate(probabilities[0, :half], labels[:half], 0.1, class_conditional=True)
    by_class = conditional.sets(probabilities[0, half:])
    assert coverage(marginal, labels[half:]).item() == pytest.approx(0.9, abs=0.01)
    assert coverage(marginal[hard], labels[half:][hard]).item() < 0.85
    for k in range(4):
        inside = labels[half:] == k
        assert coverage(by_class[inside], labels[half:][inside]).item() == pytest.approx(0.9, abs=0.02)


def test_early_stopping_keeps_its_promise_and_stops_early() -> None:
    generator = torch.Generator().manual_seed(3)
    checkpoints, alpha = (2, 5, 10, 20), 0.2
    found, naive, times = [], [], []
    for _ in range(150):
        probabilities, labels = simulated(300 + 300, generator, time=20)
        held_out, new = probabilities[:, :300], probabilities[:, 300:]
        rule = calibrate_early_stopping(held_out, labels[:300], checkpoints, alpha)
        decision = rule.decide(new)
        found.append(coverage(decision.sets, labels[300:]))
        times.append(decision.stopped_at.double().mean())
        # the same stopping rule with each checkpoint calibrated at alpha breaks the promise
        each = torch.stack([calibrate(held_out[t - 1], labels[:300], alpha).sets(new[t - 1]) for t in checkpoints])
        small = each.sum(-1) <= 1
        small[-1] = True
        naive.append(coverage(each[small.int().argmax(0), torch.arange(300)], labels[300:]))
    assert torch.stack(found).mean().item() >= 1 - alpha
    assert torch.stack(naive).mean().item() < 1 - alpha
    assert torch.stack(times).mean().item() < 15


def test_promise_holds_for_an_adversarial_stopping_rule() -> None:
    """Stop wherever the label is missing, if anywhere: the union bound must still cover it."""
    generator = torch.Generator().manual_seed(4)
    found = []
    for _ in range(150):
        probabilities, labels = simulated(600, generator, time=6)
        rule = calibrate_early_stopping(probabilities[:, :300], labels[:300], (1, 3, 6), 0.2)
        last = rule.sets(probabilities[:, 300:])[-1]  # the intersection of all three
        found.append(coverage(last, labels[300:]))
    assert torch.stack(found).mean().item() >= 0.8


def test_decisions_by_hand() -> None:
    held_out = torch.full((2, 3, 3), 0.1, dtype=torch.float64)
    held_out[..., 0] = 0.8
    rule = calibrate_early_stopping(held_out, torch.zeros(3, dtype=torch.int64), [1, 2], alpha=0.8)
    assert rule.thresholds.flatten().tolist() == pytest.approx([0.2] * 6)
    lenient = type(rule)((1, 2), torch.tensor([[0.7] * 3, [0.55] * 3], dtype=torch.float64), 0.8, False)
    first = torch.tensor([[0.4, 0.35, 0.25], [0.5, 0.3, 0.2], [0.9, 0.05, 0.05]], dtype=torch.float64)
    second = torch.tensor([[0.1, 0.45, 0.45], [0.5, 0.4, 0.1], [0.05, 0.9, 0.05]], dtype=torch.float64)
    decision = lenient.decide(torch.stack([first, second]))
    # the first had {0, 1} and then {1, 2}: their intersection; the second {0, 1}, then {0}; the third stopped at once
    assert decision.sets.int().tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert decision.stopped_at.tolist() == [2, 2, 1]


def test_bad_input_is_refused() -> None:
    good, labels = torch.full((5, 2), 0.5), torch.zeros(5, dtype=torch.int64)
    with pytest.raises(UserError, match="alpha"):
        calibrate(good, labels, alpha=0.0)
    with pytest.raises(UserError, match="shape"):
        calibrate(good.unsqueeze(0), labels)
    with pytest.raises(UserError, match="NaN"):
        calibrate(good * float("nan"), labels)
    with pytest.raises(UserError, match="2 classes"):
        calibrate(good, labels).sets(torch.full((1, 4), 0.25))
    with pytest.raises(UserError, match="rising"):
        calibrate_early_stopping(good.unsqueeze(0), labels, [2, 1])
    with pytest.raises(UserError, match="beyond"):
        calibrate_early_stopping(good.unsqueeze(0), labels, [1, 2])
    with pytest.raises(UserError, match="boolean"):
        coverage(good, labels)
