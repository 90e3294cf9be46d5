"""Calibration from held-out examples, against thresholds and temperatures found another way."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

from bayspike.data.base import StaticSamples
from bayspike.errors import UserError
from bayspike.predict.calibration import check_promise, even_checkpoints, fit, fit_sets, halves, judge_sets
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.spiking.network import NetworkConfig, build


def simulated(n: int, time: int, generator: torch.Generator, classes: int = 5) -> tuple[Tensor, Tensor]:
    """An over-confident predictor that gets better with time."""
    labels = torch.randint(classes, (n,), generator=generator)
    steps = torch.randn(time, n, classes, generator=generator, dtype=torch.float64)
    steps[:, torch.arange(n), labels] += 0.8
    return (2 * steps.cumsum(0) / torch.arange(1, time + 1).sqrt().view(-1, 1, 1)).softmax(-1), labels


def small() -> tuple[Committee, StaticSamples]:
    generator = torch.Generator().manual_seed(0)
    network = build(NetworkConfig(inputs=12, hidden=(10,), classes=3))
    weights = [0.5 * torch.randn(4, *layer.shape, generator=generator) for layer in network.layers]
    values = torch.randint(0, 256, (60, 12), dtype=torch.uint8, generator=generator)
    labels = torch.randint(3, (60,), generator=generator)
    return Committee(network, weights), StaticSamples(values, labels, 12)


def test_sets_are_those_of_the_definition_in_numpy() -> None:
    generator = torch.Generator().manual_seed(1)
    probabilities, labels = simulated(200, 9, generator)
    checkpoints, promise = (3, 6, 9), 0.9
    rule = fit_sets(probabilities, labels, checkpoints, promise)
    p, y = probabilities.numpy(), labels.numpy()
    rank = math.ceil(201 * (1 - 0.1 / 3))
    for row, t in enumerate(checkpoints):
        strangeness = np.sort(1 - p[t - 1, np.arange(200), y])
        assert rule.thresholds[row].tolist() == [strangeness[rank - 1]] * 5
    fresh, _ = simulated(50, 9, generator)
    expected = np.ones((50, 5), dtype=bool)
    live = torch.ones(50, 5, dtype=torch.bool)
    for t in range(1, 10):
        if t in checkpoints:
            expected &= 1 - fresh[t - 1].numpy() <= rule.thresholds[checkpoints.index(t), 0].item()
        live = rule.narrow(live, fresh[t - 1], t)
        assert np.array_equal(live.numpy(), expected)
    assert np.array_equal(rule.sets(fresh)[-1].numpy(), expected)


def test_the_promise_holds_on_exchangeable_data_whenever_one_stops() -> None:
    generator = torch.Generator().manual_seed(2)
    coverages, sizes, stops = [], [], []
    for _ in range(60):
        probabilities, labels = simulated(400, 20, generator)
        calibrating, judging = halves(labels, generator)
        checkpoints = even_checkpoints(20, 0.8, len(calibrating))
        rule = fit_sets(probabilities[:, calibrating], labels[calibrating], checkpoints, 0.8)
        found = judge_sets(rule, probabilities[:, judging], labels[judging])
        coverages.append(found.coverage)
        sizes.append(found.size)
        stops.append(found.stopped_at)
    assert np.mean(coverages) >= 0.8
    assert np.mean(sizes) < 2  # of five classes: the promise is not bought with everything
    assert np.mean(stops) < 18


def test_scores_of_sets_by_hand() -> None:
    probabilities, labels = simulated(100, 4, torch.Generator().manual_seed(3))
    rule = fit_sets(probabilities, labels, (2, 4), 0.9)
    found = judge_sets(rule, probabilities, labels)
    sets = rule.sets(probabilities).numpy()
    first = [0 if sets[0, i].sum() <= 1 else 1 for i in range(100)]
    given = np.stack([sets[stop, i] for i, stop in enumerate(first)])
    assert found.coverage == pytest.approx(given[np.arange(100), labels.numpy()].mean())
    assert found.size == pytest.approx(given.sum(-1).mean())
    assert found.single == pytest.approx((given.sum(-1) == 1).mean())
    assert found.stopped_at == pytest.approx(np.mean([(2, 4)[stop] for stop in first]))
    assert found.checkpoints == 2


def test_halves_are_disjoint_whole_and_even_in_every_class() -> None:
    labels = torch.tensor([0] * 31 + [1] * 8 + [2] * 4)
    a, b = halves(labels, torch.Generator().manual_seed(0))
    assert sorted([*a.tolist(), *b.tolist()]) == list(range(43))
    for label in range(3):
        assert abs(int((labels[a] == label).sum()) - int((labels[b] == label).sum())) <= 1
    again, _ = halves(labels, torch.Generator().manual_seed(0))
    other, _ = halves(labels, torch.Generator().manual_seed(1))
    assert torch.equal(a, again)
    assert not torch.equal(a, other)


def test_checkpoints_are_even_and_no_more_than_the_examples_allow() -> None:
    assert even_checkpoints(50, 0.9, 500) == (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)
    assert even_checkpoints(50, 0.9, 500, first=6) == (10, 15, 20, 25, 30, 35, 40, 45, 50)
    assert even_checkpoints(4, 0.9, 500) == (1, 2, 3, 4)
    assert even_checkpoints(50, 0.9, 30) == (17, 34, 50)  # 31 · 0.1 = 3.1
    assert even_checkpoints(50, 0.9, 9) == (50,)
    assert even_checkpoints(2, 0.9, 9, first=3) == (2,)
    for promise, examples, checkpoints in ((0.9, 99, 10), (0.95, 19, 1), (0.8, 24, 5)):
        check_promise(promise, examples, checkpoints)  # the fewest there may be
        with pytest.raises(UserError, match=f"at least {examples}"):
            check_promise(promise, examples - 1, checkpoints)


def test_fit_agrees_with_its_parts() -> None:
    committee, samples = small()
    fitted = fit(
        committee, samples, torch.Generator().manual_seed(5),
        temperature=True, promise=0.8, checkpoints=(6, 12), false_alarm=0.1,
    )  # fmt: skip
    done = predict_samples(committee, samples, torch.Generator().manual_seed(5), keep_members="all")
    assert fitted.examples == 60
    p, y = done.probabilities.double().numpy(), samples.labels.numpy()
    logs = np.log(p[-1])

    def loss(log_t: float) -> float:
        scaled = logs / math.exp(log_t)
        return float((np.log(np.exp(scaled).sum(-1)) - scaled[np.arange(60), y]).mean())

    def improbable(log_t: float) -> float:  # with the prior of T
        return 60 * loss(log_t) + 0.5 * (log_t / math.log(2)) ** 2

    bounds = (math.log(0.01), math.log(100))
    best = minimize_scalar(improbable, bounds=bounds, method="bounded", options={"xatol": 1e-9})
    assert fitted.temperature is not None
    assert fitted.temperature.nll_after == pytest.approx(loss(best.x), abs=1e-6)
    assert len(fitted.temperature.steps) == len(p)
    assert fitted.sets is not None
    rank = math.ceil(61 * 0.9)
    assert fitted.sets.thresholds[:, 0].tolist() == [
        pytest.approx(np.sort(1 - p[t - 1, np.arange(60), y])[rank - 1]) for t in (6, 12)
    ]
    assert fitted.foreign is not None
    assert fitted.foreign.score == "mutual_information"
    members = done.members.double().numpy()
    entropy = -(p[-1] * np.log(p[-1])).sum(-1)
    within = -(members[:, -1] * np.log(members[:, -1])).sum(-1).mean(0)
    assert float(fitted.foreign.thresholds[-1]) == pytest.approx(np.sort(entropy - within)[math.ceil(61 * 0.9) - 1])
    nothing = fit(committee, samples, torch.Generator().manual_seed(5))
    assert (nothing.temperature, nothing.sets, nothing.foreign) == (None, None, None)


def test_a_single_network_is_foreign_by_entropy() -> None:
    committee, samples = small()
    one = Committee(committee.network, [matrix[:1] for matrix in committee.weights])
    fitted = fit(one, samples, torch.Generator().manual_seed(5), false_alarm=0.1)
    assert fitted.foreign is not None
    assert fitted.foreign.score == "entropy"


@pytest.mark.parametrize("promise", [0.0, 1.0, -0.1, 1.5, math.nan])
def test_nonsense_is_refused(promise: float) -> None:
    with pytest.raises(UserError, match="coverage must lie in"):
        check_promise(promise, 1000, 1)
    with pytest.raises(UserError, match="coverage must lie in"):
        even_checkpoints(10, promise, 1000)
