"""Every rule learns kernels: bars that lie or stand, anywhere in a small picture."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from bayspike.learning import batch as loop
from bayspike.learning.batch import init_states, posteriors, train_batch
from bayspike.learning.fisher import diagonal_fisher
from bayspike.posteriors import draws
from bayspike.predict.predictors import Committee, Point
from bayspike.rules import BGD, EWC, MESU, SGD, SI, STE, TACOS, BernoulliVI, GaussianVI, Rule
from bayspike.rules.gaussian_draws import SampledWeights
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import NetworkConfig, build

F64 = torch.float64
TIME, SIDE = 8, 9
RULES: dict[str, Rule] = {
    "sgd": SGD(lr=0.05),
    "ste": STE(lr=0.2),
    "bayes": GaussianVI(),
    "bayes, synapse, two samples": GaussianVI(sampling="synapse", samples=2),
    "bayes, paper's units": GaussianVI(lr=3.0, temperature=1e-3, prior_precision=10.0, sampling="synapse"),
    "bayes, carried": GaussianVI(lr=3.0, temperature=1e-5, prior_precision=10.0, carry=100.0),
    "bayes, boundless": GaussianVI(remember=10_000.0),
    "bayes-binary": BernoulliVI(lr=1.0),
    "bayes-binary, neuron": BernoulliVI(lr=1.0, sampling="neuron"),
    "ewc": EWC(lr=0.05),
    "tacos": TACOS(lr=0.05),
    "tacos by traces": TACOS(lr=0.05, use_trace=True),
    "mesu": MESU(prior_std=0.3, samples=2),
    "bgd": BGD(prior_std=0.3, samples=2),
    "si": SI(lr=0.05),
}


class Bars:
    """Samples of lying (0) and standing (1) bars; both polarities, so two channels."""

    def __init__(self, count: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.labels = torch.arange(count) % 2
        places = torch.randint(1, SIDE - 1, (count,), generator=generator)
        pictures = torch.zeros(count, 2, SIDE, SIDE)
        for index, place in enumerate(places.tolist()):
            if self.labels[index]:
                pictures[index, :, :, place] = 0.8
            else:
                pictures[index, :, place, :] = 0.8
        self._rates = pictures.flatten(1)

    def __len__(self) -> int:
        return len(self.labels)

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        rates = self._rates[indices]
        return (torch.rand(TIME, *rates.shape, generator=generator) < rates).to(torch.uint8)


def config(rule: Rule, words: str = "6c3-2p-8c3-2p-12") -> NetworkConfig:
    return NetworkConfig(
        2 * SIDE**2, (), 2, binary=rule.binary, layers=words, shape=(2, SIDE, SIDE), threshold=0.2, readout_scale=8.0
    )


@pytest.mark.parametrize("name", RULES)
def test_every_rule_learns_kernels(name: str) -> None:
    rule, data, fresh = RULES[name], Bars(64, 0), Bars(64, 1)
    network, generator = build(config(rule)), torch.Generator().manual_seed(2)
    states = init_states(network, rule, generator)
    before = [posterior.mean().clone() for posterior in posteriors(rule, states)]
    for _ in range(12):
        for indices in torch.randperm(64, generator=generator).split(16):
            states, report = train_batch(
                network, rule, states, data.spikes(indices, generator), data.labels[indices], generator
            )
    fisher = [None] * len(states)
    if rule.needs_fisher:
        fisher = diagonal_fisher(network, [each.mean() for each in posteriors(rule, states)], data, generator)
    states = [rule.end_task(state, each) for state, each in zip(states, fisher, strict=True)]
    assert math.isfinite(float(report.loss))
    for layer, posterior, old in zip(network.layers, posteriors(rule, states), before, strict=True):
        assert tuple(posterior.mean().shape) == layer.shape
        assert torch.isfinite(posterior.mean()).all()
        assert not torch.equal(posterior.mean(), old)
    learnt = posteriors(rule, states)
    predictor = Point.of(network, learnt) if name in ("sgd", "ewc") else Committee.draw(
        network, learnt, 5, generator=generator
    )  # fmt: skip
    answers = predictor.predict(fresh.spikes(torch.arange(64), generator)).probabilities[-1].argmax(1)
    assert (answers == fresh.labels).double().mean() > 0.8


def test_a_step_of_the_gaussian_rule_is_its_equation(monkeypatch: pytest.MonkeyPatch) -> None:
    """p ← (1 − ηρ)p + η(mean g² + ρp₀), m ← m − η/p·(mean g + ρp₀(m − m₀)), with g the whole gradient of an example."""
    rule = GaussianVI(lr=2.0, temperature=0.1, prior_precision=5.0, sampling="synapse")
    network, data = build(config(rule, "3c3-4"), F64), Bars(6, 3)
    generator = torch.Generator().manual_seed(0)
    states = init_states(network, rule, generator)
    seen: list[tuple[LocalGradient, Tensor, Tensor]] = []
    original = GaussianVI.update

    def watched(self: GaussianVI, state: object, gradient: LocalGradient) -> object:
        kept = (gradient, state.mean.clone(), state.precision.clone())  # type: ignore[attr-defined]
        after = original(self, state, gradient)  # type: ignore[arg-type]
        if gradient.places > 1:
            each = torch.stack([_of_example(gradient, example) for example in range(6)])
            precision = 0.8 * kept[2] + 2.0 * (each.square().mean(0) + 0.1 * 5.0)
            mean = kept[1] - 2.0 / precision * (each.mean(0) + 0.1 * 5.0 * kept[1])
            torch.testing.assert_close(after.precision, precision)
            torch.testing.assert_close(after.mean, mean)
            seen.append(kept)
        return after

    monkeypatch.setattr(GaussianVI, "update", watched)
    train_batch(network, rule, states, data.spikes(torch.arange(6), generator), data.labels, generator)
    assert len(seen) == TIME
    assert sum(float(gradient.delta.abs().sum()) for gradient, _, _ in seen) > 0


def _of_example(gradient: LocalGradient, example: int) -> Tensor:
    rows = slice(example * gradient.places, (example + 1) * gradient.places)
    assert gradient.patches is not None
    return gradient.delta[rows].T @ gradient.patches(gradient.pre[example : example + 1])


def test_one_kernel_is_drawn_for_all_places_and_examples() -> None:
    rule = GaussianVI(lr=1.0, temperature=0.0, prior_precision=4.0, sampling="synapse")
    state = rule.init((3, 8), torch.Generator().manual_seed(0))
    drive = rule.drive(state, torch.Generator().manual_seed(1))
    assert isinstance(drive, SampledWeights)
    assert drive.matrices.shape == (1, 3, 8)
    rows = torch.ones(20, 8)
    assert torch.equal(drive(rows), drive(rows)[:1].expand(20, 3))


def test_potentials_have_the_moments_of_their_patches() -> None:
    """Drawn at the neurons every place has its own draw, of the mean and variance of its patch."""
    rule = GaussianVI(lr=1.0, temperature=0.0, prior_precision=4.0)
    layer = build(config(rule, "3c3s2-4"), F64).layers[0]
    state = rule.init(layer.shape, torch.Generator().manual_seed(0))
    mean, precision = state.mean.double(), 1 + torch.rand(layer.shape, dtype=F64)
    drive = rule.drive(state._replace(mean=mean, precision=precision), torch.Generator().manual_seed(1))
    traces = torch.rand(5, layer.traces, dtype=F64)
    rows = layer.gather(traces)
    noise = draws.normal((5, layer.neurons), traces, torch.Generator().manual_seed(1))
    spread = (rows.square() @ precision.reciprocal().T).sqrt().view(5, -1)
    expected = (rows @ mean.T).view(5, -1) + noise * spread
    torch.testing.assert_close(drive.of_maps(layer, traces), expected)  # type: ignore[attr-defined]


@pytest.mark.parametrize("samples", [1, 2])
def test_kernels_of_each_repetition_are_its_own(samples: int) -> None:
    rule = GaussianVI(lr=1.0, temperature=0.0, prior_precision=4.0, sampling="synapse", samples=samples)
    layer = build(config(rule, "3c3-4")).layers[0]
    drive = rule.drive(rule.init(layer.shape, torch.Generator().manual_seed(0)), torch.Generator().manual_seed(1))
    traces = torch.rand(4, layer.traces)
    by_rows = drive(layer.gather(traces)).view(4, -1)
    torch.testing.assert_close(drive.of_maps(layer, traces), by_rows)  # type: ignore[attr-defined]


def test_rooms_are_used_again_and_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rule, data = RULES["ewc"], Bars(16, 0)
    network = build(config(rule))
    results, with_rooms = [], loop.step
    for keep in (True, False):
        if not keep:
            monkeypatch.setattr(loop, "step", lambda *given: with_rooms(*given[:5]))
        generator = torch.Generator().manual_seed(2)
        states = init_states(network, rule, generator)
        spikes = data.spikes(torch.arange(16), generator)
        states, _ = train_batch(network, rule, states, spikes, data.labels, generator)
        results.append(states)
    for ours, theirs in zip(*results, strict=True):
        assert torch.equal(ours.weights, theirs.weights)


def most_held(trace: Path) -> int:
    """The most bytes that were allocated at a time, of the events that the profiler has written down."""
    events = [each for each in json.loads(trace.read_text())["traceEvents"] if each.get("name") == "[memory]"]
    held = most = 0
    for event in sorted(events, key=lambda each: each["args"]["Ev Idx"]):
        held += event["args"]["Bytes"]
        most = max(most, held)
    return most


@pytest.mark.parametrize("name", ["bayes", "bayes-binary, neuron", "ewc"])
def test_memory_does_not_grow_with_time(name: str, tmp_path: Path) -> None:
    """Four times as many steps take room for their answers, a number for every class, and for nothing else."""
    rule, batch, most = RULES[name], 8, []
    network, times = build(config(rule)), (4, 16)
    for time in times:
        generator = torch.Generator().manual_seed(0)
        spikes = (torch.rand(time, batch, 2 * SIDE**2, generator=generator) < 0.3).to(torch.uint8)
        labels = torch.arange(batch) % 2
        states, _ = train_batch(network, rule, init_states(network, rule, generator), spikes[:2], labels, generator)
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
            train_batch(network, rule, states, spikes, labels, generator)
        watched.export_chrome_trace(str(tmp_path / "trace.json"))
        most.append(most_held(tmp_path / "trace.json"))
    more = times[1] - times[0]
    assert most[0] > 4 * batch * network.layers[0].neurons  # what one step needs is seen
    assert 0 <= most[1] - most[0] <= 2 * 4 * more * batch * network.classes
    assert 2 * network.classes < network.layers[0].neurons / 10  # spikes kept over time would be far more
