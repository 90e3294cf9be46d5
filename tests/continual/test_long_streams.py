"""Many tasks: judged at a cost that does not grow, held in memory that does not grow."""

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest
import torch
from small_tasks import RULES, all_spikes, as_from_disk, dataset, pictures, small_network

from bayspike.continual import StreamConfig, drifting, permuted, repeated, run_stream
from bayspike.continual.judging import judge_with
from bayspike.continual.looking_back import summarise
from bayspike.continual.protocol import UNJUDGED, Evaluation, Progress, judged_places
from bayspike.continual.tasks import Remapped, Task
from bayspike.data.base import Dataset
from bayspike.errors import UserError
from bayspike.runs.checkpoints import evaluation_from_plain, evaluation_to_plain


def test_the_newest_and_a_few_older_ones_are_judged() -> None:
    assert judged_places([0]) == [0]
    assert judged_places(range(7)) == [0, 1, 2, 3, 4, 5, 6]
    assert judged_places(range(10)) == list(range(10))
    # 195 older ones in five parts of 39, of each the one in its middle
    assert judged_places(range(200)) == [19, 58, 97, 136, 175, 195, 196, 197, 198, 199]
    assert judged_places([0, 1, 2, 0]) == [0, 1, 2]
    assert 0 in judged_places([*range(30), 0])[:1]  # it came back: as new as the last ones


@pytest.fixture(scope="module")
def learnt() -> tuple[Progress, list[int]]:
    """Thirty tasks of twelve pictures, and how many tasks were looked at each time."""
    rule = RULES["sgd"]
    network, stream, counts = small_network(rule, 3), permuted(dataset([4, 4, 4]), 30), []
    judge = judge_with(network, ["point"])

    def counted(posteriors: Sequence, judges: Sequence[Task], seed: int) -> dict:
        counts.append(len(judges))
        return judge(posteriors, judges, seed)

    config = StreamConfig(batch=6, replay="none", coreset_share=0.0, judge="learnt")
    return run_stream(network, rule, stream, config, counted), counts


def test_judging_costs_the_same_after_every_task(learnt: tuple[Progress, list[int]]) -> None:
    done, counts = learnt
    assert counts == [1, *range(1, 10), *[10] * 21]
    last = done.evaluations[-1]
    assert [k for k, scores in enumerate(last.tasks) if scores is not UNJUDGED] == judged_places(range(30))
    assert last.overall.examples == 10 * 9  # nine test pictures a task


def test_which_tasks_are_judged_does_not_change_what_is_learnt(learnt: tuple[Progress, list[int]]) -> None:
    rule = RULES["sgd"]
    network, stream = small_network(rule, 3), permuted(dataset([4, 4, 4]), 30)
    config = StreamConfig(batch=6, replay="none", coreset_share=0.0)
    everything = run_stream(network, rule, stream, config, judge_with(network, ["point"]))
    assert torch.equal(everything.states[0].weights, learnt[0].states[0].weights)
    # the first task is looked at first in both, so its spikes are the same ones; so is the summary's last row
    for ours, theirs in zip(learnt[0].evaluations, everything.evaluations, strict=True):
        assert ours.tasks[0] in (theirs.tasks[0], UNJUDGED)
    summary = summarise(stream, everything.evaluations, "point")
    assert 0 <= summary.plasticity <= 1


def test_evaluations_come_back_from_json_as_they_were(learnt: tuple[Progress, list[int]]) -> None:
    evaluation = learnt[0].evaluations[-1]
    plain = evaluation_to_plain(evaluation)
    assert plain["tasks"].count(None) == 20
    assert evaluation_from_plain(plain) == evaluation
    assert math.isnan(UNJUDGED.accuracy)
    assert isinstance(evaluation, Evaluation)


def test_a_long_stream_is_taken_up_where_it_stood(learnt: tuple[Progress, list[int]]) -> None:
    rule = RULES["sgd"]
    network, stream, kept = small_network(rule, 3), permuted(dataset([4, 4, 4]), 30), []
    config = StreamConfig(batch=6, replay="none", coreset_share=0.0, judge="learnt")
    judge = judge_with(network, ["point"])

    def remember(now: Progress, report: object, plan: object) -> None:
        if (now.task, now.batch) == (17, 1):
            kept.append(as_from_disk(now))

    run_stream(network, rule, stream, config, judge, on_batch=remember)
    again = run_stream(network, rule, stream, config, judge, progress=kept[0])
    assert torch.equal(again.states[0].weights, learnt[0].states[0].weights)
    assert again.evaluations == learnt[0].evaluations


def test_two_hundred_permutations_share_one_set_of_pictures() -> None:
    data = dataset([50, 50, 50])
    stream = permuted(data, 200)
    places = set()
    for task in stream.tasks:
        for samples in (task.train, task.test):
            assert isinstance(samples, Remapped)
            places.add(samples.samples.values.data_ptr())  # type: ignore[attr-defined]
    assert len(places) == 2  # those to learn from, and those to judge by
    assert sum(task.train.source.nbytes for task in stream.tasks) == 200 * 8 * 8  # type: ignore[attr-defined]


def test_a_drift_shows_every_picture_once() -> None:
    """The parts, put back through their own wiring, are the training set; from one to the next a share has moved."""
    labels = torch.arange(24) % 3
    values = torch.arange(24 * 8).reshape(24, 8).to(torch.uint8)
    train = pictures([8, 8, 8])
    train = type(train)(values, labels, 6)
    stream = drifting(Dataset("d", train, train, ("a", "b", "c"), (8,)), 6, share=0.25, seed=3, apart=True)
    shown = torch.cat([task.train.samples.values for task in stream.tasks])  # type: ignore[attr-defined]
    assert sorted(shown[:, 0].tolist()) == sorted(values[:, 0].tolist())
    assert [len(task.train) for task in stream.tasks] == [4] * 6
    sources = [task.train.source for task in stream.tasks]  # type: ignore[attr-defined]
    for before, after in pairwise(sources):
        assert int((before != after).sum()) == 2  # a quarter of eight
    for task, source in zip(stream.tasks, sources, strict=True):
        assert torch.equal(task.test.source, source)  # type: ignore[attr-defined]
    plain = drifting(Dataset("d", train, train, ("a", "b", "c"), (8,)), 6, share=0.25, seed=3)
    assert torch.equal(plain.tasks[-1].train.source, sources[-1])  # type: ignore[attr-defined]
    assert all_spikes(stream.tasks[2].train).shape == (6, 4, 8)
    with pytest.raises(UserError, match="have fewer chunks"):
        drifting(dataset([1, 1]), 3, apart=True)


def test_tasks_that_come_back_are_judged_once() -> None:
    rule = RULES["sgd"]
    network = small_network(rule, 3)
    stream = repeated(permuted(dataset([4, 4, 4]), 3), [0, 1, 2, 0])
    config = StreamConfig(batch=6, replay="none", coreset_share=0.0, judge="learnt")
    done = run_stream(network, rule, stream, config, judge_with(network, ["point"]))
    assert [sum(scores is not UNJUDGED for scores in each.tasks) for each in done.evaluations] == [1, 1, 2, 3, 3]
