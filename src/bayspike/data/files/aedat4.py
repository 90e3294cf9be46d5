"""Reader of AEDAT 4 (iniVation's DV) through the package `aedat`, which is not installed with bayspike by itself."""

from pathlib import Path
from typing import Any

import numpy as np

from bayspike.data.files.events import MAX_FILE_BYTES, Events
from bayspike.errors import UserError, require

_MAGIC = b"#!AER-DAT4.0\r\n"


def read_aedat4(path: Path, *, sort: bool = False) -> Events:
    """The polarity events of a recording; frames, triggers and motion are passed over.

    Where there are several streams of events, the first is taken.
    """
    try:
        import aedat
    except ImportError as error:
        raise UserError(f"{path}: AEDAT 4 needs the package aedat: pip install 'bayspike[aedat4]'.") from error

    _check_file(path)
    blocks: list[Any] = []
    try:
        decoder = aedat.Decoder(str(path))
        streams = {key: each for key, each in decoder.id_to_stream().items() if each["type"] == "events"}
        require(bool(streams), f"{path} holds no stream of events, but {_kinds(decoder)}.")
        number = min(streams)
        blocks = [packet["events"] for packet in decoder if packet["stream_id"] == number and "events" in packet]
    except (UserError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a damaged file may end in a panic of the reader, which is no Exception
        raise UserError(f"{path} is damaged or cut short, and cannot be read as AEDAT 4 ({error}).") from error
    require(sum(map(len, blocks)) > 0, f"{path} holds no events.")
    rows = np.concatenate(blocks)
    width, height = int(streams[number]["width"]), int(streams[number]["height"])
    outside = (rows["x"] >= width) | (rows["y"] >= height)
    require(not outside.any(), f"{path}: event {int(np.argmax(outside)):,} lies outside the {width}×{height} sensor.")
    t = rows["t"].astype(np.int64)
    if (np.diff(t) < 0).any():
        require(
            sort,
            f"{path}: time runs backwards at event {int(np.argmax(np.diff(t) < 0)) + 1:,}; read it with sort=True.",
        )
        order = np.argsort(t, kind="stable")
        t, rows = t[order], rows[order]
    return Events(
        t=t,
        x=rows["x"].astype(np.int16),
        y=rows["y"].astype(np.int16),
        p=rows["on"].astype(np.uint8),
        width=width,
        height=height,
    )


def _check_file(path: Path) -> None:
    try:
        require(path.is_file(), f"{path} is not a file: give the path of a recording.")
        size = path.stat().st_size
        require(size <= MAX_FILE_BYTES, f"{path} has {size:,} bytes, more than the {MAX_FILE_BYTES:,} that are read.")
        with path.open("rb") as stream:
            begins = stream.read(len(_MAGIC))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    require(begins == _MAGIC, f"{path}: byte 0 does not begin an AEDAT 4.0 header (#!AER-DAT4.0).")


def _kinds(decoder: Any) -> str:
    return ", ".join(sorted({str(each["type"]) for each in decoder.id_to_stream().values()})) or "nothing"
