"""Bernoulli variational inference: the update by hand, the relaxation's derivative, and draws at the neurons."""

import math

import numpy as np
import pytest
import torch

from bayspike.errors import UserError
from bayspike.rules import BernoulliVI
from bayspike.rules.bernoulli import BernoulliState, relaxation_slope
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights

F64 = torch.float64
SHAPE = (3, 2)


def some(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def hand_state() -> BernoulliState:
    return BernoulliState(some(1, *SHAPE), some(2, *SHAPE))


@pytest.mark.parametrize("tau", [1.0, 0.5])
@pytest.mark.parametrize("samples", [1, 3])
def test_one_update_is_the_papers(tau: float, samples: int) -> None:
    """Algorithm 2 in numpy, one weight at a time, from the same uniform draws."""
    lr, rho, batch = 0.7, 0.2, 4
    rule = BernoulliVI(lr=lr, temperature=rho, tau=tau, samples=samples)
    state, pre, delta = hand_state(), some(5, batch, 2).repeat(samples, 1), some(6, batch * samples, 3)
    latent, prior = state.logits.numpy().copy(), state.prior_logits.numpy().copy()
    uniform = torch.rand(samples, *SHAPE, dtype=F64, generator=torch.Generator().manual_seed(7))

    drive = rule.drive(state, torch.Generator().manual_seed(7))
    potentials = drive(pre).numpy()
    after = rule.update(state, LocalGradient(delta, pre, drive, pre, delta))

    expected = latent.copy()
    for i in range(3):
        for j in range(2):
            slope = 0.0
            for k in range(samples):
                epsilon = float(uniform[k, i, j])
                w = math.tanh((latent[i, j] + 0.5 * math.log(epsilon / (1 - epsilon))) / tau)
                factor = (1 - w * w) / (tau * (1 - math.tanh(latent[i, j]) ** 2))
                examples = range(k * batch, (k + 1) * batch)
                slope += factor * sum(float(delta[n, i] * pre[n, j]) for n in examples) / batch / samples
            expected[i, j] = (1 - lr * rho) * latent[i, j] - lr * (slope - rho * prior[i, j])
    np.testing.assert_allclose(after.logits, expected, rtol=1e-9)

    for n in range(batch * samples):
        noise = torch.logit(uniform[n // batch]).numpy() / 2
        np.testing.assert_allclose(potentials[n], np.tanh((latent + noise) / tau) @ pre[n].numpy(), rtol=1e-9)


def test_relaxed_weights_turn_into_draws_of_the_posterior_as_tau_vanishes() -> None:
    state = BernoulliState(torch.tensor([[0.4, -0.2, 0.0]], dtype=F64), torch.zeros(1, 3, dtype=F64))
    draws = BernoulliVI(tau=1e-4, samples=40_000).drive(state, torch.Generator().manual_seed(0)).matrices  # type: ignore[attr-defined]
    assert float((draws.abs() < 0.999).double().mean()) < 0.01
    expected = torch.tanh(state.logits)
    assert float((draws.mean(0) - expected).abs().max()) < 4.5 / 200


@pytest.mark.parametrize("tau", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("logit", [-2.0, 0.0, 0.7])
def test_the_slope_is_the_derivative_of_the_relaxed_weight(tau: float, logit: float) -> None:
    """Against finite differences in μ of w = tanh((artanh μ + δ)/τ)."""
    noise = torch.linspace(-6, 6, 41, dtype=F64)
    mu, step = math.tanh(logit), 1e-6

    def weight(mean: float) -> torch.Tensor:
        return torch.tanh((math.atanh(mean) + noise) / tau)

    expected = (weight(mu + step) - weight(mu - step)) / (2 * step)
    logits = torch.full_like(noise, logit)
    torch.testing.assert_close(relaxation_slope(logits, (logits + noise) / tau, tau), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("tau", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("logit", [-50.0, 50.0, 20.0])
def test_the_slope_is_right_for_large_logits_in_single_precision(tau: float, logit: float) -> None:
    """Against the quotient of cosines in extended precision, whose range is wide enough for it."""
    noise = np.linspace(-8, 8, 33)
    wide = np.longdouble
    expected = np.cosh(wide(logit)) ** 2 / (wide(tau) * np.cosh((wide(logit) + noise.astype(wide)) / wide(tau)) ** 2)
    logits = torch.full((33,), logit)
    slope = relaxation_slope(logits, (logits + torch.from_numpy(noise).float()) / tau, tau).double().numpy()
    assert np.isfinite(slope).all()
    large = expected > 1e-30  # below that single precision may flush to nought
    np.testing.assert_allclose(slope[large], np.minimum(expected[large], math.exp(80) / tau).astype(float), rtol=2e-3)
    assert (slope[~large] < 1e-29).all()


@pytest.mark.parametrize("sampling", ["neuron", "synapse"])
def test_updates_stay_finite_for_certain_weights(sampling: str) -> None:
    rule = BernoulliVI(lr=1.0, temperature=0.01, sampling=sampling)  # type: ignore[arg-type]
    logits = torch.tensor([[50.0, -50.0], [50.0, 50.0], [0.0, 50.0]])
    state = BernoulliState(logits, torch.zeros_like(logits))
    generator = torch.Generator().manual_seed(0)
    for t in range(50):
        drive = rule.drive(state, generator)
        pre = some(t, 4, 2).float()
        assert bool(torch.isfinite(drive(pre)).all())
        state = rule.update(state, LocalGradient(some(t + 1, 4, 3).float(), pre, drive, pre, pre))
        assert bool(torch.isfinite(state.logits).all())


def test_before_the_first_spike_nothing_moves_but_towards_the_prior() -> None:
    state, silent = hand_state(), torch.zeros(4, 2, dtype=F64)
    for sampling in ("neuron", "synapse"):
        rule = BernoulliVI(lr=0.5, temperature=0.2, sampling=sampling)  # type: ignore[arg-type]
        drive = rule.drive(state, torch.Generator().manual_seed(0))
        assert not drive(silent).any()
        expected = 0.9 * state.logits + 0.1 * state.prior_logits
        start = BernoulliState(state.logits.clone(), state.prior_logits)
        after = rule.update(start, LocalGradient(some(1, 4, 3), silent, drive, silent, silent))
        torch.testing.assert_close(after.logits, expected)


def test_a_draw_at_the_neuron_has_the_moments_of_binary_weights_times_traces() -> None:
    """Against all 2^6 weights of three neurons with two inputs each: four each, with their probabilities."""
    state, pre = hand_state(), some(9, 1, 2).abs()
    draws = BernoulliVI(sampling="neuron").drive(state, torch.Generator().manual_seed(0))(pre.expand(40_000, 2))
    up = torch.sigmoid(2 * state.logits)
    for i in range(3):
        values, chances = [], []
        for a in (1, -1):
            for b in (1, -1):
                values.append(float(a * pre[0, 0] + b * pre[0, 1]))
                chances.append(float((up[i, 0] if a > 0 else 1 - up[i, 0]) * (up[i, 1] if b > 0 else 1 - up[i, 1])))
        mean = np.dot(values, chances)
        variance = np.dot(np.square(values), chances) - mean**2
        assert abs(float(draws[:, i].mean()) - mean) < 4.5 * math.sqrt(variance / 40_000)
        assert float(draws[:, i].var()) == pytest.approx(variance, rel=0.04)


def test_the_update_at_the_neuron_is_the_derivative_through_mean_and_variance() -> None:
    """Autograd of u = μ·x + √((1 − μ²)·x²)·ε with respect to μ, the same ε."""
    lr, rho = 0.7, 0.2
    rule = BernoulliVI(lr=lr, temperature=rho, sampling="neuron")
    state, pre, delta = hand_state(), some(5, 4, 2), some(6, 4, 3)
    start, mu = state.logits.clone(), torch.tanh(state.logits).requires_grad_()
    noise = torch.empty(4, 3, dtype=F64).normal_(generator=torch.Generator().manual_seed(7))
    potential = pre @ mu.T + (pre.square() @ (1 - mu.square()).T).sqrt() * noise
    (potential * delta).sum(1).mean().backward()  # a loss whose derivative with respect to u is delta
    assert mu.grad is not None

    drive = rule.drive(state, torch.Generator().manual_seed(7))
    torch.testing.assert_close(drive(pre), potential.detach())
    after = rule.update(state, LocalGradient(delta, pre, drive, pre, delta))
    expected = (1 - lr * rho) * start - lr * (mu.grad - rho * state.prior_logits)
    torch.testing.assert_close(after.logits, expected)


def test_a_nearly_certain_neuron_is_not_kicked_about() -> None:
    """The derivative through the spread has a variance of 1/spread²; where weights are all but certain it must fade."""
    sizes = []
    for logit in (1.0, 3.0, 6.0, 9.0):
        state = BernoulliState(torch.full(SHAPE, logit, dtype=F64), torch.zeros(SHAPE, dtype=F64))
        rule = BernoulliVI(lr=1.0, sampling="neuron", temperature=0.0)
        drive = rule.drive(state, torch.Generator().manual_seed(0))
        pre = torch.ones(1, 2, dtype=F64)
        drive(pre)
        after = rule.update(state, LocalGradient(torch.ones(1, 3, dtype=F64), pre, drive, pre, pre))
        sizes.append(float((after.logits - logit).abs().max()))
    assert max(sizes) < 20
    assert sizes[3] == pytest.approx(1, abs=0.1)  # what is left is the derivative through the mean


def test_at_the_end_of_a_task_the_posterior_becomes_the_prior_and_stays_one() -> None:
    rule = BernoulliVI(lr=0.5, temperature=0.1, sampling="neuron")
    state = rule.end_task(hand_state())
    prior = state.logits.clone()
    drive = rule.drive(state, torch.Generator().manual_seed(0))
    pre = some(1, 4, 2)
    drive(pre)
    state = rule.update(state, LocalGradient(some(2, 4, 3), pre, drive, pre, pre))
    assert torch.equal(state.prior_logits, prior)
    assert not torch.equal(state.logits, prior)


def test_the_first_prior_is_uniform_and_the_posterior_is_the_logits() -> None:
    rule = BernoulliVI(init_scale=0.5)
    state = rule.init((100, 400), torch.Generator().manual_seed(0))
    assert not state.prior_logits.any()
    assert float(state.logits.std()) == pytest.approx(0.5 / 20, rel=0.03)
    assert rule.posterior(state).logits is state.logits


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"lr": -1.0}, r"lr must lie in \[0, inf\), but is -1\.0"),
        ({"temperature": -1.0}, r"temperature must lie in \[0, inf\), but is -1\.0"),
        ({"lr": 30.0, "temperature": 0.1}, r"lr · temperature must lie in \[0, 1\], but is 3\.0"),
        ({"tau": 0.0}, r"tau must lie in \(0, inf\), but is 0\.0"),
        ({"init_scale": -1.0}, r"init_scale must lie in \[0, inf\), but is -1\.0"),
        ({"samples": 0}, r"samples must lie in \[1, inf\), but is 0"),
        ({"sampling": "axon"}, r"sampling must be 'neuron' or 'synapse', but is 'axon'"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        BernoulliVI(**arguments)  # type: ignore[arg-type]


def test_weights_are_what_the_forward_pass_uses() -> None:
    """A plain matrix drive and a relaxed one agree once every weight is certain."""
    logits = 50 * torch.tensor([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]], dtype=F64)
    pre = some(3, 4, 2)
    drive = BernoulliVI().drive(BernoulliState(logits, logits), torch.Generator().manual_seed(0))
    torch.testing.assert_close(drive(pre), Weights(logits.sign())(pre))
