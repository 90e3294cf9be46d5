import numpy as np
import pytest
import torch
import writers

from bayspike.data.files.aedat import read_aedat2
from bayspike.data.files.event_files import read_nmnist
from bayspike.data.files.idx import read_idx
from bayspike.data.sets import nmnist, poker_dvs
from bayspike.errors import UserError


@pytest.fixture(autouse=True)
def no_other_places(monkeypatch, tmp_path):
    """Only the folders a test names are searched."""
    monkeypatch.setattr("bayspike.data.places.user_cache_path", lambda name: tmp_path / "cache")


def write_nmnist(folder, per_class=5):
    for part in ("Train", "Test"):
        for digit in range(10):
            (folder / "nmnist" / part / str(digit)).mkdir(parents=True)
            for number in range(per_class if part == "Train" else 1):
                rows = writers.random_events(50, 34, seed=100 * digit + number)
                writers.nmnist(folder / "nmnist" / part / str(digit) / f"{number:05}.bin", rows)


def test_nmnist_bins_every_recording(tmp_path):
    write_nmnist(tmp_path)
    data = nmnist.load(root=tmp_path, test_share=0.5, time=30)
    assert torch.bincount(data.train.labels).tolist() == [3] * 10
    assert torch.bincount(data.test.labels).tolist() == [3] * 10
    assert data.sample_shape == (2, 34, 34)
    spikes = data.test.spikes(torch.arange(30), torch.Generator()).numpy()
    frames = {(int(n), f.tobytes()) for n, f in zip(data.test.labels, spikes.transpose(1, 0, 2), strict=True)}
    expected = np.zeros((30, 2, 34, 34), dtype=np.uint8)
    for t, x, y, p in writers.random_events(50, 34, seed=300):
        expected[t // 10_000, p, y, x] = 1
    train = data.train.spikes(torch.arange(30), torch.Generator()).numpy().transpose(1, 0, 2)
    frames |= {(int(n), f.tobytes()) for n, f in zip(data.train.labels, train, strict=True)}
    assert (3, expected.tobytes()) in frames


def test_nmnist_uses_its_own_test_part_where_that_is_whole(tmp_path, monkeypatch):
    write_nmnist(tmp_path)
    monkeypatch.setattr(nmnist, "_WHOLE_TEST_PART", 1)
    data = nmnist.load(root=tmp_path, downsample=2)
    assert (len(data.train), len(data.test), data.sample_shape) == (50, 10, (2, 17, 17))
    assert len(nmnist.load(root=tmp_path, per_class=2).train) == 20


@pytest.mark.parametrize(("module", "name"), [(nmnist, "nmnist"), (poker_dvs, "poker_dvs")])
def test_missing_event_data_say_where_and_how(module, name, tmp_path, monkeypatch):
    monkeypatch.delenv("BAYSPIKE_DATA", raising=False)
    with pytest.raises(UserError, match=rf"{name}.* was not found in {tmp_path}.*by hand from"):
        module.load(root=tmp_path)


@pytest.mark.parametrize("wrong", [{"downsample": 0}, {"test_share": 1.5}, {"time": 0}, {"per_class": 0}])
def test_bad_options_are_refused(wrong, tmp_path):
    write_nmnist(tmp_path)
    with pytest.raises(UserError):
        nmnist.load(root=tmp_path, **wrong)


def test_a_damaged_recording_is_named(tmp_path):
    write_nmnist(tmp_path)
    bad = tmp_path / "nmnist" / "Train" / "4" / "00002.bin"
    bad.write_bytes(bad.read_bytes()[:-2])
    with pytest.raises(UserError, match=r"Train/4/00002\.bin is cut short.*byte 245"):
        nmnist.load(root=tmp_path)


def test_poker_suits_come_from_the_file_names(tmp_path):
    (tmp_path / "poker_dvs").mkdir()
    for suit in poker_dvs.SUITS:
        for number in range(4):
            name = f"x{suit}{number:02}{'i' if number % 2 else ''}.aedat"
            writers.aedat2(tmp_path / "poker_dvs" / name, writers.random_events(20, 35, span=15_000))
    data = poker_dvs.load(root=tmp_path)
    assert torch.bincount(data.train.labels).tolist() == [3] * 4
    assert torch.bincount(data.test.labels).tolist() == [1] * 4
    assert data.train.inputs == 2 * 35 * 35


@pytest.mark.data
def test_genuine_nmnist_labels_agree_with_mnist(real_data):
    for part, file in (("Train", "train"), ("Test", "t10k")):
        labels = read_idx(real_data / "mnist" / f"{file}-labels-idx1-ubyte.gz", 1)
        found = nmnist.recordings(real_data / "nmnist", part)
        assert len(found) >= 100
        assert all(labels[each.number - 1] == each.digit for each in found)


@pytest.mark.data
def test_genuine_nmnist_recordings_look_like_their_digits(real_data):
    """The events of a recording, summed over time, overlap more with their own MNIST image than with others."""
    images = read_idx(real_data / "mnist" / "train-images-idx3-ubyte.gz", 3).astype(float)
    found = nmnist.recordings(real_data / "nmnist", "Train")[::50]
    assert len(found) == 20
    own = np.array([images[each.number - 1].ravel() for each in found])
    sums = []
    for each in found:
        events = read_nmnist(each.path)
        picture = np.bincount(events.y.astype(int) * 34 + events.x, minlength=34 * 34).reshape(34, 34)
        sums.append(picture[3:31, 3:31].ravel())
    overlap = np.corrcoef(np.array(sums), own)[:20, 20:]
    assert (overlap.argmax(1) == np.arange(20)).mean() >= 0.8


@pytest.mark.data
def test_genuine_poker_dvs_class_counts(real_data):
    found = poker_dvs.find_recordings(real_data)
    assert np.bincount([suit for _, suit in found]).tolist() == [30, 43, 23, 35]
    data = poker_dvs.load(root=real_data)
    assert len(data.train) + len(data.test) == 131


@pytest.mark.data
def test_genuine_mnist_dvs_recording(real_data):
    events = read_aedat2(real_data / "mnist_dvs" / "mnist_0_scale04_0001.aedat")
    assert len(events) == 15_744
    assert events.duration == 2_210_588
