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
from bayspike.predict.predictors import Committee, Ensemble, Point, Predictor
from bayspike.spiking.network import Network

PREDICTORS = ("committee", "ensemble", "mean", "point", "committee-8bit", "committee-packed", "point-8bit")


def make_predictor(
    name: str, network: Network, posteriors: Sequence[Posterior], members: int, generator: torch.Generator
) -> Predictor:
    """A predictor by name. A generator in the same state draws the same committee, rounded or not."""
    if name == "committee":
        return Committee.draw(network, posteriors, members, generator=generator)
    if name == "committee-8bit":
        return Committee.draw(network, posteriors, members, generator=generator, grid="fit")
    if name == "committee-packed":
        return Committee.draw(network, [unpack(each) for each in pack_all(posteriors)], members, generator=generator)
    if name == "ensemble":
        return Ensemble(network, posteriors, members)
    if name == "point-8bit":
        return Committee.draw(network, posteriors, 1, generator=generator, grid="fit")
    if name in ("mean", "point"):
        return Point.of(network, posteriors, "mean" if name == "mean" else "mode")
    raise UserError(f"There is no predictor {name!r}: choose from {', '.join(PREDICTORS)}.")
