"""POKER-DVS (Serrano-Gotarredona & Linares-Barranco 2015): card pips flicked past an event camera.

Layout on disk: `poker_dvs/x<suit><number>.aedat`, 131 recordings of 5 to 32 ms, already cut out of the
sensor: all events lie in its first 35×35 pixels. The split is stratified, by seed.
"""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bayspike.data.base import Dataset, stratified_split
from bayspike.data.files.aedat import read_aedat2
from bayspike.data.files.events import binned
from bayspike.data.places import find, missing
from bayspike.data.sets.recordings import bin_length, packed_recordings
from bayspike.errors import require, require_range

TIME = 40
SPAN = 20_000  # µs; three recordings in four are shorter
SUITS = ("club", "diamond", "heart", "spade")
_SIDE = 35
_NAME = re.compile(rf"x?({'|'.join(SUITS)})\d+i?\.aedat")
HOW = (
    "Get POKER-DVS by hand from http://www2.imse-cnm.csic.es/caviar/POKERDVS.html "
    "and put its .aedat files into the folder poker_dvs there."
)


def find_recordings(root: Path | None) -> list[tuple[Path, int]] | None:
    """Files and suits, in the order of their names."""

    def probe(place: Path) -> list[tuple[Path, int]] | None:
        named = [(path, _NAME.fullmatch(path.name)) for path in sorted((place / "poker_dvs").glob("*.aedat"))]
        return [(path, SUITS.index(match[1])) for path, match in named if match] or None

    return find(root, probe)


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    downsample: int = 1,
    test_share: float = 0.25,
) -> Dataset:
    """35×35×2 inputs, `time` bins over the first 20 ms."""
    found = find_recordings(root)
    if found is None:
        raise missing("poker_dvs", root, HOW)
    require(0 < test_share < 1, f"test_share must lie between 0 and 1, but is {test_share}.")
    require_range("downsample", downsample, 1, _SIDE)
    side = -(-_SIDE // downsample)
    step = bin_length(SPAN, time)

    def encode(path: Path) -> NDArray[np.uint8]:
        return binned(read_aedat2(path).crop(0, 0, _SIDE, _SIDE), time, step, downsample=downsample)

    paths, labels = zip(*found, strict=True)
    samples = packed_recordings(paths, labels, encode, time, 2 * side * side, "POKER-DVS")
    train, test = stratified_split(samples.labels, test_share, seed)
    return Dataset("poker_dvs", samples.subset(train), samples.subset(test), SUITS, (2, side, side))
