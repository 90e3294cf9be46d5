"""A trained network, ready to predict: the newest checkpoint of a run's job, a packed posterior, a learner's file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, get_args

import torch

from bayspike.continual.methods import build_rule
from bayspike.continual.tasks import Concatenated, of_classes
from bayspike.data import catalogue
from bayspike.data.base import Dataset, Encoder, Samples
from bayspike.errors import UserError, require
from bayspike.learner.examples import relabelled
from bayspike.learner.file import is_learner_file, load_state, name_of_rule
from bayspike.learner.state import Calibration, LearnerState, network_of, posteriors_of
from bayspike.learning.batch import posteriors
from bayspike.posteriors.distributions import Posterior
from bayspike.runs.checkpoints import load, steps, unpack_progress
from bayspike.runs.outcome.shapes import MODEL, check_shape
from bayspike.runs.packed import NAME, is_packed, packed_posteriors
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.plan.prepare import stratified
from bayspike.spiking.network import Network, NetworkConfig, build
from bayspike.storage.files import reason
from bayspike.storage.plain import from_plain

MOST_CLASSES = 100_000


@dataclass(frozen=True)
class Model:
    """A trained network from a file, with what is needed to feed it and to name its answers."""

    path: Path
    network: Network
    posteriors: Sequence[Posterior]
    method: str
    about: Mapping[str, Any]  # dataset, classes, sample_shape, time, …
    calibration: Calibration | None = None  # of its own committee, where the file has one
    seed: int = 0  # whose draws make its own committee
    held_back: Sequence[Samples] = ()  # examples in the file that it has not learnt from
    stored: Sequence[Samples] = ()  # and those that it has

    @property
    def classes(self) -> list[str]:
        return list(self.about["classes"])

    def own_calibration(self, predictor: str, members: int, seed: int) -> Calibration | None:
        """What the file says of its own committee, if it is this one that is asked: another was not calibrated."""
        own = predictor == "committee" and members == int(self.about["members"]) and seed == self.seed
        return self.calibration if own else None


def load_model(path: Path, job: str | None = None) -> Model:
    """The model of a learner's file, a checkpoint, a job's folder of checkpoints, a run directory (of its `job`), or a
    packed posterior."""
    if is_learner_file(path):
        return _model_of_learner(path)
    file = find_checkpoint(path, job)
    checkpoint = load(file)
    about: dict[str, Any] = checkpoint.header.get("model", {})
    check_shape(about, MODEL, f"{file}: model")
    wanted = from_plain(NetworkConfig, about["network"], f"{file}: network")
    stored = sum(each.numel() for each in checkpoint.tensors.values())
    require(
        sum(prod(plan.shape) for plan in wanted.plans()) <= stored and wanted.classes <= MOST_CLASSES,
        f"{file} tells of a network of {wanted.described} neurons, but holds {stored} numbers: the file is damaged.",
    )
    network = build(wanted)
    if "packed" in checkpoint.header:
        return Model(file, network, packed_posteriors(checkpoint, network, file), about["method"], about)
    rule = build_rule(about["method"], about["rule"])
    progress = unpack_progress(checkpoint, network, rule, file)
    return Model(file, network, posteriors(rule, progress.states), about["method"], about)


def about_of(state: LearnerState) -> dict[str, Any]:
    """What a learner says of its inputs and names, in the words of a run's checkpoint."""
    recipe = state.recipe
    kind = name_of_rule(recipe.rule)
    encoder = {"encoder": recipe.encoding.kind} if recipe.encoding.kind in get_args(Encoder) else {}
    about = {
        "name": "data of its own", "simulated": False, "data": {"options": encoder}, "label": kind, "method": kind,
        **state.about,
        "gather": recipe.gather,
        "seed": state.seed, "members": recipe.members, "classes": list(state.classes), "time": recipe.encoding.time,
        "inputs": recipe.encoding.inputs, "sample_shape": list(recipe.encoding.shape),
    }  # fmt: skip
    plain = all(isinstance(about[key], str) for key in ("name", "label", "method")) and isinstance(about["data"], dict)
    require(plain, "the learner does not say soundly where it is from.")
    return about


def _model_of_learner(path: Path) -> Model:
    state = load_state(path)
    require(len(state.classes) > 1, f"{path} knows fewer than two classes yet: let it learn more first.")
    try:
        about = about_of(state)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    held_back, stored = state.held_back, [part for part in state.memory if len(part)]
    return Model(
        path, network_of(state), posteriors_of(state), about["method"], about, state.calibration, state.seed,
        held_back, stored,
    )  # fmt: skip


def own_data(model: Model, root: Path | None, name: str | None, count: int | None, learnt_too: bool = False) -> Dataset:
    """What a learner's file can be judged on: a data set by name, of classes it knows, or the examples it held back.

    With `learnt_too` the examples it has learnt from serve where none were held back.
    """
    if name is not None:
        seen = model.about.get("view", {}) if name == model.about["name"] else {}
        as_taught = {option: seen[option] for option in ("delays", "bin_ms") if option in seen}
        dataset = catalogue.load(name, root=root, time=int(model.about["time"]), **as_taught)
        dataset = _of_known_classes(dataset, model)
    else:
        parts = tuple(model.held_back) or (tuple(model.stored) if learnt_too else ())
        require(
            len(parts) > 0,
            f"{model.path} holds no examples that were held back: name a data set with --dataset.",
        )
        about, shape = "the examples it held back", tuple(model.about["sample_shape"])
        everything = Concatenated(parts)
        dataset = Dataset(about, everything, everything, tuple(model.classes), shape, bool(model.about["simulated"]))
    return replace(dataset, test=stratified(dataset.test, count, 0, "test_examples"))


def as_tasks_saw_it(dataset: Dataset, experiment: Experiment, about: Mapping[str, Any]) -> Dataset:
    """The test samples behind the inputs' orders of every task, where tasks re-wire the inputs; else the data set."""
    preset, written = about.get("preset"), about.get("asked_tasks")
    # files of before know neither
    known = isinstance(preset, str) and preset in experiment.presets and isinstance(written, str | None)
    if not experiment.rewires or not known:
        return dataset
    tests = tuple(task.test for task in experiment.tasks_of(str(preset), dataset, written).judges)
    return replace(dataset, name=f"{dataset.name}, {len(tests)} tasks", test=Concatenated(tests))


def _of_known_classes(dataset: Dataset, model: Model) -> Dataset:
    known = [number for number, word in enumerate(dataset.classes) if word in model.classes]
    require(
        len(known) > 0 and dataset.test.inputs == model.network.inputs,
        f"{dataset.name} has {dataset.test.inputs} inputs and the classes {', '.join(dataset.classes[:10])}, but the "
        f"learner {model.network.inputs} and {', '.join(model.classes[:10])}.",
    )
    test = of_classes(dataset.test, known)
    places = torch.tensor([model.classes.index(word) if word in model.classes else -1 for word in dataset.classes])
    test = relabelled(test, places[test.labels])
    missing = "" if len(known) == len(dataset.classes) else f" ({len(known)} of {len(dataset.classes)} classes)"
    return replace(dataset, name=dataset.name + missing, train=test, test=test, classes=tuple(model.classes))


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
        run = path.parent if (path.parent / "config.json").is_file() else None
        require(
            path.suffix in (".json", ".safetensors", "") and path.name not in ("config.json", "summary.json"),
            f"{path} is no checkpoint: give {run or 'the directory of a run'}, or a file in its checkpoints.",
        )
        return path
    if is_packed(path):
        return path / f"{NAME}.json"
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
