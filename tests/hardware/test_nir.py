"""NIR: round trip, forward Euler of the written equations, refusals."""

import nir
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_committee import random_weights

from bayspike.errors import UserError
from bayspike.hardware import nir as exchange
from bayspike.hardware.cuba import CubaLayer, CubaNetwork, from_network, to_network
from bayspike.spiking.network import unroll


def euler(graph, spikes, dt=1e-4):
    """Forward Euler of NIR's differential equations, node by node, spikes handed on within the step."""
    names = sorted({name.split(".")[0] for name in graph.nodes if name.startswith("layer")})
    state = {n: [np.zeros(len(graph.nodes[f"{n}.neurons"].r))] * 3 for n in names}
    emitted = {n: [] for n in names}
    for x in spikes:
        for n in names:
            node = graph.nodes[f"{n}.neurons"]
            i, v, own = state[n]
            x = x @ graph.nodes[f"{n}.synapses"].weight.T
            if f"{n}.lateral" in graph.nodes:
                x = x + own @ graph.nodes[f"{n}.lateral"].weight.T
            i = i + dt / node.tau_syn * (-i + node.w_in * x)
            v = v + dt / node.tau_mem * (node.v_leak - v + node.r * i)
            x = (v > node.v_threshold).astype(float)
            v = np.where(x > 0, node.v_reset, v)
            state[n] = [i, v, x]
            emitted[n].append(x)
    return [np.stack(emitted[n]) for n in names]


def test_forward_euler_of_the_file_gives_our_spikes(network, spikes, tmp_path):
    """Our layer l emits the same spikes, l + 1 steps later."""
    weights = random_weights(network, 2, seed=7)
    exchange.write(tmp_path / "one.nir", from_network(network, weights), member=1)
    ours = unroll(network, torch.from_numpy(spikes).double(), [w[1] for w in weights])
    for depth, (theirs, core) in enumerate(
        zip(euler(nir.read(str(tmp_path / "one.nir")), spikes), ours, strict=True), start=1
    ):
        assert core.sum() > 100
        np.testing.assert_array_equal(theirs[:-depth], core[depth:].numpy())
        assert not core[:depth].any()


def test_round_trip_is_exact(network, tmp_path):
    cuba = from_network(network, random_weights(network, 2, seed=8))
    exchange.write(tmp_path / "one.nir", cuba, member=1)
    back = exchange.read(tmp_path / "one.nir")
    for before, after in zip(cuba.layers, back.layers, strict=True):
        np.testing.assert_array_equal(before.weight[1], after.weight[0])
        assert (before.recurrent is None) == (after.recurrent is None)
        if before.recurrent is not None:
            np.testing.assert_array_equal(before.recurrent[1], after.recurrent[0])
        assert before.threshold == after.threshold
        assert before.synapse_decay == after.synapse_decay
        assert before.membrane_decay == after.membrane_decay
    for before, after in zip(cuba.readouts, back.readouts, strict=True):
        np.testing.assert_array_equal(before, after)


@given(st.integers(0, 10**6 - 1))
def test_decays_survive_the_time_constant(millionths):
    decay = millionths / 10**6
    assert exchange._decay(exchange.DT / (1 - decay), "tau") == decay


def test_an_imported_network_runs_in_the_library(network, spikes, tmp_path):
    weights = random_weights(network, 1, seed=9)
    exchange.write(tmp_path / "one.nir", from_network(network, weights))
    rebuilt, again = to_network(exchange.read(tmp_path / "one.nir"), torch.float64)
    given_spikes = torch.from_numpy(spikes).double()
    before = unroll(network, given_spikes, [w[0] for w in weights])
    after = unroll(rebuilt, given_spikes, [w[0] for w in again])
    for a, b in zip(before, after, strict=True):
        assert torch.equal(a, b)


def graph_of(weight, readout=None, **changes):
    layer = CubaLayer(np.asarray(weight, float)[None], 0.5, 0.9, threshold=1.0)
    graph = exchange.to_graph(CubaNetwork((layer,), () if readout is None else (readout,)))
    for name, value in changes.items():
        field = getattr(graph.nodes["layer0.neurons"], name)
        setattr(graph.nodes["layer0.neurons"], name, np.broadcast_to(value, field.shape).copy())
    return graph


def one_neuron():
    return graph_of([[1.0]]).nodes["layer0.neurons"]


def test_scaled_inputs_of_other_tools_are_folded_into_the_weights():
    """w_in = 3·tau_syn/dt and r = tau_mem/(2·dt) multiply the weights by 3/2."""
    graph = graph_of([[2.0]], w_in=3 * 2.0, r=10.0 / 2)
    np.testing.assert_allclose(exchange.from_graph(graph).layers[0].weight, [[[3.0]]], rtol=1e-12)


@pytest.mark.parametrize(
    ("graph", "sentence"),
    [
        (lambda: graph_of([[1.0]], v_leak=0.1), "layer0.neurons.*v_leak"),
        (lambda: graph_of([[1.0]], v_reset=0.1), "layer0.neurons.*v_reset"),
        (lambda: graph_of([[1.0], [1.0]], v_threshold=np.array([1.0, 2.0])), "2 values of v_threshold"),
        (lambda: graph_of([[1.0]], tau_mem=1e-5), "shorter than the time-step"),
        (
            lambda: nir.NIRGraph.from_list(
                nir.Affine(np.ones((1, 1)), np.ones(1)), graph_of([[1.0]]).nodes["layer0.neurons"]
            ),
            "has a bias",
        ),
        (lambda: nir.NIRGraph.from_list(nir.Linear(np.ones((1, 1))), nir.LIF(*np.ones((4, 1)))), "only CubaLIF"),
        (lambda: nir.NIRGraph.from_list(nir.Linear(np.ones((1, 1)))), "no CubaLIF"),
        (lambda: nir.NIRGraph.from_list(nir.Threshold(np.ones(1))), "only Linear, Affine, Conv2d and"),
    ],
)
def test_what_cannot_be_said_here_is_refused(graph, sentence):
    with pytest.raises(UserError, match=sentence):
        exchange.from_graph(graph())


def test_broken_files_are_one_clear_sentence(tmp_path):
    bad = tmp_path / "bad.nir"
    bad.write_bytes(b"not HDF5 at all")
    with pytest.raises(UserError, match=r"bad\.nir is not a NIR file"):
        exchange.read(bad)
    exchange.write(bad, CubaNetwork((CubaLayer(np.ones((1, 2, 2)), 0.5, 0.9, 1.0),), ()))
    bad.write_bytes(bad.read_bytes()[:-200])
    with pytest.raises(UserError, match=r"bad\.nir is not a NIR file"):
        exchange.read(bad)
    with pytest.raises(UserError, match="not a NIR file"):
        exchange.read(tmp_path / "absent.nir")


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path):
    import h5py

    bomb = tmp_path / "bomb.nir"
    with h5py.File(bomb, "w") as file:
        file.create_dataset("node/weight", shape=(2**20, 2**20), dtype="f8", chunks=(1, 2**20), compression="gzip")
    with pytest.raises(UserError, match="unpacks to"):
        exchange.read(bomb)
