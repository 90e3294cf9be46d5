"""Folders of one's own: pictures and recordings that the tests write, read back and held against what was written."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import writers
from PIL import Image

from bayspike.data import catalogue
from bayspike.data.base import Dataset, SpikeSamples, StaticSamples
from bayspike.data.files.recordings import read_events
from bayspike.data.inputs import bins_of_lines, spikes_of_file
from bayspike.errors import UserError
from bayspike.experiments.registry import experiment
from bayspike.runs.plan.config import DataOptions
from bayspike.runs.plan.prepare import load_data

NAMES = ("cat", "dog", "bird")


def pictures(root, count=5, side=(6, 9), ending="png", names=NAMES):
    """Random pictures; returns what each file holds."""
    random, written = np.random.default_rng(0), {}
    for name in names:
        (root / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            pixels = random.integers(0, 256, side, dtype=np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number}.{ending}")
            written[name, number] = pixels
    return written


def load(root, **options) -> Dataset:
    return catalogue.load("folder", root=root, **options)


def rows_of(samples: StaticSamples) -> set[bytes]:
    return {row.numpy().tobytes() for row in samples.values}


@pytest.mark.parametrize("ending", ["png", "bmp", "pgm", "gif"])
def test_pictures_are_read_as_they_were_written(tmp_path, ending):
    written = pictures(tmp_path, ending=ending)
    data = load(tmp_path, test_share=0.4)
    assert data.classes == ("bird", "cat", "dog")
    assert data.sample_shape == (6, 9)
    assert (data.train.time, len(data.train), len(data.test)) == (50, 9, 6)
    assert isinstance(data.train, StaticSamples)
    for label, name in enumerate(data.classes):
        here = [part.subset((part.labels == label).nonzero().flatten()) for part in (data.train, data.test)]
        assert rows_of(here[0]) | rows_of(here[1]) == {written[name, n].tobytes() for n in range(5)}


def test_photographs_are_near_what_was_written(tmp_path):
    for name, light in (("dark", 40), ("light", 200)):
        (tmp_path / name).mkdir()
        for number in range(3):
            Image.fromarray(np.full((16, 16, 3), light, dtype=np.uint8)).save(tmp_path / name / f"{number}.jpg")
    data = load(tmp_path)
    for label, light in enumerate((40, 200)):
        assert (data.train.values[data.train.labels == label].float() - light).abs().max() <= 3


def test_train_and_test_may_have_folders_of_their_own(tmp_path):
    written = pictures(tmp_path / "Train")
    others = pictures(tmp_path / "Test", count=2, names=("cat", "dog"))
    data = load(tmp_path)
    assert (len(data.train), len(data.test)) == (15, 4)
    assert rows_of(data.train) == {pixels.tobytes() for pixels in written.values()}
    assert rows_of(data.test) == {pixels.tobytes() for pixels in others.values()}


def test_classes_and_files_are_in_the_order_that_people_count(tmp_path):
    pictures(tmp_path, names=("2", "10", "1"), count=2)
    assert load(tmp_path).classes == ("1", "2", "10")


def test_options_of_pictures(tmp_path):
    pictures(tmp_path, side=(40, 40))
    plain = load(tmp_path, per_class=3, time=7, seed=1)
    assert (plain.train.time, len(plain.train) + len(plain.test)) == (7, 9)
    small = load(tmp_path, size=8)
    assert small.sample_shape == (8, 8)
    assert load(tmp_path, size=[4, 5]).sample_shape == (4, 5)
    inverted = load(tmp_path, per_class=3, time=7, seed=1, invert=True)
    assert torch.equal(inverted.train.values, 255 - plain.train.values)
    assert load(tmp_path, encoder="latency").train.encoder == "latency"


def test_sixteen_bits_palettes_and_transparency(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    deep = np.full((3, 3), 200 * 256, dtype=np.uint16)
    clear = np.zeros((3, 3, 4), dtype=np.uint8)
    clear[0] = 255  # white and solid in the first row, nothing elsewhere
    for number in range(2):
        Image.fromarray(deep).save(tmp_path / "a" / f"{number}.png")
        Image.fromarray(clear).save(tmp_path / "b" / f"{number}.png")
    values = load(tmp_path, test_share=0.5).train.values
    assert values[0].tolist() == [200] * 9
    assert values[1].tolist() == [255] * 3 + [0] * 6


FORMATS = {
    "bin": (writers.nmnist, 34),
    "aedat": (writers.aedat2, 128),
    "3.aedat": (writers.aedat3, 128),
    "npy": (writers.gesture_npy, 128),
}


@pytest.mark.parametrize("ending", FORMATS)
def test_recordings_are_binned_as_counted_by_hand(tmp_path, ending):
    write, side = FORMATS[ending]
    rows = {}
    for label, name in enumerate(("left", "right")):
        (tmp_path / name).mkdir()
        for number in range(3):
            made = writers.random_events(60, side, seed=10 * label + number, span=20_000)
            write(tmp_path / name / f"{number}.{ending}", made)
            rows[label, number] = made
    data = load(tmp_path, time=5, span=20_000, downsample=4, test_share=0.34)
    assert isinstance(data.train, SpikeSamples)
    pixels = -(-side // 4)
    assert data.sample_shape == (2, pixels, pixels)
    expected = set()
    for (label, _), made in rows.items():
        block = np.zeros((5, 2, pixels, pixels), dtype=np.uint8)
        for t, x, y, p in made:
            moment = (t - made[0][0]) // 4000
            if moment < 5:
                block[moment, p, y // 4, x // 4] = 1
        expected.add((label, block.tobytes()))
    found = set()
    for part in (data.train, data.test):
        spikes = part.spikes(torch.arange(len(part)), torch.Generator()).numpy()
        found |= {(int(part.labels[n]), np.ascontiguousarray(spikes[:, n]).tobytes()) for n in range(len(part))}
    assert found == expected


def test_events_with_fields_are_those_of_rows(tmp_path):
    made = writers.random_events(40, 100, span=9_000)
    kind = np.dtype([("x", "<i2"), ("y", "<i2"), ("t", "<i8"), ("p", "?")])
    table = np.array([(x, y, t, p) for t, x, y, p in made], dtype=kind)
    for name in ("rows", "fields"):
        for label in ("a", "b"):
            (tmp_path / name / label).mkdir(parents=True)
            for number in range(2):
                path = tmp_path / name / label / f"{number}.npy"
                np.save(path, table) if name == "fields" else writers.gesture_npy(path, made)
    one, other = (load(tmp_path / name, time=6, test_share=0.5) for name in ("rows", "fields"))
    assert torch.equal(one.train.packed, other.train.packed)
    assert one.view == other.view


@pytest.mark.parametrize("ages", [{}, {"delays": [0, 1, 3]}])
def test_the_view_reads_a_single_file_as_the_folder_was(tmp_path, ages):
    for label, name in enumerate(("a", "b")):
        (tmp_path / name).mkdir()
        for number in range(2):
            writers.aedat2(tmp_path / name / f"{number}.aedat", writers.random_events(50, 30, seed=label, span=8000))
    data = load(tmp_path, time=4, crop=[0, 2, 20, 10], downsample=2, test_share=0.5, **ages)
    assert data.sample_shape == (2 * len(ages.get("delays", [0])), 5, 10)
    about = {"name": data.name, "time": 4, "inputs": data.train.inputs, "data": {}, "view": dict(data.view)}
    about["sample_shape"] = list(data.sample_shape)
    spikes = spikes_of_file(tmp_path / "b" / "0.aedat", about, torch.Generator())
    label = int((data.train.labels == 1).nonzero()[0])
    assert torch.equal(spikes, data.train.spikes(torch.tensor([label]), torch.Generator())[:, 0])
    lines = [f"{t} {x} {y} {p}" for t, x, y, p in writers.random_events(50, 30, seed=1, span=8000)]
    streamed = torch.stack(list(bins_of_lines(lines, about)))
    assert torch.equal(streamed[:4], spikes[: len(streamed)])


def test_a_file_whose_time_runs_backwards_is_sorted_if_the_folder_was(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(2):
            rows = writers.random_events(50, 30, seed=number, span=8000)
            writers.aedat2(tmp_path / name / f"{number}.aedat", rows[1:] + rows[:1])
    data = load(tmp_path, time=4, test_share=0.5, sort=True)
    about = {"name": data.name, "time": 4, "inputs": data.train.inputs, "data": {}, "view": dict(data.view)}
    about["sample_shape"] = list(data.sample_shape)
    seen = [
        part.spikes(torch.tensor([place]), torch.Generator())[:, 0]
        for part in (data.train, data.test)
        for place in range(len(part))
    ]
    spikes = spikes_of_file(tmp_path / "b" / "0.aedat", about, torch.Generator())
    assert any(torch.equal(spikes, each) for each in seen)


def test_what_is_wrong_is_said(tmp_path):
    def refused(sentence, root=tmp_path, **options):
        with pytest.raises(UserError, match=sentence):
            load(root, **options)

    with pytest.raises(UserError, match="Name a folder of your own"):
        catalogue.load("folder")
    refused("is not a folder", tmp_path / "nowhere")
    refused("has 0 sub-folders")
    (tmp_path / "cat").mkdir()
    refused("has 1 sub-folders: put the files of each class, two classes at least")
    (tmp_path / "dog").mkdir()
    (tmp_path / "cat" / "notes.txt").write_text("no picture")
    refused("cat holds no pictures")
    pictures(tmp_path)
    refused("span is not an option for pictures", span=3)
    refused("size must be one whole number", size=[1, 2, 3])
    refused("test_share must lie between 0 and 1", test_share=1.0)
    Image.fromarray(np.zeros((7, 9), dtype=np.uint8)).save(tmp_path / "dog" / "7.png")
    refused(r"dog/7.png has 7×9 pixels, but .*0.png 6×9: bring all to one size with --options size=28")
    (tmp_path / "dog" / "7.png").write_bytes(b"no picture")
    refused("7.png cannot be read as a picture")
    (tmp_path / "dog" / "7.png").unlink()
    writers.nmnist(tmp_path / "dog" / "7.bin", writers.random_events(5, 30))
    refused("holds files of two kinds, such as .*png and .*bin")
    (tmp_path / "dog" / "7.bin").unlink()
    Image.fromarray(np.zeros((6, 9), dtype=np.uint8)).save(tmp_path / "dog" / "7.tif")
    assert len(load(tmp_path).train) == 12  # other files are passed over
    (tmp_path / "dog" / "7.png").write_bytes((tmp_path / "dog" / "7.tif").read_bytes())
    refused("cannot be read as a picture")  # and no other format is opened, whatever its name
    (tmp_path / "test").mkdir()
    (tmp_path / "train").mkdir()
    refused("holds a folder train, but also")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"span": "x"}, "The option span of the data set 'folder' must be a whole number, but is 'x'."),
        ({"span": True}, "span .* must be a whole number, but is True"),
        ({"span": -5}, r"span must lie in \[1, "),
        ({"downsample": 1.5}, "downsample .* must be a whole number, but is 1.5"),
        ({"per_class": 0}, r"per_class must lie in \[1, inf\), but is 0"),
        ({"test_share": "x"}, "test_share .* must be a number, but is 'x'"),
        ({"crop": 5}, r"crop is left, top, width and height within 34×34, but is \[5\]"),
        ({"crop": ["a", 0, 8, 8]}, "crop .* must be a whole number, but is 'a'"),
        ({"crop": [0, 0, 8.5, 8]}, "crop .* must be a whole number, but is 8.5"),
        ({"sort": "x"}, "sort .* must be true or false, but is 'x'"),
        ({"encoder": "morse"}, "encoder .* must be one of rate, latency, but is 'morse'"),
    ],
)
def test_options_of_another_kind_or_beyond_their_range_are_refused(tmp_path, options, sentence):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(2):
            writers.nmnist(tmp_path / name / f"{number}.bin", writers.random_events(40, 30, seed=number, span=8000))
    with pytest.raises(UserError, match=sentence):
        load(tmp_path, **options)
    sound = load(tmp_path, test_share=0.5, crop=np.array([0, 0, 8, 6]), downsample=2.0, per_class=None)
    assert sound.sample_shape == (2, 3, 4)
    path = tmp_path / "a" / "0.bin"
    assert np.array_equal(read_events(str(path)).t, read_events(path).t)


@pytest.mark.parametrize(
    ("option", "flag"), [("root", "--data"), ("time", "--time"), ("seed", "--seeds"), ("name", "--dataset")]
)
def test_what_has_a_flag_of_its_own_is_no_option_of_the_data(tmp_path, option, flag):
    pictures(tmp_path)
    asked = DataOptions(name="folder", root=str(tmp_path), options={option: 5})
    with pytest.raises(UserError, match=f"--options takes no {option}: .*{flag}"):
        load_data(experiment("folder"), asked)


def test_large_pictures_need_a_size(tmp_path):
    pictures(tmp_path, count=2, side=(200, 200))
    with pytest.raises(UserError, match="make them smaller with --options size=28"):
        load(tmp_path)
    assert load(tmp_path, size=10, test_share=0.5).sample_shape == (10, 10)


MAGIC4 = b"#!AER-DAT4.0\r\n"
EVENT4 = np.dtype([("t", "<u8"), ("x", "<u2"), ("y", "<u2"), (("p", "on"), "?")])


class Decoder:
    """Stands in for the one of the package aedat: the file holds, behind its magic, rows as `EVENT4` has them."""

    def __init__(self, path):
        with open(path, "rb") as stream:
            body = stream.read()[len(MAGIC4) :]
        if len(body) % EVENT4.itemsize:
            raise RuntimeError("unexpected end")
        self.rows = np.frombuffer(body, dtype=EVENT4)

    def id_to_stream(self):
        return {0: {"type": "frame", "width": 9, "height": 9}, 1: {"type": "events", "width": 20, "height": 16}}

    def __iter__(self):
        yield {"stream_id": 0, "frame": {}}
        for half in np.array_split(self.rows, 2):
            yield {"stream_id": 1, "events": half}


def aedat4(path, rows):
    path.write_bytes(MAGIC4 + np.array([(t, x, y, p) for t, x, y, p in rows], dtype=EVENT4).tobytes())


def test_aedat4_goes_through_its_package(tmp_path, monkeypatch):
    rows = writers.random_events(60, 16, span=20_000)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for number in range(2):
            aedat4(tmp_path / name / f"{number}.aedat4", rows)
    monkeypatch.setitem(sys.modules, "aedat", None)  # not installed
    with pytest.raises(UserError, match=r"AEDAT 4 needs the package aedat: pip install 'bayspike\[aedat4\]'"):
        load(tmp_path)
    monkeypatch.setitem(sys.modules, "aedat", SimpleNamespace(Decoder=Decoder))
    data = load(tmp_path, time=5, span=20_000, test_share=0.5)
    assert data.sample_shape == (2, 16, 20)
    block = np.zeros((5, 2, 16, 20), dtype=np.uint8)
    for t, x, y, p in rows:
        if (t - rows[0][0]) // 4000 < 5:
            block[(t - rows[0][0]) // 4000, p, y, x] = 1
    assert np.array_equal(data.train.spikes(torch.tensor([0]), torch.Generator())[:, 0], block.reshape(5, -1))

    path = tmp_path / "a" / "0.aedat4"
    for contents, sentence in (
        (path.read_bytes()[:-1], "damaged or cut short"),
        (b"#!AER-DAT3.1", "does not begin an AEDAT 4.0 header"),
        (MAGIC4, "holds no events"),
    ):
        path.write_bytes(contents)
        with pytest.raises(UserError, match=sentence):
            read_events(path)
    aedat4(path, [(5, 1, 1, 0), (3, 1, 1, 0)])
    with pytest.raises(UserError, match="time runs backwards at event 1"):
        read_events(path)
    assert read_events(path, sort=True).t.tolist() == [3, 5]
    aedat4(path, [(5, 20, 1, 0)])
    with pytest.raises(UserError, match="event 0 lies outside the 20×16 sensor"):
        read_events(path)


def test_only_the_named_place_is_searched(tmp_path, monkeypatch, real_data):
    assert catalogue.place_of("poker_dvs", None) == real_data / "poker_dvs"
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"was not found in \S+empty/poker_dvs\."):
        catalogue.load("poker_dvs", root=tmp_path / "empty")
    with pytest.raises(UserError, match="is not a folder"):
        catalogue.load("poker_dvs", root=tmp_path / "gone")
    assert len(catalogue.load("poker_dvs", root=str(real_data)).train) > 0  # a place may be a plain string
