"""`Dataset.from_torch`: stand-ins for the data sets of torch, torchvision and tonic, and these where installed."""

from typing import ClassVar

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from bayspike.continual import split_by_class
from bayspike.data.base import Dataset
from bayspike.errors import UserError

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (12, 5, 4), dtype=np.uint8)
LABELS = np.arange(12) % 3
EVENT = np.dtype([("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", bool)])


class Listed:
    """A map-style data set that counts how often each item is read."""

    def __init__(self, items, labels, **facts):
        self.items, self.given, self.reads = items, labels, [0] * len(items)
        for name, value in facts.items():
            setattr(self, name, value)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, place):
        self.reads[place] += 1
        return self.items[place], self.given[place]


def recording(seed: int, count: int = 50, span: int = 9_000) -> np.ndarray:
    random = np.random.default_rng(seed)
    made = np.empty(count, dtype=EVENT)
    made["t"] = np.sort(random.integers(0, span, count))
    made["x"], made["y"], made["p"] = (
        random.integers(0, 8, count),
        random.integers(0, 6, count),
        random.integers(0, 2, count),
    )
    return made


def whole(samples) -> np.ndarray:
    return samples.spikes(torch.arange(len(samples)), torch.Generator().manual_seed(1)).numpy()


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x,
        lambda x: torch.from_numpy(x)[None].float() / 255,
        lambda x: x[None] / 255,
        Image.fromarray,
        lambda x: Image.fromarray(x).convert("RGB"),
    ],
)
def test_pictures_give_the_spikes_of_the_same_arrays(form):
    source = Listed([form(each) for each in PICTURES], LABELS.tolist())
    data = Dataset.from_torch(source, test=source, time=9)
    expected = Dataset.from_arrays(PICTURES, LABELS, test=(PICTURES, LABELS), time=9)
    assert data.sample_shape == expected.sample_shape == (5, 4)
    assert data.train.labels.tolist() == LABELS.tolist()
    assert np.array_equal(whole(data.train), whole(expected.train))
    assert data.train.bytes_per_sample == expected.train.bytes_per_sample


def test_frames_and_trains_come_back_and_counts_are_clipped_when_asked():
    counts = RANDOM.poisson(0.5, (12, 7, 2, 3, 3)).astype(np.int16)
    source = Listed(list(counts), LABELS.tolist())
    with pytest.raises(UserError, match="a spike train holds 0 and 1"):
        Dataset.from_torch(source)
    data = Dataset.from_torch(source, test=source, clip=True)
    assert data.sample_shape == (2, 3, 3)
    assert np.array_equal(whole(data.train), (counts > 0).reshape(12, 7, 18).transpose(1, 0, 2))
    flat = Listed(list((counts > 0).reshape(12, 7, 18)), LABELS.tolist())
    assert np.array_equal(whole(Dataset.from_torch(flat, test=flat).train), whole(data.train))


def test_events_are_put_into_steps_as_counted_by_hand():
    made = [recording(seed) for seed in range(6)]
    source = Listed(made, [0, 1, 2] * 2, sensor_size=(8, 6, 2))
    data = Dataset.from_torch(source, test=source, time=5, span=10_000, downsample=2)
    assert data.sample_shape == (2, 3, 4)
    spikes = whole(data.train)
    for number, events in enumerate(made):
        block = np.zeros((5, 2, 3, 4), dtype=np.uint8)
        for x, y, t, p in events.tolist():
            step = (t - int(events["t"][0])) // 2_000
            if step < 5:
                block[step, int(p), y // 2, x // 2] = 1
        assert np.array_equal(spikes[:, number], block.reshape(5, 24))
    assert np.array_equal(whole(Dataset.from_torch(source, test=source, time=5, downsample=2).train).shape, (5, 6, 24))


def test_nothing_is_read_before_it_is_wanted_and_what_fits_is_read_once():
    source = Listed(list(PICTURES), LABELS.tolist(), targets=LABELS.tolist())
    data = Dataset.from_torch(source, test=0.25, time=3)
    assert sum(source.reads) == 1  # the first item tells what they are
    for _ in range(3):
        whole(data.train)
    assert max(source.reads) <= 2
    assert sum(source.reads) == 1 + len(data.train)

    small = Listed(list(PICTURES), LABELS.tolist(), targets=LABELS.tolist())
    data = Dataset.from_torch(small, test=0.25, time=3, memory=2 * 20)  # room for two pictures of twenty bytes
    once, again = whole(data.train), whole(data.train)
    assert np.array_equal(once, again)
    assert sum(data.train.kept.blocks[place].nbytes for place in data.train.kept.blocks) == 40
    assert sum(small.reads) == 1 + 2 * len(data.train) - 2


def test_labels_are_what_the_items_say():
    turned = Listed(
        list(PICTURES), [2 - label for label in LABELS.tolist()], targets=LABELS.tolist(), target_transform=len
    )
    assert Dataset.from_torch(turned, test=turned, time=3).train.labels.tolist() == [2 - label for label in LABELS]
    words = Listed(list(PICTURES), [("cat", "dog", "hen")[label] for label in LABELS])
    assert Dataset.from_torch(words, time=3).classes == ("cat", "dog", "hen")
    named = Listed(list(PICTURES), LABELS.tolist(), classes=["zero", "one", "two"])
    assert Dataset.from_torch(named, time=3).classes == ("zero", "one", "two")
    tensors = TensorDataset(torch.from_numpy(PICTURES), torch.from_numpy(LABELS))
    assert Dataset.from_torch(tensors, test=tensors, time=3).train.labels.tolist() == LABELS.tolist()
    half = Subset(tensors, range(6))
    assert len(Dataset.from_torch(half, test=half, time=3).train) == 6


def test_tasks_subsets_and_loaders_work_on_it():
    source = Listed(list(PICTURES), LABELS.tolist())
    data = Dataset.from_torch(source, test=source, time=4)
    stream = split_by_class(data, [[2], [0, 1]])
    assert [len(task.train) for task in stream.tasks] == [4, 8]
    picked = data.train.subset(torch.tensor([7, 2])).subset(torch.tensor([1]))
    expected = Dataset.from_arrays(PICTURES[2:3].repeat(2, 0), [0, 1], time=4, test=(PICTURES[:1], [0])).train
    assert np.array_equal(
        picked.spikes(torch.tensor([0]), torch.Generator().manual_seed(5)),
        expected.spikes(torch.tensor([0]), torch.Generator().manual_seed(5)),
    )
    spikes, labels = next(iter(DataLoader(data.train, batch_size=5)))
    assert spikes.shape == (5, 4, 20)
    assert labels.tolist() == LABELS[:5].tolist()


class Endless(IterableDataset):
    def __iter__(self):
        return iter([])


@pytest.mark.parametrize(
    ("source", "options", "sentence"),
    [
        (Endless(), {}, "no map-style data set"),
        (Listed([], []), {}, "has no items"),
        (Listed(list(PICTURES), LABELS.tolist()), {}, "pictures need time=…"),
        (TensorDataset(torch.zeros(4, 3)), {"time": 2}, r"item 0 of the data set is no pair \(x, label\)"),
        (Listed([recording(0)], [0]), {"time": 2}, r"events need sensor_size=\(width, height, 2\)"),
        (Listed([recording(0)], [0], sensor_size=(8, 6, 2)), {}, "events need time=…"),
        (Listed([np.zeros((3, 4, 4))] * 4, [0, 1] * 2), {"time": 2}, "one channel"),
    ],
)
def test_what_cannot_be_read_is_said(source, options, sentence):
    with pytest.raises(UserError, match=sentence):
        Dataset.from_torch(source, **options)


def test_an_item_unlike_the_first_is_named_when_it_is_met():
    odd = Listed([PICTURES[0], PICTURES[1], PICTURES[2][:4]], [0, 1, 0])
    with pytest.raises(UserError, match=r"item 2 has the shape \(4, 4\), but item 0 has \(5, 4\)"):
        whole(Dataset.from_torch(odd, test=odd, time=3).train)
    stray = recording(1)
    stray["x"] = 9
    events = Listed([recording(0), stray], [0, 1], sensor_size=(8, 6, 2))
    with pytest.raises(UserError, match="item 1 has events outside the 8×6 sensor"):
        whole(Dataset.from_torch(events, test=events, time=3).train)


def test_torchvision_itself(tmp_path):
    datasets = pytest.importorskip("torchvision.datasets")
    transforms = pytest.importorskip("torchvision.transforms")
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        for number in range(4):
            Image.fromarray(PICTURES[number]).save(tmp_path / name / f"{number}.png")
    change = transforms.Compose([transforms.Grayscale(), transforms.ToTensor()])
    source = datasets.ImageFolder(str(tmp_path), transform=change)
    data = Dataset.from_torch(source, test=source, time=6)
    expected = Dataset.from_arrays(np.tile(PICTURES[:4], (2, 1, 1)), [0] * 4 + [1] * 4, test=0.25, time=6)
    assert data.classes == ("cat", "dog")
    assert data.sample_shape == expected.sample_shape
    assert np.array_equal(data.train.block(3), PICTURES[3].reshape(-1))


class OneRecording:
    """What a data set of tonic's has: events, a label, the size of the sensor and a transform."""

    sensor_size: ClassVar[tuple[int, int, int]] = (8, 6, 2)

    def __init__(self, transform=None):
        self.transform = transform

    def __len__(self):
        return 4

    def __getitem__(self, place):
        events = recording(place)
        return (events if self.transform is None else self.transform(events)), place % 2


def test_tonic_frames_and_events_agree():
    transforms = pytest.importorskip("tonic.transforms")
    frames = OneRecording(transforms.ToFrame(sensor_size=(8, 6, 2), time_window=3_000, include_incomplete=True))
    binned = Dataset.from_torch(frames, test=frames, clip=True)
    events = OneRecording()
    ours = Dataset.from_torch(events, test=events, time=binned.train.time, span=3_000 * binned.train.time)
    assert binned.sample_shape == ours.sample_shape == (2, 6, 8)
    assert np.array_equal(whole(binned.train), whole(ours.train))
