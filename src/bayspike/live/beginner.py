"""The learner of those who bring none: digits 0 to 3, learnt in seconds from real ones that come with a package.

Half of the other digits of that package, those of all ten classes, judge it; the rest are there to be shown. It has
never learnt from any of them.
"""

from dataclasses import replace
from functools import lru_cache

import torch

from bayspike.data.base import StaticSamples
from bayspike.data.sets.mnist import load_digits
from bayspike.learner.learner import Learner, OnBatch
from bayspike.learner.state import LearnerState

KNOWN = (0, 1, 2, 3)
EACH = 250  # examples of a class; a tenth of them is held back, just enough for sets at ten checkpoints
NAME, TIME, HIDDEN, SEED = "digits", 50, 100, 0
MARK = "beginner"  # by which such a learner is known when it comes back from a file


def beginner(on_batch: OnBatch | None = None) -> Learner:
    """Made afresh: the same bits every time."""
    digits = load_digits(time=TIME, seed=SEED)
    learner = Learner(digits.sample_shape, time=TIME, hidden=(HIDDEN,), seed=SEED, on_batch=on_batch)
    places = [(digits.train.labels == label).nonzero().flatten()[:EACH] for label in KNOWN]
    learner.learn(digits.train.subset(torch.cat(places)))
    about = {"name": NAME, "simulated": False, MARK: {"seed": SEED}}
    return Learner.of(replace(learner.state, about=about))


def is_beginner(state: LearnerState) -> bool:
    encoding = state.recipe.encoding
    fits = (encoding.kind, encoding.shape, encoding.time) == ("rate", (28, 28), TIME)
    return fits and state.about.get("name") == NAME and state.about.get(MARK) == {"seed": SEED}


@lru_cache(maxsize=1)
def unseen() -> tuple[StaticSamples, StaticSamples]:
    """Digits of all ten classes that judge a beginner, and as many others to show it."""
    test = load_digits(time=TIME, seed=SEED).test
    assert isinstance(test, StaticSamples)
    places = torch.arange(len(test))
    return test.subset(places[::2]), test.subset(places[1::2])
