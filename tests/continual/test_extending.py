"""One more task without the old data: as if the stream had had it."""

from dataclasses import replace

import pytest
import torch
from small_tasks import RULES, as_from_disk, dataset, pictures, small_network

from bayspike.continual import Stream, StreamConfig, extend, judge_with, run_stream, split_by_class
from bayspike.continual.protocol import coreset_samples
from bayspike.errors import UserError

CONFIG = StreamConfig(batch=8, coreset_share=0.2, epochs=2)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("replay", ["balanced", "pooled", "none"])
def test_it_is_the_stream_that_had_the_task(name: str, replay: str) -> None:
    rule, config = RULES[name], replace(CONFIG, replay=replay)
    stream = split_by_class(dataset([10] * 6), [[0, 1], [2, 3], [4, 5]])
    network = small_network(rule, classes=6)
    judge = judge_with(network, ("committee",), members=2)
    whole = run_stream(network, rule, stream, config, judge)
    two = Stream(stream.tasks[:2], 6, stream.judges)
    first = as_from_disk(run_stream(network, rule, two, config, judge))
    stored = coreset_samples(two, first.coresets)
    done, kept = extend(network, rule, stream.tasks[2], config, first, stored, stream.judges, judge)
    for ours, theirs in zip(done.states, whole.states, strict=True):
        for part, other in zip(ours, theirs, strict=True):
            assert not isinstance(part, torch.Tensor) or torch.equal(part, other)
    assert (done.task, done.presentations, done.replayed) == (3, whole.presentations, whole.replayed)
    assert done.evaluations == whole.evaluations
    for ours, theirs in zip(kept, coreset_samples(stream, whole.coresets), strict=True):
        assert torch.equal(ours.values, theirs.values)
        assert torch.equal(ours.labels, theirs.labels)


def test_what_does_not_fit_is_refused() -> None:
    rule = RULES["bayes"]
    stream = split_by_class(dataset())
    network = small_network(rule)
    one = Stream(stream.tasks[:1], 4)
    done = run_stream(network, rule, one, CONFIG)
    stored = coreset_samples(one, done.coresets)
    task = stream.tasks[1]
    with pytest.raises(UserError, match="1 tasks behind it and the stream only 1"):
        run_stream(network, rule, Stream((task,), 4), CONFIG, progress=done)  # the new task only
    with pytest.raises(UserError, match="1 sets of stored examples, but 0"):
        extend(network, rule, task, CONFIG, done, [])
    with pytest.raises(UserError, match="with_more_classes"):
        extend(network, rule, replace(task, train=pictures([3] * 5)), CONFIG, done, stored)
    with pytest.raises(UserError, match="8 inputs and as many time-steps"):
        extend(network, rule, replace(task, train=pictures([3] * 4, time=5)), CONFIG, done, stored)
    with pytest.raises(UserError, match="no train samples"):
        extend(network, rule, replace(task, train=task.train.subset(torch.arange(0))), CONFIG, done, stored)
