"""`python -m bayspike.hardware.hdf5_child FILE …`: what is in HDF5 files, as plain values, for its parent (`hdf5`).

The HDF5 library was not made for files from strangers, so it runs in this process alone, which is limited in memory and
time. Only what a network needs is read: numbers and words in groups. Links to elsewhere, objects that are reached twice
(a circle), data in other files and filters that are not HDF5's own are refused before anything is opened.
"""

import json
import sys
from typing import Any

MOST_MEMORY = 4 * 2**30
MOST_OBJECTS = 20_000
MOST_WORDS = 2**20  # strings of one dataset
DEEPEST = 12
FILTERS = {1, 2, 3, 32000}  # gzip, shuffle, fletcher32, lzf


class Refused(Exception):
    """Why a file is not read."""


def main(limit: int, paths: list[str]) -> None:
    """For each file one line of JSON, then the bytes of its arrays one after the other."""
    _limit_memory()
    out = sys.stdout.buffer
    for path in paths:
        arrays: list[bytes] = []
        try:
            answer: dict[str, Any] = {"tree": _tree(path, limit, arrays)}
        except Refused as refusal:
            answer, arrays = {"refused": str(refusal)}, []
        except Exception as error:  # a damaged file fails in any way
            answer, arrays = {"refused": f"{type(error).__name__}: {error}"[:300]}, []
        out.write(json.dumps({**answer, "bytes": sum(map(len, arrays))}).encode() + b"\n")
        for each in arrays:
            out.write(each)
    out.flush()


def _limit_memory() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):  # not on Windows
        pass


def _tree(path: str, limit: int, arrays: list[bytes]) -> Any:
    import h5py

    with h5py.File(path, "r") as file:
        found: list[Any] = []
        _check(file, set(), found, 0)
        total = sum(int(each.size) * int(each.dtype.itemsize) for each in found)
        if total > limit:
            raise Refused(f"it unpacks to {total} bytes, more than {limit}")
        return _values(file, arrays)


def _check(group: Any, seen: set[Any], found: list[Any], depth: int) -> None:
    import h5py

    if depth > DEEPEST:
        raise Refused("its groups are nested too deeply")
    for name in group:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            raise Refused(f"{name!r} is a link to elsewhere")
        item = group[name]
        info = h5py.h5o.get_info(item.id)
        place = (info.fileno, info.addr)
        if place in seen or len(seen) > MOST_OBJECTS:
            raise Refused(f"{name!r} is reached twice, as in a circle" if place in seen else "it has too many objects")
        seen.add(place)
        if isinstance(item, h5py.Group):
            _check(item, seen, found, depth + 1)
        elif isinstance(item, h5py.Dataset):
            _check_dataset(name, item)
            found.append(item)
        else:
            raise Refused(f"{name!r} is neither numbers nor words")


def _check_dataset(name: str, item: Any) -> None:
    import h5py

    plan = item.id.get_create_plist()
    if item.is_virtual or plan.get_external_count():
        raise Refused(f"the numbers of {name!r} lie in other files")
    if any(plan.get_filter(index)[0] not in FILTERS for index in range(plan.get_nfilters())):
        raise Refused(f"{name!r} is packed in a way that is not read")
    words = h5py.check_string_dtype(item.dtype) is not None
    if item.shape is None or not (words or item.dtype.kind in "biuf"):
        raise Refused(f"{name!r} is neither numbers nor words")
    if words and item.size > MOST_WORDS:
        raise Refused(f"{name!r} holds too many words")


def _values(group: Any, arrays: list[bytes]) -> dict[str, Any]:
    import h5py

    values: dict[str, Any] = {}
    for name in group:
        item = group[name]
        if isinstance(item, h5py.Group):
            values[name] = {"group": _values(item, arrays)}
        elif h5py.check_string_dtype(item.dtype) is not None:
            values[name] = {"words": _words(item[()])}
        else:
            numbers = item[()]
            values[name] = {"dtype": numbers.dtype.newbyteorder("<").str, "shape": list(item.shape)}
            arrays.append(numbers.astype(numbers.dtype.newbyteorder("<")).tobytes())
    return values


def _words(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return value if isinstance(value, str) else [_words(each) for each in value]


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
