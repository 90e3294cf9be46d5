"""Scores of every predictor on every task, against the measures taken by hand."""

import math

import pytest
import torch
from small_tasks import RULES, small_network, small_stream

from bayspike.continual import judge_with, score
from bayspike.learning.batch import init_states, posteriors
from bayspike.rules import GaussianVI
from bayspike.seeds import generator_for
from bayspike.spiking.network import unroll


def test_scores_by_hand() -> None:
    found = score(torch.tensor([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]]), torch.tensor([0, 0, 1]))
    assert found.accuracy == pytest.approx(1 / 3)
    assert found.confidence == pytest.approx((0.9 + 0.6 + 0.8) / 3)
    assert found.nll == pytest.approx(-(math.log(0.9) + math.log(0.4) + math.log(0.2)) / 3)
    assert found.brier == pytest.approx((2 * 0.1**2 + 2 * 0.6**2 + 2 * 0.8**2) / 3)
    assert found.ece == pytest.approx((abs(0.9 - 1) + 0.6 + 0.8) / 3)
    assert found.examples == 3


def test_a_point_is_judged_by_its_average_over_time() -> None:
    rule, stream = RULES["sgd"], small_stream()
    network = small_network(rule)
    weights = [5 * torch.randn(layer.shape, generator=torch.Generator().manual_seed(2)) for layer in network.layers]
    states = [
        state._replace(weights=w)
        for state, w in zip(init_states(network, rule, torch.Generator()), weights, strict=True)
    ]
    tasks, overall = judge_with(network, ("point",))(posteriors(rule, states), stream.judges, 7)["point"]
    assert [each.examples for each in tasks] == [6, 6]
    assert overall.examples == 12
    assert overall.accuracy == pytest.approx((tasks[0].accuracy + tasks[1].accuracy) / 2)
    for number, (task, found) in enumerate(zip(stream.judges, tasks, strict=True)):
        spikes = task.test.spikes(torch.arange(6), generator_for(7, "encode", number))
        out = unroll(network, spikes.float(), weights)[-1][len(network.layers) :]  # after the delay of its layers
        probabilities = (out @ network.layers[-1].readout.T).softmax(-1).mean(0)
        assert found.accuracy == pytest.approx(float((probabilities.argmax(1) == task.test.labels).float().mean()))
        assert found.confidence == pytest.approx(float(probabilities.amax(1).mean()), rel=1e-5)


def test_without_doubt_all_predictors_agree_and_with_doubt_they_differ() -> None:
    stream = small_stream()
    for precision, alike in ((1e12, True), (0.1, False)):
        rule = GaussianVI(prior_precision=precision, init_scale=6.0)
        network = small_network(rule)
        states = init_states(network, rule, torch.Generator().manual_seed(1))
        verdicts = judge_with(network, ("point", "committee", "ensemble"), members=3)(
            posteriors(rule, states), stream.judges, 0
        )
        assert list(verdicts) == ["point", "committee", "ensemble"]
        losses = [overall.nll for _, overall in verdicts.values()]
        assert (max(losses) - min(losses) < 1e-4) is alike
