"""Integer networks to and from Lava's `.net` files, the HDF5 layout that lava-dl's netx loads.

    /layer/0/   type = input, shape
    /layer/i/   type = dense | dense_rec, shape, inFeatures, outFeatures, weight (out, in), weight_rec
                neuron/  type = CUBA, iDecay, vDecay, vThMant, refDelay, gradedSpike

`iDecay` is the effective decay of the current (netx passes one less, and Lava adds one). netx derives the weight
exponent from the weights themselves, so a file cannot carry one: round with `use_exponent=False`. One file holds
one member of a committee. Neither Lava nor torch is needed to write or read.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require
from bayspike.hardware.fixed_point import WEIGHT_RANGE, FixedPointLayer, FixedPointNetwork
from bayspike.hardware.hdf5 import Unreadable, read_trees

LARGEST_MATRIX = 2**26  # weights that reading may unpack


def write(path: Path, network: FixedPointNetwork, member: int = 0) -> None:
    """Write one member to a `.net` file."""
    for index, layer in enumerate(network.layers):
        _check_netx_can_say(layer, member, index)
    with _h5py().File(path, "w") as file:
        group = file.create_group("layer/0")
        _text(group, "type", "input")
        group["shape"] = np.array([network.inputs])
        for index, layer in enumerate(network.layers, start=1):
            _write_layer(file.create_group(f"layer/{index}"), layer, member)


def read(path: Path) -> FixedPointNetwork:
    """Read a `.net` file of dense CUBA layers; it holds no read-outs."""
    return read_all([path])[0]


def read_all(paths: Sequence[Path]) -> list[FixedPointNetwork]:
    """Read several; HDF5 is left to another process, since a damaged file may keep it busy for ever."""
    try:
        trees = read_trees(paths)
    except Unreadable as error:
        sentence = f"{error.path} is not a .net file of dense CUBA layers ({error.why}); export it again."
        raise UserError(sentence) from error
    networks = []
    for path, tree in zip(paths, trees, strict=True):
        try:
            layers = tree["layer"]
            groups = [layers[str(index)] for index in range(len(layers))]
            networks.append(FixedPointNetwork(tuple(_read_layer(each) for each in groups if _kind(each) != "input")))
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is not a .net file of dense CUBA layers ({error}); export it again.") from error
    return networks


def _write_layer(group: Any, layer: FixedPointLayer, member: int) -> None:
    _text(group, "type", "dense" if layer.recurrent is None else "dense_rec")
    group["shape"] = np.array([layer.neurons])
    group["inFeatures"] = layer.inputs
    group["outFeatures"] = layer.neurons
    group.create_dataset("weight", data=layer.weight[member], compression="gzip")
    if layer.recurrent is not None:
        group.create_dataset("weight_rec", data=layer.recurrent[member], compression="gzip")
    neuron = group.create_group("neuron")
    _text(neuron, "type", "CUBA")
    neuron["iDecay"] = layer.current_decay
    neuron["vDecay"] = layer.voltage_decay
    neuron["vThMant"] = layer.threshold
    neuron["refDelay"] = 1
    neuron["gradedSpike"] = False


def _read_layer(group: Any) -> FixedPointLayer:
    kind, neuron = _kind(group), group["neuron"]
    require(kind in ("dense", "dense_rec"), f"a layer is of type {kind!r}")
    require(_kind(neuron) in ("CUBA", "LOIHI"), f"neurons are of type {_kind(neuron)!r}")
    return FixedPointLayer(
        weight=_matrix(group["weight"]),
        threshold=_whole(neuron, "vThMant"),
        current_decay=_whole(neuron, "iDecay"),
        voltage_decay=_whole(neuron, "vDecay"),
        recurrent=_matrix(group["weight_rec"]) if kind == "dense_rec" else None,
    )


def _whole(neuron: Any, name: str) -> int:
    """A number of the chip, which is whole: nothing is cut off to make it so."""
    values = np.asarray(neuron[name]).reshape(-1)
    require(
        values.size == 1
        and values.dtype.kind in "iuf"
        and bool(np.isfinite(values[0]))
        and values[0] == int(values[0]),
        f"{name} is not one whole number",
    )
    return int(values[0])


def _matrix(values: Any) -> NDArray[np.int16]:
    matrix = np.asarray(values)
    require(matrix.ndim == 2 and matrix.size <= LARGEST_MATRIX, f"a weight matrix has the shape {matrix.shape}")
    low, high = WEIGHT_RANGE
    fits = matrix.dtype.kind in "iuf" and bool(((matrix >= low) & (matrix <= high) & (matrix == np.rint(matrix))).all())
    require(fits, f"a weight is not a whole number in [{low}, {high}]")
    return matrix.astype(np.int16)[None]


def _check_netx_can_say(layer: FixedPointLayer, member: int, index: int) -> None:
    require(
        layer.weight_exponent == 0,
        f"layer {index} has the weight exponent {layer.weight_exponent}, which a .net file cannot carry; "
        f"round with use_exponent=False.",
    )
    matrices = [layer.weight[member]] + ([] if layer.recurrent is None else [layer.recurrent[member]])
    for matrix in matrices:
        require(
            int(matrix.min()) > -256 or int(matrix.max()) > 0,
            f"layer {index} has no positive weight and holds −256, which Lava then reads as −255; "
            f"round without a given step.",
        )
    whole = np.concatenate(matrices, axis=1)
    require(
        bool(whole.any()) and int(whole.max()) != 0,
        f"layer {index} has no positive weight, and the zeros among them make netx divide by zero; "
        f"this layer can never spike: retrain it or leave it out.",
    )


def _text(group: Any, name: str, value: str) -> None:
    group[name] = np.array([value.encode("ascii")])


def _kind(group: Any) -> str:
    kind = group["type"]
    return str(kind[0] if isinstance(kind, list) else kind)


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise UserError(".net files need the package h5py; install it with pip install 'bayspike[nir]'.") from error
    return h5py
