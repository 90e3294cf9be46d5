"""Setting silent inputs aside must change nothing but the time it takes."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch

import bayspike.learning.batch
from bayspike.learning.batch import init_states, train_batch
from bayspike.learning.silent import firing_inputs
from bayspike.rules import SGD, STE, BernoulliVI, GaussianVI, Rule
from bayspike.rules.bernoulli import BernoulliState
from bayspike.rules.gaussian import GaussianState
from bayspike.rules.sgd import SGDState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import NetworkConfig, build

F64 = torch.float64
GAUSSIAN = {"lr": 40.0, "prior_precision": 100.0, "temperature": 1e-3}
RULES = [
    SGD(),
    STE(),
    GaussianVI(**GAUSSIAN),
    GaussianVI(**GAUSSIAN, precision_lr=3.0),
    GaussianVI(**GAUSSIAN, samples=2),
    GaussianVI(**GAUSSIAN, flat=True),
    BernoulliVI(lr=0.5, temperature=0.05, sampling="neuron"),
]


def half_silent(inputs: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    spikes = torch.rand(9, 6, inputs, generator=torch.Generator().manual_seed(0)) < 0.5
    spikes[:, :, [0, 3, 4, 7, 11, 12, 13, 19]] = False
    return spikes.to(torch.uint8), torch.arange(6) % 2


def learn(rule: Rule, burn_in: int, recurrent: bool) -> Sequence[torch.Tensor]:
    """All parts of the states of two layers, after a task that makes prior and posterior differ and half of another."""
    network = build(NetworkConfig(20, (8, 5), 2, threshold=0.5137, recurrent=recurrent), F64)  # no ties
    spikes, labels = half_silent()
    generator = torch.Generator().manual_seed(1)
    states = init_states(network, rule, generator)
    states, _ = train_batch(network, rule, states, spikes, labels, generator)
    states = [rule.end_task(state) for state in states]
    states = [state._replace(**{state._fields[0]: state[0] + 0.1}) for state in states]
    states, report = train_batch(network, rule, states, spikes, labels, generator, burn_in)
    return [part for state in states for part in state if isinstance(part, torch.Tensor)] + [report.loss, report.rates]


@pytest.mark.parametrize("burn_in", [0, 3, 30])
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize(
    "rule", RULES, ids=lambda rule: f"{type(rule).__name__}-{rule.samples}{'-flat' * getattr(rule, 'flat', False)}"
)
def test_the_result_is_that_of_all_inputs(
    rule: Rule, recurrent: bool, burn_in: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = learn(rule, burn_in, recurrent)
    monkeypatch.setattr(bayspike.learning.batch, "firing_inputs", lambda spikes: None)
    plain = learn(rule, burn_in, recurrent)
    for ours, theirs in zip(quick, plain, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-11)


def test_silent_inputs_really_are_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, update = set(), SGD.update

    def spy(rule: SGD, state: SGDState, gradient: LocalGradient) -> SGDState:
        seen.add(gradient.pre.shape[1])
        return update(rule, state, gradient)

    monkeypatch.setattr(SGD, "update", spy)
    learn(SGD(), 0, False)
    assert seen == {13, 8}  # 12 that fire and the one that is always kept; the second layer's 8


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_gaussian_rest_is_so_many_updates_without_gradient(steps: int) -> None:
    values = torch.Generator().manual_seed(0)
    m, m0 = (torch.randn(3, 4, generator=values, dtype=F64) for _ in range(2))
    p, p0 = (0.1 + torch.rand(3, 4, generator=values, dtype=F64) for _ in range(2))
    for precision_lr in (None, 0.5):
        eta, eta_p, rho = 2.0, 2.0 if precision_lr is None else precision_lr, 0.2
        mean, precision = m.numpy().copy(), p.numpy().copy()
        for _ in range(steps):  # eqs. bayes-update-*-ogn with gradients of nought
            precision = (1 - eta_p * rho) * precision + eta_p * rho * p0.numpy()
            mean = mean + eta / precision * rho * p0.numpy() * (m0.numpy() - mean)
        rule = GaussianVI(lr=eta, temperature=rho, precision_lr=precision_lr)
        rested = rule.rest(GaussianState(m.clone(), p.clone(), m0, p0), steps)
        np.testing.assert_allclose(rested.precision, precision, rtol=1e-12)
        np.testing.assert_allclose(rested.mean, mean, rtol=1e-11)


@pytest.mark.parametrize("steps", [0, 1, 7])
def test_bernoulli_rest_is_so_many_updates_without_gradient(steps: int) -> None:
    values = torch.Generator().manual_seed(0)
    logits, prior = (torch.randn(3, 4, generator=values, dtype=F64) for _ in range(2))
    expected = logits.numpy().copy()
    for _ in range(steps):
        expected = (1 - 0.5 * 0.2) * expected + 0.5 * 0.2 * prior.numpy()
    rested = BernoulliVI(lr=0.5, temperature=0.2).rest(BernoulliState(logits.clone(), prior), steps)
    np.testing.assert_allclose(rested.logits, expected, rtol=1e-12)


def test_which_inputs_fire() -> None:
    spikes = torch.zeros(4, 2, 6)
    spikes[1, 0, 2], spikes[3, 1, 4] = 1, -1  # events of either sign count
    assert firing_inputs(spikes).tolist() == [0, 2, 4]
    assert firing_inputs(torch.zeros(4, 2, 6, dtype=torch.uint8)).tolist() == [0]
    assert firing_inputs(torch.zeros(4, 2, 6, dtype=torch.bool)).tolist() == [0]
    assert firing_inputs(torch.ones(4, 2, 6)) is None


def test_a_batch_of_silence_moves_nothing_but_towards_the_prior() -> None:
    network, rule = build(NetworkConfig(20, (8,), 2), F64), GaussianVI(lr=10.0, temperature=0.05, prior_precision=50.0)
    states = init_states(network, rule, torch.Generator().manual_seed(1))
    start = states[0].mean.clone()
    silence = torch.zeros(9, 6, 20, dtype=torch.uint8)
    states, report = train_batch(network, rule, states, silence, torch.arange(6) % 2, torch.Generator())
    torch.testing.assert_close(states[0].mean, 0.5**9 * start)  # p is at p₀, so m halves at every step
    assert float(report.rates.max()) == 0
