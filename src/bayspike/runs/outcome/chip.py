"""What the chip would make of a finished learner: float beside Loihi's integers, and the energy that it would take."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.errors import UserError
from bayspike.hardware.check import compare_precision
from bayspike.hardware.cuba import from_network
from bayspike.hardware.rounding import to_fixed_point
from bayspike.metrics.energy import EnergyOverTime, Population, energy_over_time
from bayspike.posteriors.distributions import Posterior
from bayspike.predict.predictors import Committee, Point
from bayspike.seeds import generator_for
from bayspike.spiking.convolution import fan_out_from_below
from bayspike.spiking.network import Network, unroll

CHIP_EXAMPLES = 200
CHIP_WORK = 2e10  # synapses × time-steps × examples × members: a larger network is checked on fewer examples


def on_chip(network: Network, predictor: Committee | Point, samples: Samples, seed: int) -> dict[str, Any]:
    """Accuracy and calibration in float and in integers on a few test examples, or the reason why there are none."""
    weights = [matrix if matrix.ndim == 3 else matrix.unsqueeze(0) for matrix in predictor.weights]
    synapses = sum(matrix.numel() for matrix in weights)  # of all members
    count = min(len(samples), CHIP_EXAMPLES, max(1, int(CHIP_WORK / (synapses * samples.time))))
    chosen = torch.randperm(len(samples), generator=generator_for(seed, "chip"))[:count]
    try:
        cuba = from_network(network, weights)
        rounded = to_fixed_point(cuba)
    except UserError as refusal:
        return {"refused": str(refusal)}
    spikes = samples.spikes(chosen, generator_for(seed, "chip spikes")).numpy()
    return compare_precision(cuba, rounded, spikes, samples.labels[chosen].numpy()).as_json()


def energy_spent(network: Network, learnt: Sequence[Posterior], spikes: Tensor, members: int) -> EnergyOverTime:
    """What deciding would cost at each step of `spikes` `(time, batch, inputs)`, by the most probable weights.

    The read-out is the host's; synapses of a layer onto itself are counted with those onward.
    """
    spikes = spikes.to(network.layers[0].readout)
    emitted = unroll(network, spikes, Point.of(network, learnt).weights)
    fan_outs = [fan_out_from_below(layer) for layer in network.layers]
    own = [layer.neurons if layer.recurrent else 0 for layer in network.layers]
    populations = [Population(spikes, fan_outs[0], updated=False)]
    for index, block in enumerate(emitted):
        onward = fan_outs[index + 1] if index + 1 < len(fan_outs) else 0
        populations.append(Population(block, onward + own[index]))
    return energy_over_time(populations, members=members)
