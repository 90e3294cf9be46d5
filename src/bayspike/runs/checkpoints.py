"""Checkpoints: safetensors for the numbers, JSON for the rest; loading one never runs code.

A checkpoint is a pair `<name>.safetensors`, `<name>.json`. The JSON is written last and holds the digest of the
tensors and of itself, so a pair is either whole or not taken for one. The last two are kept, and the one with the best
accuracy at any evaluation so far. That best one is chosen on test examples: it is there to look at, and no reported
figure is taken from it.

The JSON also says what the checkpoint belongs to (`identity`): a checkpoint of another configuration,
version or shape is refused with what differs. Files of format 1 had no digest of their JSON: they are read, and said to
be unverified.
"""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_bytes
from safetensors.torch import save as save_bytes
from torch import Tensor

from bayspike import __version__
from bayspike.continual.protocol import UNJUDGED, Evaluation, Progress, Scores
from bayspike.errors import UserError, require
from bayspike.learning.batch import init_states
from bayspike.rules.base import Rule
from bayspike.runs.outcome.shapes import PROGRESS, check_shape
from bayspike.runs.plan.config import identity_from_json
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network
from bayspike.storage.files import clear_parts, read_json, read_limited, reason, write_json, write_whole
from bayspike.storage.plain import differences, to_plain
from bayspike.storage.sealed import SEAL, check_seal, seal

FORMAT = 2  # of checkpoints; raised when an old reader would misread a new file
WITHOUT_SEAL = 1  # the format whose JSON has no digest
KEPT = 2
BEST = "best"
LARGEST_TENSORS = 2**34  # bytes that are read


class Checkpoint(NamedTuple):
    header: dict[str, Any]
    tensors: dict[str, Tensor]

    @property
    def verified(self) -> bool:
        """Whether a digest vouches for all of it, not for the tensors alone."""
        return SEAL in self.header


def save(folder: Path, name: str, header: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write one pair."""
    path = folder / f"{name}.safetensors"
    content = save_bytes({key: each.detach().cpu().contiguous() for key, each in tensors.items()})
    write_whole(path, content)
    stamped = {
        "format": FORMAT, "bayspike": __version__, **header,
        "tensors": {"file": path.name, "bytes": len(content), "blake2b": _digest(content)},
    }  # fmt: skip
    write_json(folder / f"{name}.json", seal(stamped))


def load(path: Path) -> Checkpoint:
    """Read one pair, named by either of its files; a damaged one is refused."""
    named = path.with_suffix(".json")
    header = read_json(named)
    require(
        isinstance(header, dict) and isinstance(header.get("tensors"), dict) and "format" in header,
        f"{named} is not the JSON of a checkpoint.",
    )
    require(
        header["format"] in (WITHOUT_SEAL, FORMAT) and not isinstance(header["format"], bool),
        f"{path} is a checkpoint of format {header['format']!r:.20}, but this version reads format {FORMAT}.",
    )
    if header["format"] != WITHOUT_SEAL or SEAL in header:
        check_seal(header, str(named))
    file = path.with_suffix(".safetensors")
    require(file.is_file(), f"{file} is missing beside its JSON.")
    content = read_limited(file, LARGEST_TENSORS, "a checkpoint")
    require(
        _digest(content) == header["tensors"].get("blake2b"), f"{file} is damaged: its digest is not that of the JSON."
    )
    try:
        # copies of our own: aligned, and independent of the bytes that were read
        tensors = {key: each.clone() for key, each in load_bytes(content).items()}
    except (SafetensorError, ValueError, TypeError, KeyError, RuntimeError, OverflowError) as error:
        raise UserError(f"{file} cannot be read ({error}).") from error
    return Checkpoint(header, tensors)


def latest(folder: Path, say: Callable[[str], None] = lambda sentence: None) -> Checkpoint | None:
    """The newest whole checkpoint of a job, None where there is none yet.

    One that a fault left damaged is passed over, with a word to `say`. Where all of them are, or the newest is of
    another format, nothing is begun anew in silence: that is refused.
    """
    known = steps(folder)
    first: UserError | None = None
    for path in reversed(known):
        try:
            found = load(path)
        except UserError as error:
            first = first or error
            if " of format " in str(error):
                break
            continue
        if first is not None:
            say(f"warning: {first} Going on from the checkpoint before it.")
        if not found.verified:
            say(f"warning: {path} is of an older format, whose settings and scores no digest vouches for: unverified.")
        return found
    if first is None:
        return None
    raise UserError(
        f"None of the checkpoints in {folder} can be used: {first} Put a whole one back, or begin this job anew with "
        "`bayspike resume --restart`."
    )


def set_aside(folder: Path) -> int:
    """Take all numbered checkpoints out of use, without deleting them; returns how many there were."""
    found = steps(folder)
    try:
        for path in found:
            for file in (path, path.with_suffix(".safetensors")):
                if file.exists():
                    file.rename(file.with_name(f"{file.name}.set-aside"))
    except OSError as error:
        raise UserError(f"{folder} cannot be changed ({reason(error)}).") from error
    return len(found)


def steps(folder: Path) -> list[Path]:
    """The JSON files of the numbered checkpoints, oldest first."""
    return sorted(folder.glob("step-*.json"))


def prune(folder: Path) -> None:
    """Keep the last two, and remove tensors whose JSON never came."""
    try:
        for path in steps(folder)[:-KEPT]:
            path.unlink(missing_ok=True)  # the JSON first: without it the pair is none
            path.with_suffix(".safetensors").unlink(missing_ok=True)
        newest = max((path.stem for path in steps(folder)), default="")
        for file in folder.glob("step-*.safetensors"):
            if not file.with_suffix(".json").exists() and file.stem <= newest:
                file.unlink(missing_ok=True)
        clear_parts(folder)
    except OSError as error:
        raise UserError(f"{folder} cannot be changed ({reason(error)}): the directory must be writable.") from error


def check_identity(checkpoint: Checkpoint, identity: Mapping[str, Any], where: Path) -> None:
    """Refuse a checkpoint of another configuration or version, and say what differs."""
    stored = checkpoint.header.get("identity")
    require(isinstance(stored, dict), f"The checkpoint in {where} does not say which run it belongs to.")
    assert isinstance(stored, dict)
    theirs = {
        "bayspike": checkpoint.header.get("bayspike"),
        **identity_from_json(stored, f"The checkpoint in {where}"),
    }
    found = differences({"bayspike": __version__, **to_plain(identity)}, theirs)
    if found:
        raise UserError(f"The checkpoint in {where} belongs to another run: {describe_differences(found)}.")


def describe_differences(found: list[tuple[str, Any, Any]]) -> str:
    """The first few of `differences(ours, theirs)`, in words."""
    shown = "; ".join(f"{name} is {old!r} there and {new!r} here" for name, new, old in found[:4])
    return shown + (f" (and {len(found) - 4} more)" if len(found) > 4 else "")


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def pack_progress(progress: Progress) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Where a run stands, as JSON and tensors. What a rule can compute again from its state is left out."""
    tensors = {f"coreset.{k}": kept for k, kept in enumerate(progress.coresets)}
    tensors |= {f"answers.{k}": said for k, said in enumerate(progress.answers)}
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
    header: dict[str, Any] = checkpoint.header.get("progress", {})
    tensors = checkpoint.tensors
    check_shape(header, PROGRESS, f"The checkpoint in {where}: progress")
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
    coresets = [tensors.get(f"coreset.{k}") for k in range(min(header["coresets"], len(tensors) + 1))]
    sound = [each for each in coresets if each is not None and each.ndim == 1 and each.dtype == torch.int64]
    require(
        len(sound) == header["coresets"] and all(not len(each) or int(each.min()) >= 0 for each in sound),
        f"The checkpoint in {where} does not hold the {header['coresets']} coresets it tells of.",
    )
    answers = [tensors[f"answers.{k}"] for k in range(len(sound)) if f"answers.{k}" in tensors]
    require(
        len(answers) in (0, len(sound))
        and all(
            said.dtype == torch.uint8 and tuple(said.shape) == (len(kept), network.classes)
            for said, kept in zip(answers, sound, strict=False)
        ),
        f"The checkpoint in {where} does not hold an answer to each of its stored examples.",
    )
    return Progress(
        states=tuple(states),
        task=header["task"],
        batch=header["batch"],
        coresets=tuple(sound),
        answers=tuple(answers),
        presentations=header["presentations"],
        replayed=header["replayed"],
        evaluations=tuple(evaluation_from_plain(each) for each in header["evaluations"]),
    )


def evaluation_to_plain(evaluation: Evaluation) -> dict[str, Any]:
    return {
        **evaluation._asdict(),
        "tasks": [scores._asdict() if scores.examples else None for scores in evaluation.tasks],
        "overall": evaluation.overall._asdict(),
    }


def evaluation_from_plain(plain: Mapping[str, Any]) -> Evaluation:
    tasks = tuple(UNJUDGED if scores is None else Scores(**scores) for scores in plain["tasks"])
    return Evaluation(plain["task"], plain["batch"], plain["predictor"], tasks, Scores(**plain["overall"]))
