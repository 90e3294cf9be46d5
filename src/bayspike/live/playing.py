"""A signal watched step by step: what the committee, each of its members and the rivals say, and when it is enough.

The verdict of a step is one of

    waiting    it may still decide
    commits    the set has one class left and the committee is sure enough of it (without sets: sure enough alone)
    abstains   the signal has ended, or had its time, and it is not sure enough
    foreign    no class is plausible: the set is empty, or the input is stranger than those it knows
"""

import hashlib
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require
from bayspike.live.moments import Moment, Settings

Verdict = str


class Step(NamedTuple):
    """The decision that would be given if the signal stopped here; all plain values."""

    time: int
    probabilities: list[float]  # of each class
    members: list[list[float]]  # the same for each member
    confidence: float
    disagreement: float
    foreign: bool
    inside: list[bool]  # which classes the set holds; all of them before its first checkpoint
    verdict: Verdict
    since: int | None  # when it committed
    rivals: dict[str, list[float]]

    def to_plain(self) -> dict[str, Any]:
        return self._asdict()


class Playing:
    """One signal, seen by a moment's learner and its rivals. It goes on with that moment whatever is learnt since."""

    def __init__(self, moment: Moment, settings: Settings, expected: int | None = None) -> None:
        """`expected` is the length of the signal where it is known."""
        self._moment, self._settings = moment, settings
        self._expected = expected or moment.state.recipe.encoding.time
        self._watch = moment.judge.open(1, settings.confidence)
        self._rivals = {name: judge.open(1) for name, judge in moment.rival_judges.items()}
        self._inside = torch.ones(1, len(moment.state.classes), dtype=torch.bool)
        self._since: int | None = None
        self._hash = hashlib.blake2b(digest_size=16)
        self.last: Step | None = None

    @property
    def digest(self) -> str:
        """Of all that was said so far, bit by bit."""
        return self._hash.hexdigest()

    def push(self, spikes: Tensor) -> Step:
        """Take in the spikes `(inputs,)` of the next time-step."""
        now = self._watch.push(spikes)
        members = self._watch.members[:, 0]
        sets = self._moment.sets
        if sets is not None:  # its promise is for the committee's own probabilities, before any temperature
            self._inside = sets.narrow(self._inside, members.mean(dim=0, keepdim=True), now.time)
        rivals = {name: each.push(spikes).probabilities[0] for name, each in self._rivals.items()}
        for part in (now.probabilities, members, self._inside, *rivals.values()):
            self._hash.update(part.contiguous().numpy().tobytes())
        confidence, foreign = float(now.confidence[0]), bool(now.foreign[0])
        verdict = self._verdict(now.time, confidence, foreign, now.probabilities[0])
        if verdict == "commits" and self._since is None:
            self._since = now.time
        self.last = Step(
            now.time,
            now.probabilities[0].tolist(),
            members.tolist(),
            confidence,
            float(now.disagreement[0]),
            foreign,
            self._inside[0].tolist(),
            verdict,
            self._since,
            {name: each.tolist() for name, each in rivals.items()},
        )
        return self.last

    def _verdict(self, time: int, confidence: float, foreign: bool, probabilities: Tensor) -> Verdict:
        if time <= len(self._moment.judge.committee.network.layers):
            return "waiting"  # nothing of the signal has come through yet
        held = self._inside[0]
        over = time >= self._expected
        if not len(held):
            return "abstains" if over else "waiting"  # it knows no class yet
        if self._moment.sets is not None:
            if not bool(held.any()) or (over and foreign):
                return "foreign"
            best = bool(held[int(probabilities.argmax())])
            if int(held.sum()) == 1 and best and confidence >= self._settings.confidence:
                return "commits"
        else:
            if foreign and over:
                return "foreign"
            if confidence >= self._settings.confidence and time >= min(self._expected, 5) and not foreign:
                return "commits"
        return "abstains" if over else "waiting"


def play(moment: Moment, spikes: Tensor, settings: Settings) -> Playing:
    """A whole signal at once."""
    require(len(spikes) > 0, "the signal has no time-step.")
    playing = Playing(moment, settings, len(spikes))
    for step in spikes:
        playing.push(step)
    return playing
