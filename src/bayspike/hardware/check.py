"""After rounding: does the network still work? Warnings that name the layer, the symptom and the knob to turn."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bayspike.hardware.cuba import CubaNetwork, to_network
from bayspike.hardware.fixed_point import LayerRun, probabilities
from bayspike.hardware.rounding import Rounded
from bayspike.metrics import accuracy, ece
from bayspike.predict.predictors import Committee
from bayspike.spiking.network import unroll

MOSTLY = 0.9  # a share of neurons or of time-steps that is too many
RATE_CHANGE = 0.5  # relative change of a layer's rate against float weights
ACCUMULATOR_LIMIT = 2**15 - 1  # Lava declares the synaptic accumulator as 16 bits


def warnings(
    rounded: Rounded,
    runs: Sequence[LayerRun],
    float_rates: Sequence[float] | None = None,
    kept: Sequence[NDArray[np.bool_]] | None = None,
) -> list[str]:
    """What looks wrong in `runs` of the rounded network; `float_rates` are those of each layer before rounding, `kept`
    says which synapses of each layer are there."""
    found = []
    for index, (layer, done) in enumerate(zip(rounded.network.layers, runs, strict=True)):
        where = f"layer {index}"
        rates = done.spikes.mean(axis=(1, 2))  # (members, neurons)
        rate = float(rates.mean())
        states = done.spikes.size
        if not done.spikes.any():
            found.append(f"{where} is silent; lower its threshold or train with larger weights on the grid.")
        elif float((rates == 0).mean()) > MOSTLY:
            found.append(
                f"{where}: {(rates == 0).mean():.0%} of the neurons are silent; lower its threshold or make it smaller."
            )
        if float((rates > MOSTLY).mean()) > MOSTLY:
            found.append(f"{where} spikes at nearly every step; raise its threshold or lower the weights.")
        if float_rates is not None and abs(rate - float_rates[index]) > RATE_CHANGE * float_rates[index]:
            found.append(
                f"{where} spikes at a rate of {rate:.3f} a step, but at {float_rates[index]:.3f} before rounding; "
                f"train with weights on the grid, or clip the few largest weights, which set its scale."
            )
        if done.wraps:
            found.append(
                f"{where}: the current wrapped around 24 bits {done.wraps} times; lower synapse_decay or the weights."
            )
        if done.saturations > 0.001 * states:
            found.append(
                f"{where}: the voltage was clipped at 24 bits in {done.saturations / states:.1%} of the steps; "
                f"lower membrane_decay or the inhibition."
            )
        if done.largest_input > ACCUMULATOR_LIMIT:
            found.append(
                f"{where}: the input of a step reached {done.largest_input}, beyond 16 bits; "
                f"use a lower weight exponent or fewer inputs at once."
            )
        there = layer.weight if kept is None else layer.weight[:, kept[index][:, : layer.weight.shape[-1]]]
        zeros = float((there == 0).mean()) if there.size else 0.0
        if zeros > MOSTLY:
            found.append(
                f"{where}: rounding made {zeros:.0%} of the weights zero; clip the few largest weights, "
                f"which set its scale."
            )
    return found


@dataclass(frozen=True)
class Precision:
    """A committee before and after rounding, on the same spikes."""

    examples: int
    same_decisions: float
    float_accuracy: float | None
    fixed_accuracy: float | None
    float_ece: float | None
    fixed_ece: float | None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def float_run(network: CubaNetwork, spikes: NDArray[np.uint8]) -> list[NDArray[np.uint8]]:
    """Spikes `(members, time, batch, neurons)` of every layer with float weights, by the library's own network."""
    core, weights = to_network(network, torch.float64)
    given = torch.from_numpy(np.ascontiguousarray(spikes)).double()
    members = [unroll(core, given, [w[m] for w in weights]) for m in range(network.members)]
    return [np.stack([m[i].numpy().astype(np.uint8) for m in members]) for i in range(len(core.layers))]


def compare_precision(
    network: CubaNetwork, rounded: Rounded, spikes: NDArray[np.uint8], labels: NDArray[np.integer] | None = None
) -> Precision:
    """Decisions, accuracy and calibration of the committee in float and in the chip's integers."""
    core, weights = to_network(network)
    committee = Committee(core, weights)
    exact = committee.predict(torch.from_numpy(np.ascontiguousarray(spikes))).probabilities[-1].double().numpy()
    integer = probabilities(rounded.network, spikes).mean(axis=0)
    return precision(exact, integer, labels)


def precision(
    exact: NDArray[np.float64], integer: NDArray[np.float64], labels: NDArray[np.integer] | None
) -> Precision:
    """The same from class probabilities `(batch, classes)`."""
    same = float((exact.argmax(axis=1) == integer.argmax(axis=1)).mean())
    if labels is None:
        return Precision(len(exact), same, None, None, None, None)
    truth = torch.from_numpy(np.asarray(labels, np.int64))
    before, after = torch.from_numpy(exact), torch.from_numpy(integer)
    return Precision(
        examples=len(exact),
        same_decisions=same,
        float_accuracy=float(accuracy(before, truth)),
        fixed_accuracy=float(accuracy(after, truth)),
        float_ece=float(ece(before, truth)),
        fixed_ece=float(ece(after, truth)),
    )
