"""The forward pass with fixed weights as compiled loops (numba): `unrolled` without the currents ever in memory.

For every member and example a loop over time adds up the rows of the weights that the events of a step call for,
filters, compares with the threshold and resets; only spikes, a byte each, leave it. What is saved:

- **Channels that fire more often than not are turned round.** Their rows are summed once an example, and a step
  subtracts those that are silent: W·s = W·a − W·(a∧¬s) + W·(s∧¬a), with a the channels that fire in most steps. Of the
  hundred events of a step of a rate-coded digit about a quarter are left.
- **Weights on a grid are whole numbers** (8-bit committees). Their rows are kept as 16-bit ones, half as wide as
  floating point, and their sums are exact: no subset of a neuron's weights may add up to more than 16 bits hold, or
  the rows stay floating point. Sums may overflow on their way, since they come back.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from bayspike.posteriors.grid import LEVELS_ABOVE, LEVELS_BELOW
from bayspike.predict.synapses import Fixed
from bayspike.predict.unrolled import Outcome, slices
from bayspike.spiking.compiled import RESETS, has_compiled_form, jitted
from bayspike.spiking.filters import DoubleExponential
from bayspike.spiking.network import Network
from bayspike.spiking.neurons import Neuron

SPIKES_IN_FLIGHT = 1 << 23  # bytes of one layer's spikes, over all members: they stay in the cache until they are read
LARGEST = 2**15 - 1
DENSEST = 0.3  # share of events from which on the plain form is faster
WIDTH = 16  # classes are padded to a multiple of it, which is one register


class Rows(NamedTuple):
    """A layer's weights as the loops read them: what each input adds, in units of a member's `step`."""

    tables: NDArray[Any]  # (members, pre, neurons), of int16 or float32
    steps: NDArray[np.float32]  # (members,)


def rows_of(network: Network, fixed: Sequence[Fixed]) -> list[Rows] | None:
    """The weights of every layer for `unroll_compiled`; None where a layer has no compiled form."""
    if not all(has_compiled_form(layer) for layer in network.layers):
        return None
    return [_on_grid(each.tables) for each in fixed]


def _on_grid(tables: Tensor) -> Rows:
    """Whole numbers, if every member's weights lie on a grid of 8 bits that reaches just as far as they do."""
    steps = (tables.amax(dim=(1, 2)) / LEVELS_ABOVE).maximum(-tables.amin(dim=(1, 2)) / LEVELS_BELOW)
    steps = torch.where(steps > 0, steps, 1.0)
    for reach in (None, tables.abs().amax(dim=(1, 2)) / LEVELS_ABOVE):
        tried = steps if reach is None else torch.where(reach > 0, reach, 1.0)
        levels = torch.round(tables / tried.view(-1, 1, 1))
        if not torch.allclose(levels * tried.view(-1, 1, 1), tables, rtol=1e-6, atol=0.0):
            continue
        furthest = max(float(levels.clamp_min(0).sum(dim=1).max()), float(-levels.clamp_max(0).sum(dim=1).min()))
        if furthest <= LARGEST:
            return Rows(levels.to(torch.int16).numpy(), tried.to(torch.float32).numpy())
    return Rows(tables.contiguous().numpy(), np.ones(len(tables), dtype=np.float32))


def worthwhile(rows: Sequence[Rows], spikes: Tensor) -> bool:
    """Whether `(time, batch, inputs)` are sparse enough: a sum of rows of floating point loses to a dense product.

    What counts is what is left after channels that fire often are turned round; every eighth example is looked at.
    """
    if rows[0].tables.dtype == np.int16:  # half as wide: no input is so dense
        return True
    some = spikes[:, ::8]
    counts = some.sum(dim=0, dtype=torch.int64)
    left = torch.minimum(counts, len(some) - counts).sum()
    return float(left) <= DENSEST * some.numel()


def unroll_compiled(network: Network, rows: Sequence[Rows], spikes: Tensor) -> Iterator[Outcome]:
    """`unrolled.unroll_members` for all members at once, as many examples at a time as stay in the cache."""
    time, batch, _ = spikes.shape
    members, widest = len(rows[0].steps), max(layer.neurons for layer in network.layers)
    # the last spikes of the signal would be seen after its end
    seen = spikes[: time - 1].to(torch.uint8).numpy()
    pieces = list(slices(batch, max(1, SPIKES_IN_FLIGHT // (members * widest * time))))

    def work_off(piece: slice) -> Outcome:
        torch.set_flush_denormal(True)  # of this thread
        return _piece(network, rows, seen[None, :, piece], time, piece)

    threads = min(torch.get_num_threads(), len(pieces))
    if threads == 1:
        yield from map(work_off, pieces)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work_off, pieces)


def _piece(network: Network, rows: Sequence[Rows], spikes: NDArray[np.uint8], time: int, examples: slice) -> Outcome:
    """All layers, for spikes `(1, time, examples, inputs)` that all members see."""
    delay, members, counts = len(network.layers), len(rows[0].steps), []
    for index, (layer, weights) in enumerate(zip(network.layers, rows, strict=True)):
        if index > 0:
            spikes = spikes[:, : max(spikes.shape[1] - 1, 0)]
        emitted = np.empty((members, *spikes.shape[1:3], layer.neurons), dtype=np.uint8)
        tally = np.zeros((members, spikes.shape[2], layer.neurons), dtype=np.float32)
        channels, edges = _events(spikes)
        counts.append(_fire(channels, edges, weights.tables, *_constants(layer.neuron, weights.steps), emitted, tally))
        spikes = emitted
    logits = np.empty((members, spikes.shape[1], network.classes, spikes.shape[2]), dtype=np.float32)
    _read(spikes, pad(network.layers[-1].readout.T, (0, -network.classes % WIDTH)).numpy(), logits)
    whole = torch.full((members, time, spikes.shape[2], network.classes), 1 / network.classes)
    if logits.shape[1]:
        whole[:, delay:] = torch.softmax(torch.from_numpy(logits), dim=-2).transpose(-1, -2)
    spent = torch.tensor(counts, dtype=torch.float64)
    return Outcome(slice(0, members), examples, whole, spent, torch.from_numpy(spikes), torch.from_numpy(tally))


def _constants(neuron: Neuron, steps: NDArray[np.float32]) -> tuple[Any, ...]:
    """Of the scan: thresholds in the units of each member's rows, decays, the kind of reset."""
    filter_ = neuron.filter
    assert isinstance(filter_, DoubleExponential)
    thresholds = (neuron.threshold / filter_.gain / steps.astype(np.float64)).astype(np.float32)
    decays = np.array([filter_.synapse_decay, filter_.membrane_decay, neuron.refractory_decay], dtype=np.float32)
    return thresholds, decays, np.float32(neuron.refractory_height), RESETS[neuron.reset]


@jitted
def _events(spikes):  # type: ignore[no-untyped-def]
    """The events of `(sets, time, batch, pre)`, example by example, and where each step's begin.

    Of an example: first the channels that fire in most steps; then for every step those others that fire, and those
    of them that are silent: `edges[set, example]` is [all, first step's firing, its silent, second step's firing, …].
    """
    sets, time, batch, pre = spikes.shape
    channels = np.empty(0, np.uint32)
    edges = np.empty((sets, batch, 2 * time + 2), np.uint32)
    count, often = np.empty(pre, np.uint32), np.empty(pre, np.uint8)
    marked = np.zeros((2, -(-pre // 8) * 8), np.uint8)
    words = marked.view(np.uint64)
    size = 0
    for s in range(sets):
        for b in range(batch):
            if len(channels) < size + (time + 1) * pre:
                larger = np.empty(2 * len(channels) + (time + 1) * pre, np.uint32)
                larger[:size] = channels[:size]
                channels = larger
            count[:] = 0
            for t in range(time):
                for j in range(pre):
                    count[j] += spikes[s, t, b, j]
            edges[s, b, 0] = size
            for j in range(pre):
                often[j] = 2 * count[j] > time
                if often[j]:
                    channels[size] = j
                    size += 1
            for t in range(time):
                for j in range(pre):
                    marked[0, j] = spikes[s, t, b, j] & ~often[j]
                    marked[1, j] = often[j] & ~spikes[s, t, b, j]
                for side in range(2):
                    edges[s, b, 2 * t + side + 1] = size
                    for word in range(words.shape[1]):
                        if words[side, word] != 0:
                            for j in range(8 * word, 8 * word + 8):
                                if marked[side, j]:
                                    channels[size] = j
                                    size += 1
            edges[s, b, 2 * time + 1] = size
    return channels, edges


@numba.njit(nogil=True, inline="always", error_model="numpy")
def _add_rows(total, table, channels, begin, end, sign):  # type: ignore[no-untyped-def]
    """Add the rows of some channels, four at a time: the total is read and written a quarter as often."""
    event = begin
    while event + 4 <= end:
        a, b = table[channels[event]], table[channels[event + 1]]
        c, d = table[channels[event + 2]], table[channels[event + 3]]
        for i in range(len(total)):
            total[i] += sign * ((a[i] + b[i]) + (c[i] + d[i]))
        event += 4
    while event < end:
        a = table[channels[event]]
        for i in range(len(total)):
            total[i] += sign * a[i]
        event += 1


@jitted
def _fire(channels, edges, tables, thresholds, decays, height, reset, emitted, tally):  # type: ignore[no-untyped-def]
    """Events to spikes `(members, time, batch, neurons)`, counted by neuron in `tally`; returns how many there are. The
    scan is `unrolled.fire`'s."""
    members, _, neurons = tables.shape
    sets, batch, _ = edges.shape
    time = emitted.shape[1]
    synapse, membrane, recovery = decays[0], decays[1], decays[2]
    plus, minus = tables.dtype.type(1), tables.dtype.type(-1)
    usual, total = np.empty(neurons, tables.dtype), np.empty(neurons, tables.dtype)
    current, trace = np.empty(neurons, np.float32), np.empty(neurons, np.float32)
    refractory = np.empty(neurons, np.float32)
    count = 0
    for b in range(batch):
        for m in range(members):
            edge, table, threshold = edges[m if sets > 1 else 0, b], tables[m], thresholds[m]
            usual[:], current[:], trace[:], refractory[:] = 0, 0, 0, 0
            _add_rows(usual, table, channels, edge[0], edge[1], plus)
            for t in range(time):
                for i in range(neurons):
                    total[i] = usual[i]
                _add_rows(total, table, channels, edge[2 * t + 1], edge[2 * t + 2], plus)
                _add_rows(total, table, channels, edge[2 * t + 2], edge[2 * t + 3], minus)
                out: Any = emitted[m, t, b]
                often: Any = tally[m, b]
                fired: Any = np.int32(0)
                for i in range(neurons):
                    now = np.float32(total[i]) + synapse * current[i]
                    current[i] = now
                    potential = now + membrane * trace[i]
                    if reset == 2:
                        trace[i] = potential
                        potential -= refractory[i]
                        spike = potential > threshold
                        refractory[i] = recovery * refractory[i] + (height * threshold if spike else np.float32(0))
                    else:  # what a spike takes off is taken from the membrane itself
                        spike = potential > threshold
                        left = potential - threshold if reset == 1 else np.float32(0)
                        trace[i] = left if spike else potential
                    out[i] = spike
                    often[i] += np.float32(spike)
                    fired = np.int32(fired + spike)  # of 32 bits, as many at a time as of the other numbers
                count += fired
    return count


@jitted
def _read(spikes, readout, logits):  # type: ignore[no-untyped-def]
    """Add each spike's column of the read-out `(neurons, width)` to the logits `(members, time, classes, batch)`.

    The logit of a class is a sum of its own, in the order of the neurons: it does not change when classes are added.
    """
    members, time, batch, neurons = spikes.shape
    classes, whole = logits.shape[2], neurons // 8 * 8
    total, fired = np.empty(readout.shape[1], np.float32), np.empty(neurons + 8, np.uint32)
    for m in range(members):
        for t in range(time):
            for b in range(batch):
                frame = spikes[m, t, b]
                words = frame[:whole].view(np.uint64)
                count = 0
                for word in range(len(words)):
                    if words[word] != 0:
                        for i in range(8 * word, 8 * word + 8):  # no branch: each is written, those that fired stay
                            fired[count] = i
                            count += frame[i]
                for i in range(whole, neurons):
                    fired[count] = i
                    count += frame[i]
                total[:] = 0
                for each in range(count):
                    column = readout[fired[each]]
                    for c in range(len(total)):
                        total[c] += column[c]
                for c in range(classes):
                    logits[m, t, c, b] = total[c]
