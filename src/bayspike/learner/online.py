"""One example at a time, and nobody says when a task ends: the rule's mode without boundaries.

Each example is learnt in a small mini-batch with stored ones, drawn so that all classes weigh alike. Of those that
came alone a fixed number is stored, and whichever class has most of them gives way (a reservoir within each class).
"""

from dataclasses import replace
from typing import Any

import torch

from bayspike.continual.replay import fetch
from bayspike.data.base import merge
from bayspike.learner.answers import calibrate
from bayspike.learner.examples import Plain, appended
from bayspike.learner.state import LearnerState, counted, fresh_copy, network_of, with_classes
from bayspike.learner.tasks import MOST_HELD_BACK
from bayspike.learning.batch import train_batch
from bayspike.learning.health import check_batch
from bayspike.seeds import generator_for
from bayspike.spiking.denormals import flushed_denormals

CALIBRATE_EVERY = 100  # examples that come alone
LEARNT_FIRST = 10  # of each class, before any is held back


def learn_one(state: LearnerState, x: Any, word: str) -> LearnerState:
    """Learn one example as people hold it; a class never seen before becomes a row of the read-out."""
    grown = with_classes(state, [word])
    example: Any = grown.recipe.encoding.one(x, grown.classes.index(word))
    done = learn_example(grown, example)
    # with one more row all probabilities are others
    return calibrate(done) if len(grown.classes) > len(state.classes) and done.calibration is not None else done


@flushed_denormals()
def learn_example(state: LearnerState, example: Plain) -> LearnerState:
    """Learn a single example, labelled by its place in the learner's classes (all of which must be known)."""
    if _is_held_back(state, example):
        generator = generator_for(state.seed, "alone", "kept", state.alone)
        done = replace(state, held_back=_with_bounded(state.held_back, example, generator))
    else:
        done = _without_temperature(_stored(_learnt(state, example), example))
    done = replace(
        done,
        seen=counted(state.seen, example.labels),
        seen_alone=counted(state.seen_alone, example.labels),
        since_task=state.since_task + 1,
    )
    return calibrate(done) if done.alone % CALIBRATE_EVERY == 0 else done


def _without_temperature(state: LearnerState) -> LearnerState:
    """One that was asked for is good until something is learnt; those who gather otherwise always have one."""
    if state.calibration is None or state.recipe.gather != "mean":
        return state
    return replace(state, calibration=replace(state.calibration, temperature=None))


def _is_held_back(state: LearnerState, example: Plain) -> bool:
    chance = torch.rand((), generator=generator_for(state.seed, "alone", "held back", state.alone))
    return state.seen[int(example.labels)] >= LEARNT_FIRST and float(chance) < state.recipe.held_back


def _learnt(state: LearnerState, example: Plain) -> LearnerState:
    generator = generator_for(state.seed, "alone", state.alone)
    spikes = example.spikes(torch.tensor([0]), generator)
    labels, replayed = example.labels, 0
    memory = [part for part in state.memory if len(part)]
    if memory and state.recipe.replay:
        stored = torch.cat([part.labels for part in memory])
        weights = 1 / torch.bincount(stored).float()[stored]  # every class alike
        chosen = torch.multinomial(weights, state.recipe.replay, replacement=True, generator=generator)
        sizes = torch.tensor([len(part) for part in memory])
        sources = torch.bucketize(chosen, sizes.cumsum(0), right=True)
        old, old_labels = fetch(memory, sources, chosen - (sizes.cumsum(0) - sizes)[sources], generator)
        spikes, labels, replayed = torch.cat([spikes, old], dim=1), torch.cat([labels, old_labels]), len(chosen)
    rule, training = state.recipe.online_rule, state.recipe.training
    evidence = None
    if training.evidence == "once":  # stored examples have been counted before
        evidence = torch.cat([torch.ones(1), torch.zeros(replayed)])
    states, report = train_batch(
        network_of(state), rule, fresh_copy(state.states), spikes, labels, generator, training.burn_in, evidence,
        kernels=training.kernels,
    )  # fmt: skip
    check_batch(report, states, "rule")  # a learner that diverged stays what it was
    return replace(
        state,
        states=fresh_copy(states),
        presentations=state.presentations + 1 + replayed,
        replayed=state.replayed + replayed,
    )


def _stored(state: LearnerState, example: Plain) -> LearnerState:
    """Room is found in the class that has most; within one class each example seen is stored with the same chance."""
    room = state.recipe.memory
    if room == 0:
        return state
    if state.online is None or len(state.online) < room:
        return replace(state, online=_after(state.online, example))
    generator = generator_for(state.seed, "alone", "stored", state.alone)
    labels, label = state.online.labels, int(example.labels)
    counts = torch.bincount(labels, minlength=len(state.classes))
    crowded = int(counts.argmax())
    if int(counts[label]) == int(counts[crowded]):
        crowded = label
        if float(torch.rand((), generator=generator)) * (state.seen_alone[label] + 1) >= int(counts[label]):
            return state
    members = (labels == crowded).nonzero().flatten()
    leaving = int(members[int(torch.randint(len(members), (), generator=generator))])
    staying = torch.arange(len(labels)) != leaving
    return replace(state, online=_after(state.online.subset(staying.nonzero().flatten()), example))


def _with_bounded(held: tuple[Plain, ...], example: Plain, generator: torch.Generator) -> tuple[Plain, ...]:
    """One more for calibration; of a class that has enough, a random one goes."""
    if held:
        same = (held[-1].labels == example.labels).nonzero().flatten()
        if len(same) >= MOST_HELD_BACK:
            leaving = same[torch.randint(len(same), (1,), generator=generator)]
            staying = torch.arange(len(held[-1])) != leaving
            held = (*held[:-1], held[-1].subset(staying.nonzero().flatten()))
    return appended(held, example)


def _after(stored: Plain | None, example: Plain) -> Plain:
    joined: Any = example if stored is None else merge([stored, example])
    whole: Plain = joined
    return whole
