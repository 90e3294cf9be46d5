"""Cut synapses: not in the files, not in the budget; and an artefact that holds them again is refused."""

import hashlib
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from random_committee import random_weights

from bayspike.errors import UserError
from bayspike.hardware import lava, nir
from bayspike.hardware.budget import ChipLimits, budget
from bayspike.hardware.cuba import from_network
from bayspike.hardware.export import export, verify
from bayspike.hardware.files import load_network, save_network
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork, run
from bayspike.hardware.rounding import to_fixed_point
from bayspike.posteriors.distributions import Gaussian
from bayspike.posteriors.pruning import prune


def pruned_weights(network, share, members=3):
    """A committee of a pruned Gaussian posterior, wide enough to spike."""
    means = random_weights(network, 1, seed=7)
    posteriors = [Gaussian(mean[0], torch.full_like(mean[0], 25.0)) for mean in means]
    generator = torch.Generator().manual_seed(3)
    return [each.sample(members, generator) for each in prune(posteriors, share)]


@pytest.mark.parametrize("to", ["fixed-point", "nir", "netx"])
def test_every_format_holds_what_is_left_and_nothing_more(network, spikes, tmp_path, to):
    manifest = export(network, pruned_weights(network, 0.5), tmp_path / "out", to, spikes=spikes[:, :3])
    expected = [layer.neurons * layer.pre - int(0.5 * layer.neurons * layer.pre) for layer in network.layers]
    assert manifest["kept_synapses"] == expected
    assert verify(tmp_path / "out").spikes > 100
    for index in range(len(network.layers)):
        if to == "fixed-point":
            parts = [load_network(tmp_path / "out" / "network.safetensors").layers[index]]
        else:
            read, ending = (nir.read, "nir") if to == "nir" else (lava.read, "net")
            parts = [read(tmp_path / "out" / f"member_{k:03d}.{ending}").layers[index] for k in range(3)]
        for part in parts:
            there = np.count_nonzero(part.weight[0]) + (
                0 if part.recurrent is None else np.count_nonzero(part.recurrent[0])
            )
            assert there <= expected[index]
            assert there > 0.8 * expected[index]  # a few are rounded to zero
    dense = export(network, random_weights(network, 2, seed=7), tmp_path / "all", to, spikes=spikes[:, :3])
    assert "kept_synapses" not in dense


def test_files_with_more_synapses_than_were_kept_are_refused(network, spikes, tmp_path):
    """Even with the right checksum: one cut synapse comes back, from an input that is silent in the self-test."""
    weights, quiet = pruned_weights(network, 0.5), spikes[:, :3].copy()
    row, column = np.argwhere((weights[0][:, :, :30] == 0).all(dim=0).numpy())[0]
    quiet[:, :, column] = 0
    out = tmp_path / "out"
    manifest = export(network, weights, out, "fixed-point", spikes=quiet)
    file = out / "network.safetensors"
    fixed = load_network(file)
    manifest["kept_synapses"][0] = int(fixed.layers[0].weight.any(axis=0).sum()) + (
        0 if fixed.layers[0].recurrent is None else int(fixed.layers[0].recurrent.any(axis=0).sum())
    )  # what rounding left of them, so that one more is too many
    (out / "manifest.json").write_text(json.dumps(manifest))
    verify(out)
    changed = fixed.layers[0].weight.copy()
    changed[:, row, column] = 2
    file.unlink()
    save_network(file, FixedPointNetwork((replace(fixed.layers[0], weight=changed), *fixed.layers[1:]), fixed.readouts))
    manifest["files"][file.name]["sha256"] = hashlib.sha256(file.read_bytes()).hexdigest()
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match="was pruned to"):
        verify(out)
    for nonsense in ("many", [1], [1.5, 2], [-1, 0]):
        (out / "manifest.json").write_text(json.dumps({**manifest, "kept_synapses": nonsense}))
        with pytest.raises(UserError, match="not a manifest"):
            verify(out)


def test_the_budget_by_hand():
    """Two cores of two neurons each: 3 + 1 and 2 + 0 synapses of 6 inputs, one of which nobody listens to.

    A listed synapse takes 8 bits and one for which of two neurons: 4 of them 36 bits, 2 of them 18, so 5 and 3 bytes,
    where all twelve of a core would take 12.
    """
    there = np.zeros((4, 6), bool)
    there[0, :3], there[1, 3], there[2, :2] = True, True, True
    weight = np.where(there, 2, 0).astype(np.int16)[None]
    network = FixedPointNetwork((FixedPointLayer(weight, 100, 4096, 0),))
    spikes = np.zeros((5, 2, 6), np.uint8)
    spikes[0, 0, 0] = spikes[2, 1, 0] = spikes[3, 1, 3] = spikes[4, 0, 5] = 1
    runs = run(network, spikes)
    found = budget(network, spikes, runs, ChipLimits(synapse_bytes_per_core=6), kept=[there])
    (layer,) = found.layers
    assert (layer.synapses, layer.cut, layer.cores, layer.bytes) == (6, 18, 2, 8)
    assert found.synapses == 6
    assert found.synaptic_operations == (2 + 2 + 1 + 0) / 2  # input 0 has two synapses left, 3 one, 5 none
    four_axons = budget(network, spikes, runs, ChipLimits(input_axons_per_core=4), kept=[there])
    assert four_axons.layers[0].cores == 1
    assert budget(network, spikes, runs, ChipLimits(input_axons_per_core=3), kept=[there]).cores is None
    dense = budget(network, spikes, runs, ChipLimits(synapse_bytes_per_core=6))
    assert (dense.layers[0].synapses, dense.layers[0].bytes, dense.layers[0].cores) == (24, 24, 4)


def test_a_list_is_kept_only_where_it_is_shorter():
    """128 neurons: 8 + 7 bits a synapse, so that with 40 % cut all of them, zeros included, take less."""
    random = np.random.default_rng(0)
    for share, listed in ((0.4, False), (0.9, True)):
        there = random.random((128, 50)) >= share
        weight = np.where(there, 2, 0).astype(np.int16)[None]
        network = FixedPointNetwork((FixedPointLayer(weight, 100, 4096, 0),))
        spikes = np.zeros((1, 1, 50), np.uint8)
        found = budget(network, spikes, run(network, spikes), kept=[there]).layers[0]
        assert found.bytes == (math.ceil(15 * there.sum() / 8) if listed else 128 * 50)


def test_pruning_saves_operations_in_proportion(network, spikes):
    """Operations of the first layer's inputs, counted spike by spike, fall with the share that is cut."""
    for share in (0.0, 0.75):
        fixed = to_fixed_point(committee := from_network(network, pruned_weights(network, share, 1)))
        runs = run(fixed.network, spikes)
        found = budget(fixed.network, spikes, runs, kept=[layer.kept for layer in committee.layers])
        by_hand, below = 0, spikes
        for layer, done in zip(fixed.network.layers, runs, strict=True):
            by_hand += sum(np.count_nonzero(layer.weight[0, :, j]) for *_, j in np.argwhere(below))
            if layer.recurrent is not None:
                by_hand += sum(np.count_nonzero(layer.recurrent[0, :, j]) for *_, j in np.argwhere(done.spikes[0]))
            below = done.spikes[0]
        assert found.synaptic_operations == by_hand / spikes.shape[1]
        assert found.synapses == sum(
            layer.neurons * layer.pre - int(share * layer.neurons * layer.pre) for layer in network.layers
        )
