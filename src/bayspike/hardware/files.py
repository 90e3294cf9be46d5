"""Integer networks on disk: one safetensors file, one byte per synapse; loading never runs code. Needs no torch.

Per layer i: `weight_i` and `recurrent_i` (members, neurons, inputs) as int8 levels, half the chip's even integers;
`constants_i` = threshold mantissa, current decay, voltage decay, weight exponent; `readout_i` (classes, neurons);
`wiring_i` where a layer is a convolution or its inputs are pooled, see `bayspike.hardware.wiring`.
"""

import hashlib
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from bayspike.errors import UserError
from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork
from bayspike.hardware.wiring import Wiring

Arrays = dict[str, NDArray[np.generic]]


def save_network(path: Path, network: FixedPointNetwork) -> None:
    """Write a committee."""
    arrays: Arrays = {}
    for index, layer in enumerate(network.layers):
        arrays[f"weight_{index}"] = _levels(layer.weight)
        if layer.recurrent is not None:
            arrays[f"recurrent_{index}"] = _levels(layer.recurrent)
        if layer.wiring is not None:
            arrays[f"wiring_{index}"] = layer.wiring.as_numbers()
        constants = (layer.threshold, layer.current_decay, layer.voltage_decay, layer.weight_exponent)
        arrays[f"constants_{index}"] = np.array(constants, np.int32)
    arrays |= {f"readout_{index}": readout for index, readout in enumerate(network.readouts)}
    save_arrays(path, arrays)


def load_network(path: Path) -> FixedPointNetwork:
    """Read a committee."""
    arrays = load_arrays(path)
    layers: list[FixedPointLayer] = []
    try:
        while f"weight_{len(layers)}" in arrays:
            index = len(layers)
            threshold, current_decay, voltage_decay, exponent = (int(c) for c in arrays[f"constants_{index}"])
            lateral = arrays.get(f"recurrent_{index}")
            weight = _integers(arrays[f"weight_{index}"])
            recurrent = None if lateral is None else _integers(lateral)
            told = arrays.get(f"wiring_{index}")
            wiring = None if told is None else Wiring.from_numbers(told)
            layers.append(FixedPointLayer(weight, threshold, current_decay, voltage_decay, exponent, recurrent, wiring))
        count = len(layers) if "readout_0" in arrays else 0
        readouts = tuple(arrays[f"readout_{index}"].astype(np.float32) for index in range(count))
        return FixedPointNetwork(tuple(layers), readouts)
    except (LookupError, ValueError, TypeError, OverflowError) as error:
        raise UserError(f"{path} does not hold a fixed-point network ({error}); export it again.") from error


def load_self_test(path: Path, inputs: int, outputs: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Input `(time, batch, inputs)` and expected spikes `(members, time, batch, outputs)` of an artefact."""
    packed = load_arrays(path)
    spikes = []
    for name, width, dimensions in (("input", inputs, 3), ("spikes", outputs, 4)):
        bits = packed.get(name)
        if bits is None or bits.dtype != np.uint8 or bits.ndim != dimensions or bits.shape[-1] != -(-width // 8):
            raise UserError(f"{path} does not hold {name!r} for {width} neurons; export it again.")
        spikes.append(np.unpackbits(bits.view(np.uint8), axis=-1, count=width))
    return spikes[0], spikes[1]


def save_arrays(path: Path, arrays: Arrays) -> None:
    """Write named arrays to a safetensors file and wait until they are on the disk."""
    write_bytes(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def load_arrays(path: Path) -> Arrays:
    """Read them again."""
    try:
        arrays: Arrays = load_file(path)
    except (OSError, SafetensorError, ValueError, TypeError, LookupError, RuntimeError, MemoryError) as error:
        raise UserError(f"{path} cannot be read as safetensors ({error}); export it again.") from error
    return arrays


def write_bytes(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}).") from error
    return digest.hexdigest()


def _levels(weight: NDArray[np.int16]) -> NDArray[np.int8]:
    return (weight // 2).astype(np.int8)


def _integers(levels: NDArray[np.generic]) -> NDArray[np.int16]:
    if levels.dtype != np.int8:
        raise ValueError(f"weights are {levels.dtype}, not int8")
    return 2 * levels.astype(np.int16)
