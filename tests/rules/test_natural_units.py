"""Natural units and the carry: the algebra both ways, and the limits in which the answer is known."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from bayspike.continual import StreamConfig, run_stream, split_by_class
from bayspike.continual.replay import fetch, first_time, plan_task
from bayspike.data import load
from bayspike.errors import UserError
from bayspike.learning.batch import init_states, pace_of, train_batch
from bayspike.rules import EWC, BernoulliVI, GaussianVI
from bayspike.rules.base import Pace
from bayspike.rules.bernoulli import BernoulliState
from bayspike.rules.carry import carry_for
from bayspike.rules.ewc import EWCState
from bayspike.rules.gaussian import GaussianState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import NetworkConfig, Weights, build

F64 = torch.float64
SHAPE = (3, 2)


def some(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def hand_state() -> GaussianState:
    return GaussianState(some(1, *SHAPE), 3 + some(2, *SHAPE).abs(), some(3, *SHAPE), 1 + some(4, *SHAPE).abs())


def gradient_of(delta: Tensor, pre: Tensor, evidence: Tensor | None = None) -> LocalGradient:
    return LocalGradient(delta, pre, Weights(torch.zeros(SHAPE, dtype=F64)), pre, delta, evidence)


@pytest.mark.parametrize("batch", [16, 64, 256])
@pytest.mark.parametrize("steps", [20, 50])
@pytest.mark.parametrize("worth", [1.0, 4.0])
def test_units_turn_into_the_papers_rates(batch: int, steps: int, worth: float) -> None:
    rule = GaussianVI(remember=3e5, observations=worth, prior_std=0.2).at(Pace(batch, steps, 1000))
    assert rule.lr == pytest.approx(worth * batch / steps)
    assert rule.temperature == pytest.approx(1 / (worth * 3e5))
    assert rule.horizon == 1  # the prior is never replaced
    assert rule.first_precision(784) == pytest.approx(25)
    by_task = GaussianVI(observations=worth).at(Pace(batch, steps, 12_000))
    assert by_task.temperature == pytest.approx(1 / (worth * 12_000))
    assert by_task.horizon is None
    # over a task of N examples the prior is applied once: steps · ηρ = 1
    assert 12_000 / batch * steps * by_task.lr * by_task.temperature == pytest.approx(1)


def test_observations_are_those_of_the_filter() -> None:
    """Steps of traces with a membrane decay of m are worth T(1 − m)/(1 + m) independent ones, and never under one."""
    for decay, steps in ((0.5, 20), (0.8, 300), (0.0, 7)):
        network = build(NetworkConfig(5, (4,), 2, synapse_decay=0.0, membrane_decay=decay))
        expected = max(1.0, steps * (1 - decay) / (1 + decay))
        assert pace_of(network, 8, steps).observations == pytest.approx(expected, rel=1e-4)
    slow = build(NetworkConfig(5, (4,), 2, synapse_decay=0.0, membrane_decay=0.99))
    assert pace_of(slow, 8, 3).observations == pytest.approx(1, rel=0.01)


def test_the_carry_falls_with_what_is_stored() -> None:
    task = Pace(64, 20, 60_000, first=False, fresh=12_000)
    found = [carry_for(task._replace(stored=n)) for n in (0, 1, 12.3, 200, 450)]
    assert found[0] == pytest.approx(3000 / (1 + 6**-2.5))
    assert found[2] == pytest.approx(found[0] / 4)
    assert found == sorted(found, reverse=True)
    assert 1 <= found[-1] < 3  # nearly the paper's rule
    assert carry_for(task._replace(stored=12.3, share=0.03)) == pytest.approx(found[0] / 9)
    assert carry_for(task._replace(fresh=2000)) == pytest.approx(1500)  # a small task has taught less
    assert carry_for(task._replace(fresh=1000)) == pytest.approx(3000 / (1 + 2**2.5))
    assert carry_for(task._replace(fresh=math.inf)) == 3000
    assert carry_for(task._replace(examples=10**9)) == found[0]  # however often it is shown
    assert carry_for(task._replace(first=True)) == 1
    assert GaussianVI().at(task).carry == found[0]
    assert GaussianVI(carry=7.0).at(task).carry == 7
    assert GaussianVI(carry=7.0).at(task._replace(first=True)).carry == 1  # there is nothing to carry yet
    assert GaussianVI(remember=1e5).at(task).carry == 1  # without ends of tasks nothing is carried
    natural = BernoulliVI(lr=None, temperature=None)
    assert natural.at(task).carry == found[0]
    assert natural.at(task._replace(first=True)).carry == 1
    assert BernoulliVI().at(task).carry is None  # the paper's units: by the letter


def test_where_nothing_was_learnt_nothing_is_held() -> None:
    """A carry chosen by the rule pulls as the letter does while all precisions are the first prior's."""
    flat, taught = torch.full(SHAPE, 5.0, dtype=F64), 5 + 10 * some(4, *SHAPE).abs()
    for prior in (flat, taught):
        rule = GaussianVI(lr=2.0, temperature=0.01, carry=50.0, by_evidence=True, pull_every=5)
        state = GaussianState(some(1, *SHAPE), 3 + some(2, *SHAPE).abs(), some(3, *SHAPE), prior)
        m, p, m0, p0 = (part.numpy().copy() for part in state[:4])
        pulled = rule.pull_back(state, 5)
        p = p0 + (p - p0) * (1 - 0.02) ** 5
        learnt = 1 - p0.min() / p0.mean()
        a = 5 * 0.02 * (1 + 49 * learnt / (learnt + 0.05)) * p0 / p
        np.testing.assert_allclose(pulled.mean, (m + a * m0) / (1 + a), rtol=1e-12)


def test_evidence_of_a_crowd() -> None:
    """Four times as many neurons for one that counts: four times the evidence in the precision, the same step."""
    delta, pre = some(5, 4, 3), some(6, 4, 2)
    ends = []
    for crowd in (3.0, 0.75):
        rule = GaussianVI(lr=0.7, temperature=0.0, crowd=crowd)
        state = hand_state()
        before = state.precision.clone()
        ends.append(rule.update(state, gradient_of(delta, pre)).precision - before)
    torch.testing.assert_close(ends[1], 4 * ends[0])


def test_rates_of_the_paper_are_left_as_they_are() -> None:
    rule = GaussianVI(lr=3.0, temperature=0.1, pull_every=4)
    assert rule.at(Pace(64, 20, 100)) is rule
    assert GaussianVI(lr=3.0, temperature=0.1).at(Pace(64, 20, 100)).pull_every == 1


def test_written_in_the_papers_units_it_takes_the_same_steps() -> None:
    """η = 3·6/12, ρ = 1/(3·500) and a prior that is never replaced, by hand: the same bits, past ends of tasks too."""
    network = build(NetworkConfig(5, (4,), 2, threshold=0.3), F64)
    natural = GaussianVI(remember=500.0, observations=3.0, prior_precision=4.0)
    written = GaussianVI(lr=1.5, temperature=1 / 1500, horizon=1, prior_precision=4.0, crowd=200.0, pull_every=10)
    ends = []
    for rule in (natural, written):
        states = init_states(network, rule, torch.Generator().manual_seed(1))
        generator = torch.Generator().manual_seed(2)
        for number in range(3):
            spikes = (some(7 + number, 12, 6, 5) > 0).to(torch.uint8)
            states, _ = train_batch(network, rule, states, spikes, torch.arange(6) % 2, generator)
            states = [rule.end_task(state) for state in states]
        ends.append(states[0])
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(ends[0][:4], ends[1][:4], strict=True))
    assert bool((ends[0].precision > 4).all())


def test_one_step_is_the_equation_of_the_units() -> None:
    """p ← p + (|B|/T)·mean(g²) − (|B|/(N·T))(p − p₀), m ← m − (1/p)(|B|/T)[mean(g) + (p₀/N)(m − m₀)], by hand."""
    batch, steps, memory = 4, 10, 500.0
    state, delta, pre = hand_state(), some(5, batch, 3), some(6, batch, 2)
    m, p, m0, p0 = (part.numpy().copy() for part in state[:4])
    g = delta.numpy()[:, :, None] * pre.numpy()[:, None, :]
    weight = batch / steps
    p = p + weight * (g**2).mean(0) - weight / memory * (p - p0)
    m = m - weight / p * (g.mean(0) + p0 / memory * (m - m0))
    rule = GaussianVI(remember=memory, pull_every=1, crowd=3.0).at(Pace(batch, steps))
    after = rule.update(state, gradient_of(delta, pre))
    np.testing.assert_allclose(after.precision, p, rtol=1e-12)
    np.testing.assert_allclose(after.mean, m, rtol=1e-12)


def test_in_variances_it_is_mesu() -> None:
    """Bonnet et al.: Δμ = −σ²∂C/∂μ + σ²(μ₀−μ)/(Nσ₀²), Δσ = −½σ²∂C/∂σ + σ(σ₀²−σ²)/(2Nσ₀²), ∂C/∂σ = σ·curvature.

    One example of one step; both are the same flow, so they agree to second order in the change.
    """
    memory, mu0, sigma0 = 2000.0, 0.0, 0.5
    state = GaussianState(
        some(1, *SHAPE), 40 + some(2, *SHAPE).abs(), torch.zeros(SHAPE, dtype=F64), torch.full(SHAPE, 4.0, dtype=F64)
    )
    mu, sigma = state.mean.numpy().copy(), state.precision.numpy() ** -0.5
    precision = state.precision.clone()
    delta, pre = 0.3 * some(5, 1, 3), 0.3 * some(6, 1, 2)
    g = delta.numpy()[0][:, None] * pre.numpy()[0][None]
    mu_after = mu - sigma**2 * g + sigma**2 * (mu0 - mu) / (memory * sigma0**2)
    sigma_after = sigma - 0.5 * sigma**2 * (sigma * g**2) + sigma * (sigma0**2 - sigma**2) / (2 * memory * sigma0**2)
    after = (
        GaussianVI(remember=memory, prior_std=sigma0, pull_every=1, crowd=3.0)
        .at(Pace(1, 1))
        .update(state, gradient_of(delta, pre))
    )
    moved = after.precision.numpy() - precision.numpy()
    np.testing.assert_allclose(moved, sigma_after**-2 - precision.numpy(), rtol=2e-3)
    np.testing.assert_allclose(after.mean.numpy() - mu, mu_after - mu, rtol=2e-3)


def test_a_linear_gaussian_target_is_learnt_in_one_pass() -> None:
    """Targets of variance 1 around weights drawn from the prior, each input alone: the exact posterior is known."""
    neurons, inputs, batch, rounds, prior = 8, 5, 20, 60, 4.0
    # far outside the prior a squared residual takes misfit for information, and the precision comes out too large
    truth = some(1, neurons, inputs).clamp(-1.5, 1.5) / math.sqrt(prior)
    rule = GaussianVI(remember=math.inf, prior_precision=prior, crowd=float(neurons)).at(Pace(batch, 1))
    wide, zero = torch.full((neurons, inputs), prior, dtype=F64), torch.zeros(neurons, inputs, dtype=F64)
    state, sums = GaussianState(zero.clone(), wide.clone(), zero, wide), zero.clone()
    for n in range(rounds * inputs):
        j = n % inputs
        pre = torch.zeros(batch, inputs, dtype=F64)
        pre[:, j] = 1
        targets = truth[:, j] + some(100 + n, batch, neurons)
        delta = state.mean[:, j] - targets  # ∂/∂u of ½(u − y)²
        state = rule.update(state, LocalGradient(delta, pre, Weights(state.mean), pre, delta))
        sums[:, j] += targets.sum(dim=0)
    exact = prior + batch * rounds
    # mean(g²) is a mean squared residual: right on average, with a spread of √(2/examples)
    torch.testing.assert_close(state.precision, torch.full_like(zero, exact), rtol=0.2, atol=0)
    away = (state.mean - sums / exact).abs() * math.sqrt(exact)  # in standard deviations of the posterior
    assert float(away.max()) < 0.5, away


def test_forgetting_keeps_about_n_examples() -> None:
    """With a steady stream of evidence h an example, the precision settles at p₀ + N·h, within e^(−k) after k·N."""
    memory, h = 200.0, 0.5
    rule = GaussianVI(remember=memory, prior_precision=2.0, pull_every=1, crowd=1.0).at(Pace(1, 1))
    state = GaussianState(*(torch.full((1, 1), value, dtype=F64) for value in (0.0, 2.0, 0.0, 2.0)))
    one = torch.ones(1, 1, dtype=F64)
    for n in range(1000):
        delta = math.sqrt(h) * (-1.0) ** n * one
        state = rule.update(state, LocalGradient(delta, one, Weights(state.mean), one, delta))
    assert float(state.precision) == pytest.approx(2 + memory * h, rel=math.exp(-5) + 0.01)


def test_a_large_carry_is_online_ewc() -> None:
    """ρ → 0 with ρκ fixed and precisions standing still: EWC's implicit step with importance p₀ and strength ρκ/2."""
    eta, strength, importance, flat = 0.3, 0.7, 1 + some(7, *SHAPE).abs(), 50.0
    start, anchor = some(8, *SHAPE), some(9, *SHAPE)
    tiny = 1e-14
    carried = GaussianVI(lr=eta * flat, temperature=tiny, precision_lr=0.0, carry=2 * strength / tiny, pull_every=1)
    state = GaussianState(start.clone(), torch.full(SHAPE, flat, dtype=F64), anchor, importance)
    elastic = EWC(lr=eta, strength=strength, online=True)
    rival = EWCState(start.clone(), importance.clone(), importance * anchor)
    for t in range(5):
        delta, pre = some(20 + t, 4, 3), some(30 + t, 4, 2)
        state = carried.update(state, gradient_of(delta, pre))
        rival = elastic.update(rival, gradient_of(delta, pre))
        torch.testing.assert_close(state.mean, rival[0], rtol=1e-9, atol=1e-11)
    assert float((state.mean - start).abs().max()) > 0.1


def test_a_carry_of_one_is_the_letter() -> None:
    letter, state = GaussianVI(lr=0.7, temperature=0.2), hand_state()
    copy = GaussianState(*(part.clone() for part in state[:4]))
    gradient = gradient_of(some(5, 4, 3), some(6, 4, 2))
    ours = GaussianVI(lr=0.7, temperature=0.2, carry=1.0, pull_every=1).update(copy, gradient)
    torch.testing.assert_close(letter.update(state, gradient).mean, ours.mean, rtol=0, atol=0)


@pytest.mark.parametrize("gradients", [False, True])
def test_the_implicit_pull_is_the_letters_to_first_order(gradients: bool) -> None:
    """A carry just off 1 takes the other branch. By hand with a = ηρp₀/p: the two differ by a·(η·g/p − a·(m₀ − m)) /
    (1 + a), so that ten times smaller steps are a hundred times closer; without gradients that is (ηρ)²."""
    delta, pre, rho, apart = some(5, 4, 3) * gradients, some(6, 4, 2), 0.2, []
    g = (delta.numpy()[:, :, None] * pre.numpy()[:, None, :]).mean(0)
    square = ((delta.numpy()[:, :, None] * pre.numpy()[:, None, :]) ** 2).mean(0)
    for eta in (1e-3, 1e-4):
        state = hand_state()
        m, p, m0, p0 = (part.numpy().copy() for part in state[:4])
        p = (1 - eta * rho) * p + eta * (square + rho * p0)
        letter = m - eta / p * (g - rho * p0 * (m0 - m))
        a = eta * rho * p0 / p
        ours = GaussianVI(lr=eta, temperature=rho, carry=1 + 1e-9).update(state, gradient_of(delta, pre)).mean.numpy()
        np.testing.assert_allclose(ours - letter, a * (eta * g / p - a * (m0 - m)) / (1 + a), rtol=1e-4, atol=1e-13)
        apart.append(np.abs(ours - letter))
        assert apart[-1].max() < (1e-3 * eta if gradients else (eta * rho) ** 2)
    assert np.median(apart[0] / apart[1]) == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize(("carry", "every"), [(1.0, 1), (1.0, 50), (1e6, 1), (1e6, 50)])
def test_no_pull_diverges(carry: float, every: int) -> None:
    """ηρ = 0.1 with a pull for fifty steps at once once reached 7e17; now the mean ends between where it was and m₀."""
    network = build(NetworkConfig(5, (4,), 2), F64)
    rule = GaussianVI(lr=1.0, temperature=0.1, precision_lr=1e-6, prior_precision=1e6, init_precision=1.0,
                      carry=carry, pull_every=every)  # fmt: skip
    state = init_states(network, rule, torch.Generator().manual_seed(0))[0]
    begin = state.mean.clone()
    silence = torch.zeros(200, 3, 5, dtype=torch.uint8)
    (state,), _ = train_batch(network, rule, [state], silence, torch.zeros(3, dtype=torch.int64), torch.Generator())
    assert bool((state.mean.abs() <= begin.abs() + 1e-12).all())


def test_a_pull_that_would_overshoot_ends_at_the_prior() -> None:
    """By hand: m ← m − η·g/p − min(1, ηρ·p₀/p)·(m − m₀), the letter wherever it stays on its side; the same at rest."""
    eta, eta_p, rho = 0.7, 0.05, 0.9
    rule = GaussianVI(lr=eta, temperature=rho, precision_lr=eta_p)
    for resting in (False, True):
        state = hand_state()._replace(precision=some(2, *SHAPE).abs())
        m, p, m0, p0 = (part.numpy().copy() for part in state[:4])
        shares = []
        for t in range(3):
            delta, pre = some(20 + t, 4, 3) * (not resting), some(30 + t, 4, 2)
            g = delta.numpy()[:, :, None] * pre.numpy()[:, None, :]
            p = (1 - eta_p * rho) * p + eta_p * ((g**2).mean(0) + rho * p0)
            shares.append(eta * rho * p0 / p)
            m = m - eta / p * g.mean(0) - np.minimum(1, shares[-1]) * (m - m0)
            if not resting:
                state = rule.update(state, gradient_of(delta, pre))
                np.testing.assert_allclose(state.mean, m, rtol=1e-11)
        after = rule.rest(state, 3) if resting else state
        np.testing.assert_allclose(after.mean, m, rtol=1e-11)
        np.testing.assert_allclose(after.precision, p, rtol=1e-12)
        assert np.max(shares) > 2  # the letter would diverge
        assert np.min(shares) < 1


def test_examples_that_are_no_evidence_move_the_mean_alone() -> None:
    rule = GaussianVI(lr=0.7, temperature=0.0)
    delta, pre = some(5, 4, 3), some(6, 4, 2)
    g = delta.numpy()[:, :, None] * pre.numpy()[:, None, :]
    counts = torch.tensor([[1.0], [0.0], [0.5], [0.0]], dtype=F64)
    state = hand_state()
    m, p = state.mean.numpy().copy(), state.precision.numpy().copy()
    after = rule.update(state, gradient_of(delta, pre, counts))
    p = p + 0.7 * (g**2 * counts.numpy()[:, :, None]).mean(0)
    np.testing.assert_allclose(after.precision, p, rtol=1e-12)
    np.testing.assert_allclose(after.mean, m - 0.7 / p * g.mean(0), rtol=1e-12)


@pytest.mark.parametrize("mixing", ["balanced", "pooled", "none"])
def test_each_example_of_a_task_is_evidence_once(mixing: str) -> None:
    """Two epochs with two coresets: the marks follow the order of `fetch`, and count every fresh example just once."""
    digits = load("digits", time=3).train
    parts = [digits.subset(torch.arange(23)), digits.subset(torch.arange(30, 35)), digits.subset(torch.arange(40, 44))]
    plan = plan_task(23, [5, 4], batch=7, epochs=2, mixing=mixing, seed=1)  # type: ignore[arg-type]
    seen: list[int] = []
    for position in range(len(plan)):
        sources, indices = plan.pick(position)
        marks = first_time(plan, position, 23)
        order = [int(i) for source in sources.unique().tolist() for i in indices[sources == source]]
        kinds = [source for source in sources.unique().tolist() for _ in indices[sources == source]]
        _, labels = fetch(parts, sources, indices, torch.Generator())
        assert [int(parts[kind].labels[i]) for kind, i in zip(kinds, order, strict=True)] == labels.tolist()
        for mark, kind, index in zip(marks.tolist(), kinds, order, strict=True):
            assert mark == float(kind == 0 and index not in seen)
            if kind == 0:
                seen.append(index)
    assert sorted(set(seen)) == list(range(23))


def test_a_rule_in_natural_units_must_know_its_pace() -> None:
    with pytest.raises(UserError, match="is in natural units"):
        GaussianVI().update(hand_state(), gradient_of(some(5, 4, 3), some(6, 4, 2)))


def test_binary_synapses_in_the_same_units() -> None:
    """η = c|B|/T and ρ = 1/(cN), then w^r ← (1 − ηρ)w^r − η·mean(g)·slope + ηρ·w^r₀ by hand; a carry is implicit."""
    natural = BernoulliVI(lr=None, temperature=None, remember=500.0, sampling="neuron")
    rule = natural.at(Pace(4, 10, observations=3.0))
    assert rule.lr == pytest.approx(3 * 4 / 10)
    assert rule.temperature == pytest.approx(1 / (3 * 500))
    assert rule.horizon == 1
    # where tasks have ends each of the ten steps is an observation, and over a task the prior is applied once
    by_task = BernoulliVI(lr=None, temperature=None).at(Pace(4, 10, 200, observations=3.0))
    assert (by_task.lr, by_task.temperature) == (pytest.approx(4), pytest.approx(1 / (10 * 200)))
    assert 200 / 4 * 10 * by_task.share == pytest.approx(1)
    assert natural.end_task(BernoulliState(some(1, *SHAPE), some(2, *SHAPE))).prior_logits.equal(some(2, *SHAPE))
    logits, prior = some(1, *SHAPE), some(2, *SHAPE)
    for carry in (1.0, 50.0):
        carried = BernoulliVI(lr=2.0, temperature=0.01, carry=carry)
        rested = carried.rest(BernoulliState(logits.clone(), prior), 3).logits
        expected = logits.numpy().copy()
        for _ in range(3):
            a = 2.0 * 0.01 * carry
            share = a if carry == 1 else a / (1 + a)
            expected += share * (prior.numpy() - expected)
        np.testing.assert_allclose(rested, expected, rtol=1e-12)
    with pytest.raises(UserError, match="belong together"):
        BernoulliVI(lr=None)
    with pytest.raises(UserError, match="is in natural units"):
        natural.update(BernoulliState(logits, prior), gradient_of(some(5, 4, 3), some(6, 4, 2)))


def test_the_default_learns_its_posterior() -> None:
    """After one small task the synapses of pixels that digits use are far more certain than those they do not."""
    digits = load("digits", time=15)
    stream = split_by_class(digits, groups=[[0, 1], [2, 3]])
    network = build(NetworkConfig(784, (40,), 10, synapse_decay=0.0, membrane_decay=0.5, readout_scale=16.0))
    done = run_stream(network, GaussianVI(), stream, StreamConfig(evidence="once"))
    precision = done.states[0].precision.mean(dim=0)
    grey = digits.train.values.float().mean(dim=0).flatten()  # type: ignore[attr-defined]
    used, unused = precision[grey > 60].median(), precision[grey == 0].median()
    assert float(used) > 1.5 * float(unused), (used, unused)  # 154 and 78 when written


@pytest.mark.parametrize(("threshold", "every"), [(1.0, 10), (0.25, 10), (0.25, 100)])
def test_a_new_network_fires_now_and_then_whatever_its_threshold(threshold: float, every: int) -> None:
    """The default prior spreads the potential by one threshold where a tenth of the inputs is active all the time.

    Or as many as are said to be; of the layers above a tenth.
    """
    network = build(NetworkConfig(500, (40, 30), 3, threshold=threshold, input_activity=1 / every))
    rule = GaussianVI()
    state, above = init_states(network, rule, torch.Generator().manual_seed(0))
    assert float(state.prior_precision[0, 0]) == pytest.approx(500 / every / threshold**2)
    assert float(above.prior_precision[0, 0]) == pytest.approx(4 / threshold**2)
    weights = torch.randn(2000, 500, generator=torch.Generator().manual_seed(1)) / state.prior_precision[0].sqrt()
    active = (torch.arange(500) % every == 0).float()  # their traces tend to 1
    assert float((weights @ active).std()) == pytest.approx(threshold, rel=0.05)
    assert GaussianVI(prior_std=0.2).first_precision(500, threshold) == pytest.approx(25)  # what is said stands
