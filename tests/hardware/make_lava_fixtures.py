"""Make the golden trajectories in `fixtures/` with lava-nc's fixed-point models.

    python3.10 -m pip install lava-nc==0.10.0 "numpy<2"
    python3.10 tests/hardware/make_lava_fixtures.py

Each file holds the integer network, the input spikes, and spikes, current and voltage of every layer after
every time-step, as Lava computed them. This script does not use bayspike: the answers are independent.
"""

from pathlib import Path

import numpy as np
from lava_reference import run_lava

FIXTURES = Path(__file__).parent / "fixtures"
FIELDS = ("threshold", "current_decay", "voltage_decay", "weight_exponent")


def layer(rng, neurons, inputs, low=-256, high=254, recurrent=0, threshold=600, decays=(1200, 400), exponent=0):
    """Random even weights in low … high; `recurrent` is the largest lateral weight (0: none)."""
    lateral = 2 * rng.integers(-recurrent // 2, recurrent // 2 + 1, (neurons, neurons)) if recurrent else None
    return {
        "weight": 2 * rng.integers(low // 2, high // 2 + 1, (neurons, inputs)),
        "recurrent": lateral,
        "threshold": threshold,
        "current_decay": decays[0],
        "voltage_decay": decays[1],
        "weight_exponent": exponent,
    }


def cases(rng):
    """name: (layers, input rate)."""
    return {
        "three_layers": ([layer(rng, 16, 24), layer(rng, 12, 16), layer(rng, 6, 12)], 0.3),
        "recurrent": (
            [layer(rng, 14, 20, recurrent=120), layer(rng, 10, 14, recurrent=60, exponent=-2, threshold=150)],
            0.3,
        ),
        # floor of a negative sum differs from truncation: −3 >> 1 is −2
        "exponents": (
            [
                layer(rng, 10, 15, exponent=-5, threshold=10),
                layer(rng, 10, 10, exponent=3, threshold=3000),
                layer(rng, 8, 10, exponent=-8, threshold=0),
            ],
            0.4,
        ),
        # nearly no decay and strong inputs: currents wrap around, voltages saturate, both ways
        "wrap_and_saturate": (
            [
                layer(rng, 8, 64, low=160, threshold=131071, decays=(1, 0)),
                layer(rng, 8, 8, low=-256, high=0, threshold=131071, decays=(1, 1), exponent=7),
                layer(rng, 6, 8, low=-256, high=254, threshold=20000, decays=(40, 9), exponent=6),
            ],
            0.7,
        ),
        "negative_wrap": ([layer(rng, 8, 64, low=-256, high=-160, threshold=5000, decays=(1, 3))], 0.8),
        "extreme_decays": (
            [
                layer(rng, 8, 12, decays=(4096, 4095), threshold=100),
                layer(rng, 8, 8, decays=(4095, 0), threshold=900),
                layer(rng, 8, 8, decays=(1, 4095), threshold=2000),
            ],
            0.4,
        ),
        "inhibitory_only": ([layer(rng, 6, 10, low=-256, high=0), layer(rng, 4, 6, low=0)], 0.5),
    }


def main():
    rng = np.random.default_rng(20230817)
    time = 60
    for name, (layers, rate) in cases(rng).items():
        spikes = (rng.random((time, layers[0]["weight"].shape[1])) < rate).astype(np.uint8)
        emitted, current, voltage = run_lava(layers, spikes)
        arrays = {"input": spikes}
        for index, one in enumerate(layers):
            arrays[f"weight_{index}"] = one["weight"].astype(np.int16)
            if one["recurrent"] is not None:
                arrays[f"recurrent_{index}"] = one["recurrent"].astype(np.int16)
            arrays[f"constants_{index}"] = np.array([one[field] for field in FIELDS], np.int32)
            arrays[f"spikes_{index}"] = emitted[index]
            arrays[f"current_{index}"] = current[index].astype(np.int32)
            arrays[f"voltage_{index}"] = voltage[index].astype(np.int32)
        np.savez_compressed(FIXTURES / f"lava_{name}.npz", **arrays)
        rates = ", ".join(f"{one.mean():.2f}" for one in emitted)
        peaks = ", ".join(f"{np.abs(u).max()}" for u in current)
        print(f"{name}: rates {rates}; largest |u| {peaks}")


if __name__ == "__main__":
    main()
