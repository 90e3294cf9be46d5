"""JSON objects that carry a digest of themselves: whatever is changed in one afterwards is noticed."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from bayspike.errors import require
from bayspike.storage.files import plain_numbers

SEAL = "digest"


def seal(value: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its digest."""
    plain = {key: each for key, each in plain_numbers(value).items() if key != SEAL}
    return {**plain, SEAL: _digest(plain)}


def check_seal(value: Mapping[str, Any], where: str) -> None:
    """Refuse an object that is not what was sealed."""
    rest = {key: each for key, each in value.items() if key != SEAL}
    require(value.get(SEAL) == _digest(rest), f"{where} is damaged or was changed: its digest does not fit.")


def _digest(plain: Mapping[str, Any]) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
