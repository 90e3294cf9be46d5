"""Time blocks: weights that stand still for k time-steps, and one update from all of them. An option, not the letter.

The paper updates at every step (Algorithms 1 and 2), and at batch 64 a step is bound by reading and writing the weight
matrix. Here the factors of k steps are gathered and go into one product of k·|B| rows,

    Σ_t deltaᵀ_t·pre_t = [delta_1 … delta_k]ᵀ·[pre_1 … pre_k]

with k times the learning rate, so that a block moves the weights as far as its k steps would, were the later gradients
not taken at weights that the earlier ones have changed. Losses are local and weights stand still, so a block is worked
off layer by layer: the potentials of all its steps are one product too, followed by a light scan for the reset.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bayspike.errors import require, require_range
from bayspike.learning.batch import BatchReport, Pulled
from bayspike.rules.base import Rule, State
from bayspike.spiking.layers import driven_by
from bayspike.spiking.local import LocalGradient, local_gradient
from bayspike.spiking.network import Drive, Layer, LayerStep, Network
from bayspike.spiking.neurons import NeuronState


def present_in_blocks(
    network: Network,
    rule: Rule,
    states: Sequence[State],
    spikes: Tensor,
    targets: Tensor,
    generator: torch.Generator,
    burn_in: int,
    evidence: Tensor | None,
    every: int,
) -> tuple[list[State], BatchReport]:
    """The loop over time, `every` steps at a time; the first `burn_in` are a block of their own, without an update."""
    check_blocks(network, rule, every)
    time, states, neurons = len(spikes), list(states), list(network.start(len(targets)))
    pulled = rule if isinstance(rule, Pulled) and rule.pull_every > 1 else None
    learning = pulled.without_pull() if pulled else rule
    predicted = targets.new_empty(time, *targets.shape)
    fired = [torch.zeros_like(layer.spikes) for layer in neurons]
    rows = not getattr(rule, "by_means", False)
    since_pull = 0
    begin = 0
    while begin < time:
        updating = begin >= burn_in
        end = min(begin + every, time) if updating else min(burn_in, time)
        steps, arriving = end - begin, spikes[begin:end].to(targets.dtype)
        since_pull += steps if updating else 0
        for index, layer in enumerate(network.layers):
            drive = learning.drive(states[index], generator)
            gradient, probabilities, emitted, neurons[index] = _block(
                layer, neurons[index], arriving, drive, targets, evidence, rows
            )
            if updating:
                states[index] = times_rate(learning, steps).update(states[index], gradient)
                if pulled and (since_pull >= pulled.pull_every or end == time):
                    states[index] = pulled.pull_back(states[index], since_pull)
            fired[index].add_(emitted.sum(dim=0))
            arriving = emitted
        if pulled and since_pull >= pulled.pull_every:
            since_pull = 0
        predicted[begin:end] = probabilities.view(steps, *targets.shape)
        begin = end
    return states, BatchReport.of(predicted, targets, fired)


def _block(
    layer: Layer,
    state: NeuronState,
    arriving: Tensor,
    drive: Drive,
    targets: Tensor,
    evidence: Tensor | None,
    rows: bool,
) -> tuple[LocalGradient, Tensor, Tensor, NeuronState]:
    """One layer over the steps of a block: gradient, probabilities, spikes `(steps, batch, neurons)`, last state.

    To all but the neurons' own memory the steps are further examples of one mini-batch.
    """
    steps, batch = arriving.shape[:2]
    neuron, synapses = layer.neuron, state.synapses
    given = arriving if layer.inlet is None else layer.inlet(arriving)
    traces = given.new_empty(steps, batch, layer.traces)
    for trace, frame in zip(traces, given, strict=True):
        trace.copy_(synapses.trace)
        synapses = neuron.filter.step(synapses, frame)
    pre, driven = driven_by(layer, traces.view(steps * batch, layer.traces), drive, rows=rows)
    potential = driven.view(steps, batch, layer.neurons)
    emitted, refractory = torch.empty_like(potential), state.refractory
    for u, s in zip(potential, emitted, strict=True):
        u.sub_(refractory)
        torch.gt(u, neuron.threshold, out=s)
        refractory = neuron.next_refractory(refractory, s, u)
    last = NeuronState(synapses, refractory, emitted[-1])
    done = LayerStep(last, pre, potential.view(-1, layer.neurons), emitted.view(-1, layer.neurons))
    counted = None if evidence is None else evidence.repeat(steps, 1)
    arrived, wanted = arriving.reshape(steps * batch, -1), targets.repeat(steps, 1)
    gradient, probabilities = local_gradient(layer, done, drive, arrived, wanted, counted)
    return gradient, probabilities, emitted, last


def times_rate(rule: Rule, steps: int) -> Rule:
    """The rule with the learning rate of so many steps at once."""
    settings: Any = rule  # every rule is a dataclass
    if getattr(rule, "weight", None) is not None:  # what a step counts; its learning rate is a factor on top
        weighed: Rule = replace(settings, weight=settings.weight * steps)
        return weighed
    rates = {"lr": settings.lr * steps}
    if getattr(rule, "precision_lr", None) is not None:
        rates["precision_lr"] = settings.precision_lr * steps
    faster: Rule = replace(settings, **rates)
    return faster


def check_blocks(network: Network, rule: Rule, every: int) -> None:
    """Refuse what cannot be worked off in blocks."""
    require_range("update_every", every, 1)
    require(
        not any(layer.recurrent for layer in network.layers),
        "a recurrent layer sees its own last spikes: learn it with update_every=1.",
    )
    require(rule.samples == 1, "several samples a step are drawn step by step: learn with update_every=1.")
