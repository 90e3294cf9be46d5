"""Lava's `.net` files: what is written, read back, refused. netx itself loads them in `test_lava_live.py`."""

import h5py
import numpy as np
import pytest

from bayspike.errors import UserError
from bayspike.hardware import lava
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork


def layer(weight, exponent=0, recurrent=None):
    lateral = None if recurrent is None else np.array([recurrent], np.int16)
    return FixedPointLayer(np.array([weight], np.int16), 300, 2048, 410, exponent, lateral)


def test_the_layout_is_the_one_netx_reads(tmp_path):
    """Names, shapes and types as lava-dl's loader asks for them."""
    upper = layer([[2, -4], [6, 8]], recurrent=[[0, 2], [-2, 0]])
    lava.write(tmp_path / "a.net", FixedPointNetwork((layer([[2, -4, 6], [8, 10, -12]]), upper)))
    with h5py.File(tmp_path / "a.net") as file:
        assert [file[f"layer/{i}/type"][0] for i in range(3)] == [b"input", b"dense", b"dense_rec"]
        assert file["layer/0/shape"][()].tolist() == [3]
        assert file["layer/1/weight"][()].tolist() == [[2, -4, 6], [8, 10, -12]]
        assert file["layer/1/inFeatures"][()] == 3
        assert file["layer/1/outFeatures"][()] == 2
        assert file["layer/2/weight_rec"][()].tolist() == [[0, 2], [-2, 0]]
        neuron = file["layer/1/neuron"]
        assert neuron["type"][0] == b"CUBA"
        assert [int(neuron[key][()]) for key in ("iDecay", "vDecay", "vThMant", "refDelay")] == [2048, 410, 300, 1]


def test_round_trip(tmp_path):
    network = FixedPointNetwork((layer([[2, -4]]), layer([[254], [-256]], recurrent=[[2, 0], [0, -2]])))
    lava.write(tmp_path / "a.net", network)
    back = lava.read(tmp_path / "a.net")
    for before, after in zip(network.layers, back.layers, strict=True):
        np.testing.assert_array_equal(before.weight, after.weight)
        assert (before.recurrent is None) == (after.recurrent is None)
        for name in ("threshold", "current_decay", "voltage_decay", "weight_exponent"):
            assert getattr(before, name) == getattr(after, name)


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (layer([[2]], exponent=-3), "layer 0 has the weight exponent -3.*use_exponent=False"),
        (layer([[-256, -2]]), "layer 0 .*−255"),
        (layer([[0, -2]]), "layer 0 has no positive weight"),
        (layer([[0, 0]]), "layer 0 has no positive weight"),
    ],
)
def test_what_netx_would_misread_is_refused(one, sentence, tmp_path):
    with pytest.raises(UserError, match=sentence):
        lava.write(tmp_path / "a.net", FixedPointNetwork((one,)))
    assert not (tmp_path / "a.net").exists()


def test_broken_files_are_one_clear_sentence(tmp_path):
    path = tmp_path / "a.net"
    path.write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"a\.net is not a \.net file"):
        lava.read(path)
    lava.write(path, FixedPointNetwork((layer([[2, -4]]),)))
    with h5py.File(path, "a") as file:
        del file["layer/1/neuron/vThMant"]
    with pytest.raises(UserError, match=r"a\.net is not a \.net file"):
        lava.read(path)
    with h5py.File(path, "w") as file:
        file["layer/0/type"] = np.array([b"conv"])
    with pytest.raises(UserError, match=r"a\.net is not a \.net file"):
        lava.read(path)
