"""The forward pass with fixed weights, all time-steps at once (paper, eqs. ind-membrane, pred-conf-freq).

A layer is one product of its spikes of all time-steps with its weights (`synapses`), then a light scan over
time for filter, threshold and reset. Only recurrent layers multiply at every step, since their own spikes come back.

A spike takes one step per layer, so what layer l emits at time t is settled by inputs up to t − l. The pass is computed
without these delays, in place, and only its end is shifted: the read-out of a network of L layers is silent for
the first L steps.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.predict.synapses import Currents, Synapses
from bayspike.spiking.filters import DoubleExponential, TraceState
from bayspike.spiking.network import Layer, Network, check_spikes
from bayspike.spiking.neurons import Neuron

ELEMENTS_IN_FLIGHT = 1 << 23  # of one layer's currents: enough for products to run at full speed, bounded for any batch
LEAST_ELEMENTS_A_STEP = 1 << 14  # of one operation of the scan: fewer, and calling it costs more than doing it

Feedback = Callable[[Tensor], Tensor]  # a layer's last spikes (members, batch, neurons) -> currents of the same shape


class LayerState(NamedTuple):
    """A layer between two time-steps, each `(members, batch, neurons)`; overwritten by `fire`."""

    filtered: TraceState  # of the currents
    refractory: Tensor
    spikes: Tensor  # the last ones emitted


def start(network: Network, members: int, batch: int) -> list[LayerState]:
    """The state of every layer before the first time-step."""
    states = []
    for layer in network.layers:
        zeros = [layer.readout.new_zeros(members, batch, layer.neurons) for _ in range(4)]
        states.append(LayerState(TraceState(zeros[0], zeros[1]), zeros[2], zeros[3]))
    return states


def fire(neuron: Neuron, currents: Tensor, state: LayerState, feedback: Feedback | None = None) -> LayerState:
    """Turn currents `(members, time, batch, neurons)` into spikes, in place; returns the state after them."""
    filtered, refractory, spikes = state
    scan = _scan_exponential if isinstance(neuron.filter, DoubleExponential) else _scan_any
    for now in currents.unbind(1):
        if feedback is not None:
            now += feedback(spikes)
        filtered, refractory = scan(neuron, now, filtered, refractory)
        spikes = now
    return LayerState(filtered, refractory, spikes.clone())


def _scan_exponential(
    neuron: Neuron, now: Tensor, filtered: TraceState, refractory: Tensor
) -> tuple[TraceState, Tensor]:
    """One step, in place. In units of the filter's gain, which saves multiplying the currents by it.

    With reset `zero` or `subtract` the trace is the membrane itself and what the spikes take off is taken from it.
    """
    decays, (current, trace) = neuron.filter, filtered
    assert isinstance(decays, DoubleExponential)
    threshold = neuron.threshold / decays.gain
    torch.add(now, current, alpha=decays.synapse_decay, out=current)
    torch.add(current, trace, alpha=decays.membrane_decay, out=trace)
    if neuron.reset == "refractory":
        torch.gt(torch.sub(trace, refractory, out=now), threshold, out=now)
        refractory.mul_(neuron.refractory_decay).add_(now, alpha=neuron.refractory_height * threshold)
    elif neuron.reset == "zero":
        torch.gt(trace, threshold, out=now)
        trace.addcmul_(trace, now, value=-1)
    else:
        torch.gt(trace, threshold, out=now)
        trace.sub_(now, alpha=threshold)
    return filtered, refractory


def _scan_any(neuron: Neuron, now: Tensor, filtered: TraceState, refractory: Tensor) -> tuple[TraceState, Tensor]:
    """One step with any filter, by the network's own functions."""
    filtered = neuron.filter.step(filtered, now)
    potential = filtered.trace - refractory
    torch.gt(potential, neuron.threshold, out=now)
    return filtered, neuron.next_refractory(refractory, now, potential)


class Passed(NamedTuple):
    """What a block of time-steps leaves behind, without the delay of one step per layer."""

    probabilities: Tensor  # softmax of the last layer's read-out at each step, (members, time, batch, classes)
    states: list[LayerState]
    spikes: Tensor  # number emitted by each layer, summed over members, time, batch and neurons, (layers,)
    fired: Tensor  # spikes of the last layer, (members, time, batch, neurons)


def arrive(network: Network, synapses: Sequence[Synapses], spikes: Tensor) -> Currents:
    """The input spikes `(time, batch, inputs)`, which all members share, at the first layer."""
    return _arriving(network.layers[0], synapses[0], spikes.unsqueeze(0))


def propagate(
    network: Network,
    synapses: Sequence[Synapses],
    first: Tensor,
    states: Sequence[LayerState],
    members: slice = slice(None),
    ending: bool = False,
) -> Passed:
    """Carry the first layer's currents `(members, time, batch, neurons)`, which are overwritten, through the network.

    `ending` says that the signal stops with this block: then each layer ignores the last step of the one below, which
    it would only see after the end.
    """
    following, counts = [], []
    currents = first
    for index, (layer, weights) in enumerate(zip(network.layers, synapses, strict=True)):
        if index > 0:
            arriving = currents[:, : max(currents.shape[1] - 1, 0)] if ending else currents
            currents = _arriving(layer, weights, arriving)(members)
        following.append(fire(layer.neuron, currents, states[index], _feedback(layer, weights, members)))
        counts.append(currents.sum())
    # classes before examples: the product and the softmax are both faster over long rows than over short ones
    logits = network.layers[-1].logits(currents.transpose(-1, -2))
    probabilities = torch.softmax(logits, dim=-2).transpose(-1, -2)
    return Passed(probabilities, following, torch.stack(counts), currents)


def _arriving(layer: Layer, synapses: Synapses, spikes: Tensor) -> Currents:
    """Spikes `(sets, time, batch, inputs)` on their way in, and through the synapses that see what is below."""
    forward = synapses.columns(slice(0, layer.forward)) if layer.recurrent else synapses
    if layer.inlet is None:
        return forward.arrive(spikes)
    counts = layer.inlet.counts
    return forward.arrive(layer.inlet(spikes.to(layer.readout.dtype) if counts else spikes), ones=not counts)


def _feedback(layer: Layer, synapses: Synapses, members: slice) -> Feedback | None:
    if not layer.recurrent:
        return None
    lateral = synapses.columns(slice(layer.forward, None))
    return lambda spikes: lateral.arrive(spikes.unsqueeze(1))(members).squeeze(1)


class Outcome(NamedTuple):
    """The probabilities of some members and examples at each time-step, not yet averaged over time."""

    members: slice
    rows: slice
    probabilities: Tensor  # (members, time, batch, classes)
    spikes: Tensor  # as in Passed
    fired: Tensor  # spikes of the last layer that the read-out has seen by the end, (members, time - layers, batch, …)
    tally: Tensor  # how often each of its neurons did, (members, batch, neurons)


def unroll_members(network: Network, synapses: Sequence[Synapses], spikes: Tensor) -> Iterator[Outcome]:
    """Run all members over `spikes` `(time, batch, inputs)`, piece by piece, so that memory stays bounded."""
    torch.set_flush_denormal(True)  # traces that die away would slow the products
    time, batch, _ = spikes.shape
    delay = len(network.layers)
    members = synapses[0].members
    widest = max(layer.neurons for layer in network.layers)
    rows_at_once = max(ELEMENTS_IN_FLIGHT // (widest * time), LEAST_ELEMENTS_A_STEP // widest, 1)
    for rows in slices(batch, rows_at_once):
        here = [each.rows(rows) for each in synapses]
        # the last spikes of the signal would be seen after its end
        first = arrive(network, here, spikes[: time - 1, rows])
        examples = len(range(*rows.indices(batch)))
        for group in slices(members, max(1, ELEMENTS_IN_FLIGHT // (examples * widest * time))):
            count = len(range(*group.indices(members)))
            done = propagate(network, here, first(group), start(network, count, examples), group, ending=True)
            after = done.probabilities
            whole = after.new_full((count, time, examples, network.classes), 1 / network.classes)
            whole[:, delay:] = after[:, : max(time - delay, 0)]
            yield Outcome(group, rows, whole, done.spikes, done.fired, done.fired.sum(dim=1))


def slices(total: int, size: int) -> Iterator[slice]:
    """As even as can be, none longer than `size`."""
    pieces = -(-total // size)
    edges = [total * piece // pieces for piece in range(pieces + 1)]
    return (slice(low, high) for low, high in pairwise(edges))


def check_binary(network: Network, spikes: Tensor) -> None:
    """Refuse input spikes that do not fit the network or are not zeros and ones."""
    check_spikes(network, spikes)
    if spikes.dtype == torch.bool:
        return
    fits = int(spikes.max()) <= 1 if spikes.dtype == torch.uint8 else bool(((spikes == 0) | (spikes == 1)).all())
    if not fits:
        raise UserError("spikes must be 0 or 1, but hold other values; bin or encode the signal first.")
