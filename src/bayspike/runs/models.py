"""A trained network from a run: the newest checkpoint of one of its jobs, ready to predict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayspike.continual.methods import build_rule
from bayspike.errors import UserError, require
from bayspike.learning.batch import posteriors
from bayspike.posteriors.distributions import Posterior
from bayspike.runs.checkpoints import load, steps, unpack_progress
from bayspike.runs.shapes import MODEL, check_shape
from bayspike.spiking.network import Network, NetworkConfig, build
from bayspike.storage.files import reason
from bayspike.storage.plain import from_plain

MOST_CLASSES = 100_000


@dataclass(frozen=True)
class Model:
    """A trained network from a checkpoint, with what is needed to feed it and to name its answers."""

    path: Path
    network: Network
    posteriors: Sequence[Posterior]
    method: str
    about: Mapping[str, Any]  # dataset, classes, sample_shape, time, …

    @property
    def classes(self) -> list[str]:
        return list(self.about["classes"])


def load_model(path: Path, job: str | None = None) -> Model:
    """The model of a checkpoint file, of a job's folder of checkpoints, or of a run directory (of its `job`)."""
    file = find_checkpoint(path, job)
    checkpoint = load(file)
    about: dict[str, Any] = checkpoint.header.get("model", {})
    check_shape(about, MODEL, f"{file}: model")
    wanted = from_plain(NetworkConfig, about["network"], f"{file}: network")
    stored = sum(each.numel() for each in checkpoint.tensors.values())
    require(
        sum(wanted.hidden) <= stored and wanted.inputs <= stored and wanted.classes <= MOST_CLASSES,
        f"{file} tells of a network of {wanted.hidden} neurons, but holds {stored} numbers: the file is damaged.",
    )
    network = build(wanted)
    rule = build_rule(about["method"], about["rule"])
    progress = unpack_progress(checkpoint, network, rule, file)
    return Model(file, network, posteriors(rule, progress.states), about["method"], about)


def find_checkpoint(path: Path, job: str | None = None) -> Path:
    try:
        return _find(path, job)
    except OSError as error:
        raise UserError(f"{path} cannot be looked into ({reason(error)}).") from error


def _find(path: Path, job: str | None) -> Path:
    if not path.is_dir():
        require(
            path.is_file() or (path.name not in ("", "..") and path.with_suffix(".json").is_file()),
            f"{path} is neither a checkpoint nor a directory that holds one.",
        )
        return path
    if steps(path):
        return steps(path)[-1]
    root = path / "checkpoints" if (path / "checkpoints").is_dir() else path
    named = {folder.name: steps(folder)[-1] for folder in sorted(root.iterdir()) if folder.is_dir() and steps(folder)}
    require(bool(named), f"{path} holds no checkpoint: give the directory of a run, or one of its checkpoints.")
    if job is None:
        # the Bayesian learner is what the tool is about, so it is the one meant where nothing is said
        return named[next((name for name in named if name.startswith("bayes")), next(iter(named)))]
    require(job in named, f"{path} has no job {job!r}: it has {', '.join(named)}.")
    return named[job]
