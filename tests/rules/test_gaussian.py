"""Gaussian variational inference: the update by hand, its invariants, and where the weights are drawn."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bayspike.errors import UserError
from bayspike.learning.batch import init_states, train_batch
from bayspike.posteriors.grid import Grid
from bayspike.rules import SGD, GaussianVI
from bayspike.rules.base import IN_CACHE
from bayspike.rules.gaussian import GaussianState
from bayspike.spiking.local import LocalGradient, local_gradient, one_hot_targets
from bayspike.spiking.network import Drive, NetworkConfig, Weights, build, step

F64 = torch.float64
SHAPE = (3, 2)


def some(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def hand_state() -> GaussianState:
    """Prior and posterior differ in every entry."""
    return GaussianState(some(1, *SHAPE), 3 + some(2, *SHAPE).abs(), some(3, *SHAPE), 1 + some(4, *SHAPE).abs())


def gradient_of(delta: torch.Tensor, pre: torch.Tensor) -> LocalGradient:
    return LocalGradient(delta, pre, Weights(torch.zeros(SHAPE, dtype=F64)), pre, delta)


def by_hand(
    state: GaussianState, delta: np.ndarray, pre: np.ndarray, lr: float, rho: float, precision_lr: float
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 1, one weight at a time."""
    m, p, m0, p0 = (part.numpy().copy() for part in state[:4])
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            g = [delta[n, i] * pre[n, j] for n in range(len(delta))]
            square = sum(x * x for x in g) / len(g)
            p[i, j] = (1 - precision_lr * rho) * p[i, j] + precision_lr * (square + rho * p0[i, j])
            m[i, j] -= lr / p[i, j] * (sum(g) / len(g) - rho * p0[i, j] * (m0[i, j] - m[i, j]))
    return m, p


@pytest.mark.parametrize(("lr", "rho", "precision_lr"), [(0.7, 0.2, None), (0.7, 0.2, 0.05), (0.7, 0.0, None)])
@pytest.mark.parametrize("batch", [1, 4])
def test_three_updates_are_the_papers(lr: float, rho: float, precision_lr: float | None, batch: int) -> None:
    rule = GaussianVI(lr=lr, temperature=rho, precision_lr=precision_lr)
    state = expected = hand_state()
    for t in range(3):  # the buffers made in the first step are used again in the later ones
        delta, pre = some(10 + t, batch, 3), some(20 + t, batch, 2)
        expected_m, expected_p = by_hand(
            expected, delta.numpy(), pre.numpy(), lr, rho, lr if precision_lr is None else precision_lr
        )
        expected = expected._replace(mean=torch.from_numpy(expected_m), precision=torch.from_numpy(expected_p))
        state = rule.update(state, gradient_of(delta, pre))
        np.testing.assert_allclose(state.precision, expected_p, rtol=1e-12)
        np.testing.assert_allclose(state.mean, expected_m, rtol=1e-12)


def test_a_layer_larger_than_one_block_is_updated_alike() -> None:
    shape, batch = (IN_CACHE // 1000 + 7, 300), 5
    delta, pre = some(1, batch, shape[0]), some(2, batch, 300)
    state = GaussianState(some(3, *shape), 3 + some(4, *shape).abs(), some(5, *shape), 1 + some(6, *shape).abs())
    g = delta.numpy()[:, :, None] * pre.numpy()[:, None, :]
    m, p, m0, p0 = (part.numpy().copy() for part in state[:4])
    p = (1 - 0.7 * 0.2) * p + 0.7 * ((g**2).mean(0) + 0.2 * p0)
    m = m - 0.7 / p * (g.mean(0) - 0.2 * p0 * (m0 - m))
    after = GaussianVI(lr=0.7, temperature=0.2).update(
        state, LocalGradient(delta, pre, Weights(torch.zeros(shape)), pre, delta)
    )
    np.testing.assert_allclose(after.precision, p, rtol=1e-12)
    np.testing.assert_allclose(after.mean, m, rtol=1e-10)


def test_a_pull_that_comes_now_and_then_is_that_of_the_steps_in_between() -> None:
    """Nine updates with a pull every four: after the 4th, the 8th and the last, by hand in between."""
    network = build(NetworkConfig(5, (4,), 2, threshold=0.3), F64)
    spikes = (some(7, 10, 6, 5) > 0).to(torch.uint8)
    labels = torch.arange(6) % 2
    rule = GaussianVI(lr=0.5, precision_lr=0.3, temperature=0.01, prior_precision=4.0, pull_every=4)
    start = init_states(network, rule, torch.Generator().manual_seed(1))[0]._replace(
        prior_mean=some(8, 4, 5), prior_precision=1 + some(9, 4, 5).abs()
    )
    generator = torch.Generator().manual_seed(2)
    copy = start._replace(mean=start.mean.clone(), precision=start.precision.clone())
    (learnt,), _ = train_batch(network, rule, [copy], spikes, labels, generator, burn_in=1)

    unpulled, state, generator = GaussianVI(lr=0.5, precision_lr=0.3, temperature=0.0), start, generator.manual_seed(2)
    layer, neurons, targets = network.layers[0], network.layers[0].start(6), one_hot_targets(labels, 2, F64)
    for t, frame in enumerate(spikes.to(F64)):
        drive = unpulled.drive(state, generator)
        done = step(layer, neurons, frame, drive)
        neurons = done.state
        if t >= 1:
            state = unpulled.update(state, local_gradient(layer, done, drive, frame, targets)[0])
        if steps := {4: 4, 8: 4, 9: 1}.get(t):
            m, p, m0, p0 = (part.numpy() for part in state[:4])
            p[:] = p0 + (p - p0) * (1 - 0.3 * 0.01) ** steps
            a = steps * 0.5 * 0.01 * p0 / p
            m[:] = (m + a * m0) / (1 + a)
    np.testing.assert_allclose(learnt.precision, state.precision, rtol=1e-12)
    np.testing.assert_allclose(learnt.mean, state.mean, rtol=1e-12)


def test_a_rare_pull_leads_where_algorithm_1_does() -> None:
    """At the rates of the experiments a whole mini-batch differs by less than a thousandth of what was learnt."""
    network = build(NetworkConfig(20, (30,), 2), F64)
    spikes = (some(7, 50, 16, 20) > 0.5).to(torch.uint8)
    ends = []
    for every in (1, 10):
        rule = GaussianVI(lr=1000.0, temperature=1e-8, prior_precision=1000.0, init_scale=3.0, pull_every=every)
        state = init_states(network, rule, torch.Generator().manual_seed(1))[0]
        before = state.mean.clone(), state.precision.clone()
        (end,), _ = train_batch(network, rule, [state], spikes, torch.arange(16) % 2, torch.Generator().manual_seed(2))
        ends.append([a - b for a, b in zip((end.mean, end.precision), before, strict=True)])
    for letter, rare in zip(*ends, strict=True):
        assert 0 < float((letter - rare).norm()) < 1e-3 * float(letter.norm())


def test_without_data_the_posterior_returns_to_the_prior() -> None:
    rule = GaussianVI(lr=2.0, temperature=0.25)
    state = hand_state()
    silent = gradient_of(torch.zeros(4, 3, dtype=F64), torch.zeros(4, 2, dtype=F64))
    for _ in range(100):
        state = rule.update(state, silent)
    torch.testing.assert_close(state.precision, state.prior_precision)
    torch.testing.assert_close(state.mean, state.prior_mean)


def test_a_flat_posterior_has_the_mean_of_all_precisions() -> None:
    """By hand: the step is Algorithm 1's, and then every synapse has the layer's mean precision."""
    rule, state = GaussianVI(lr=0.7, temperature=0.2, flat=True), hand_state()
    for t in range(3):
        delta, pre = some(10 + t, 4, 3), some(20 + t, 4, 2)
        mean, precision = by_hand(state, delta.numpy(), pre.numpy(), 0.7, 0.2, 0.7)
        assert np.ptp(precision) > 0.1
        state = rule.update(state, gradient_of(delta, pre))
        np.testing.assert_allclose(state.precision, np.full(SHAPE, precision.mean()), rtol=1e-12)
        np.testing.assert_allclose(state.mean, mean, rtol=1e-12)


def test_prior_and_start_are_separate() -> None:
    rule = GaussianVI(prior_precision=10.0, init_precision=40.0, init_scale=2.0)
    state = rule.init((50, 400), torch.Generator().manual_seed(0))
    assert float(state.mean.std()) == pytest.approx(2 / 20, rel=0.03)
    assert not state.prior_mean.any()
    assert state.precision.unique().tolist() == [40]
    assert state.prior_precision.unique().tolist() == [10]
    assert GaussianVI(prior_precision=10.0).init(SHAPE, torch.Generator()).precision.unique().tolist() == [10]


def test_at_the_end_of_a_task_the_posterior_becomes_the_prior_and_stays_one() -> None:
    rule = GaussianVI(lr=0.5, temperature=0.1)
    state = rule.update(hand_state(), gradient_of(some(1, 4, 3), some(2, 4, 2)))
    mean, precision = state.mean.clone(), state.precision.clone()
    state = rule.end_task(state)
    state = rule.update(state, gradient_of(some(3, 4, 3), some(4, 4, 2)))
    assert torch.equal(state.prior_mean, mean)
    assert torch.equal(state.prior_precision, precision)
    assert not torch.equal(state.mean, mean)


@given(
    lr=st.floats(0, 1e6),
    share=st.floats(0, 0.999),
    size=st.sampled_from([0.0, 1e-12, 1.0, 1e6]),
    start=st.floats(1e-6, 1e6),
    seed=st.integers(0, 1000),
)
def test_precision_stays_positive_whatever_comes(lr: float, share: float, size: float, start: float, seed: int) -> None:
    """`share` is η·ρ, allowed anywhere below one; single precision, as in training."""
    rule = GaussianVI(lr=lr, temperature=share / lr if lr > 1e-3 else share, prior_precision=start)
    state = rule.init(SHAPE, torch.Generator().manual_seed(seed))
    for t in range(30):
        delta, pre = (size * some(seed + t, 4, 3)).float(), some(seed - t, 4, 2).float()
        state = rule.update(state, gradient_of(delta, pre))
        assert bool((state.precision > 0).all())
        assert bool(torch.isfinite(state.precision).all())
        assert bool(torch.isfinite(state.mean).all())


def layer_gradient(drive: Drive, count: int = 1) -> LocalGradient:
    """The local gradient of a spiking layer of 3 neurons after some steps; four examples, each `count` times over."""
    network = build(NetworkConfig(2, (3,), 3, reset="refractory"), F64)
    layer, state = network.layers[0], network.start(4 * count)[0]
    spikes = (torch.rand(5, 4, 2, generator=torch.Generator().manual_seed(8)) < 0.7).to(F64).repeat(1, count, 1)
    for now in spikes:  # any weights will do to fill the traces; they are the same for both ways of sampling
        state = step(layer, state, now, Weights(torch.ones(3, 2, dtype=F64))).state
    done = step(layer, state, spikes[0], drive)
    targets = one_hot_targets(torch.tensor([0, 1, 2, 1]).repeat(count), 3, F64)
    return local_gradient(layer, done, drive, spikes[0], targets)[0]


def test_neuron_and_synapse_sampling_have_the_same_expectation() -> None:
    """Means of 20,000 draws of mean(g) and mean(g²) agree within 4.5 standard errors of their difference; what the
    mean weights alone give lies far outside, so the test can tell."""
    draws = 20_000
    state = GaussianState(1.5 + some(1, *SHAPE), torch.full(SHAPE, 1.5, dtype=F64), *(torch.ones(SHAPE),) * 2)
    moments: dict[str, list[torch.Tensor]] = {}
    for sampling in ("neuron", "synapse"):
        rule = GaussianVI(sampling=sampling, samples=draws)  # type: ignore[arg-type]
        gradient = layer_gradient(rule.drive(state, torch.Generator().manual_seed(1)), draws)
        g = (gradient.delta[:, :, None] * gradient.pre[:, None, :]).view(draws, 4, *SHAPE)
        moments[sampling] = [g.mean(1), g.square().mean(1)]  # (draws, neurons, pre) each
        torch.testing.assert_close(gradient.mean(), moments[sampling][0].mean(0))
    at_mean = layer_gradient(Weights(state.mean))
    for ours, theirs, fixed in zip(*moments.values(), (at_mean.mean(), at_mean.mean_square()), strict=True):
        error = ((ours.var(0) + theirs.var(0)) / draws).sqrt()
        assert float(((ours.mean(0) - theirs.mean(0)) / error).abs().max()) < 4.5
        assert float(((ours.mean(0) - fixed) / error).abs().max()) > 20


def test_a_draw_at_the_neuron_has_the_mean_and_variance_of_weights_times_traces() -> None:
    state, pre = hand_state(), some(9, 1, 2).abs()
    drive = GaussianVI().drive(state, torch.Generator().manual_seed(0))
    draws = drive(pre.expand(40_000, 2))
    mean, variance = state.mean @ pre[0], (1 / state.precision) @ pre[0] ** 2
    assert float(((draws.mean(0) - mean) / variance.sqrt()).abs().max()) < 4.5 / 200
    torch.testing.assert_close(draws.var(0), variance, rtol=0.04, atol=0)


def test_several_samples_a_step_average_over_them() -> None:
    """Each repetition of the batch sees its own weights; the moments run over samples and examples."""
    state, pre, delta = hand_state(), some(5, 4, 2).repeat(3, 1), some(6, 12, 3)
    rule = GaussianVI(lr=0.7, temperature=0.2, sampling="synapse", samples=3)
    drive = rule.drive(state, torch.Generator().manual_seed(0))
    assert drive.matrices.shape == (3, *SHAPE)  # type: ignore[attr-defined]
    potentials = drive(pre)
    for sample in range(3):
        rows = slice(4 * sample, 4 * sample + 4)
        torch.testing.assert_close(potentials[rows], pre[rows] @ drive.matrices[sample].T)  # type: ignore[attr-defined]
    mean, precision = by_hand(state, delta.numpy(), pre.numpy(), 0.7, 0.2, 0.7)
    after = rule.update(state, gradient_of(delta, pre))
    np.testing.assert_allclose(after.mean, mean)
    np.testing.assert_allclose(after.precision, precision)


def test_with_the_prior_gone_and_no_doubt_left_it_is_gradient_descent() -> None:
    """ρ = 0, p huge and fixed: the steps are η/p times the mean gradient. With a large ρ they are not."""
    network = build(NetworkConfig(6, (5, 4), 2), F64)
    generator = torch.Generator().manual_seed(2)
    spikes = (torch.rand(15, 8, 6, generator=generator) < 0.5).to(F64)
    labels = torch.arange(8) % 2

    def trained(rule: SGD | GaussianVI) -> list[torch.Tensor]:
        states = init_states(network, rule, torch.Generator().manual_seed(3))
        for index, layer in enumerate(network.layers):
            states[index] = states[index]._replace(**{states[index]._fields[0]: 2 * some(index, *layer.shape)})
        states, _ = train_batch(network, rule, states, spikes, labels, torch.Generator().manual_seed(4))
        return [state[0] for state in states]

    huge = 1e16
    bayes = {"lr": 0.5 * huge, "prior_precision": huge, "precision_lr": 0.0}
    expected = trained(SGD(lr=0.5))
    distance = {}
    for rho in (0.0, 1e-20, 1e-18):
        pairs = zip(trained(GaussianVI(temperature=rho, **bayes)), expected, strict=True)
        distance[rho] = max(float((ours - theirs).abs().max()) for ours, theirs in pairs)
    assert distance[0.0] < 1e-5
    assert distance[0.0] < distance[1e-20] < distance[1e-18]


def test_weights_on_the_grid() -> None:
    grid = Grid(0.25)
    rule = GaussianVI(sampling="synapse", samples=5, grid=grid)
    matrices = rule.drive(hand_state(), torch.Generator().manual_seed(0)).matrices  # type: ignore[attr-defined]
    assert torch.equal(matrices, grid.round(matrices))
    assert not torch.equal(matrices, torch.zeros_like(matrices))


def test_a_draw_at_the_neuron_knows_the_variance_of_rounding() -> None:
    """Rounding draws of deviation of about a step adds step²/12 to their variance (Sheppard)."""
    step_size = 0.25
    state = hand_state()._replace(precision=torch.full(SHAPE, 1 / step_size**2, dtype=F64))
    pre = some(9, 1, 2)
    neuron = GaussianVI(grid=Grid(step_size)).drive(state, torch.Generator().manual_seed(0))(pre.expand(60_000, 2))
    rule = GaussianVI(grid=Grid(step_size), sampling="synapse", samples=60_000)
    synapse = rule.drive(state, torch.Generator().manual_seed(0))(pre.expand(60_000, 2))
    expected = (pre**2).sum() * step_size**2 * (1 + 1 / 12)
    torch.testing.assert_close(neuron.var(0), expected.expand(3), rtol=0.025, atol=0)
    torch.testing.assert_close(synapse.var(0), expected.expand(3), rtol=0.025, atol=0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"lr": -1.0, "temperature": 0.0}, r"lr must lie in \[0, inf\), but is -1\.0"),
        ({"lr": 1.0, "temperature": math.nan}, r"temperature must lie in \[0, inf\), but is nan"),
        ({"lr": 10.0, "temperature": 0.1}, r"lr · temperature must lie in \[0, 1\), but is 1\.0"),
        (
            {"lr": 1.0, "temperature": 1e-8, "precision_lr": 1e9},
            r"precision_lr · temperature must lie in \[0, 1\), but is 10",
        ),
        ({"lr": 1.0}, "lr and temperature belong together"),
        ({"lr": 1.0, "temperature": 0.1, "remember": 5.0}, "remember is for natural units"),
        ({"prior_std": 1.0, "prior_precision": 1.0}, "say the same thing"),
        ({"remember": -1.0}, r"remember must lie in \(0, inf\)"),
        ({"carry": -1.0}, r"carry must lie in \[0, inf\)"),
        ({"prior_precision": 0.0}, r"prior_precision must lie in \(0, inf\), but is 0\.0"),
        ({"init_precision": -1.0}, r"init_precision must lie in \(0, inf\), but is -1\.0"),
        ({"init_scale": -1.0}, r"init_scale must lie in \[0, inf\), but is -1\.0"),
        ({"samples": 0}, r"samples must lie in \[1, inf\), but is 0"),
        ({"sampling": "dendrite"}, r"sampling must be 'neuron' or 'synapse', but is 'dendrite'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        GaussianVI(**arguments)  # type: ignore[arg-type]
