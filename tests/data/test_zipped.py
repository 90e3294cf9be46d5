"""Recordings inside zips: the same as beside them, and nothing that a hostile zip could make of it."""

import io
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
import writers

from bayspike.data import catalogue
from bayspike.data.files.zipped import Archives, members_of
from bayspike.data.inputs import spikes_of_file
from bayspike.data.sets import dvs_gesture, nmnist
from bayspike.errors import UserError


@pytest.fixture(autouse=True)
def no_other_places(monkeypatch, tmp_path):
    monkeypatch.setattr("bayspike.data.places.user_cache_path", lambda name: tmp_path / "cache")
    monkeypatch.delenv("BAYSPIKE_DATA", raising=False)


def zip_of(path, files, how=zipfile.ZIP_LZMA):
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def nmnist_files(part, per_class, first):
    files = {}
    with tempfile.TemporaryDirectory() as folder:
        for digit in range(10):
            for number in range(per_class):
                path = Path(folder) / "one.bin"
                writers.nmnist(path, writers.random_events(40, 34, seed=1000 * digit + number + first))
                files[f"{part}/{digit}/{first + number:05}.bin"] = path.read_bytes()
    return files


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_nmnist_in_zips_is_nmnist_in_folders(how, tmp_path, monkeypatch):
    monkeypatch.setattr(nmnist, "_WHOLE_TEST_PART", 2)
    train, test = nmnist_files("Train", 5, 1), nmnist_files("Test", 2, 20_000)
    for name, content in {**train, **test}.items():
        place = tmp_path / "plain" / "nmnist" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    zip_of(tmp_path / "zipped" / "nmnist" / "Train.zip", train, how)
    zip_of(tmp_path / "zipped" / "nmnist" / "Test.zip", test, how)
    plain, zipped = (nmnist.load(root=tmp_path / each, time=10, downsample=2) for each in ("plain", "zipped"))
    assert torch.equal(plain.train.packed, zipped.train.packed)
    assert torch.equal(plain.test.packed, zipped.test.packed)
    about = "N-MNIST, 50 + 20 recordings, all taken from the official training set, none from its test set"
    assert plain.about == zipped.about == about
    chosen = nmnist.load(root=tmp_path / "zipped", time=10, downsample=2, validation=True)
    assert (len(chosen.train), len(chosen.test)) == (40, 10)
    known = {each.numpy().tobytes() for each in zipped.train.packed}
    assert all(each.numpy().tobytes() in known for each in chosen.test.packed)
    assert "for choosing settings" in chosen.about


def test_the_larger_set_is_looked_for_first(tmp_path):
    (tmp_path / "nmnist" / "Train").mkdir(parents=True)
    zip_of(tmp_path / "large" / "nmnist" / "Train.zip", nmnist_files("Train", 1, 1))
    assert nmnist.find_folder(tmp_path) == tmp_path / "large" / "nmnist"


def gesture_files(users, classes, polarity=None, span=1_499_500):
    """The pre-cut form: rows x, y, p, t with t in ms."""
    files = {}
    for user in users:
        for light in ("lab", "natural"):
            for number in classes:
                rows = writers.random_events(600, 128, seed=100 * user + number + len(light), span=span)
                table = [(x, y, p if polarity is None else polarity, t // 1000) for t, x, y, p in rows]
                name = f"ibmGestureTrain/user{user:02}_{light}/{number}.npy"
                files[name] = npy(np.array(table, dtype=np.int16))
    return files


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_gestures_in_a_zip_with_merged_polarity(tmp_path):
    users = (12, 13, 15, 16)
    zip_of(tmp_path / "dvs_gesture" / "merged.zip", {**gesture_files(users, (0, 10), 1), "index.csv": b"file,user\n"})
    zip_of(tmp_path / "dvs_gesture" / "few.zip", gesture_files((1, 17), (0,)))
    data = dvs_gesture.load(root=tmp_path)
    assert data.about == "DVS-Gesture, 10 recordings of users 12–13, 15–16, polarity merged"
    assert data.sample_shape == (1, 32, 32)
    assert len(data.train) == 3 * 2 * 3  # three users, two gestures, three pieces of half a second
    assert (len(data.test), len(data.foreign), data.test.time) == (2, 2, 150)
    whole = dvs_gesture.load(root=tmp_path, foreign_users="all")
    assert len(whole.foreign) == 8
    assert len(dvs_gesture.load(root=tmp_path, archive="few.zip", foreign_light="lab").test) == 1
    with pytest.raises(UserError, match="has no sessions to train on: users 1–12 train"):
        dvs_gesture.load(root=tmp_path, validation=True, held_back_users=1)


def test_users_for_validation_and_for_calibration_take_no_part_in_learning(tmp_path):
    zip_of(tmp_path / "dvs_gesture" / "merged.zip", gesture_files((1, 12, 14, 15, 16), (0, 3), 1))
    data = dvs_gesture.load(root=tmp_path, validation=True, held_back_users=1)
    assert "users 1, 12, 14–15" in data.about
    assert (len(data.train), len(data.held_back), len(data.test)) == (6, 2, 4)
    seen = {each.numpy().tobytes() for each in dvs_gesture.load(root=tmp_path).test.packed}
    assert not any(each.numpy().tobytes() in seen for each in data.test.packed)


def test_folds_take_turns_and_every_user_who_trains_validates_once(tmp_path):
    zip_of(tmp_path / "dvs_gesture" / "merged.zip", gesture_files(range(1, 17), (0,), 1))
    last = dvs_gesture.load(root=tmp_path, validation=True, foreign_light="none")
    validated = []
    for fold in range(1, 6):
        options = {"validation": True, "fold": fold, "foreign_light": "none", "held_back_users": 1, "windows": 1}
        data = dvs_gesture.load(root=tmp_path, **options)
        assert "users 1–15" in data.about
        lights = len(data.held_back)  # one user, one gesture
        assert (len(data.test), len(data.train)) == (3 * lights, 11 * lights)
        learnt = {each.numpy().tobytes() for each in data.train.packed}
        validated += [each.numpy().tobytes() for each in data.test.packed]
        assert not learnt & set(validated[-len(data.test) :])
    assert len(set(validated)) == len(validated)
    assert validated[-len(last.test) :] == [each.numpy().tobytes() for each in last.test.packed]
    with pytest.raises(UserError, match="fold says which users validate"):
        dvs_gesture.load(root=tmp_path, fold=2)


def test_gestures_never_taught_are_the_foreign_ones(tmp_path):
    zip_of(tmp_path / "dvs_gesture" / "all.zip", gesture_files((1, 16), (0, 3, 10)))
    data = dvs_gesture.load(root=tmp_path, foreign_light="none", untaught=[3], bin_ms=20, side=16, test_time=75)
    assert data.sample_shape == (2, 16, 16)
    assert set(data.train.labels.tolist()) == set(data.test.labels.tolist()) == {0, 10}
    assert data.foreign.labels.tolist() == [3, 3]
    assert data.foreign_about == "gestures never taught: right arm clockwise"
    # with a light left out of it, too: neither known people nor that light are among the foreign ones
    light = dvs_gesture.load(root=tmp_path, foreign_light="lab", foreign_users="all", untaught=[3], test_time=75)
    assert light.foreign.labels.tolist() == [3]
    assert len(light.test) == 2
    with pytest.raises(UserError, match="untaught must name gestures"):
        dvs_gesture.load(root=tmp_path, untaught=[11])
    alone = catalogue.load("dvs_gesture", root=tmp_path, foreign_light=None, untaught=3, test_time=75)
    assert alone.foreign.labels.tolist() == [3, 3]
    for options, sentence in (
        ({"untaught": "x"}, "The option untaught of the data set 'dvs_gesture' must be a whole number"),
        ({"archive": 5}, "The option archive of the data set 'dvs_gesture' must be a word, but is 5"),
        ({"test_time": 10**12}, r"test_time must lie in \[1, 100000\]"),
    ):
        with pytest.raises(UserError, match=sentence):
            catalogue.load("dvs_gesture", root=tmp_path, **options)


def test_in_a_mirror_left_is_right_and_only_what_is_learnt_is_seen_so(tmp_path):
    zip_of(tmp_path / "dvs_gesture" / "all.zip", gesture_files((1, 15, 16), (0, 1, 2, 3, 6), 1))
    options = {"side": 16, "foreign_light": "none", "windows": 1, "held_back_users": 1}
    plain, mirrored = (dvs_gesture.load(root=tmp_path, mirror=mirror, **options) for mirror in (False, True))
    for part in ("test", "held_back"):
        assert torch.equal(getattr(plain, part).packed, getattr(mirrored, part).packed)
    assert len(mirrored.train) == 2 * len(plain.train)
    in_mirror = {0: 0, 1: 2, 2: 1, 3: 6, 6: 3}
    shown = [plain.train.spikes(torch.tensor([i]), torch.Generator())[:, 0] for i in range(len(plain.train))]
    expected = set()
    for label, spikes in zip(plain.train.labels.tolist(), shown, strict=True):
        flipped = spikes.reshape(-1, 16, 16).flip(-1).reshape(spikes.shape)
        expected |= {(label, spikes.numpy().tobytes()), (in_mirror[label], flipped.numpy().tobytes())}
    everything = torch.arange(len(mirrored.train))
    found = mirrored.train.spikes(everything, torch.Generator())
    seen = {(int(mirrored.train.labels[i]), found[:, i].numpy().tobytes()) for i in everything}
    assert seen == expected
    # a wave that is never taught is not taught as the other one's image either
    apart = dvs_gesture.load(root=tmp_path, mirror=True, untaught=[2], **options)
    assert apart.train.labels.bincount(minlength=11).tolist()[:4] == [4, 2, 0, 4]
    assert catalogue.load("dvs_gesture", root=tmp_path, mirror=True, **options).about == plain.about


def test_single_files_are_seen_as_the_network_was_taught(tmp_path):
    files = gesture_files((1, 16), (0,), 1)
    zip_of(tmp_path / "dvs_gesture" / "merged.zip", files)
    options = {"bin_ms": 20, "side": 16}
    data = dvs_gesture.load(root=tmp_path, test_time=75, **options)
    one = tmp_path / "0.npy"
    one.write_bytes(files["ibmGestureTrain/user16_lab/0.npy"])
    about = {
        "name": "dvs_gesture", "time": data.train.time, "inputs": 256, "sample_shape": [1, 16, 16],
        "data": {"options": options},
    }  # fmt: skip
    spikes = spikes_of_file(one, about, torch.Generator())
    expected = data.test.spikes(torch.tensor([0]), torch.Generator())[:, 0]
    assert torch.equal(spikes, expected[: len(spikes)])
    assert len(spikes) in (74, 75)


def test_damage_and_bombs_are_refused(tmp_path):
    good = zip_of(tmp_path / "good.zip", {"a.bin": b"\0" * 5000})
    with Archives() as archives:
        assert archives.read(good, "a.bin") == b"\0" * 5000
        with pytest.raises(UserError, match="more than the 100 that are read"):
            archives.read(good, "a.bin", limit=100)
        with pytest.raises(UserError, match=r"the recording b\.bin is damaged"):
            archives.read(good, "b.bin")
    content = good.read_bytes()
    greedy = tmp_path / "greedy.zip"
    start = 30 + len("a.bin")  # of the member's data: version, length, settings, size of the dictionary
    greedy.write_bytes(content[: start + 5] + struct.pack("<I", 2**31) + content[start + 9 :])
    with pytest.raises(UserError, match=r"asks for an LZMA dictionary of 2,147,483,648"), Archives() as archives:
        archives.read(greedy, "a.bin")
    (tmp_path / "none.zip").write_bytes(b"PK but no archive")
    with pytest.raises(UserError, match=r"none\.zip is damaged or cut short"):
        members_of(tmp_path / "none.zip")


@pytest.mark.parametrize("how", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_damaged_zips_are_refused_or_sound(how, tmp_path):
    content = bytes(np.random.default_rng(0).integers(0, 30, 900, dtype=np.uint8))
    path = zip_of(tmp_path / "one.zip", {"Train/3/00001.bin": content}, how)
    good, random, refused = path.read_bytes(), np.random.default_rng(1), []
    for _ in range(500):
        bad = bytearray(good)
        for place in random.integers(0, len(bad), random.integers(1, 4)):
            bad[place] = random.integers(0, 256)
        path.write_bytes(bytes(bad))
        try:
            with Archives() as archives:
                for member in members_of(path):
                    assert archives.read(path, member) == content
        except UserError as error:
            refused.append(str(error))
    assert len(refused) > 200
    assert all("one.zip" in sentence for sentence in refused)
