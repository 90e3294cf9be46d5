"""Time blocks: with one step a block they are the letter; with more, the gradient is the sum over the block."""

import pytest
import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.learning.batch import init_states, train_batch
from bayspike.learning.blocks import present_in_blocks, times_rate
from bayspike.rules import BGD, EWC, MESU, SGD, STE, TACOS, BernoulliVI, GaussianVI
from bayspike.rules.base import Pace, Rule
from bayspike.spiking.local import local_gradient, one_hot_targets
from bayspike.spiking.network import Network, NetworkConfig, build, step

PAPER = {"lr": 50.0, "temperature": 1e-6, "prior_precision": 300.0}
RULES: dict[str, Rule] = {
    "sgd": SGD(),
    "ste": STE(),
    "ewc": EWC(),
    "tacos": TACOS(),
    "gaussian": GaussianVI(**PAPER, pull_every=1),
    "gaussian, rare pull": GaussianVI(**PAPER, pull_every=5),
    "bernoulli": BernoulliVI(sampling="neuron"),
    "mesu": MESU().at(Pace(4, 12)),
    "bgd": BGD().at(Pace(4, 12)),
}


DENSE, SHAPE = "9-7", (2, 8, 7)
MAPS = ("3c3-2p-7", "2p-4", "2m-4c2s2-5", "3c5s2-2p-8")


def network_for(rule: Rule, layers: str = DENSE) -> Network:
    config = NetworkConfig(112, (), 3, binary=rule.binary, layers=layers, shape=SHAPE, threshold=0.02, slope=0.5)
    return build(config, torch.float64)


def batch() -> tuple[Tensor, Tensor]:
    return torch.rand(12, 4, 112, generator=torch.Generator().manual_seed(3)) < 0.4, torch.arange(4) % 3


# draws of a block without updates are made at once: with a burn-in, only rules that draw nothing can be compared
@pytest.mark.parametrize("layers", [DENSE, *MAPS])
@pytest.mark.parametrize(
    ("name", "burn_in"),
    [*((name, 0) for name in sorted(RULES)), *((name, 3) for name in ("sgd", "ste", "ewc", "tacos"))],
)
def test_blocks_of_one_step_are_the_letter(name: str, burn_in: int, layers: str) -> None:
    rule = RULES[name]
    network, (spikes, labels) = network_for(rule, layers), batch()
    targets = one_hot_targets(labels, 3, torch.float64)
    expected, letter = train_batch(
        network, rule, init_states(network, rule, torch.Generator().manual_seed(0)), spikes, labels,
        torch.Generator().manual_seed(1), burn_in,
    )  # fmt: skip
    states = init_states(network, rule, torch.Generator().manual_seed(0))
    found, report = present_in_blocks(
        network, rule, states, spikes, targets, torch.Generator().manual_seed(1), burn_in, None, 1
    )
    for ours, theirs in zip(found, expected, strict=True):
        for mine, other in zip(ours, theirs, strict=True):
            if isinstance(other, Tensor):
                torch.testing.assert_close(mine, other, rtol=1e-7, atol=1e-9)
    torch.testing.assert_close(report, letter)
    assert float(letter.rates.min()) > 0


@pytest.mark.parametrize("layers", ["9", "3c3", "2p-9", "2m-4c2s2"])
@pytest.mark.parametrize("every", [4, 5])
def test_a_block_adds_up_the_gradients_at_the_weights_it_began_with(every: int, layers: str) -> None:
    """By hand for one layer of SGD: weights stand still for a block, then move by η times the sum."""
    rule = SGD(lr=0.3)
    network, (spikes, labels) = network_for(rule, layers), batch()
    layer, targets = network.layers[0], one_hot_targets(labels, 3, torch.float64)
    weights = init_states(network, rule, torch.Generator().manual_seed(0))[0].weights.clone()
    state, total, held = layer.start(4), torch.zeros_like(weights), 0
    for t, frame in enumerate(spikes.to(torch.float64)):
        drive = rule.drive(type("S", (), {"weights": weights})(), torch.Generator())  # type: ignore[arg-type]
        done = step(layer, state, frame, drive)
        state = done.state
        total += local_gradient(layer, done, drive, frame, targets)[0].mean()
        held += 1
        if held == every or t == len(spikes) - 1:
            weights, total, held = weights - rule.lr * total, torch.zeros_like(total), 0
    states = init_states(network, rule, torch.Generator().manual_seed(0))
    found, _ = train_batch(network, rule, states, spikes, labels, torch.Generator(), update_every=every)
    torch.testing.assert_close(found[0].weights, weights)


@pytest.mark.parametrize("layers", ["3c3-2p-7", "2m-4c2s2-5"])
def test_a_block_of_maps_adds_up_the_squares_of_every_example_at_every_step(layers: str) -> None:
    """p ← p + η·Σ_t mean(g²) and m ← m − η/p·Σ_t mean(g), with g of one example at one step under one draw a block."""
    every, rule = 4, GaussianVI(lr=50.0, temperature=0.0, prior_precision=300.0, sampling="synapse", pull_every=1)
    network, (spikes, labels) = network_for(rule, layers), batch()
    targets, spikes = one_hot_targets(labels, 3, torch.float64), spikes[: 2 * every]
    expected = init_states(network, rule, torch.Generator().manual_seed(0))
    neurons, generator = list(network.start(4)), torch.Generator().manual_seed(1)
    for begin in (0, every):
        arriving = spikes[begin : begin + every].to(torch.float64)
        for index, layer in enumerate(network.layers):
            drive, emitted = rule.drive(expected[index], generator), []
            mean, square = torch.zeros(2, *layer.shape, dtype=torch.float64)
            for frame in arriving:
                done = step(layer, neurons[index], frame, drive)
                neurons[index] = done.state
                gradient = local_gradient(layer, done, drive, frame, targets)[0]
                delta, rows = gradient.delta.view(4, layer.places, -1), done.pre.view(4, layer.places, -1)
                each = torch.einsum("bpn,bpf->bnf", delta, rows)
                mean, square = mean + each.mean(0), square + each.square().mean(0)
                emitted.append(done.spikes)
            precision = expected[index].precision + 50.0 * square
            expected[index] = expected[index]._replace(
                mean=expected[index].mean - 50.0 / precision * mean, precision=precision
            )
            arriving = torch.stack(emitted)
    states = init_states(network, rule, torch.Generator().manual_seed(0))
    found, report = train_batch(
        network, rule, states, spikes, labels, torch.Generator().manual_seed(1), update_every=every
    )
    assert float(report.rates.min()) > 0.01
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.precision, theirs.precision)
        torch.testing.assert_close(ours.mean, theirs.mean)


def test_evidence_and_precision_count_every_step_of_a_block() -> None:
    rule = GaussianVI(lr=50.0, temperature=0.0, prior_precision=300.0, pull_every=1)
    network, (spikes, labels) = network_for(rule, "9"), batch()
    grown = []
    for evidence in (None, torch.ones(4), torch.zeros(4)):
        states = init_states(network, rule, torch.Generator().manual_seed(0))
        found, _ = train_batch(
            network, rule, states, spikes, labels, torch.Generator().manual_seed(1), 0, evidence, update_every=4
        )
        grown.append(float((found[0].precision - 300).sum()))
    assert grown[0] == grown[1] > 0
    assert grown[2] == 0


def test_rates_are_those_of_so_many_steps() -> None:
    assert times_rate(SGD(lr=0.1), 5).lr == 0.5  # type: ignore[attr-defined]
    both = times_rate(GaussianVI(**PAPER, precision_lr=2.0), 3)
    assert (both.lr, both.precision_lr) == (150.0, 6.0)  # type: ignore[attr-defined]
    assert times_rate(BGD(weight=2.0), 4) == BGD(weight=8.0)


def test_what_cannot_be_done_in_blocks_is_one_sentence() -> None:
    spikes, labels = batch()
    recurrent = build(NetworkConfig(112, (9,), 3, recurrent=True))
    with pytest.raises(UserError, match="recurrent layer"):
        train_batch(
            recurrent, SGD(), init_states(recurrent, SGD(), torch.Generator()), spikes, labels, torch.Generator(),
            update_every=2,
        )  # fmt: skip
    rule = GaussianVI(**PAPER, samples=2)
    network = network_for(rule)
    with pytest.raises(UserError, match="several samples"):
        train_batch(
            network, rule, init_states(network, rule, torch.Generator()), spikes, labels, torch.Generator(),
            update_every=2,
        )  # fmt: skip
