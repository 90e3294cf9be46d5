"""A task for a learner: learnt with stored examples in between; then the posterior becomes the prior."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.continual.extending import extend
from bayspike.continual.protocol import Progress
from bayspike.continual.replay import Plan
from bayspike.continual.tasks import Task
from bayspike.data.base import whole
from bayspike.learner.answers import calibrate
from bayspike.learner.defaults import default_epochs
from bayspike.learner.examples import Given, appended, relabelled, standing_alone
from bayspike.learner.state import LearnerState, Recipe, counted, fresh_copy, network_of, posteriors_of, with_classes
from bayspike.learning.batch import BatchReport
from bayspike.learning.fisher import diagonal_fisher
from bayspike.learning.health import check_batch, check_settled
from bayspike.seeds import generator_for
from bayspike.spiking.denormals import flushed_denormals

MOST_HELD_BACK = 50  # of a class and task


class BatchNote(NamedTuple):
    """What `on_batch` is told after each mini-batch."""

    task: str
    batch: int  # from 1
    batches: int
    loss: float
    accuracy: float  # while it was learnt
    rates: tuple[float, ...]  # spikes per neuron and time-step of each layer


class TaskNote(NamedTuple):
    """What `on_task` is told when a task ends."""

    task: str
    number: int  # from 1
    examples: int
    new_classes: tuple[str, ...]
    stored: int  # examples kept to be shown again
    held_back: int  # examples kept for calibration
    concerns: tuple[str, ...]  # sentences on what looked wrong


OnBatch = Callable[[BatchNote], None]


@flushed_denormals()
def learn_task(
    state: LearnerState, given: Given, epochs: int | None = None, on_batch: OnBatch | None = None
) -> tuple[LearnerState, TaskNote]:
    """Learn one task. Classes never seen before become rows of the read-out."""
    before = state.classes
    state = end_online(with_classes(state, given.words))
    place = {name: number for number, name in enumerate(state.classes)}
    labels = torch.tensor([place[word] for word in given.words])
    samples = relabelled(given.samples, labels)
    number, recipe = len(state.tasks), state.recipe
    aside, rest = hold_back(recipe, labels, number)
    train = samples if not len(aside) else samples.subset(rest)
    batch = recipe.training.batch
    asked = recipe.epochs if epochs is None else whole("epochs", epochs)
    config = replace(recipe.training, epochs=default_epochs(len(train), batch) if asked is None else asked)
    concerns: dict[tuple[str, int], str] = {}

    def watch(now: Progress, report: BatchReport, plan: Plan) -> None:
        for concern in check_batch(report, now.states, "rule"):
            concerns.setdefault((concern.kind, concern.layer), concern.sentence)
        if now.batch == len(plan):
            steps = train.time - config.burn_in
            for concern in check_settled(recipe.rule, len(plan), steps, config.anneal, "rule"):
                concerns[concern.kind, concern.layer] = concern.sentence
        if on_batch is not None:
            loss, accuracy, rates = float(report.loss), float(report.accuracy), tuple(report.rates.tolist())
            on_batch(BatchNote(given.name, now.batch, len(plan), loss, accuracy, rates))

    start = Progress(fresh_copy(state.states), number, presentations=state.presentations, replayed=state.replayed)
    done = extend(
        network_of(state), recipe.rule, Task(given.name, train, train), config, start, state.memory, on_batch=watch
    )
    generator = generator_for(recipe.seed, "kept", number)
    kept = standing_alone(done.stored[-1], generator)
    held = state.held_back
    if len(aside):
        held = appended(held, standing_alone(samples.subset(aside), generator))
    learnt = replace(
        state,
        states=fresh_copy(done.progress.states),
        tasks=(*state.tasks, given.name),
        stored=(*state.stored, kept),
        seen=counted(state.seen, labels),
        presentations=done.progress.presentations,
        replayed=done.progress.replayed,
        held_back=held,
    )
    new = state.classes[len(before) :]
    note = TaskNote(given.name, number + 1, len(labels), new, len(kept), len(aside), tuple(concerns.values()))
    return calibrate(learnt), note


def hold_back(recipe: Recipe, labels: Tensor, number: int) -> tuple[Tensor, Tensor]:
    """Places of the examples of a task that are not learnt, and of the others; the same share of every class."""
    generator = generator_for(recipe.seed, "held back", number)
    aside = [torch.empty(0, dtype=torch.int64)]
    for label in labels.unique().tolist():
        members = (labels == label).nonzero().flatten()
        count = min(int(recipe.held_back * len(members)), MOST_HELD_BACK)
        aside.append(members[torch.randperm(len(members), generator=generator)[:count]])
    chosen = torch.cat(aside).sort().values
    rest = torch.ones(len(labels), dtype=torch.bool)
    rest[chosen] = False
    return chosen, rest.nonzero().flatten()


def end_online(state: LearnerState) -> LearnerState:
    """Before a task begins, what was learnt example by example is carried over as a task would be."""
    if not state.since_task:
        return state
    rule = state.recipe.rule
    fisher: list[Tensor | None] = [None] * len(state.states)
    if rule.needs_fisher:
        if state.online is None:  # nothing is stored to measure it on
            return replace(state, since_task=0)
        modes = [each.mode() for each in posteriors_of(state)]
        generator = generator_for(state.seed, "fisher", "alone", state.alone)
        share = state.since_task / len(state.online)
        fisher = [share * part for part in diagonal_fisher(network_of(state), modes, state.online, generator)]
    states = fresh_copy(state.states)
    ended = tuple(rule.end_task(layer, part) for layer, part in zip(states, fisher, strict=True))
    return replace(state, states=ended, since_task=0)
