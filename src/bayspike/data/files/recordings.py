"""A recording of events in any of the formats that are read, told by the ending of its name and its first bytes."""

from pathlib import Path

from bayspike.data.files.aedat import read_aedat2, read_aedat3
from bayspike.data.files.aedat4 import read_aedat4
from bayspike.data.files.event_files import read_gesture_npy, read_nmnist
from bayspike.data.files.events import Events
from bayspike.errors import UserError

ENDINGS = (".bin", ".aedat", ".aedat4", ".npy")
_AEDAT3 = b"#!AER-DAT3"


def read_events(path: Path | str, *, sensor: tuple[int, int] | None = None, sort: bool = False) -> Events:
    """The events of a file; `sensor` is the width and height of the camera where its format leaves them open."""
    path = Path(path)
    ending = path.suffix.lower()
    width, height = sensor or (128, 128)
    if ending == ".bin":
        return read_nmnist(path, sort=sort)
    if ending == ".npy":
        return read_gesture_npy(path, width=width, height=height, sort=sort)
    if ending == ".aedat":
        if _begins_aedat3(path):
            return read_aedat3(path, width=width, height=height, sort=sort)
        return read_aedat2(path, sort=sort)
    if ending == ".aedat4":
        return read_aedat4(path, sort=sort)
    raise UserError(f"{path}: give a recording of events ({', '.join(ENDINGS)}).")


def _begins_aedat3(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(_AEDAT3)) == _AEDAT3
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
