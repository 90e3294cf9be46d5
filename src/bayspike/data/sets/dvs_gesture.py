"""DVS-Gesture (Amir et al. 2017) with the paper's pre-processing and partition (sec. DVS-Gestures).

128×128 pixels become 32×32×2 inputs in bins of 10 ms; 500 ms for training, 1,500 ms for test. The first 15 users
train, the others test; four lights are in-distribution, the fifth gives the foreign inputs.

On disk, under `dvs_gesture/` or `DvsGesture/`: either the original `userNN_<light>.aedat` with
`userNN_<light>_labels.csv`, or the pre-cut `ibmGestureTrain/userNN_<light>/<class>.npy` and
`ibmGestureTest/...`. The division into trials for training and test that comes with the files is not used.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from bayspike.data.base import Dataset, SpikeSamples
from bayspike.data.encoders import pack
from bayspike.data.files.aedat import read_aedat3
from bayspike.data.files.event_files import read_gesture_npy
from bayspike.data.files.events import Events, binned
from bayspike.data.places import find, missing
from bayspike.data.sets.recordings import with_bar
from bayspike.errors import UserError, require

GESTURES = (
    "hand clapping",
    "right hand wave",
    "left hand wave",
    "right arm clockwise",
    "right arm counter-clockwise",
    "left arm clockwise",
    "left arm counter-clockwise",
    "arm roll",
    "air drums",
    "air guitar",
    "other",
)

BIN = 10_000  # µs
TIME = 50
TEST_TIME = 150
SIDE = 32
LIGHTS = ("fluorescent", "fluorescent_led", "lab", "led", "natural")
TRAIN_USERS = 15
_SOURCE = re.compile(rf"user(\d\d)_({'|'.join(LIGHTS)})")
HOW = (
    "Get DvsGesture.tar.gz by hand from https://ibm.ent.box.com/s/3hiq58ww1pbbjrinh367ykfdf60xsfm8/folder/50167556794 "
    "(or the pre-cut files 38022171 and 38020584 of figshare) and unpack it to the folder dvs_gesture there."
)
STAND_IN = "gestures_simulated"


def find_sources(root: Path | None) -> list[tuple[int, str, Path]] | None:
    """User, light and path (an .aedat file or a folder of .npy files) of every recording session, in order."""

    def probe(place: Path) -> list[tuple[int, str, Path]] | None:
        found = set()
        for name in ("dvs_gesture", "DvsGesture", "DVSGesture"):
            for path in (place / name).rglob("user*"):
                match = _SOURCE.fullmatch(path.name.removesuffix(".aedat"))
                if match and (path.is_dir() or path.suffix == ".aedat"):
                    found.add((int(match[1]), match[2], path))
            if found:
                break
        return sorted(found) or None

    return find(root, probe)


def clips(source: Path, *, sort: bool = False) -> Iterator[tuple[int, Events]]:
    """Class (0 to 10) and events of every gesture of one session."""
    if source.is_dir():
        for path in sorted(source.glob("*.npy"), key=lambda path: (len(path.name), path.name)):
            known = path.stem.isdecimal() and int(path.stem) < len(GESTURES)
            require(known, f"{path}: the name of a pre-cut gesture must be its class, 0.npy to 10.npy.")
            yield int(path.stem), read_gesture_npy(path, sort=sort)
        return
    table = source.with_name(f"{source.stem}_labels.csv")
    rows = read_labels(table)
    events = read_aedat3(source, sort=sort)
    for line, (label, start, stop) in enumerate(rows, start=2):
        part = events.window(start, stop)
        require(
            len(part) > 0, f"{table}: line {line} names a time ({start} to {stop} µs) without events in {source.name}."
        )
        yield label, part


def read_labels(path: Path) -> list[tuple[int, int, int]]:
    """Class (0 to 10), start and stop in µs of every line of a label file."""
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            lines = list(csv.reader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} cannot be read as a table of labels ({error}).") from error
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line:
            continue
        try:
            label, start, stop = (int(field) for field in line)
        except ValueError as error:
            raise UserError(f"{path}: line {number} is not class,startTime_usec,endTime_usec but {line}.") from error
        good = 1 <= label <= len(GESTURES) and 0 <= start < stop < 2**62
        require(good, f"{path}: line {number} has class {label} from {start} to {stop} µs; expected class 1 to 11.")
        rows.append((label - 1, start, stop))
    require(bool(rows), f"{path} names no gestures: expected lines of class,startTime_usec,endTime_usec.")
    return rows


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    test_time: int = TEST_TIME,
    windows: int = 3,
    foreign_light: str = "natural",
    sort: bool = False,
) -> Dataset:
    """`time` and `test_time` count bins of 10 ms; a training gesture gives up to `windows` pieces of `time` bins.

    Nothing is drawn at random, so `seed` is not used.
    """
    del seed
    require(foreign_light in LIGHTS, f"foreign_light must be one of {', '.join(LIGHTS)}, not {foreign_light!r}.")
    require(min(time, test_time, windows) >= 1, "time, test_time and windows must be at least 1.")
    sources = find_sources(root)
    if sources is None:
        raise missing("dvs_gesture", root, HOW, STAND_IN)
    parts: dict[str, list[Path]] = {"train": [], "test": [], "foreign": []}
    for user, light, path in sources:
        if light == foreign_light:
            part = "foreign" if user > TRAIN_USERS else ""
        else:
            part = "train" if user <= TRAIN_USERS else "test"
        if part:
            parts[part].append(path)
    for part in ("train", "test"):
        require(
            bool(parts[part]),
            f"DVS-Gesture in {sources[0][2].parent} has no sessions to {part} on: users 1 to {TRAIN_USERS} train, "
            "the others test.",
        )

    def samples(part: str, bins: int, pieces: int) -> SpikeSamples:
        encoded: list[NDArray[np.uint8]] = []
        labels: list[int] = []
        for path in with_bar(parts[part], f"reading DVS-Gesture ({part})"):
            for label, events in clips(path, sort=sort):
                cut = list(_pieces(events, bins, pieces))
                encoded += cut
                labels += [label] * len(cut)
        require(bool(encoded), f"DVS-Gesture: {parts[part][0]} and its like hold no gestures.")
        return SpikeSamples(torch.from_numpy(np.stack(encoded)), torch.tensor(labels), bins, 2 * SIDE * SIDE)

    foreign = samples("foreign", test_time, 1) if parts["foreign"] else None
    train, test = samples("train", time, windows), samples("test", test_time, 1)
    return Dataset(
        "dvs_gesture",
        train,
        test,
        GESTURES,
        (2, SIDE, SIDE),
        foreign=foreign,
        foreign_about=f"gestures in {foreign_light} light",
        foreign_classes=True,
    )


def _pieces(events: Events, bins: int, count: int) -> Iterable[NDArray[np.uint8]]:
    """Up to `count` pieces of `bins` bins; the first may be short of events at its end, the others are whole."""
    first, length = int(events.t[0]), bins * BIN
    for number in range(count):
        if number and (number + 1) * length > events.duration:
            return
        start = first + number * length
        yield pack(binned(events, bins, BIN, start=start, downsample=events.width // SIDE))
