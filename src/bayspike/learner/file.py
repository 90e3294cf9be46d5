"""A learner as one file, `*.bayspike`: all that it is, and nothing that runs.

What it holds is checked against itself before anything is built from it: every matrix must have the shape that the
sizes of the network call for, every stored example the learner's inputs, every label a class.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor

from bayspike import __version__
from bayspike.continual.methods import METHODS, build_rule, describe_rule
from bayspike.continual.protocol import StreamConfig
from bayspike.data.base import CoordinateSamples, SpikeSamples, StaticSamples
from bayspike.data.encoders import PopulationCode
from bayspike.errors import UserError, require, require_range
from bayspike.learner.encoding import LONGEST, Encoding
from bayspike.learner.examples import Plain, check_name
from bayspike.learner.state import Calibration, LearnerState, Recipe
from bayspike.predict.temperature import Temperature
from bayspike.predict.watching import ForeignRule
from bayspike.rules import RULES, Rule
from bayspike.rules.base import State
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig
from bayspike.storage.archive import is_sealed, read_sealed, write_sealed
from bayspike.storage.plain import coerce, from_plain, to_plain

FORMAT = 1  # raised when an old reader would misread a new file
KIND = "bayspike learner"
ENDING = ".bayspike"
INFINITY = "infinity"
MOST_CLASSES = 100_000
_COUNTERS = ("since_task", "presentations", "replayed")
_SETTINGS = ("epochs", "remember", "horizon", "replay", "memory", "members", "held_back", "false_alarm")
_LATER = {"gather": "mean", "foreign_score": "entropy"}  # settings that came later, and what was so before


def is_learner_file(path: Path) -> bool:
    """Whether a path is meant to be a learner's file: by its ending or its first bytes."""
    return path.is_file() and (path.suffix == ENDING or is_sealed(path))


def save_state(state: LearnerState, path: Path) -> Path:
    """Write a learner, atomically; the same learner always gives the same bytes."""
    about, tensors = pack_state(state)
    write_sealed(path, about, tensors)
    return path


def load_state(path: Path) -> LearnerState:
    """Read a learner. A file that is damaged, of another version or not sound is refused."""
    about, tensors = read_sealed(path)
    require(isinstance(about, dict) and about.get("kind") == KIND, f"{path} is not the file of a learner.")
    require(
        about.get("format") == FORMAT,
        f"{path} is a learner of format {about.get('format')!r}, but bayspike {__version__} reads format {FORMAT}.",
    )
    try:
        return unpack_state(about, tensors)
    except UserError as error:
        raise UserError(f"{path} is not a sound learner: {error}") from error
    except KeyError as error:
        raise UserError(f"{path} is not a sound learner: it lacks {error}.") from error
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError, RuntimeError) as error:
        raise UserError(f"{path} is not a sound learner ({type(error).__name__}: {error}).") from error


def pack_state(state: LearnerState) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A learner as plain values and tensors."""
    recipe, tensors = state.recipe, {}
    for index, layer in enumerate(state.states):
        for name, part in layer._asdict().items():
            if isinstance(part, Tensor):
                tensors[f"layer.{index}.{name}"] = part
    calibration = None
    if state.calibration is not None:
        foreign = state.calibration.foreign
        if foreign is not None:
            tensors["calibration.thresholds"] = foreign.thresholds
        calibration = {
            "score": None if foreign is None else foreign.score,
            "examples": state.calibration.examples,
            "temperature": to_plain(state.calibration.temperature),
        }
    about = {
        "kind": KIND,
        "format": FORMAT,
        "bayspike": __version__,
        "classes": list(state.classes),
        "tasks": list(state.tasks),
        "seen": list(state.seen),
        "seen_alone": list(state.seen_alone),
        **{name: getattr(state, name) for name in _COUNTERS},
        "network": to_plain(recipe.network),
        "encoding": to_plain(recipe.encoding),
        "rule": {"name": name_of_rule(recipe.rule), "settings": _finite(describe_rule(recipe.rule))},
        "training": to_plain(recipe.training),
        "settings": {name: getattr(recipe, name) for name in _SETTINGS} | _unusual(recipe),
        "stored": [_pack_samples(part, f"stored.{k}", tensors) for k, part in enumerate(state.stored)],
        "online": None if state.online is None else _pack_samples(state.online, "online", tensors),
        "held_back": [_pack_samples(part, f"held_back.{k}", tensors) for k, part in enumerate(state.held_back)],
        "calibration": calibration,
        "about": to_plain(state.about),
    }
    return about, tensors


def unpack_state(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> LearnerState:
    """The inverse, with everything checked."""
    left = dict(tensors)
    classes = coerce(about["classes"], tuple[str, ...], "classes")
    require(len(classes) <= MOST_CLASSES and len(set(classes)) == len(classes), "its classes are too many or doubled.")
    for name in classes:
        check_name(name)
    network = from_plain(NetworkConfig, about["network"], "network")
    require(network.classes <= max(2, len(classes)), "its network has more classes than there are names.")
    rule = build_rule(coerce(about["rule"]["name"], str, "rule"), _infinite(about["rule"]["settings"]))
    states = _unpack_layers(network, rule, left)
    encoding = from_plain(Encoding, about["encoding"], "encoding")
    training = from_plain(StreamConfig, about["training"], "training")
    settings, hints = about["settings"], get_type_hints(Recipe)
    sound = isinstance(settings, dict) and set(settings) - set(_LATER) == set(_SETTINGS)
    require(sound, f"its settings are not {_SETTINGS}.")
    given = {name: coerce(settings[name], hints[name], name) for name in settings}
    recipe = Recipe(network, encoding, rule, training, **given)
    size = len(classes)
    held_back = tuple(
        _unpack_samples(each, f"held_back.{k}", left, encoding, size, any_time=True)
        for k, each in _listed(about, "held_back")
    )
    state = LearnerState(
        recipe=recipe,
        classes=classes,
        states=states,
        tasks=coerce(about["tasks"], tuple[str, ...], "tasks"),
        stored=tuple(
            _unpack_samples(each, f"stored.{k}", left, encoding, size) for k, each in _listed(about, "stored")
        ),
        online=None if about["online"] is None else _unpack_samples(about["online"], "online", left, encoding, size),
        held_back=held_back,
        seen=coerce(about["seen"], tuple[int, ...], "seen"),
        seen_alone=coerce(about["seen_alone"], tuple[int, ...], "seen_alone"),
        **{name: coerce(about[name], int, name) for name in _COUNTERS},
        calibration=_unpack_calibration(about["calibration"], left, encoding),
        about=coerce(about["about"], dict[str, Any], "about"),
    )
    require(len(state.seen) == len(state.seen_alone) == size, "it does not count the examples of every class.")
    require(len(state.stored) == len(state.tasks), "it does not store examples of every task.")
    require(min((0, *state.seen, *state.seen_alone, state.since_task)) == 0, "it counts fewer than no examples.")
    require(not left, f"it holds a tensor of no use, {next(iter(left), '')!r}.")
    return state


def _unusual(recipe: Recipe) -> dict[str, str]:
    """What came later, where it is not as it always was: such a learner is none that an old reader should take."""
    return {name: getattr(recipe, name) for name, before in _LATER.items() if getattr(recipe, name) != before}


def has_name(rule: Rule) -> bool:
    """Whether a file can keep the rule."""
    return any(type(rule) is kind and name in METHODS for name, kind in RULES.items())


def name_of_rule(rule: Rule) -> str:
    """The name under which a file keeps a rule; one of somebody's own has none."""
    for name, kind in RULES.items():
        if type(rule) is kind and name in METHODS:
            return name
    raise UserError(
        f"a learner can be saved with the rules {', '.join(kind.__name__ for kind in RULES.values())}, but this one "
        f"has {type(rule).__name__}."
    )


def _finite(settings: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: it becomes a word."""
    return {name: INFINITY if value == math.inf else value for name, value in settings.items()}


def _infinite(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: math.inf if value == INFINITY else value for name, value in settings.items()}


def _listed(about: Mapping[str, Any], name: str) -> list[tuple[int, Any]]:
    require(isinstance(about[name], list), f"{name} must be a list.")
    return list(enumerate(about[name]))


def _unpack_layers(network: NetworkConfig, rule: Rule, tensors: dict[str, Tensor]) -> tuple[State, ...]:
    """States of the shapes that the network calls for. A small one is made first, to see which parts a rule keeps."""
    require(network.binary == rule.binary, "its network and its rule differ in whether synapses are binary.")
    states = []
    for index, plan in enumerate(network.plans()):
        small, shape = rule.init((2, 3), generator_for(0, "shapes")), plan.shape
        parts = {}
        for name, part in small._asdict().items():
            if not isinstance(part, Tensor):
                continue
            stored = tensors.pop(f"layer.{index}.{name}", None)
            wanted = tuple({2: shape[0], 3: shape[1]}[side] for side in part.shape)
            require(
                stored is not None and tuple(stored.shape) == wanted and stored.dtype == part.dtype,
                f"{name} of layer {index} should be {part.dtype} of the shape {wanted}.",
            )
            assert stored is not None
            require(bool(torch.isfinite(stored.sum())), f"{name} of layer {index} holds NaN or infinity.")
            parts[name] = stored
        # what a rule keeps beside tensors follows from the shape, which is known to be sound by now
        states.append(rule.init(shape, generator_for(0, "shapes"))._replace(**parts))
    return tuple(states)


def _pack_samples(samples: Plain, place: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    tensors[f"{place}.labels"] = samples.labels
    if isinstance(samples, StaticSamples):
        tensors[f"{place}.examples"] = samples.values
        return {"kind": samples.encoder}
    if isinstance(samples, CoordinateSamples):
        tensors[f"{place}.examples"] = samples.coordinates
        return {"kind": "population", "code": to_plain(samples.code)}
    tensors[f"{place}.examples"] = samples.packed
    return {"kind": "spikes"}


def _unpack_samples(
    about: Mapping[str, Any],
    place: str,
    tensors: dict[str, Tensor],
    encoding: Encoding,
    classes: int,
    *,
    any_time: bool = False,
) -> Plain:
    """`any_time`: spike trains may have a length of their own."""
    labels, examples, time = tensors.pop(f"{place}.labels"), tensors.pop(f"{place}.examples"), encoding.time
    samples: Plain
    if about["kind"] == "population":
        code = from_plain(PopulationCode, about["code"], f"{place}.code")
        require(examples.dtype == torch.float32, f"{place} must hold float32 coordinates.")
        samples = CoordinateSamples(examples, labels, time, code)
    elif about["kind"] == "spikes":
        if any_time and examples.ndim == 3:
            time = examples.shape[1]
            require_range(f"the time of {place}", time, 1, LONGEST)
        samples = SpikeSamples(examples, labels, time, encoding.inputs)
    else:
        samples = StaticSamples(examples, labels, time, about["kind"])
    require(samples.inputs == encoding.inputs, f"{place} has {samples.inputs} inputs, not {encoding.inputs}.")
    in_range = not len(labels) or 0 <= int(labels.min()) <= int(labels.max()) < classes
    require(in_range, f"{place} has labels that are no classes.")
    return samples


def _unpack_calibration(about: Any, tensors: dict[str, Tensor], encoding: Encoding) -> Calibration | None:
    if about is None:
        return None
    foreign = None
    if about["score"] is not None:
        thresholds = tensors.pop("calibration.thresholds")
        # what was held back may last longer than what is learnt
        require(encoding.time <= len(thresholds) <= LONGEST, "its calibration does not fit its time-steps.")
        foreign = ForeignRule(about["score"], thresholds)
    scalar = about["temperature"]
    temperature = None if scalar is None else from_plain(Temperature, scalar, "temperature")
    return Calibration(foreign, coerce(about["examples"], int, "examples"), temperature)
