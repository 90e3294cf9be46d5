"""HDF5 files that were made to do harm: circles, links to elsewhere, data in other files, numbers that do not fit."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bayspike.errors import UserError
from bayspike.hardware import hdf5, lava, nir
from bayspike.hardware.cuba import CubaLayer, CubaNetwork
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork

h5py = pytest.importorskip("h5py")
pytest.importorskip("nir")


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    path = tmp_path / "a.nir"
    nir.write(path, CubaNetwork((CubaLayer(np.ones((1, 2, 2)), 0.5, 0.9, 1.0),), ()))
    return path


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "a.net"
    lava.write(path, FixedPointNetwork((FixedPointLayer(np.array([[[2, -4]]], np.int16), 300, 2048, 410),)))
    return path


def a_circle(file: Any) -> None:
    file["node/again"] = file.require_group("node")


def a_link_within(file: Any) -> None:
    file["node/soft"] = h5py.SoftLink("/node")


def a_link_to_another_file(file: Any) -> None:
    file["node/secret"] = h5py.ExternalLink("/etc/passwd", "/")


def data_in_another_file(file: Any) -> None:
    file.create_dataset("node/secret", (8,), "u1", external=[("/etc/passwd", 0, 8)])


def a_view_of_other_files(file: Any) -> None:
    layout = h5py.VirtualLayout((4,), "f8")
    layout[:] = h5py.VirtualSource("elsewhere.h5", "x", (4,))
    file.create_virtual_dataset("node/secret", layout)


def objects_of_python(file: Any) -> None:
    file["node/odd"] = np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")])


def too_deep(file: Any) -> None:
    file.create_group("node/" + "/".join("abcdefghijklmnopq"))


@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (a_circle, "circle"),
        (a_link_within, "link to elsewhere"),
        (a_link_to_another_file, "link to elsewhere"),
        (data_in_another_file, "other files"),
        (a_view_of_other_files, "other files"),
        (objects_of_python, "neither numbers nor words"),
        (too_deep, "too deeply"),
    ],
)
def test_what_leads_elsewhere_is_refused_before_it_is_opened(harm: Any, sentence: str, graph: Path, net: Path) -> None:
    for path, read in ((graph, nir.read), (net, lava.read)):
        with h5py.File(path, "a") as file:
            harm(file)
        with pytest.raises(UserError, match=sentence) as refused:
            read(path)
        assert path.name in str(refused.value)


def test_a_file_that_keeps_hdf5_busy_is_given_up(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5, "SECONDS", 0.01)
    monkeypatch.setattr(hdf5, "SECONDS_EACH", 0.0)
    begun = time.monotonic()
    with pytest.raises(UserError, match="takes more than"):
        nir.read(graph)
    assert time.monotonic() - begun < 30


def test_a_crash_of_hdf5_is_one_sentence(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hdf5.sys, "executable", "/bin/false")
    with pytest.raises(UserError, match="makes the HDF5 library fail"):
        nir.read(graph)


@pytest.mark.parametrize("value", [65550, -65522, 256, 1.5, np.nan, np.inf])
def test_a_weight_that_is_none_of_the_chip_is_refused(value: float, net: Path) -> None:
    with h5py.File(net, "a") as file:
        del file["layer/1/weight"]
        file["layer/1/weight"] = np.array([[value, 2]])
    with pytest.raises(UserError, match=r"a\.net.*a weight is not a whole number in \[-256, 254\]"):
        lava.read(net)


@pytest.mark.parametrize("name", ["iDecay", "vDecay", "vThMant"])
@pytest.mark.parametrize("value", [np.inf, np.nan, 1.5, -1, 2**40, [1, 2]])
def test_a_constant_that_is_none_of_the_chip_is_refused(name: str, value: Any, net: Path) -> None:
    with h5py.File(net, "a") as file:
        del file[f"layer/1/neuron/{name}"]
        file[f"layer/1/neuron/{name}"] = value
    with pytest.raises(UserError, match=r"a\.net is not"):
        lava.read(net)
