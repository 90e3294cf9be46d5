"""Networks to and from NIR, the exchange format of neuromorphic tools (needs the extra `nir`).

A layer is a `Linear` node (weights), a `CubaLIF` node (neurons) and, if recurrent, a second `Linear` node in a loop
with the neurons; convolutions and poolings have nodes of their own (`nir_maps`). The read-out of the last layer is the
`Linear` node before the output. NIR describes differential equations; with forward Euler at the step `DT` these fields
give exactly our recursion:

    tau_syn = dt/(1 − a),  tau_mem = dt/(1 − b),  w_in = tau_syn/dt,  r = tau_mem/dt,  v_leak = v_reset = 0

NIR has no delay of its own between layers: a simulator that passes spikes on within a step runs one step ahead of
us for each layer, and otherwise the same. One file holds one member of a committee.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require
from bayspike.hardware.cuba import CubaLayer, CubaNetwork
from bayspike.hardware.hdf5 import Unreadable, read_trees
from bayspike.hardware.nir_maps import Arriving, conv_node, pool_node, read_conv, read_pool
from bayspike.hardware.orders import columns_first, columns_last, from_kernels, maps_of, to_kernels
from bayspike.hardware.wiring import Wiring

DT = 1e-4  # seconds per time-step; what snnTorch and Lava's importer take for granted


def to_graph(network: CubaNetwork, member: int = 0) -> Any:
    """The `nir.NIRGraph` of one member."""
    nir = _nir()
    first, maps = network.layers[0].wiring, None  # height, width and channels of what the last node hands on
    if first is not None:
        require(first.planes or first.channels == 1, "the input of a NIR graph must have its channels first.")
        maps = (first.height, first.width, first.channels)
    chain = _Chain(nir.Input(np.array([network.inputs] if maps is None else [maps[2], *maps[:2]])))
    for index, layer in enumerate(network.layers):
        wiring, where = layer.wiring, f"layer{index}"
        for number, side in enumerate(() if wiring is None else wiring.pools):
            chain.append(f"{where}.pool{number}", pool_node(nir, side, f"layer {index}"))
        if wiring is not None:
            maps = wiring.pooled
        if wiring is not None and wiring.kernel:
            node = conv_node(nir, to_kernels(layer.weight[member], wiring), wiring)
        else:
            chain.flatten(nir, f"{where}.flat", maps)
            node = nir.Linear(columns_first(layer.weight[member], maps))
        chain.append(f"{where}.synapses", node)
        maps = maps_of(wiring, layer.weight.shape[1])
        chain.append(f"{where}.neurons", _neurons(layer, maps))
        if layer.recurrent is not None:
            chain.loop(f"{where}.lateral", nir.Linear(layer.recurrent[member]))
    if network.readouts:
        chain.flatten(nir, "readout.flat", maps)
        chain.append("readout", nir.Linear(columns_first(network.readouts[-1], maps)))
    shape = chain.nodes[chain.last].output_type["output"]
    chain.append("output", nir.Output(shape))
    # read-outs below the last are used by local learning only; they ride along so that nothing is lost
    metadata = {
        f"readout_{i}": columns_first(readout, maps_of(layer.wiring, layer.weight.shape[1]))
        for i, (layer, readout) in enumerate(zip(network.layers, network.readouts[:-1], strict=False))
    }
    return nir.NIRGraph(chain.nodes, chain.edges, metadata={"dt": np.float64(DT), **metadata})


class _Chain:
    """The nodes of a graph one after the other."""

    def __init__(self, start: Any) -> None:
        self.nodes: dict[str, Any] = {"input": start}
        self.edges: list[tuple[str, str]] = []
        self.last = "input"

    def append(self, name: str, node: Any) -> None:
        self.nodes[name] = node
        self.edges.append((self.last, name))
        self.last = name

    def loop(self, name: str, node: Any) -> None:
        self.nodes[name] = node
        self.edges += [(self.last, name), (name, self.last)]

    def flatten(self, nir: Any, name: str, maps: tuple[int, int, int] | None) -> None:
        if maps is not None:
            height, width, channels = maps
            self.append(name, nir.Flatten({"input": np.array([channels, height, width])}, 0, -1))


def from_graph(graph: Any) -> CubaNetwork:
    """A committee of one from a chain of `Linear`/`Affine`/`Conv2d`, pooling and `CubaLIF` nodes, of whatever tool."""
    nir = _nir()
    following = defaultdict(list)
    for source, target in graph.edges:
        following[source].append(target)
    starts = [name for name, node in graph.nodes.items() if isinstance(node, nir.Input)]
    require(len(starts) == 1, f"the NIR graph must have one input, but has {len(starts)}.")

    layers: list[CubaLayer] = []
    readout: NDArray[np.float32] | None = None
    name = _only(following, starts[0], "the input")
    arriving = Arriving(_maps_of_input(graph.nodes[starts[0]]))
    wiring: Wiring | None
    weight: NDArray[np.float64]
    steps = 0
    while not isinstance(graph.nodes[name], nir.Output):
        steps += 1
        require(steps <= len(graph.nodes), "the NIR graph runs in a circle and never reaches its output.")
        node = graph.nodes[name]
        above = _only(following, name, f"node {name!r}")
        if isinstance(node, nir.SumPool2d | nir.AvgPool2d):
            arriving, name = read_pool(nir, node, name, arriving), above
            continue
        if isinstance(node, nir.Flatten):
            name = above
            continue
        if isinstance(node, nir.Conv2d):
            kernels, wiring = read_conv(node, name, arriving)
            weight = from_kernels(kernels)
        else:
            wiring = arriving.dense_wiring()
            pooled = None if arriving.maps is None else arriving.pooled()
            weight = columns_last(_weights(graph, name) * arriving.scale, pooled)
        if isinstance(graph.nodes[above], nir.Output):
            require(not arriving.pools, "the read-out of a NIR graph must see spikes, not sums of them.")
            readout = weight.astype(np.float32)
            name = above
            continue
        if not isinstance(graph.nodes[above], nir.CubaLIF):
            raise UserError(
                f"node {above!r} is a {type(graph.nodes[above]).__name__}, but only CubaLIF neurons can be read; "
                f"convert the network to current-based neurons first."
            )
        loops = [node for node in following[above] if following[node] == [above]]
        require(len(loops) <= 1, f"node {above!r} has {len(loops)} recurrent connections, but one can be read.")
        lateral = _weights(graph, loops[0]) if loops else None
        layers.append(_layer(graph.nodes[above], above, weight, lateral, wiring))
        arriving = Arriving(maps_of(wiring, len(weight)), planes=False)
        rest = {above: [node for node in following[above] if node not in loops]}
        name = _only(rest, above, f"node {above!r}")
    require(len(layers) > 0, "the NIR graph has no CubaLIF neurons.")
    return CubaNetwork(tuple(layers), _readouts(graph, layers, readout))


def write(path: Path, network: CubaNetwork, member: int = 0) -> None:
    """Write one member to a `.nir` file."""
    _nir().write(str(path), to_graph(network, member))


def read(path: Path) -> CubaNetwork:
    """Read a `.nir` file."""
    return read_all([path])[0]


def read_all(paths: Sequence[Path]) -> list[CubaNetwork]:
    """Read several; HDF5 is left to another process, since a damaged file may keep it busy for ever."""
    nir = _nir()
    try:
        trees = read_trees(paths)
    except Unreadable as error:
        raise UserError(f"{error.path} is not a NIR file that can be read ({error.why}); export it again.") from error
    networks = []
    for path, tree in zip(paths, trees, strict=True):
        try:
            # without its own check of shapes: ours follows, and ends for every graph
            networks.append(from_graph(nir.dict2NIRNode({**tree["node"], "type_check": False})))
        except Exception as error:  # NIR's nodes are made of whatever the file holds
            what = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            raise UserError(f"{path} is not a NIR file that can be read ({what}); export it again.") from error
    return networks


def _maps_of_input(node: Any) -> tuple[int, int, int] | None:
    shape = [int(side) for side in np.ravel(node.input_type["input"])]
    if len(shape) == 1:
        return None
    require(len(shape) in (2, 3), f"the input of the NIR graph has the shape {shape}: give channels, height, width.")
    return (shape[-2], shape[-1], shape[0] if len(shape) == 3 else 1)


def _neurons(layer: CubaLayer, maps: tuple[int, int, int] | None) -> Any:
    """Fields must be arrays of the full layer shape: scalars raise, 0-d arrays fail type inference."""
    tau_syn, tau_mem = DT / (1 - layer.synapse_decay), DT / (1 - layer.membrane_decay)
    full = np.ones(layer.neurons if maps is None else (maps[2], *maps[:2]))
    return _nir().CubaLIF(
        tau_syn=tau_syn * full,
        tau_mem=tau_mem * full,
        r=tau_mem / DT * full,
        v_leak=0 * full,
        v_threshold=layer.threshold * full,
        v_reset=0 * full,
        w_in=tau_syn / DT * full,
    )


def _layer(
    node: Any, name: str, weight: NDArray[np.float64], lateral: NDArray[np.float64] | None, wiring: Wiring | None
) -> CubaLayer:
    for field in ("v_leak", "v_reset"):
        require(
            bool((getattr(node, field) == 0).all()),
            f"node {name!r} has {field} other than 0, which has no counterpart here; shift its potentials first.",
        )
    tau_syn, tau_mem = _one_value(node, "tau_syn", name), _one_value(node, "tau_mem", name)
    scale = (node.w_in * DT / tau_syn) * (node.r * DT / tau_mem)
    if np.allclose(scale, 1, rtol=1e-9, atol=0):  # ours and snnTorch's: 1 but for rounding, so nothing to fold
        scale = np.ones_like(scale)
    if scale.ndim == 3:  # of maps: all places of one share their weights
        require(bool((scale == scale[:, :1, :1]).all()), f"the neurons of a map of node {name!r} differ in w_in or r.")
        scale = scale[:, 0, 0]
    return CubaLayer(
        weight=weight[None] * scale[None, :, None],
        synapse_decay=_decay(tau_syn, f"tau_syn of node {name!r}"),
        membrane_decay=_decay(tau_mem, f"tau_mem of node {name!r}"),
        threshold=_one_value(node, "v_threshold", name),
        recurrent=None if lateral is None else lateral[None] * scale[None, :, None],
        wiring=wiring,
    )


def _decay(tau: float, what: str) -> float:
    """Inverse of tau = DT/(1 − decay), to the last bit if the decay has at most 12 decimal digits."""
    require(tau >= DT, f"{what} is {tau:g} s, shorter than the time-step of {DT:g} s; forward Euler needs more.")
    exact = 1 - DT / tau
    neighbours = (round(exact, 12), exact, np.nextafter(exact, 0), np.nextafter(exact, 1))
    return next((float(a) for a in neighbours if 0 <= a < 1 and DT / (1 - a) == tau), exact)


def _readouts(graph: Any, layers: list[CubaLayer], last: NDArray[np.float32] | None) -> tuple[NDArray[np.float32], ...]:
    if last is None:
        return ()
    below = []
    for index, layer in enumerate(layers[:-1]):
        shape = (last.shape[0], layer.neurons)
        kept = np.asarray(graph.metadata.get(f"readout_{index}", np.zeros(shape)), np.float32)
        require(kept.shape == shape, f"readout_{index} must have the shape {shape}, but has {kept.shape}.")
        below.append(columns_last(kept, maps_of(layer.wiring, layer.weight.shape[1])))
    return (*below, last)


def _weights(graph: Any, name: str) -> NDArray[np.float64]:
    node = graph.nodes[name]
    if not isinstance(node, (_nir().Linear, _nir().Affine)):
        raise UserError(
            f"node {name!r} is a {type(node).__name__}, but between neurons only Linear, Affine, Conv2d and poolings "
            f"can be read; unroll it into a dense matrix first."
        )
    bias = getattr(node, "bias", None)
    require(
        bias is None or not bool(np.any(bias)),
        f"node {name!r} has a bias, which the neurons here do not; train without one.",
    )
    weight: NDArray[np.float64] = np.asarray(node.weight, np.float64)
    require(weight.ndim == 2, f"the weight of node {name!r} must be a matrix, but has shape {weight.shape}.")
    return weight


def _one_value(node: Any, field: str, name: str) -> float:
    values = np.unique(getattr(node, field))
    require(len(values) == 1, f"node {name!r} has {len(values)} values of {field}, but a layer here has one.")
    return float(values[0])


def _only(following: Any, name: str, what: str) -> str:
    targets = following[name]
    require(len(targets) == 1, f"{what} must lead to one node, but leads to {len(targets)}.")
    return str(targets[0])


def _nir() -> Any:
    try:
        import nir
    except ImportError as error:
        raise UserError("NIR needs the package nir; install it with pip install 'bayspike[nir]'.") from error
    return nir
