"""Augmentation against what each change means, spike by spike; and that nothing changes without it."""

import numpy as np
import pytest
import torch

from bayspike.continual import StreamConfig, run_stream, split_by_class
from bayspike.data.augment import Augment, parse_augment
from bayspike.data.base import Dataset
from bayspike.errors import UserError
from bayspike.rules import SGD
from bayspike.spiking.network import NetworkConfig, build

SHAPE = (2, 5, 7)


def block(time: int = 6, batch: int = 40, rate: float = 0.3) -> torch.Tensor:
    return (torch.rand(time, batch, 70, generator=torch.Generator().manual_seed(0)) < rate).to(torch.uint8)


def generator(seed: int = 1) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_a_shift_moves_an_example_as_a_whole():
    """Every example is one of the 25 shifts that padding and cutting by numpy gives, and all of them occur."""
    spikes = block(batch=400)
    moved = Augment(SHAPE, shift=2)(spikes, generator()).numpy()
    seen = set()
    for number in range(spikes.shape[1]):
        plane = spikes[:, number].reshape(6, *SHAPE).numpy()
        padded = np.pad(plane, ((0, 0), (0, 0), (2, 2), (2, 2)))
        choices = {(a, b): padded[:, :, 2 - a : 7 - a, 2 - b : 9 - b] for a in range(-2, 3) for b in range(-2, 3)}
        fits = [move for move, shown in choices.items() if np.array_equal(shown.reshape(6, 70), moved[:, number])]
        assert len(fits) == 1
        seen.add(fits[0])
    assert len(seen) == 25


def spot(down: int, right: int, side: int = 41, batch: int = 300) -> torch.Tensor:
    """A spot of 5×5 whose middle lies so far from the picture's, and a dark second channel."""
    picture = torch.zeros(2, side, side, dtype=torch.uint8)
    middle = side // 2
    picture[0, middle + down - 2 : middle + down + 3, middle + right - 2 : middle + right + 3] = 1
    return picture.flatten().expand(3, batch, -1)


def middles(spikes: torch.Tensor, side: int = 41) -> np.ndarray:
    """Where the spots lie, by their centres of mass, seen from the picture's middle."""
    planes = spikes[0].reshape(-1, 2, side, side)
    assert not planes[:, 1].any()  # channels do not mix
    assert torch.equal(spikes[0], spikes[2])  # all steps move together
    found = [each[0].nonzero().double().mean(0).numpy() for each in planes]
    return np.array(found) - side // 2


def test_a_turn_keeps_the_distance_and_stays_below_its_angle():
    around = middles(Augment((2, 41, 41), turn=20)(spot(0, 15), generator()))
    angles = np.degrees(np.arctan2(around[:, 0], around[:, 1]))
    assert np.hypot(*around.T) == pytest.approx(15, abs=0.6)
    assert np.abs(angles).max() < 22
    assert angles.min() < -17
    assert angles.max() > 17
    assert np.abs(middles(Augment((2, 41, 41), turn=20)(spot(0, 0), generator()))).max() < 0.3  # the middle stays


def test_a_stretch_moves_rows_and_columns_by_their_own_share():
    down, right = middles(Augment((2, 41, 41), stretch=0.2)(spot(10, -10), generator())).T
    for far in (down, -right):
        assert far.min() == pytest.approx(8, abs=0.6)
        assert far.max() == pytest.approx(12, abs=0.6)
    assert abs(np.corrcoef(down, right)[0, 1]) < 0.2


def test_no_turn_is_no_change():
    spikes = block()
    assert torch.equal(Augment(SHAPE, turn=1e-6)(spikes, generator()), spikes)


def test_looks_count_whole_pixels():
    assert Augment((28, 28), shift=1).looks == 9
    assert Augment((28, 28), turn=10).looks == 5  # the rim, 14 pixels off, moves by two either way
    assert Augment((28, 28), stretch=0.1).looks == 9
    assert Augment((28, 28), shift=1, turn=10, stretch=0.1).looks == 9 * 5 * 9


def test_drop_leaves_out_a_share_and_adds_nothing():
    spikes = block(batch=200)
    kept = Augment(SHAPE, drop=0.25)(spikes, generator())
    assert not (kept > spikes).any()
    assert float(kept.sum() / spikes.sum()) == pytest.approx(0.75, abs=0.02)


def test_jitter_moves_spikes_in_time_only():
    spikes = torch.zeros(11, 300, 4, dtype=torch.uint8)
    spikes[5, :, 2] = 1
    moved = Augment((4,), jitter=2)(spikes, generator())
    assert torch.equal(moved.sum(dim=(0, 2)), torch.ones(300, dtype=torch.int64))
    steps = torch.bincount(moved[:, :, 2].nonzero()[:, 0], minlength=11)
    assert steps.nonzero().flatten().tolist() == [3, 4, 5, 6, 7]
    edge = torch.zeros(3, 50, 1, dtype=torch.uint8)
    edge[0] = 1
    assert int(Augment((1,), jitter=2)(edge, generator()).sum()) == 50  # none is lost at the edges


def test_the_generator_alone_decides():
    spikes, change = block(), Augment(SHAPE, 1, 0.1, 1)
    assert torch.equal(change(spikes, generator(3)), change(spikes, generator(3)))
    assert not torch.equal(change(spikes, generator(3)), change(spikes, generator(4)))
    before = spikes.clone()
    change(spikes, generator())
    assert torch.equal(spikes, before)  # the samples themselves are left alone


def test_texts():
    assert parse_augment("shift=2, drop=0.1", SHAPE) == Augment(SHAPE, shift=2, drop=0.1)
    assert parse_augment("none", SHAPE) is None
    for text, sentence in (
        ("shift", "takes shift, drop, jitter"),
        ("drop=1", r"drop of augment must lie in \[0, 1\)"),
        ("drop=much", "must be a number"),
        ("drop=nan", "must be a number"),
        ("shift=0.5", "must be a whole number"),
        ("shift=1,shift=2", "twice"),
        ("turn=181", r"turn of augment must lie in \[0, 180\]"),
        ("stretch=1", "stretch of augment must lie"),
        ("shift=5", r"must lie in \[0, 4\]"),
        ("jitter=-1", "jitter of augment must lie in"),
    ):
        with pytest.raises(UserError, match=sentence):
            parse_augment(text, SHAPE)
    with pytest.raises(UserError, match="needs pictures or events"):
        parse_augment("shift=1", (70,))


def test_a_stream_without_it_keeps_its_bits_and_with_it_learns_otherwise():
    x = np.random.default_rng(0).random((40, 5, 7))
    data = Dataset.from_arrays(x, np.arange(40) % 4, time=5)
    network = build(NetworkConfig(35, (8,), 4))
    found = []
    for augment in (None, Augment((5, 7)), Augment((5, 7), shift=1), Augment((5, 7), shift=1)):
        config = StreamConfig(batch=8, augment=augment)
        found.append(run_stream(network, SGD(), split_by_class(data), config).states[0].weights)
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[2], found[3])
    assert not torch.equal(found[0], found[2])
