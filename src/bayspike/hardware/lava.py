"""Integer networks to and from Lava's `.net` files, the HDF5 layout that lava-dl's netx loads.

    /layer/0/   type = input, shape
    /layer/i/   type = dense | dense_rec, shape, inFeatures, outFeatures, weight (out, in), weight_rec
                type = conv, shape (channels, height, width), inChannels, outChannels, kernelSize, stride, padding,
                       dilation, groups, weight (out, in, down, across)
                type = flatten, between a convolution and a dense layer
                neuron/  type = CUBA, iDecay, vDecay, vThMant, refDelay, gradedSpike

`iDecay` is the effective decay of the current (netx passes one less, and Lava adds one). netx derives the weight
exponent from the weights themselves, so a file cannot carry one: round with `use_exponent=False`. One file holds
one member of a committee. Neither Lava nor torch is needed to write or read.

netx builds no poolings. A sum of spikes times a weight is each spike times that weight, so sums of windows are written
as larger kernels with a larger stride, or as more columns of a dense layer: exactly the same network.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require
from bayspike.hardware.fixed_point import WEIGHT_RANGE, FixedPointLayer, FixedPointNetwork
from bayspike.hardware.hdf5 import Unreadable, read_trees
from bayspike.hardware.orders import columns_first, columns_last, from_kernels, maps_of, to_kernels
from bayspike.hardware.wiring import Wiring, without_pools

LARGEST_MATRIX = 2**26  # weights that reading may unpack


def write(path: Path, network: FixedPointNetwork, member: int = 0) -> None:
    """Write one member to a `.net` file."""
    for index, layer in enumerate(network.layers):
        _check_netx_can_say(layer, member, index)
    with _h5py().File(path, "w") as file:
        group = file.create_group("layer/0")
        _text(group, "type", "input")
        first = network.layers[0].wiring
        maps = None if first is None else (first.height, first.width, first.channels)
        group["shape"] = np.array([network.inputs] if maps is None else [maps[2], *maps[:2]])
        number = 1
        for index, layer in enumerate(network.layers):
            matrix, wiring = without_pools(layer.weight[member], layer.wiring, f"layer {index}")
            if maps is not None and wiring is None:
                _text(file.create_group(f"layer/{number}"), "type", "flatten")
                number += 1
                matrix = columns_first(matrix, maps)
            _write_layer(file.create_group(f"layer/{number}"), layer, matrix, wiring, member)
            maps, number = maps_of(layer.wiring, layer.weight.shape[1]), number + 1


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
            networks.append(_read_layers([layers[str(index)] for index in range(len(layers))]))
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise UserError(f"{path} is not a .net file of dense CUBA layers ({error}); export it again.") from error
    return networks


def _write_layer(
    group: Any, layer: FixedPointLayer, matrix: NDArray[np.int16], wiring: Wiring | None, member: int
) -> None:
    if wiring is None:
        _text(group, "type", "dense" if layer.recurrent is None else "dense_rec")
        group["shape"] = np.array([layer.neurons])
        group["inFeatures"] = layer.inputs
        group["outFeatures"] = layer.neurons
    else:
        _text(group, "type", "conv")
        group["shape"] = np.array([len(matrix), *wiring.maps])
        group["inChannels"], group["outChannels"], group["groups"] = wiring.channels, len(matrix), 1
        for name, value in (
            ("kernelSize", wiring.kernel), ("stride", wiring.stride), ("padding", wiring.padding), ("dilation", 1),
        ):  # fmt: skip
            group[name] = np.array([value, value])
        matrix = to_kernels(matrix, wiring)
    group.create_dataset("weight", data=matrix, compression="gzip")
    if layer.recurrent is not None:
        group.create_dataset("weight_rec", data=layer.recurrent[member], compression="gzip")
    neuron = group.create_group("neuron")
    _text(neuron, "type", "CUBA")
    neuron["iDecay"] = layer.current_decay
    neuron["vDecay"] = layer.voltage_decay
    neuron["vThMant"] = layer.threshold
    neuron["refDelay"] = 1
    neuron["gradedSpike"] = False


def _read_layers(groups: Sequence[Any]) -> FixedPointNetwork:
    """The layers of a file, from the input on."""
    layers: list[FixedPointLayer] = []
    shape = [int(side) for side in np.ravel(groups[0]["shape"])] if groups and _kind(groups[0]) == "input" else []
    maps = (shape[1], shape[2], shape[0]) if len(shape) == 3 else None
    for group in groups:
        if _kind(group) in ("input", "flatten"):
            continue
        layers.append(_read_layer(group, maps, planes=not layers))
        maps = maps_of(layers[-1].wiring, layers[-1].weight.shape[1])
    return FixedPointNetwork(tuple(layers))


def _read_layer(group: Any, maps: tuple[int, int, int] | None, planes: bool) -> FixedPointLayer:
    kind, neuron = _kind(group), group["neuron"]
    require(kind in ("dense", "dense_rec", "conv"), f"a layer is of type {kind!r}")
    require(_kind(neuron) in ("CUBA", "LOIHI"), f"neurons are of type {_kind(neuron)!r}")
    wiring = None
    if kind == "conv":
        require(maps is not None, "a convolution has nothing with a height and a width below it")
        assert maps is not None
        kernels = _whole_weights(group["weight"], 4)
        fits = kernels.shape[2] == kernels.shape[3] and kernels.shape[1] == maps[2]
        alike = _both(group, "dilation") == 1 and _whole(group, "groups") == 1
        require(fits and alike, f"a convolution has kernels of the shape {kernels.shape}, dilated or in groups")
        slides = (int(kernels.shape[2]), _both(group, "stride"), _both(group, "padding"))
        wiring, weight = Wiring(*maps, planes, (), *slides), from_kernels(kernels)[None]
    else:
        weight = _whole_weights(group["weight"], 2)[None]
        if maps is not None and planes:  # a dense layer on the input itself
            wiring = Wiring(*maps, planes)
        weight = columns_last(weight, maps)
    return FixedPointLayer(
        weight=weight,
        threshold=_whole(neuron, "vThMant"),
        current_decay=_whole(neuron, "iDecay"),
        voltage_decay=_whole(neuron, "vDecay"),
        recurrent=_whole_weights(group["weight_rec"], 2)[None] if kind == "dense_rec" else None,
        wiring=wiring,
    )


def _both(group: Any, name: str) -> int:
    """A number that is the same down and across."""
    values = set(np.ravel(np.asarray(group[name])).tolist())
    require(len(values) == 1, f"{name} differs down and across")
    return _whole({name: values.pop()}, name)


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


def _whole_weights(values: Any, dimensions: int) -> NDArray[np.int16]:
    matrix = np.asarray(values)
    if dimensions == 4 and matrix.ndim == 5 and matrix.shape[4] == 1:  # as lava-dl itself writes kernels
        matrix = matrix[..., 0]
    fitting = matrix.ndim == dimensions and matrix.size <= LARGEST_MATRIX
    require(fitting, f"a weight matrix has the shape {matrix.shape}")
    low, high = WEIGHT_RANGE
    fits = matrix.dtype.kind in "iuf" and bool(((matrix >= low) & (matrix <= high) & (matrix == np.rint(matrix))).all())
    require(fits, f"a weight is not a whole number in [{low}, {high}]")
    return matrix.astype(np.int16)


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
