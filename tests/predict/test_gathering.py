"""Gathering against recurrences written out by hand, and streams against whole signals."""

import math

import pytest
import torch

from bayspike.errors import UserError
from bayspike.posteriors.distributions import Gaussian
from bayspike.predict.by_name import make_predictor
from bayspike.predict.gathering import GATHERS, Gathering, gathered
from bayspike.predict.predictors import Committee, Point
from bayspike.spiking.network import NetworkConfig, build

STEPS = [[0.7, 0.2, 0.1], [1 / 3, 1 / 3, 1 / 3], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0]]


def by_hand(how):
    """One signal of four steps over three classes, in plain Python."""
    answers = []
    for count in range(1, len(STEPS) + 1):
        seen = STEPS[:count]
        if how == "mean":
            answers.append([sum(p[k] for p in seen) / count for k in range(3)])
        elif how == "weighted":
            weights = [1 + sum(q * math.log(q) for q in p if q > 0) / math.log(3) for p in seen]
            total = sum(weights) + 1e-6
            answers.append(
                [(sum(w * p[k] for w, p in zip(weights, seen, strict=True)) + 1e-6 / 3) / total for k in range(3)]
            )
        else:
            logs = [sum(math.log(max(p[k], 1e-9)) for p in seen) / count for k in range(3)]
            most = sum(math.exp(each) for each in logs)
            answers.append([math.exp(each) / most for each in logs])
    return torch.tensor(answers, dtype=torch.float64)


@pytest.mark.parametrize("how", GATHERS)
def test_agrees_with_the_recurrence_written_out(how):
    said = torch.tensor(STEPS, dtype=torch.float64).view(1, 4, 1, 3)
    assert torch.allclose(gathered(how, said)[0, :, 0], by_hand(how), atol=1e-9)
    stream = Gathering(how, said[:, 0])
    for step, expected in zip(said.unbind(1), by_hand(how), strict=True):
        stream.add(step)
        assert torch.allclose(stream.answer()[0, 0], expected, atol=1e-9)


@pytest.mark.parametrize("how", GATHERS)
def test_silence_of_many_steps_is_that_many_silent_steps(how):
    said = torch.tensor(STEPS[0]).view(1, 1, 3)
    silent = torch.full_like(said, 1 / 3)
    at_once, one_by_one = Gathering(how, said), Gathering(how, said)
    for stream in (at_once, one_by_one):
        stream.add(said)
    at_once.add(silent, 1000)
    for _ in range(1000):
        one_by_one.add(silent)
    assert torch.allclose(at_once.answer(), one_by_one.answer(), atol=1e-6)


def test_silent_steps_do_not_dilute_a_weighted_answer():
    said = torch.tensor([[0.9, 0.1]] + [[0.5, 0.5]] * 9).view(1, 10, 1, 2)
    assert float(gathered("weighted", said)[0, -1, 0, 0]) == pytest.approx(0.9, abs=1e-5)
    assert float(gathered("mean", said)[0, -1, 0, 0]) == pytest.approx(0.54, abs=1e-6)
    assert torch.equal(gathered("weighted", torch.full((1, 3, 1, 2), 0.5)), torch.full((1, 3, 1, 2), 0.5))


@pytest.mark.parametrize("how", GATHERS)
@pytest.mark.parametrize("kind", ["committee", "ensemble", "point", "mean", "committee-8bit"])
def test_a_stream_says_what_the_whole_signal_says(how, kind):
    torch.manual_seed(0)
    network = build(NetworkConfig(20, (16, 12), 3, readout_scale=8.0))
    learnt = [Gaussian(torch.randn(layer.shape) * 0.4, torch.full(layer.shape, 40.0)) for layer in network.layers]
    spikes = (torch.rand(15, 6, 20) < 0.3).to(torch.uint8)
    spikes[6:12] = 0
    predictor = make_predictor(kind, network, learnt, 4, torch.Generator().manual_seed(1), how)
    if kind == "ensemble":
        assert predictor.predict(spikes, torch.Generator()).probabilities.sum(-1).allclose(torch.ones(15, 6))
        return  # whose stream draws other weights
    whole = predictor.predict(spikes, keep_members="all")
    watch = predictor.open(6)
    for step, (now, expected) in enumerate(zip(spikes, whole.probabilities, strict=True)):
        decision = watch.push(now)
        assert torch.allclose(decision.probabilities, expected, atol=1e-6)
        assert torch.allclose(watch.members, whole.members[:, step], atol=1e-6)
    final = predictor.predict(spikes)
    assert torch.allclose(final.members, whole.members[:, -1], atol=1e-6)


def test_members_gather_each_for_itself():
    network = build(NetworkConfig(10, (8,), 3, readout_scale=8.0))
    weights = torch.randn(3, 8, 10, generator=torch.Generator().manual_seed(2))
    spikes = (torch.rand(9, 4, 10) < 0.5).to(torch.uint8)
    alone = [Point(network, [each], "logits").predict(spikes).probabilities for each in weights]
    together = Committee(network, [weights], "logits").predict(spikes).probabilities
    assert torch.allclose(together, torch.stack(alone).mean(0), atol=1e-6)


def test_an_unknown_way_is_refused():
    with pytest.raises(UserError, match="gather must be one of mean, weighted, logits, but is 'loud'"):
        Point(build(NetworkConfig(4, (3,), 2)), [torch.zeros(3, 4)], "loud")
