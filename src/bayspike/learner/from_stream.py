"""The learner that a stream has made: it goes on where the stream ended, with the stream's settings."""

from collections.abc import Mapping
from typing import Any

import torch

from bayspike.continual.protocol import Progress, StreamConfig, coreset_samples
from bayspike.continual.tasks import Stream
from bayspike.data.base import Dataset, SpikeSamples
from bayspike.learner.answers import calibrate
from bayspike.learner.encoding import encoding_of
from bayspike.learner.examples import Plain, standing_alone
from bayspike.learner.state import LearnerState, Recipe, counted, fresh_copy
from bayspike.predict.gathering import Gather
from bayspike.rules.base import Rule
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig


def learner_of_stream(
    network: NetworkConfig,
    rule: Rule,
    stream: Stream,
    config: StreamConfig,
    progress: Progress,
    dataset: Dataset,
    members: int,
    about: Mapping[str, Any],
    gather: Gather = "mean",
) -> LearnerState:
    """What `run_stream` left behind, as a learner with the stored examples themselves.

    Examples that the data set held back calibrate it. Spike trains may last longer than those it learns from, as whole
    recordings do where pieces of recordings are learnt; of other kinds those that do not fit are left aside.
    """
    encoding = encoding_of(stream.tasks[0].train, dataset.sample_shape)
    done = stream.tasks[: progress.task]
    stored = tuple(
        standing_alone(part, generator_for(config.seed, "kept", number))
        for number, part in enumerate(coreset_samples(stream, progress.coresets))
    )
    nothing = seen = (0,) * len(dataset.classes)
    for task in done:
        seen = counted(seen, task.train.labels)
    cpu = (
        state._replace(**{name: part.cpu() for name, part in state._asdict().items() if isinstance(part, torch.Tensor)})
        for state in progress.states
    )
    kept = dataset.held_back
    held_back: tuple[Plain, ...] = ()
    if kept is not None:
        alone = standing_alone(kept, generator_for(config.seed, "held back"))
        held_back = (alone,) if isinstance(alone, SpikeSamples) or alone.time == encoding.time else ()
    learner = LearnerState(
        recipe=Recipe(network, encoding, rule, config, epochs=config.epochs, members=members, gather=gather),
        classes=dataset.classes,
        states=fresh_copy(tuple(cpu)),
        tasks=tuple(task.name for task in done),
        stored=stored,
        held_back=held_back,
        seen=seen,
        seen_alone=nothing,
        presentations=progress.presentations,
        replayed=progress.replayed,
        about=dict(about),
    )
    return calibrate(learner) if held_back else learner
