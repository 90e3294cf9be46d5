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


def network_for(rule: Rule, hidden: tuple[int, ...] = (9, 7)) -> Network:
    return build(NetworkConfig(10, hidden, 3, binary=rule.binary, threshold=0.1, slope=0.5), torch.float64)


def batch() -> tuple[Tensor, Tensor]:
    return torch.rand(12, 4, 10, generator=torch.Generator().manual_seed(3)) < 0.4, torch.arange(4) % 3


# draws of a block without updates are made at once: with a burn-in, only rules that draw nothing can be compared
@pytest.mark.parametrize(
    ("name", "burn_in"),
    [*((name, 0) for name in sorted(RULES)), *((name, 3) for name in ("sgd", "ste", "ewc", "tacos"))],
)
def test_blocks_of_one_step_are_the_letter(name: str, burn_in: int) -> None:
    rule = RULES[name]
    network, (spikes, labels) = network_for(rule), batch()
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


@pytest.mark.parametrize("every", [4, 5])
def test_a_block_adds_up_the_gradients_at_the_weights_it_began_with(every: int) -> None:
    """By hand for one layer of SGD: weights stand still for a block, then move by η times the sum."""
    rule = SGD(lr=0.3)
    network, (spikes, labels) = network_for(rule, (9,)), batch()
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


def test_evidence_and_precision_count_every_step_of_a_block() -> None:
    rule = GaussianVI(lr=50.0, temperature=0.0, prior_precision=300.0, pull_every=1)
    network, (spikes, labels) = network_for(rule, (9,)), batch()
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
    recurrent = build(NetworkConfig(10, (9,), 3, recurrent=True))
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
