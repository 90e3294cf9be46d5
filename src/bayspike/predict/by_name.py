"""Predictors by name.

`committee` (N_S weights drawn once, the paper's default), `ensemble` (drawn for every input), `mean` (the centre
of the posterior) and `point` (its mode; all there is of a frequentist). `committee-8bit` and `point-8bit` are the same
weights rounded to the chip's 256 levels; for binary synapses these are the weights themselves. `committee-packed` is
drawn from the posterior as two bytes a synapse would hold it.
"""

from collections.abc import Sequence

import torch

from bayspike.errors import UserError
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
) -> Predictor:
    """A predictor by name. A generator in the same state draws the same committee, rounded or not."""
    if name == "committee":
        return Committee.draw(network, posteriors, members, generator=generator, gather=gather)
    if name == "committee-8bit":
        return Committee.draw(network, posteriors, members, generator=generator, grid="fit", gather=gather)
    if name == "committee-packed":
        packed = [unpack(each) for each in pack_all(posteriors)]
        return Committee.draw(network, packed, members, generator=generator, gather=gather)
    if name == "ensemble":
        return Ensemble(network, posteriors, members, gather=gather)
    if name == "point-8bit":
        return Committee.draw(network, posteriors, 1, generator=generator, grid="fit", gather=gather)
    if name in ("mean", "point"):
        return Point.of(network, posteriors, "mean" if name == "mean" else "mode", gather)
    raise UserError(f"There is no predictor {name!r}: choose from {', '.join(PREDICTORS)}.")
