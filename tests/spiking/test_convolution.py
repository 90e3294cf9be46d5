"""Convolutions and poolings against torch's own, and their three-factor gradient against per-example autograd."""

import pytest
import torch
from convolution_reference import Stack, flat, potential, readout_loss, targets_of
from torch import Tensor
from torch.func import grad, vmap

from bayspike.learning.fisher import example_gradients
from bayspike.spiking import local
from bayspike.spiking.convolution import fan_out_from_below
from bayspike.spiking.local import local_gradient
from bayspike.spiking.maps import Maps, times_windows, window_sums
from bayspike.spiking.network import Network, NetworkConfig, Weights, build, network_step, step, unroll

F64 = torch.float64
TIME, BATCH, CLASSES = 8, 5, 3
STACKS = {
    "same padding, sums": ("3c3-2p-4c3-6", (2, 9, 8)),
    "strides and no padding": ("3c5s2p1-4c2p0-6", (2, 11, 9)),
    "maxima, recurrent on top": ("3c3-2m-5r-4", (7, 6)),
    "pooled inputs, ends in a pooling": ("2p-4c3s2-2p", (2, 13, 14)),
    "two poolings in a row": ("3c3-2m-2p-4c1-2p", (9, 9)),
    "coarse read-outs": ("3c3-2p-4c3-6", (2, 9, 8)),
}
GRIDS = {"coarse read-outs": 2}


def example(name: str) -> tuple[Network, list[Tensor], Tensor, Tensor]:
    words, shape = STACKS[name]
    inputs = int(torch.tensor(shape).prod())
    grid = GRIDS.get(name)
    config = NetworkConfig(
        inputs, (), CLASSES, membrane_decay=0.8, layers=words, shape=shape, threshold=0.2, readout_grid=grid
    )
    network = build(config, F64)
    generator = torch.Generator().manual_seed(5)
    spikes = (torch.rand(TIME, BATCH, inputs, generator=generator) < 0.4).to(F64)
    weights = [
        3 * torch.randn(layer.shape, generator=generator, dtype=F64) / layer.pre**0.5 + 1 / layer.pre
        for layer in network.layers
    ]
    return network, weights, spikes, torch.randint(CLASSES, (BATCH,), generator=generator)


def as_maps(name: str, spikes: Tensor) -> Tensor:
    shape = STACKS[name][1]
    return spikes.view(BATCH, *(shape if len(shape) == 3 else (1, *shape)))


@pytest.mark.parametrize("name", [name for name in STACKS if "recurrent" not in name])
def test_spikes_and_gradients_equal_torch_and_per_example_autograd(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "IN_CACHE", 100)  # blocks of a few examples
    network, weights, spikes, labels = example(name)
    targets, evidence = targets_of(labels, CLASSES), torch.tensor([1.0, 0.0, 1.0, 0.5, 1.0], dtype=F64)
    reference, drives = Stack(network, weights, (0.5, 0.8)), [Weights(matrix) for matrix in weights]
    states, active = network.start(BATCH), 0
    for t in range(TIME):
        expected = reference.step(as_maps(name, spikes[t]))
        steps = network_step(network, states, spikes[t], drives)
        before, came = states, [spikes[t], *(done.spikes for done in steps)]
        states, arriving = tuple(done.state for done in steps), spikes[t]
        for index, (layer, done, (trace, refractory, emitted)) in enumerate(
            zip(network.layers, steps, expected, strict=True)
        ):
            assert torch.equal(done.spikes, flat(layer, emitted))
            gradient, probabilities = local_gradient(
                layer, done, drives[index], arriving, targets, evidence.unsqueeze(1)
            )
            arriving = done.spikes

            def loss(matrix: Tensor, one: Tensor, off: Tensor, target: Tensor, layer=layer) -> Tensor:
                distance = potential(layer, matrix, one.unsqueeze(0))[0] - off - layer.neuron.threshold
                smooth = torch.sigmoid(4.0 / layer.neuron.threshold * distance)
                return readout_loss(layer, (distance > 0).to(F64) + smooth - smooth.detach(), target)

            each = vmap(grad(loss), in_dims=(None, 0, 0, 0))(weights[index], trace, refractory, targets)
            mean, square = gradient.means()
            torch.testing.assert_close(mean, each.mean(0), atol=1e-11, rtol=1e-9)
            torch.testing.assert_close(gradient.mean(), each.mean(0), atol=1e-11, rtol=1e-9)
            weighed = (evidence.view(-1, 1, 1) * each.square()).mean(0)
            torch.testing.assert_close(square, weighed, atol=1e-11, rtol=1e-9)
            torch.testing.assert_close(gradient.mean_square(), each.square().mean(0), atol=1e-11, rtol=1e-9)
            if layer.places > 1:  # the same from traces, whose rows are made a few examples at a time
                alone = step(layer, before[index], came[index], drives[index], rows=False)
                few, _ = local_gradient(layer, alone, drives[index], came[index], targets, evidence.unsqueeze(1))
                assert few.patches is not None
                for one, other in zip((few.mean(), *few.means()), (mean, mean, square), strict=True):
                    torch.testing.assert_close(one, other)
                torch.testing.assert_close(few.add_mean_to(mean.clone(), keep=0.5, rate=3.0), 3.5 * mean)
            seen = layer.read(done.spikes)
            torch.testing.assert_close(probabilities, torch.softmax(seen @ layer.readout.T, dim=1))
            active += int((each != 0).sum())
    assert active > 100
    assert all(0.01 < float(block.mean()) < 0.9 for block in unroll(network, spikes, weights))


@pytest.mark.parametrize("name", STACKS)
def test_gradients_of_single_examples_are_those_of_a_batch_of_one(name: str) -> None:
    network, weights, spikes, labels = example(name)
    together = example_gradients(network, weights, spikes, labels)
    for one in range(BATCH):
        alone = example_gradients(network, weights, spikes[:, one : one + 1], labels[one : one + 1])
        for ours, theirs in zip(together, alone, strict=True):
            torch.testing.assert_close(ours[one], theirs[0])


def test_a_kernel_as_large_as_its_maps_is_a_dense_layer() -> None:
    convolution = build(NetworkConfig(16, (), CLASSES, layers="5c4p0", shape=(4, 4), threshold=0.3), F64)
    dense = build(NetworkConfig(16, (5,), CLASSES, threshold=0.3), F64)
    generator = torch.Generator().manual_seed(0)
    spikes = (torch.rand(TIME, BATCH, 16, generator=generator) < 0.5).to(F64)
    weights = [torch.randn(5, 16, generator=generator, dtype=F64)]
    assert torch.equal(unroll(convolution, spikes, weights)[0], unroll(dense, spikes, weights)[0])
    assert torch.equal(convolution.layers[0].readout, dense.layers[0].readout)


@pytest.mark.parametrize("name", [name for name in STACKS if "recurrent" not in name])
def test_fan_out_counts_the_synapses_that_an_input_moves(name: str) -> None:
    network = example(name)[0]
    for layer in network.layers:
        reached = fan_out_from_below(layer)
        every = torch.eye(layer.inputs, dtype=F64)
        moved = layer.rows_of(every).count_nonzero(1).view(layer.inputs, layer.places).sum(1) * layer.shape[0]
        assert torch.equal(torch.as_tensor(reached).double().expand(layer.inputs), moved.double())


@pytest.mark.parametrize("size", [1, 2, 3])
def test_windows(size: int) -> None:
    maps = Maps(7, 5, 3)
    flat_maps = torch.randn(2, 4, maps.size, dtype=F64, requires_grad=True)
    summed = window_sums(maps, flat_maps, size)
    by_hand = torch.stack(
        [
            maps.view(flat_maps)[..., r * size : (r + 1) * size, c * size : (c + 1) * size, :].sum((-3, -2))
            for r in range(7 // size)
            for c in range(5 // size)
        ],
        dim=-2,
    ).flatten(-2)
    torch.testing.assert_close(summed, by_hand)
    factors = torch.randn_like(summed)
    (down,) = torch.autograd.grad(by_hand, flat_maps, factors)
    torch.testing.assert_close(times_windows(maps, torch.ones_like(flat_maps), factors, size), down)


@pytest.mark.parametrize(("grid", "windows"), [(None, (2, 1)), (8, (2, 1)), (4, (4, 1)), (2, (8, 2)), (1, (17, 4))])
def test_a_coarse_read_out_tells_few_places_apart(grid: int | None, windows: tuple[int, int]) -> None:
    """Maps of 17 × 17, then of 4 × 4; never finer than what the pooling between them hands on."""
    words = "3c5s2-2p-5c5s2-7"
    network = build(NetworkConfig(34 * 34, (), 10, layers=words, shape=(34, 34), readout_grid=grid))
    first, second, last = network.layers
    sides = (17 // windows[0], 4 // windows[1])
    assert (first.seen, second.seen, last.seen) == (3 * sides[0] ** 2, 5 * sides[1] ** 2, 7)
    assert [layer.readout.shape[1] for layer in network.layers] == [first.seen, second.seen, last.seen]


def test_logits_spread_alike_whatever_the_window() -> None:
    """By the number of neurons, not of windows: spikes that fall independently give logits of one spread."""
    spreads = []
    for words in ("16c3", "16c3-2p", "16c3-4p"):
        network = build(NetworkConfig(32 * 32, (), 100, layers=words, shape=(32, 32), readout_scale=4.0))
        layer = network.layers[0]
        spikes = (torch.rand(20, layer.neurons, generator=torch.Generator().manual_seed(1)) < 0.1).float()
        centred = spikes - 0.1
        spreads.append(float((layer.read(centred) @ layer.readout.T).std()))
    expected = 4 * (0.1 * 0.9) ** 0.5
    assert all(abs(spread / expected - 1) < 0.1 for spread in spreads), spreads
