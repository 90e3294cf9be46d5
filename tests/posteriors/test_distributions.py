import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import distributions as td

from bayspike.errors import UserError
from bayspike.posteriors.distributions import Bernoulli, BinaryPoint, Gaussian, Point, binarize

F64 = torch.float64
DRAWS = 40_000


def gaussian(seed: int) -> Gaussian:
    generator = torch.Generator().manual_seed(seed)
    centre = torch.randn(3, 4, generator=generator, dtype=F64)
    return Gaussian(centre, 0.1 + 20 * torch.rand(3, 4, generator=generator, dtype=F64))


def bernoulli(seed: int, scale: float = 1.0) -> Bernoulli:
    return Bernoulli(scale * torch.randn(3, 4, generator=torch.Generator().manual_seed(seed), dtype=F64))


def normal(q: Gaussian) -> td.Normal:
    return td.Normal(q.centre, q.precision**-0.5)


def binary(q: Bernoulli) -> td.Bernoulli:
    return td.Bernoulli(logits=2 * q.logits)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_gaussian_divergence_equals_torch_distributions(a: int, b: int) -> None:
    ours, theirs = gaussian(a), gaussian(b)
    torch.testing.assert_close(ours.kl(theirs), td.kl_divergence(normal(ours), normal(theirs)).sum())


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.sampled_from([0.1, 1.0, 4.0]))
def test_bernoulli_divergence_equals_torch_distributions(a: int, b: int, scale: float) -> None:
    ours, theirs = bernoulli(a, scale), bernoulli(b)
    torch.testing.assert_close(ours.kl(theirs), td.kl_divergence(binary(ours), binary(theirs)).sum())


def test_divergence_by_hand() -> None:
    """KL(N(1, ¼) ‖ N(0, 1)) = ½(¼ + 1 − 1 + log 4); KL(P(+1) = ¾ ‖ uniform) = ¾ log 3/2 + ¼ log 1/2."""
    ours, theirs = (Gaussian(torch.tensor([[m]]), torch.tensor([[p]])) for m, p in ((1.0, 4.0), (0.0, 1.0)))
    assert float(ours.kl(theirs)) == pytest.approx(0.5 * (0.25 + math.log(4)))
    skewed = Bernoulli(torch.tensor([[0.5 * math.log(3)]]))
    uniform = Bernoulli(torch.zeros(1, 1))
    assert float(skewed.kl(uniform)) == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert float(skewed.kl(skewed)) == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("size", [50.0, 1000.0])
@pytest.mark.parametrize("dtype", [torch.float32, F64])
def test_bernoulli_divergence_stays_finite_and_right_for_certain_weights(size: float, dtype: torch.dtype) -> None:
    certain, uniform = Bernoulli(torch.tensor([[size, -size]], dtype=dtype)), Bernoulli(torch.zeros(1, 2, dtype=dtype))
    assert float(certain.kl(uniform)) == pytest.approx(2 * math.log(2), rel=1e-6)
    assert float(certain.kl(certain)) == 0
    opposite = Bernoulli(-certain.logits)
    assert float(certain.kl(opposite)) == pytest.approx(2 * 2 * size, rel=1e-6)  # log-odds are 2·logits
    assert float(uniform.kl(certain)) == pytest.approx(2 * (size - math.log(2)), rel=1e-4)


def test_gaussian_samples_have_the_moments_of_torch_distributions() -> None:
    q = gaussian(3)
    draws = q.sample(DRAWS, torch.Generator().manual_seed(0))
    assert draws.shape == (DRAWS, 3, 4)
    error = (draws.mean(0) - normal(q).mean) / normal(q).stddev * math.sqrt(DRAWS)
    assert float(error.abs().max()) < 4.5  # standard errors
    torch.testing.assert_close(draws.var(0), normal(q).variance, rtol=0.04, atol=0)
    assert torch.equal(q.mean(), q.centre)
    assert torch.equal(q.mode(), normal(q).mode)


def test_bernoulli_samples_have_the_moments_of_torch_distributions() -> None:
    q = bernoulli(4)
    draws = q.sample(DRAWS, torch.Generator().manual_seed(0))
    assert set(draws.unique().tolist()) == {-1.0, 1.0}
    expected = 2 * binary(q).mean - 1
    torch.testing.assert_close(q.mean(), expected)
    error = (draws.mean(0) - expected) / (1 - expected**2).sqrt() * math.sqrt(DRAWS)
    assert float(error.abs().max()) < 4.5
    assert torch.equal(q.mode(), 2 * binary(q).mode - 1)


def test_same_seed_same_draws() -> None:
    for q in (gaussian(1), bernoulli(1)):
        first, second = (q.sample(3, torch.Generator().manual_seed(9)) for _ in range(2))
        assert torch.equal(first, second)
        assert not torch.equal(first[0], first[1])


def test_points_are_always_themselves() -> None:
    weights = torch.tensor([[0.5, -0.25, 0.0]])
    point, sign = Point(weights), BinaryPoint(weights)
    generator = torch.Generator().manual_seed(0)
    assert torch.equal(point.sample(2, generator), torch.stack([weights] * 2))
    assert torch.equal(point.mode(), weights)
    assert torch.equal(point.mean(), weights)
    assert sign.mode().tolist() == [[1, -1, 1]]
    assert sign.mean().tolist() == [[1, -1, 1]]
    assert sign.sample(2, generator).tolist() == [[[1, -1, 1]]] * 2


def test_the_sign_of_nought_is_plus_one() -> None:
    assert binarize(torch.tensor([0.0, -0.0, 1e-30, -1e-30])).tolist() == [1, 1, 1, -1]


def test_two_kinds_have_no_divergence() -> None:
    with pytest.raises(UserError, match="one kind, but got Gaussian and Bernoulli"):
        gaussian(1).kl(bernoulli(1))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="one kind, but got Bernoulli and Gaussian"):
        bernoulli(1).kl(gaussian(1))  # type: ignore[arg-type]
