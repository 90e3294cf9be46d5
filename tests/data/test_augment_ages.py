"""Augmentation of inputs seen at several ages: every age shows the same changed recording."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from bayspike import Learner
from bayspike.continual import run_stream, split_by_class
from bayspike.continual.protocol import Hands
from bayspike.data.augment import Augment
from bayspike.data.base import Dataset, SpikeSamples
from bayspike.data.delays import DelayedSamples, at_ages, delayed, undelayed
from bayspike.data.encoders import pack
from bayspike.errors import UserError
from bayspike.experiments.registry import experiment
from bayspike.learning.batch import init_states, train_batch
from bayspike.runs.plan.config import jobs_of
from bayspike.runs.plan.prepare import prepare
from bayspike.runs.plan.resolve import Changes, resolve

SHAPE, TIME = (2, 5, 7), 12
AGES = [((0, 2, 5), 0), ((0, 2, 5), 5), ((0, 3), 2), ((1, 4), 4), ((3,), 0)]  # delays, steps of past
CHANGES = [
    {"drop": 0.25},
    {"jitter": 2},
    {"drop": 0.25, "jitter": 2},
    {"drop": 0.2, "jitter": 1, "shift": 1, "turn": 9},
]


def recordings(lead: int, count: int = 20) -> SpikeSamples:
    spikes = (np.random.default_rng(0).random((count, TIME + lead, 70)) < 0.3).astype(np.uint8)
    return SpikeSamples(torch.from_numpy(pack(spikes)), torch.arange(count) % 4, TIME + lead, 70)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def planes(spikes: Tensor, delays: Sequence[int]) -> list[Tensor]:
    return list(spikes.unflatten(2, (len(delays), 70)).unbind(2))


def assert_one_recording(spikes: Tensor, delays: Sequence[int]) -> None:
    """What a plane shows at t, an older one shows again at t + d, wherever both are inside the signal."""
    newest, *older = planes(spikes, delays)
    for seen, delay in zip(older, delays[1:], strict=True):
        later = delay - delays[0]
        assert torch.equal(newest[: len(newest) - later], seen[later:])
    for nearer, farther, by in zip(older, older[1:], np.diff(delays[1:]), strict=False):
        assert torch.equal(nearer[: len(nearer) - by], farther[by:])  # what is older than the signal, too


@pytest.mark.parametrize(("delays", "lead"), AGES)
@pytest.mark.parametrize("changes", CHANGES)
def test_every_age_shows_the_same_changed_recording(
    delays: tuple[int, ...], lead: int, changes: dict[str, Any]
) -> None:
    samples = DelayedSamples(recordings(lead), delays, lead)
    spikes = samples.spikes(torch.arange(20), generator())
    augment = Augment((2 * len(delays), 5, 7), **changes, delays=delays)
    before = spikes.clone()
    changed = augment(spikes, generator())
    assert torch.equal(spikes, before)
    assert changed.shape == spikes.shape
    assert changed.dtype == spikes.dtype
    assert not torch.equal(changed, spikes)
    assert_one_recording(changed, delays)


@pytest.mark.parametrize(("delays", "lead"), AGES)
def test_drop_leaves_out_a_share_of_every_age_and_of_the_past(delays: tuple[int, ...], lead: int) -> None:
    spikes = DelayedSamples(recordings(lead, 200), delays, lead).spikes(torch.arange(200), generator())
    kept = Augment((70 * len(delays),), drop=0.25, delays=delays)(spikes, generator())
    assert not (kept > spikes).any()
    for whole, left in zip(planes(spikes, delays), planes(kept, delays), strict=True):
        assert float(left.sum() / whole.sum()) == pytest.approx(0.75, abs=0.02)
    if lead:
        past, left = spikes[: delays[-1], :, -70:], kept[: delays[-1], :, -70:]  # the oldest plane shows it
        assert float(left.sum() / past.sum()) == pytest.approx(0.75, abs=0.03)


def test_jitter_moves_an_event_at_all_ages_alike() -> None:
    recorded = torch.zeros(4 + TIME, 300, 3, dtype=torch.uint8)
    recorded[4 + 6, :, 1] = 1  # at the seventh step, after a past of four
    moved = Augment((6,), jitter=2, delays=(0, 4))(delayed(recorded, (0, 4), lead=4), generator())
    now, then = moved.unflatten(2, (2, 3)).unbind(2)
    assert torch.equal(now.sum(dim=(0, 2)), torch.ones(300, dtype=torch.int64))
    steps, examples = now[:, :, 1].nonzero().T
    assert sorted(set(steps.tolist())) == [4, 5, 6, 7, 8]
    seen = {(example, step + 4) for example, step in zip(examples.tolist(), steps.tolist(), strict=True)}
    again = {(example, step) for step, example in then[:, :, 1].nonzero().tolist()}
    assert again == {each for each in seen if each[1] < TIME}


def test_what_moves_pixels_is_what_it_was() -> None:
    """A shift, a turn and a stretch are drawn as ever: for all ages at once, and as if before the ages were made."""
    raw = recordings(5).spikes(torch.arange(20), generator())
    changes = {"shift": 1, "turn": 9.0, "stretch": 0.2}
    spikes = delayed(raw, (0, 2, 5), lead=5)
    found = Augment((6, 5, 7), **changes, delays=(0, 2, 5))(spikes, generator())
    assert torch.equal(found, Augment((6, 5, 7), **changes)(spikes, generator()))
    assert torch.equal(found, delayed(Augment(SHAPE, **changes)(raw, generator()), (0, 2, 5), lead=5))


@pytest.mark.parametrize(("delays", "lead"), [*AGES, ((0, 20), 0), ((2, 20), 5)])
def test_what_was_recorded_is_found_again_as_far_as_it_shows(delays: tuple[int, ...], lead: int) -> None:
    raw = recordings(lead).spikes(torch.arange(20), generator())
    spikes, longest = delayed(raw, delays, lead), max(delays)
    recorded = undelayed(spikes, delays)
    assert len(recorded) == longest + TIME
    assert torch.equal(delayed(recorded, delays, lead=longest), spikes)
    if delays[0] == 0 and longest <= TIME:
        known = min(lead, longest)
        assert torch.equal(recorded[longest - known :], raw[lead - known :])
        assert not recorded[: longest - known].any()


def test_inputs_that_are_no_ages_of_one_recording_are_refused() -> None:
    samples = DelayedSamples(recordings(0), (0, 2), 0)
    spikes = samples.spikes(torch.arange(20), generator())[:, :, torch.randperm(140, generator=generator())]
    with pytest.raises(UserError, match="not the same one at 2 ages"):
        Augment((140,), drop=0.1, delays=(0, 2))(spikes, generator())
    with pytest.raises(UserError, match="not the same one at 3 ages"):
        Augment((140,), jitter=1, delays=(0, 2, 3))(spikes, generator())
    Augment((4, 5, 7), shift=1, delays=(0, 2))(spikes, generator())
    with pytest.raises(UserError, match="delays must be whole numbers"):
        Augment((140,), drop=0.1, delays=(2, 0))


def aged(delays: tuple[int, ...]) -> Dataset:
    train, test = (at_ages(recordings(5, 40), delays, 5) for _ in range(2))
    return Dataset("aged", train, test, tuple("abcd"), (2 * len(delays), 5, 7), view={"delays": list(delays)})


def test_a_run_learns_from_ages_that_agree() -> None:
    """New and stored examples, from the words of the command line to the mini-batch."""
    changes = Changes(
        methods=["sgd"],
        network={"hidden": (4,)},
        training={"batch": 8, "coreset_share": 0.5, "augment": "drop=0.2", "augment_stored": "jitter=1,shift=1"},
    )
    config, data, seen = resolve(experiment("digits"), "demo", changes), aged((0, 2, 5)), []

    def train(network: Any, rule: Any, states: Any, spikes: Tensor, *rest: Any) -> Any:
        seen.append(spikes)
        return train_batch(network, rule, states, spikes, *rest)

    job = prepare(config, jobs_of(config)[0], data, split_by_class(data))
    run_stream(job.network, job.rule, job.stream, job.training, hands=Hands(init_states, train))
    assert len(seen) > 4
    for spikes in seen:
        assert_one_recording(spikes, (0, 2, 5))


def test_a_learner_for_data_with_ages_knows_them(tmp_path: Path) -> None:
    learner = Learner.for_data(aged((0, 2, 5)), augment_stored="drop=0.2", hidden=4)
    changes = learner.state.recipe.training.augment_stored
    assert changes == Augment((6, 5, 7), drop=0.2, delays=(0, 2, 5))
    again = Learner.load(learner.save(tmp_path / "aged.bayspike"))
    assert again.state.recipe.training.augment_stored == changes
