"""The integer network against Lava's own trajectories and against integer arithmetic by hand."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayspike.errors import UserError
from bayspike.hardware.fixed_point import (
    FixedPointLayer,
    FixedPointNetwork,
    probabilities,
    run,
)

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("lava_*.npz"))


def load(path):
    arrays = np.load(path, allow_pickle=False)
    layers = []
    while f"weight_{len(layers)}" in arrays:
        index = len(layers)
        threshold, current_decay, voltage_decay, exponent = (int(c) for c in arrays[f"constants_{index}"])
        lateral = arrays[f"recurrent_{index}"][None] if f"recurrent_{index}" in arrays else None
        weight = arrays[f"weight_{index}"][None]
        layers.append(FixedPointLayer(weight, threshold, current_decay, voltage_decay, exponent, lateral))
    return FixedPointNetwork(tuple(layers)), arrays


def layer(weight, threshold=10, current_decay=4096, voltage_decay=4095, exponent=0):
    return FixedPointLayer(np.array(weight, np.int16), threshold, current_decay, voltage_decay, exponent)


def by_hand(one: FixedPointLayer, spikes):
    """One example, one member, Python integers and the words of the Loihi rules; no floats, no shortcuts."""
    current, voltage, own = [0] * one.neurons, [0] * one.neurons, [0] * one.neurons
    before = [0] * one.inputs
    rows = []

    def decay(x, d):
        return (1 if x >= 0 else -1) * ((abs(x) * (4096 - d)) >> 12)

    def dot(row, spikes):
        return sum(int(w) * s for w, s in zip(row, spikes, strict=True))

    def shift(x, e):
        return x << e if e >= 0 else x >> -e

    for now in spikes.tolist():
        fired = []
        for i in range(one.neurons):
            arriving = shift(dot(one.weight[0, i], before), one.weight_exponent)
            if one.recurrent is not None:
                arriving += shift(dot(one.recurrent[0, i], own), one.weight_exponent)
            u = decay(current[i], one.current_decay) + (arriving << 6)
            while u > 2**23:
                u -= 2**24
            while u <= -(2**23):
                u += 2**24
            v = min(max(decay(voltage[i], one.voltage_decay) + u, -(2**23) + 1), 2**23 - 1)
            fired.append(int(v > one.threshold << 6))
            current[i], voltage[i] = u, 0 if fired[-1] else v
        before, own = now, fired
        rows.append((fired, list(current), list(voltage)))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_bit_equals_lava(path):
    network, golden = load(path)
    for index, done in enumerate(run(network, golden["input"][:, None], trajectories=True)):
        np.testing.assert_array_equal(done.spikes[0, :, 0], golden[f"spikes_{index}"])
        np.testing.assert_array_equal(done.current[0, :, 0], golden[f"current_{index}"])
        np.testing.assert_array_equal(done.voltage[0, :, 0], golden[f"voltage_{index}"])


def test_the_fixtures_hold_the_hard_cases():
    """Wrapping, saturating, silent and spiking layers are all there, else the test above proves little."""
    assert len(FIXTURES) >= 7
    loaded = [load(path) for path in FIXTURES]
    runs = [done for network, golden in loaded for done in run(network, golden["input"][:, None])]
    assert sum(done.wraps for done in runs) > 50
    assert sum(done.saturations for done in runs) > 500
    assert sum(bool(done.spikes.any()) for done in runs) > 10


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    exponent=st.integers(-8, 7),
    current_decay=st.integers(1, 4096),
    voltage_decay=st.integers(0, 4095),
    threshold=st.integers(0, 2**17 - 1),
    recurrent=st.booleans(),
)
def test_equals_integers_by_hand(seed, exponent, current_decay, voltage_decay, threshold, recurrent):
    rng = np.random.default_rng(seed)
    weight = (2 * rng.integers(-128, 128, (1, 5, 7))).astype(np.int16)
    lateral = (2 * rng.integers(-128, 128, (1, 5, 5))).astype(np.int16) if recurrent else None
    one = FixedPointLayer(weight, threshold, current_decay, voltage_decay, exponent, lateral)
    spikes = (rng.random((25, 7)) < 0.5).astype(np.uint8)
    (done,) = run(FixedPointNetwork((one,)), spikes[:, None], trajectories=True)
    fired, current, voltage = by_hand(one, spikes)
    np.testing.assert_array_equal(done.spikes[0, :, 0], fired)
    np.testing.assert_array_equal(done.current[0, :, 0], current)
    np.testing.assert_array_equal(done.voltage[0, :, 0], voltage)


def test_threshold_is_strict_and_input_waits_one_step():
    """64·10 does not pass a threshold of 10, 64·12 does, one step after the input spike."""
    network = FixedPointNetwork((layer([[[10], [12]]]),))
    (done,) = run(network, np.array([1, 0, 0], np.uint8).reshape(3, 1, 1))
    np.testing.assert_array_equal(done.spikes[0, :, 0], [[0, 0], [0, 1], [0, 0]])


def test_members_and_batch_run_as_they_would_alone(monkeypatch):
    """Also across blocks of time, made tiny here."""
    rng = np.random.default_rng(5)
    shapes = ((3, 8, 10), (3, 6, 8))
    weights = [(2 * rng.integers(-100, 100, shape)).astype(np.int16) for shape in shapes]
    network = FixedPointNetwork(tuple(FixedPointLayer(w, 300, 900, 300) for w in weights))
    spikes = (rng.random((30, 4, 10)) < 0.4).astype(np.uint8)
    whole = run(network, spikes, trajectories=True)
    assert whole[-1].spikes.any()
    monkeypatch.setattr("bayspike.hardware.fixed_point._BLOCK_BYTES", 1)
    for member in range(3):
        for example in range(4):
            alone = run(network.member(member), spikes[:, example : example + 1], trajectories=True)
            for a, b in zip(whole, alone, strict=True):
                np.testing.assert_array_equal(a.spikes[member, :, example], b.spikes[0, :, 0])
                np.testing.assert_array_equal(a.voltage[member, :, example], b.voltage[0, :, 0])


def test_a_layer_too_wide_for_float32_is_still_exact():
    """65,800 weights of 254 and one of 2 sum to a number that float32 does not hold."""
    weight = np.full((1, 1, 65_801), 254, np.int16)
    weight[0, 0, -1] = 2
    (done,) = run(FixedPointNetwork((layer(weight, exponent=-8),)), np.ones((2, 1, 65_801), np.uint8))
    assert done.largest_input == (65_800 * 254 + 2) >> 8
    (odd,) = run(FixedPointNetwork((layer(weight),)), np.ones((2, 1, 65_801), np.uint8))
    assert odd.largest_input == 65_800 * 254 + 2


def test_current_is_a_register_of_24_bits():
    """An input of 262,144·64 = 2²⁴ in one step comes back to where it started."""
    weight = np.zeros((1, 1, 1033), np.int16)
    weight[0, 0, :1032] = 254
    weight[0, 0, 1032] = 16
    (done,) = run(FixedPointNetwork((layer(weight),)), np.ones((2, 1, 1033), np.uint8), trajectories=True)
    assert done.largest_input == 2**18
    assert done.current[0, 1, 0, 0] == 0
    assert done.wraps == 1


def test_probabilities_do_not_depend_on_the_pieces(monkeypatch):
    rng = np.random.default_rng(6)
    weight = (2 * rng.integers(-100, 100, (2, 8, 10))).astype(np.int16)
    readout = rng.normal(size=(3, 8)).astype(np.float32)
    network = FixedPointNetwork((FixedPointLayer(weight, 300, 900, 300),), (readout,))
    spikes = (rng.random((20, 7, 10)) < 0.4).astype(np.uint8)
    whole = probabilities(network, spikes)
    assert whole.shape == (2, 7, 3)
    monkeypatch.setattr("bayspike.hardware.fixed_point._SPIKES_AT_ONCE", 2 * 20 * 8 * 3)
    np.testing.assert_allclose(probabilities(network, spikes), whole, rtol=1e-12)


def test_probabilities_are_the_mean_softmax_of_the_readout():
    """One neuron that spikes at the second of three steps only: logits (1, 0), then (0, 0); the first step is deaf."""
    network = FixedPointNetwork((layer([[[12]], [[2]]]),), (np.array([[1.0], [0.0]], np.float32),))
    answer = probabilities(network, np.array([1, 0, 0], np.uint8).reshape(3, 1, 1))
    sure = np.exp(1) / (np.exp(1) + 1)
    np.testing.assert_allclose(answer[0, 0], [(0.5 + sure) / 2, (1.5 - sure) / 2])
    np.testing.assert_allclose(answer[1, 0], [0.5, 0.5])


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"weight": [[[3]]]}, "even"),
        ({"weight": [[[256]]]}, "254"),
        ({"threshold": 2**17}, "threshold"),
        ({"current_decay": 0}, "current_decay"),
        ({"voltage_decay": 4096}, "voltage_decay"),
        ({"exponent": 8}, "weight_exponent"),
    ],
)
def test_what_the_chip_cannot_hold_is_refused(change, word):
    with pytest.raises(UserError, match=word):
        layer(**({"weight": [[[2]]]} | change))


def test_bad_spikes_are_refused():
    network = FixedPointNetwork((layer([[[2]]]),))
    with pytest.raises(UserError, match="binary"):
        run(network, np.full((3, 1, 1), 2))
    with pytest.raises(UserError, match=r"\(time, batch, 1\)"):
        run(network, np.ones((3, 1)))
