"""Predictors by name.

`committee` (N_S weights drawn once, the paper's default), `ensemble` (drawn for every input), `mean` (the centre
of the posterior) and `point` (its mode; all there is of a frequentist). `committee-8bit` and `point-8bit` are the same
weights rounded to the chip's 256 levels; for binary synapses these are the weights themselves. `committee-packed` is
drawn from the posterior as two bytes a synapse would hold it.
"""

from collections.abc import Sequence
from functools import partial

import torch

from bayspike.errors import UserError
from bayspike.kernels import Kernels
from bayspike.posteriors.distributions import Posterior
from bayspike.posteriors.packed import pack_all, unpack
from bayspike.predict.gathering import Gather
from bayspike.predict.predictors import Committee, Ensemble, Point, Predictor
from bayspike.spiking.network import Network

PREDICTORS = ("committee", "ensemble", "mean", "point", "committee-8bit", "committee-packed", "point-8bit")


def make_predictor(
    name: str,
    network: Network,
    posteriors: Sequence[Posterior],
    members: int,
    generator: torch.Generator,
    gather: Gather = "mean",
    kernels: Kernels = "plain",
) -> Predictor:
    """A predictor by name. A generator in the same state draws the same committee, rounded or not."""
    draw = partial(Committee.draw, network, generator=generator, gather=gather, kernels=kernels)
    if name == "committee":
        return draw(posteriors, members)
    if name == "committee-8bit":
        return draw(posteriors, members, grid="fit")
    if name == "committee-packed":
        return draw([unpack(each) for each in pack_all(posteriors)], members)
    if name == "ensemble":
        return Ensemble(network, posteriors, members, gather=gather)
    if name == "point-8bit":
        return draw(posteriors, 1, grid="fit")
    if name in ("mean", "point"):
        return Point.of(network, posteriors, "mean" if name == "mean" else "mode", gather, kernels)
    raise UserError(f"There is no predictor {name!r}: choose from {', '.join(PREDICTORS)}.")
