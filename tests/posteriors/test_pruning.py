import pytest
import torch

from bayspike.errors import UserError
from bayspike.posteriors.distributions import Bernoulli, Gaussian, Point
from bayspike.posteriors.pruning import prune

MEAN = torch.tensor([[0.5, -0.1, 2.0], [0.3, -3.0, 0.05]])
PRECISION = torch.tensor([[4.0, 900.0, 0.01], [25.0, 1.0, 1.0]])


def test_synapses_go_in_the_order_of_their_signal_to_noise() -> None:
    """|m|·√p by hand: 1.0, 3.0, 0.2 / 1.5, 3.0, 0.05; half of six leaves the three largest."""
    (pruned,) = prune([Gaussian(MEAN, PRECISION)], 0.5, "signal")
    assert (pruned.mean() != 0).tolist() == [[False, True, False], [True, True, False]]
    draws = pruned.sample(100, torch.Generator().manual_seed(0))
    assert not draws[:, 0, 2].any()  # gone in every draw, to the last bit
    assert float(draws[:, 1, 0].std()) > 0.1


def test_by_size_alone_large_unsure_weights_stay() -> None:
    (pruned,) = prune([Gaussian(MEAN, PRECISION)], 0.5)
    assert (pruned.mean() != 0).tolist() == [[True, False, True], [False, True, False]]
    (point,) = prune([Point(MEAN)], 2 / 3)
    assert (point.mean() != 0).tolist() == [[False, False, True], [False, True, False]]


def test_nothing_is_cut_at_nought_and_nonsense_is_refused() -> None:
    (same,) = prune([Gaussian(MEAN, PRECISION)], 0.0)
    assert torch.equal(same.mean(), MEAN)
    with pytest.raises(UserError, match="share to prune"):
        prune([Point(MEAN)], 1.0)
    with pytest.raises(UserError, match="by size"):
        prune([Point(MEAN)], 0.5, "signal")
    with pytest.raises(UserError, match="±1"):
        prune([Bernoulli(MEAN)], 0.5)
