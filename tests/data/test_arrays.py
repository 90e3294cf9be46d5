"""`Dataset.from_arrays`: what it takes, what becomes of it, and what it says of the rest."""

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from bayspike.data.base import Dataset, SpikeSamples, StaticSamples
from bayspike.errors import UserError

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.integers(0, 256, (30, 4, 6), dtype=np.uint8)
LABELS = np.arange(30) % 3
TRAINS = (RANDOM.random((30, 7, 11)) < 0.3).astype(np.uint8)


def all_values(data: Dataset) -> np.ndarray:
    assert isinstance(data.train, StaticSamples)
    assert isinstance(data.test, StaticSamples)
    return np.concatenate([data.train.values.numpy(), data.test.values.numpy()])


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        (PICTURES, (4, 6)),
        (torch.from_numpy(PICTURES), (4, 6)),
        (PICTURES[:, None], (4, 6)),
        (PICTURES.reshape(30, 24), (24,)),
        (PICTURES / 255, (4, 6)),
        ((PICTURES / 255).astype(np.float32), (4, 6)),
        (torch.from_numpy(PICTURES).double() / 255, (4, 6)),
        (PICTURES.astype(np.int16), (4, 6)),
        (np.asfortranarray(PICTURES), (4, 6)),
    ],
)
def test_pictures_of_every_form_become_the_same_bytes(x, shape):
    data = Dataset.from_arrays(x, LABELS, time=5, test=(x, LABELS))
    assert data.sample_shape == shape
    assert np.array_equal(data.train.values.numpy(), PICTURES.reshape(30, 24))
    assert data.train.time == data.test.time == 5
    assert data.classes == ("0", "1", "2")


def test_pictures_of_true_and_false_are_white_and_black():
    data = Dataset.from_arrays(PICTURES > 99, LABELS, time=5)
    assert sorted(np.unique(all_values(data))) == [0, 255]


@pytest.mark.parametrize("x", [TRAINS, TRAINS.astype(bool), torch.from_numpy(TRAINS).float(), TRAINS.astype(np.int64)])
@pytest.mark.parametrize("time", [None, 7])
def test_spike_trains_come_back_as_they_were(x, time):
    data = Dataset.from_arrays(x, LABELS, time=time, test=(x, LABELS))
    assert isinstance(data.train, SpikeSamples)
    spikes = data.train.spikes(torch.arange(30), torch.Generator()).numpy()
    assert np.array_equal(spikes, TRAINS.transpose(1, 0, 2))
    assert data.sample_shape == (11,)


def test_packed_trains_and_trains_with_a_shape():
    packed = Dataset.from_arrays(np.packbits(TRAINS, axis=-1), LABELS, inputs=11)
    assert (packed.train.inputs, packed.train.time) == (11, 7)
    frames = TRAINS[:, :, :8].reshape(30, 7, 2, 2, 2)
    data = Dataset.from_arrays(frames, LABELS, test=(frames, LABELS))
    assert data.sample_shape == (2, 2, 2)
    assert np.array_equal(data.test.spikes(torch.tensor([3]), torch.Generator())[:, 0], TRAINS[3, :, :8])


def test_kind_settles_what_could_be_both():
    square = (RANDOM.random((30, 6, 6)) < 0.5).astype(np.float32)
    assert isinstance(Dataset.from_arrays(square, LABELS, time=6).train, SpikeSamples)
    assert isinstance(Dataset.from_arrays(square, LABELS, time=6, kind="pictures").train, StaticSamples)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint16, np.int64, np.uint64])
def test_labels_of_any_width(dtype):
    data = Dataset.from_arrays(PICTURES, LABELS.astype(dtype), time=5, test=(PICTURES, list(LABELS)))
    assert data.train.labels.tolist() == data.test.labels.tolist() == LABELS.tolist()
    assert data.train.labels.dtype == torch.int64


@pytest.mark.parametrize(
    "form", [list, np.array, lambda w: np.array(w, dtype=object), lambda w: np.array(w, dtype="S")]
)
def test_words_are_numbered_by_the_alphabet_or_as_named(form):
    words = form([("cat", "dog", "bird")[label] for label in LABELS])
    data = Dataset.from_arrays(PICTURES, words, time=5, test=(PICTURES, words))
    assert data.classes == ("bird", "cat", "dog")
    assert data.train.labels.tolist() == [(1, 2, 0)[label] for label in LABELS]
    named = Dataset.from_arrays(PICTURES, words, time=5, test=(PICTURES, words), classes=["cat", "dog", "bird", "fish"])
    assert named.train.labels.tolist() == LABELS.tolist()


def test_a_share_of_every_class_is_for_testing():
    data = Dataset.from_arrays(PICTURES, LABELS, time=5, test=0.2, seed=3)
    assert torch.bincount(data.test.labels).tolist() == [2, 2, 2]
    both = {tuple(row) for row in all_values(data)}
    assert both == {tuple(row) for row in PICTURES.reshape(30, 24)}
    assert not np.array_equal(
        data.test.values, Dataset.from_arrays(PICTURES, LABELS, time=5, test=0.2, seed=4).test.values
    )


@pytest.mark.parametrize(
    ("x", "y", "options", "sentence"),
    [
        (TRAINS * 3, LABELS, {}, r"from 0 to 3, but a spike train holds 0 and 1: cut counts down by \(x > 0\)"),
        (PICTURES, LABELS, {}, "pictures need time=…"),
        (PICTURES.reshape(30, 24), LABELS, {}, "pictures need time=…"),
        (PICTURES * 1.0, LABELS, {"time": 5}, r"must lie in \[0, 1\], but x reaches from 0 to 255"),
        (PICTURES / 255 * np.nan, LABELS, {"time": 5}, "not finite"),
        (PICTURES.astype(int) * 2, LABELS, {"time": 5}, r"must lie in \[0, 255\]"),
        (PICTURES > 9, LABELS, {"time": 0}, "at least 1"),
        ((PICTURES > 9).astype(int), LABELS, {"time": 5}, "next to black"),
        (np.zeros((30, 3, 4, 6)), LABELS, {"time": 5}, "one channel"),
        (PICTURES, LABELS[:-1], {"time": 5}, "x has 30 samples, but y has 29 labels"),
        (PICTURES, LABELS - 1, {"time": 5}, "the smallest is -1"),
        (PICTURES, LABELS / 2, {"time": 5}, "whole numbers from 0 on, but are of type float64"),
        (PICTURES, LABELS * 2, {"time": 5}, "no sample has the label 1, but some have 4"),
        (PICTURES, LABELS, {"time": 5, "classes": ["a", "b"]}, "2 names of classes, a, b, but the largest label is 2"),
        (PICTURES, LABELS, {"time": 5, "classes": ["a", "b", "b"]}, "different words"),
        (PICTURES, LABELS.astype(str), {"time": 5, "classes": ["0", "1"]}, "label '2' is not among the classes 0, 1"),
        (PICTURES, LABELS, {"time": 5, "sample_shape": (5, 5)}, r"\(5, 5\) holds 25 values, but a sample has 24"),
        (PICTURES, LABELS, {"time": 5, "test": (PICTURES[:, :2], LABELS)}, r"\(4, 6\), but test samples have \(2, 6\)"),
        (PICTURES, LABELS, {"time": 5, "test": (PICTURES, LABELS.astype(str))}, "both be words, or both be numbers"),
        (PICTURES, LABELS, {"time": 5, "test": 0.0}, "above 0"),
        (PICTURES, LABELS, {"time": 5, "test": 10}, "none to train on"),
        (PICTURES, LABELS[:, None], {"time": 5}, r"shape \(samples,\)"),
        (TRAINS, LABELS, {"inputs": 30}, "11 columns of uint8, but 30 inputs have 30 columns, or 4"),
        (PICTURES[:0], LABELS[:0], {"time": 5}, "no labels"),
        (np.array([object()] * 30), LABELS, {"time": 5}, "array of numbers"),
        ([[1, 2], [3]] * 15, LABELS, {"time": 5}, "rows differ in shape"),
    ],
)
def test_what_cannot_be_taken_is_one_sentence(x, y, options, sentence):
    with pytest.raises(UserError, match=sentence) as caught:
        Dataset.from_arrays(x, y, **options)
    assert "\n" not in str(caught.value)


def test_samples_take_the_arrays_of_numpy():
    samples = StaticSamples(PICTURES.reshape(30, 24), LABELS.astype(np.int32), 5)
    assert samples.labels.dtype == torch.int64
    assert torch.equal(samples.values, torch.from_numpy(PICTURES.reshape(30, 24)))
    with pytest.raises(UserError, match=r"shape \(30,\), one for each sample, got \(29,\)"):
        StaticSamples(PICTURES.reshape(30, 24), LABELS[1:], 5)


def test_a_data_set_is_checked_when_it_is_made():
    samples = StaticSamples(PICTURES.reshape(30, 24), LABELS, 5)
    with pytest.raises(UserError, match="holds 30 values, but a sample has 24 inputs"):
        Dataset("odd", samples, samples, ("a", "b", "c"), (5, 6))
    with pytest.raises(UserError, match="label 2, but there are 2 names"):
        Dataset("odd", samples, samples, ("a", "b"), (4, 6))
    with pytest.raises(UserError, match="test samples have 20 inputs"):
        Dataset("odd", samples, StaticSamples(PICTURES.reshape(30, 24)[:, :20], LABELS, 5), ("a", "b", "c"), (4, 6))


def test_a_data_loader_goes_through_samples():
    data = Dataset.from_arrays(TRAINS, LABELS, test=(TRAINS, LABELS))
    spikes, labels = next(iter(DataLoader(data.train, batch_size=30)))
    assert np.array_equal(spikes, TRAINS)
    assert labels.tolist() == LABELS.tolist()
    still = Dataset.from_arrays(PICTURES, LABELS, time=400).train
    (first, label), (again, _) = still[0], next(iter(still))
    assert torch.equal(first, again)  # an item is always the same draw, at the rates of its picture
    assert np.allclose(first.double().mean(0), still.values[0] / 256, atol=0.12)
    assert label == int(still.labels[0])
    assert torch.equal(still[-1][0], still[len(still) - 1][0])
    with pytest.raises(IndexError):
        still[len(still)]
