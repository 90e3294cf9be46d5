"""Readers of AEDAT 2.0 (jAER: MNIST-DVS, POKER-DVS) and AEDAT 3.1 (cAER: DVS-Gesture).

A file that is not sound is refused with one sentence that names it and the byte offset of the fault.
"""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayspike.data.files.events import PIECE, Collected, Events, checked, pieces, read_bytes
from bayspike.errors import UserError, require

_MAX_HEADER = 2**16
_END = b"#!END-HEADER\r\n"
_PACKET = struct.Struct("<HHIIIIII")
_POLARITY = 1


def read_aedat2(path: Path | str, *, sort: bool = False) -> Events:
    """A DVS128 recording: `#` lines, then `u32 address, u32 time in µs`, big-endian.

    Polarity is bit 0 of the address, x bits 1-7, y bits 8-14.
    """
    path = Path(path)
    return parse_aedat2(read_bytes(path), path, sort=sort)


def parse_aedat2(data: bytes, path: Path, *, sort: bool = False) -> Events:
    """`read_aedat2` for bytes that are in memory already; `path` is what errors call them."""
    _refuse_stub(path, data)
    require(
        data.startswith(b"#!AER-DAT2.0"),
        f"{path}: byte 0 does not begin an AEDAT 2.0 header (#!AER-DAT2.0); is it a file of another format?",
    )
    body = _end_of_comment_lines(path, data)
    rest = (len(data) - body) % 8
    if rest:
        raise UserError(f"{path} is cut short: the event at byte {len(data) - rest} has {rest} of its 8 bytes.")
    words = np.frombuffer(data, dtype=">u4", offset=body).reshape(-1, 2)
    found = Collected(len(words))
    for part in pieces(len(words)):
        address = words[part, 0].astype(np.uint32)
        foreign = address >> 15
        if foreign.any():
            first = int(np.argmax(foreign > 0))
            index = part.start + first
            raise UserError(
                f"{path}: the address {address[first]:#x} at byte {body + 8 * index} is none of a DVS128 sensor; "
                + ("bytes are missing before it." if index else "the file is damaged or of another camera.")
            )
        found.add(words[part, 1], (address >> 1) & 127, address >> 8, address & 1)
    return checked(path, found.events(128, 128), lambda index: body + 8 * index, sort=sort)


def read_aedat3(path: Path | str, *, width: int = 128, height: int = 128, sort: bool = False) -> Events:
    """An AEDAT 3.1 recording: a text header, then packets; only valid polarity events are kept.

    A packet is a 28-byte little-endian header and its events; other kinds of event (frames, IMU, ...) are
    passed over. A polarity event is `u32 data, u32 time`: of the data, bit 0 says valid, bit 1 is the polarity,
    bits 2-16 are y and bits 17-31 x.
    """
    path = Path(path)
    data = read_bytes(path)
    _refuse_stub(path, data)
    require(
        data.startswith(b"#!AER-DAT3.1"),
        f"{path}: byte 0 does not begin an AEDAT 3.1 header (#!AER-DAT3.1); is it a file of another format?",
    )
    end = data.find(_END, 0, _MAX_HEADER)
    if end < 0 and len(data) <= _MAX_HEADER:
        raise UserError(f"{path} is cut short: it ends at byte {len(data)}, before the end line of its header.")
    require(end >= 0, f"{path}: the header that begins at byte 0 has no end line (#!END-HEADER).")
    packets = _polarity_packets(path, data, end + len(_END))
    require(bool(packets), f"{path} holds no polarity events in its {len(data)} bytes.")

    found = Collected(sum(number for _, number, _ in packets))
    kept = 0
    for group in _groups(packets):
        words, places, overflow = _words(data, group)
        negative = words[:, 1] >> 31
        if negative.any():
            raise UserError(f"{path}: the event at byte {places[int(np.argmax(negative))]} has a negative time.")
        valid = np.flatnonzero(words[:, 0] & 1)
        word, time = words[valid, 0], words[valid, 1].astype(np.int64)
        found.add(overflow[valid] * 2**31 + time, (word >> 17).astype(np.int16), (word >> 2) & 0x7FFF, (word >> 1) & 1)
        kept += len(valid)
    require(kept > 0, f"{path}: none of the events from byte {packets[0][0]} on is valid.")

    def offset(index: int) -> int:
        for group in _groups(packets):
            words, places, _ = _words(data, group)
            valid = np.flatnonzero(words[:, 0] & 1)
            if index < len(valid):
                return int(places[valid[index]])
            index -= len(valid)
        return len(data)

    return checked(path, found.events(width, height), offset, sort=sort)


Packet = tuple[int, int, int]  # start of its events, number of events, time overflow


def _groups(packets: Sequence[Packet]) -> Iterator[list[Packet]]:
    """Packets in groups of about as many events as are converted in one go; a longer packet is cut."""
    group: list[Packet] = []
    events = 0
    for start, number, high in packets:
        for part in pieces(number):
            group.append((start + 8 * part.start, part.stop - part.start, high))
            events += part.stop - part.start
            if events >= PIECE:
                yield group
                group, events = [], 0
    if group:
        yield group


def _words(data: bytes, group: Sequence[Packet]) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """The two words of every event of some packets, the byte it begins at, and its time overflow."""
    buffer = np.frombuffer(data, dtype=np.uint8)
    bodies = [buffer[start : start + 8 * number] for start, number, _ in group]
    words = np.concatenate(bodies).view("<u4").reshape(-1, 2)
    sizes = [number for _, number, _ in group]
    within = np.arange(len(words)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    places = np.repeat(np.array([start for start, _, _ in group], dtype=np.int64), sizes) + 8 * within
    return words, places, np.repeat(np.array([high for _, _, high in group], dtype=np.int64), sizes)


def _polarity_packets(path: Path, data: bytes, at: int) -> list[Packet]:
    """Start of the events, number of events and time overflow of every packet of polarity events."""
    packets = []
    while at < len(data):
        if len(data) - at < _PACKET.size:
            raise UserError(
                f"{path} is cut short: the packet header at byte {at} has {len(data) - at} of its 28 bytes."
            )
        kind, _, size, time_at, high, capacity, number, valid = _PACKET.unpack_from(data, at)
        start = at + _PACKET.size
        if not valid <= number <= capacity or (number and not size):
            raise UserError(
                f"{path}: the packet at byte {at} is damaged: {valid} valid of {number} events of {size} "
                f"bytes, with room for {capacity}."
            )
        if size * number > len(data) - start:
            raise UserError(
                f"{path} is cut short: the packet at byte {at} announces {number:,} events of {size} bytes, "
                f"but only {len(data) - start:,} bytes follow."
            )
        if kind == _POLARITY and number:
            if size != 8 or time_at != 4:
                raise UserError(
                    f"{path}: the packet at byte {at} has polarity events of {size} bytes with the time at "
                    f"{time_at}; they must have 8 bytes and the time at 4."
                )
            packets.append((start, number, high))
        at = start + size * number
    return packets


def _refuse_stub(path: Path, data: bytes) -> None:
    """A file that ends within the first words of its header."""
    if len(data) < 12 and any(magic.startswith(data) for magic in (b"#!AER-DAT2.0", b"#!AER-DAT3.1")):
        raise UserError(f"{path} is cut short: it ends at byte {len(data)}, within its header.")


def _end_of_comment_lines(path: Path, data: bytes) -> int:
    """Offset of the first byte after the leading lines that begin with `#`."""
    at = 0
    while data.startswith(b"#", at):
        end = data.find(b"\n", at, at + _MAX_HEADER)
        if end < 0 and len(data) - at <= _MAX_HEADER:
            raise UserError(f"{path} is cut short: it ends at byte {len(data)}, within its header.")
        require(end >= 0, f"{path}: the header line at byte {at} has no end (is it damaged?).")
        at = end + 1
    return at
