"""N-MNIST (Orchard et al. 2015): real recordings of MNIST digits by an event camera in three saccades.

Layout on disk: `nmnist/Train/<digit>/<id>.bin` and `nmnist/Test/...`, where the id is the MNIST index + 1, or the same
in `nmnist/Train.zip` and `nmnist/Test.zip`, which are read in place; `large/nmnist` is looked for first. A subset in
this layout will do. Where the stored test part has fewer than 100 recordings of some digit, a stratified test part is
cut out of all recordings instead, by seed.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayspike.data.base import Dataset, stratified_split
from bayspike.data.delays import NOW, at_ages, check_delays
from bayspike.data.files.event_files import parse_nmnist
from bayspike.data.files.events import binned
from bayspike.data.files.zipped import Archives, members_of
from bayspike.data.places import find, missing
from bayspike.data.sets.recordings import bin_length, packed_recordings, per_class_limit
from bayspike.errors import require, require_range

TIME = 50
SPAN = 300_000  # µs: three saccades of 100 ms
_SIDE = 34
_WHOLE_TEST_PART = 100
_OFFICIAL = {"Train": 60_000, "Test": 10_000}
_NAME = re.compile(r"(Train|Test)/(\d)/(\d{1,6})\.bin")
HOW = (
    "Get Train.zip and Test.zip of N-MNIST by hand from Mendeley Data 468j46mzdv "
    "(https://data.mendeley.com/datasets/468j46mzdv) and put them, unpacked or not, into the folder nmnist there."
)


class Recording(NamedTuple):
    """One digit: a file, or a zip and its member; `number` is the MNIST index + 1."""

    path: Path
    digit: int
    member: str = ""
    number: int = 0


def find_folder(root: Path | None) -> Path | None:
    """The folder that holds `Train` or `Train.zip`."""

    def probe(place: Path) -> Path | None:
        for name in ("large/nmnist", "nmnist", "NMNIST", "N-MNIST"):
            if (place / name / "Train").is_dir() or (place / name / "Train.zip").is_file():
                return place / name
        return None

    return find(root, probe)


def recordings(folder: Path, part: str) -> list[Recording]:
    """Those of `Train` or `Test`, by digit and in the order of their names."""
    archive = folder / f"{part}.zip"
    if not (folder / part).is_dir() and archive.is_file():
        found = [
            Recording(archive, int(match[2]), member, int(match[3]))
            for member in members_of(archive)
            if (match := _NAME.fullmatch(member)) and match[1] == part
        ]
        return sorted(found, key=lambda each: (each.digit, each.member))
    return [
        Recording(path, digit, number=int(path.stem) if path.stem.isdecimal() else 0)
        for digit in range(10)
        for path in sorted((folder / part / str(digit)).glob("*.bin"))
    ]


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    downsample: int = 1,
    delays: Sequence[int] = NOW,
    test_share: float = 0.2,
    per_class: int | None = None,
    validation: bool = False,
    sort: bool = False,
) -> Dataset:
    """34×34×2 inputs (17×17×2 with `downsample=2`), `time` bins over 300 ms.

    `delays` are ages, in bins, at which every input is seen (`bayspike.data.delays`). `per_class` reads at most that
    many recordings of each digit of either part. With `validation` settings are to be chosen: a fifth of the training
    part takes the place of the test part, which is not read.
    """
    folder = find_folder(root)
    if folder is None:
        raise missing("nmnist", root, HOW)
    delays = check_delays(delays)
    require(0 < test_share < 1, f"test_share must lie between 0 and 1, but is {test_share}.")
    require_range("downsample", downsample, 1, _SIDE)
    side = -(-_SIDE // downsample)
    step = bin_length(SPAN, time)
    train, test = recordings(folder, "Train"), recordings(folder, "Test")
    per_digit = np.bincount([each.digit for each in test], minlength=10)
    whole = per_digit.min() >= _WHOLE_TEST_PART
    parts = ([train] if validation else [train, test]) if whole else [train + test]
    samples = []
    with Archives() as archives:

        def encode(source: Recording) -> NDArray[np.uint8]:
            name = source.path / source.member
            events = parse_nmnist(archives.read(source.path, source.member), name, sort=sort)
            return binned(events, time, step, start=0, downsample=downsample)

        for part in parts:
            kept = [part[i] for i in per_class_limit([each.digit for each in part], per_class)]
            require(bool(kept), f"{folder} holds no recordings: expected Train/<digit>/<id>.bin there.")
            labels = [each.digit for each in kept]
            samples.append(packed_recordings(kept, labels, encode, time, 2 * side * side, "N-MNIST"))
    if not whole:
        train_at, test_at = stratified_split(samples[0].labels, test_share, seed)
        samples = [samples[0].subset(train_at), samples[0].subset(test_at)]
    if validation:
        train_at, test_at = stratified_split(samples[0].labels, 0.2, seed + 1)
        samples = [samples[0].subset(train_at), samples[0].subset(test_at)]
    about = _about(len(samples[0]), len(samples[1]), train, test, whole, validation)
    train_at_ages, test_at_ages = (at_ages(part, delays) for part in samples)
    shape, view = (2 * len(delays), side, side), {} if delays == NOW else {"delays": list(delays)}
    return Dataset("nmnist", train_at_ages, test_at_ages, tuple("0123456789"), shape, about=about, view=view)


def _about(
    train_count: int, test_count: int, train: list[Recording], test: list[Recording], whole: bool, validation: bool
) -> str:
    """What the two parts really are; an id beyond the official test part's shows that a recording is not of it."""
    words = f"N-MNIST, {train_count:,} + {test_count:,} recordings"
    official = {"Train": len(train), "Test": len(test)} == _OFFICIAL
    if any(each.number > _OFFICIAL["Test"] for each in test):
        words += ", all taken from the official training set, none from its test set"
    elif not official:
        words += " of a subset"
    if not whole:
        words += ", the test part cut out of both"
    if validation:
        words += "; the test part is of those meant for training: for choosing settings"
    return words
