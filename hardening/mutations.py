"""Damage for files: cuts, flips, splices, odd numbers and words, and for JSON other values in any place."""

import copy
import json
import random
import struct
from typing import Any

NUMBERS = (0, 1, 127, 128, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
WORDS = (b"NaN", b"Infinity", b"1e999", b"-1", b"null", b"[]", b"{}", b'""', b"9" * 400, b"\x00", b"\xff", b"\n", b"#")
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 10**6, 2**31, 2**63, 2**70, 1e308, -0.5, "", "x", "nan", "\x00", "ρ", "../x", [], {}, [[]],
    [None], {"a": 1}, [1, 2], "9" * 50,
)  # fmt: skip


def damaged(data: bytes, chance: random.Random, other: bytes = b"") -> bytes:
    """One to four damages."""
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(8)
        if kind == 0:
            data = data[:at]
        elif kind == 1 and at < len(data):
            data = data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + data[at // 2 :]
        elif kind == 3:
            data = data[:at] + chance.randbytes(chance.randint(1, 8)) + data[at + chance.randrange(8) :]
        elif kind == 4:
            form = chance.choice(("<B", "<H", ">H", "<I", ">I", "<Q", ">Q"))
            size = struct.calcsize(form)
            number = chance.choice(NUMBERS) % 2 ** (8 * size)
            data = data[:at] + struct.pack(form, number) + data[at + size :]
        elif kind == 5:
            data = data[:at] + chance.choice(WORDS) + data[at + chance.randrange(6) :]
        elif kind == 6 and other:
            cut = chance.randrange(len(other) + 1)
            data = data[:at] + other[cut : cut + chance.randint(1, 64)] + data[at:]
        elif kind == 7:
            stretch = data[at : at + chance.randint(1, 16)]
            data = data[:at] + stretch * chance.randint(1, 4) + data[at:]
    return data[: 2**20]


def damaged_json(value: Any, chance: random.Random) -> Any:
    """A copy with one to three places otherwise: another value, a missing or a doubled entry."""
    value = json.loads(json.dumps(value))
    for _ in range(chance.randint(1, 3)):
        place, key = _place(value, chance)
        if place is None:
            value = copy.deepcopy(chance.choice(VALUES))
            continue
        kind = chance.randrange(4)
        if kind == 0:
            del place[key]
        elif kind == 1 and isinstance(place[key], int | float) and not isinstance(place[key], bool):
            place[key] = place[key] * chance.choice((-1, 0, 2, 1e9)) + chance.choice((-1, 0, 1))
        elif kind == 2 and isinstance(place, list):
            place.insert(key, place[chance.randrange(len(place))])
        else:
            place[key] = copy.deepcopy(chance.choice(VALUES))
    return value


def _place(value: Any, chance: random.Random) -> tuple[Any, Any]:
    """A random container and a key of it, rather deep than shallow."""
    place, key = None, None
    while isinstance(value, dict | list) and value:
        place = value
        key = chance.randrange(len(value)) if isinstance(value, list) else chance.choice(list(value))
        value = place[key]
        if chance.random() < 0.15:
            break
    return place, key
