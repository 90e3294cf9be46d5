"""A layer's step in time as compiled loops (numba): traces, and from potentials to the gradient's factors.

What `layers.step` and `local.local_gradient` do in some twenty passes over arrays of the size of a mini-batch is one
pass here, an example at a time, which stays in the nearest cache. Dense layers of exponential filters in single
precision; the numbers are those of the plain form within rounding.
"""

from collections.abc import Callable
from importlib.util import find_spec
from types import FunctionType
from typing import Any, NamedTuple

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import pad

from bayspike.spiking.filters import DoubleExponential
from bayspike.spiking.layers import Layer
from bayspike.spiking.surrogates import SURROGATES

RESETS = {"zero": 0, "subtract": 1, "refractory": 2}
KINDS = {name: number for number, name in enumerate(SURROGATES)}
TOGETHER = 4  # rows of the read-out


Loop = Callable[..., Any]


class Forms(NamedTuple):
    """One loop compiled twice: for one thread, and with what is a `prange` shared by several."""

    alone: Loop
    shared: Loop

    def by(self, threads: int) -> Loop:
        return self.alone if threads == 1 else self.shared


def jitted(loop: Loop, **options: Any) -> Loop:
    """Compile a loop when it is first called; what was compiled is kept on the disk for the next process."""
    options |= {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
    try:
        made: Loop = numba.njit(cache=True, **options)(loop)
    except RuntimeError:  # there is no place where it could be kept
        made = numba.njit(**options)(loop)
    return made


def compiled(loop: Loop) -> Forms:
    """Compile a loop in both forms."""
    twin = FunctionType(loop.__code__, loop.__globals__, f"{loop.__name__}_shared")  # kept under a name of its own
    twin.__module__, twin.__qualname__ = loop.__module__, twin.__name__
    return Forms(jitted(loop), jitted(twin, parallel=True))


def threads_to_share() -> int:
    """As many as torch has, where the compiler can use them from any thread of Python."""
    threads = torch.get_num_threads()
    if threads == 1 or find_spec("numba.np.ufunc.omppool") is None:
        return 1
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    return threads


def has_compiled_form(layer: Layer) -> bool:
    """Whether a layer is of the kind that the loops know."""
    plain = type(layer) is Layer and layer.inlet is None and not layer.recurrent
    single = layer.readout.dtype == torch.float32 and layer.readout.device.type == "cpu"
    return plain and single and isinstance(layer.neuron.filter, DoubleExponential)


def constants_of(layer: Layer) -> tuple[NDArray[np.float32], int, int]:
    """Of a layer's neurons, as `neuron_step` takes them: the numbers, the kind of reset and that of surrogate."""
    neuron = layer.neuron
    assert isinstance(neuron.filter, DoubleExponential)
    decay = neuron.refractory_decay if neuron.reset == "refractory" else neuron.filter.membrane_decay
    height, slope = neuron.refractory_height * neuron.threshold, neuron.slope / neuron.threshold
    numbers = np.array([neuron.threshold, decay, height, slope], dtype=np.float32)
    return numbers, RESETS[neuron.reset], KINDS[neuron.surrogate]


def readout_of(layer: Layer) -> NDArray[np.float32]:
    """B, with rows of noughts so that it can be read several rows at a time."""
    padded: NDArray[np.float32] = pad(layer.readout, (0, 0, 0, -len(layer.readout) % TOGETHER)).contiguous().numpy()
    return padded


@compiled
def filter_step(spikes, hidden, trace, synapse, membrane, next_trace, squares):  # type: ignore[no-untyped-def]
    """Two leaky averages in a row (`filters.DoubleExponential.step`), and the squares of the new traces."""
    one = np.float32(1)
    for b in numba.prange(spikes.shape[0]):
        arriving, inner, old, new, square = spikes[b], hidden[b], trace[b], next_trace[b], squares[b]
        for j in range(len(arriving)):
            inner[j] = (one - synapse) * np.float32(arriving[j]) + synapse * inner[j]
            new[j] = (one - membrane) * inner[j] + membrane * old[j]
        for j in range(len(arriving)):
            square[j] = new[j] * new[j]


@numba.njit(nogil=True, inline="always", error_model="numpy")
def exponential(x):  # type: ignore[no-untyped-def]
    """eˣ to the last bit or so without a call, so that it can be done for many numbers at once (as Cephes does)."""
    x = min(max(x, np.float32(-87.0)), np.float32(88.0))
    whole = np.floor(x * np.float32(1.44269504) + np.float32(0.5))
    rest = (x - whole * np.float32(0.693359375)) + whole * np.float32(2.12194440e-4)
    y = np.float32(1.9875691500e-4)
    y = y * rest + np.float32(1.3981999507e-3)
    y = y * rest + np.float32(8.3334519073e-3)
    y = y * rest + np.float32(4.1665795894e-2)
    y = y * rest + np.float32(1.6666665459e-1)
    y = y * rest + np.float32(5.0000001201e-1)
    y = y * rest * rest + rest + np.float32(1)
    return y * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)


@numba.njit(nogil=True, inline="always", error_model="numpy")
def _slopes(u, threshold, kind, slope):  # type: ignore[no-untyped-def]
    """Potentials to post-synaptic factors, in place: the surrogates of `spiking.surrogates`, in their order."""
    one, half, nought = np.float32(1), np.float32(0.5), np.float32(0)
    if kind == 0:
        for i in range(len(u)):
            small = exponential(-slope * abs(u[i] - threshold))
            u[i] = slope * small / ((one + small) * (one + small))
    elif kind == 1:
        for i in range(len(u)):
            far = one + slope * abs(u[i] - threshold)
            u[i] = half * slope / (far * far)
    elif kind == 2:
        for i in range(len(u)):
            u[i] = slope * max(one - slope * abs(u[i] - threshold), nought)
    else:
        for i in range(len(u)):
            u[i] = slope if slope * abs(u[i] - threshold) <= half else nought


@compiled
def neuron_step(  # type: ignore[no-untyped-def]
    potential, variance, noise, rounding, refractory, numbers, reset, kind, readout, targets, evidence,
    emitted, probabilities, delta, squared, parts,
):  # fmt: skip
    """From drawn potentials to spikes, and from the error of the read-out to delta and delta² `(batch, neurons)`.

    Written: `refractory` of the next step, `emitted`, `probabilities` `(batch, classes)`, `delta` and `squared`, which
    is weighed by `evidence` `(batch, 1)`. `rounding` is what the variances of each example have on top. Returns how
    many neurons fired.
    """
    threshold, decay, height, slope = numbers[0], numbers[1], numbers[2], numbers[3]
    batch, neurons = potential.shape
    classes, total = targets.shape[1], 0
    for part in numba.prange(parts):  # of the examples
        u, fired = np.empty(neurons, np.float32), np.empty(neurons + 1, np.uint32)
        values = np.zeros(len(readout), np.float32)  # logits, exponentials, errors of the classes
        for b in range(batch * part // parts, batch * (part + 1) // parts):
            # few arrays at a time, of one example, which stays in the nearest cache: see `rules.gaussian_compiled`
            mean, spread, draw, own, out = potential[b], variance[b], noise[b], refractory[b], emitted[b]
            extra = rounding[b]
            for i in range(neurons):
                u[i] = mean[i] + np.sqrt(spread[i] + extra) * draw[i] - own[i]
            for i in range(neurons):
                spike = u[i] > threshold
                out[i] = spike
                if reset == 0:
                    own[i] = decay * (own[i] + (u[i] if spike else np.float32(0)))
                elif reset == 1:
                    own[i] = decay * (own[i] + (threshold if spike else np.float32(0)))
                else:
                    own[i] = decay * own[i] + (height if spike else np.float32(0))
            count = 0
            for i in range(neurons):  # no branch: each is written, those that fired stay
                fired[count] = i
                count += out[i]
            total += count
            values[:] = 0
            for each in range(count):
                for c in range(classes):
                    values[c] += readout[c, fired[each]]
            largest = values[0]
            for c in range(1, classes):
                largest = max(largest, values[c])
            whole = np.float32(0)
            for c in range(classes):
                values[c] = exponential(values[c] - largest)
                whole += values[c]
            for c in range(classes):
                probabilities[b, c] = values[c] / whole
                values[c] = probabilities[b, c] - targets[b, c]
            errors, squares, weight = delta[b], squared[b], evidence[b, 0]
            errors[:] = 0
            for c in range(0, len(readout), TOGETHER):
                first, second, third, fourth = readout[c], readout[c + 1], readout[c + 2], readout[c + 3]
                v, w, x, y = values[c], values[c + 1], values[c + 2], values[c + 3]
                for i in range(neurons):
                    errors[i] += v * first[i] + w * second[i] + x * third[i] + y * fourth[i]
            _slopes(u, threshold, kind, slope)
            for i in range(neurons):
                errors[i] *= u[i]
                squares[i] = weight * errors[i] * errors[i]
    return total
