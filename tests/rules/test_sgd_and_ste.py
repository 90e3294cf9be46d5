"""One update of the two frequentist rules, written out by hand on a layer of 3 neurons and 2 inputs."""

import numpy as np
import pytest
import torch

from bayspike.errors import UserError
from bayspike.posteriors.grid import Grid
from bayspike.rules import SGD, STE
from bayspike.rules.sgd import SGDState
from bayspike.rules.ste import STEState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights

F64 = torch.float64
START = np.array([[0.5, -0.25], [0.0, 1.5], [-2.0, 0.125]])
DELTA = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, -1.5]])  # two examples
PRE = np.array([[0.2, 0.4], [1.0, 0.6]])


def gradient(weights: torch.Tensor) -> LocalGradient:
    delta, pre = torch.from_numpy(DELTA), torch.from_numpy(PRE)
    return LocalGradient(delta.clone(), pre.clone(), Weights(weights), pre, delta)


def mean_gradient() -> np.ndarray:
    total = np.zeros((3, 2))
    for n in range(2):
        for i in range(3):
            for j in range(2):
                total[i, j] += DELTA[n, i] * PRE[n, j]
    return total / 2


def test_sgd_update_is_the_papers() -> None:
    start = torch.from_numpy(START.copy())
    after = SGD(lr=0.3).update(SGDState(start), gradient(start))
    np.testing.assert_allclose(after.weights, START - 0.3 * mean_gradient(), atol=1e-14)


def test_ste_updates_the_latent_weights_and_uses_their_signs() -> None:
    latent = torch.from_numpy(START.copy())
    rule = STE(lr=0.3)
    drive = rule.drive(STEState(latent), torch.Generator())
    assert drive.matrix.tolist() == [[1, -1], [1, 1], [-1, 1]]
    after = rule.update(STEState(latent), gradient(drive.matrix))
    expected = START - 0.3 * mean_gradient()
    np.testing.assert_allclose(after.latent, expected, atol=1e-14)
    np.testing.assert_array_equal(rule.posterior(after).mode(), np.where(expected >= 0, 1, -1))


def test_sgd_on_the_grid_shows_rounded_weights_and_updates_the_unrounded() -> None:
    rule = SGD(lr=0.3, grid=Grid(0.1))
    state = SGDState(torch.tensor([[0.26, -0.34]], dtype=F64))
    drive = rule.drive(state, torch.Generator())
    np.testing.assert_allclose(drive.matrix, [[0.3, -0.3]])
    one = LocalGradient(
        torch.ones(1, 1, dtype=F64), torch.full((1, 2), 0.01, dtype=F64), drive, drive.matrix, drive.matrix
    )
    np.testing.assert_allclose(rule.update(state, one).weights, [[0.257, -0.343]])  # steps finer than the grid add up


@pytest.mark.parametrize("rule", [SGD(init_scale=2.0), STE(init_scale=2.0)])
def test_the_start_has_the_scale_asked_for_whatever_the_fan_in(rule: SGD | STE) -> None:
    for fan_in in (50, 800):
        (start,) = rule.init((400, fan_in), torch.Generator().manual_seed(0))
        assert float(start.std()) == pytest.approx(2 / np.sqrt(fan_in), rel=0.03)


@pytest.mark.parametrize("kind", [SGD, STE])
def test_the_end_of_a_task_changes_nothing(kind: type[SGD] | type[STE]) -> None:
    state = kind().init((3, 2), torch.Generator().manual_seed(0))
    assert kind().end_task(state) == state


@pytest.mark.parametrize("kind", [SGD, STE])
def test_bad_arguments_are_named(kind: type[SGD] | type[STE]) -> None:
    with pytest.raises(UserError, match=r"lr must lie in \[0, inf\), but is -0\.1"):
        kind(lr=-0.1)
    with pytest.raises(UserError, match=r"init_scale must lie in \[0, inf\), but is nan"):
        kind(init_scale=float("nan"))
