"""A committee as one verifiable artefact: a directory for whoever flashes the chip.

    manifest.json            what it is: layers, scales, budget, warnings, SHA-256 of every file
    network.safetensors      (fixed-point) all members in the chip's integers, with read-outs
    member_000.nir, …        (nir) one graph for each member
    member_000.net, …        (netx) one Lava network for each member; read-outs in readouts.safetensors
    selftest.safetensors     input spikes, the spikes every member must answer with, class probabilities;
                             spikes are bits (`numpy.packbits` along the neurons)

`verify` checks the checksums and runs the files themselves on the self-test input. Integers must answer
with every bit; NIR is run in double precision, where the order of a sum may tip one spike in a thousand. A synapse
whose weight is exactly 0 in every member was cut: the manifest counts those that are left (`kept_synapses`), the budget
has no room for the others, and `verify` refuses files that hold more.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from bayspike import __version__
from bayspike.errors import UserError, require
from bayspike.hardware import lava, nir
from bayspike.hardware.budget import budget
from bayspike.hardware.check import float_run, precision, warnings
from bayspike.hardware.cuba import CubaNetwork, from_network, synapses_there
from bayspike.hardware.files import (
    load_network,
    load_self_test,
    save_arrays,
    save_network,
    sha256,
    write_bytes,
)
from bayspike.hardware.fixed_point import FixedPointNetwork, check_binary_spikes, read_out, run
from bayspike.hardware.rounding import Rounded, to_fixed_point
from bayspike.spiking.filters import DoubleExponential
from bayspike.spiking.network import Network
from bayspike.storage.files import parse_json, replacing_folder

Format = Literal["fixed-point", "nir", "netx"]
VERSION = 1
LARGEST_MANIFEST = 2**20  # bytes
MOST_OF_ANYTHING = 2**24  # members, inputs, neurons of a layer
TIPPED_SHARE = 0.001  # of the spikes, allowed to differ where floats are run


@dataclass(frozen=True)
class Verified:
    """What `verify` did and found good."""

    directory: Path
    format: Format
    members: int
    files: int
    spikes: int  # in the expected answer
    differing: int


def export(
    network: Network,
    weights: Sequence[Tensor],
    out: Path,
    to: Format,
    *,
    spikes: NDArray[np.generic],
    labels: NDArray[np.integer] | None = None,
    steps: Sequence[float] | None = None,
    metadata: Mapping[str, Any] | None = None,
    force: bool = False,
) -> dict[str, Any]:
    """Write the committee to the directory `out` and return its manifest.

    `weights` holds for each layer `(members, neurons, pre)` or `(neurons, pre)`. `spikes` `(time, batch, inputs)` is
    the self-test input, a few real examples; with `labels` the manifest also gives accuracy and calibration before
    and after rounding. `steps` are the steps of the grids the layers were trained on (`Grid.step`).
    """
    require(to in get_args(Format), f"the format must be one of {', '.join(get_args(Format))}, but is {to!r}.")
    out = Path(out)
    _check_target(out, force)
    committee = from_network(network, weights)
    spikes, labels = np.asarray(spikes), None if labels is None else np.asarray(labels)  # tensors will do
    check_binary_spikes(spikes, network.inputs)
    require(spikes.shape[0] > 0 and spikes.shape[1] > 0, "the self-test needs at least one step of one example.")
    test = np.ascontiguousarray(spikes.astype(np.uint8))
    kept = [int(layer.kept.sum()) for layer in committee.layers]
    pruned = any(count < layer.kept.size for count, layer in zip(kept, committee.layers, strict=True))
    with replacing_folder(out) as staging:
        if to == "nir":
            details = _write_nir(staging, committee, test)
        else:
            rounded = to_fixed_point(committee, use_exponent=to == "fixed-point", steps=_with_gain(network, steps))
            details = _write_integers(staging, to, committee, rounded, test, labels)
        manifest = {
            "format": to,
            "version": VERSION,
            "bayspike": __version__,
            "members": committee.members,
            "inputs": committee.inputs,
            "neurons": [layer.neurons for layer in committee.layers],
            "delay": "one time-step for each layer" if to != "nir" else "none between layers; see the documentation",
            **({"kept_synapses": kept} if pruned else {}),
            **details,
            "metadata": dict(metadata or {}),
            "files": {
                path.name: {"sha256": sha256(path), "bytes": path.stat().st_size} for path in sorted(staging.iterdir())
            },
        }
        write_bytes(staging / "manifest.json", _json(manifest))
        verify(staging)
    return manifest


def verify(directory: Path) -> Verified:
    """Check every file's checksum, then run the self-test from the files; raises `UserError` at the first fault."""
    directory = Path(directory)
    manifest = read_manifest(directory)
    for name, entry in manifest["files"].items():
        path = directory / name
        require(path.is_file(), f"{path} is named in the manifest but is missing; export again.")
        require(sha256(path) == entry["sha256"], f"{path} differs from its checksum; export or copy it again.")
    test, expected = load_self_test(
        _listed(directory, manifest, "selftest.safetensors"), manifest["inputs"], manifest["neurons"][-1]
    )
    to, members = manifest["format"], manifest["members"]
    answer, allowed, synapses = _rerun(directory, manifest, test)
    kept = manifest.get("kept_synapses", synapses)
    require(
        all(found <= wanted for found, wanted in zip(synapses, kept, strict=True)),
        f"{directory} was pruned to {kept} synapses, but its files hold {synapses}; export again.",
    )
    require(
        answer.shape == expected.shape,
        f"{directory} answers its self-test with the shape {answer.shape} instead of {expected.shape}.",
    )
    differing, total = int((answer != expected).sum()), int(expected.sum(dtype=np.int64))
    require(
        differing <= allowed * total,
        f"{directory} fails its self-test: {differing} of {total} spikes differ; export again.",
    )
    return Verified(directory, to, members, len(manifest["files"]), total, differing)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of an artefact, checked for form."""
    path = Path(directory) / "manifest.json"
    try:
        require(path.stat().st_size <= LARGEST_MANIFEST, f"{path} is larger than a manifest can be.")
        manifest: dict[str, Any] = parse_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UserError(f"{directory} is not an exported artefact: it has no manifest.json.") from error
    except UserError:
        raise
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read ({error}); export again.") from error
    sound = (
        isinstance(manifest, dict)
        and manifest.get("format") in get_args(Format)
        and isinstance(manifest.get("members"), int)
        and manifest["members"] >= 1
        and isinstance(manifest.get("inputs"), int)
        and isinstance(manifest.get("neurons"), list)
        and len(manifest["neurons"]) >= 1
        and all(_count(each) for each in (manifest["members"], manifest["inputs"], *manifest["neurons"]))
        and isinstance(manifest.get("files"), dict)
        and all(isinstance(e, dict) and isinstance(e.get("sha256"), str) for e in manifest["files"].values())
        and _kept_soundly(manifest)
    )
    require(sound, f"{path} is not a manifest of this program; export again.")
    require(
        manifest.get("version") == VERSION,
        f"{path} has version {manifest.get('version')!r}, but this program reads {VERSION}; export again.",
    )
    plain = all(
        "\0" not in name and name == Path(name).name and name not in ("", ".", "..") for name in manifest["files"]
    )
    require(plain, f"{path} names files outside its directory, which are not read.")
    return manifest


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_OF_ANYTHING


def _kept_soundly(manifest: dict[str, Any]) -> bool:
    kept = manifest.get("kept_synapses")
    return kept is None or (
        isinstance(kept, list)
        and len(kept) == len(manifest["neurons"])
        and all(isinstance(each, int) and not isinstance(each, bool) and each >= 0 for each in kept)
    )


def _write_integers(
    staging: Path,
    to: Format,
    committee: CubaNetwork,
    rounded: Rounded,
    test: NDArray[np.uint8],
    labels: NDArray[np.integer] | None,
) -> dict[str, Any]:
    network, kept = rounded.network, [layer.kept for layer in committee.layers]
    runs = run(network, test)
    exact = float_run(committee, test)
    readout = network.readouts[-1]
    probabilities = read_out([layer.spikes for layer in runs], readout)
    if to == "fixed-point":
        save_network(staging / "network.safetensors", network)
    else:
        for member in range(network.members):
            lava.write(staging / _member(member, to), network, member)
        save_arrays(staging / "readouts.safetensors", {f"readout_{i}": r for i, r in enumerate(network.readouts)})
    _save_test(staging, test, runs[-1].spikes, probabilities)
    compared = precision(read_out(exact, readout).mean(axis=0), probabilities.mean(axis=0), labels)
    return {
        "quantisation": [
            {
                "scale": scale,
                "relative_weight_error": error,
                "weight_exponent": layer.weight_exponent,
                "threshold_mantissa": layer.threshold,
                "current_decay": layer.current_decay,
                "voltage_decay": layer.voltage_decay,
            }
            for layer, scale, error in zip(network.layers, rounded.scales, rounded.weight_errors, strict=True)
        ],
        "precision": compared.as_json(),
        "budget": budget(network, test, runs, kept=kept).as_json(),
        "warnings": warnings(rounded, runs, [float(layer.mean()) for layer in exact], kept),
    }


def _write_nir(staging: Path, committee: CubaNetwork, test: NDArray[np.uint8]) -> dict[str, Any]:
    for member in range(committee.members):
        nir.write(staging / _member(member, "nir"), committee, member)
    exact = float_run(committee, test)
    _save_test(staging, test, exact[-1], read_out(exact, committee.readouts[-1]))
    silent = [f"layer {i} is silent; lower its threshold." for i, spikes in enumerate(exact) if not spikes.any()]
    return {"warnings": silent}


def _save_test(
    staging: Path, test: NDArray[np.uint8], spikes: NDArray[np.uint8], probabilities: NDArray[np.float64]
) -> None:
    answers = {"input": np.packbits(test, axis=-1), "spikes": np.packbits(spikes, axis=-1)}
    save_arrays(staging / "selftest.safetensors", {**answers, "probabilities": probabilities})


def _rerun(
    directory: Path, manifest: dict[str, Any], test: NDArray[np.uint8]
) -> tuple[NDArray[np.uint8], float, list[int]]:
    """From the files: spikes of the last layer `(members, time, batch, neurons)`, the share of them that may differ,
    and how many synapses of each layer are not 0 in some member."""
    to: Format = manifest["format"]
    if to == "fixed-point":
        network = load_network(_listed(directory, manifest, "network.safetensors"))
        return run(network, test)[-1].spikes, 0.0, _synapses([network])
    paths = [_listed(directory, manifest, _member(member, to)) for member in range(manifest["members"])]
    if to == "netx":
        integers = lava.read_all(paths)
        return np.concatenate([run(network, test)[-1].spikes for network in integers]), 0.0, _synapses(integers)
    floats = nir.read_all(paths)
    for each in floats:
        check_binary_spikes(test, each.inputs)
    answers = np.concatenate([float_run(each, test)[-1] for each in floats])
    return answers, TIPPED_SHARE, _synapses(floats)


def _synapses(networks: Sequence[CubaNetwork] | Sequence[FixedPointNetwork]) -> list[int]:
    """Of each layer those that are not 0 in some member, whether the members are one network or one each."""
    there = [[synapses_there(layer.weight, layer.recurrent) for layer in network.layers] for network in networks]
    shapes = {tuple(layer.shape for layer in layers) for layers in there}
    require(len(shapes) == 1, "the members of an artefact must have layers of one size each; export again.")
    return [int(np.any(layers, axis=0).sum()) for layers in zip(*there, strict=True)]


def _with_gain(network: Network, steps: Sequence[float] | None) -> list[float] | None:
    if steps is None:
        return None
    gains = [a.neuron.filter.gain for a in network.layers if isinstance(a.neuron.filter, DoubleExponential)]
    return [step * gain for step, gain in zip(steps, gains, strict=True)]


def _check_target(out: Path, force: bool) -> None:
    if not out.exists():
        return
    require(force, f"{out} exists; choose another directory, or replace it with --force (force=True).")
    require(
        out.is_dir() and (out / "manifest.json").is_file(),
        f"{out} is not an exported artefact, so it is not replaced; choose another directory.",
    )


def _listed(directory: Path, manifest: dict[str, Any], name: str) -> Path:
    require(name in manifest["files"], f"the manifest of {directory} does not list {name}; export again.")
    return directory / name


def _member(index: int, to: Format) -> str:
    return f"member_{index:03d}.{'nir' if to == 'nir' else 'net'}"


def _json(manifest: dict[str, Any]) -> bytes:
    try:
        return (json.dumps(manifest, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()
    except (TypeError, ValueError) as error:
        raise UserError(f"metadata must be plain JSON values ({error}).") from error
