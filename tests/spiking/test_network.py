from dataclasses import replace

import numpy as np
import pytest
import torch

from bayspike.errors import UserError
from bayspike.spiking.filters import Resonator
from bayspike.spiking.network import Layer, Network, NetworkConfig, build, check_spikes, unroll, with_more_classes
from bayspike.spiking.neurons import Neuron, Reset
from srm_reference import Constants, run_network

F64 = torch.float64


def spikes_and_weights(network: Network, time: int = 25, batch: int = 3) -> tuple[torch.Tensor, list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(11)
    spikes = (torch.rand(time, batch, network.inputs, generator=generator) < 0.4).to(F64)
    weights = [1.5 * torch.randn(layer.shape, generator=generator, dtype=F64) + 0.5 for layer in network.layers]
    return spikes, weights


@pytest.mark.parametrize("reset", ["refractory", "zero", "subtract"])
@pytest.mark.parametrize("recurrent", [False, True])
def test_a_stack_of_layers_equals_the_plain_recursion(reset: Reset, recurrent: bool) -> None:
    config = NetworkConfig(8, (6, 5, 4), 2, membrane_decay=0.8, reset=reset, recurrent=recurrent)
    network = build(config, F64)
    spikes, weights = spikes_and_weights(network)
    expected = run_network([w.numpy() for w in weights], spikes.numpy(), Constants(reset=reset, recurrent=recurrent))
    for emitted, recording in zip(unroll(network, spikes, weights), expected, strict=True):
        assert recording.spikes.any()
        np.testing.assert_array_equal(emitted, recording.spikes)


def test_one_step_of_delay_per_layer() -> None:
    """Each layer is driven so hard that it fires as soon as anything has reached it."""
    network = build(NetworkConfig(1, (1, 1, 1), 2, reset="refractory"), F64)
    pulse = torch.zeros(6, 1, 1, dtype=F64)
    pulse[1] = 1
    emitted = unroll(network, pulse, [torch.full((1, 1), 1e6, dtype=F64)] * 3)
    assert [int(layer.flatten().nonzero()[0]) for layer in emitted] == [2, 3, 4]


def test_a_batch_of_one_equals_its_row_of_the_batch() -> None:
    network = build(NetworkConfig(8, (6, 5), 3, recurrent=True), F64)
    spikes, weights = spikes_and_weights(network)
    together = unroll(network, spikes, weights)
    for row in range(spikes.shape[1]):
        alone = unroll(network, spikes[:, row : row + 1], weights)
        for whole, single in zip(together, alone, strict=True):
            assert torch.equal(whole[:, row], single[:, 0])


def test_thresholds_default_to_one_and_to_the_root_of_the_fan_in_times_the_gain() -> None:
    """A binary neuron must spike at the same moments as with plain traces and the paper's threshold √fan-in."""
    assert [layer.neuron.threshold for layer in build(NetworkConfig(9, (4, 5), 2)).layers] == [1.0, 1.0]
    gain = (1 - 0.5) * (1 - 0.75)
    decays = {"synapse_decay": 0.5, "membrane_decay": 0.75}
    binary = NetworkConfig(9, (16, 5), 2, binary=True, **decays)
    assert [layer.neuron.threshold for layer in build(binary).layers] == [3 * gain, 4 * gain]
    recurrent = NetworkConfig(9, (16,), 2, binary=True, recurrent=True, **decays)
    assert build(recurrent).layers[0].neuron.threshold == 5 * gain
    assert build(NetworkConfig(9, (4,), 2, binary=True, threshold=0.5)).layers[0].neuron.threshold == 0.5


def test_readouts_come_from_the_seed_alone_and_have_the_scale_asked_for() -> None:
    config = NetworkConfig(5, (4000, 30), 10, readout_scale=3.0, seed=7)
    torch.manual_seed(1)
    first = build(config)
    torch.manual_seed(2)
    for ours, theirs in zip(first.layers, build(config).layers, strict=True):
        assert torch.equal(ours.readout, theirs.readout)
    assert not torch.equal(first.layers[0].readout, build(NetworkConfig(5, (4000, 30), 10, seed=8)).layers[0].readout)
    assert float(first.layers[0].readout.std()) == pytest.approx(3 / np.sqrt(4000), rel=0.02)


def test_another_filter_may_be_put_in() -> None:
    network = build(NetworkConfig(5, (4,), 2, reset="refractory"), filter=Resonator())
    assert isinstance(network.layers[0].neuron.filter, Resonator)


def test_layers_must_fit() -> None:
    lower = Layer(4, 3, Neuron(), torch.zeros(2, 3))
    with pytest.raises(UserError, match="3 neurons cannot feed a layer with 4 inputs"):
        Network((lower, lower))
    with pytest.raises(UserError, match="at least one layer"):
        Network(())
    with pytest.raises(UserError, match=r"readout must have the shape \(classes, 3\), but has \(2, 5\)"):
        Layer(4, 3, Neuron(), torch.zeros(2, 5))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"hidden": ()}, "hidden must name at least one layer size"),
        ({"hidden": (0,)}, r"a layer size in hidden must lie in \[1, inf\), but is 0"),
        ({"inputs": 0}, r"inputs must lie in \[1, inf\), but is 0"),
        ({"classes": 1}, r"classes must lie in \[2, inf\), but is 1"),
        ({"readout_scale": 0.0}, r"readout_scale must lie in \(0, inf\), but is 0\.0"),
        ({"membrane_decay": 1.0}, r"membrane_decay must lie in \[0, 1\), but is 1\.0"),
    ],
)
def test_bad_configurations_are_named(change: dict[str, object], sentence: str) -> None:
    arguments: dict[str, object] = {"inputs": 4, "hidden": (3,), "classes": 2} | change
    with pytest.raises(UserError, match=sentence):
        build(NetworkConfig(**arguments))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spikes", "sentence"),
    [
        (torch.zeros(5, 2, 3), r"shape \(time, batch, 4\), but have \(5, 2, 3\)"),
        (torch.zeros(5, 4), r"shape \(time, batch, 4\), but have \(5, 4\)"),
        (torch.full((5, 2, 4), float("nan")), "not finite"),
        (torch.zeros(0, 2, 4), "at least one time-step and one example"),
        (torch.zeros(5, 0, 4), "at least one time-step and one example"),
    ],
)
def test_spikes_that_do_not_fit_are_refused(spikes: torch.Tensor, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        check_spikes(build(NetworkConfig(4, (3,), 2)), spikes)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_emits_the_same_spikes() -> None:
    network = build(NetworkConfig(8, (6, 5), 2, recurrent=True), F64)
    spikes, weights = spikes_and_weights(network)
    there = unroll(network.to("cuda"), spikes.cuda(), [w.cuda() for w in weights])
    for ours, theirs in zip(unroll(network, spikes, weights), there, strict=True):
        assert torch.equal(ours, theirs.cpu())


@pytest.mark.parametrize("hidden", [(7,), (30, 12)])
def test_later_classes_are_rows_of_their_own(hidden: tuple[int, ...]) -> None:
    """Whatever way a network grows it comes to the same rows; those that were there do not move, nor do logits."""
    config = NetworkConfig(5, hidden, 3, seed=11)
    small = build(config)
    large = with_more_classes(small, config, 6)
    by_steps = with_more_classes(with_more_classes(small, config, 4), config, 6)
    for ours, theirs, old in zip(large.layers, by_steps.layers, small.layers, strict=True):
        assert torch.equal(ours.readout, theirs.readout)
        assert torch.equal(ours.readout[:3], old.readout)
        assert len({tuple(row.tolist()) for row in ours.readout}) == 6
        spikes = (torch.rand(2, old.neurons, 40, generator=torch.Generator().manual_seed(0)) < 0.3).float()
        assert torch.equal(ours.logits(spikes)[:, :3], old.logits(spikes))
        torch.testing.assert_close(ours.logits(spikes), ours.readout @ spikes)
    assert large.layers[0].shape == small.layers[0].shape
    other = with_more_classes(build(replace(config, seed=12)), replace(config, seed=12), 6)
    assert not torch.equal(other.layers[0].readout[3:], large.layers[0].readout[3:])
    wide = with_more_classes(build(NetworkConfig(5, (4000,), 3)), NetworkConfig(5, (4000,), 3), 5)
    assert float(wide.layers[0].readout[3:].std()) == pytest.approx(4 / 4000**0.5, rel=0.05)
    assert with_more_classes(small, config, 3) is small
    with pytest.raises(UserError, match="classes are only added"):
        with_more_classes(small, config, 2)
