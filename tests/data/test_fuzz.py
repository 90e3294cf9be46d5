"""Readers on damaged files: whatever the bytes, sound events or one sentence that names the file.

14,000 random truncations, bit flips and splices of small valid files, and files that hypothesis invents.
"""

import gzip
import struct
import zipfile

import numpy as np
import pytest
import writers
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bayspike.data.files.aedat import read_aedat2, read_aedat3
from bayspike.data.files.event_files import read_gesture_npy, read_nmnist
from bayspike.data.files.events import Events
from bayspike.data.files.idx import read_idx
from bayspike.data.files.zipped import Archives
from bayspike.data.sets import mnist_dvs
from bayspike.data.simulated.cache import cache_path, cached
from bayspike.errors import UserError

CASES = 2_000


def write_idx(path, rows):
    path.write_bytes(struct.pack(">IIII", 0x0803, 2, 5, 5) + bytes(50))
    return path


def write_idx_gz(path, rows):
    path.write_bytes(gzip.compress(struct.pack(">IIII", 0x0803, 2, 5, 5) + bytes(range(50))))
    return path


READERS = {
    "aedat2": (writers.aedat2, read_aedat2, "a.aedat"),
    "aedat3": (lambda path, rows: writers.aedat3(path, rows, per_packet=4), read_aedat3, "a.aedat"),
    "nmnist": (writers.nmnist, read_nmnist, "a.bin"),
    "npy": (writers.gesture_npy, read_gesture_npy, "a.npy"),
    "idx": (write_idx, lambda path: read_idx(path, 3), "images"),
    "idx.gz": (write_idx_gz, lambda path: read_idx(path, 3), "images.gz"),
}


def damaged(data: bytes, random: np.random.Generator) -> bytes:
    """Cut, flip bits, repeat or overwrite a stretch: up to three of these."""
    for _ in range(random.integers(1, 4)):
        if not data:
            return data
        at = int(random.integers(0, len(data)))
        kind = random.integers(0, 4)
        if kind == 0:
            data = data[:at]
        elif kind == 1:
            changed = bytearray(data)
            changed[at] ^= 1 << int(random.integers(0, 8))
            data = bytes(changed)
        elif kind == 2:
            data = data[:at] + data[at // 2 :]
        else:
            data = data[:at] + random.bytes(int(random.integers(1, 9))) + data[at + 4 :]
    return data


def judge(read, path, data: bytes) -> bool:
    """True if the file was accepted; anything but sound contents or a `UserError` that names it fails."""
    path.write_bytes(data)
    try:
        result = read(path)
    except UserError as error:
        sentence = str(error)
        assert path.name in sentence
        assert "byte" in sentence or "unpacked" in sentence
        assert "\n" not in sentence
        return False
    if isinstance(result, Events):
        assert len(result) > 0
        assert (np.diff(result.t) >= 0).all()
        assert ((result.x >= 0) & (result.x < result.width)).all()
        assert ((result.y >= 0) & (result.y < result.height)).all()
        assert (result.p <= 1).all()
        assert len(result) <= len(data)
    return True


@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_refused_or_sound(name, tmp_path):
    write, read, file = READERS[name]
    path = write(tmp_path / file, writers.random_events(12, 34))
    good = path.read_bytes()
    assert judge(read, path, good)
    random = np.random.default_rng(7)
    accepted = sum(judge(read, path, damaged(good, random)) for _ in range(CASES))
    assert 0 < accepted < CASES or name == "idx.gz"  # some damage cannot be seen; most of it must be


def test_damaged_archives_are_refused_or_sound(tmp_path, monkeypatch):
    """The original zips of MNIST-DVS, read without being unpacked."""
    monkeypatch.delenv("BAYSPIKE_DATA", raising=False)
    recording = writers.aedat2(tmp_path / "one.aedat", writers.random_events(12, 34)).read_bytes()
    path = tmp_path / "mnist_dvs" / "grabbed_data3.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("grabbed_data3/scale4/mnist_3_scale04_0001.aedat", recording)
    good, random, sentences = path.read_bytes(), np.random.default_rng(1), []
    for _ in range(1_000):
        path.write_bytes(damaged(good, random))
        try:
            found = mnist_dvs.find_recordings(tmp_path)
            for place, member in found[3] if found and 3 in found else []:
                with Archives() as archives:
                    assert archives.read(place, member) == recording
        except UserError as error:
            sentences.append(str(error))
    assert 300 < len(sentences) < 1_000
    assert all("grabbed_data3.zip" in sentence for sentence in sentences)


def test_damaged_caches_are_refused_or_sound(tmp_path):
    made = {"packed": np.arange(60, dtype=np.uint8).reshape(3, 4, 5), "labels": np.arange(3)}
    path = cache_path("toy", {}, tmp_path)
    cached("toy", {}, tmp_path, lambda: made, list(made))
    good, random, sentences = path.read_bytes(), np.random.default_rng(2), []
    for _ in range(1_000):
        path.write_bytes(damaged(good, random))
        try:
            read = cached("toy", {}, tmp_path, lambda: made, list(made))
            assert all(np.array_equal(read[key], made[key]) for key in read)
        except UserError as error:
            sentences.append(str(error))
    assert 300 < len(sentences) < 1_000
    assert all(path.name in sentence for sentence in sentences)


@pytest.mark.parametrize("name", READERS)
def test_files_that_hypothesis_invents_are_refused_or_sound(name, tmp_path):
    write, read, file = READERS[name]
    path = write(tmp_path / file, writers.random_events(3, 34))
    start = path.read_bytes()[:80]

    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(kept=st.integers(0, len(start)), tail=st.binary(max_size=120))
    def check(kept, tail):
        judge(read, path, start[:kept] + tail)

    check()
