"""Live comparison with Lava: runs wherever lava-nc (and lava-dl for netx) can be imported, skips elsewhere.

    python3.10 -m pip install lava-nc==0.10.0 "numpy<2" h5py safetensors pytest
    python3.10 -m pip install --no-deps lava-dl==0.6.0
    python3.10 -m pytest -s tests/hardware/test_lava_live.py

Needs neither torch nor an installed bayspike (put `src` on PYTHONPATH).
"""

import importlib.util

import numpy as np
import pytest

from bayspike.hardware import lava
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork, run

pytest.importorskip("lava.proc.lif.process", reason="lava-nc is not installed")

from lava_reference import run_lava, run_netx


def random_network(seed, exponents, recurrent):
    rng = np.random.default_rng(seed)
    sizes, layers = (40, 24, 16, 10), []
    for inputs, neurons, exponent in zip(sizes, sizes[1:], exponents, strict=False):
        weight = (2 * rng.integers(-128, 128, (1, neurons, inputs))).astype(np.int16)
        lateral = (2 * rng.integers(-60, 60, (1, neurons, neurons))).astype(np.int16) if recurrent else None
        threshold = max(1, round(float(rng.integers(300, 900)) * 2.0**exponent))
        decays = int(rng.integers(1, 4097)), int(rng.integers(0, 2000))
        layers.append(FixedPointLayer(weight, threshold, *decays, exponent, lateral))
    spikes = (rng.random((50, sizes[0])) < 0.3).astype(np.uint8)
    return FixedPointNetwork(tuple(layers)), spikes


def as_dictionaries(network):
    return [
        {
            "weight": layer.weight[0],
            "recurrent": None if layer.recurrent is None else layer.recurrent[0],
            "threshold": layer.threshold,
            "current_decay": layer.current_decay,
            "voltage_decay": layer.voltage_decay,
            "weight_exponent": layer.weight_exponent,
        }
        for layer in network.layers
    ]


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_every_bit_equals_lava(seed, recurrent):
    network, spikes = random_network(seed, [(0, 0, 0), (-4, -1, -8), (3, 1, 7), (7, -2, 0)][seed], recurrent)
    emitted, current, voltage = run_lava(as_dictionaries(network), spikes)
    for index, done in enumerate(run(network, spikes[:, None], trajectories=True)):
        np.testing.assert_array_equal(done.spikes[0, :, 0], emitted[index])
        np.testing.assert_array_equal(done.current[0, :, 0], current[index])
        np.testing.assert_array_equal(done.voltage[0, :, 0], voltage[index])
        print(f"layer {index}: {3 * emitted[index].size} values equal, {int(emitted[index].sum())} spikes")


@pytest.mark.skipif(importlib.util.find_spec("lava.lib") is None, reason="lava-dl is not installed")
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_netx_loads_the_file_and_spikes_alike(seed, recurrent, tmp_path):
    network, spikes = random_network(seed, (0, 0, 0), recurrent)
    lava.write(tmp_path / "a.net", network)
    emitted = run_netx(tmp_path / "a.net", spikes, len(network.layers))
    for index, done in enumerate(run(network, spikes[:, None])):
        np.testing.assert_array_equal(done.spikes[0, :, 0], emitted[index])
        print(f"layer {index}: {int(emitted[index].sum())} spikes equal")
    assert emitted[0].any()
