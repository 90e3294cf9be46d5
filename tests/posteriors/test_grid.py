import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bayspike.errors import UserError
from bayspike.posteriors.grid import Grid, grid_for

STEP = 2 / 64


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=30))
def test_rounding_finds_the_nearest_of_all_256_weights(values: list[float]) -> None:
    levels = np.arange(-128, 128) * STEP
    weights = torch.tensor(values, dtype=torch.float64)
    rounded = Grid(STEP).round(weights).numpy()
    assert np.isin(rounded, levels).all()
    best = np.abs(levels[:, None] - weights.numpy()).min(axis=0)
    np.testing.assert_allclose(np.abs(rounded - weights.numpy()), best, atol=1e-12)


def test_the_ends_of_the_grid_are_the_chips() -> None:
    """Even integers −256 … 254 times 1/64."""
    ends = Grid(STEP).round(torch.tensor([-1000.0, 1000.0]))
    assert (ends * 64).tolist() == [-256, 254]


def test_dithering_keeps_the_expectation_and_stays_on_the_grid() -> None:
    weights = torch.tensor([0.3 * STEP, -0.7 * STEP, 5.5 * STEP, 2 * STEP])
    draws = Grid(STEP).dithered(weights.expand(40_000, 4), torch.Generator().manual_seed(0))
    levels = draws / STEP
    assert torch.equal(levels, levels.round())
    assert float((levels - weights / STEP).abs().max()) <= 1
    assert float((levels.mean(0) - weights / STEP).abs().max()) < 4.5 * 0.5 / 200  # at most ½ a level of deviation
    assert levels[:, 3].unique().tolist() == [2]  # a weight on the grid does not move


def test_dithering_clips_at_the_ends() -> None:
    draws = Grid(STEP).dithered(torch.tensor([-1000.0, 1000.0, 127.5 * STEP]), torch.Generator().manual_seed(0))
    assert (draws / STEP).tolist() == [-128, 127, 127]


@pytest.mark.parametrize("largest", [-3.7, 3.7])
def test_the_grid_for_some_weights_is_the_finest_that_holds_them(largest: float) -> None:
    weights = torch.tensor([0.1, largest, 1.0])
    grid = grid_for(weights)
    rounded = grid.round(weights)
    assert float((rounded - weights).abs().max()) <= grid.step / 2 * (1 + 1e-5)
    assert float(rounded[1]) == pytest.approx(largest)
    assert grid.step == pytest.approx(3.7 / 127)


def test_all_weights_nought_still_have_a_grid() -> None:
    assert grid_for(torch.zeros(2, 2)).round(torch.zeros(2, 2)).tolist() == [[0, 0], [0, 0]]


def test_a_grid_needs_a_step() -> None:
    with pytest.raises(UserError, match=r"step must lie in \(0, inf\), but is 0\.0"):
        Grid(0.0)
