"""Where data lie: in the folder that is named, and nowhere else; unnamed, in `BAYSPIKE_DATA` or the user's cache."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from platformdirs import user_cache_path

from bayspike.errors import UserError

T = TypeVar("T")


def roots(root: Path | None) -> list[Path]:
    """The folders that are searched, in order."""
    if root is not None:
        return [root]
    named = os.environ.get("BAYSPIKE_DATA", "")
    return [*([Path(named)] if named else []), user_cache_path("bayspike")]


def writable_root(root: Path | None) -> Path:
    """Where downloads and simulated sets are kept: the explicit folder, else the user's cache directory."""
    return root if root else user_cache_path("bayspike")


def find(root: Path | None, probe: Callable[[Path], T | None]) -> T | None:
    """What `probe` finds in the first folder where it finds anything."""
    for place in roots(root):
        found = probe(place)
        if found is not None:
            return found
    return None


def missing(name: str, root: Path | None, how: str, stand_in: str | None = None) -> UserError:
    """The error for a data set that is not there: where it was looked for, how to get it, what to use instead."""
    looked = ", ".join(str(place / name) for place in roots(root))
    instead = f" Or use the simulated stand-in {stand_in!r}." if stand_in else ""
    return UserError(f"The data set {name!r} was not found in {looked}. {how}{instead}")
