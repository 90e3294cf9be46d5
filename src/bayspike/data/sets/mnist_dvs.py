"""MNIST-DVS (Serrano-Gotarredona & Linares-Barranco 2015) with the paper's pre-processing (sec. Split-MNIST and
MNIST-DVS): 26×26 pixels, 2 s, T = 80, two polarities (1,352 inputs), 900 recordings of a digit train and 100 test.

On disk: `mnist_dvs/grabbed_data<digit>/scale4/mnist_<digit>_scale04_<number>.aedat`, or the original
`mnist_dvs/grabbed_data<digit>.zip`, which are read without being unpacked.
"""

import re
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bayspike.data.base import Dataset, SpikeSamples, stratified_split
from bayspike.data.encoders import pack
from bayspike.data.files.aedat import parse_aedat2
from bayspike.data.files.events import binned
from bayspike.data.files.zipped import Archives, members_of
from bayspike.data.places import find, missing
from bayspike.data.sets.recordings import bin_length, with_bar
from bayspike.errors import UserError, require

TIME = 80
SPAN = 2_000_000  # µs
SIDE = 26
_CORNER = 48  # of the part of the sensor where the digits move, once x is mirrored
_NAME = re.compile(r"mnist_(\d)_scale04_(\d{4})\.aedat")
HOW = (
    "Get grabbed_data0.zip to grabbed_data9.zip (6.4 GB) by hand from "
    "http://www2.imse-cnm.csic.es/caviar/MNIST_DVS/ into the folder mnist_dvs there; "
    "`bayspike data get mnist_dvs` names them one by one with their md5."
)
STAND_IN = "mnist_dvs_simulated"


def find_recordings(root: Path | None) -> dict[int, list[tuple[Path, str]]] | None:
    """For every digit, its recordings at scale 4 by number: a file and, where that is a zip, the member's name."""

    def probe(place: Path) -> dict[int, list[tuple[Path, str]]] | None:
        folder = place / "mnist_dvs"
        found: dict[tuple[int, str], tuple[Path, str]] = {}
        for archive in sorted(folder.glob("grabbed_data?.zip")):
            for member in members_of(archive):
                if match := _NAME.fullmatch(member.rsplit("/", 1)[-1]):
                    found[int(match[1]), match[2]] = (archive, member)
        for path in folder.rglob("mnist_*_scale04_*.aedat"):
            if match := _NAME.fullmatch(path.name):
                found[int(match[1]), match[2]] = (path, "")
        by_digit: dict[int, list[tuple[Path, str]]] = {}
        for (digit, _), place_of in sorted(found.items()):
            by_digit.setdefault(digit, []).append(place_of)
        return by_digit or None

    return find(root, probe)


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    per_class: int | None = None,
    sort: bool = False,
) -> Dataset:
    """A tenth of each digit's recordings, chosen by seed, is the test part; `per_class` reads only that many."""
    found = find_recordings(root)
    if found is None:
        raise missing("mnist_dvs", root, HOW, STAND_IN)
    too_few = [digit for digit in range(10) if len(found.get(digit, [])) < 2]
    if too_few:
        some = next(iter(found.values()))[0][0].parent
        raise UserError(
            f"MNIST-DVS in {some} is not whole: digits {too_few} have fewer than 2 recordings. {HOW} "
            f"Or use the simulated stand-in {STAND_IN!r}."
        )
    require(per_class is None or per_class >= 2, f"per_class must be at least 2, but is {per_class}.")
    chosen = [(place, digit) for digit in range(10) for place in found[digit][:per_class]]
    step = bin_length(SPAN, time)
    packed = np.empty((len(chosen), time, 2 * SIDE * SIDE // 8), dtype=np.uint8)
    with Archives() as archives:
        for index, ((path, member), _) in enumerate(with_bar(chosen, "reading MNIST-DVS")):
            packed[index] = pack(_encode(archives.read(path, member), path / member, time, step, sort))
    labels = torch.tensor([digit for _, digit in chosen])
    samples = SpikeSamples(torch.from_numpy(packed), labels, time, 2 * SIDE * SIDE)
    train, test = stratified_split(labels, 0.1, seed)
    return Dataset("mnist_dvs", samples.subset(train), samples.subset(test), tuple("0123456789"), (2, SIDE, SIDE))


def _encode(data: bytes, name: Path, time: int, step: int, sort: bool) -> NDArray[np.uint8]:
    events = parse_aedat2(data, name, sort=sort)
    first = int(events.t[0])
    # the recorder counts y upwards; turned over after the crop, the same pixels show an upright digit
    digit = events.mirrored().crop(_CORNER, _CORNER, SIDE, SIDE).upended()
    return binned(digit, time, step, start=first)
