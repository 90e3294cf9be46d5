"""Spiking neurons written the plain way, in numpy and double precision, for the tests to compare with.

Nothing here is shared with the package: currents and membranes are separate recursions (the package filters the
spikes first), refractory terms and traces are explicit sums over the past.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Constants:
    synapse_decay: float = 0.5
    membrane_decay: float = 0.8
    threshold: float = 1.0
    reset: str = "zero"
    refractory_decay: float = 0.7
    refractory_height: float = 1.0
    recurrent: bool = False

    @property
    def gain(self) -> float:
        return (1 - self.synapse_decay) * (1 - self.membrane_decay)


@dataclass(frozen=True)
class Recording:
    """One layer over time: traces `(time, batch, pre)`, potentials before reset and spikes `(time, batch, neurons)`."""

    pre: Array
    potential: Array
    spikes: Array


def double_exponential(time: int, synapse_decay: float, membrane_decay: float) -> Array:
    """α_1 … α_time of two leaky integrators in a row, as the sum it is."""
    gain = (1 - synapse_decay) * (1 - membrane_decay)
    return np.array(
        [
            gain * sum(synapse_decay**k * membrane_decay ** (delay - 1 - k) for k in range(delay))
            for delay in range(1, time + 1)
        ]
    )


def convolve(spikes: Array, kernel: Array) -> Array:
    """(α ∗ s)_t = Σ_{δ>0} α_δ s_{t−δ} along the first axis."""
    result = np.zeros(spikes.shape)
    for t in range(len(spikes)):
        for delay in range(1, t + 1):
            result[t] += kernel[delay - 1] * spikes[t - delay]
    return result


def run_layer(weights: Array, spikes: Array, c: Constants) -> Recording:
    """A layer of current-based leaky integrate-and-fire neurons; spikes `(time, batch, inputs)`."""
    time, batch, _ = spikes.shape
    neurons, fan_in = weights.shape
    current, membrane = np.zeros((batch, neurons)), np.zeros((batch, neurons))
    arriving = np.zeros((batch, fan_in))
    inputs, potentials, emitted = [], [], []
    for t in range(time):
        current = c.synapse_decay * current + c.gain * arriving @ weights.T
        membrane = c.membrane_decay * membrane + current
        potential = membrane.copy()
        if c.reset == "refractory":
            for delay in range(1, t + 1):
                height = c.refractory_height * c.threshold * c.refractory_decay ** (delay - 1)
                potential -= height * emitted[t - delay]
        fired = potential > c.threshold
        if c.reset == "zero":
            membrane = np.where(fired, 0.0, membrane)
        elif c.reset == "subtract":
            membrane = np.where(fired, membrane - c.threshold, membrane)
        emitted.append(fired.astype(np.float64))
        potentials.append(potential)
        arriving = np.concatenate([spikes[t], emitted[t]], axis=1) if c.recurrent else spikes[t]
        inputs.append(arriving)
    traces = convolve(np.stack(inputs), double_exponential(time, c.synapse_decay, c.membrane_decay))
    return Recording(traces, np.stack(potentials), np.stack(emitted))


def run_network(weights: list[Array], spikes: Array, c: Constants) -> list[Recording]:
    """Layers in a row, each fed by the spikes of the one below."""
    recordings = []
    for matrix in weights:
        recordings.append(run_layer(matrix, spikes, c))
        spikes = recordings[-1].spikes
    return recordings
