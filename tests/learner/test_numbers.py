"""Numbers as people have them: numpy's whole numbers are taken, floats are refused when a learner is made."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_learners import pictures, small

from bayspike.data.base import Dataset
from bayspike.errors import UserError
from bayspike.learner import Learner

X, Y = np.random.default_rng(0).random((20, 4)), np.arange(20) % 2


def test_whole_numbers_of_numpy_give_the_same_learner(tmp_path: Path) -> None:
    plain = Learner(4, 3, hidden=(10,), time=5, members=2, epochs=1, batch=8, seed=1)
    sizes = {"time": 5, "members": 2, "epochs": 1, "batch": 8, "seed": 1, "hidden": 10}
    other = Learner(np.int64(4), np.int64(3), **{name: np.int64(size) for name, size in sizes.items()})  # type: ignore[arg-type]
    files = [each.learn(X, Y).save(tmp_path / "it.bayspike").read_bytes() for each in (plain, other)]
    assert files[0] == files[1]
    assert Learner(4, hidden=10).state.recipe.network.hidden == (10,)
    assert Learner(np.array([2, 4]), hidden=np.array([3, 2])).state.recipe.network.hidden == (3, 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["inputs", "hidden", "time", "members", "epochs", "batch", "seed"])
@pytest.mark.parametrize("value", [20.0, 1.5, np.float64(3), "4"])
def test_floats_and_words_are_refused_when_it_is_made(name: str, value: Any) -> None:
    with pytest.raises(UserError, match=f"^{name} must be a whole number, but is "):
        Learner(**{"inputs": 4, name: value})


def test_a_number_of_classes_is_whole() -> None:
    with pytest.raises(UserError, match=r"the number of classes must be a whole number, but is 3\.0"):
        Learner(4, classes=3.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epochs", "sentence"), [(0, "epochs must lie in"), (-1, "epochs must lie in"), (1.5, "whole")]
)
def test_a_task_is_shown_once_at_least(epochs: Any, sentence: str) -> None:
    learner = small()
    before = learner.state
    with pytest.raises(UserError, match=sentence):
        learner.learn(*pictures("ab"), epochs=epochs)
    assert learner.state is before


def test_data_sets_take_them_too(tmp_path: Path) -> None:
    plain = Dataset.from_arrays(X, Y, time=5, seed=3)
    other = Dataset.from_arrays(X, Y, time=np.int64(5), seed=np.int64(3))  # type: ignore[arg-type]
    assert torch.equal(other.test.values, plain.test.values)  # type: ignore[attr-defined]
    Learner.for_data(other, hidden=3).save(tmp_path / "it.bayspike")  # whose words are plain numbers
    with pytest.raises(UserError, match="seed must be a whole number"):
        Dataset.from_arrays(X, Y, time=5, seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="time must be a whole number"):
        Dataset.from_arrays(X, Y, time=5.0)  # type: ignore[arg-type]


def test_a_test_part_is_a_pair_or_a_share() -> None:
    pair = Dataset.from_arrays(X, Y, time=5, test=[X[:6], Y[:6]])
    assert len(pair.train) == 20
    assert len(pair.test) == 6
    assert len(Dataset.from_arrays(X, Y, time=5, test=np.float32(0.5)).test) == 10
    refused: list[Callable[[], Dataset]] = [
        lambda: Dataset.from_arrays(X, Y, time=5, test=None),  # type: ignore[arg-type]
        lambda: Dataset.from_arrays(X, Y, time=5, test=[X]),
        lambda: Dataset.from_arrays(X, Y, time=5, test="0.2"),
    ]
    for act in refused:
        with pytest.raises(UserError, match=r"test must be \(x, y\), a share"):
            act()


def test_a_camera_may_have_its_size_from_an_array() -> None:
    kind = [("t", np.int64), ("x", np.int16), ("y", np.int16), ("p", np.int8)]
    items = [(np.array([(0, 3, 9, 1), (900, 15, 2, 0)], dtype=kind), label) for label in (0, 1) * 4]
    data = Dataset.from_torch(items, time=2, test=0.5, sensor_size=np.array([16, 16, 2]))  # type: ignore[arg-type]
    assert data.sample_shape == (2, 16, 16)
    spikes = data.train.spikes(torch.tensor([0]), torch.Generator()).reshape(2, 2, 16, 16)
    assert spikes.nonzero().tolist() == [[0, 1, 9, 3], [1, 0, 2, 15]]
