"""The boundary-free mode: prior q^(1−1/N)·p₀^(1/N) at every step, so that certainty does not pile up.

In natural parameters a geometric mixture is an arithmetic one: for Gaussians of precision and precision × mean, for
±1 weights of the logits. The tests take the plain rule, give it that mixture as its prior, and compare.
"""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from bayspike.continual import Progress, StreamConfig, permuted, run_stream
from bayspike.data.base import Dataset
from bayspike.data.catalogue import load
from bayspike.errors import UserError
from bayspike.learning.batch import posteriors
from bayspike.predict.predictors import Point, predict_samples
from bayspike.rules import BernoulliVI, GaussianVI
from bayspike.rules.bernoulli import BernoulliState, SampledBinaryPotential
from bayspike.rules.gaussian import GaussianState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import NetworkConfig, Weights, build

F64 = torch.float64
SHAPE = (3, 2)


def some(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def copy(state):  # type: ignore[no-untyped-def]
    return type(state)(*(part.clone() if isinstance(part, Tensor) else None for part in state))


@pytest.mark.parametrize("horizon", [1.0, 3.0, 50.0])
@pytest.mark.parametrize("precision_lr", [None, 0.05])
def test_gaussian_updates_use_the_geometric_mixture(horizon: float, precision_lr: float | None) -> None:
    free = GaussianVI(lr=0.7, temperature=0.2, precision_lr=precision_lr, horizon=horizon)
    plain = GaussianVI(lr=0.7, temperature=0.2, precision_lr=precision_lr)
    state = GaussianState(some(1, *SHAPE), 3 + some(2, *SHAPE).abs(), some(3, *SHAPE), 1 + some(4, *SHAPE).abs())
    first_mean, first_precision = state.prior_mean.clone(), state.prior_precision.clone()
    for t in range(4):
        delta, pre = some(10 + t, 5, 3), some(20 + t, 5, 2)
        gradient = LocalGradient(delta, pre, Weights(torch.zeros(SHAPE, dtype=F64)), pre, delta)
        # log q^(1−1/N) p₀^(1/N): the quadratic and linear coefficients of the two exponents, weighed
        keep, pull = 1 - 1 / horizon, 1 / horizon
        precision = keep * state.precision + pull * first_precision
        mean = (keep * state.precision * state.mean + pull * first_precision * first_mean) / precision
        mixed = plain.update(copy(state)._replace(prior_mean=mean, prior_precision=precision), gradient)
        state = free.end_task(free.update(copy(state), gradient))  # the end of a task is not to matter
        torch.testing.assert_close(state.precision, mixed.precision, rtol=1e-12, atol=0)
        torch.testing.assert_close(state.mean, mixed.mean, rtol=1e-10, atol=1e-12)
        assert torch.equal(state.prior_mean, first_mean)
        assert torch.equal(state.prior_precision, first_precision)


@pytest.mark.parametrize("horizon", [1.0, 3.0, 50.0])
def test_bernoulli_updates_use_the_geometric_mixture(horizon: float) -> None:
    free = BernoulliVI(lr=0.7, temperature=0.2, sampling="neuron", horizon=horizon)
    plain = BernoulliVI(lr=0.7, temperature=0.2, sampling="neuron")
    state = BernoulliState(some(1, *SHAPE), some(2, *SHAPE))
    first = state.prior_logits.clone()
    for t in range(4):
        delta, pre = some(10 + t, 5, 3), some(20 + t, 5, 2)
        drive = SampledBinaryPotential(torch.tanh(state.logits), torch.Generator(), some(30 + t, 5, 3))
        gradient = LocalGradient(delta, pre, drive, pre, delta)
        mixture = (1 - 1 / horizon) * state.logits + first / horizon
        mixed = plain.update(BernoulliState(state.logits.clone(), mixture), gradient)
        state = free.end_task(free.update(copy(state), gradient))
        torch.testing.assert_close(state.logits, mixed.logits, rtol=1e-10, atol=1e-12)
        assert torch.equal(state.prior_logits, first)


@pytest.mark.parametrize("horizon", [None, 4.0])
def test_precision_under_a_constant_information(horizon: float | None) -> None:
    """E[g²] = 0.3 for ever: with a horizon the precision settles at p₀ + N·E[g²]/ρ; carried over, 20 tasks that each
    last until nothing moves pile up 20·E[g²]/ρ."""
    information, rho, prior = 0.3, 0.05, 2.0
    rule = GaussianVI(lr=4.0, temperature=rho, prior_precision=prior, horizon=horizon)
    state = rule.init((1, 1), torch.Generator().manual_seed(0))
    one = torch.ones(2, 1)
    delta = torch.tensor([[1.0], [-1.0]]) * information**0.5  # no mean, only a square
    for _ in range(20):
        for _ in range(150):
            state = rule.update(state, LocalGradient(delta, one, Weights(state.mean), one, delta))
        state = rule.end_task(state)
    tasks = 20 if horizon is None else horizon
    assert float(state.precision) == pytest.approx(prior + tasks * information / rho, rel=1e-4)


def learn_many(rule: GaussianVI, tasks: int) -> tuple[Tensor, Tensor]:
    """Accuracy on each task just after it was learnt, and mean precision then."""
    digits = load("digits", source="sklearn", time=12)
    order = torch.randperm(len(digits.train), generator=torch.Generator().manual_seed(0))
    part = Dataset(
        "digits", digits.train.subset(order[:256]), digits.test.subset(torch.arange(150)), digits.classes, (8, 8)
    )
    stream = permuted(part, tasks)
    network = build(NetworkConfig(64, (40,), 10))
    accuracy, precision = [], []

    def note(now: Progress, report: object, plan: object) -> None:
        if now.batch == len(plan):  # type: ignore[arg-type]
            test = stream.tasks[now.task].test
            predictor = Point.of(network, posteriors(rule, now.states))
            done = predict_samples(predictor, test, torch.Generator().manual_seed(0), over_time=False)
            accuracy.append((done.probabilities[-1].argmax(1) == test.labels).double().mean())
            precision.append(now.states[0].precision.double().mean())

    run_stream(network, rule, stream, StreamConfig(batch=32, replay="none"), on_batch=note)
    return torch.stack(accuracy), torch.stack(precision)


def test_fifty_tasks_leave_it_plastic_where_carried_over_certainty_does_not() -> None:
    """Fifty permutations of real digits. Measured with these seeds: carried over, the accuracy on the newest task falls
    and the precision grows with every task; with a horizon both level off. The bounds leave a wide margin."""
    rule = GaussianVI(lr=3000.0, prior_precision=1000.0, temperature=1e-2 / 3000)
    stiff, growing = learn_many(rule, 50)
    plastic, bounded = learn_many(replace(rule, horizon=2.0), 50)
    assert bool((growing.diff() > 0).all())
    assert float(growing[-1]) > 2 * float(growing[14])
    assert float(bounded[-10:].mean()) < 1.2 * float(bounded[15:25].mean())
    assert float(stiff[-10:].mean()) < float(stiff[:5].mean()) - 0.2
    assert float(plastic[-10:].mean()) > float(plastic[:5].mean()) - 0.15
    assert float(plastic[-10:].mean()) > float(stiff[-10:].mean()) + 0.2


def test_a_horizon_below_one_is_refused() -> None:
    for kind in (GaussianVI, BernoulliVI):
        with pytest.raises(UserError, match="horizon must lie in"):
            kind(horizon=0.5)
