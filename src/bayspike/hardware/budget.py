"""What a committee costs on Loihi: memory, cores, synaptic operations, energy per decision. Estimates.

Sources:

- a chip has 128 cores; a core has 1,024 neurons (compartments), 128 KiB of synaptic memory, 4,096 input and 4,096
  output axons (Davies et al., "Loihi: A Neuromorphic Manycore Processor with On-Chip Learning", IEEE Micro
  38(1), 2018; the axon and memory limits are those that nengo-loihi checks against);
- energy per operation: `bayspike.metrics.LOIHI` (the same article, Table 2).

Assumptions: 8-bit weights, without indices where all synapses are there, so memory and cores are a floor; a
convolution's kernels are not shared but stored for every neuron, and whole rows of its maps lie on one core; a pooling
is no layer, so an input has a synapse of its own to every neuron that sees a sum with it; a neuron's axon takes one
entry for each core it reaches; a core holds neurons of one layer of one member. Synapses that were cut
are not there: a core then holds the rest as a list, 8 bits of weight and the number of a neuron of the core each,
or all of them as before where that takes less (a convolution: always as before); an input without synapses needs no
axon. An input spike costs one operation per non-zero synapse, and every neuron is updated at every step. Left out:
static power, routing between cores, input and output, the host's read-out.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayspike.hardware.fixed_point import FixedPointLayer, FixedPointNetwork, LayerRun
from bayspike.hardware.wiring import Wiring, without_pools
from bayspike.metrics.energy import LOIHI, ChipEnergy


@dataclass(frozen=True)
class ChipLimits:
    """What fits where."""

    cores: int = 128
    neurons_per_core: int = 1024
    synapse_bytes_per_core: int = 128 * 1024
    input_axons_per_core: int = 4096
    output_axons_per_core: int = 4096


@dataclass(frozen=True)
class LayerMemory:
    """One layer of one member. `cores` is None if it fits no core, and `problem` says why."""

    neurons: int
    synapses: int
    bytes: int
    cores: int | None
    problem: str | None = None
    cut: int = 0  # synapses that are not there


@dataclass(frozen=True)
class Budget:
    """Totals are of the whole committee; activity is the mean per decision over the examples that were run."""

    members: int
    layers: tuple[LayerMemory, ...]
    synapses: int
    bytes: int
    cores: int | None
    chips: int | None
    time_steps: int
    spikes: float
    synaptic_operations: float
    neuron_updates: float
    joules: float
    energy_source: str

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def budget(
    network: FixedPointNetwork,
    spikes: NDArray[np.uint8],
    runs: list[LayerRun],
    limits: ChipLimits | None = None,
    energy: ChipEnergy = LOIHI,
    kept: Sequence[NDArray[np.bool_]] | None = None,
) -> Budget:
    """The price of `network` deciding on `spikes` `(time, batch, inputs)`, of which `runs` is the result.

    `kept` says for each layer, `(neurons, pre)`, which synapses are there; by default all, zero weights included.
    """
    limits = limits or ChipLimits()
    layers = _place(network, limits, kept)
    time, batch = spikes.shape[:2]
    arriving = [np.broadcast_to(spikes, (network.members, *spikes.shape)), *(done.spikes for done in runs[:-1])]
    operations = emitted = 0.0
    for layer, below, done in zip(network.layers, arriving, runs, strict=True):
        operations += _operations(layer.weight, below, layer.wiring)
        if layer.recurrent is not None:
            operations += _operations(layer.recurrent, done.spikes)
        emitted += int(done.spikes.sum(dtype=np.int64))
    updates = time * network.members * sum(layer.neurons for layer in network.layers)
    placed = [layer.cores for layer in layers if layer.cores is not None]
    cores = network.members * sum(placed) if len(placed) == len(layers) else None
    return Budget(
        members=network.members,
        layers=layers,
        synapses=network.members * sum(layer.synapses for layer in layers),
        bytes=network.members * sum(layer.bytes for layer in layers),
        cores=cores,
        chips=None if cores is None else math.ceil(cores / limits.cores),
        time_steps=time,
        spikes=emitted / batch,
        synaptic_operations=operations / batch,
        neuron_updates=float(updates),
        joules=operations / batch * energy.synaptic_operation + updates * energy.neuron_update,
        energy_source=energy.source,
    )


def _place(
    network: FixedPointNetwork, limits: ChipLimits, kept: Sequence[NDArray[np.bool_]] | None
) -> tuple[LayerMemory, ...]:
    """Cores of each layer, from the last to the first: a neuron's axons depend on the cores of the layer above."""
    placed: list[LayerMemory] = []
    cores_above = 1  # the last layer's spikes leave the chip by one axon each
    for index, layer in reversed(list(enumerate(network.layers))):
        there = _unfolded(layer, None if kept is None else kept[index])
        placed.append(_place_layer(layer, there, cores_above, limits))
        cores_above = placed[-1].cores or 1
    return tuple(reversed(placed))


def _unfolded(layer: FixedPointLayer, kept: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which synapses of each neuron are there; those of a dense layer on pooled inputs, for every input in a window."""
    forward, wiring = layer.weight.shape[-1], layer.wiring
    lateral = layer.neurons if layer.recurrent is not None else 0
    there = np.ones((len(layer.weight[0]), forward + lateral), np.bool_) if kept is None else kept
    if wiring is None or wiring.kernel:
        return there
    (height, width, _), side = wiring.pooled, math.prod(map(abs, wiring.pools))
    covered = replace(wiring, height=height * side, width=width * side, pools=tuple(map(abs, wiring.pools)))
    below, _ = without_pools(there[:, :forward], covered, "a layer")
    return np.concatenate([below, there[:, forward:]], axis=1)


def _place_layer(layer: FixedPointLayer, there: NDArray[np.bool_], cores_above: int, limits: ChipLimits) -> LayerMemory:
    wiring = layer.wiring
    if wiring is not None and wiring.kernel:
        placed = _place_maps(layer.neurons, wiring, cores_above, limits)
        left = round(placed.synapses * float(there.mean()))  # every place of a map lacks the same ones
        return replace(placed, synapses=left, cut=placed.synapses - left)
    axons, synapses = int(there.any(axis=0).sum()), int(there.sum())
    cut = there.size - synapses
    if axons > limits.input_axons_per_core:
        problem = f"{axons} inputs exceed the {limits.input_axons_per_core} input axons of a core"
        return LayerMemory(layer.neurons, synapses, synapses, None, problem, cut)
    for cores in range(1, layer.neurons + 1):
        neurons = math.ceil(layer.neurons / cores)
        reached = cores_above + (cores if layer.recurrent is not None else 0)
        if neurons > limits.neurons_per_core or neurons * reached > limits.output_axons_per_core:
            continue
        sizes = _core_bytes(there, neurons)
        if max(sizes) <= limits.synapse_bytes_per_core:
            return LayerMemory(layer.neurons, synapses, sum(sizes), cores, cut=cut)
    problem = "the axons or the synapses of a single neuron exceed a core"
    return LayerMemory(layer.neurons, synapses, synapses, None, problem, cut)


def _core_bytes(there: NDArray[np.bool_], neurons: int) -> list[int]:
    """Bytes of synapses of every core with so many neurons, each in the form that takes less."""
    listed_bits = 8 + math.ceil(math.log2(neurons)) if neurons > 1 else 8
    parts = [there[first : first + neurons] for first in range(0, len(there), neurons)]
    return [min(part.size, math.ceil(int(part.sum()) * listed_bits / 8)) for part in parts]


def _place_maps(neurons: int, wiring: Wiring, cores_above: int, limits: ChipLimits) -> LayerMemory:
    """A convolution: whole rows of places lie together, and see the rows of inputs under them."""
    scale = math.prod(abs(side) for side in wiring.pools)
    fan_in = wiring.fan_in * scale**2
    synapses, (height, _), in_row = neurons * fan_in, wiring.maps, wiring.width * wiring.channels
    for rows in range(height, 0, -1):
        here = math.ceil(neurons / height * rows)
        seen = min(wiring.height, ((rows - 1) * wiring.stride + wiring.kernel) * scale) * in_row
        if (
            here <= limits.neurons_per_core
            and here * fan_in <= limits.synapse_bytes_per_core
            and here * cores_above <= limits.output_axons_per_core
            and seen <= limits.input_axons_per_core
        ):
            return LayerMemory(neurons, synapses, synapses, math.ceil(height / rows))
    problem = "the neurons, axons or synapses of one row of its maps exceed a core"
    return LayerMemory(neurons, synapses, synapses, None, problem)


def _operations(weight: NDArray[np.int16], spikes: NDArray[np.uint8], wiring: Wiring | None = None) -> float:
    """Every spike `(members, time, batch, inputs)` times the non-zero synapses it leaves by."""
    fan_out = (weight != 0).sum(axis=1, dtype=np.int64)
    if wiring is not None:  # by the rows that the spikes fall into: what is summed on the way has a synapse of its own
        summed = replace(wiring, pools=tuple(map(abs, wiring.pools)))
        at_rows = summed.rows(spikes.sum(axis=(1, 2), dtype=np.int64)).sum(axis=1)
        return float((at_rows * fan_out).sum())
    return float((spikes.sum(axis=(1, 2), dtype=np.int64) * fan_out).sum())
