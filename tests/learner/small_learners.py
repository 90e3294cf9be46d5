"""Learners and examples small enough to be saved at every byte."""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.data.base import CoordinateSamples, Dataset, SpikeSamples, StaticSamples
from bayspike.data.encoders import PopulationCode, pack
from bayspike.learner import Learner, LearnerState, birth
from bayspike.learner.file import pack_state
from bayspike.rules import EWC, SGD, STE, TACOS, BernoulliVI, GaussianVI, Rule

RULES: dict[str, Rule] = {
    "bayes": GaussianVI(lr=100.0, prior_precision=100.0, temperature=1e-4),
    "bayes at the synapses": GaussianVI(lr=100.0, prior_precision=100.0, temperature=1e-4, sampling="synapse"),
    "bayes-binary": BernoulliVI(lr=1.0, temperature=1e-3),
    "sgd": SGD(lr=0.1),
    "ste": STE(lr=0.1),
    "ewc": EWC(lr=0.1, strength=1e-2),
    "online ewc": EWC(lr=0.1, strength=1e-2, online=True, decay=0.5),
    "tacos": TACOS(lr=0.1, rate_threshold=0.01, decay=0.1),
}


def pictures(words: str, each: int = 10, seed: int = 0) -> tuple[NDArray[np.uint8], list[str]]:
    """2×4 pixels; those of a letter are bright where its code has a bit."""
    random = np.random.default_rng(seed)
    labels = [word for word in words for _ in range(each)]
    bright = np.array([[ord(word) * 37 >> bit & 1 for bit in range(8)] for word in labels])
    values = 200 * bright + random.integers(0, 50, bright.shape)
    return values.astype(np.uint8).reshape(-1, 2, 4), labels


def small(rule: Rule | None = None, **settings: Any) -> Learner:
    options: dict[str, Any] = {"hidden": (8, 7), "time": 6, "batch": 8, "members": 2, "held_back": 0.2, "epochs": 2}
    return lively(Learner((2, 4), rule=rule or RULES["bayes"], **{**options, **settings}))


def lively(newborn: Learner) -> Learner:
    """The same with fast membranes and a low threshold, so that all layers are busy within six steps."""
    recipe = newborn.state.recipe
    threshold = 0.5 if recipe.rule.binary else 0.05
    fast = replace(recipe.network, synapse_decay=0.0, membrane_decay=0.5, threshold=threshold, slope=2.0)
    return Learner.of(birth(replace(recipe, network=fast), newborn.classes_), newborn.on_task, newborn.on_batch)


def datasets() -> dict[str, Dataset]:
    """One of each kind of samples."""
    x, words = pictures("abcd", 12)
    names = ("a", "b", "c", "d")
    labels = torch.tensor([names.index(word) for word in words])
    flat = torch.from_numpy(x.reshape(-1, 8))
    trains = (np.random.default_rng(0).random((len(x), 6, 8)) * 255 < x.reshape(-1, 1, 8)).astype(np.uint8)
    points = torch.stack([labels.float(), torch.arange(len(x)) / len(x)], dim=1)
    code = PopulationCode((0.0, 0.0), (3.0, 1.0), 4)
    kinds = {
        "rate": StaticSamples(flat, labels, 6),
        "latency": StaticSamples(flat, labels, 6, "latency"),
        "spikes": SpikeSamples(torch.from_numpy(pack(trains)), labels, 6, 8),
        "population": CoordinateSamples(points, labels, 6, code),
    }
    return {kind: Dataset(kind, samples, samples, names, (2, 4)) for kind, samples in kinds.items()}


def same(ours: LearnerState, theirs: LearnerState) -> bool:
    """Every bit and every word of it."""
    (about, tensors), (other_about, other_tensors) = pack_state(ours), pack_state(theirs)
    alike = all(map(_equal, tensors.values(), other_tensors.values()))
    return about == other_about and list(tensors) == list(other_tensors) and alike


def _equal(ours: Tensor, theirs: Tensor) -> bool:
    return ours.dtype == theirs.dtype and torch.equal(ours, theirs)
