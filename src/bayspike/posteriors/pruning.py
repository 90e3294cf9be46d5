"""Cutting synapses that a network can do without: sparse weights save energy and memory on a chip.

Weights are cut in the order of their size |m|, or of their signal-to-noise ratio |m|·√p, how many standard deviations
they lie from nought (Graves 2011; Blundell et al. 2015). Size is the default: it was measured to keep more accuracy,
since much evidence makes a small weight certain without making it useful.
"""

import math
from collections.abc import Sequence
from typing import Literal

import torch

from bayspike.errors import UserError, require, require_range
from bayspike.posteriors.distributions import Gaussian, Point, Posterior

Criterion = Literal["signal", "size"]


def prune(posteriors: Sequence[Posterior], share: float, by: Criterion = "size") -> list[Posterior]:
    """The posteriors of all layers without `share` of each layer's synapses; a cut one is exactly 0 in every draw."""
    require_range("the share to prune", share, 0, 1, high_open=True)
    require(by in ("signal", "size"), f"synapses are cut by signal or by size, but not by {by!r}.")
    return [_prune(each, share, by) for each in posteriors]


def _prune(posterior: Posterior, share: float, by: Criterion) -> Posterior:
    if not isinstance(posterior, Gaussian | Point):
        raise UserError("synapses of ±1 have no value for none: only real-valued ones can be pruned.")
    mean = posterior.mean()
    score = mean.abs()
    if by == "signal":
        if isinstance(posterior, Point):
            raise UserError("a point has no noise to hold its signal against: prune it by size.")
        score = score * posterior.precision.sqrt()
    cut = int(share * mean.numel())
    gone = torch.zeros(mean.numel(), dtype=torch.bool, device=mean.device)
    gone[score.flatten().argsort(stable=True)[:cut]] = True
    kept = ~gone.view_as(mean)
    if isinstance(posterior, Point):
        return Point(mean * kept)
    return Gaussian(mean * kept, torch.where(kept, posterior.precision, math.inf))
