"""A lesson: a handful of examples with their words, learnt as a task by the learner and by its rivals.

All examples of a small lesson are stored, since the usual share of a handful would be next to nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch

from bayspike.errors import require
from bayspike.learner.examples import Given, check_name
from bayspike.learner.state import LearnerState
from bayspike.learner.tasks import BatchNote, learn_task
from bayspike.live.inputs import Input
from bayspike.live.moments import Moment, Settings, moment_of

MOST_EXAMPLES = 200  # of one lesson
STORED = 50  # of one lesson, at most

OnBatch = Callable[[BatchNote], None]


def teach(
    moment: Moment,
    examples: Sequence[Input],
    words: Sequence[str],
    settings: Settings,
    on_batch: OnBatch | None = None,
    on_learnt: Callable[[LearnerState], None] | None = None,
) -> Moment:
    """The moment after a lesson. `on_learnt` is told when the learner has learnt, before its rivals and judging."""
    given = read_lesson(moment, examples, words)
    state = _learn(moment.state, given, on_batch)
    if on_learnt is not None:
        on_learnt(state)
    rivals = {name: _learn(each, given, None) for name, each in moment.rivals.items()}
    return moment_of(given.name, state, rivals, moment.earlier, moment.yards, settings)


def read_lesson(moment: Moment, examples: Sequence[Input], words: Sequence[str]) -> Given:
    """What is to be learnt, checked."""
    require(len(examples) > 0, "there is nothing to teach yet: draw something, or choose an input, and name it.")
    require(len(examples) <= MOST_EXAMPLES, f"a lesson has at most {MOST_EXAMPLES} examples.")
    for word in words:
        check_name(word)
    encoding = moment.state.recipe.encoding
    block = np.stack([each.example(encoding) for each in examples])
    samples = encoding.samples(block, torch.zeros(len(words), dtype=torch.int64))
    counts = {word: words.count(word) for word in dict.fromkeys(words)}
    name = ", ".join(f"{word} ({count})" for word, count in counts.items())
    return Given(samples, tuple(words), name if len(name) <= 120 else f"{len(words)} examples")


def _learn(state: LearnerState, given: Given, on_batch: OnBatch | None) -> LearnerState:
    share = min(1.0, STORED / len(given.words))
    recipe = state.recipe
    training = replace(recipe.training, coreset_share=max(share, recipe.training.coreset_share))
    learnt, _ = learn_task(replace(state, recipe=replace(recipe, training=training)), given, on_batch=on_batch)
    return replace(learnt, recipe=recipe)
