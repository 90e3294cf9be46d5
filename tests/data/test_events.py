import numpy as np
import pytest

from bayspike.data.files.events import Events, binned
from bayspike.errors import UserError


def make(rows, width=6, height=4):
    t, x, y, p = (np.array(column) for column in zip(*rows, strict=True))
    return Events(t.astype(np.int64), x.astype(np.int16), y.astype(np.int16), p.astype(np.uint8), width, height)


def test_binned_by_hand():
    events = make([(100, 0, 0, 0), (105, 5, 3, 1), (109, 5, 3, 1), (110, 1, 2, 0), (131, 2, 2, 1)])
    frames = binned(events, 3, 10).reshape(3, 2, 4, 6)
    assert [tuple(place) for place in np.argwhere(frames)] == [(0, 0, 0, 0), (0, 1, 3, 5), (1, 0, 2, 1)]
    assert frames.max() == 1
    counts = binned(events, 3, 10, counts=True).reshape(3, 2, 4, 6)
    assert counts[0, 1, 3, 5] == 2
    assert counts.sum() == 4  # the event at 131 µs comes after the last bin


def test_binned_agrees_with_a_loop_over_events():
    random = np.random.default_rng(0)
    rows = [
        (int(t), *map(int, xyp))
        for t, xyp in zip(
            np.sort(random.integers(0, 1000, 500)), random.integers(0, (34, 30, 2), (500, 3)), strict=True
        )
    ]
    for factor in (1, 2, 3, 4):
        width, height = -(-34 // factor), -(-30 // factor)
        expected = np.zeros((7, 2, height, width), dtype=int)
        for t, x, y, p in rows:
            if 50 <= t < 50 + 7 * 90:
                expected[(t - 50) // 90, p, y // factor, x // factor] += 1
        events = make(rows, 34, 30)
        counted = binned(events, 7, 90, start=50, downsample=factor, counts=True)
        assert np.array_equal(counted.reshape(expected.shape), expected)
        capped = binned(events, 7, 90, start=50, downsample=factor)
        assert np.array_equal(capped.reshape(expected.shape), expected > 0)


def test_counts_saturate_at_255():
    assert binned(make([(5, 1, 1, 1)] * 300), 1, 10, counts=True).max() == 255


def test_crop_window_and_mirror():
    events = make([(1, 0, 0, 0), (2, 3, 1, 1), (3, 4, 2, 0), (4, 5, 3, 1)])
    inner = events.crop(3, 1, 2, 2)
    assert (inner.x.tolist(), inner.y.tolist(), inner.t.tolist()) == ([0, 1], [0, 1], [2, 3])
    assert (inner.width, inner.height) == (2, 2)
    assert events.window(2, 4).t.tolist() == [2, 3]
    assert events.mirrored().x.tolist() == [5, 2, 1, 0]
    assert events.upended().y.tolist() == [3, 2, 1, 0]
    assert events.duration == 3
    empty = events.window(50, 60)
    assert (len(empty), empty.duration) == (0, 0)
    assert binned(empty, 3, 10).sum() == 0


@pytest.mark.parametrize(("time", "step", "factor"), [(0, 10, 1), (3, 0, 1), (3, 10, 0)])
def test_bad_bins_are_refused(time, step, factor):
    with pytest.raises(UserError):
        binned(make([(1, 0, 0, 0)]), time, step, downsample=factor)
