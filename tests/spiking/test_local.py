"""The three-factor gradient against per-example autograd.

Autograd sees the spike as Θ(u) + σ(u) − stop(σ(u)): the value of the step, the derivative of a smooth one. Traces and
refractory terms are constants to it (they come from an independent simulation), which is what makes the rule local.
"""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from bayspike.errors import UserError
from bayspike.spiking.local import LocalGradient, local_error, local_gradient, one_hot_targets
from bayspike.spiking.network import Layer, NetworkConfig, Weights, build, network_step
from bayspike.spiking.neurons import Neuron, Reset
from bayspike.spiking.surrogates import SURROGATES
from srm_reference import Constants, run_network

F64 = torch.float64
TIME, BATCH = 8, 5


def tent(x: Tensor) -> Tensor:
    """The integral of max(0, 1 − |x|)."""
    inner = 0.5 + x - 0.5 * x * x.abs()
    return torch.where(x.abs() < 1, inner, (x > 0).to(x.dtype))


SMOOTH_STEPS: dict[str, Callable[[Tensor], Tensor]] = {
    "sigmoid": torch.sigmoid,
    "fast_sigmoid": lambda x: 0.5 * (1 + x / (1 + x.abs())),
    "triangle": tent,
    "boxcar": lambda x: torch.clamp(x + 0.5, 0, 1),
}


def per_example_gradients(
    weights: Tensor,
    pre: Tensor,
    refractory: Tensor,
    targets: Tensor,
    readout: Tensor,
    smooth: Callable[[Tensor], Tensor],
) -> Tensor:
    """`(batch, neurons, pre)`, each the derivative of one example's local cross-entropy."""

    def loss(w: Tensor, pre_n: Tensor, refractory_n: Tensor, target_n: Tensor) -> Tensor:
        distance = w @ pre_n - refractory_n - 1.0
        step = smooth(4.0 * distance)
        spikes = (distance > 0).to(F64) + step - step.detach()
        return -(target_n * torch.log_softmax(readout @ spikes, dim=0)).sum()

    return vmap(grad(loss), in_dims=(None, 0, 0, 0))(weights, pre, refractory, targets)


@pytest.mark.parametrize("hidden", [(4,), (6, 5, 4)], ids=["one layer", "three layers"])
@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
@pytest.mark.parametrize("reset", ["refractory", "zero", "subtract"])
@pytest.mark.parametrize("name", SURROGATES)
def test_moments_equal_per_example_autograd(name: str, reset: Reset, recurrent: bool, hidden: tuple[int, ...]) -> None:
    config = NetworkConfig(7, hidden, 3, membrane_decay=0.8, reset=reset, surrogate=name, recurrent=recurrent)
    network = build(config, F64)
    generator = torch.Generator().manual_seed(5)
    spikes = (torch.rand(TIME, BATCH, 7, generator=generator) < 0.5).to(F64)
    weights = [1.5 * torch.randn(layer.shape, generator=generator, dtype=F64) + 0.5 for layer in network.layers]
    targets = one_hot_targets(torch.tensor([0, 2, 1, 1, 0]), 3, F64)
    simulated = run_network([w.numpy() for w in weights], spikes.numpy(), Constants(reset=reset, recurrent=recurrent))

    states, active = network.start(BATCH), 0
    for t in range(TIME):
        drives = [Weights(matrix) for matrix in weights]
        steps = network_step(network, states, spikes[t], drives)
        states = tuple(done.state for done in steps)
        arriving = spikes[t]
        for index, (layer, done) in enumerate(zip(network.layers, steps, strict=True)):
            gradient, probabilities = local_gradient(layer, done, drives[index], arriving, targets)
            arriving = done.spikes
            pre, potential = (torch.from_numpy(x[t]) for x in (simulated[index].pre, simulated[index].potential))
            refractory = pre @ weights[index].T - potential
            expected = per_example_gradients(
                weights[index], pre, refractory, targets, layer.readout, SMOOTH_STEPS[name]
            )
            torch.testing.assert_close(gradient.mean(), expected.mean(0), atol=1e-11, rtol=1e-9)
            torch.testing.assert_close(gradient.mean_square(), expected.square().mean(0), atol=1e-11, rtol=1e-9)
            logits = torch.from_numpy(simulated[index].spikes[t]) @ layer.readout.T
            torch.testing.assert_close(probabilities, logits.softmax(1))
            active += int((expected != 0).sum())
    assert active > 100  # enough of the compared numbers are not nought


def example_gradient(batch: int = 4) -> LocalGradient:
    generator = torch.Generator().manual_seed(1)
    delta = torch.randn(batch, 3, generator=generator, dtype=F64)
    pre = torch.rand(batch, 2, generator=generator, dtype=F64)
    return LocalGradient(delta, pre, Weights(torch.zeros(3, 2, dtype=F64)), pre, delta)


@pytest.mark.parametrize("batch", [1, 4])
def test_moments_by_hand(batch: int) -> None:
    gradient = example_gradient(batch)
    outer = np.stack([np.outer(d, x) for d, x in zip(gradient.delta.numpy(), gradient.pre.numpy(), strict=True)])
    np.testing.assert_allclose(gradient.mean(), outer.mean(0), atol=1e-14)
    np.testing.assert_allclose(gradient.mean_square(), (outer**2).mean(0), atol=1e-14)
    buffer = torch.full((3, 2), 7.0, dtype=F64)
    gradient.add_mean_to(buffer, keep=0.5, rate=3.0)
    np.testing.assert_allclose(buffer, 3.5 + 3 * outer.mean(0), atol=1e-14)
    buffer = torch.full((3, 2), 7.0, dtype=F64)
    gradient.squared().add_mean_to(buffer, keep=0.5, rate=3.0)
    np.testing.assert_allclose(buffer, 3.5 + 3 * (outer**2).mean(0), atol=1e-14)


def test_taking_a_moment_changes_nothing() -> None:
    gradient = example_gradient()
    delta, pre = gradient.delta.clone(), gradient.pre.clone()
    gradient.mean()
    gradient.mean_square()
    assert torch.equal(gradient.delta, delta)
    assert torch.equal(gradient.pre, pre)


def test_error_signal_by_hand() -> None:
    """Two classes, two neurons, B the unit matrix: logits are the spikes, so both agree or differ by one."""
    layer = Layer(1, 2, Neuron(), torch.eye(2, dtype=F64))
    error = local_error(
        layer, torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=F64), one_hot_targets(torch.tensor([0, 1]), 2, F64)
    )
    up = 1 / (1 + np.exp(-1))
    np.testing.assert_allclose(error.probabilities, [[up, 1 - up], [0.5, 0.5]])
    np.testing.assert_allclose(error.error, [[up - 1, 1 - up], [0.5, -0.5]])


def test_the_local_gradient_carries_the_spikes_of_both_sides() -> None:
    network = build(NetworkConfig(3, (2,), 2), F64)
    layer, drive = network.layers[0], Weights(torch.full((2, 3), 100.0, dtype=F64))
    spikes_in = torch.tensor([[1.0, 0.0, 1.0]], dtype=F64)
    first = network_step(network, network.start(1), spikes_in, [drive])[0]
    second = network_step(network, [first.state], 1 - spikes_in, [drive])[0]
    gradient, _ = local_gradient(layer, second, drive, 1 - spikes_in, one_hot_targets(torch.tensor([0]), 2, F64))
    assert gradient.pre_spikes.tolist() == [[0, 1, 0]]
    assert gradient.post_spikes.tolist() == [[1, 1]]
    assert (gradient.pre > 0).tolist() == [[True, False, True]]  # the spikes of the step before
    assert gradient.drive is drive


def test_labels_outside_the_readout_are_refused() -> None:
    with pytest.raises(UserError, match=r"labels must lie in 0 … 2, .* range from -1 to 1"):
        one_hot_targets(torch.tensor([1, -1]), 3, F64)
    with pytest.raises(UserError, match=r"range from 0 to 3"):
        one_hot_targets(torch.tensor([0, 3]), 3, F64)
    assert one_hot_targets(torch.tensor([2, 0]), 3, F64).tolist() == [[0, 0, 1], [1, 0, 0]]
