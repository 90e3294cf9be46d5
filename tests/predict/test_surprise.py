"""How surprising inputs are by themselves: counted by hand, and as a control beside a network."""

import math

import pytest
import torch
from torch import Tensor

from bayspike.data.base import SpikeSamples
from bayspike.data.encoders import pack
from bayspike.posteriors.distributions import Gaussian, Point
from bayspike.predict.controls import judge_controls
from bayspike.predict.surprise import InputRates
from bayspike.spiking.network import NetworkConfig, build


def samples(spikes: Tensor) -> SpikeSamples:
    """From spikes `(examples, time, inputs)`."""
    packed = torch.from_numpy(pack(spikes.to(torch.uint8).numpy()))
    return SpikeSamples(packed, torch.arange(len(spikes)) % 2, spikes.shape[1], spikes.shape[2])


def test_by_hand() -> None:
    known = torch.zeros(2, 3, 2)
    known[0, :2, 0] = 1  # two spikes of the first input in six steps, none of the second
    rates = InputRates.of(samples(known), torch.Generator())
    first, second = 2.5 / 7, 0.5 / 7
    asked = torch.zeros(1, 3, 2)
    asked[0, 0, 0] = asked[0, 1, 1] = asked[0, 2, 1] = 1  # one spike of the first, two of the second
    likelihood = first * (1 - first) ** 2 * second**2 * (1 - second)
    found = rates.surprise(samples(asked), torch.Generator())
    assert found.tolist() == pytest.approx([-math.log(likelihood) / 6])


def test_nothing_asked_nothing_said() -> None:
    rates = InputRates.of(samples(torch.ones(2, 3, 2)), torch.Generator())
    assert rates.surprise(samples(torch.zeros(0, 3, 2)), torch.Generator()).shape == (0,)


@pytest.mark.parametrize("spread", [True, False])
def test_stands_beside_every_learner_and_is_the_same_for_all(spread: bool) -> None:
    """Own spikes come through the first half of the inputs, foreign ones through the second."""
    drawn = torch.Generator().manual_seed(1)
    halves = [torch.zeros(40, 10, 8) for _ in range(3)]
    for part, columns in zip(halves, (slice(0, 4), slice(4, 8), slice(0, 4)), strict=True):
        part[..., columns] = (torch.rand(40, 10, 4, generator=drawn) < 0.3).float()
    own, foreign, held_out = map(samples, halves)
    network = build(NetworkConfig(8, (6,), 2))
    mean = torch.randn(6, 8, generator=drawn)
    posterior = Gaussian(mean, torch.full_like(mean, 50.0)) if spread else Point(mean)
    found = judge_controls(network, [posterior], own, foreign, held_out, members=3)
    assert found["learnt" if spread else "point"].auroc_inputs == 1.0
    assert all(each.auroc_inputs is None for name, each in found.items() if name not in ("learnt", "point"))
    alone = judge_controls(network, [posterior], own, None, held_out, members=3)
    assert alone["learnt" if spread else "point"].auroc_inputs is None
