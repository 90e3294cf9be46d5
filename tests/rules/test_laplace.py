"""Laplace's method: its recurrence by hand, the strength of Bayes' rule, and a posterior known in closed form."""

import numpy as np
import pytest
import torch

from bayspike.continual import StreamConfig, run_stream, split_by_class
from bayspike.data.base import Dataset
from bayspike.errors import UserError
from bayspike.rules import EWC, Laplace
from bayspike.rules.base import Pace
from bayspike.rules.ewc import EWCState
from bayspike.rules.laplace import LaplaceState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import NetworkConfig, Weights, build

F64 = torch.float64
EXAMPLES, STEPS = 300, 20


def some(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def gradient_of(delta: torch.Tensor, pre: torch.Tensor) -> LocalGradient:
    nothing = torch.zeros(len(delta), 1, dtype=F64)
    return LocalGradient(delta, pre, Weights(nothing), nothing, nothing)


def test_the_strength_is_that_of_a_sum_over_all_presentations_and_steps() -> None:
    rule = Laplace(carry=3.0).at(Pace(16, STEPS, EXAMPLES))
    assert rule.strength == pytest.approx(3 / (2 * 300 * 20))
    assert rule.at(Pace(16, STEPS, 7)) is rule  # once told, it keeps to it
    state = Laplace().init((3, 2), torch.Generator())
    with pytest.raises(UserError, match="does not know its task"):
        Laplace().update(state, gradient_of(some(0, 4, 3), some(1, 4, 2)))


def test_the_prior_is_by_fan_in_threshold_and_activity_or_as_said() -> None:
    state = Laplace().init((3, 50), torch.Generator().manual_seed(0), threshold=0.5, activity=0.2)
    assert state.precision.unique().tolist() == [pytest.approx(50 * 0.2 / 0.25)]
    assert Laplace(prior_std=0.2).init((3, 50), torch.Generator()).precision.unique().item() == pytest.approx(25)
    assert not state.anchor.any()


def test_a_step_is_that_of_ewc_with_the_same_importance_and_anchor() -> None:
    weights, precision, anchor = some(0, 3, 2), some(1, 3, 2).abs(), some(2, 3, 2)
    gradient = gradient_of(some(3, 4, 3), some(4, 4, 2))
    ours = Laplace(lr=0.3, strength=0.2).update(LaplaceState(weights.clone(), precision, anchor), gradient)
    theirs = EWC(lr=0.3, strength=0.2).update(EWCState(weights.clone(), precision, precision * anchor), gradient)
    torch.testing.assert_close(ours.weights, theirs.weights, rtol=1e-12, atol=0)
    by_hand = (weights - 0.3 * gradient.delta.T @ gradient.pre / 4).numpy()
    by_hand = (by_hand + 0.12 * precision.numpy() * anchor.numpy()) / (1 + 0.12 * precision.numpy())
    np.testing.assert_allclose(ours.weights, by_hand, rtol=1e-12)


def test_at_the_end_of_a_task_curvature_adds_up_and_the_weights_are_the_anchor() -> None:
    state = LaplaceState(some(0, 3, 2), some(1, 3, 2).abs(), some(2, 3, 2))
    fisher = some(3, 3, 2).square()
    done = Laplace().end_task(state, fisher)
    torch.testing.assert_close(done.precision, state.precision + fisher)
    torch.testing.assert_close(done.anchor, state.weights)
    assert done.anchor is not done.weights  # which go on learning
    posterior = Laplace().posterior(done)
    torch.testing.assert_close(posterior.precision, done.precision)
    with pytest.raises(UserError, match="Fisher"):
        Laplace().end_task(state)


def test_three_tasks_with_quadratic_losses_end_at_the_exact_posterior() -> None:
    """Each task's log-likelihood is −½ Σ h (w − a)²: the posterior is normal, with Σh + p₀ and Σ h·a / (Σh + p₀)."""
    rule = Laplace(lr=0.2, prior_std=0.5)
    state = rule.init((3, 2), torch.Generator().manual_seed(0))
    state = LaplaceState(*(part.to(F64) for part in state))
    total, weighted = np.full((3, 2), 4.0), np.zeros((3, 2))
    for task in range(3):
        curvature, centre = 1000 + 500 * some(10 + task, 3, 2).abs(), some(20 + task, 3, 2)
        paced = rule.at(Pace(1, STEPS, EXAMPLES))
        for _ in range(4000):
            slope = curvature * (state.weights - centre) / (EXAMPLES * STEPS)  # the mean loss's
            delta = torch.eye(2, dtype=F64) @ slope.T  # two examples, so that delta' @ pre / 2 is the slope
            state = paced.update(state, gradient_of(delta * 2, torch.eye(2, dtype=F64)))
        state = paced.end_task(state, curvature)
        total += curvature.numpy()
        weighted += (curvature * centre).numpy()
        np.testing.assert_allclose(state.precision, total, rtol=1e-12)
        np.testing.assert_allclose(state.weights, weighted / total, rtol=1e-6)


def test_a_stream_learns_a_precision_where_inputs_fire() -> None:
    """Two tasks: synapses of inputs that never fire keep the prior's precision, others are surer than it."""
    images = torch.rand(80, 12, generator=torch.Generator().manual_seed(1)).numpy()
    images[:, 8:] = 0
    labels = np.arange(80) % 4
    data = Dataset.from_arrays(images, labels, time=6, seed=0)
    network = build(NetworkConfig(12, (9,), 4, threshold=0.3))
    done = run_stream(network, Laplace(), split_by_class(data), StreamConfig(coreset_share=0.2, seed=0))
    precision = done.states[0].precision
    prior = 12 * 0.1 / 0.3**2
    torch.testing.assert_close(precision[:, 8:], torch.full((9, 4), prior))
    assert bool((precision[:, :8] > prior).all())
    assert float(precision[:, :8].max()) > 2 * prior
