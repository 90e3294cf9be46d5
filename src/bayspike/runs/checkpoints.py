"""Checkpoints: safetensors for the numbers, JSON for the rest; loading one never runs code.

A checkpoint is a pair `<name>.safetensors`, `<name>.json`. The JSON is written last and holds the digest of the
tensors, so a pair is either whole or not taken for one. The last two are kept, and the one with the best
accuracy at any evaluation so far. That best one is chosen on test examples: it is there to look at, and no reported
figure is taken from it.

The JSON also says what the checkpoint belongs to (`identity`): a checkpoint of another configuration,
version or shape is refused with what differs.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bayspike import __version__
from bayspike.continual.protocol import Evaluation, Progress, Scores
from bayspike.errors import UserError, require
from bayspike.learning.batch import init_states
from bayspike.rules.base import Rule
from bayspike.runs.directory import FORMAT
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network
from bayspike.storage.files import read_json, replacing, write_json
from bayspike.storage.plain import differences, to_plain

KEPT = 2
BEST = "best"


class Checkpoint(NamedTuple):
    header: dict[str, Any]
    tensors: dict[str, Tensor]


def save(folder: Path, name: str, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write one pair."""
    path = folder / f"{name}.safetensors"
    with replacing(path) as beside:
        save_file({key: each.detach().cpu().contiguous() for key, each in tensors.items()}, beside)
        digest, size = _digest(beside), beside.stat().st_size
    stamped = {
        "format": FORMAT, "bayspike": __version__, **header,
        "tensors": {"file": path.name, "bytes": size, "blake2b": digest},
    }  # fmt: skip
    write_json(folder / f"{name}.json", stamped)


def load(path: Path) -> Checkpoint:
    """Read one pair, named by either of its files; a damaged one is refused."""
    header = read_json(path.with_suffix(".json"))
    require(
        isinstance(header, dict) and isinstance(header.get("tensors"), dict) and "format" in header,
        f"{path.with_suffix('.json')} is not the JSON of a checkpoint.",
    )
    require(
        header["format"] == FORMAT,
        f"{path} is a checkpoint of format {header['format']}, but this version reads format {FORMAT}.",
    )
    file = path.with_suffix(".safetensors")
    require(file.is_file(), f"{file} is missing beside its JSON.")
    require(
        _digest(file) == header["tensors"].get("blake2b"), f"{file} is damaged: its digest is not that of the JSON."
    )
    try:
        # copies of our own: aligned, and independent of a file that may be deleted
        tensors = {key: each.clone() for key, each in load_file(file).items()}
    except (SafetensorError, OSError) as error:
        raise UserError(f"{file} cannot be read ({error}).") from error
    return Checkpoint(header, tensors)


def latest(folder: Path) -> Checkpoint | None:
    """The newest whole checkpoint of a job; one that a kill or a fault left damaged is passed over."""
    for path in reversed(steps(folder)):
        try:
            return load(path)
        except UserError:
            continue
    return None


def steps(folder: Path) -> list[Path]:
    """The JSON files of the numbered checkpoints, oldest first."""
    return sorted(folder.glob("step-*.json"))


def prune(folder: Path) -> None:
    """Keep the last two, and remove tensors whose JSON never came."""
    for path in steps(folder)[:-KEPT]:
        path.unlink(missing_ok=True)  # the JSON first: without it the pair is none
        path.with_suffix(".safetensors").unlink(missing_ok=True)
    newest = max((path.stem for path in steps(folder)), default="")
    for file in folder.glob("step-*.safetensors"):
        if not file.with_suffix(".json").exists() and file.stem <= newest:
            file.unlink(missing_ok=True)
    for part in folder.glob(".*.part"):
        if f".{os.getpid()}." not in part.name:
            part.unlink(missing_ok=True)


def check_identity(checkpoint: Checkpoint, identity: Mapping[str, Any], where: Path) -> None:
    """Refuse a checkpoint of another configuration or version, and say what differs."""
    theirs = {"bayspike": checkpoint.header.get("bayspike"), **checkpoint.header.get("identity", {})}
    found = differences({"bayspike": __version__, **to_plain(identity)}, theirs)
    if found:
        shown = "; ".join(f"{name} is {old!r} there and {new!r} here" for name, new, old in found[:4])
        more = f" (and {len(found) - 4} more)" if len(found) > 4 else ""
        raise UserError(f"The checkpoint in {where} belongs to another run: {shown}{more}.")


def _digest(path: Path) -> str:
    hashed = hashlib.blake2b(digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            hashed.update(block)
    return hashed.hexdigest()


def pack_progress(progress: Progress) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Where a run stands, as JSON and tensors. What a rule can compute again from its state is left out."""
    tensors = {f"coreset.{k}": kept for k, kept in enumerate(progress.coresets)}
    for index, state in enumerate(progress.states):
        for name, part in state._asdict().items():
            if isinstance(part, Tensor):
                tensors[f"layer.{index}.{name}"] = part
    header = {
        "task": progress.task,
        "batch": progress.batch,
        "presentations": progress.presentations,
        "replayed": progress.replayed,
        "coresets": len(progress.coresets),
        "evaluations": [evaluation_to_plain(each) for each in progress.evaluations],
    }
    return header, tensors


def unpack_progress(checkpoint: Checkpoint, network: Network, rule: Rule, where: Path) -> Progress:
    """The inverse, checked against the shapes of the network."""
    header, tensors = checkpoint.header["progress"], checkpoint.tensors
    states = []
    for index, fresh in enumerate(init_states(network, rule, generator_for(0, "shapes"))):
        parts = {name: part for name, part in fresh._asdict().items() if isinstance(part, Tensor)}
        for name, part in parts.items():
            stored = tensors.get(f"layer.{index}.{name}")
            have = None if stored is None else tuple(stored.shape)
            if stored is None or have != tuple(part.shape) or stored.dtype != part.dtype:
                raise UserError(
                    f"The checkpoint in {where} has {name} of layer {index} in the shape {have}, "
                    f"but the network needs {tuple(part.shape)}."
                )
            parts[name] = stored.to(part.device)
        states.append(fresh._replace(**parts))
    return Progress(
        states=tuple(states),
        task=header["task"],
        batch=header["batch"],
        coresets=tuple(tensors[f"coreset.{k}"] for k in range(header["coresets"])),
        presentations=header["presentations"],
        replayed=header["replayed"],
        evaluations=tuple(evaluation_from_plain(each) for each in header["evaluations"]),
    )


def evaluation_to_plain(evaluation: Evaluation) -> dict[str, Any]:
    return {
        **evaluation._asdict(),
        "tasks": [scores._asdict() for scores in evaluation.tasks],
        "overall": evaluation.overall._asdict(),
    }


def evaluation_from_plain(plain: Mapping[str, Any]) -> Evaluation:
    tasks = tuple(Scores(**scores) for scores in plain["tasks"])
    return Evaluation(plain["task"], plain["batch"], plain["predictor"], tasks, Scores(**plain["overall"]))
