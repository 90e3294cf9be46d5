import numpy as np
import pytest

from bayspike.data.files.events import Events
from bayspike.data.simulated import compare


def make(rows, side=48):
    t, x, y, p = (np.array(column) for column in zip(*rows, strict=True))
    return Events(t.astype(np.int64), x.astype(np.int16), y.astype(np.int16), p.astype(np.uint8), side, side)


def test_statistics_by_hand():
    rows = [(1_000 * n, 3, 4, n % 2) for n in range(5)]  # one pixel, 1 ms apart, polarity in turn
    rows += [(10_000 + 2_000 * n, 13, 24, 1) for n in range(5)]  # another, 2 ms apart, always ON
    found = compare.statistics(make(rows))
    assert found.rate == 10 / 2
    assert found.on_share == pytest.approx((2 + 5) / 10)
    assert found.same_polarity == pytest.approx(4 / 8)
    assert (found.interval_25, found.interval_50, found.interval_75) == (1, 1.5, 2)
    assert (found.width, found.height, found.pixels) == (10, 20, 2)
    assert found.burstiness == pytest.approx(1 - 10 / 2_000)  # counts of 0 and 1 only: 1 - p


@pytest.mark.data
def test_simulated_mnist_dvs_agrees_with_the_genuine_recording_within_the_stated_factors(real_data):
    """The factors that docs/data.md states: 1.75 for every quantity."""
    real = compare.statistics(compare.genuine(real_data))
    made = [compare.statistics(one) for one in compare.simulated(4)]
    for name in compare.NAMES:
        mean = np.mean([getattr(one, name) for one in made])
        assert 1 / 1.75 < mean / getattr(real, name) < 1.75, name


@pytest.mark.data
def test_the_table_and_the_figure_are_made(real_data, tmp_path):
    real, made = compare.genuine(real_data), compare.simulated(2)
    lines = compare.table(compare.statistics(real), [compare.statistics(one) for one in made]).splitlines()
    assert len(lines) == 2 + len(compare.NAMES)
    assert "simulated" in lines[0]
    assert compare.picture(real, made, tmp_path / "a.png").stat().st_size > 20_000
