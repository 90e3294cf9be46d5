"""N-MNIST (Orchard et al. 2015): real recordings of MNIST digits by an event camera in three saccades.

Layout on disk: `nmnist/Train/<digit>/<id>.bin` and `nmnist/Test/...`, where the id is the MNIST index + 1. A
subset in this layout will do. Where the stored test part has fewer than 100 recordings of some digit, a
stratified test part is cut out of all recordings instead, by seed.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayspike.data.base import Dataset, stratified_split
from bayspike.data.files.event_files import read_nmnist
from bayspike.data.files.events import binned
from bayspike.data.places import find, missing
from bayspike.data.sets.recordings import bin_length, packed_recordings, per_class_limit
from bayspike.errors import require, require_range

TIME = 50
SPAN = 300_000  # µs: three saccades of 100 ms
_SIDE = 34
_WHOLE_TEST_PART = 100
HOW = (
    "Get Train.zip and Test.zip of N-MNIST by hand from Mendeley Data 468j46mzdv "
    "(https://data.mendeley.com/datasets/468j46mzdv) and unpack them to the folder nmnist there."
)


def find_folder(root: Path | None) -> Path | None:
    """The folder that holds `Train`."""

    def probe(place: Path) -> Path | None:
        for name in ("nmnist", "NMNIST", "N-MNIST"):
            if (place / name / "Train").is_dir():
                return place / name
        return None

    return find(root, probe)


def recordings(folder: Path, part: str) -> list[tuple[Path, int]]:
    """Files and digits of `Train` or `Test`, in the order of their names."""
    return [(path, digit) for digit in range(10) for path in sorted((folder / part / str(digit)).glob("*.bin"))]


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    downsample: int = 1,
    test_share: float = 0.2,
    per_class: int | None = None,
    sort: bool = False,
) -> Dataset:
    """34×34×2 inputs (17×17×2 with `downsample=2`), `time` bins over 300 ms.

    `per_class` reads at most that many recordings of each digit of either part.
    """
    folder = find_folder(root)
    if folder is None:
        raise missing("nmnist", root, HOW)
    require(0 < test_share < 1, f"test_share must lie between 0 and 1, but is {test_share}.")
    require_range("downsample", downsample, 1, _SIDE)
    side = -(-_SIDE // downsample)
    step = bin_length(SPAN, time)

    def encode(path: Path) -> NDArray[np.uint8]:
        return binned(read_nmnist(path, sort=sort), time, step, start=0, downsample=downsample)

    train, test = recordings(folder, "Train"), recordings(folder, "Test")
    per_digit = np.bincount([digit for _, digit in test], minlength=10)
    parts = [train, test] if per_digit.min() >= _WHOLE_TEST_PART else [train + test]
    samples = []
    for part in parts:
        kept = [part[i] for i in per_class_limit([digit for _, digit in part], per_class)]
        require(bool(kept), f"{folder} holds no recordings: expected Train/<digit>/<id>.bin there.")
        paths, labels = zip(*kept, strict=True)
        samples.append(packed_recordings(paths, labels, encode, time, 2 * side * side, "N-MNIST"))
    if len(samples) == 1:
        train_at, test_at = stratified_split(samples[0].labels, test_share, seed)
        samples = [samples[0].subset(train_at), samples[0].subset(test_at)]
    return Dataset("nmnist", samples[0], samples[1], tuple("0123456789"), (2, side, side))
