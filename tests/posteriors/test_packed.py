"""Posteriors at rest: two bytes a synapse, with errors no larger than the steps allow."""

import math

import pytest
import torch

from bayspike.errors import UserError
from bayspike.posteriors.distributions import Gaussian
from bayspike.posteriors.grid import Grid
from bayspike.posteriors.packed import noise_floor, pack, unpack


def _posterior(seed: int = 0) -> Gaussian:
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(30, 40, generator=generator) * 0.1
    return Gaussian(mean, torch.exp(4 + 6 * torch.rand(30, 40, generator=generator)))


def test_two_bytes_and_errors_within_half_a_step() -> None:
    posterior = _posterior()
    packed = pack(posterior)
    again = unpack(packed)
    assert packed.bytes_per_synapse == 2
    mean_step = float(posterior.centre.abs().max()) / 127
    assert float((again.centre - posterior.centre).abs().max()) <= mean_step / 2 * 1.001
    log_step = float(posterior.precision.log().max() - posterior.precision.log().min()) / 255
    worst = float((again.precision.log() - posterior.precision.log()).abs().max())
    assert worst <= log_step / 2 * 1.01
    ratio = (again.precision / posterior.precision).sqrt()
    assert float((ratio.log()).abs().max()) <= log_step / 4 * 1.01


def test_packing_twice_changes_nothing() -> None:
    once = unpack(pack(_posterior()))
    twice = unpack(pack(once))
    torch.testing.assert_close(once.centre, twice.centre)
    torch.testing.assert_close(once.precision, twice.precision)


def test_equal_precisions_are_kept() -> None:
    flat = Gaussian(torch.zeros(2, 3), torch.full((2, 3), 500.0))
    torch.testing.assert_close(unpack(pack(flat)).precision, flat.precision)


def test_a_broken_posterior_is_refused() -> None:
    with pytest.raises(UserError, match="finite"):
        pack(Gaussian(torch.tensor([[math.nan]]), torch.ones(1, 1)))
    with pytest.raises(UserError, match="positive"):
        pack(Gaussian(torch.zeros(1, 1), torch.zeros(1, 1)))


def test_floor_keeps_members_of_a_rounded_committee_apart() -> None:
    grid = Grid(0.01)
    sharp = Gaussian(torch.zeros(50, 50), torch.full((50, 50), 1e8))  # noise of a hundredth of a step
    generator = torch.Generator().manual_seed(1)
    assert int(grid.round(sharp.sample(2, generator)).count_nonzero()) == 0
    floored = noise_floor(sharp, grid)
    torch.testing.assert_close(floored.precision.rsqrt(), torch.full((50, 50), grid.step / 2))
    assert float(grid.round(floored.sample(2, generator)).ne(0).float().mean()) > 0.2  # P(|z| > 1) = 0.32
    wide = Gaussian(torch.zeros(1, 1), torch.ones(1, 1))
    torch.testing.assert_close(noise_floor(wide, grid).precision, wide.precision)
