"""Every data set by name: load it, and say which are at hand."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bayspike.data import mnist, nmnist, poker_dvs, two_moons
from bayspike.data.base import Dataset
from bayspike.errors import UserError

LOADERS: dict[str, Callable[..., Dataset]] = {
    "two_moons": two_moons.load,
    "digits": mnist.load_digits,
    "mnist": mnist.load_mnist,
    "fashion_mnist": mnist.load_fashion_mnist,
    "nmnist": nmnist.load,
    "poker_dvs": poker_dvs.load,
}


def load(name: str, *, root: Path | None = None, seed: int = 0, time: int | None = None, **options: Any) -> Dataset:
    """The data set `name`; `time` is its number of time-steps, `options` are those of its own loader."""
    if name not in LOADERS:
        raise UserError(f"There is no data set {name!r}: choose one of {', '.join(LOADERS)}.")
    loader = LOADERS[name]
    known = [option for option in inspect.signature(loader).parameters if option not in ("root", "seed", "time")]
    unknown = [option for option in options if option not in known]
    if unknown:
        offered = ", ".join(known) or "none"
        raise UserError(f"The data set {name!r} has no option {unknown[0]!r}: its options are {offered}.")
    if time is not None:
        options["time"] = time
    return loader(root=root, seed=seed, **options)
