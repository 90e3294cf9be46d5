"""Convolutions and poolings in the chip's integers, in NIR and in netx files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from test_nir_peers import load_snntorch, spikes_of
from torch.nn.functional import avg_pool2d, conv2d, max_pool2d

from bayspike.errors import UserError
from bayspike.hardware import lava, nir
from bayspike.hardware.budget import budget
from bayspike.hardware.check import compare_precision, float_run
from bayspike.hardware.cuba import CubaNetwork, from_network, to_network
from bayspike.hardware.export import export, verify
from bayspike.hardware.files import load_network, save_network
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork, run
from bayspike.hardware.rounding import to_fixed_point
from bayspike.hardware.wiring import Wiring, without_pools
from bayspike.predict.predictors import Committee
from bayspike.spiking.network import Network, NetworkConfig, build, unroll

F64 = torch.float64
MEMBERS, TIME, BATCH = 2, 12, 3
STACKS: dict[str, tuple[str, tuple[int, ...]]] = {
    "sums": ("3c3-2p-4c3-2p-6", (2, 12, 10)),
    "strides": ("3c5s2p1-4c2p0-6r", (2, 11, 9)),
    "strides, no padding": ("3c5s2p1-4c2p0-6", (2, 11, 9)),
    "pooled inputs": ("2p-4c3s2-2p", (2, 12, 16)),
    "pooled inputs of a dense layer": ("3p-8r-5", (2, 10, 9)),
    "one channel": ("4c3-5", (6, 7)),
    "recurrent on pooled maps": ("3c3-2p-5r", (2, 12, 10)),
}
MAXIMA: dict[str, tuple[str, tuple[int, ...]]] = {
    "maxima": ("3c3-2m-4c3-5", (2, 8, 8)),
    "maxima of the inputs, rows left over": ("2m-4c3-3m-6", (2, 13, 12)),
    "recurrent on maxima": ("3c3-2m-5r", (2, 12, 10)),
    "maxima, then sums": ("2m-3c3-2p-2m-8r-5", (2, 18, 17)),
}
ALL = STACKS | MAXIMA
EXPORTED = [
    *((name, to) for to in ("fixed-point", "nir", "netx") for name in STACKS),
    *((name, "fixed-point") for name in MAXIMA),
]


def config_of(words: str, shape: tuple[int, ...]) -> NetworkConfig:
    inputs = int(np.prod(shape))
    return NetworkConfig(inputs, (), 3, membrane_decay=0.8, layers=words, shape=shape, threshold=0.2)


def committee_of(words: str, shape: tuple[int, ...]) -> tuple[Network, list[torch.Tensor], np.ndarray]:
    inputs = int(np.prod(shape))
    network, generator = build(config_of(words, shape)), torch.Generator().manual_seed(3)
    weights = [3 * torch.randn(MEMBERS, *each.shape, generator=generator) / each.pre**0.5 for each in network.layers]
    spikes = np.random.default_rng(0).random((TIME, BATCH, inputs)) < 0.3
    return network, weights, spikes.astype(np.uint8)


def cuba_of(name: str) -> tuple[CubaNetwork, np.ndarray]:
    network, weights, spikes = committee_of(*ALL[name])
    return from_network(network, weights), spikes


@pytest.mark.parametrize("name", ALL)
def test_plain_arrays_and_back_are_the_same_network(name: str) -> None:
    network, weights, spikes = committee_of(*ALL[name])
    again, there = to_network(from_network(network, weights), F64)
    given = torch.from_numpy(spikes).double()
    exact = [torch.as_tensor(matrix).double() for matrix in weights]
    core = build(config_of(*ALL[name]), F64)
    for member in range(MEMBERS):
        ours = unroll(core, given, [matrix[member] for matrix in exact])
        theirs = unroll(again, given, [matrix[member] for matrix in there])
        for before, after in zip(ours, theirs, strict=True):
            assert (before != after).double().mean() < 0.001
        assert ours[-1].mean() > 0.01
    # the read-out is now of every neuron, with the same logits
    for before, after, block in zip(core.layers, again.layers, ours, strict=True):
        torch.testing.assert_close(before.read(block) @ before.readout.T, block @ after.readout.T.double())


def reference_input(wiring: Wiring, weight: np.ndarray, spikes: np.ndarray) -> np.ndarray:
    """W·s by torch's functions, for spikes `(batch, inputs)` of one member with integer weights; channels last."""
    maps = torch.from_numpy(spikes).double()
    if wiring.planes:
        maps = maps.view(len(spikes), wiring.channels, wiring.height, wiring.width)
    else:
        maps = maps.view(len(spikes), wiring.height, wiring.width, wiring.channels).permute(0, 3, 1, 2)
    for side in wiring.pools:
        maps = max_pool2d(maps, -side) if side < 0 else avg_pool2d(maps, side, divisor_override=1)
    rows = torch.from_numpy(weight).double()
    if not wiring.kernel:
        return (maps.permute(0, 2, 3, 1).flatten(1) @ rows.T).numpy()
    kernels = rows.view(len(rows), wiring.kernel, wiring.kernel, -1).permute(0, 3, 1, 2)
    done = conv2d(maps, kernels, stride=wiring.stride, padding=wiring.padding)
    return done.permute(0, 2, 3, 1).flatten(1).numpy()


@pytest.mark.parametrize(
    "wiring",
    [
        Wiring(7, 6, 2, True, (2,), 3, 1, 1),
        Wiring(9, 8, 3, False, (-2, 2), 2, 1, 0),
        Wiring(11, 7, 2, False, (), 5, 2, 2),
        Wiring(7, 7, 2, True, (3,)),
    ],
)
def test_rows_are_those_of_torch(wiring: Wiring) -> None:
    random = np.random.default_rng(1)
    spikes = (random.random((4, wiring.inputs)) < 0.4).astype(np.uint8)
    weight = random.integers(-127, 127, (5, wiring.fan_in)) * 2
    ours = (wiring.rows(spikes) @ weight.T).reshape(4, -1)
    np.testing.assert_array_equal(ours, reference_input(wiring, weight, spikes))
    assert Wiring.from_numbers(wiring.as_numbers()) == wiring


def decayed(state: np.ndarray, decay: int) -> np.ndarray:
    return np.sign(state) * (np.abs(state) * (4096 - decay) >> 12)


def spikes_by_hand(layer: FixedPointLayer, below: np.ndarray, member: int) -> np.ndarray:
    """Spikes `(time, batch, neurons)` of one member by the chip's equations, step by step in integers."""
    current = voltage = own = np.zeros((BATCH, layer.neurons), np.int64)
    fired = []
    for arriving in np.concatenate([np.zeros_like(below[:1]), below[:-1]]):
        if layer.wiring is None:
            given = arriving.astype(np.int64) @ layer.weight[member].T
        else:
            given = reference_input(layer.wiring, layer.weight[member], arriving).astype(np.int64)
        lateral = 0 if layer.recurrent is None else own @ layer.recurrent[member].T
        exponent = layer.weight_exponent
        given, lateral = (each << exponent if exponent > 0 else each >> -exponent for each in (given, lateral))
        current = decayed(current, layer.current_decay) + (given + lateral) * 64
        voltage = decayed(voltage, layer.voltage_decay) + current
        assert max(np.abs(current).max(), np.abs(voltage).max()) < 2**23
        own = (voltage > layer.threshold * 64).astype(np.int64)
        voltage = np.where(own, 0, voltage)
        fired.append(own)
    return np.array(fired)


@pytest.mark.parametrize("name", ALL)
def test_integers_are_the_equations_from_end_to_end(name: str) -> None:
    cuba, spikes = cuba_of(name)
    network = to_fixed_point(cuba).network
    done = run(network, spikes)
    assert done[-1].spikes.any()
    for member in range(MEMBERS):
        below = spikes
        for layer, found in zip(network.layers, done, strict=True):
            below = spikes_by_hand(layer, below, member)
            np.testing.assert_array_equal(found.spikes[member], below)


@pytest.mark.parametrize("name", ALL)
def test_integers_follow_the_floats_and_survive_their_file(name: str, tmp_path: Path) -> None:
    cuba, spikes = cuba_of(name)
    rounded = to_fixed_point(cuba)
    done = run(rounded.network, spikes)
    for depth, (exact, fixed) in enumerate(zip(float_run(cuba, spikes), done, strict=True)):
        assert (exact != fixed.spikes).mean() < (0.03 if depth == 0 else 0.1)  # what differs below differs more above
    save_network(tmp_path / "n.safetensors", rounded.network)
    again = run(load_network(tmp_path / "n.safetensors"), spikes)
    np.testing.assert_array_equal(again[-1].spikes, done[-1].spikes)
    assert compare_precision(cuba, rounded, spikes).same_decisions >= 0.6
    spent = budget(rounded.network, spikes, done)
    assert spent.synaptic_operations > 0
    assert spent.cores is not None


def test_operations_are_counted_synapse_by_synapse() -> None:
    cuba, spikes = cuba_of("sums")
    network = to_fixed_point(cuba).network
    layer = network.layers[1]
    assert layer.wiring is not None
    fired = run(network, spikes)[0].spikes
    one = FixedPointNetwork((layer,))
    counted = budget(one, fired[0], run(one, fired[0])).synaptic_operations
    by_hand = 0
    for member in range(MEMBERS):
        for t in range(TIME):
            for example in range(BATCH):
                at = fired[0, t, example]
                by_hand += (layer.wiring.rows(at[None])[0] @ (layer.weight[member] != 0).T).sum()
    assert counted == pytest.approx(by_hand / BATCH)


@pytest.mark.parametrize("name", STACKS)
def test_netx_files_hold_the_same_network(name: str, tmp_path: Path) -> None:
    cuba, spikes = cuba_of(name)
    network = to_fixed_point(cuba, use_exponent=False).network
    for member in range(MEMBERS):
        lava.write(tmp_path / "n.net", network, member)
        again = lava.read(tmp_path / "n.net")
        assert all(layer.wiring is None or not layer.wiring.pools for layer in again.layers)
        for ours, theirs in zip(run(again, spikes), run(network.member(member), spikes), strict=True):
            np.testing.assert_array_equal(ours.spikes, theirs.spikes)


def test_netx_says_what_it_cannot_say(tmp_path: Path) -> None:
    for words, shape, said in (
        ("3c3-2m-4c3-5", (8, 8), "maximum"),
        ("3c3-2p-4c3-5", (9, 8), "leave over"),
    ):
        network, weights, _ = committee_of(words, shape)
        rounded = to_fixed_point(from_network(network, weights), use_exponent=False).network
        with pytest.raises(UserError, match=said):
            lava.write(tmp_path / "n.net", rounded)


@pytest.mark.parametrize("wiring", [Wiring(9, 8, 2, True, (2,), 3, 1, 0), Wiring(8, 8, 2, False, (2, 2), 2, 1, 1)])
def test_a_pooling_is_a_larger_kernel(wiring: Wiring) -> None:
    random = np.random.default_rng(2)
    spikes, weight = random.integers(0, 2, (3, wiring.inputs)), random.integers(-9, 9, (4, wiring.fan_in))
    grown, without = without_pools(weight, wiring, "layer 0")
    assert without is not None
    assert not without.pools
    np.testing.assert_array_equal(without.rows(spikes) @ grown.T, wiring.rows(spikes) @ weight.T)


@pytest.mark.parametrize("name", STACKS)
def test_nir_files_hold_the_same_network(name: str, tmp_path: Path) -> None:
    pytest.importorskip("nir")
    cuba, spikes = cuba_of(name)
    nir.write(tmp_path / "n.nir", cuba, member=1)
    again = nir.read(tmp_path / "n.nir")
    for ours, theirs in zip(float_run(again, spikes), float_run(cuba, spikes), strict=True):
        np.testing.assert_array_equal(ours[0], theirs[1])
    for before, after in zip(cuba.readouts, again.readouts, strict=True):
        np.testing.assert_array_equal(before, after)


def test_nir_reads_averages_and_has_no_maxima(tmp_path: Path) -> None:
    package = pytest.importorskip("nir")
    cuba, _ = cuba_of("sums")
    graph = nir.to_graph(cuba, 0)
    for name, node in graph.nodes.items():
        if isinstance(node, package.SumPool2d):
            graph.nodes[name] = package.AvgPool2d(node.kernel_size, node.stride, node.padding)
    for layer, below in zip(cuba.layers, nir.from_graph(graph).layers, strict=True):
        pooled = 1 if layer.wiring is None else layer.wiring.largest
        np.testing.assert_allclose(below.weight[0] * pooled, layer.weight[0])
    network, weights, _ = committee_of("3c3-2m-4c3-5", (8, 8))
    with pytest.raises(UserError, match="NIR has no node"):
        nir.to_graph(from_network(network, weights))


@pytest.mark.parametrize(("name", "to"), EXPORTED)
def test_an_artefact_verifies_itself(name: str, to: str, tmp_path: Path) -> None:
    if to == "nir":
        pytest.importorskip("nir")
    network, weights, spikes = committee_of(*ALL[name])
    manifest = export(network, weights, tmp_path / "out", to, spikes=spikes)  # type: ignore[arg-type]
    assert manifest["neurons"] == [layer.neurons for layer in network.layers]
    assert verify(tmp_path / "out").spikes > 0


@pytest.mark.parametrize("to", ["nir", "netx"])
@pytest.mark.parametrize("name", MAXIMA)
def test_maxima_leave_nothing_behind_where_they_cannot_be_said(name: str, to: str, tmp_path: Path) -> None:
    network, weights, spikes = committee_of(*MAXIMA[name])
    with pytest.raises(UserError, match="pools by the maximum"):
        export(network, weights, tmp_path / "out", to, spikes=spikes)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["sums", "one channel", "strides, no padding"])
def test_snntorch_spikes_identically_on_the_nir_file(name: str, tmp_path: Path) -> None:
    """Unbatched, since NIR's Flatten does not count a batch; snnTorch passes spikes on within a step."""
    pytest.importorskip("nir")
    pytest.importorskip("snntorch.import_nir")
    network, weights, spikes = committee_of(*STACKS[name])
    cuba = from_network(network, weights)
    nir.write(tmp_path / "n.nir", cuba)
    module, answers = load_snntorch(tmp_path / "n.nir"), []
    module.readout.register_forward_hook(lambda _module, _given, out: answers.append(out.detach().numpy()))
    shape = STACKS[name][1] if len(STACKS[name][1]) == 3 else (1, *STACKS[name][1])
    ours, theirs = float_run(cuba, spikes), spikes_of(module, spikes[:, 0].reshape(TIME, *shape))
    for depth, (layer, expected, found) in enumerate(zip(cuba.layers, ours, theirs, strict=True), start=1):
        if layer.wiring is not None and layer.wiring.kernel:  # channels come first there
            found = np.moveaxis(found, 1, -1)
        wanted = expected[0, depth:, 0]
        np.testing.assert_array_equal(found.reshape(TIME, -1)[:-depth], wanted)
        assert wanted.sum() > 0
    depth, readout = len(network.layers), cuba.readouts[-1].astype(np.float64)
    np.testing.assert_allclose(np.array(answers)[:-depth], ours[-1][0, depth:, 0] @ readout.T, atol=1e-4)


def test_a_committee_is_what_its_file_says() -> None:
    network, weights, spikes = committee_of(*STACKS["strides"])
    again, there = to_network(from_network(network, weights))
    ours = Committee(network, weights).predict(torch.from_numpy(spikes)).probabilities
    theirs = Committee(again, there).predict(torch.from_numpy(spikes)).probabilities
    torch.testing.assert_close(ours, theirs, atol=0.05, rtol=0)
