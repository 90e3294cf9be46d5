"""Event files of every format, written byte by byte with `struct`: independent of the readers."""

import struct
from pathlib import Path

import numpy as np

HEADER2 = b"#!AER-DAT2.0\r\n# This is a raw AE data file\r\n# Timestamps tick is 1 us\r\n"
HEADER3 = b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DVS128\r\n#!END-HEADER\r\n"


def random_events(count: int, size: int, seed: int = 0, span: int = 300_000) -> list[tuple[int, int, int, int]]:
    """Rows t, x, y, p in the order of time."""
    random = np.random.default_rng(seed)
    t = np.sort(random.integers(0, span, count))
    x, y = random.integers(0, size, (2, count))
    p = random.integers(0, 2, count)
    return [tuple(int(v) for v in row) for row in zip(t, x, y, p, strict=True)]


def aedat2(path: Path, rows) -> Path:
    body = b"".join(struct.pack(">II", (y << 8) | (x << 1) | p, t) for t, x, y, p in rows)
    path.write_bytes(HEADER2 + body)
    return path


def packet3(rows, *, kind: int = 1, overflow: int = 0, invalid: tuple[int, ...] = ()) -> bytes:
    count = len(rows)
    head = struct.pack("<HHIIIIII", kind, 1, 8, 4, overflow, count, count, count - len(invalid))
    body = b"".join(
        struct.pack("<II", (x << 17) | (y << 2) | (p << 1) | (i not in invalid), t)
        for i, (t, x, y, p) in enumerate(rows)
    )
    return head + body


def aedat3(path: Path, rows, per_packet: int = 100) -> Path:
    packets = [packet3(rows[i : i + per_packet]) for i in range(0, len(rows), per_packet)]
    path.write_bytes(HEADER3 + b"".join(packets))
    return path


def nmnist(path: Path, rows) -> Path:
    body = b"".join(struct.pack(">BBBH", x, y, (p << 7) | (t >> 16), t & 0xFFFF) for t, x, y, p in rows)
    path.write_bytes(body)
    return path


def gesture_npy(path: Path, rows) -> Path:
    np.save(path, np.array([(x, y, p, t / 1000) for t, x, y, p in rows], dtype=np.float64))
    return path
