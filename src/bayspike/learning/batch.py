"""Training on one mini-batch: the loop over time of Algorithms 1 and 2 of the paper.

At every time-step every layer emits spikes, computes its local gradient, and its rule updates its state. Memory
does not grow with the number of time-steps: nothing of the past is kept but the traces.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from bayspike.errors import UserError, require, require_range
from bayspike.kernels import Kernels, require_kernels
from bayspike.learning.silent import Resting, firing_inputs, rejoin, take_columns, without_silent_inputs
from bayspike.posteriors.distributions import Posterior
from bayspike.posteriors.draws import on_device
from bayspike.rules.base import Pace, Paced, Rule, State, first_state
from bayspike.spiking.denormals import flushed_denormals
from bayspike.spiking.filters import independent_steps
from bayspike.spiking.local import local_gradient, one_hot_targets
from bayspike.spiking.network import Network, check_spikes, step


@runtime_checkable
class Pulled(Protocol):
    """A rule whose pull towards the prior may be applied once for several steps."""

    pull_every: int

    def without_pull(self) -> Rule: ...

    def pull_back(self, state: State, steps: int) -> State: ...


class BatchReport(NamedTuple):
    """What a mini-batch looked like while it was learnt; tensors, so that nothing waits for a device."""

    loss: Tensor  # mean local loss of the last layer over time, ()
    accuracy: Tensor  # of the probabilities averaged over time, ()
    rates: Tensor  # mean spikes per neuron and time-step of each layer, (layers,)

    @classmethod
    def of(cls, predicted: Tensor, targets: Tensor, fired: Sequence[Tensor]) -> "BatchReport":
        """From the last layer's probabilities `(time, batch, classes)` and how often each neuron fired."""
        loss = -(predicted.clamp_min(1e-30).log_() * targets).sum(dim=2).mean()
        rates = torch.stack([counts.mean() for counts in fired]) / len(predicted)
        correct = predicted.mean(dim=0).argmax(dim=1) == targets.argmax(dim=1)
        return cls(loss, correct.to(targets.dtype).mean(), rates)


def init_states(network: Network, rule: Rule, generator: torch.Generator) -> list[State]:
    """A fresh rule state for every layer. A rule for binary weights is refused on a network made for real ones."""
    require(
        not rule.binary or network.binary is not False,
        f"{type(rule).__name__} learns weights of ±1, but the network's threshold is that for real ones: build it with "
        "NetworkConfig(…, binary=True), or choose a threshold.",
    )
    return [first_state(rule, layer, layer.shape, generator) for layer in network.layers]


@flushed_denormals()
def train_batch(
    network: Network,
    rule: Rule,
    states: Sequence[State],
    spikes: Tensor,
    labels: Tensor,
    generator: torch.Generator,
    burn_in: int = 0,
    evidence: Tensor | None = None,
    update_every: int = 1,
    kernels: Kernels = "plain",
) -> tuple[list[State], BatchReport]:
    """Present one mini-batch: one update of every layer at every time-step after the first `burn_in`.

    spikes `(time, batch, inputs)`; labels `(batch,)`, or how much each class is the right one, `(batch, classes)`. The
    states given are spent; use those returned. With a rule that draws several samples per step the batch is presented
    once for each. Inputs that never fire in it are set aside.
    `evidence` `(batch,)` says how much each example counts as evidence (for a precision): an example that was counted
    before, and is replayed, is none. A rule in natural units takes this mini-batch for all there is to come, unless it
    was given its pace before (`Rule.at`). `update_every` above 1 is not the letter: see `bayspike.learning.blocks`.
    `kernels` says which form of the loop is used, see `bayspike.kernels`.
    """
    require_kernels(kernels)
    present = _present
    if update_every != 1:
        from bayspike.learning.blocks import present_in_blocks  # built on this module

        present = partial(present_in_blocks, every=update_every)
    elif kernels == "compiled":
        from bayspike.learning import compiled  # needs numba

        present = compiled.present_compiled if compiled.has_compiled_form(network, rule) else _present
    spikes, targets, evidence = training_inputs(network, rule, spikes, labels, burn_in, evidence)
    if isinstance(rule, Paced):
        rule = rule.at(pace_of(network, len(labels), max(1, len(spikes) - burn_in)))
    generator = on_device(generator, spikes.device)
    apart = network.layers[0].inlet is None and not getattr(rule, "flat", False)  # one precision is of silent ones too
    firing = firing_inputs(spikes) if apart else None
    if firing is None or not isinstance(rule, Resting):
        return present(network, rule, states, spikes, targets, generator, burn_in, evidence)
    part, columns = without_silent_inputs(network, firing)
    taking_part = [take_columns(states[0], columns), *states[1:]]
    learnt, report = present(part, rule, taking_part, spikes[:, :, firing], targets, generator, burn_in, evidence)
    learnt[0] = rejoin(rule, states[0], learnt[0], columns, max(0, len(spikes) - burn_in))
    return learnt, report


def training_inputs(
    network: Network, rule: Rule, spikes: Tensor, labels: Tensor, burn_in: int, evidence: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Spikes, targets and evidence, checked, where the network is, repeated for every sample of the rule."""
    check_spikes(network, spikes)
    require_range("burn_in", burn_in, 0)
    if spikes.shape[1] != len(labels):
        raise UserError(f"there are {spikes.shape[1]} examples in spikes but {len(labels)} labels.")
    readout = network.layers[-1].readout
    if evidence is not None:
        require(
            evidence.shape == labels.shape[:1],
            f"evidence must be one number for each of the {len(labels)} examples, but has the shape "
            f"{tuple(evidence.shape)}.",
        )
        evidence = evidence.to(readout).repeat(rule.samples).unsqueeze(1)
    if labels.ndim == 2:
        require(
            labels.shape[1] == network.classes and labels.is_floating_point() and bool((labels >= 0).all()),
            f"labels must be classes, or a share of each of the {network.classes} classes for every example.",
        )
        targets = labels.to(readout)
    else:
        targets = one_hot_targets(labels.to(readout.device), network.classes, readout.dtype)
    return spikes.to(readout.device), targets.repeat(rule.samples, 1), evidence


def _present(
    network: Network,
    rule: Rule,
    states: Sequence[State],
    spikes: Tensor,
    targets: Tensor,
    generator: torch.Generator,
    burn_in: int,
    evidence: Tensor | None,
) -> tuple[list[State], BatchReport]:
    """The loop over time."""
    time, spares = len(spikes), [layer.start(len(targets)).synapses for layer in network.layers]
    states, neurons = list(states), list(network.start(len(targets)))
    pulled = rule if isinstance(rule, Pulled) and rule.pull_every > 1 else None
    rule = pulled.without_pull() if pulled else rule
    predicted = targets.new_empty(time, *targets.shape)  # by the last layer
    fired = [torch.zeros_like(layer.spikes) for layer in neurons]
    rows = not getattr(rule, "by_means", False)
    rooms: list[Tensor | None] = [None] * len(neurons)  # of rows that were multiplied, used again at the next step
    for t, (frame, prediction) in enumerate(zip(frames(spikes, targets.dtype), predicted, strict=True)):
        arriving = frame.repeat(rule.samples, 1) if rule.samples > 1 else frame
        for index, layer in enumerate(network.layers):
            drive = rule.drive(states[index], generator)
            done = step(layer, neurons[index], arriving, drive, spares[index], rooms[index], rows)
            rooms[index] = done.pre if rows and layer.places > 1 else None
            spares[index], neurons[index] = neurons[index].synapses, done.state  # old traces serve this step yet
            gradient, probabilities = local_gradient(layer, done, drive, arriving, targets, evidence)
            if t >= burn_in:
                states[index] = rule.update(states[index], gradient)
                if pulled and (since := pull_due(t - burn_in, time - burn_in, pulled.pull_every)):
                    states[index] = pulled.pull_back(states[index], since)
            fired[index].add_(done.spikes)
            arriving = done.spikes
        prediction.copy_(probabilities)
    return states, BatchReport.of(predicted, targets, fired)


def frames(spikes: Tensor, dtype: torch.dtype) -> Iterator[Tensor]:
    """The spikes of every step as numbers; each is gone with the next."""
    buffer = torch.empty(spikes.shape[1:], dtype=dtype, device=spikes.device)
    return (buffer.copy_(frame) for frame in spikes)


def pull_due(update: int, updates: int, every: int) -> int:
    """How many steps' pull is due after this update (counted from 0): none, or those since the last time."""
    done = update + 1
    return (done - 1) % every + 1 if done % every == 0 or done == updates else 0


def pace_of(network: Network, batch: int, steps: int) -> Pace:
    """The pace of mini-batches of so many examples of so many time-steps."""
    return Pace(batch, steps, observations=independent_steps(network.layers[0].neuron.filter, steps))


def posteriors(rule: Rule, states: Sequence[State]) -> list[Posterior]:
    """The distribution over the weights of every layer."""
    return [rule.posterior(state) for state in states]
