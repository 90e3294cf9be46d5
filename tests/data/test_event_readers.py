import struct

import numpy as np
import pytest
import writers

from bayspike.data.files.aedat import read_aedat2, read_aedat3
from bayspike.data.files.event_files import read_gesture_npy, read_nmnist
from bayspike.data.files.events import read_bytes
from bayspike.errors import UserError

FORMATS = {
    "aedat2": (writers.aedat2, read_aedat2, 128),
    "aedat3": (writers.aedat3, read_aedat3, 128),
    "nmnist": (writers.nmnist, read_nmnist, 34),
    "npy": (writers.gesture_npy, read_gesture_npy, 128),
}


def rows_of(events):
    return list(zip(events.t.tolist(), events.x.tolist(), events.y.tolist(), events.p.tolist(), strict=True))


@pytest.mark.parametrize("name", FORMATS)
def test_a_written_file_is_read_back(name, tmp_path):
    write, read, size = FORMATS[name]
    rows = writers.random_events(777, size)
    events = read(write(tmp_path / "a.npy", rows))
    assert rows_of(events) == rows
    assert rows_of(read(str(tmp_path / "a.npy"))) == rows
    assert (events.width, events.height) == (size, size)
    assert (events.t.dtype, events.x.dtype, events.p.dtype) == (np.int64, np.int16, np.uint8)


@pytest.mark.parametrize("name", FORMATS)
def test_backward_time_is_refused_with_its_place_or_sorted(name, tmp_path):
    write, read, _ = FORMATS[name]
    rows = [(10, 1, 1, 0), (30, 2, 2, 1), (20, 3, 3, 1), (40, 4, 4, 0)]
    path = write(tmp_path / "a.npy", rows)
    start = {"aedat2": len(writers.HEADER2), "aedat3": len(writers.HEADER3) + 28, "nmnist": 0, "npy": 128}
    each = {"aedat2": 8, "aedat3": 8, "nmnist": 5, "npy": 32}
    with pytest.raises(UserError, match=rf"a\.npy: time runs backwards at byte {start[name] + 2 * each[name]} "):
        read(path)
    assert rows_of(read(path, sort=True)) == sorted(rows)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_without_events_is_refused(name, tmp_path):
    write, read, _ = FORMATS[name]
    with pytest.raises(UserError, match=r"a\.npy"):
        read(write(tmp_path / "a.npy", []))


@pytest.mark.parametrize("name", FORMATS)
def test_every_truncation_inside_an_event_is_refused(name, tmp_path):
    write, read, size = FORMATS[name]
    path = write(tmp_path / "a.npy", writers.random_events(5, size))
    data = path.read_bytes()
    for missing in (1, 3, 4):
        path.write_bytes(data[:-missing])
        with pytest.raises(UserError, match=r"a\.npy is cut short.* byte"):
            read(path)


@pytest.mark.parametrize("name", ["aedat2", "aedat3", "npy"])
def test_a_foreign_header_is_refused(name, tmp_path):
    _, read, _ = FORMATS[name]
    path = tmp_path / "a.npy"
    path.write_bytes(b"\x89PNG and more that is no event file")
    with pytest.raises(UserError, match="byte 0 does not begin"):
        read(path)


def test_events_outside_the_sensor_are_refused_with_their_place(tmp_path):
    path = writers.nmnist(tmp_path / "a.bin", [(1, 2, 3, 0), (2, 34, 3, 0)])
    with pytest.raises(UserError, match="byte 5 lies at x=34, y=3, outside the 34×34"):
        read_nmnist(path)
    path = writers.aedat3(tmp_path / "a.aedat", [(1, 2, 3, 0), (2, 4, 200, 0)])
    with pytest.raises(UserError, match=f"byte {len(writers.HEADER3) + 28 + 8} lies at x=4, y=200"):
        read_aedat3(path)
    path = tmp_path / "b.aedat"
    path.write_bytes(writers.HEADER2 + struct.pack(">IIII", 6, 1, 1 << 15, 2))
    with pytest.raises(UserError, match=f"0x8000 at byte {len(writers.HEADER2) + 8}"):
        read_aedat2(path)


def test_nmnist_overflow_rows_add_to_the_time(tmp_path):
    path = writers.nmnist(
        tmp_path / "a.bin", [(5, 1, 1, 0), (0, 0, 240, 0), (7, 2, 2, 1), (0, 0, 240, 1), (9, 3, 3, 1)]
    )
    assert rows_of(read_nmnist(path)) == [(5, 1, 1, 0), (7 + 8192, 2, 2, 1), (9 + 16384, 3, 3, 1)]


def test_aedat3_skips_other_packets_and_invalid_events_and_adds_the_overflow(tmp_path):
    path = tmp_path / "a.aedat"
    rows = [(10, 1, 2, 1), (11, 3, 4, 0), (12, 5, 6, 1)]
    path.write_bytes(
        writers.HEADER3
        + writers.packet3(rows, invalid=(1,))
        + writers.packet3([(0, 9, 9, 0)], kind=0)
        + writers.packet3([])
        + writers.packet3([(3, 7, 8, 0)], overflow=2)
    )
    assert rows_of(read_aedat3(path)) == [rows[0], rows[2], (3 + 2 * 2**31, 7, 8, 0)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((1, 1, 8, 4, 0, 2**31, 2**31, 5), "announces 2,147,483,648 events"),
        ((1, 1, 12, 4, 0, 1, 1, 1), "must have 8 bytes"),
        ((1, 1, 8, 4, 0, 1, 1, 2), "damaged"),
        ((1, 1, 0, 4, 0, 1, 1, 1), "damaged"),
    ],
)
def test_aedat3_absurd_packets_are_refused(fields, message, tmp_path):
    path = tmp_path / "a.aedat"
    path.write_bytes(writers.HEADER3 + struct.pack("<HHIIIIII", *fields) + bytes(64))
    with pytest.raises(UserError, match=f"byte {len(writers.HEADER3)} .*{message}"):
        read_aedat3(path)


def test_npy_never_unpickles_and_never_allocates_what_the_file_cannot_hold(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.array([[{}, 1, 2, 3]], dtype=object), allow_pickle=True)
    with pytest.raises(UserError, match="Python objects"):
        read_gesture_npy(path)
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999999, 4), }\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
    with pytest.raises(UserError, match="319,999,999,999,968 bytes of events are announced"):
        read_gesture_npy(path)
    np.save(path, np.zeros((3, 5)))
    with pytest.raises(UserError, match="rows of 4"):
        read_gesture_npy(path)
    np.save(path, np.array([[1, 1, 1, 5.0], [1, 1, 1, np.nan]]))
    with pytest.raises(UserError, match="event at byte 160"):
        read_gesture_npy(path)


def test_npy_in_fortran_order_is_read(tmp_path):
    path = tmp_path / "a.npy"
    rows = np.array([[1, 2, 0, 5.0], [3, 4, 1, 6.25]])
    np.save(path, np.asfortranarray(rows))
    assert rows_of(read_gesture_npy(path)) == [(5000, 1, 2, 0), (6250, 3, 4, 1)]


def test_missing_folders_and_oversized_files_are_refused(tmp_path):
    for read in (read_aedat2, read_aedat3, read_nmnist, read_gesture_npy):
        with pytest.raises(UserError, match="not a file"):
            read(tmp_path)
        with pytest.raises(UserError, match="not a file"):
            read(tmp_path / "absent")
    (tmp_path / "big").write_bytes(bytes(11))
    with pytest.raises(UserError, match="11 bytes, more than the 10"):
        read_bytes(tmp_path / "big", limit=10)
