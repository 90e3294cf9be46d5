"""One more task for a learner whose old data are gone (paper, Sec. "Bayesian Continual Learning").

A stream knows all its tasks, and a `Progress` names stored examples by their places in them. Here the stored examples
themselves are handed in and out, so that whoever has them and the progress can go on. The task is learnt exactly as it
would have been in a stream that had it next.
"""

from collections.abc import Sequence
from typing import NamedTuple

from bayspike.continual.protocol import Evaluate, OnBatch, Progress, StreamConfig, end_task, run_task
from bayspike.continual.tasks import Task
from bayspike.data.base import Samples
from bayspike.errors import require
from bayspike.rules.base import Rule
from bayspike.spiking.network import Network


class Extended(NamedTuple):
    """A learner with one more task behind it, and all examples it stores, one set for each task."""

    progress: Progress
    stored: tuple[Samples, ...]


def extend(
    network: Network,
    rule: Rule,
    task: Task,
    config: StreamConfig,
    progress: Progress,
    stored: Sequence[Samples],
    judges: Sequence[Task] = (),
    evaluate: Evaluate | None = None,
    on_batch: OnBatch | None = None,
) -> Extended:
    """Learn one more task, given where the learner stands and its stored examples, one set for each task so far.

    With `evaluate` the learner is judged on `judges`, or on the task alone. The states of `progress` are spent.
    """
    train = task.train
    require(len(train) > 0, f"task {task.name!r} has no train samples.")
    require(
        len(stored) == len(progress.coresets) or not progress.coresets,
        f"the progress has {len(progress.coresets)} sets of stored examples, but {len(stored)} are given.",
    )
    low, high = int(train.labels.min()), int(train.labels.max())
    require(
        low >= 0 and high < network.classes,
        f"task {task.name!r} has labels from {low} to {high}, but the read-out has the classes "
        f"0 … {network.classes - 1}: add rows with bayspike.spiking.network.with_more_classes.",
    )
    for samples in (train, *stored):
        require(
            (samples.time, samples.inputs) == (train.time, network.inputs),
            f"task {task.name!r} and the stored examples must have {network.inputs} inputs and as many time-steps, "
            f"but have (time, inputs) {(train.time, train.inputs)} and {(samples.time, samples.inputs)}.",
        )
    require(config.burn_in < train.time, f"burn_in must leave some of the {train.time} time-steps to learn from.")
    done = run_task(network, rule, [train, *stored], config, progress, judges or (task,), evaluate, on_batch)
    ended = end_task(network, rule, train, config, done)
    return Extended(ended, (*stored, train.subset(ended.coresets[-1])))
