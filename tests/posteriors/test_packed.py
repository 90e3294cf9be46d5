"""Posteriors at rest: two bytes a synapse, with errors no larger than the steps allow."""

import math

import pytest
import torch

from bayspike.errors import UserError
from bayspike.posteriors.distributions import Bernoulli, Gaussian
from bayspike.posteriors.packed import pack, pack_all, unpack


def _posterior(seed: int = 0) -> Gaussian:
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(30, 40, generator=generator) * 0.1
    return Gaussian(mean, torch.exp(4 + 6 * torch.rand(30, 40, generator=generator)))


def test_two_bytes_and_errors_within_half_a_step() -> None:
    posterior = _posterior()
    packed = pack(posterior)
    again = unpack(packed)
    assert packed.bytes == 2 * posterior.centre.numel()
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


def test_packed_draws_differ_from_the_float_ones_by_no_more_than_the_steps_allow() -> None:
    """The same noise z gives m + z/√p and m' + z/√p': apart by half a step of m and a quarter of one of log p."""
    posterior = _posterior()
    packed = pack(posterior)
    ours = posterior.sample(5, torch.Generator().manual_seed(1))
    theirs = unpack(packed).sample(5, torch.Generator().manual_seed(1))
    noise = (ours - posterior.centre).abs()
    allowed = packed.mean_step / 2 + noise * math.expm1(packed.log_step / 4)
    assert bool(((ours - theirs).abs() <= allowed * 1.01 + 1e-7).all())


def test_only_gaussians_are_packed() -> None:
    with pytest.raises(UserError, match="layer 1 is a Bernoulli"):
        pack_all([_posterior(), Bernoulli(torch.zeros(2, 2))])
