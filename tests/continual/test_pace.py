"""What a rule in units of its own is told of the task at hand."""

from dataclasses import dataclass, field, replace

import pytest

from bayspike.continual import StreamConfig, run_stream, split_by_class
from bayspike.data import load
from bayspike.data.augment import Augment
from bayspike.data.base import stratified_split
from bayspike.rules import GaussianVI
from bayspike.rules.base import Pace
from bayspike.spiking.network import NetworkConfig, build

SHAPE = (28, 28)
told: list[Pace] = []


@dataclass(frozen=True)
class Listening(GaussianVI):
    """Keeps what it is told."""

    heard: list[Pace] = field(default_factory=lambda: told)

    def at(self, pace: Pace) -> GaussianVI:
        self.heard.append(pace)
        return super().at(pace)


@pytest.mark.parametrize(
    ("augment", "augment_stored", "times", "share_times"),
    [
        (None, None, 1, 1),
        (None, Augment(SHAPE, shift=1), 9, 9),
        (Augment(SHAPE, shift=2), None, 25, 1),  # the new ones look as different as the stored ones
        (Augment(SHAPE, shift=1), Augment(SHAPE, shift=2), 25, 25 / 9),
        (None, Augment(SHAPE, drop=0.2, jitter=1), 1, 1),
    ],
)
def test_a_stored_example_counts_for_each_place_it_is_shown_at(
    augment: Augment | None, augment_stored: Augment | None, times: float, share_times: float
) -> None:
    """3 of 20 of a class are stored: κ, which goes by them, falls as they are shifted."""
    told.clear()
    digits = load("digits", time=3)
    stream = split_by_class(digits, groups=[[0, 1], [2, 3]])
    tasks = [
        replace(task, train=task.train.subset(stratified_split(task.train.labels, 20, seed=0)[1]))
        for task in stream.tasks
    ]
    stream = replace(stream, tasks=tuple(tasks))
    config = StreamConfig(coreset_share=0.15, augment=augment, augment_stored=augment_stored)
    run_stream(build(NetworkConfig(784, (4,), 10)), Listening(), stream, config)
    first, second = (next(each for each in told if each.first is wanted) for wanted in (True, False))
    assert (first.stored, first.share) == (0, 0)
    assert second.stored == pytest.approx(3 * times)
    assert second.share == pytest.approx(0.15 * share_times)
