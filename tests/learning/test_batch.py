"""Training on a mini-batch: against a loop over time written out in numpy, and what a caller may rely on."""

import sys

import numpy as np
import pytest
import torch

from bayspike.errors import UserError
from bayspike.learning.batch import init_states, posteriors, train_batch
from bayspike.posteriors.distributions import BinaryPoint, Gaussian
from bayspike.posteriors.grid import Grid
from bayspike.rules import SGD, STE, BernoulliVI, GaussianVI, Rule
from bayspike.spiking.local import local_gradient, one_hot_targets
from bayspike.spiking.network import NetworkConfig, build, step
from bayspike.spiking.neurons import Reset
from bayspike.spiking.surrogates import SURROGATES
from srm_reference import double_exponential

F32, F64 = torch.float32, torch.float64
RULES = [
    SGD(lr=0.2),
    SGD(lr=0.2, grid=Grid(1 / 32)),
    STE(lr=0.2),
    GaussianVI(lr=300.0, prior_precision=1000.0, temperature=1e-6),
    GaussianVI(lr=300.0, prior_precision=1000.0, temperature=1e-6, pull_every=10),
    GaussianVI(),
    GaussianVI(lr=300.0, prior_precision=1000.0, temperature=1e-6, sampling="synapse", samples=2),
    GaussianVI(lr=300.0, prior_precision=1000.0, temperature=1e-6, grid=Grid(1 / 32)),
    GaussianVI(lr=300.0, prior_precision=1000.0, temperature=1e-6, sampling="synapse", grid=Grid(1 / 32)),
    BernoulliVI(lr=1.0, temperature=1e-4),
    BernoulliVI(lr=1.0, temperature=1e-4, samples=2),
    BernoulliVI(lr=1.0, temperature=1e-4, sampling="neuron"),
]


def rule_name(rule: Rule) -> str:
    parts = [type(rule).__name__, getattr(rule, "sampling", ""), "8-bit" if getattr(rule, "grid", None) else ""]
    parts.append("rare pull" if (getattr(rule, "pull_every", None) or 1) > 1 else "")
    return " ".join(filter(None, [*parts, f"{rule.samples} samples" if rule.samples > 1 else ""]))


def two_classes(time: int = 20, batch: int = 16, inputs: int = 20, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """One half of the inputs is busy for one class, the other half for the other."""
    labels = torch.arange(batch) % 2
    busy = (torch.arange(inputs) < inputs // 2)[None] == (labels == 0)[:, None]
    chance = torch.where(busy, 0.6, 0.05)
    spikes = torch.rand(time, batch, inputs, generator=torch.Generator().manual_seed(seed)) < chance
    return spikes.to(torch.uint8), labels


def test_sgd_over_time_equals_the_loop_written_out() -> None:
    """Two layers, refractory reset, weights that change at every step; double precision, nothing shared."""
    config = NetworkConfig(5, (4, 3), 2, membrane_decay=0.8, reset="refractory", slope=2.0)
    network, (spikes, labels), lr = build(config, F64), two_classes(10, 6, 5), 0.5
    states = init_states(network, SGD(lr=lr), torch.Generator().manual_seed(1))
    for state in states:
        state.weights.mul_(4).add_(2)
    weights = [state.weights.numpy().copy() for state in states]
    states, report = train_batch(network, SGD(lr=lr), states, spikes, labels, torch.Generator(), burn_in=2)

    alpha, y = double_exponential(10, 0.5, 0.8), np.eye(2)[labels]
    emitted: list[list[np.ndarray]] = [[], []]
    losses, votes = [], np.zeros((6, 2))
    for t in range(10):
        for k, layer in enumerate(network.layers):
            below = spikes.numpy().astype(float) if k == 0 else np.array(emitted[0])
            pre = sum((alpha[d - 1] * below[t - d] for d in range(1, t + 1)), np.zeros((6, weights[k].shape[1])))
            past = sum((0.7 ** (d - 1) * emitted[k][t - d] for d in range(1, t + 1)), np.zeros((6, len(weights[k]))))
            u = pre @ weights[k].T - past
            emitted[k].append((u > 1).astype(float))
            logits = emitted[k][t] @ layer.readout.numpy().T
            p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
            sigma = 1 / (1 + np.exp(-2 * (u - 1)))
            delta = ((p - y) @ layer.readout.numpy()) * 2 * sigma * (1 - sigma)
            if t >= 2:
                weights[k] -= lr * np.mean([np.outer(a, b) for a, b in zip(delta, pre, strict=True)], axis=0)
        losses.append(-np.log((p * y).sum(1)).mean())
        votes += p
    for state, expected in zip(states, weights, strict=True):
        np.testing.assert_allclose(state.weights, expected, rtol=1e-9)
    assert float(report.loss) == pytest.approx(np.mean(losses))
    assert float(report.accuracy) == pytest.approx((votes.argmax(1) == labels.numpy()).mean())
    np.testing.assert_allclose(report.rates, [np.mean(layer) for layer in emitted])
    assert float(report.rates.min()) > 0.1  # both layers fire


@pytest.mark.parametrize("surrogate", SURROGATES)
@pytest.mark.parametrize("reset", ["refractory", "zero", "subtract"])
@pytest.mark.parametrize("recurrent", [False, True])
def test_memory_used_again_changes_no_bit(surrogate: str, reset: Reset, recurrent: bool) -> None:
    """Against the same loop with fresh memory at every step, of which nothing is ever written over."""
    spikes, labels = two_classes(time=12)
    network = build(NetworkConfig(20, (9, 7), 2, reset=reset, recurrent=recurrent, surrogate=surrogate, threshold=0.1))
    rule = GaussianVI(lr=30.0, prior_precision=30.0, init_scale=6.0, temperature=1e-6)
    targets = one_hot_targets(labels, 2, F32)
    states = init_states(network, rule, torch.Generator().manual_seed(0))
    expected = init_states(network, rule, torch.Generator().manual_seed(0))
    states, report = train_batch(network, rule, states, spikes, labels, torch.Generator().manual_seed(1))
    neurons, generator, fired = list(network.start(len(labels))), torch.Generator().manual_seed(1), 0.0
    for frame in spikes.float():
        arriving = frame
        for index, layer in enumerate(network.layers):
            drive = rule.drive(expected[index]._replace(scratch=None), generator)
            done = step(layer, neurons[index], arriving, drive)
            gradient, _ = local_gradient(layer, done, drive, arriving, targets)
            expected[index] = rule.update(expected[index], gradient)
            neurons[index], arriving = done.state, done.spikes
        fired += float(arriving.mean())
    assert 0 < fired / len(spikes) < 1
    assert float(report.rates[-1]) == pytest.approx(fired / len(spikes))
    for found, wanted in zip(states, expected, strict=True):
        assert torch.equal(found.mean, wanted.mean)
        assert torch.equal(found.precision, wanted.precision)


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_every_rule_learns_to_tell_two_classes(rule: Rule) -> None:
    network = build(NetworkConfig(20, (30,), 2, threshold=0.7, seed=3))
    generator = torch.Generator().manual_seed(0)
    states = init_states(network, rule, generator)
    reports = []
    for epoch in range(12):
        spikes, labels = two_classes(seed=epoch)
        states, report = train_batch(network, rule, states, spikes, labels, generator)
        reports.append(report)
    assert float(reports[-1].loss) < 0.7 * float(reports[0].loss)
    assert float(reports[-1].accuracy) > 0.9
    assert all(bool(torch.isfinite(part).all()) for part in states[0] if isinstance(part, torch.Tensor))


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_same_seed_same_bits(rule: Rule) -> None:
    network = build(NetworkConfig(20, (8, 6), 2, binary=rule.binary, recurrent=True))
    runs = []
    for _ in range(2):
        generator = torch.Generator().manual_seed(5)
        states = init_states(network, rule, generator)
        for seed in range(2):
            states, _ = train_batch(network, rule, states, *two_classes(time=6, seed=seed), generator)
        runs.append([part for state in states for part in state if isinstance(part, torch.Tensor)])
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


@pytest.mark.parametrize("rule", RULES, ids=rule_name)
def test_a_batch_of_one_example_works(rule: Rule) -> None:
    """The paper's on-chip case."""
    network = build(NetworkConfig(20, (8,), 2, binary=rule.binary))
    generator = torch.Generator().manual_seed(5)
    states = init_states(network, rule, generator)
    start = states[0][0].clone()
    spikes, labels = two_classes(batch=1)
    states, report = train_batch(network, rule, states, spikes, labels, generator)
    assert bool(torch.isfinite(states[0][0]).all())
    assert not torch.equal(states[0][0], start)
    assert float(report.accuracy) in (0.0, 1.0)


def test_a_batch_of_copies_teaches_what_the_example_alone_does() -> None:
    network = build(NetworkConfig(20, (8,), 2), F64)
    spikes, labels = two_classes(batch=1)
    learnt = []
    for copies in (1, 5):
        states = init_states(network, SGD(), torch.Generator().manual_seed(5))
        args = (spikes.repeat(1, copies, 1), labels.repeat(copies), torch.Generator())
        learnt.append(train_batch(network, SGD(), states, *args)[0][0].weights)
    torch.testing.assert_close(*learnt)


def test_nothing_is_learnt_while_burning_in() -> None:
    network = build(NetworkConfig(20, (8,), 2))
    states = init_states(network, SGD(), torch.Generator().manual_seed(5))
    start = states[0].weights.clone()
    spikes, labels = two_classes(time=6)
    states, report = train_batch(network, SGD(), states, spikes, labels, torch.Generator(), burn_in=6)
    assert torch.equal(states[0].weights, start)
    assert float(report.loss) > 0


def test_the_processor_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Flushing denormals is a switch of the thread; other code in it must not notice."""
    network = build(NetworkConfig(20, (8,), 2))
    half, inside, update = sys.float_info.min / 2, [], SGD.update
    assert half * 1.5 > 0
    monkeypatch.setattr(SGD, "update", lambda *given: (inside.append(half * 1.5), update(*given))[1])
    train_batch(network, SGD(), init_states(network, SGD(), torch.Generator()), *two_classes(), torch.Generator())
    assert set(inside) == {0.0}  # in training they are flushed
    assert half * 1.5 > 0


def test_states_have_the_dtype_of_the_network() -> None:
    network = build(NetworkConfig(4, (3,), 2), F64)
    for rule in (SGD(), GaussianVI(), BernoulliVI()):
        (state,) = init_states(network, rule, torch.Generator())  # type: ignore[arg-type]
        assert all(part.dtype == F64 for part in state if isinstance(part, torch.Tensor))


def test_posteriors_are_those_of_the_states() -> None:
    network = build(NetworkConfig(4, (3, 2), 2))
    bayes = GaussianVI()
    states = init_states(network, bayes, torch.Generator())
    first, second = posteriors(bayes, states)
    assert isinstance(first, Gaussian)
    assert first.centre is states[0].mean
    assert second.mean().shape == (2, 3)
    assert isinstance(posteriors(STE(), init_states(network, STE(), torch.Generator()))[0], BinaryPoint)


@pytest.mark.parametrize(
    ("spikes", "labels", "burn_in", "sentence"),
    [
        (torch.zeros(3, 2, 4), torch.tensor([0]), 0, "2 examples in spikes but 1 labels"),
        (torch.zeros(3, 2, 4), torch.tensor([0, 2]), 0, r"labels must lie in 0 … 1"),
        (torch.zeros(3, 2, 5), torch.tensor([0, 1]), 0, r"shape \(time, batch, 4\)"),
        (torch.zeros(3, 0, 4), torch.tensor([]), 0, "at least one time-step and one example"),
        (torch.zeros(3, 2, 4), torch.tensor([0, 1]), -1, r"burn_in must lie in \[0, inf\), but is -1"),
    ],
)
def test_bad_batches_are_refused(spikes: torch.Tensor, labels: torch.Tensor, burn_in: int, sentence: str) -> None:
    network = build(NetworkConfig(4, (3,), 2))
    states = init_states(network, SGD(), torch.Generator())
    with pytest.raises(UserError, match=sentence):
        train_batch(network, SGD(), states, spikes, labels, torch.Generator(), burn_in)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_learns_the_same_weights() -> None:
    network = build(NetworkConfig(20, (8, 6), 2, recurrent=True), F64)
    spikes, labels = two_classes()
    learnt = []
    for device in ("cpu", "cuda"):
        moved = network.to(device)
        states = init_states(moved, SGD(), torch.Generator().manual_seed(5))
        states, _ = train_batch(moved, SGD(), states, spikes, labels, torch.Generator(device))
        learnt.append(states[0].weights.cpu())
    torch.testing.assert_close(*learnt)
