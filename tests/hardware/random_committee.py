"""Random weights for the tests of this folder."""

import torch


def random_weights(network, members, seed, scale=16.0):
    """Weights `(members, neurons, pre)` for each layer, large enough that all layers spike."""
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(members, *layer.shape, generator=generator, dtype=torch.float64)
        * scale
        * layer.neuron.threshold
        / layer.pre**0.5
        for layer in network.layers
    ]
