"""The diagonal Fisher information against per-example autograd.

Autograd sees one example's whole loss, summed over all time-steps, at once; traces and refractory terms come from an
independent simulation and are constants to it. Its gradient is squared example by example and then summed (paper,
below eq. ewc).
"""

import pytest
import torch
from torch import Tensor
from torch.func import grad, vmap

from bayspike.data.base import SpikeSamples
from bayspike.data.encoders import pack
from bayspike.learning import fisher
from bayspike.learning.fisher import diagonal_fisher, example_gradients
from bayspike.spiking.network import Layer, Network, NetworkConfig, build
from bayspike.spiking.neurons import Reset
from srm_reference import Constants, run_network

F64 = torch.float64
TIME, EXAMPLES, INPUTS, CLASSES = 8, 9, 7, 3


def case(reset: Reset, recurrent: bool) -> tuple[Network, list[Tensor], Tensor, Tensor]:
    """A network of two layers, weights that make it busy, spikes `(time, examples, inputs)` and labels."""
    config = NetworkConfig(INPUTS, (6, 5), CLASSES, membrane_decay=0.8, reset=reset, recurrent=recurrent)
    network = build(config, F64)
    generator = torch.Generator().manual_seed(5)
    spikes = (torch.rand(TIME, EXAMPLES, INPUTS, generator=generator) < 0.5).to(F64)
    weights = [1.5 * torch.randn(layer.shape, generator=generator, dtype=F64) + 0.5 for layer in network.layers]
    return network, weights, spikes, torch.arange(EXAMPLES) % CLASSES


def by_autograd(
    network: Network, weights: list[Tensor], spikes: Tensor, labels: Tensor, reset: Reset, recurrent: bool
) -> list[Tensor]:
    """Each example's gradient of its loss over all time-steps, `(examples, neurons, pre)` for every layer."""
    recordings = run_network([w.numpy() for w in weights], spikes.numpy(), Constants(reset=reset, recurrent=recurrent))
    found = []
    for layer, matrix, recorded in zip(network.layers, weights, recordings, strict=True):
        pre, potential = torch.from_numpy(recorded.pre), torch.from_numpy(recorded.potential)

        def loss(w: Tensor, pre_n: Tensor, refractory_n: Tensor, label: Tensor, layer: Layer = layer) -> Tensor:
            distance = pre_n @ w.T - refractory_n - 1.0  # (time, neurons)
            smooth = torch.sigmoid(4.0 * distance)
            emitted = (distance > 0).to(F64) + smooth - smooth.detach()
            return -torch.log_softmax(emitted @ layer.readout.T, dim=1).gather(1, label.expand(TIME, 1)).sum()

        refractory = pre @ matrix.T - potential
        found.append(vmap(grad(loss), in_dims=(None, 1, 1, 0))(matrix, pre, refractory, labels))
    return found


@pytest.mark.parametrize("recurrent", [False, True], ids=["feed-forward", "recurrent"])
@pytest.mark.parametrize("reset", ["refractory", "zero"])
def test_fisher_equals_per_example_autograd(reset: Reset, recurrent: bool) -> None:
    network, weights, spikes, labels = case(reset, recurrent)
    expected = by_autograd(network, weights, spikes, labels, reset, recurrent)
    gradients = example_gradients(network, weights, spikes, labels)
    packed = torch.from_numpy(pack(spikes.transpose(0, 1).to(torch.uint8).numpy()))
    samples = SpikeSamples(packed, labels, TIME, INPUTS)
    information = diagonal_fisher(network, weights, samples, torch.Generator())
    for ours, total, theirs in zip(gradients, information, expected, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=1e-9)
        torch.testing.assert_close(total, theirs.square().sum(dim=0), atol=1e-11, rtol=1e-9)
        # neither the square of the batch's gradient nor squares taken at every step would do
        assert not torch.allclose(total, theirs.sum(dim=0).square(), rtol=0.1)
        assert int((theirs != 0).sum()) > 100


def test_memory_is_bounded_and_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    network, weights, spikes, labels = case("zero", False)
    packed = torch.from_numpy(pack(spikes.transpose(0, 1).to(torch.uint8).numpy()))
    samples = SpikeSamples(packed, labels, TIME, INPUTS)
    whole = diagonal_fisher(network, weights, samples, torch.Generator())
    largest = []
    real = fisher.example_gradients

    def watched(*arguments: object) -> list[Tensor]:
        gradients = real(*arguments)  # type: ignore[arg-type]
        largest.append(sum(part.numel() * part.element_size() for part in gradients))
        return gradients

    monkeypatch.setattr(fisher, "example_gradients", watched)
    one_example = 8 * (6 * 7 + 5 * 6)
    for limit, chunks in ((2 * one_example, 5), (1, 9)):  # nine examples by two, or one at a time when none fits
        monkeypatch.setattr(fisher, "CHUNK_BYTES", limit)
        largest.clear()
        parts = diagonal_fisher(network, weights, samples, torch.Generator())
        assert len(largest) == chunks
        assert max(largest) <= max(limit, one_example)
        for ours, theirs in zip(parts, whole, strict=True):
            torch.testing.assert_close(ours, theirs)
