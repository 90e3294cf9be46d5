"""A learner whose network has convolutions: it learns, it is one file, and it goes on where it stopped."""

from pathlib import Path

import numpy as np
import pytest

from bayspike import Learner
from bayspike.errors import UserError


def bars(count: int, seed: int) -> tuple[np.ndarray, list[str]]:
    random = np.random.default_rng(seed)
    pictures = np.zeros((count, 8, 8), np.uint8)
    for index in range(count):
        place = random.integers(1, 7)
        pictures[index, place if index % 2 else slice(None), slice(None) if index % 2 else place] = 200
    return pictures, ["lying" if index % 2 else "standing" for index in range(count)]


def test_it_learns_and_its_file_goes_on(tmp_path: Path) -> None:
    learner = Learner((8, 8), network="6c3-2p-8c3-16", time=10, epochs=6, held_back=0.0, seed=1)
    learner.learn(*bars(80, 0))
    x, y = bars(40, 1)
    assert np.mean([a == b for a, b in zip(learner.predict(x).labels, y, strict=True)]) > 0.8
    assert "6c3 → 2p → 8c3 → 16" in repr(learner)
    again = Learner.load(learner.save(tmp_path / "bars.bayspike"))
    for each in (learner, again):
        each.learn_one(x[0], y[0])
    for ours, theirs in zip(learner.state.states, again.state.states, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(ours[:4], theirs[:4], strict=True))


def test_a_shape_without_height_and_width_is_refused() -> None:
    with pytest.raises(UserError, match=r"\(height, width\)"):
        Learner(64, network="6c3-16")
