"""Surrogate derivatives of the spike (paper, Sec. "Surrogate Gradient").

The Heaviside step has no useful derivative; each function here stands in for it. They take the distance
of the potential from the threshold and a slope, and return the *derivative* (the post-synaptic factor of
eq. loss-sg-der). Every one is the derivative of a smooth step that rises from 0 to 1.
"""

from collections.abc import Callable

from torch import Tensor

from bayspike.errors import UserError

Surrogate = Callable[[Tensor, float], Tensor]


def sigmoid(distance: Tensor, slope: float) -> Tensor:
    """σ'(x) = σ(x)(1 − σ(x)), the paper's example."""
    step = (distance * slope).sigmoid_()
    return step.addcmul_(step, step, value=-1).mul_(slope)


def fast_sigmoid(distance: Tensor, slope: float) -> Tensor:
    """Derivative of ½(1 + x/(1 + |x|)): algebraic tails that keep far-off neurons learning."""
    return (distance.abs().mul_(slope).add_(1)).pow_(-2).mul_(slope / 2)


def triangle(distance: Tensor, slope: float) -> Tensor:
    """A tent of half-width 1/slope: zero outside, so silent neurons cost nothing."""
    return (1 - distance.abs().mul_(slope)).clamp_(min=0).mul_(slope)


def boxcar(distance: Tensor, slope: float) -> Tensor:
    """Constant within 1/(2·slope) of the threshold, zero outside; cheap on a chip."""
    return (distance.abs() <= 0.5 / slope).to(distance.dtype).mul_(slope)


SURROGATES: dict[str, Surrogate] = {
    "sigmoid": sigmoid,
    "fast_sigmoid": fast_sigmoid,
    "triangle": triangle,
    "boxcar": boxcar,
}


def surrogate(name: str) -> Surrogate:
    """Look a surrogate up by name."""
    if name not in SURROGATES:
        raise UserError(f"surrogate must be one of {', '.join(SURROGATES)}, but is {name!r}.")
    return SURROGATES[name]
