"""Files from strangers: pictures, event lines, arrays and recordings that were made to do harm."""

import io
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from bayspike.data.delays import Silence
from bayspike.data.files.event_files import read_nmnist
from bayspike.data.files.pictures import LARGEST_PICTURE, read_picture
from bayspike.data.inputs import bins_of_lines, spikes_of_file, view_of
from bayspike.data.simulated.cache import cache_path, cached
from bayspike.errors import UserError
from bayspike.storage.arrays import read_arrays, write_arrays

NMNIST: dict[str, Any] = {
    "name": "nmnist", "time": 30, "inputs": 2312, "sample_shape": [2, 34, 34], "data": {"options": {}},
}  # fmt: skip


def picture(kind: str, side: int = 8) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray((np.arange(side * side).reshape(side, side) % 256).astype(np.uint8)).save(buffer, kind)
    return buffer.getvalue()


# --- pictures ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["PNG", "BMP", "GIF", "PPM"])
def test_pictures_are_read_from_files_and_from_memory(kind: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(picture(kind))
    expected = (np.arange(64).reshape(8, 8) % 256).astype(np.uint8)
    for source in (tmp_path / "a", picture(kind)):
        assert np.array_equal(read_picture(source), expected)


@pytest.mark.parametrize("kind", ["EPS", "TIFF", "WEBP", "ICO", "PCX", "SGI", "TGA"])
def test_other_kinds_are_not_even_opened(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = picture(kind)
    monkeypatch.setattr(Image, "open", lambda *given, **named: pytest.fail("it was opened"))
    with pytest.raises(UserError, match="neither PNG, JPEG, BMP, GIF nor PGM"):
        read_picture(data)


@pytest.mark.parametrize(
    "data",
    [
        b"P5 8 8 255\n",
        b"P5 8 8 0\n" + bytes(64),
        b"P5 99999999999 1 255\n",
        b"P2 8 x 255\n",
        b"P5 -8 8 255\n" + bytes(64),
        b"BM" + bytes(60),
        b"GIF89a" + bytes(3),
        b"\xff\xd8\xff\xe0" + bytes(30),
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 8, 8) + bytes(5),
        picture("PNG")[:45],
        picture("JPEG")[:200],
        b"",
    ],
)
def test_damaged_pictures_are_one_sentence(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.png"
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"bad\.png cannot be read as a picture|bad\.png has"):
        read_picture(path, (8, 8))


def test_the_size_is_looked_at_before_the_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "huge.png"
    with path.open("wb") as stream:
        stream.truncate(3 * 2**30)  # takes no room on the disk
    monkeypatch.setattr(Path, "read_bytes", lambda path: pytest.fail("it was read"))
    about = {"name": "digits", "sample_shape": [28, 28], "time": 3, "inputs": 784}
    with pytest.raises(UserError, match="more than the"):
        spikes_of_file(path, about, torch.Generator())
    with pytest.raises(UserError, match="larger than"):
        read_picture(bytes(LARGEST_PICTURE + 1))


def test_a_picture_of_too_many_pixels_is_refused_before_it_is_decoded() -> None:
    header = struct.pack(">IIBBBBB", 6_000, 6_000, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I4s", 13, b"IHDR") + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    bomb = b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I4s", 0, b"IDAT") + struct.pack(">I", zlib.crc32(b"IDAT"))
    with pytest.raises(UserError, match="6000×6000 pixels"):
        read_picture(bomb)


# --- event lines ---------------------------------------------------------------------------------------------------


def test_a_time_in_the_far_future_is_refused() -> None:
    with pytest.raises(UserError, match="line 2: time leaps"):
        list(bins_of_lines(["5 1 1 1", f"{2**61} 1 1 1"], NMNIST))


def test_long_silence_is_one_item() -> None:
    found = list(bins_of_lines(["5 1 1 1", "3600000005 2 2 0"], NMNIST))
    assert isinstance(found[0], torch.Tensor)
    assert found[1] == Silence(3_600_000_000 // 10_000 - 1)
    assert int(found[2].sum()) == 1
    assert len(found) == 3


@pytest.mark.parametrize("line", [b"\xff\xfe 1 1 1", b"1 1 1", b"\x00", b"1 " * 1000, "١ 1 1 1".encode(), b"1e3 1 1 1"])
def test_lines_that_are_none_are_one_sentence(line: bytes) -> None:
    with pytest.raises(UserError, match="line 2"):
        list(bins_of_lines([b"5 1 1 1", line], NMNIST))


def test_a_bin_of_many_events_takes_no_more_room_than_its_channels() -> None:
    found = list(bins_of_lines((b"5 %d 3 1" % (i % 34) for i in range(50_000)), NMNIST))
    assert len(found) == 1
    assert isinstance(found[0], torch.Tensor)
    assert int(found[0].sum()) == 34


# --- arrays --------------------------------------------------------------------------------------------------------


def npz(path: Path, header: bytes, body: bytes = b"", method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.npy", header + body)
    return path


def npy_header(shape: tuple[int, ...], kind: str = "<f8") -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


@pytest.mark.parametrize("shape", [(2**40,), (2**62, 4), (10**30,), (3,)])
def test_a_header_of_terabytes_allocates_nothing(shape: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.npz cannot be read as arrays"):
        read_arrays(npz(tmp_path / "a.npz", npy_header(shape), bytes(8)))


def test_an_archive_that_unpacks_to_more_than_is_read_is_refused(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", npy_header((2**20,), "|u1"), bytes(2**20))
    assert path.stat().st_size < 5_000
    with pytest.raises(UserError, match="unpacks to more than"):
        read_arrays(path, limit=2**19)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(method: int, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="packed in a way"):
        read_arrays(npz(tmp_path / "a.npz", npy_header((1,)), bytes(8), method))


def test_damaged_archives_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    write_arrays(path, {"a": np.arange(40), "b": np.ones((2, 3))})
    good, random = path.read_bytes(), np.random.default_rng(0)
    for _ in range(500):
        bad = bytearray(good)
        for _ in range(3):
            bad[random.integers(len(bad))] = random.integers(256)
        path.write_bytes(bytes(bad))
        try:
            read_arrays(path)
        except UserError as error:
            assert "a.npz" in str(error)  # noqa: PT017


def test_a_cache_without_one_of_its_arrays_is_refused(tmp_path: Path) -> None:
    write_arrays(cache_path("toy", {}, tmp_path), {"packed": np.zeros(3)})
    with pytest.raises(UserError, match=r"toy-.*is damaged \(it holds packed\): delete the file"):
        cached("toy", {}, tmp_path, dict, ["packed", "labels"])


# --- large recordings ----------------------------------------------------------------------------------------------

PEAK = """
import resource, sys
from pathlib import Path
from bayspike.data.files.event_files import read_nmnist
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
events = read_nmnist(Path(sys.argv[1]))
print(len(events), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_large_recording_takes_little_more_than_its_events(tmp_path: Path) -> None:
    """13 bytes an event stay, and the 5 of the file."""
    path = tmp_path / "long.bin"
    count = 4_000_000
    rows = np.zeros((count, 5), np.uint8)
    rows[:, 2:] = (np.arange(count) // 4).astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:]
    path.write_bytes(rows.tobytes())
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    found, peak = map(int, done.stdout.split())
    assert found == count
    assert peak * 1024 < 22 * count


def test_counters_that_go_round_do_so_over_pieces_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bayspike.data.files import events

    rows = [(1, 1, 5), (0, 240, 0), (2, 2, 6), (0, 240, 0), (0, 240, 0), (3, 3, 7), (4, 4, 8)]
    path = tmp_path / "a.bin"
    path.write_bytes(b"".join(struct.pack(">BBBH", x, y, 0, t) for x, y, t in rows))
    whole = read_nmnist(path).t.tolist()
    monkeypatch.setattr(events, "PIECE", 2)
    assert read_nmnist(path).t.tolist() == whole == [5, 8192 + 6, 3 * 8192 + 7, 3 * 8192 + 8]


def test_a_stream_begins_with_its_first_event_whatever_the_clock_shows() -> None:
    """N-MNIST counts from 0; a camera's clock may have run for years."""
    lines = [(5, 1, 1, 1), (40_000, 2, 2, 0), (41_000, 3, 3, 1)]

    def bins(offset: int) -> list[Any]:
        return list(bins_of_lines([f"{t + offset} {x} {y} {p}" for t, x, y, p in lines], NMNIST))

    step = view_of(NMNIST).step
    for offset in (1000 * step, 1_700_000_000_000_000 // step * step):
        for one, other in zip(bins(0), bins(offset), strict=True):
            assert torch.equal(one, other) if isinstance(one, torch.Tensor) else one == other


def test_merged_pixels_are_known_from_what_the_network_sees() -> None:
    """A learner made for a data set has no options of its loader."""
    about = {"name": "nmnist", "time": 20, "data": {"options": {}}}
    assert [view_of({**about, "sample_shape": [2, -(-34 // factor)] * 2}).downsample for factor in range(1, 7)] == [
        *range(1, 7)
    ]
    gestures = {"name": "dvs_gesture", "time": 25, "data": {}, "sample_shape": [1, 32, 32]}
    assert (view_of(gestures).step, view_of(gestures).downsample) == (10_000, 4)
    assert view_of({**gestures, "view": {"bin_ms": 20}}).step == 20_000
