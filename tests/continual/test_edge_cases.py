"""Streams that real data make: tasks that come back, lone examples, missing classes, sizes far apart."""

from dataclasses import replace

import pytest
import torch
from small_tasks import RULES, pictures, small_network, small_stream

from bayspike.continual import Progress, Stream, StreamConfig, Task, judge_with, repeated, run_stream
from bayspike.continual.coresets import Selection
from bayspike.continual.replay import Mixing
from bayspike.errors import UserError
from bayspike.learning.batch import init_states, train_batch
from bayspike.rules import Rule

CONFIG = StreamConfig(batch=8, coreset_share=0.2)


def finished(rule: Rule, stream: Stream, config: StreamConfig) -> Progress:
    """Run to the end, judge, and check that every number is sound and the weights have moved."""
    network = small_network(rule)
    done = run_stream(network, rule, stream, config, judge_with(network, ("committee",), members=2))
    assert done.task == len(stream.tasks)
    with pytest.raises(UserError, match=r"nothing would be learnt: .*extend"):
        run_stream(network, rule, stream, config, progress=done)
    for state in done.states:
        assert all(bool(torch.isfinite(part).all()) for part in state if isinstance(part, torch.Tensor))
    assert done.evaluations[0].overall != done.evaluations[-1].overall
    return done


@pytest.mark.parametrize("name", RULES)
def test_a_task_shown_twice(name: str) -> None:
    done = finished(RULES[name], repeated(small_stream(), [0, 0, 1, 0]), CONFIG)
    assert [len(kept) for kept in done.coresets] == [4, 4, 4, 4]
    assert len(done.evaluations[-1].tasks) == 2


@pytest.mark.parametrize("name", RULES)
def test_tasks_of_very_different_sizes_with_one_example_of_a_class(name: str) -> None:
    """150 + 1 examples, then 1 + 1, and the other way round; batches of 8 straddle the small one."""
    for order in ([0, 1], [1, 0]):
        done = finished(RULES[name], repeated(small_stream([150, 1, 1, 1]), order), CONFIG)
        sizes = {0: 31, 1: 2}  # a fifth of 150 and the one; one and one
        assert [len(kept) for kept in done.coresets] == [sizes[k] for k in order]
        assert done.presentations == (151 + 2 * 2 if order == [0, 1] else 2 + 2 * 151)


@pytest.mark.parametrize("replay", ["balanced", "pooled", "none"])
@pytest.mark.parametrize("selection", ["random", "herding", "medoids", "reservoir"])
def test_one_example_per_class(replay: Mixing, selection: Selection) -> None:
    config = replace(CONFIG, replay=replay, coreset_selection=selection)
    done = finished(RULES["bayes"], small_stream([1, 1, 1, 1]), config)
    kept = 0 if replay == "none" else (1 if selection == "reservoir" else 2)
    assert [len(part) for part in done.coresets] == [kept, kept]


@pytest.mark.parametrize("replay", ["balanced", "pooled"])
@pytest.mark.parametrize("name", RULES)
def test_an_empty_coreset_is_no_replay(name: str, replay: Mixing) -> None:
    rule = RULES[name]
    empty = finished(rule, small_stream(), replace(CONFIG, coreset_share=0.0, replay=replay))
    none = finished(rule, small_stream(), replace(CONFIG, replay="none"))
    assert empty.replayed == 0
    for ours, theirs in zip(empty.states, none.states, strict=True):
        assert torch.equal(ours[0], theirs[0])


def test_a_class_missing_from_a_task() -> None:
    """The second task is announced with the classes 2 and 3, but nothing of 3 is there to learn; the test has both."""
    first, second = small_stream().tasks
    only = second.train.subset((second.train.labels == 2).nonzero().flatten())
    stream = Stream((first, Task("half", only, second.test)), 4)
    done = finished(RULES["ewc"], stream, CONFIG)
    assert set(only.labels[done.coresets[1]].tolist()) == {2}


def test_a_label_outside_the_readout_is_refused_before_anything_is_learnt() -> None:
    rule = RULES["sgd"]
    with pytest.raises(UserError, match="labels from 0 to 4 in its train part, but the read-out has the classes 0 … 3"):
        Stream((Task("five", pictures([2] * 5), pictures([2] * 4)),), 4)
    five = Stream((Task("five", pictures([2] * 5), pictures([2] * 5)),), 5)
    with pytest.raises(UserError, match="8 inputs and 5 classes, but the network 8 and 4"):
        run_stream(small_network(rule), rule, five, CONFIG)
    network = small_network(rule)
    states = init_states(network, rule, torch.Generator().manual_seed(0))
    with pytest.raises(UserError, match="labels must lie in 0 … 3, the classes of the read-out, but range from 1 to 4"):
        train_batch(network, rule, states, torch.zeros(6, 2, 8), torch.tensor([1, 4]), torch.Generator())
