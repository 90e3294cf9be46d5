"""Artefacts: what is in them, that they verify, and that a broken one does not."""

import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
from random_committee import random_weights
from safetensors.numpy import load_file, save_file

from bayspike.errors import UserError
from bayspike.hardware import lava, nir
from bayspike.hardware.cuba import from_network
from bayspike.hardware.export import export, read_manifest, verify
from bayspike.hardware.files import load_network
from bayspike.hardware.fixed_point import probabilities, run
from bayspike.hardware.rounding import to_fixed_point
from bayspike.posteriors.grid import grid_for
from bayspike.spiking.network import NetworkConfig, build, unroll

FORMATS = ["fixed-point", "nir", "netx"]


@pytest.fixture(params=FORMATS)
def artefact(request, network, spikes, tmp_path):
    weights = random_weights(network, 3, seed=41)
    export(network, weights, tmp_path / "out", request.param, spikes=spikes[:, :4], metadata={"run": "a"})
    return tmp_path / "out"


def test_it_verifies_and_says_what_it_is(artefact):
    done = verify(artefact)
    manifest = json.loads((artefact / "manifest.json").read_text())
    assert done.members == manifest["members"] == 3
    assert done.differing == 0
    assert done.spikes > 100
    assert manifest["metadata"] == {"run": "a"}
    assert manifest["neurons"] == [20, 15]
    on_disk = {path.name for path in artefact.iterdir()} - {"manifest.json"}
    assert on_disk == set(manifest["files"])
    for name, entry in manifest["files"].items():
        assert hashlib.sha256((artefact / name).read_bytes()).hexdigest() == entry["sha256"]
    assert not list(artefact.parent.glob(".out*"))


def test_the_files_hold_the_committee(network, spikes, tmp_path):
    """Each format, read back, is the committee member for member."""
    weights = random_weights(network, 2, seed=42)
    for name in FORMATS:
        export(network, weights, tmp_path / name, name, spikes=spikes[:, :2])
    committee = from_network(network, weights)
    integers = load_network(tmp_path / "fixed-point" / "network.safetensors")
    expected = to_fixed_point(committee).network
    plain = to_fixed_point(committee, use_exponent=False).network
    np.testing.assert_array_equal(probabilities(integers, spikes), probabilities(expected, spikes))
    for member in range(2):
        net = lava.read(tmp_path / "netx" / f"member_{member:03d}.net")
        for ours, theirs in zip(run(plain.member(member), spikes), run(net, spikes), strict=True):
            np.testing.assert_array_equal(ours.spikes, theirs.spikes)
        graph = nir.read(tmp_path / "nir" / f"member_{member:03d}.nir")
        np.testing.assert_array_equal(graph.layers[1].weight[0], committee.layers[1].weight[member])


def test_the_self_test_is_what_the_float_network_says(network, spikes, tmp_path):
    weights = random_weights(network, 2, seed=43)
    export(network, weights, tmp_path / "a", "nir", spikes=spikes)
    test = load_file(tmp_path / "a" / "selftest.safetensors")
    np.testing.assert_array_equal(np.unpackbits(test["input"], axis=-1)[..., :30], spikes)
    answers = np.unpackbits(test["spikes"], axis=-1)[..., :15]
    for member in range(2):
        last = unroll(network, torch.from_numpy(spikes).double(), [w[member] for w in weights])[-1]
        np.testing.assert_array_equal(answers[member], last.numpy())
        mean = torch.softmax(last @ network.layers[-1].readout.T, dim=-1)[2:].mean(dim=0)  # two layers: two deaf steps
        np.testing.assert_allclose(test["probabilities"][member], mean.numpy(), rtol=1e-6)


def test_the_integer_manifest_has_scale_budget_and_precision(network, spikes, tmp_path):
    weights = random_weights(network, 2, seed=44)
    labels = np.arange(8) % 4
    manifest = export(network, weights, tmp_path / "a", "fixed-point", spikes=spikes, labels=labels)
    assert len(manifest["quantisation"]) == 2
    assert all(0 < one["relative_weight_error"] < 0.02 for one in manifest["quantisation"])
    assert manifest["budget"]["bytes"] == sum(w.numel() for w in weights)
    assert manifest["budget"]["cores"] == 4  # small layers: one core each, two members
    assert manifest["budget"]["joules"] > 0
    assert 0 <= manifest["precision"]["fixed_ece"] <= 1


def test_a_network_trained_on_its_grid_is_exported_without_rounding(spikes, tmp_path):
    network = build(NetworkConfig(30, (20, 15), 4))
    weights = random_weights(network, 2, seed=45)
    grids = [grid_for(w) for w in weights]
    manifest = export(
        network,
        [grid.round(w) for grid, w in zip(grids, weights, strict=True)],
        tmp_path / "a",
        "fixed-point",
        spikes=spikes,
        steps=[grid.step for grid in grids],
    )
    assert all(one["relative_weight_error"] < 1e-6 for one in manifest["quantisation"])


def test_a_flipped_bit_is_found(artefact):
    name = next(iter(json.loads((artefact / "manifest.json").read_text())["files"]))
    content = bytearray((artefact / name).read_bytes())
    content[-1] ^= 1
    (artefact / name).write_bytes(bytes(content))
    with pytest.raises(UserError, match=f"{name} differs from its checksum"):
        verify(artefact)


def test_a_missing_file_is_found(artefact):
    (artefact / "selftest.safetensors").unlink()
    with pytest.raises(UserError, match="missing"):
        verify(artefact)


def test_wrong_weights_with_right_checksums_fail_the_self_test(network, spikes, tmp_path):
    """Someone swaps the network of another run in and mends the checksum."""
    for name, seed in (("a", 46), ("b", 47)):
        export(network, random_weights(network, 1, seed), tmp_path / name, "fixed-point", spikes=spikes)
    shutil.copy(tmp_path / "b" / "network.safetensors", tmp_path / "a")
    manifest = json.loads((tmp_path / "a" / "manifest.json").read_text())
    other = json.loads((tmp_path / "b" / "manifest.json").read_text())
    manifest["files"]["network.safetensors"] = other["files"]["network.safetensors"]
    (tmp_path / "a" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="fails its self-test"):
        verify(tmp_path / "a")


def test_nothing_is_overwritten_unasked(network, spikes, tmp_path):
    weights = random_weights(network, 1, seed=48)
    export(network, weights, tmp_path / "a", "nir", spikes=spikes)
    before = (tmp_path / "a" / "manifest.json").read_bytes()
    with pytest.raises(UserError, match="exists"):
        export(network, weights, tmp_path / "a", "fixed-point", spikes=spikes)
    assert (tmp_path / "a" / "manifest.json").read_bytes() == before
    export(network, weights, tmp_path / "a", "fixed-point", spikes=spikes, force=True)
    assert read_manifest(tmp_path / "a")["format"] == "fixed-point"
    assert not (tmp_path / "a" / "member_000.nir").exists()
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "precious").write_text("x")
    with pytest.raises(UserError, match="not an exported artefact"):
        export(network, weights, tmp_path / "home", "nir", spikes=spikes, force=True)
    assert (tmp_path / "home" / "precious").read_text() == "x"
    assert not list(tmp_path.glob(".*"))


def test_a_failed_export_leaves_nothing(network, spikes, tmp_path):
    weights = random_weights(network, 1, seed=49)
    with pytest.raises(UserError, match="plain JSON"):
        export(network, weights, tmp_path / "a", "nir", spikes=spikes, metadata={"bad": object()})
    with pytest.raises(UserError, match="binary"):
        export(network, weights, tmp_path / "a", "nir", spikes=spikes * 3)
    with pytest.raises(UserError, match="must be one of"):
        export(network, weights, tmp_path / "a", "onnx", spikes=spikes)
    assert list(tmp_path.iterdir()) == []


def test_the_same_network_gives_the_same_bytes(network, spikes, tmp_path):
    weights = random_weights(network, 2, seed=50)
    for name in FORMATS:
        first = export(network, weights, tmp_path / f"{name}-1", name, spikes=spikes)
        second = export(network, weights, tmp_path / f"{name}-2", name, spikes=spikes)
        assert first == second


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"inputs": 31 + 8}, "does not hold 'input'"),
        ({"neurons": []}, "not a manifest"),
        ({"version": 99}, "version 99"),
        ({"format": "pickle"}, "not a manifest"),
        ({"members": 0}, "not a manifest"),
        ({"files": {"../../etc/passwd": {"sha256": "0"}}}, "outside its directory"),
        ({"files": {}}, "does not list"),
    ],
)
def test_hostile_manifests_are_refused(artefact, change, word):
    manifest = json.loads((artefact / "manifest.json").read_text()) | change
    (artefact / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=word):
        verify(artefact)


def test_other_broken_directories(tmp_path):
    with pytest.raises(UserError, match=r"no manifest\.json"):
        verify(tmp_path)
    (tmp_path / "manifest.json").write_bytes(b"\xff{")
    with pytest.raises(UserError, match="cannot be read"):
        verify(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(UserError, match="not a manifest"):
        verify(tmp_path)
    (tmp_path / "bad.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0notjson!")
    with pytest.raises(UserError, match="cannot be read as safetensors"):
        load_network(tmp_path / "bad.safetensors")
    save_file({"weight_0": np.ones((1, 2, 2), np.float32), "constants_0": np.ones(4, np.int32)}, tmp_path / "w")
    with pytest.raises(UserError, match="not int8"):
        load_network(tmp_path / "w")
