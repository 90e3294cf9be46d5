"""Where the gestures of DVS-Gesture lie, and how they are read: by user and light, one session after the other.

Under `dvs_gesture/` or `DvsGesture/`: the original `userNN_<light>.aedat` with `userNN_<light>_labels.csv`; the pre-cut
`ibmGestureTrain/userNN_<light>/<class>.npy` and `ibmGestureTest/...`; or these in zips, which are read in place. Zips
named `ibmGesture*.zip` belong together; of others, the one with the most gestures is read.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bayspike.data.files.aedat import read_aedat3
from bayspike.data.files.event_files import parse_gesture_npy, read_gesture_npy
from bayspike.data.files.events import Events
from bayspike.data.files.zipped import Archives, members_of
from bayspike.data.places import find
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
IN_A_MIRROR = (0, 2, 1, 6, 5, 4, 3, 7, 8, 9, 10)  # a right arm that turns clockwise is a left one that turns counter
LIGHTS = ("fluorescent", "fluorescent_led", "lab", "led", "natural")
_SOURCE = re.compile(rf"user(\d\d)_({'|'.join(LIGHTS)})")


class Session(NamedTuple):
    """One user in one light: an .aedat file, a folder of .npy files, or a zip with some of its members."""

    user: int
    light: str
    path: Path
    members: tuple[str, ...] = ()


def find_sessions(root: Path | None, archive: str | None = None) -> list[Session] | None:
    """Every recording session, in order; `archive` names a zip that is to be read in place of all else."""

    def probe(place: Path) -> list[Session] | None:
        for name in ("dvs_gesture", "DvsGesture", "DVSGesture"):
            folder = place / name
            if archive is not None:
                found = in_archive(folder / archive) if (folder / archive).is_file() else []
            else:
                found = _unpacked(folder) or _zipped(folder)
            if found:
                return sorted(found)
        return None

    return find(root, probe)


def _unpacked(folder: Path) -> list[Session]:
    found = set()
    for path in folder.rglob("user*"):
        match = _SOURCE.fullmatch(path.name.removesuffix(".aedat"))
        if match and (path.is_dir() or path.suffix == ".aedat"):
            found.add(Session(int(match[1]), match[2], path))
    return list(found)


def _zipped(folder: Path) -> list[Session]:
    archives = sorted(folder.glob("*.zip"))
    together = [session for path in archives if path.name.startswith("ibmGesture") for session in in_archive(path)]
    others = [in_archive(path) for path in archives if not path.name.startswith("ibmGesture")]
    return together or max(others, key=lambda sessions: sum(len(each.members) for each in sessions), default=[])


def in_archive(archive: Path) -> list[Session]:
    """The sessions whose gestures are in a zip."""
    found: dict[tuple[int, str], list[str]] = {}
    for member in members_of(archive):
        folder, _, file = member.rpartition("/")
        match = _SOURCE.fullmatch(folder.rpartition("/")[2])
        if match and file.endswith(".npy"):
            found.setdefault((int(match[1]), match[2]), []).append(member)
    return [Session(*who, archive, tuple(sorted(names, key=_by_number))) for who, names in found.items()]


def clips(session: Session, *, sort: bool = False) -> Iterator[tuple[int, Events]]:
    """Class (0 to 10) and events of every gesture of one session."""
    source = session.path
    if session.members:
        with Archives() as archives:
            for member in session.members:
                yield (
                    _class_of(source / member),
                    parse_gesture_npy(archives.read(source, member), source / member, sort=sort),
                )
        return
    if source.is_dir():
        for path in sorted(source.glob("*.npy"), key=lambda path: _by_number(path.name)):
            yield _class_of(path), read_gesture_npy(path, sort=sort)
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


def spans(numbers: Sequence[int]) -> str:
    """Whole numbers in words: 1–3, 5."""
    found: list[list[int]] = []
    for each in sorted(set(numbers)):
        if found and each == found[-1][1] + 1:
            found[-1][1] = each
        else:
            found.append([each, each])
    return ", ".join(f"{low}" if low == high else f"{low}–{high}" for low, high in found)


def _by_number(name: str) -> tuple[int, str]:
    return len(name), name


def _class_of(path: Path) -> int:
    known = path.stem.isdecimal() and int(path.stem) < len(GESTURES)
    require(known, f"{path}: the name of a pre-cut gesture must be its class, 0.npy to 10.npy.")
    return int(path.stem)
