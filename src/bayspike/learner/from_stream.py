"""The learner that a stream has made: it goes on where the stream ended, with the stream's settings."""

from collections.abc import Mapping
from typing import Any

import torch

from bayspike.continual.protocol import Progress, StreamConfig, coreset_samples
from bayspike.continual.tasks import Stream
from bayspike.data.base import Dataset
from bayspike.learner.encoding import encoding_of
from bayspike.learner.examples import standing_alone
from bayspike.learner.state import LearnerState, Recipe, counted, fresh_copy
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
) -> LearnerState:
    """What `run_stream` left behind, as a learner with the stored examples themselves. None were held back."""
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
    return LearnerState(
        recipe=Recipe(network, encoding, rule, config, epochs=config.epochs, members=members),
        classes=dataset.classes,
        states=fresh_copy(tuple(cpu)),
        tasks=tuple(task.name for task in done),
        stored=stored,
        seen=seen,
        seen_alone=nothing,
        presentations=progress.presentations,
        replayed=progress.replayed,
        about=dict(about),
    )
