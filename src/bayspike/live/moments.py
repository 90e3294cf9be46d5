"""A moment: a learner as it stands, all that is drawn or fitted from it, and its rivals that had the same lessons.

Moments never change. A lesson makes the next one beside the page, which goes on answering from the last; to undo is to
take the one before. The rivals began where the page was opened, with the means of the posterior as their weights, and
learn by plain SGD: once with the same stored examples shown again in between, once with nothing but the lesson itself.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from bayspike.errors import UserError, require
from bayspike.learner.answers import Judge, calibrate, judge_of
from bayspike.learner.file import pack_state
from bayspike.learner.state import LearnerState, bytes_of, posteriors_of
from bayspike.live.judging import Marks, Yardstick, judge_on, yardsticks
from bayspike.predict.calibration import even_checkpoints, fit_sets
from bayspike.predict.conformal import EarlyStopping
from bayspike.predict.predictors import predict_samples
from bayspike.rules import SGD, STE
from bayspike.rules.sgd import SGDState
from bayspike.rules.ste import STEState
from bayspike.seeds import generator_for
from bayspike.spiking.denormals import flushed_denormals

OWN = "own"  # the learner itself, among its rivals
RIVALS = {"sgd": "SGD, the lesson alone", "sgd-replay": "SGD with the same stored examples"}
COVERAGE = 0.9
MOST_WEIGHTS = 2**28  # of a committee: a gigabyte


@dataclass(frozen=True)
class Settings:
    """What a page promises: the coverage of its sets, and the confidence below which it abstains."""

    coverage: float = COVERAGE
    confidence: float = 0.6


@dataclass(frozen=True)
class Moment:
    """`about` says what led here. `sets` are None where too few examples were held back: `why_no_sets` says so."""

    about: str
    state: LearnerState
    judge: Judge
    sets: EarlyStopping | None
    why_no_sets: str
    rivals: Mapping[str, LearnerState]
    rival_judges: Mapping[str, Judge]
    earlier: tuple[str, ...]  # classes known when the page was opened
    yards: Mapping[str, Yardstick]
    marks: Mapping[str, Marks]  # of the learner and its rivals

    @property
    def bytes(self) -> int:
        return sum(sum(bytes_of(each)) for each in (self.state, *self.rivals.values()))


def begin(state: LearnerState, about: str, settings: Settings) -> Moment:
    """The first moment of a learner on this page."""
    weights = sum(each.mean().numel() for each in posteriors_of(state))
    require(
        weights * state.recipe.members <= MOST_WEIGHTS,
        f"a committee of {state.recipe.members:,} with {weights:,} synapses each is more than a page can hold.",
    )
    rivals = {name: _rival(state, replay=name == "sgd-replay") for name in RIVALS}
    return moment_of(about, state, rivals, state.classes, None, settings)


def moment_of(
    about: str,
    state: LearnerState,
    rivals: Mapping[str, LearnerState],
    earlier: tuple[str, ...],
    before: Mapping[str, Yardstick] | None,
    settings: Settings,
) -> Moment:
    """Draw the committees, fit the sets and judge everybody."""
    judge = judge_of(state)
    judges = {name: judge_of(each) for name, each in rivals.items()}
    sets, why = _sets(state, judge, settings.coverage)
    yards = yardsticks(state, before)
    marks = {name: judge_on(each, yards, earlier, state.seed) for name, each in {OWN: judge, **judges}.items()}
    return Moment(about, state, judge, sets, why, rivals, judges, earlier, yards, marks)


def digest_of(state: LearnerState) -> str:
    """Of every bit of a learner."""
    about, tensors = pack_state(state)
    hashed = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for name in sorted(tensors):
        hashed.update(name.encode())
        hashed.update(tensors[name].contiguous().numpy().tobytes())
    return hashed.hexdigest()


def _rival(state: LearnerState, replay: bool) -> LearnerState:
    """Plain SGD (straight-through for binary synapses) from the means of the posterior."""
    recipe = state.recipe
    binary = recipe.rule.binary
    means = [posterior.mean().clone() for posterior in posteriors_of(state)]
    states = tuple(STEState(mean) if binary else SGDState(mean) for mean in means)
    training = replace(recipe.training, replay=recipe.training.replay if replay else "none")
    rule = STE() if binary else SGD()
    other = replace(recipe, rule=rule, training=training, members=1)
    return calibrate(replace(state, recipe=other, states=states))


@flushed_denormals()
def _sets(state: LearnerState, judge: Judge, coverage: float) -> tuple[EarlyStopping | None, str]:
    """Sets that hold the right class with the promised probability at all their checkpoints at once."""
    examples = sum(len(part) for part in state.held_back)
    if len(state.classes) < 2:
        return None, "There are no sets of classes while it knows fewer than two."
    try:
        first = len(judge.committee.network.layers) + 1
        checkpoints = even_checkpoints(state.recipe.encoding.time, coverage, examples, first)
        generator = generator_for(state.seed, "live", "sets")
        done = [predict_samples(judge.committee, part, generator, keep_members="none") for part in state.held_back]
        labels = torch.cat([part.labels for part in state.held_back])
        return fit_sets(torch.cat([each.probabilities for each in done], dim=1), labels, checkpoints, coverage), ""
    except UserError as error:
        return None, f"There are no sets of classes: {error}"


def facts(moment: Moment) -> dict[str, Any]:
    """What the page says of a learner."""
    state, recipe = moment.state, moment.state.recipe
    posterior, examples = bytes_of(state)
    calibration = state.calibration
    return {
        "classes": list(state.classes),
        "earlier": list(moment.earlier),
        "seen": list(state.seen),
        "layers": [recipe.encoding.inputs, *recipe.network.hidden],
        "shape": list(recipe.encoding.shape),
        "encoding": recipe.encoding.kind,
        "time": recipe.encoding.time,
        "members": recipe.members,
        "rule": type(recipe.rule).__name__,
        "data": str(state.about.get("name", "data of its own")),
        "simulated": bool(state.about.get("simulated", False)),
        "posterior": posterior,
        "examples": examples,
        "stored": sum(len(part) for part in state.memory),
        "held_back": sum(len(part) for part in state.held_back),
        "tells_foreign": calibration is not None and calibration.foreign is not None,
        "false_alarm": recipe.false_alarm,
        "why_no_sets": moment.why_no_sets,
        "checkpoints": [] if moment.sets is None else list(moment.sets.checkpoints),
        "unseen": {word: yard.unseen for word, yard in moment.yards.items()},
    }


def chain(moments: Sequence[Moment]) -> list[dict[str, Any]]:
    """What became of the learner and its rivals, lesson by lesson."""
    return [
        {
            "about": each.about,
            "classes": list(each.state.classes),
            "marks": {name: marks.to_plain() for name, marks in each.marks.items()},
        }
        for each in moments
    ]
