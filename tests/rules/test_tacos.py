"""TACOS: metaplasticity, reference weights and decay against a computation one synapse at a time (eqs. tacos-…)."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.rules import SGD, TACOS
from bayspike.rules.sgd import SGDState
from bayspike.rules.tacos import TACOSState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights

F64 = torch.float64
NEURONS, INPUTS, BATCH = 3, 2, 4


def some(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def coin(seed: int, *shape: int) -> Tensor:
    return (torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < 0.5).to(F64)


def gradient_at(t: int, fan_in: int = INPUTS) -> LocalGradient:
    weights = Weights(torch.zeros(NEURONS, fan_in, dtype=F64))
    delta, trace = some(100 + t, BATCH, NEURONS), some(200 + t, BATCH, fan_in).abs()
    return LocalGradient(delta, trace, weights, coin(300 + t, BATCH, INPUTS), coin(400 + t, BATCH, NEURONS))


def hand_state(fan_in: int = INPUTS) -> TACOSState:
    """Reference weights off the weights, some plasticity spent, rates on both sides of the threshold."""
    shape = (NEURONS, fan_in)
    return TACOSState(
        some(1, *shape),
        some(2, *shape),
        some(3, *shape).abs(),
        torch.linspace(0.1, 0.6, fan_in, dtype=F64),
        torch.tensor([0.2, 0.5, 0.7], dtype=F64),
    )


def by_hand(state: TACOSState, gradients: list[LocalGradient], rule: TACOS, recurrent: bool) -> list[np.ndarray]:
    """The paper's equations, synapse by synapse, all right-hand sides at time t."""
    w, ref, nu, pre_rate, post_rate = (part.numpy().copy() for part in state)
    for g in gradients:
        delta, trace, s_in, s_out = g.delta.numpy(), g.pre.numpy(), g.pre_spikes.numpy(), g.post_spikes.numpy()
        s_pre = np.concatenate([s_in, s_out], axis=1) if recurrent else s_in
        for j in range(len(pre_rate)):
            pre_rate[j] = rule.rate_memory * pre_rate[j] + (1 - rule.rate_memory) * s_pre[:, j].mean()
        for i in range(len(post_rate)):
            post_rate[i] = rule.rate_memory * post_rate[i] + (1 - rule.rate_memory) * s_out[:, i].mean()
        new_w, new_ref, new_nu = w.copy(), ref.copy(), nu.copy()
        for i in range(w.shape[0]):
            for j in range(w.shape[1]):
                factor = trace if rule.use_trace else s_pre
                per_example = [
                    rule.lr * delta[n, i] * factor[n, j] + rule.decay * (w[i, j] - ref[i, j]) * s_out[n, i]
                    for n in range(BATCH)
                ]
                new_w[i, j] = w[i, j] - math.exp(-abs(nu[i, j] * w[i, j])) * sum(per_example) / BATCH
                new_ref[i, j] = ref[i, j] + rule.reference_rate * (w[i, j] - ref[i, j])
                if pre_rate[j] > rule.rate_threshold and post_rate[i] > rule.rate_threshold:
                    new_nu[i, j] = nu[i, j] + rule.increment
        w, ref, nu = new_w, new_ref, new_nu
    return [w, ref, nu, pre_rate, post_rate]


@pytest.mark.parametrize("use_trace", [False, True], ids=["spikes", "traces"])
@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
def test_five_updates_equal_hand_computation(use_trace: bool, recurrent: bool) -> None:
    rule = TACOS(
        lr=0.3,
        decay=0.2,
        reference_rate=0.1,
        increment=0.05,
        rate_threshold=0.45,
        rate_memory=0.8,
        use_trace=use_trace,
    )
    fan_in = INPUTS + (NEURONS if recurrent else 0)
    gradients = [gradient_at(t, fan_in) for t in range(5)]
    expected = by_hand(hand_state(fan_in), gradients, rule, recurrent)
    start = hand_state(fan_in)
    grown = expected[2] - start.metaplasticity.numpy()
    assert 0 < (grown > 1e-9).sum() < grown.size  # some synapses passed the threshold, some did not
    state = start
    for gradient in gradients:
        state = rule.update(state, gradient)
    for name, ours, theirs in zip(state._fields, state, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=name)


def test_spent_synapses_hardly_move() -> None:
    rule, moved = TACOS(lr=0.3), []
    for nu in (0.0, 1.0, 10.0):
        state = hand_state()._replace(metaplasticity=torch.full((NEURONS, INPUTS), nu, dtype=F64))
        before = state.weights.clone()
        moved.append((rule.update(state, gradient_at(0)).weights - before).abs())
    torch.testing.assert_close(moved[1], moved[0] * torch.exp(-hand_state().weights.abs()))
    assert bool((moved[2] < moved[1]).all())


def test_weights_decay_towards_their_reference_only_where_the_neuron_fires() -> None:
    rule = TACOS(lr=0.0, decay=0.1, reference_rate=0.0, increment=0.0)
    state = hand_state()._replace(metaplasticity=torch.zeros(NEURONS, INPUTS, dtype=F64))
    before, reference = state.weights.clone(), state.reference.clone()
    fires = torch.tensor([1.0, 0.0, 1.0], dtype=F64).expand(BATCH, NEURONS)
    for _ in range(200):
        state = rule.update(state, gradient_at(0)._replace(post_spikes=fires))
    torch.testing.assert_close(state.weights[[0, 2]], reference[[0, 2]])
    assert torch.equal(state.weights[1], before[1])


def test_with_everything_off_it_is_gradient_descent() -> None:
    rule = TACOS(lr=0.3, decay=0.0, increment=0.0, use_trace=True)
    state = hand_state()._replace(metaplasticity=torch.zeros(NEURONS, INPUTS, dtype=F64))
    expected = SGD(lr=0.3).update(SGDState(state.weights.clone()), gradient_at(0)).weights
    torch.testing.assert_close(rule.update(state, gradient_at(0)).weights, expected)


def test_a_task_boundary_changes_nothing() -> None:
    state = hand_state()
    assert TACOS().end_task(state) is state


def test_start() -> None:
    state = TACOS(init_scale=2.0).init((40, 100), torch.Generator().manual_seed(0))
    assert float(state.weights.std()) == pytest.approx(0.2, rel=0.05)
    assert torch.equal(state.weights, state.reference)
    assert state.weights.data_ptr() != state.reference.data_ptr()
    assert not any(part.any() for part in state[2:])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lr", -1.0),
        ("decay", math.nan),
        ("increment", -1.0),
        ("rate_threshold", -0.1),
        ("init_scale", -1.0),
        ("reference_rate", 1.5),
        ("rate_memory", 1.0),
    ],
)
def test_bad_arguments_are_named(name: str, value: float) -> None:
    with pytest.raises(UserError, match=f"{name} must lie in"):
        TACOS(**{name: value})  # type: ignore[arg-type]
