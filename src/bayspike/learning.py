"""Training on one mini-batch: the loop over time of Algorithms 1 and 2 of the paper.

At every time-step every layer emits spikes, computes its local gradient, and its rule updates its state. Memory
does not grow with the number of time-steps: nothing of the past is kept but the traces.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.denormals import flushed_denormals
from bayspike.errors import UserError, require_range
from bayspike.local import local_gradient, one_hot_targets
from bayspike.network import Network, check_spikes, step
from bayspike.posteriors import Posterior
from bayspike.rules.base import Rule, State


class BatchReport(NamedTuple):
    """What a mini-batch looked like while it was learnt; tensors, so that nothing waits for a device."""

    loss: Tensor  # mean local loss of the last layer over time, ()
    accuracy: Tensor  # of the probabilities averaged over time, ()
    rates: Tensor  # mean spikes per neuron and time-step of each layer, (layers,)


def init_states(network: Network, rule: Rule, generator: torch.Generator) -> list[State]:
    """A fresh rule state for every layer."""
    states = []
    for layer in network.layers:
        state = rule.init(layer.shape, generator)
        moved = {name: part.to(layer.readout) for name, part in state._asdict().items() if isinstance(part, Tensor)}
        states.append(state._replace(**moved))
    return states


@flushed_denormals()
def train_batch(
    network: Network,
    rule: Rule,
    states: Sequence[State],
    spikes: Tensor,
    labels: Tensor,
    generator: torch.Generator,
    burn_in: int = 0,
) -> tuple[list[State], BatchReport]:
    """Present one mini-batch: one update of every layer at every time-step after the first `burn_in`.

    spikes `(time, batch, inputs)`, labels `(batch,)`. The states given are spent; use those returned. With a rule that
    draws several samples per step the batch is presented once for each.
    """
    check_spikes(network, spikes)
    require_range("burn_in", burn_in, 0)
    if spikes.shape[1] != len(labels):
        raise UserError(f"there are {spikes.shape[1]} examples in spikes but {len(labels)} labels.")
    states = list(states)
    readout = network.layers[-1].readout
    targets = one_hot_targets(labels.to(readout.device), network.classes, readout.dtype).repeat(rule.samples, 1)
    neurons = list(network.start(len(targets)))
    predicted = readout.new_empty(len(spikes), *targets.shape)  # of the last layer at every step
    counts = readout.new_zeros(len(network.layers))
    for t, spikes_in in enumerate(spikes.to(readout.device)):
        arriving = spikes_in.to(readout.dtype)
        if rule.samples > 1:
            arriving = arriving.repeat(rule.samples, 1)
        for index, layer in enumerate(network.layers):
            drive = rule.drive(states[index], generator)
            done = step(layer, neurons[index], arriving, drive)
            neurons[index] = done.state
            gradient, probabilities = local_gradient(layer, done, drive, arriving, targets)
            if t >= burn_in:
                states[index] = rule.update(states[index], gradient)
            counts[index] += done.spikes.mean()
            arriving = done.spikes
        predicted[t] = probabilities
    loss = -(predicted * targets).sum(dim=2).clamp_min_(1e-30).log_().mean()
    correct = predicted.mean(dim=0).argmax(dim=1) == targets.argmax(dim=1)
    return states, BatchReport(loss, correct.to(readout.dtype).mean(), counts / len(spikes))


def posteriors(rule: Rule, states: Sequence[State]) -> list[Posterior]:
    """The distribution over the weights of every layer."""
    return [rule.posterior(state) for state in states]
