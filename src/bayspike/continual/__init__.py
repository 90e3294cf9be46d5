"""Continual learning: task streams, coresets, replay, and the protocol that trains through them."""

from bayspike.continual.coresets import draw_coreset
from bayspike.continual.protocol import (
    Evaluation,
    Progress,
    Scores,
    StreamConfig,
    accuracy_matrix,
    coreset_only,
    memory_of,
    run_stream,
)
from bayspike.continual.tasks import Stream, Task, joint, permuted, repeated, rotated, split_by_class

__all__ = [
    "Evaluation",
    "Progress",
    "Scores",
    "Stream",
    "StreamConfig",
    "Task",
    "accuracy_matrix",
    "coreset_only",
    "draw_coreset",
    "joint",
    "memory_of",
    "permuted",
    "repeated",
    "rotated",
    "run_stream",
    "split_by_class",
]
