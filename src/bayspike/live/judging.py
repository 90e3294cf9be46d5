"""How a learner does, class by class, on examples that it has not learnt from.

The yardstick of a class stays the same for as long as a page is open, so that before and after can be compared. A class
for which hardly anything was held back is judged by the examples it was taught with, and that is said.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from bayspike.continual.judging import score
from bayspike.data.base import merge
from bayspike.learner.answers import Judge
from bayspike.learner.examples import Plain
from bayspike.learner.state import LearnerState
from bayspike.live.beginner import is_beginner, unseen
from bayspike.seeds import generator_for

MOST_OF_A_CLASS = 50
LEAST_OF_A_CLASS = 5  # held back, before they alone judge it


@dataclass(frozen=True)
class Yardstick:
    """Examples of one class, and whether the learner has never learnt from them."""

    samples: Plain
    unseen: bool


Yardsticks = Mapping[str, Yardstick]


@dataclass(frozen=True)
class Marks:
    """Of one learner. `classes` are (right, examples, mean probability given to the right class) of each class; the
    others are over those classes that were known when the page was opened: None where nothing can judge them."""

    classes: Mapping[str, tuple[int, int, float]]
    accuracy: float | None
    ece: float | None
    confidence: float | None
    examples: int

    def to_plain(self) -> dict[str, Any]:
        return {
            "classes": {name: list(each) for name, each in self.classes.items()},
            "accuracy": self.accuracy,
            "ece": self.ece,
            "confidence": self.confidence,
            "examples": self.examples,
        }


def yardsticks(state: LearnerState, before: Yardsticks | None = None) -> dict[str, Yardstick]:
    """One for each class that anything is known of; those of `before` stay, unless better ones have come."""
    found: dict[str, Yardstick] = {}
    for place, word in enumerate(state.classes):
        old = None if before is None else before.get(word)
        if old is not None and old.unseen:
            found[word] = old
            continue
        apart, learnt = _apart(state, word, place), _of_class(state.memory, place)
        if apart is not None and (len(apart) >= LEAST_OF_A_CLASS or learnt is None):
            found[word] = Yardstick(apart, True)
        elif learnt is not None:
            found[word] = Yardstick(learnt, False)
    return found


def judge_on(judge: Judge, yards: Yardsticks, earlier: Sequence[str], seed: int) -> Marks:
    """All classes at once, with one encoding for all learners."""
    words = [word for word in judge.classes if word in yards]
    if not words:
        return Marks({}, None, None, None, 0)
    classes: dict[str, tuple[int, int, float]] = {}
    probabilities, labels = [], []
    for word in words:
        samples, place = yards[word].samples, judge.classes.index(word)
        answers = judge.predict(samples, generator_for(seed, "live", "judge", word))
        right = sum(label == word for label in answers.labels)
        classes[word] = right, len(samples), float(answers.probabilities[:, place].double().mean())
        if word in earlier and yards[word].unseen:
            probabilities.append(answers.probabilities)
            labels.append(torch.full((len(samples),), place))
    if not labels or len(judge.classes) < 2:
        return Marks(classes, None, None, None, 0)
    scores = score(torch.cat(probabilities), torch.cat(labels))
    return Marks(classes, scores.accuracy, scores.ece, scores.confidence, scores.examples)


def _apart(state: LearnerState, word: str, place: int) -> Plain | None:
    """Examples that were never learnt from: of the package's digits for a beginner, else those held back."""
    if is_beginner(state) and word in tuple("0123456789"):
        return _at_most(_of_label(unseen()[0], int(word)))
    return _of_class(state.held_back, place)


def _of_class(parts: Sequence[Plain], place: int) -> Plain | None:
    chosen = [found for part in parts if len(found := _of_label(part, place))]
    alike = [each for each in chosen if type(each) is type(chosen[0])]
    if not alike:
        return None
    joined: Any = merge(alike)
    whole: Plain = joined
    return _at_most(whole)


def _of_label(samples: Plain, label: int) -> Plain:
    return samples.subset((samples.labels == label).nonzero().flatten())


def _at_most(samples: Plain) -> Plain:
    """The newest, where there are many."""
    return samples.subset(torch.arange(len(samples))[-MOST_OF_A_CLASS:])


def to_show(state: LearnerState) -> tuple[list[tuple[Plain, str, int]], bool]:
    """Examples that may be played: part, class and place in it; and whether they judge, so must not be taught."""
    if is_beginner(state):
        part = unseen()[1]
        return [(part, str(label), index) for index, label in enumerate(part.labels.tolist())], False
    held = [part for part in state.held_back if len(part)]
    parts = held or [part for part in state.memory if len(part)]
    shown = [(part, state.classes[label], k) for part in parts for k, label in enumerate(part.labels.tolist())]
    return shown, bool(held)
