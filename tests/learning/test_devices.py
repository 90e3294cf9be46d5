"""Devices: what is computed stays where it is. On a graphics card if there is one, else on torch's meta device.

Tensors of the meta device have shapes and no values. A training step on them shows every operation that would mix
devices, copy between them or wait for a value, whether or not there is a card to do it on.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bayspike.cli import main
from bayspike.learning import batch as loop
from bayspike.learning.batch import init_states, train_batch
from bayspike.posteriors import draws
from bayspike.predict.predictors import Committee, Ensemble
from bayspike.rules import BGD, EWC, MESU, SGD, SI, STE, TACOS, BernoulliVI, GaussianVI
from bayspike.rules.base import Pace, Rule
from bayspike.spiking.network import Network, NetworkConfig, build

PAPER = {"lr": 100.0, "temperature": 1e-6, "prior_precision": 300.0}
RULES: dict[str, Rule] = {
    "sgd": SGD(),
    "ste": STE(),
    "ewc": EWC(),
    "si": SI(),
    "tacos": TACOS(),
    "gaussian": GaussianVI(**PAPER, pull_every=1),
    "gaussian, rare pull": GaussianVI(**PAPER, pull_every=3),
    "gaussian, synapses": GaussianVI(**PAPER, pull_every=1, sampling="synapse"),
    "gaussian, no boundaries": GaussianVI(remember=1e4).at(Pace(4, 6)),
    "bernoulli, neurons": BernoulliVI(sampling="neuron"),
    "bernoulli, synapses": BernoulliVI(),
    "mesu": MESU().at(Pace(4, 6)),
    "bgd": BGD().at(Pace(4, 6)),
}
CARDS = [
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
    pytest.param("mps", marks=pytest.mark.skipif(not torch.backends.mps.is_available(), reason="no MPS device")),
]


def network_for(rule: Rule, recurrent: bool = False) -> Network:
    return build(NetworkConfig(20, (16, 12), 3, binary=rule.binary, threshold=0.2, recurrent=recurrent))


class Strict(TorchDispatchMode):
    """Notes every operation that mixes devices, copies between them, or needs a value."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = [each for each in _flat((args, kwargs or {})) if isinstance(each, Tensor)]
        result = func(*args, **(kwargs or {}))
        made = [each for each in _flat(result) if isinstance(each, Tensor)]
        # a plain number as a tensor without dimensions may come from the host
        devices = {each.device.type for each in [*given, *made] if each.ndim > 0}
        if len(devices) > 1 or "_local_scalar_dense" in str(func):
            self.found.append(f"{func} on {sorted(devices)}")
        return result


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from _flat(each)
    else:
        yield value


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("name", sorted(RULES))
def test_a_training_step_copies_nothing_and_waits_for_nothing(
    name: str, recurrent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of the loop over time; a generator of the device, which meta has not, is stood in for."""
    rule = RULES[name]
    network = network_for(rule, recurrent)
    states = init_states(network, rule, torch.Generator())
    on_meta = [
        state._replace(**{k: v.to("meta") for k, v in state._asdict().items() if isinstance(v, Tensor)})
        for state in states
    ]
    for draw in ("normal", "uniform"):
        monkeypatch.setattr(draws, draw, lambda shape, like, generator: torch.empty(shape, device=like.device))
    spikes, targets = torch.empty(6, 4, 20, device="meta"), torch.empty(4, 3, device="meta")
    moved = network.to("meta")
    with Strict() as strict:
        learnt, report = loop._present(moved, rule, on_meta, spikes, targets, torch.Generator(), 0, None)
    assert strict.found == []
    for state in learnt:
        assert all(each.device.type == "meta" for each in state._asdict().values() if isinstance(each, Tensor))
    assert report.loss.device.type == "meta"


def test_the_net_catches_copies_and_waits() -> None:
    with Strict() as strict:
        torch.ones(3).to("meta")
        float(torch.ones(()))
    assert len(strict.found) == 2


def test_a_generator_of_its_own_on_another_device_and_itself_on_the_same() -> None:
    generator = torch.Generator().manual_seed(1)
    assert draws.on_device(generator, torch.device("cpu")) is generator
    assert torch.equal(generator.get_state(), torch.Generator().manual_seed(1).get_state())  # nothing was drawn


@pytest.mark.parametrize("device", CARDS)
@pytest.mark.parametrize("name", sorted(RULES))
def test_every_rule_learns_on_a_card(name: str, device: str) -> None:
    rule = RULES[name]
    network = network_for(rule).to(device)
    states = init_states(network, rule, torch.Generator().manual_seed(5))
    spikes = torch.rand(12, 4, 20, generator=torch.Generator().manual_seed(6)) < 0.4
    twice = []
    for _ in range(2):
        copied = [
            state._replace(**{k: v.clone() for k, v in state._asdict().items() if isinstance(v, Tensor)})
            for state in states
        ]
        learnt, report = train_batch(
            network, rule, copied, spikes, torch.arange(4) % 3, torch.Generator().manual_seed(7)
        )
        assert bool(torch.isfinite(report.loss))
        assert learnt[0][0].device.type == device
        twice.append(learnt[0][0].cpu())
    assert torch.equal(*twice)  # the same seed, the same weights


@pytest.mark.parametrize("device", CARDS)
def test_rules_without_draws_learn_the_same_on_a_card(device: str) -> None:
    spikes = torch.rand(12, 4, 20, generator=torch.Generator().manual_seed(6)) < 0.4
    learnt = []
    for place in ("cpu", device):
        network = network_for(SGD()).to(place)
        states = init_states(network, SGD(), torch.Generator().manual_seed(5))
        states, _ = train_batch(network, SGD(), states, spikes, torch.arange(4) % 3, torch.Generator())
        learnt.append(states[0].weights.cpu())
    torch.testing.assert_close(*learnt, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", CARDS)
def test_predictors_answer_on_a_card(device: str) -> None:
    rule = GaussianVI(**PAPER)
    network = network_for(rule)
    spikes = (torch.rand(8, 5, 20, generator=torch.Generator().manual_seed(6)) < 0.4).to(torch.uint8)
    answers = []
    for place in ("cpu", device):
        moved = network.to(place)
        learnt = [rule.posterior(state) for state in init_states(moved, rule, torch.Generator().manual_seed(5))]
        committee = Committee.draw(moved, learnt, 3, generator=torch.Generator().manual_seed(1))
        answers.append(committee.predict(spikes.to(place)).probabilities.cpu())
        assert Ensemble(moved, learnt, 3).predict(spikes.to(place), torch.Generator().manual_seed(2))
    torch.testing.assert_close(*answers, rtol=1e-3, atol=1e-4)  # a committee is the same wherever it answers


@pytest.mark.parametrize("device", CARDS)
def test_a_run_on_a_card(device: str, tmp_path: Path) -> None:
    small = ["--hidden", "16", "--time", "8", "--train-examples", "60", "--test-examples", "20", "--batch", "16"]
    rest = ["--members", "2", "--parallel", "1", "--quiet", "--device", device, "--out", str(tmp_path / "run")]
    assert main(["run", "digits", "--method", "bayes", "ewc", *small, *rest]) == 0
