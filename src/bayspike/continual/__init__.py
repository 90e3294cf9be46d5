"""Continual learning: task streams, coresets, replay, and the protocol that trains through them.

In come a data set cut into tasks, a network and a rule (or a learner by name); out goes a `Progress`: the states of the
rule, the stored examples and the evaluations, from which a run goes on as if it had never been interrupted.
"""

from bayspike.continual.coresets import draw_coreset
from bayspike.continual.extending import Extended, extend
from bayspike.continual.judging import judge_with, score
from bayspike.continual.looking_back import accuracy_matrix, memory_of, score_matrix, summarise
from bayspike.continual.protocol import Evaluation, Progress, Scores, StreamConfig, coreset_only, run_stream
from bayspike.continual.tasks import Stream, Task, drifting, joint, permuted, repeated, rotated, split_by_class

__all__ = [
    "Evaluation",
    "Extended",
    "Progress",
    "Scores",
    "Stream",
    "StreamConfig",
    "Task",
    "accuracy_matrix",
    "coreset_only",
    "draw_coreset",
    "drifting",
    "extend",
    "joint",
    "judge_with",
    "memory_of",
    "permuted",
    "repeated",
    "rotated",
    "run_stream",
    "score",
    "score_matrix",
    "split_by_class",
    "summarise",
]
