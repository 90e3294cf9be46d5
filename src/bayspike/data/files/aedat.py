"""Readers of AEDAT 2.0 (jAER: MNIST-DVS, POKER-DVS) and AEDAT 3.1 (cAER: DVS-Gesture).

A file that is not sound is refused with one sentence that names it and the byte offset of the fault.
"""

import struct
from pathlib import Path

import numpy as np

from bayspike.data.files.events import Events, checked, read_bytes
from bayspike.errors import UserError, require

_MAX_HEADER = 2**16
_END = b"#!END-HEADER\r\n"
_PACKET = struct.Struct("<HHIIIIII")
_POLARITY = 1


def read_aedat2(path: Path, *, sort: bool = False) -> Events:
    """A DVS128 recording: `#` lines, then `u32 address, u32 time in µs`, big-endian.

    Polarity is bit 0 of the address, x bits 1-7, y bits 8-14.
    """
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
    address = words[:, 0].astype(np.uint32)
    foreign = address >> 15
    if foreign.any():
        first = int(np.argmax(foreign > 0))
        raise UserError(
            f"{path}: the address {address[first]:#x} at byte {body + 8 * first} is none of a DVS128 sensor; "
            + ("bytes are missing before it." if first else "the file is damaged or of another camera.")
        )
    events = Events(
        t=words[:, 1].astype(np.int64),
        x=((address >> 1) & 127).astype(np.int16),
        y=(address >> 8).astype(np.int16),
        p=(address & 1).astype(np.uint8),
        width=128,
        height=128,
    )
    return checked(path, events, lambda index: body + 8 * index, sort=sort)


def read_aedat3(path: Path, *, width: int = 128, height: int = 128, sort: bool = False) -> Events:
    """An AEDAT 3.1 recording: a text header, then packets; only valid polarity events are kept.

    A packet is a 28-byte little-endian header and its events; other kinds of event (frames, IMU, ...) are
    passed over. A polarity event is `u32 data, u32 time`: of the data, bit 0 says valid, bit 1 is the polarity,
    bits 2-16 are y and bits 17-31 x.
    """
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

    buffer = np.frombuffer(data, dtype=np.uint8)
    sizes = np.array([number for _, number, _ in packets], dtype=np.int64)
    starts = np.array([start for start, _, _ in packets], dtype=np.int64)
    first = np.cumsum(sizes) - sizes  # index of each packet's first event
    chunks = [buffer[start : start + 8 * number] for start, number, _ in packets]
    words = np.concatenate(chunks).view("<u4").reshape(-1, 2)
    overflow = np.repeat(np.array([high for _, _, high in packets], dtype=np.int64), sizes)

    def offset(index: int) -> int:
        packet = int(np.searchsorted(first, index, side="right")) - 1
        return int(starts[packet] + 8 * (index - first[packet]))

    negative = words[:, 1] >> 31
    if negative.any():
        raise UserError(f"{path}: the event at byte {offset(int(np.argmax(negative)))} has a negative time.")
    kept = np.flatnonzero(words[:, 0] & 1)
    require(len(kept) > 0, f"{path}: none of the {len(words):,} events from byte {starts[0]} on is valid.")
    word, time = words[kept, 0], words[kept, 1]
    events = Events(
        t=overflow[kept] * 2**31 + time.astype(np.int64),
        x=(word >> 17).astype(np.int16),
        y=((word >> 2) & 0x7FFF).astype(np.int16),
        p=((word >> 1) & 1).astype(np.uint8),
        width=width,
        height=height,
    )
    return checked(path, events, lambda index: offset(int(kept[index])), sort=sort)


def _polarity_packets(path: Path, data: bytes, at: int) -> list[tuple[int, int, int]]:
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
