"""Elastic weight consolidation: its step and its minimum against the paper's penalty, task by task (eq. ewc)."""

import math

import pytest
import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.posteriors.distributions import BinaryPoint, Point
from bayspike.posteriors.grid import Grid
from bayspike.rules import EWC, SGD
from bayspike.rules.ewc import EWCState
from bayspike.rules.sgd import SGDState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights

F64 = torch.float64
SHAPE = (3, 2)


def some(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def gradient_of(delta: Tensor, pre: Tensor) -> LocalGradient:
    return LocalGradient(delta, pre, Weights(torch.zeros(SHAPE, dtype=F64)), pre, delta)


def past(rule: EWC) -> tuple[EWCState, list[tuple[Tensor, Tensor]]]:
    """A state after three tasks, and what is to be remembered of each: Fisher information and weights."""
    state = EWCState(some(0, *SHAPE), torch.zeros(SHAPE, dtype=F64), torch.zeros(SHAPE, dtype=F64))
    tasks = []
    for k in range(3):
        state = state._replace(weights=some(k + 1, *SHAPE))
        tasks.append((some(k + 10, *SHAPE).square(), state.weights.clone()))
        state = rule.end_task(state, tasks[-1][0])
    return state._replace(weights=some(5, *SHAPE)), tasks


def penalty(w: Tensor, tasks: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Σ_k (w − w^(k))ᵀ F^(k) (w − w^(k)), one task after the other."""
    flat = [(w - old).flatten() @ torch.diag(fisher.flatten()) @ (w - old).flatten() for fisher, old in tasks]
    return torch.stack(flat).sum()


def derivative(w: Tensor, tasks: list[tuple[Tensor, Tensor]]) -> Tensor:
    leaf = w.clone().requires_grad_()
    return torch.autograd.grad(penalty(leaf, tasks), leaf)[0]


def test_a_small_step_goes_down_the_gradient_of_loss_and_penalty() -> None:
    lr, strength = 1e-7, 0.3
    rule = EWC(lr=lr, strength=strength)
    state, tasks = past(rule)
    delta, pre, before = some(6, 4, 3), some(7, 4, 2), state.weights.clone()
    after = rule.update(state, gradient_of(delta, pre)).weights
    loss_gradient = torch.stack([torch.outer(d, x) for d, x in zip(delta, pre, strict=True)]).mean(0)
    expected = -(loss_gradient + strength * derivative(before, tasks))
    torch.testing.assert_close((after - before) / lr, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("lr", [0.1, 5.0, 1e4])
def test_a_step_of_any_size_is_the_implicit_one(lr: float) -> None:
    """w' solves w' = w − η·(g + α·∇R(w')), the penalty's gradient at the new place: it cannot overshoot."""
    strength = 0.3
    rule = EWC(lr=lr, strength=strength)
    state, tasks = past(rule)
    delta, pre, before = some(6, 4, 3), some(7, 4, 2), state.weights.clone()
    after = rule.update(state, gradient_of(delta, pre)).weights
    expected = before - lr * (delta.T @ pre / 4 + strength * derivative(after, tasks))
    torch.testing.assert_close(after, expected, rtol=1e-8, atol=1e-8 * lr)


def test_it_settles_where_loss_and_penalty_balance() -> None:
    """One weight a neuron, loss a/2·(w − b)² with the past F·(w − w₁)²: w = (a·b + 2αF·w₁)/(a + 2αF)."""
    a, b, fisher, old, alpha = 0.8, torch.tensor([[1.0], [-2.0]]), torch.tensor([[0.5], [3.0]]), 0.25, 0.4
    rule = EWC(lr=0.2, strength=alpha)
    state = rule.end_task(EWCState(torch.full((2, 1), old), torch.zeros(2, 1), torch.zeros(2, 1)), fisher)
    for _ in range(300):
        delta = a * (state.weights - b).T
        state = rule.update(state, LocalGradient(delta, torch.ones(1, 1), Weights(state.weights), delta, delta))
    torch.testing.assert_close(state.weights, (a * b + 2 * alpha * fisher * old) / (a + 2 * alpha * fisher))


def test_online_keeps_one_anchor_and_forgets_by_a_factor() -> None:
    rule = EWC(online=True, decay=0.5)
    state, tasks = past(rule)
    torch.testing.assert_close(state.importance, tasks[0][0] / 4 + tasks[1][0] / 2 + tasks[2][0])
    torch.testing.assert_close(state.pull, state.importance * tasks[2][1])
    only = [(state.importance, tasks[2][1])]
    rule = EWC(lr=2.0, strength=0.3, online=True, decay=0.5)
    before = state.weights.clone()
    after = rule.update(state, gradient_of(torch.zeros(1, 3, dtype=F64), torch.zeros(1, 2, dtype=F64))).weights
    torch.testing.assert_close(after, before - 2.0 * 0.3 * derivative(after, only))


def test_all_tasks_are_remembered_in_two_matrices() -> None:
    """S and A tell the penalty of any number of tasks up to a constant."""
    state, tasks = past(EWC())
    one, other = some(20, *SHAPE), some(21, *SHAPE)

    def short(w: Tensor) -> Tensor:
        return (state.importance * w * w - 2 * state.pull * w).sum()

    torch.testing.assert_close(short(one) - short(other), penalty(one, tasks) - penalty(other, tasks))


def test_without_a_past_or_without_strength_it_is_gradient_descent() -> None:
    delta, pre = some(6, 4, 3), some(7, 4, 2)
    plain = SGD(lr=0.3).update(SGDState(some(0, *SHAPE)), gradient_of(delta, pre)).weights
    fresh = EWCState(some(0, *SHAPE), torch.zeros(SHAPE, dtype=F64), torch.zeros(SHAPE, dtype=F64))
    assert torch.equal(EWC(lr=0.3).update(fresh, gradient_of(delta, pre)).weights, plain)
    rule = EWC(lr=0.3, strength=0.0)
    state = past(rule)[0]._replace(weights=some(0, *SHAPE))
    assert torch.equal(rule.update(state, gradient_of(delta, pre)).weights, plain)


def test_binary_and_rounded_weights_are_what_the_network_sees() -> None:
    state = EWC().init(SHAPE, torch.Generator().manual_seed(0))
    binary = EWC(binary=True)
    assert binary.drive(state, torch.Generator()).matrix.unique().tolist() == [-1, 1]
    assert isinstance(binary.posterior(state), BinaryPoint)
    assert isinstance(EWC().posterior(state), Point)
    grid = Grid(0.25)
    assert torch.equal(EWC(grid=grid).drive(state, torch.Generator()).matrix, grid.round(state.weights))
    assert torch.equal(EWC().drive(state, torch.Generator()).matrix, state.weights)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(UserError, match="EWC needs the Fisher information of the task that ends"):
        EWC().end_task(EWC().init(SHAPE, torch.Generator()))
    for name, value in (("lr", -1.0), ("strength", math.nan), ("decay", 1.5), ("init_scale", -1.0)):
        with pytest.raises(UserError, match=f"{name} must lie in"):
            EWC(**{name: value})  # type: ignore[arg-type]
