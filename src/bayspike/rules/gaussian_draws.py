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
from bayspike.spiking.layers import Layer


class Scratch(NamedTuple):
    """Memory to work in; what it holds between two steps means nothing."""

    block: Tensor  # as much as one block of a weight matrix
    squares: Tensor | None = None  # of the traces: a drive leaves them for the update
    compiled: tuple[Tensor, Tensor] | None = None  # the same for compiled loops: gradient (noughts) and variances


class SampledWeights(NamedTuple):
    """Weights drawn at the synapses, `(samples, neurons, pre)`; the batch holds one repetition per sample."""

    matrices: Tensor

    def __call__(self, pre: Tensor) -> Tensor:
        samples, neurons, fan_in = self.matrices.shape
        repeated = pre.view(samples, -1, fan_in)
        return torch.bmm(repeated, self.matrices.transpose(1, 2)).view(-1, neurons)

    def of_maps(self, layer: Layer, traces: Tensor) -> Tensor:
        """One kernel for all places and all examples of a repetition."""
        parts = traces.chunk(len(self.matrices))
        done = [layer.product(part, matrix) for part, matrix in zip(parts, self.matrices, strict=True)]
        return done[0] if len(done) == 1 else torch.cat(done)


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

    def of_maps(self, layer: Layer, traces: Tensor) -> Tensor:
        """The same for a convolution, which is faster than its rows.

        Every place has a draw of its own: right for each, and independent between them, though they share a kernel.
        """
        potential = layer.product(traces, self.mean)
        inverse = self.precision.reciprocal()
        variance = layer.product(traces.square(), inverse.add_(self.rounding) if self.rounding > 0 else inverse)
        noise = draws.normal(potential.shape, potential, self.generator)
        return potential.addcmul_(variance.clamp_min_(0).sqrt_(), noise)
