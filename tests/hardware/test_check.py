"""Networks that rounding broke in a known way, and the warning each must cause."""

import numpy as np
import pytest
import torch
from random_committee import random_weights

from bayspike.hardware.check import compare_precision, float_run, precision, warnings
from bayspike.hardware.cuba import CubaLayer, CubaNetwork, from_network
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork, probabilities, run
from bayspike.hardware.rounding import Rounded, to_fixed_point
from bayspike.predict.predictors import Committee
from bayspike.spiking.network import NetworkConfig, build, unroll


def complaints(weight, threshold, current_decay=4096, voltage_decay=4095, exponent=0, time=20, **more):
    layer = FixedPointLayer(np.array([weight], np.int16), threshold, current_decay, voltage_decay, exponent)
    network = FixedPointNetwork((layer,))
    done = run(network, np.ones((time, 1, layer.inputs), np.uint8))
    return warnings(Rounded(network, (1.0,), (0.0,)), done, **more)


def test_a_healthy_network_is_not_blamed(network, spikes):
    cuba = from_network(network, random_weights(network, 2, seed=31))
    rounded = to_fixed_point(cuba)
    rates = [float(layer.mean()) for layer in float_run(cuba, spikes)]
    assert warnings(rounded, run(rounded.network, spikes), rates) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"weight": [[2]], "threshold": 100}, ["layer 0 is silent", "threshold"]),
        ({"weight": [[100]] + [[2]] * 19, "threshold": 20}, ["95% of the neurons are silent"]),
        ({"weight": [[100]], "threshold": 1}, ["spikes at nearly every step", "threshold"]),
        ({"weight": [[254] * 9], "threshold": 131071, "current_decay": 1, "exponent": 5}, ["wrapped around"]),
        ({"weight": [[-254] * 9], "threshold": 9, "voltage_decay": 0, "exponent": 5}, ["clipped at 24 bits"]),
        ({"weight": [[254] * 200], "threshold": 9000}, ["beyond 16 bits"]),
        ({"weight": [[0] * 19 + [254]], "threshold": 9}, ["95% of the weights zero"]),
        ({"weight": [[30]], "threshold": 20, "float_rates": [0.2]}, ["before rounding"]),
    ],
)
def test_each_fault_is_named_with_a_knob(arguments, words):
    text = " ".join(complaints(**arguments))
    for word in words:
        assert word in text


def test_outliers_silence_a_layer_and_the_check_says_so(spikes):
    """One huge weight sets the scale; all others round to zero: the float network spikes, the chip does not."""
    weight = np.full((1, 5, 30), 0.05)
    weight[0, 0, 0] = -40.0
    cuba = CubaNetwork((CubaLayer(weight, 0.5, 0.9, threshold=1.0),), ())
    rounded = to_fixed_point(cuba)
    text = " ".join(warnings(rounded, run(rounded.network, spikes), [0.5]))
    assert "silent" in text
    assert "of the weights zero" in text
    assert "before rounding" in text


def test_float_run_is_the_core_network(network, spikes):
    weights = random_weights(network, 2, seed=32)
    exact = float_run(from_network(network, weights), spikes)
    for member in range(2):
        core = unroll(network, torch.from_numpy(spikes).double(), [w[member] for w in weights])
        for ours, theirs in zip(exact, core, strict=True):
            np.testing.assert_array_equal(ours[member], theirs.numpy())


def test_precision_by_hand():
    """Four examples: float right on 3, integer on 2; they decide alike on 3."""
    exact = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    integer = np.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7], [0.6, 0.4]])
    answer = precision(exact, integer, np.array([0, 0, 1, 1]))
    assert (answer.float_accuracy, answer.fixed_accuracy, answer.same_decisions) == (0.75, 0.5, 0.75)
    assert answer.float_ece == pytest.approx((0.1 + 0.2 + 0.3 + 0.6) / 4)
    assert answer.fixed_ece == pytest.approx((0.1 + 0.8 + 0.3 + 0.6) / 4)


def test_binary_committees_decide_alike(spikes):
    """±1 weights lose nothing on the grid, so only decays and threshold are rounded."""
    network = build(NetworkConfig(30, (60,), 10, binary=True, threshold=2.0))
    generator = torch.Generator().manual_seed(0)
    cuba = from_network(network, [torch.sign(torch.randn(3, 60, 30, generator=generator))])
    answer = compare_precision(cuba, to_fixed_point(cuba), spikes)
    assert answer.same_decisions == 1.0
    assert answer.float_accuracy is None


def test_integers_are_as_sure_as_floats_where_rounding_changes_hardly_a_spike(spikes):
    """±1 weights, decays of a half and a whole threshold fall on the chip's grid. Two of twelve steps are deaf."""
    spikes = spikes[:12]
    network = build(NetworkConfig(30, (40, 20), 10, binary=True, threshold=1.0, synapse_decay=0.5, membrane_decay=0.5))
    generator = torch.Generator().manual_seed(0)
    weights = [torch.sign(torch.randn(2, *layer.shape, generator=generator)) for layer in network.layers]
    cuba = from_network(network, weights)
    integer = probabilities(to_fixed_point(cuba).network, spikes).mean(axis=0)
    exact = Committee(network, weights).predict(torch.from_numpy(spikes)).probabilities[-1].numpy()
    assert exact.max() > 0.3  # not all uniform
    np.testing.assert_allclose(integer, exact, atol=0.01)
