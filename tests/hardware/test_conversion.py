"""From a trained network to plain arrays and to integers."""

import numpy as np
import pytest
import torch
from random_committee import random_weights

from bayspike.errors import UserError
from bayspike.hardware.cuba import CubaLayer, CubaNetwork, from_network
from bayspike.hardware.fixed_point import run
from bayspike.hardware.rounding import to_fixed_point
from bayspike.posteriors.grid import grid_for
from bayspike.spiking.filters import Resonator
from bayspike.spiking.network import NetworkConfig, build, unroll


def simulate(network: CubaNetwork, member, spikes):
    """The textbook neuron, current first, written out: the reference for spikes of every layer."""
    out = []
    for layer in network.layers:
        current = voltage = np.zeros((spikes.shape[1], layer.neurons))
        before, own, emitted = np.zeros(spikes.shape[1:]), current, []
        for now in spikes:
            arriving = before @ layer.weight[member].T
            if layer.recurrent is not None:
                arriving = arriving + own @ layer.recurrent[member].T
            current = layer.synapse_decay * current + arriving
            voltage = layer.membrane_decay * voltage + current
            own = (voltage > layer.threshold).astype(float)
            voltage = voltage * (1 - own)
            emitted.append(own)
            before = now
        spikes = np.stack(emitted)
        out.append(spikes)
    return out


def test_the_core_network_is_the_textbook_neuron(network, spikes):
    weights = random_weights(network, 2, seed=3)
    cuba = from_network(network, weights)
    for member in range(2):
        core = unroll(network, torch.from_numpy(spikes).double(), [w[member] for w in weights])
        for ours, textbook in zip(core, simulate(cuba, member, spikes), strict=True):
            assert 0.02 < textbook.mean() < 0.9
            np.testing.assert_array_equal(ours.numpy(), textbook)


def test_rounding_is_to_the_nearest_even_level():
    layer = CubaLayer(np.array([[[0.5, -1.0, 0.001, 0.0031]]]), 0.5, 0.9, threshold=1.0)
    rounded = to_fixed_point(CubaNetwork((layer,), ()))
    assert rounded.scales == (254.0,)
    # 127 lies between 126 and 128 (ties go to the even half); 0.25 → 0; 0.79 → 0
    np.testing.assert_array_equal(rounded.network.layers[0].weight[0, 0], [128, -254, 0, 0])
    assert rounded.network.layers[0].current_decay == 2048
    assert rounded.network.layers[0].voltage_decay == 410  # 409.6
    # 254 lies below the window, which begins at 256: one shift to the left
    assert (rounded.network.layers[0].threshold, rounded.network.layers[0].weight_exponent) == (508, 1)
    error = np.sqrt((0.5 - 128 / 254) ** 2 + 0.001**2 + 0.0031**2)
    assert rounded.weight_errors[0] == pytest.approx(error / np.sqrt(1.25 + 0.001**2 + 0.0031**2))


def test_small_weights_take_a_negative_exponent():
    layer = CubaLayer(np.full((1, 1, 1), 0.001), 0.5, 0.9, threshold=1.0)
    fixed = to_fixed_point(CubaNetwork((layer,), ())).network.layers[0]
    assert (fixed.weight[0, 0, 0], fixed.threshold, fixed.weight_exponent) == (254, 254_000 / 16, -4)
    plain = to_fixed_point(CubaNetwork((layer,), ()), use_exponent=False).network.layers[0]
    assert (plain.weight[0, 0, 0], plain.threshold, plain.weight_exponent) == (64, 64_000, 0)


@pytest.mark.parametrize("use_exponent", [True, False])
def test_binary_weights_lose_nothing(use_exponent):
    network = build(NetworkConfig(784, (50,), 10, binary=True))
    signs = torch.sign(torch.randn(3, 50, 784, generator=torch.Generator().manual_seed(0)))
    rounded = to_fixed_point(from_network(network, [signs]), use_exponent=use_exponent)
    weight = rounded.network.layers[0].weight
    assert rounded.weight_errors[0] < 1e-12
    np.testing.assert_array_equal(np.sign(weight), signs.numpy())
    assert len(np.unique(np.abs(weight))) == 1


def test_weights_trained_on_a_grid_arrive_unrounded():
    network = build(NetworkConfig(30, (20,), 4))
    (weights,) = random_weights(network, 2, seed=4)
    grid = grid_for(weights)
    on_grid = grid.round(weights)
    on_grid[0, 0, 0] = -128 * grid.step
    gain = network.layers[0].neuron.filter.gain
    rounded = to_fixed_point(from_network(network, [on_grid]), steps=[grid.step * gain])
    assert rounded.weight_errors[0] < 1e-12
    levels = torch.round(on_grid / grid.step).numpy()
    np.testing.assert_array_equal(rounded.network.layers[0].weight, 2 * levels)
    with pytest.raises(UserError, match="do not fit 8 bits"):
        to_fixed_point(from_network(network, [2 * on_grid]), steps=[grid.step * gain])


def test_integers_do_what_their_values_say(network, spikes):
    """The textbook neuron with the integers read as numbers differs only where truncation tips a spike.

    In a recurrent layer a tipped spike tips others.
    """
    weights = random_weights(network, 1, seed=5)
    rounded = to_fixed_point(from_network(network, weights))
    as_numbers = CubaNetwork(
        tuple(
            CubaLayer(
                layer.weight / scale,
                1 - layer.current_decay / 4096,
                1 - layer.voltage_decay / 4096,
                layer.threshold / (scale * 2.0**layer.weight_exponent),
                None if layer.recurrent is None else layer.recurrent / scale,
            )
            for layer, scale in zip(rounded.network.layers, rounded.scales, strict=True)
        ),
        (),
    )
    for integer, number in zip(run(rounded.network, spikes), simulate(as_numbers, 0, spikes), strict=True):
        assert number.sum() > 100
        share = 0.05 if network.layers[0].recurrent else 0.01
        assert (integer.spikes[0] != number).sum() <= share * number.sum()


def test_a_layer_without_weights_is_silent_not_an_error():
    layer = CubaLayer(np.zeros((1, 3, 4)), 0.5, 0.9, threshold=1.0)
    rounded = to_fixed_point(CubaNetwork((layer,), ()))
    assert not run(rounded.network, np.ones((5, 1, 4), np.uint8))[0].spikes.any()


@pytest.mark.parametrize(("reset", "word"), [("refractory", "exponential refractory"), ("subtract", "subtraction")])
def test_other_resets_are_refused_with_layer_reason_and_remedy(reset, word):
    network = build(NetworkConfig(5, (4,), 2, reset=reset))
    with pytest.raises(UserError, match=rf"layer 0 .*{word}.*train with reset='zero'"):
        from_network(network, [torch.zeros(4, 5)])


def test_other_filters_are_refused():
    network = build(NetworkConfig(5, (4,), 2, reset="refractory"), filter=Resonator())
    with pytest.raises(UserError, match=r"layer 0 .*Resonator.*DoubleExponential"):
        from_network(network, [torch.zeros(4, 5)])


def test_wrong_weights_are_refused():
    network = build(NetworkConfig(5, (4, 3), 2))
    with pytest.raises(UserError, match="one tensor for each of the 2 layers"):
        from_network(network, [torch.zeros(4, 5)])
    with pytest.raises(UserError, match=r"layer 1 must have the shape \(members, 3, 4\)"):
        from_network(network, [torch.zeros(4, 5), torch.zeros(4, 5)])
    with pytest.raises(UserError, match="layer 1 has 2 members, but layer 0 has 3"):
        from_network(network, [torch.zeros(3, 4, 5), torch.zeros(2, 3, 4)])
