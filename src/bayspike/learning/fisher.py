"""The diagonal Fisher information of a task (paper, below eq. ewc).

    F = Σ_examples ( ∇_w Σ_t L_{x^t, y_t}(w) )²

The gradient of one example over all time-steps is Σ_t delta_t ⊗ pre_t, a product of a `(neurons, time)` and a
`(time, pre)` matrix; examples are taken a few at a time, so memory stays bounded.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.spiking.denormals import flushed_denormals
from bayspike.spiking.local import LocalGradient, local_gradient, one_hot_targets
from bayspike.spiking.network import Network, Weights, step

CHUNK_BYTES = 64 * 2**20  # of per-example gradients held at once


@flushed_denormals()  # the squares of small gradients are the smallest numbers of all
def diagonal_fisher(
    network: Network, weights: Sequence[Tensor], samples: Samples, generator: torch.Generator
) -> list[Tensor]:
    """Sum over the samples of the squared per-example gradients, at fixed weights; one `(neurons, pre)` per layer."""
    one = sum(matrix.numel() * matrix.element_size() for matrix in weights)
    chunk = max(1, min(64, CHUNK_BYTES // one))
    fisher = [torch.zeros_like(matrix) for matrix in weights]
    for indices in torch.arange(len(samples)).split(chunk):
        spikes = samples.spikes(indices, generator)
        for total, gradients in zip(
            fisher, example_gradients(network, weights, spikes, samples.labels[indices]), strict=True
        ):
            total += gradients.square_().sum(dim=0)
    return fisher


def example_gradients(network: Network, weights: Sequence[Tensor], spikes: Tensor, labels: Tensor) -> list[Tensor]:
    """Every example's gradient summed over time, `(batch, neurons, pre)` for each layer."""
    readout = network.layers[-1].readout
    targets = one_hot_targets(labels, network.classes, readout.dtype).to(readout.device)
    drives = [Weights(matrix) for matrix in weights]
    states = list(network.start(spikes.shape[1]))
    factors: list[list[tuple[Tensor, Tensor]]] = [[] for _ in network.layers]
    sums: dict[int, Tensor] = {}
    for spikes_in in spikes.to(readout.device):
        arriving = spikes_in.to(readout.dtype)
        for index, layer in enumerate(network.layers):
            done = step(layer, states[index], arriving, drives[index])
            states[index] = done.state
            gradient, _ = local_gradient(layer, done, drives[index], arriving, targets)
            if layer.places == 1:
                factors[index].append((gradient.delta, gradient.pre))
            else:  # the patches of all steps would take too much room
                sums[index] = _add_examples(sums.get(index), gradient)
            arriving = done.spikes
    return [
        sums[index]
        if index in sums
        else torch.bmm(torch.stack([delta for delta, _ in steps], dim=2), torch.stack([pre for _, pre in steps], dim=1))
        for index, steps in enumerate(factors)
    ]


def _add_examples(total: Tensor | None, gradient: LocalGradient) -> Tensor:
    """Every example's gradient at this step, `(batch, neurons, pre)`, added to those before."""
    delta = gradient.delta.view(gradient.batch, gradient.places, -1).transpose(1, 2)
    pre = gradient.pre.view(gradient.batch, gradient.places, -1)
    return torch.bmm(delta, pre) if total is None else total.baddbmm_(delta, pre)
