"""From trained weights to the chip's integers: one scale for each layer, shared by all members.

A layer's dynamics do not change if weights and threshold are multiplied by one number, so the scale S is
free: weights become even integers 2·round(w·S/2) in −254 … 254, the threshold round(θ·S·2^e). The largest weight of the
layer takes the whole 8 bits. What is left to choose is the exponent e, by which the chip shifts the sum of
the weights: it moves the threshold to where it is at least 2⁸ (rounding it costs less than 0.2 %) and at
most 2¹⁴ (the voltage can go eight thresholds up or down before it saturates at 24 bits). −256 is left
unused, since a matrix without positive values that holds it is read differently by Lava.

A network trained on a grid (`bayspike.posteriors.grid`) passes the step of that grid, and its weights arrive
unrounded.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayspike.errors import require, require_range
from bayspike.hardware.cuba import CubaLayer, CubaNetwork
from bayspike.hardware.fixed_point import (
    DECAY_UNITY,
    EXPONENT_RANGE,
    WEIGHT_RANGE,
    FixedPointLayer,
    FixedPointNetwork,
)

LARGEST_WEIGHT = 254
THRESHOLD_WINDOW = (2**8, 2**14)
WIDEST_THRESHOLD = 2**16  # without an exponent: two thresholds of headroom


@dataclass(frozen=True)
class Rounded:
    """A fixed-point network and how it came about: float weight ≈ integer / scale."""

    network: FixedPointNetwork
    scales: tuple[float, ...]  # of each layer; in units of weight × gain
    weight_errors: tuple[float, ...]  # root mean square rounding error over that of the weights


def to_fixed_point(network: CubaNetwork, *, use_exponent: bool = True, steps: Sequence[float] | None = None) -> Rounded:
    """Round a committee to the chip's integers.

    `use_exponent=False` keeps the weight exponent at 0, for formats that cannot carry one (netx).
    `steps` gives for each layer the distance of neighbouring weights on the grid it was trained on, in units of
    weight × gain; the scale then is 2 / step.
    """
    require(
        steps is None or len(steps) == len(network.layers),
        f"steps must be one number for each of the {len(network.layers)} layers.",
    )
    done = [
        _round_layer(layer, use_exponent, None if steps is None else steps[index], index)
        for index, layer in enumerate(network.layers)
    ]
    layers, scales, errors = zip(*done, strict=True)
    return Rounded(FixedPointNetwork(layers, network.readouts), scales, errors)


def _round_layer(
    layer: CubaLayer, use_exponent: bool, step: float | None, index: int
) -> tuple[FixedPointLayer, float, float]:
    parts = [layer.weight] if layer.recurrent is None else [layer.weight, layer.recurrent]
    largest = max(float(np.abs(part).max()) for part in parts)
    if step is None:
        peak = LARGEST_WEIGHT
        scale = peak / largest if largest > 0 else THRESHOLD_WINDOW[1] / layer.threshold
        if not use_exponent and layer.threshold * scale > WIDEST_THRESHOLD:
            # the largest weight stays on the grid, so that a layer of ±w loses nothing
            peak = max(2, 2 * math.floor(WIDEST_THRESHOLD / layer.threshold * largest / 2))
            scale = peak / largest
    else:
        require_range(f"the step of layer {index}", step, 0, low_open=True)
        scale = 2 / step
        require(
            largest * scale < 257,
            f"layer {index} has weights up to {largest:g} (gain included), which do not fit 8 bits with a step of "
            f"{step:g}; clip the weights in training or leave out the step.",
        )
    exponent = _exponent(layer.threshold * scale) if use_exponent else 0
    threshold = round(layer.threshold * scale * 2.0**exponent)
    require_range(f"the threshold mantissa of layer {index}", threshold, 1, 2**17 - 1)
    lowest = -LARGEST_WEIGHT if step is None else WEIGHT_RANGE[0]
    rounded = [_even(part * scale, lowest) for part in parts]
    error = math.sqrt(sum(float(((r / scale - p) ** 2).sum()) for r, p in zip(rounded, parts, strict=True)))
    size = math.sqrt(sum(float((part**2).sum()) for part in parts))
    fixed = FixedPointLayer(
        weight=rounded[0],
        threshold=threshold,
        current_decay=_decay(layer.synapse_decay, 1, DECAY_UNITY),
        voltage_decay=_decay(layer.membrane_decay, 0, DECAY_UNITY - 1),
        weight_exponent=exponent,
        recurrent=rounded[1] if len(rounded) > 1 else None,
        wiring=layer.wiring,
    )
    return fixed, scale, error / size if size > 0 else 0.0


def _exponent(threshold: float) -> int:
    """The shift that brings the threshold into its window, as far as the chip can shift."""
    low, high = THRESHOLD_WINDOW
    shift = 0
    if threshold > high:
        shift = -math.ceil(math.log2(threshold / high))
    elif threshold < low:
        shift = math.ceil(math.log2(low / threshold))
    return min(max(shift, EXPONENT_RANGE[0]), EXPONENT_RANGE[1])


def _even(weight: NDArray[np.float64], lowest: int) -> NDArray[np.int16]:
    rounded: NDArray[np.float64] = 2 * np.rint(weight / 2)
    return rounded.clip(lowest, LARGEST_WEIGHT).astype(np.int16)


def _decay(keep: float, low: int, high: int) -> int:
    """12-bit decay of a factor that is kept: 4096·(1 − keep)."""
    return min(max(round(DECAY_UNITY * (1 - keep)), low), high)
