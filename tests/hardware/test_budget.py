"""Counts by hand, placements worked out on paper."""

import numpy as np
import pytest
from random_committee import random_weights

from bayspike.hardware.budget import ChipLimits, budget
from bayspike.hardware.cuba import from_network
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork, run
from bayspike.hardware.rounding import to_fixed_point
from bayspike.hardware.wiring import Wiring


def dense(neurons, inputs, members=1, recurrent=False):
    lateral = np.full((members, neurons, neurons), 2, np.int16) if recurrent else None
    return FixedPointLayer(np.full((members, neurons, inputs), 2, np.int16), 100, 4096, 0, recurrent=lateral)


def price(*layers, **limits):
    network = FixedPointNetwork(layers)
    spikes = np.zeros((1, 1, network.inputs), np.uint8)
    return budget(network, spikes, run(network, spikes), ChipLimits(**limits))


def test_operations_are_counted_one_by_one(network, spikes):
    """Against four loops over members, layers, time and neurons."""
    fixed = to_fixed_point(from_network(network, random_weights(network, 2, seed=21))).network
    spikes = spikes[:12, :2]
    runs = run(fixed, spikes)
    count = 0
    for member in range(2):
        below = spikes
        for layer, done in zip(fixed.layers, runs, strict=True):
            own = done.spikes[member]
            for *_, j in np.argwhere(below):
                count += np.count_nonzero(layer.weight[member, :, j])
            if layer.recurrent is not None:
                for *_, j in np.argwhere(own):
                    count += np.count_nonzero(layer.recurrent[member, :, j])
            below = own
    answer = budget(fixed, spikes, runs)
    assert count > 1000
    assert answer.synaptic_operations == count / 2
    assert answer.neuron_updates == 12 * 2 * (20 + 15)
    assert answer.joules == pytest.approx(count / 2 * 23.6e-12 + 12 * 2 * 35 * 81e-12)
    assert answer.spikes == sum(done.spikes.sum() for done in runs) / 2


def test_mnist_layer_on_loihi():
    """784 bytes a neuron: 167 neurons fill 128 KiB, so 400 neurons take 3 cores; ten members take 30."""
    answer = price(dense(400, 784, members=10))
    assert answer.layers[0].cores == 3
    assert (answer.cores, answer.chips) == (30, 1)
    assert answer.bytes == answer.synapses == 10 * 400 * 784


def test_more_than_one_chip():
    """20 inputs: 3 neurons in 64 bytes, so 30 neurons take 10 cores; three members do not fit a chip of 16."""
    answer = price(dense(30, 20, members=3), synapse_bytes_per_core=64, cores=16)
    assert (answer.cores, answer.chips) == (30, 2)


def test_recurrent_synapses_take_memory():
    """100 + 300 bytes a neuron: 327 fit a core."""
    answer = price(dense(300, 100, recurrent=True))
    assert answer.layers[0].synapses == 300 * 400
    assert answer.cores == 1


def test_axons_that_leave_a_core_limit_its_neurons():
    """The upper layer has 8 cores (4 bytes a neuron, 8 bytes a core), so 16 axons let a core hold two neurons."""
    answer = price(dense(4, 2), dense(16, 4), synapse_bytes_per_core=8, output_axons_per_core=16)
    assert [layer.cores for layer in answer.layers] == [2, 8]


def test_lateral_axons_reach_every_core_of_the_layer():
    """8 axons: 4 neurons on 2 cores would need 2·(1 + 2) = 6, on 1 core 4·(1 + 1) = 8 axons."""
    assert price(dense(4, 2, recurrent=True), output_axons_per_core=8).cores == 1
    assert price(dense(4, 2, recurrent=True), output_axons_per_core=7).cores == 2
    assert price(dense(4, 2, recurrent=True), output_axons_per_core=1).cores is None


def test_a_layer_with_too_many_inputs_fits_no_core():
    answer = price(dense(2, 5000))
    assert answer.cores is None
    assert answer.chips is None
    assert "5000 inputs" in answer.layers[0].problem


def test_a_dense_layer_on_pooled_inputs_has_a_synapse_from_every_input_of_a_window():
    """7×7 pixels in windows of 3×3: six by six are seen, 36 of them, by each of five neurons that see each other too;
    four sums a neuron stand in its matrix. With one of a neuron's sums cut, nine of its synapses go."""
    wiring = Wiring(7, 7, 1, planes=True, pools=(3,))
    lateral = np.full((1, 5, 5), 2, np.int16)
    layer = FixedPointLayer(np.full((1, 5, 4), 2, np.int16), 100, 4096, 0, recurrent=lateral, wiring=wiring)
    network = FixedPointNetwork((layer,))
    spikes = np.zeros((1, 1, 49), np.uint8)
    kept = np.ones((5, 4 + 5), np.bool_)
    for there in (None, [kept]):
        found = budget(network, spikes, run(network, spikes), kept=there).layers[0]
        assert (found.synapses, found.cut) == (5 * (36 + 5), 0)
    kept[0, 1] = False
    found = budget(network, spikes, run(network, spikes), kept=[kept]).layers[0]
    assert (found.synapses, found.cut) == (5 * (36 + 5) - 9, 9)
