"""MESU, BGD and SI against their own equations, one weight at a time."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.learning.batch import init_states, train_batch
from bayspike.rules import BGD, MESU, SI, STE, Metaplastic
from bayspike.rules.base import Pace, Rule
from bayspike.rules.metaplastic import MetaplasticState
from bayspike.rules.reparametrised import DeviationState, DrawnWeights
from bayspike.rules.si import SIState
from bayspike.rules.ste import STEState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import NetworkConfig, Weights, build

F64 = torch.float64
SHAPE = (3, 2)


def some(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def drawn(samples: int, batch: int) -> tuple[DeviationState, LocalGradient, list[np.ndarray], np.ndarray]:
    """A state, a gradient at weights drawn from it, every draw's mean gradient, and the draws' noise."""
    state = DeviationState(some(1, *SHAPE), 0.2 + 0.1 * some(2, *SHAPE).abs())
    noise = some(3, samples, *SHAPE)
    drive = DrawnWeights(state.mean + state.std * noise, noise)
    delta, pre = some(4, samples * batch, 3), some(5, samples * batch, 2)
    each = []
    for k in range(samples):
        rows = range(k * batch, (k + 1) * batch)
        each.append(sum(np.outer(delta[n].numpy(), pre[n].numpy()) for n in rows) / batch)
    return state, LocalGradient(delta, pre, drive, pre, delta), each, noise.numpy()


@pytest.mark.parametrize("samples", [1, 3])
def test_mesu_is_its_authors_equations(samples: int) -> None:
    state, gradient, each, noise = drawn(samples, 4)
    mu, sigma = state.mean.numpy().copy(), state.std.numpy().copy()
    by_mu = sum(each) / samples
    by_sigma = sum(g * eps for g, eps in zip(each, noise, strict=True)) / samples
    n, sigma0, weight = 50.0, 0.3, 4 / 10
    expected_mu = mu - weight * (sigma**2 * by_mu - sigma**2 * (0 - mu) / (n * sigma0**2))
    expected_sigma = sigma + weight * (
        -0.5 * sigma**2 * by_sigma + sigma * (sigma0**2 - sigma**2) / (2 * n * sigma0**2)
    )
    after = MESU(remember=n, prior_std=sigma0, samples=samples).at(Pace(4, 10)).update(state, gradient)
    np.testing.assert_allclose(after.mean, expected_mu, rtol=1e-12)
    np.testing.assert_allclose(after.std, expected_sigma, rtol=1e-12)
    np.testing.assert_allclose(MESU().posterior(after).precision, expected_sigma**-2, rtol=1e-10)


def test_mesu_draws_what_it_says() -> None:
    state = DeviationState(some(1, *SHAPE), 0.2 + 0.1 * some(2, *SHAPE).abs())
    drive = MESU(samples=5).drive(state, torch.Generator().manual_seed(0))
    torch.testing.assert_close(drive.matrices, state.mean + state.std * drive.noise)


@pytest.mark.parametrize("samples", [1, 3])
def test_bgd_is_its_authors_equations(samples: int) -> None:
    state, gradient, each, noise = drawn(samples, 4)
    mu, sigma = state.mean.numpy().copy(), state.std.numpy().copy()
    weight, eta = 4 / 10, 0.7
    by_mu = weight * sum(each) / samples
    by_sigma = weight * sum(g * eps for g, eps in zip(each, noise, strict=True)) / samples
    after = BGD(lr=eta, samples=samples).at(Pace(4, 10)).update(state, gradient)
    np.testing.assert_allclose(after.mean, mu - eta * sigma**2 * by_mu, rtol=1e-12)
    expected = sigma * np.sqrt(1 + (0.5 * sigma * by_sigma) ** 2) - 0.5 * sigma**2 * by_sigma
    np.testing.assert_allclose(after.std, expected, rtol=1e-10)


def test_deviations_stay_positive() -> None:
    for rule in (MESU(lr=1e6), BGD(weight=1e6)):
        state, gradient, _, _ = drawn(1, 4)
        assert bool((rule.update(state, gradient).std > 0).all())


def test_si_gathers_and_holds_as_written() -> None:
    """Two tasks of three steps, with every weight's path summed by hand."""
    rule, xi = SI(lr=0.3, strength=0.7, damping=0.05), 0.05
    state = SIState(some(1, *SHAPE), torch.zeros(SHAPE, dtype=F64), torch.zeros(SHAPE, dtype=F64), some(1, *SHAPE))
    w = some(1, *SHAPE).numpy().copy()
    start, anchor, importance = w.copy(), w.copy(), np.zeros(SHAPE)
    for task in range(2):
        omega = np.zeros(SHAPE)
        for t in range(3):
            delta, pre = some(10 + 3 * task + t, 4, 3), some(20 + 3 * task + t, 4, 2)
            g = sum(np.outer(delta[n].numpy(), pre[n].numpy()) for n in range(4)) / 4
            before = w.copy()
            pull = 2 * 0.3 * 0.7 * importance
            w = (w - 0.3 * g + pull * anchor) / (1 + pull)
            omega += -g * (w - before)
            gradient = LocalGradient(delta, pre, Weights(state.weights), pre, delta)
            state = rule.update(state, gradient)
            np.testing.assert_allclose(state.weights, w, rtol=1e-12)
        importance = importance + np.maximum(omega, 0) / ((w - start) ** 2 + xi)
        start, anchor = w.copy(), w.copy()
        state = rule.end_task(state)
        np.testing.assert_allclose(state.importance, importance, rtol=1e-10)
    assert float(state.importance.max()) > 0


def test_metaplastic_weights_resist_only_the_way_back() -> None:
    """Four steps by hand, entry by entry; without metaplasticity it is the straight-through estimator."""
    hidden = some(1, *SHAPE)
    state, h = MetaplasticState(hidden.clone()), hidden.numpy().copy()
    plain, straight = MetaplasticState(hidden.clone()), STEState(hidden.clone())
    felt = 0
    for t in range(4):
        delta, pre = some(10 + t, 4, 3), some(20 + t, 4, 2)
        g = sum(np.outer(delta[n].numpy(), pre[n].numpy()) for n in range(4)) / 4
        for i, j in np.ndindex(h.shape):
            back = g[i, j] * h[i, j] > 0
            felt += back
            h[i, j] -= 0.3 * g[i, j] * (1 / math.cosh(1.7 * h[i, j]) ** 2 if back else 1.0)
        gradient = LocalGradient(delta, pre, Weights(state.hidden), pre, delta)
        state = Metaplastic(lr=0.3, metaplasticity=1.7).update(state, gradient)
        np.testing.assert_allclose(state.hidden, h, rtol=1e-12)
        plain = Metaplastic(lr=0.3, metaplasticity=0.0).update(plain, gradient)
        straight = STE(lr=0.3).update(straight, gradient)
        torch.testing.assert_close(plain.hidden, straight.latent)
    assert 0 < felt < 4 * h.size


@pytest.mark.parametrize("rule", [MESU(prior_std=0.2), BGD(prior_std=0.2), SI(lr=0.5)], ids=["mesu", "bgd", "si"])
def test_rivals_learn_to_tell_two_classes(rule: Rule) -> None:
    network = build(NetworkConfig(20, (30,), 2, synapse_decay=0.0, membrane_decay=0.5, readout_scale=8.0))
    labels = torch.arange(32) % 2
    busy = (torch.arange(20) < 10)[None] == (labels == 0)[:, None]
    generator = torch.Generator().manual_seed(0)
    states, losses = init_states(network, rule, generator), []
    for _ in range(40):
        spikes = (torch.rand(15, 32, 20, generator=generator) < torch.where(busy, 0.6, 0.05)).to(torch.uint8)
        states, report = train_batch(network, rule, states, spikes, labels, generator)
        losses.append(float(report.loss))
    assert sum(losses[-5:]) / 5 < 0.6 * math.log(2), losses[::8]
    assert float(report.accuracy) > 0.9


def test_rules_that_count_examples_must_know_how_many() -> None:
    state, gradient, _, _ = drawn(1, 4)
    with pytest.raises(UserError, match="must know its pace"):
        MESU().update(state, gradient)
    with pytest.raises(UserError, match="must know its pace"):
        BGD().update(state, gradient)
