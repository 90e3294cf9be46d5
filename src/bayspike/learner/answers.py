"""What a learner says of inputs: a committee's decisions and their worth, when a signal ends or while it arrives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.errors import require, require_range
from bayspike.learner.state import Calibration, LearnerState, network_of, posteriors_of
from bayspike.metrics.uncertainty import split_uncertainty
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.predict.temperature import Temperature, fit_temperature
from bayspike.predict.watching import Decision, Watch, calibrate_foreign
from bayspike.seeds import generator_for
from bayspike.spiking.denormals import flushed_denormals


@dataclass(frozen=True)
class Answer:
    """The decision on one input."""

    label: str | None  # the most probable class; None as long as no class is known
    confidence: float  # its probability
    disagreement: float  # of the members, in nats; 0 for a single network
    foreign: bool  # stranger than all but a few of the learner's own inputs
    abstain: bool  # foreign, or less sure than was asked for
    probabilities: Mapping[str, float]


@dataclass(frozen=True)
class Answers:
    """The decisions on several inputs, as they stand after `time` steps; `answers[i]` is the one on input i."""

    labels: tuple[str | None, ...]
    confidence: Tensor  # (inputs,)
    disagreement: Tensor  # (inputs,)
    foreign: Tensor  # (inputs,)
    abstain: Tensor  # (inputs,)
    time: int
    probabilities: Tensor  # (inputs, classes)
    classes: tuple[str, ...]
    over_time: Tensor | None = None  # probabilities after every step, (time, inputs, classes)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> Answer:
        shares = dict(zip(self.classes, self.probabilities[index].tolist(), strict=True))
        return Answer(
            self.labels[index],
            float(self.confidence[index]),
            float(self.disagreement[index]),
            bool(self.foreign[index]),
            bool(self.abstain[index]),
            shares,
        )

    def __iter__(self) -> Iterator[Answer]:
        return (self[index] for index in range(len(self)))


@dataclass(frozen=True)
class Judge:
    """A committee drawn from a learner as it is now, with the learner's calibration: good until it learns more."""

    committee: Committee
    classes: tuple[str, ...]
    calibration: Calibration | None

    @flushed_denormals()
    def predict(self, samples: Samples, generator: torch.Generator, confidence: float = 0.0) -> Answers:
        """Decide on whole signals. The generator encodes them."""
        require_range("confidence", confidence, 0, 1)
        done = predict_samples(self.committee, samples, generator)
        assert done.members is not None
        over_time = self.known(done.probabilities)
        if (scale := self.scale) is not None:
            over_time = scale.apply_over_time(over_time)
        return self.answers(done.probabilities[-1], done.members, samples.time, confidence, over_time, done.discord)

    def open(self, batch: int = 1, confidence: float = 0.0) -> "LearnerWatch":
        """Watch signals while they arrive."""
        foreign = None if self.calibration is None else self.calibration.foreign
        return LearnerWatch(self, self.committee.open(batch, foreign=foreign), confidence)

    def answers(
        self,
        probabilities: Tensor,
        members: Tensor,
        time: int,
        confidence: float,
        over_time: Tensor | None = None,
        discord: Tensor | None = None,
    ) -> Answers:
        """From the committee's probabilities and its members' `(members, inputs, classes)` after `time` steps."""
        calibration = self.calibration
        foreign = torch.zeros(len(probabilities), dtype=torch.bool)
        if calibration is not None and calibration.foreign is not None:
            foreign = calibration.foreign.flags(members, time, discord)
        known = self.known(probabilities)
        if (scale := self.scale) is not None:
            known = scale.apply(known, time)
        doubt = split_uncertainty(members).epistemic.to(known.dtype)
        if not self.classes:
            nothing = torch.zeros(len(probabilities))
            everything = torch.ones_like(foreign)  # it abstains from all
            return Answers((None,) * len(nothing), nothing, doubt, foreign, everything, time, known, ())
        sure, best = known.max(dim=1)
        labels = tuple(self.classes[place] for place in best.tolist())
        return Answers(
            labels, sure, doubt, foreign, foreign | (sure < confidence), time, known, self.classes, over_time
        )

    def known(self, probabilities: Tensor) -> Tensor:
        """Only the classes that have a name: before there are two of them, a row of the read-out waits for its own."""
        if len(self.classes) == probabilities.shape[-1]:
            return probabilities
        named = probabilities[..., : len(self.classes)]
        return named / named.sum(dim=-1, keepdim=True)

    @property
    def scale(self) -> Temperature | None:
        """The temperature, if there is one, and something to scale."""
        return None if self.calibration is None or len(self.classes) < 2 else self.calibration.temperature


class LearnerWatch:
    """A batch of signals being watched by a learner as it was when `watch` was called."""

    def __init__(self, judge: Judge, watch: Watch, confidence: float) -> None:
        require_range("confidence", confidence, 0, 1)
        self._judge, self._watch, self._confidence = judge, watch, confidence

    @property
    def time(self) -> int:
        """Steps seen."""
        return self._watch.time

    @property
    def members(self) -> Tensor:
        """What each member of the committee says so far, `(members, batch, classes)`."""
        return self._judge.known(self._watch.members)

    def push(self, spikes: Tensor) -> Answers:
        """Take in the spikes `(batch, inputs)` of the next time-step (`(inputs,)` for a single signal) and decide."""
        block = torch.as_tensor(spikes)
        with flushed_denormals():
            now: Decision = self._watch.push(block.unsqueeze(0) if block.ndim == 1 else block)
        said = self._watch.members
        return self._judge.answers(now.probabilities, said, now.time, self._confidence, discord=now.discord)


@flushed_denormals()
def judge_of(state: LearnerState) -> Judge:
    """Draw the committee: the same one for the same posterior."""
    committee = Committee.draw(
        network_of(state),
        posteriors_of(state),
        state.recipe.members,
        generator=generator_for(state.seed, "committee"),
        gather=state.recipe.gather,
        kernels=state.recipe.training.kernels,
    )
    return Judge(committee, state.classes, state.calibration)


@flushed_denormals()
def calibrate(state: LearnerState, with_temperature: bool = False) -> LearnerState:
    """What the examples held back say of the learner as it is now; without enough of them there is no foreign rule.

    A learner that gathers otherwise than the paper always has a temperature.
    """
    with_temperature = with_temperature or (state.recipe.gather != "mean" and len(state.classes) > 1)
    examples = sum(len(part) for part in state.held_back)
    if examples == 0:
        return replace(state, calibration=None)
    committee = judge_of(replace(state, calibration=None)).committee
    generator = generator_for(state.seed, "calibration")
    done = [predict_samples(committee, part, generator, keep_members="all") for part in state.held_back]
    longest, rule = max(part.time for part in state.held_back), None
    if examples >= enough(state.recipe.false_alarm):
        members = torch.cat([_lasting(each.members, longest, 1) for each in done if each.members is not None], dim=2)
        apart = [_lasting(each.discord, longest, 0) for each in done if each.discord is not None]
        discord = torch.cat(apart, dim=1) if apart else None
        rule = calibrate_foreign(members, state.recipe.false_alarm, state.recipe.foreign_score, discord)
    temperature: Temperature | None = None
    if with_temperature:
        require(len(state.classes) > 1, "a temperature needs two classes at least.")
        said = torch.cat([_lasting(each.probabilities, longest, 0) for each in done], dim=1)
        temperature = fit_temperature(said, torch.cat([part.labels for part in state.held_back]))
    return replace(state, calibration=Calibration(rule, examples, temperature))


def _lasting(said: Tensor, time: int, dim: int) -> Tensor:
    """What was said at every step of a shorter signal, its last word held until `time`."""
    held = said.narrow(dim, said.shape[dim] - 1, 1)
    return torch.cat([said, *[held] * (time - said.shape[dim])], dim=dim)


def enough(false_alarm: float) -> int:
    """How many examples must be held back before a share of false alarms can be promised."""
    return max(1, -int(-(1 / false_alarm - 1e-9) // 1) - 1)


def accuracy_by_class(labels: Sequence[str | None], truth: Sequence[str]) -> dict[str, tuple[int, int]]:
    """For every class, how many were right and how many there were."""
    found: dict[str, tuple[int, int]] = {}
    for said, true in zip(labels, truth, strict=True):
        right, count = found.get(true, (0, 0))
        found[true] = (right + (said == true), count + 1)
    return found
