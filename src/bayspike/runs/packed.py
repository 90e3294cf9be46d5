"""A trained posterior to ship: two bytes a synapse, in a folder of its own.

    posterior.safetensors    for each layer the mean (int8) and the log-precision (uint8)
    posterior.json           the steps they are counted in, the network, what feeds it, and the digest of the tensors

It is a checkpoint without what only further learning needs: it predicts, but cannot be trained on.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from bayspike.errors import require
from bayspike.posteriors.distributions import Posterior
from bayspike.posteriors.packed import PackedGaussian, pack_all, unpack
from bayspike.runs.checkpoints import Checkpoint, load, save
from bayspike.spiking.network import Network
from bayspike.storage.files import replacing_folder
from bayspike.storage.plain import coerce

NAME = "posterior"
STEPS = ("mean_step", "low", "log_step")


def save_packed(out: Path, about: Mapping[str, Any], posteriors: Sequence[Posterior], *, force: bool = False) -> int:
    """Write the posteriors of a model, described by `about`, to the folder `out`; returns their bytes."""
    if out.exists():
        require(force, f"{out} exists: choose another directory or pass --force to replace it.")
        require(is_packed(out), f"{out} is not a packed posterior, so it is not replaced: choose another directory.")
    layers = pack_all(posteriors)
    tensors = {}
    for index, layer in enumerate(layers):
        tensors[f"layer.{index}.mean"] = layer.mean
        tensors[f"layer.{index}.log_precision"] = layer.log_precision
    # where the data lie here says nothing where this is going
    model = {**about, "data": {**about["data"], "root": None}}
    steps = [{name: getattr(layer, name) for name in STEPS} for layer in layers]
    with replacing_folder(out) as staging:
        save(staging, NAME, {"model": model, "packed": steps}, tensors)
        (staging / f"{NAME}.safetensors").chmod(0o644)  # it is there to be handed on
        load(staging / NAME)  # as it will be read
    return sum(layer.bytes for layer in layers)


def is_packed(folder: Path) -> bool:
    return (folder / f"{NAME}.json").is_file()


def packed_posteriors(checkpoint: Checkpoint, network: Network, where: Path) -> list[Posterior]:
    """The posteriors again, checked against the shapes of the network."""
    steps, found = checkpoint.header["packed"], []
    require(
        isinstance(steps, list) and len(steps) == len(network.layers),
        f"{where} must hold one packed posterior for each of the network's {len(network.layers)} layers.",
    )
    for index, (layer, each) in enumerate(zip(network.layers, steps, strict=True)):
        named = each if isinstance(each, dict) else {}
        numbers = [coerce(named.get(name), float, f"{where}: packed {name} of layer {index}") for name in STEPS]
        parts = [checkpoint.tensors.get(f"layer.{index}.{name}") for name in ("mean", "log_precision")]
        kinds = [None if part is None else (part.dtype, tuple(part.shape)) for part in parts]
        require(
            kinds == [(torch.int8, layer.shape), (torch.uint8, layer.shape)],
            f"{where} must hold int8 means and uint8 log-precisions of the shape {layer.shape} for layer {index}.",
        )
        mean, levels = (part for part in parts if part is not None)
        found.append(unpack(PackedGaussian(mean, levels, *numbers), layer.readout.dtype))
    return list(found)
