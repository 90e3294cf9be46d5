import numpy as np
import pytest
import torch

from bayspike.data.sets.dvs_gesture import GESTURES
from bayspike.data.simulated import gestures as gestures_simulated
from bayspike.data.simulated import mnist_dvs as mnist_dvs_simulated
from bayspike.data.simulated.cache import cache_path, cached
from bayspike.data.simulated.puppet import hands
from bayspike.errors import UserError


@pytest.fixture(autouse=True)
def no_other_places(monkeypatch, tmp_path):
    monkeypatch.setattr("bayspike.data.places.user_cache_path", lambda name: tmp_path / "cache")
    monkeypatch.delenv("BAYSPIKE_DATA", raising=False)


def everything(samples):
    return samples.spikes(torch.arange(len(samples)), torch.Generator())


@pytest.fixture(scope="module")
def gestures(tmp_path_factory):
    return gestures_simulated.load(root=tmp_path_factory.mktemp("g"), users=2, windows=1, time=40, test_time=40)


def test_gestures_have_the_papers_shape_and_partition(gestures):
    assert gestures.simulated
    assert gestures.sample_shape == (2, 32, 32)
    assert gestures.classes == GESTURES
    assert torch.bincount(gestures.train.labels).tolist() == [4] * 11  # one user, four lights
    assert torch.bincount(gestures.test.labels).tolist() == [4] * 11
    assert torch.bincount(gestures.foreign.labels).tolist() == [1] * 11  # the fifth light


def test_gestures_are_seen_on_the_side_where_they_are_made(gestures):
    spikes = everything(gestures.test).float().mean(0).reshape(-1, 2, 32, 32).sum(1)
    left, right = spikes[:, 4:24, :15].sum((1, 2)), spikes[:, 4:24, 17:].sum((1, 2))
    for gesture, name in enumerate(GESTURES):
        mine = gestures.test.labels == gesture
        if name.startswith("right"):
            assert (left[mine] > 1.5 * right[mine]).all()  # the puppet faces the camera
        if name.startswith("left"):
            assert (right[mine] > 1.5 * left[mine]).all()


def test_foreign_light_is_noisier(gestures):
    assert everything(gestures.foreign).float().mean() > 1.2 * everything(gestures.test).float().mean()


@pytest.mark.parametrize(("gesture", "hand", "turn"), [(3, 0, 1), (4, 0, -1), (5, 1, 1), (6, 1, -1)], ids=GESTURES[3:7])
def test_arms_turn_the_way_their_gesture_says(gesture, hand, turn):
    puppets = gestures_simulated.cast([0, 1, 2], 1, 0, 0)
    times = np.linspace(0, 1.5, 200)
    path = torch.stack([hands(puppets, float(t))[hand] for t in times])[:, puppets.gesture == gesture]
    around = path - (path.amax(0) + path.amin(0)) / 2
    cross = around[:-1, :, 0] * around[1:, :, 1] - around[:-1, :, 1] * around[1:, :, 0]
    assert (torch.sign(cross) == turn).all()  # with y downwards, a positive turn is clockwise to the viewer


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(tmp_path):
    options = {"users": 2, "windows": 1, "time": 5, "test_time": 5}
    first = gestures_simulated.load(root=tmp_path / "a", seed=3, **options)
    second = gestures_simulated.load(root=tmp_path / "b", seed=3, **options)
    other = gestures_simulated.load(root=tmp_path / "c", seed=4, **options)
    assert torch.equal(first.train.packed, second.train.packed)
    assert torch.equal(first.foreign.packed, second.foreign.packed)
    assert not torch.equal(first.train.packed, other.train.packed)
    stored = gestures_simulated.load(root=tmp_path / "a", seed=3, **options)  # now from the cache
    assert torch.equal(first.test.packed, stored.test.packed)


def test_windows_follow_one_another(tmp_path):
    options = {"users": 2, "test_time": 5}
    whole = gestures_simulated.load(root=tmp_path, time=12, windows=1, **options).train
    cut = gestures_simulated.load(root=tmp_path, time=4, windows=3, **options).train
    assert len(cut) == 3 * len(whole)
    assert torch.equal(cut.packed[3:6].flatten(0, 1), whole.packed[1])
    assert cut.labels[3:6].tolist() == [whole.labels[1]] * 3


def test_more_gestures_than_fit_are_refused_before_any_is_made(tmp_path):
    for options in ({"users": 10_000}, {"repeats": 1000}, {"test_time": 100_000, "users": 30}):
        with pytest.raises(UserError, match=r"GiB, and 4 are the most: choose fewer users"):
            gestures_simulated.load(root=tmp_path, **options)
    assert not any(tmp_path.iterdir())


def test_mnist_dvs_simulated_has_the_papers_shape_and_moves_the_digit(tmp_path):
    data = mnist_dvs_simulated.load(root=tmp_path, per_class=4)
    assert data.simulated
    assert data.sample_shape == (2, 26, 26)
    assert (data.train.time, data.train.inputs) == (80, 1352)
    assert torch.bincount(data.train.labels).tolist() == [3] * 10
    assert torch.bincount(data.test.labels).tolist() == [1] * 10
    spikes = everything(data.train).float().reshape(80, 30, 2, 26, 26)
    off, on = spikes.sum((0, 1, 3, 4)).tolist()
    assert 0.8 < on / off < 1.25
    columns = spikes.sum((2, 3))  # the centre of the events wanders by several pixels
    centre = (columns * torch.arange(26)).sum(-1) / columns.sum(-1).clamp(min=1)
    assert (centre.amax(0) - centre.amin(0)).mean() > 3
    again = mnist_dvs_simulated.load(root=tmp_path / "again", per_class=4)
    assert torch.equal(data.train.packed, again.train.packed)


def test_a_still_digit_is_drawn_where_it_should_be():
    picture = torch.zeros(1, 784, dtype=torch.uint8)
    picture[0, 14 * 28 + 20] = 255  # one bright pixel, 6.5 right of the middle and 0.5 below it
    still = mnist_dvs_simulated.Screen(amplitude_x=0, amplitude_y=0, magnification=1.0, blur=0.3)
    frames = mnist_dvs_simulated.moving_digits(picture, 2_000, 27, torch.Generator().manual_seed(0), still)
    light = torch.exp(next(frames)).reshape(27, 27)
    row, column = divmod(int(light.argmax()), 27)
    assert (row, column) in {(13, 19), (14, 20), (13, 20), (14, 19)}
    spread = (light - still.dark) / (1 - still.dark)
    assert float(spread.sum()) == pytest.approx(1, abs=1e-3)  # blur and shift lose no light


def test_the_cache_is_whole_or_absent_and_damage_is_named(tmp_path):
    path = cache_path("toy", {"seed": 1}, tmp_path)

    def broken():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached("toy", {"seed": 1}, tmp_path, broken, ["a"])
    assert not path.exists()
    made = cached("toy", {"seed": 1}, tmp_path, lambda: {"a": np.arange(3)}, ["a"])
    assert made["a"].tolist() == [0, 1, 2]
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(UserError, match=r"damaged.*delete the file"):
        cached("toy", {"seed": 1}, tmp_path, broken, ["a"])
    assert cache_path("toy", {"seed": 2}, tmp_path) != path


def test_bad_options_are_refused(tmp_path):
    with pytest.raises(UserError, match="users"):
        gestures_simulated.load(root=tmp_path, users=1)
    with pytest.raises(UserError, match="digits"):
        mnist_dvs_simulated.load(root=tmp_path, digits="none")
    with pytest.raises(UserError, match="get mnist"):
        mnist_dvs_simulated.load(root=tmp_path, digits="mnist")
