"""Where the weights of a Gaussian posterior are drawn during training: at the synapses, or at the neurons.

Given its traces the potential of a neuron is exactly N(m·pre, (1/p)·pre²), and a local loss depends on the weights
through that potential alone; so a draw there has the same expectation as a draw of all weights, at far fewer numbers,
and can be made afresh for every example.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.posteriors import draws
from bayspike.rules.base import row_blocks

PART = 2**17  # traces that stay in the cache with their squares


class Scratch(NamedTuple):
    """Memory to work in; what it holds between two steps means nothing."""

    block: Tensor  # as much as one block of a weight matrix
    squares: Tensor | None = None  # of the traces: a drive leaves them for the update


class SampledWeights(NamedTuple):
    """Weights drawn at the synapses, `(samples, neurons, pre)`; the batch holds one repetition per sample."""

    matrices: Tensor

    def __call__(self, pre: Tensor) -> Tensor:
        samples, neurons, fan_in = self.matrices.shape
        repeated = pre.view(samples, -1, fan_in)
        return torch.bmm(repeated, self.matrices.transpose(1, 2)).view(-1, neurons)


@dataclass
class SampledPotential:
    """Potentials drawn at the neurons, independently for every example."""

    mean: Tensor
    precision: Tensor
    generator: torch.Generator
    rounding: float  # variance that the rounding of a weight adds
    scratch: Scratch

    def __call__(self, pre: Tensor) -> Tensor:
        squares = self.scratch.squares
        if squares is None or squares.shape != pre.shape:
            squares = torch.empty_like(pre)
            self.scratch = Scratch(self.scratch.block, squares)
        torch.mul(pre, pre, out=squares)
        potential = pre @ self.mean.T
        variance = torch.empty_like(potential)
        for precision, out in row_blocks(self.precision, variance.T):
            inverse = torch.reciprocal(precision, out=self.scratch.block[: len(precision)])
            torch.mm(squares, inverse.T, out=out.T)
        if self.rounding > 0:
            variance.add_(squares.sum(dim=1, keepdim=True), alpha=self.rounding)
        noise = draws.normal(potential.shape, potential, self.generator)
        return potential.addcmul_(variance.sqrt_(), noise)

    def of_rows(self, pre: Tensor) -> Tensor:
        """The same for the many rows of a convolution, a part at a time: all but the potential stays in the cache.

        Every place has a draw of its own: right for each, and independent between them, though they share a kernel.
        """
        few = max(16, PART // pre.shape[1])
        inverse = self.precision.reciprocal()
        potential = pre.new_empty(len(pre), len(self.mean))
        squares, spread = pre.new_empty(few, pre.shape[1]), pre.new_empty(few, len(self.mean))
        for rows, out in zip(pre.split(few), potential.split(few), strict=True):
            torch.mm(rows, self.mean.T, out=out)
            here = torch.mul(rows, rows, out=squares[: len(rows)])
            variance = torch.mm(here, inverse.T, out=spread[: len(rows)])
            if self.rounding > 0:
                variance.add_(here.sum(dim=1, keepdim=True), alpha=self.rounding)
            out.addcmul_(variance.sqrt_(), draws.normal(out.shape, out, self.generator))
        return potential
