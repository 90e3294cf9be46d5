"""A network as Loihi runs it: integers only, equal to Lava's fixed-point models in every bit (but for
currents that overflow 24 bits twice in one step).

The arithmetic is that of lava-nc's `PyDenseModelBitAcc` and `PyLifModelBitAcc` (the paper's experiments ran
under this precision):

    a_t = (Σ_j w_ij s_j,t−1) · 2^exponent          8-bit weights, mixed sign: even values in −256 … 254
    u_t = wrap(decay(u_t−1, du) + a_t · 2⁶)         24 bits, wraps around
    v_t = clip(decay(v_t−1, dv) + u_t)              24 bits, saturates at ±(2²³ − 1)
    s_t = v_t > threshold · 2⁶,  then v_t ← 0 where s_t = 1 (u is kept)
    decay(x, d) = sign(x) · ((|x| · (4096 − d)) >> 12)

Everything is computed in floating point, since matrix products of floats are fast, but each number is an
integer (or a dyadic fraction) that its type holds exactly: products of weights and spikes in float32 while
every partial sum stays below 2²⁴, states in float64, where 24 + 12 bits fit in 53.

A register of 24 bits wraps modulo 2²⁴. Lava's model subtracts 2²⁴ at most once, which is the same
unless the input of a single step reaches 2¹⁸ (1,032 weights of 254 at once).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import UserError, require, require_range
from bayspike.hardware.wiring import Wiring, check_wiring

STATE_LIMIT = 2**23
ALIGNMENT = 2**6  # inputs and thresholds are shifted left by 6 bits against the state
DECAY_UNITY = 2**12
THRESHOLD_LIMIT = 2**17
WEIGHT_RANGE = (-256, 254)
EXPONENT_RANGE = (-8, 7)
_BLOCK_BYTES = 64 * 2**20  # of synaptic input computed at once
_SPIKES_AT_ONCE = 2**24  # kept of one layer while probabilities are read out

Integers = NDArray[np.integer]
Floats = NDArray[np.floating]


@dataclass(frozen=True)
class FixedPointLayer:
    """One layer of all members of a committee, in the chip's integers.

    `current_decay` is the effective one, 1 … 4096 (the chip stores one less and adds one); `voltage_decay` is
    0 … 4095; `threshold` is the 17-bit mantissa. A layer of one network has `members` = 1.
    """

    weight: NDArray[np.int16]  # (members, neurons, inputs)
    threshold: int
    current_decay: int
    voltage_decay: int
    weight_exponent: int = 0
    recurrent: NDArray[np.int16] | None = None  # (members, neurons, neurons)
    wiring: Wiring | None = None  # of a convolution, or of pooled inputs; then `weight` is (members, maps, fan-in)

    def __post_init__(self) -> None:
        _check_weights("weight", self.weight)
        check_wiring(self.wiring, self.weight.shape, self.recurrent is not None)
        if self.recurrent is not None:
            _check_weights("recurrent", self.recurrent)
            expected = (self.members, self.neurons, self.neurons)
            require(
                self.recurrent.shape == expected,
                f"recurrent must have the shape {expected}, but has {self.recurrent.shape}.",
            )
        require_range("threshold", self.threshold, 0, THRESHOLD_LIMIT - 1)
        require_range("current_decay", self.current_decay, 1, DECAY_UNITY)
        require_range("voltage_decay", self.voltage_decay, 0, DECAY_UNITY - 1)
        require_range("weight_exponent", self.weight_exponent, *EXPONENT_RANGE)

    @property
    def members(self) -> int:
        return int(self.weight.shape[0])

    @property
    def neurons(self) -> int:
        return int(self.weight.shape[1]) * (1 if self.wiring is None else self.wiring.places)

    @property
    def inputs(self) -> int:
        return int(self.weight.shape[2]) if self.wiring is None else self.wiring.inputs


@dataclass(frozen=True)
class FixedPointNetwork:
    """A committee of integer networks; `readouts` (classes, neurons) are the host's, one for each layer."""

    layers: tuple[FixedPointLayer, ...]
    readouts: tuple[NDArray[np.float32], ...] = ()

    def __post_init__(self) -> None:
        require(len(self.layers) > 0, "a fixed-point network needs at least one layer, but got none.")
        for index, (below, above) in enumerate(zip(self.layers, self.layers[1:], strict=False)):
            require(
                below.neurons == above.inputs and below.members == above.members,
                f"layer {index} ({below.members} members, {below.neurons} neurons) cannot feed "
                f"layer {index + 1} ({above.members} members, {above.inputs} inputs).",
            )
        require(
            len(self.readouts) in (0, len(self.layers)),
            f"readouts must be none or one for each of the {len(self.layers)} layers, but are {len(self.readouts)}.",
        )
        for index, (layer, readout) in enumerate(zip(self.layers, self.readouts, strict=False)):
            require(
                readout.ndim == 2 and readout.shape[1] == layer.neurons,
                f"the read-out of layer {index} must have the shape (classes, {layer.neurons}), "
                f"but has {readout.shape}.",
            )

    @property
    def members(self) -> int:
        return self.layers[0].members

    @property
    def inputs(self) -> int:
        return self.layers[0].inputs

    def member(self, index: int) -> "FixedPointNetwork":
        """One member as a network of its own."""
        require_range("member", index, 0, self.members - 1)
        pick = slice(index, index + 1)
        layers = tuple(
            FixedPointLayer(
                a.weight[pick],
                a.threshold,
                a.current_decay,
                a.voltage_decay,
                a.weight_exponent,
                None if a.recurrent is None else a.recurrent[pick],
                a.wiring,
            )
            for a in self.layers
        )
        return FixedPointNetwork(layers, self.readouts)


class LayerRun(NamedTuple):
    """What a layer did. Trajectories `(members, time, batch, neurons)` are the state *after* the reset."""

    spikes: NDArray[np.uint8]  # (members, time, batch, neurons)
    current: NDArray[np.int32] | None
    voltage: NDArray[np.int32] | None
    wraps: int  # how often a current wrapped around
    saturations: int  # how often a voltage was clipped
    largest_input: int  # largest |a_t|; the chip's synaptic accumulator is declared as 16 bits


def run(network: FixedPointNetwork, spikes: NDArray[np.generic], trajectories: bool = False) -> list[LayerRun]:
    """Run `spikes` `(time, batch, inputs)` through all members; one `LayerRun` for each layer.

    `trajectories=True` also keeps current and voltage at every step.
    """
    check_binary_spikes(spikes, network.inputs)
    below = spikes.astype(np.uint8)[None]
    runs = []
    for layer in network.layers:
        runs.append(_run_layer(layer, below, trajectories))
        below = runs[-1].spikes
    return runs


def probabilities(network: FixedPointNetwork, spikes: NDArray[np.generic]) -> NDArray[np.float64]:
    """Class probabilities of every member, `(members, batch, classes)`, from the last layer's spikes.

    The chip sends spikes; the read-out is the host's. The committee's answer is the mean over members. Any number of
    examples may be given: they are run in pieces.
    """
    require(len(network.readouts) > 0, "class probabilities need read-outs, but this network has none.")
    check_binary_spikes(spikes, network.inputs)
    per_example = network.members * spikes.shape[0] * max(layer.neurons for layer in network.layers)
    rows = max(1, _SPIKES_AT_ONCE // per_example)
    parts = [
        read_out([layer.spikes for layer in run(network, spikes[:, start : start + rows])], network.readouts[-1])
        for start in range(0, spikes.shape[1], rows)
    ]
    return np.concatenate(parts, axis=1)


def read_out(layers: Sequence[NDArray[np.uint8]], readout: Floats) -> NDArray[np.float64]:
    """softmax(B s_t) averaged over time: spikes `(members, time, batch, neurons)` to `(members, batch, classes)`.

    Takes the spikes of all layers, of which it reads the last. As in the predictors the average begins with the first
    step that can have heard the input: a spike takes one step per layer.
    """
    first = min(len(layers), layers[-1].shape[1] - 1)
    logits = layers[-1][:, first:].astype(np.float64) @ readout.astype(np.float64).T
    logits -= logits.max(axis=-1, keepdims=True)
    weights = np.exp(logits)
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(weights.mean(axis=1))


def check_binary_spikes(spikes: NDArray[np.generic], inputs: int) -> None:
    """Refuse input that is not `(time, batch, inputs)` of zeros and ones."""
    if spikes.ndim != 3 or spikes.shape[2] != inputs:
        raise UserError(f"spikes must have the shape (time, batch, {inputs}), but have {spikes.shape}.")
    if not bool(((spikes == 0) | (spikes == 1)).all()):
        raise UserError("spikes must be binary (0 or 1), as the chip's are; encode graded values as spikes first.")


def _run_layer(layer: FixedPointLayer, below: NDArray[np.uint8], trajectories: bool) -> LayerRun:
    time, batch = below.shape[1:3]
    shape = (layer.members, batch, layer.neurons)
    keep_current, keep_voltage = 1 - layer.current_decay / DECAY_UNITY, 1 - layer.voltage_decay / DECAY_UNITY
    threshold = layer.threshold * ALIGNMENT
    current, voltage = np.zeros(shape), np.zeros(shape)
    out = np.zeros((layer.members, time, batch, layer.neurons), np.uint8)
    currents = np.zeros(out.shape, np.int32) if trajectories else None
    voltages = np.zeros(out.shape, np.int32) if trajectories else None
    lateral = None if layer.recurrent is None else _exact(layer.recurrent)
    wraps = saturations = largest = 0

    for t, arriving in enumerate(_synaptic_input(layer, below)):
        if lateral is not None and t > 0:
            own = np.matmul(out[:, t - 1].astype(lateral.dtype), lateral)
            arriving = arriving + _shift(own, layer.weight_exponent)
        largest = max(largest, int(arriving.max()), -int(arriving.min()))

        np.trunc(np.multiply(current, keep_current, out=current), out=current)
        current += np.multiply(arriving, ALIGNMENT, dtype=np.float64)
        if current.max() > STATE_LIMIT or current.min() <= -STATE_LIMIT:
            wraps += int(((current > STATE_LIMIT) | (current <= -STATE_LIMIT)).sum())
            current = STATE_LIMIT - np.mod(STATE_LIMIT - current, 2 * STATE_LIMIT)

        np.trunc(np.multiply(voltage, keep_voltage, out=voltage), out=voltage)
        voltage += current
        if voltage.max() >= STATE_LIMIT or voltage.min() <= -STATE_LIMIT:
            saturations += int((np.abs(voltage) >= STATE_LIMIT).sum())
            np.clip(voltage, 1 - STATE_LIMIT, STATE_LIMIT - 1, out=voltage)

        fired = voltage > threshold
        voltage[fired] = 0
        out[:, t] = fired
        if currents is not None and voltages is not None:
            currents[:, t], voltages[:, t] = current, voltage
    return LayerRun(out, currents, voltages, wraps, saturations, largest)


def _synaptic_input(layer: FixedPointLayer, below: NDArray[np.uint8]) -> Iterator[Floats]:
    """a_t of every step, `(members, batch, neurons)`, from the spikes one step before."""
    time, batch = below.shape[1:3]
    wiring = layer.wiring
    weight = _exact(layer.weight, 1 if wiring is None else wiring.largest)
    seen = layer.inputs if wiring is None else wiring.places * wiring.fan_in
    per_step = layer.members * batch * max(layer.neurons, seen) * weight.itemsize
    block = max(1, _BLOCK_BYTES // per_step)
    yield np.zeros((layer.members, batch, layer.neurons), weight.dtype)
    for start in range(0, time - 1, block):
        spikes = below[:, start : min(start + block, time - 1)]
        rows = spikes if wiring is None else wiring.rows(spikes)
        flat = rows.reshape(below.shape[0], -1, weight.shape[1]).astype(weight.dtype)
        summed = _shift(np.matmul(flat, weight), layer.weight_exponent)
        yield from summed.reshape(layer.members, -1, batch, layer.neurons).swapaxes(0, 1)


def _exact(weight: NDArray[np.int16], largest: int = 1) -> Floats:
    """Weights `(members, inputs, neurons)` in the smallest float type in which every partial sum is exact.

    `largest` is the largest number that one weight may be multiplied by.
    """
    largest_sum = int(np.abs(weight.astype(np.int64)).sum(axis=2).max()) * largest
    dtype = np.float32 if largest_sum < 2**24 else np.float64
    return np.ascontiguousarray(weight.astype(dtype).swapaxes(1, 2))


def _shift(total: Floats, exponent: int) -> Floats:
    """`total << exponent`, or the arithmetic `total >> −exponent`, which rounds down."""
    if exponent == 0:
        return total
    scaled = total * total.dtype.type(2.0**exponent)
    return scaled if exponent > 0 else np.floor(scaled)


def _check_weights(name: str, weight: Integers) -> None:
    require(
        weight.ndim == 3 and weight.dtype == np.int16 and weight.size > 0,
        f"{name} must be int16 of the shape (members, neurons, inputs), but is {weight.dtype} of {weight.shape}.",
    )
    low, high = WEIGHT_RANGE
    require(
        int(weight.min()) >= low and int(weight.max()) <= high and not bool((weight & 1).any()),
        f"{name} must hold even values in {low} … {high}, as synapses of mixed sign do on Loihi.",
    )
