"""A Gaussian posterior at rest in two bytes a synapse: 8 bits of mean and 8 bits of log-precision.

The paper's claim of a five-fold saving over TACOS rests on 8-bit storage. The mean lies on the chip's grid; the
precision spans orders of magnitude, so its logarithm is what is cut into 256 equal steps: the error of a standard
deviation is then relative, at most a quarter of a step of log p.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError, require
from bayspike.posteriors.distributions import Gaussian, Posterior
from bayspike.posteriors.grid import grid_for

LEVELS = 255


class PackedGaussian(NamedTuple):
    """`mean` int8 in units of `mean_step`; log p = `low` + `log_step`·`log_precision`, uint8."""

    mean: Tensor
    log_precision: Tensor
    mean_step: float
    low: float
    log_step: float

    @property
    def bytes(self) -> int:
        return self.mean.nbytes + self.log_precision.nbytes


def pack_all(posteriors: Sequence[Posterior]) -> list[PackedGaussian]:
    """Every layer packed; refused unless all are Gaussian."""
    packed = []
    for index, each in enumerate(posteriors):
        if not isinstance(each, Gaussian):
            kind = type(each).__name__
            raise UserError(f"only Gaussian posteriors can be packed, but that of layer {index} is a {kind}.")
        packed.append(pack(each))
    return packed


def pack(posterior: Gaussian) -> PackedGaussian:
    """Round a posterior to two bytes a synapse."""
    usable = torch.isfinite(posterior.centre).all() and torch.isfinite(posterior.precision).all()
    require(
        bool(usable) and bool((posterior.precision > 0).all()),
        "only a posterior of finite means and positive, finite precisions can be packed.",
    )
    grid = grid_for(posterior.centre)
    codes = torch.round(grid.round(posterior.centre) / grid.step).to(torch.int8)
    logs = posterior.precision.log()
    low, high = float(logs.min()), float(logs.max())
    step = (high - low) / LEVELS
    levels = torch.round((logs - low) / step) if step > 0 else torch.zeros_like(logs)
    return PackedGaussian(codes, levels.clamp(0, LEVELS).to(torch.uint8), grid.step, low, step)


def unpack(packed: PackedGaussian, dtype: torch.dtype = torch.float32) -> Gaussian:
    """The posterior that the two bytes stand for."""
    logs = packed.log_precision.to(dtype) * packed.log_step + packed.low
    return Gaussian(packed.mean.to(dtype) * packed.mean_step, logs.exp())
