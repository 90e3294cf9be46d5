"""Weights on the chip's 8-bit grid (paper, Sec. "Implementation": Loihi-compatible fixed-point precision).

With mixed sign Loihi holds even integers −256 … 254 times a scale of the layer: 256 levels, `step` apart. In training
the forward pass uses the rounded weight and the update goes to the unrounded one (straight-through).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bayspike.errors import require_range
from bayspike.posteriors import draws

LEVELS_BELOW, LEVELS_ABOVE = 128, 127


@dataclass(frozen=True)
class Grid:
    """256 equidistant weights, from −128·step to 127·step."""

    step: float

    def __post_init__(self) -> None:
        require_range("step", self.step, 0, low_open=True)

    def round(self, weights: Tensor) -> Tensor:
        """The nearest weights on the grid; those beyond its ends are clipped."""
        levels = torch.round(weights / self.step).clamp_(-LEVELS_BELOW, LEVELS_ABOVE)
        return levels.mul_(self.step)

    def dithered(self, weights: Tensor, generator: torch.Generator) -> Tensor:
        """Round up or down at random so that the expectation is the weight itself.

        Noise finer than half a step would be lost by rounding to the nearest; dithering keeps it alive.
        """
        noise = draws.uniform(weights.shape, weights, generator)
        levels = torch.floor((weights / self.step).add_(noise)).clamp_(-LEVELS_BELOW, LEVELS_ABOVE)
        return levels.mul_(self.step)


def grid_for(weights: Tensor) -> Grid:
    """The finest grid that holds these weights without clipping."""
    largest = float(weights.abs().max())
    return Grid(largest / LEVELS_ABOVE if largest > 0 else 1.0)
