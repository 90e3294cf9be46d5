"""Adding a learning rule: gradient descent with momentum, in one class, compared with plain gradient descent.

A rule is a frozen dataclass of hyper-parameters with five methods; its state for a layer is a NamedTuple of tensors.

    python examples/new_rule.py
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike import SGD, NetworkConfig, StreamConfig, build, data, judge_with, run_stream, split_by_class
from bayspike.posteriors.distributions import Point
from bayspike.rules import initial_weights
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights


class MomentumState(NamedTuple):
    weights: Tensor  # the weights come first: what a rule keeps beyond them is counted as overhead
    velocity: Tensor


@dataclass(frozen=True)
class Momentum:
    """v ← momentum·v + mean gradient, then w ← w − lr·v, at every time-step."""

    lr: float = 0.02
    momentum: float = 0.8

    binary = False  # real-valued weights
    samples = 1  # one weight matrix for each time-step
    needs_fisher = False  # `end_task` does not want the Fisher information

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> MomentumState:
        return MomentumState(initial_weights(shape, 1.0, generator), torch.zeros(shape))

    def drive(self, state: MomentumState, generator: torch.Generator) -> Weights:
        return Weights(state.weights)

    def update(self, state: MomentumState, gradient: LocalGradient) -> MomentumState:
        velocity = gradient.add_mean_to(state.velocity, keep=self.momentum)
        return MomentumState(state.weights.sub_(velocity, alpha=self.lr), velocity)

    def end_task(self, state: MomentumState, fisher: Tensor | None = None) -> MomentumState:
        return state._replace(velocity=torch.zeros_like(state.velocity))  # a new task starts from rest

    def posterior(self, state: MomentumState) -> Point:
        return Point(state.weights)


stream = split_by_class(data.load("digits", time=15), groups=[[0, 1], [2, 3]])
network = build(NetworkConfig(inputs=784, hidden=(64,), classes=10))
for rule in (SGD(lr=0.1), Momentum()):
    done = run_stream(network, rule, stream, StreamConfig(), evaluate=judge_with(network, ["point"]))
    scores = done.evaluations[-1].overall
    print(f"{type(rule).__name__:8s} accuracy {scores.accuracy:.3f}, ECE {scores.ece:.3f} after both tasks")
