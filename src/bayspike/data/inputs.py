"""One file, or a stream of event lines, as input spikes of a trained network: as its own data set would encode it.

Pictures are rate-encoded; recordings are cut, mirrored, binned and down-sampled as the loader of the network's data set
does. Event lines are text, `t x y p` with t in µs, separated by blanks or commas.
"""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.data.base import StaticSamples
from bayspike.data.files.aedat import read_aedat2, read_aedat3
from bayspike.data.files.event_files import read_gesture_npy, read_nmnist
from bayspike.data.files.events import Events, binned
from bayspike.data.sets import dvs_gesture, mnist_dvs, nmnist, poker_dvs
from bayspike.errors import UserError, require

LARGEST_PICTURE = 2**26  # bytes
PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".pgm")
AEDAT3 = b"#!AER-DAT3"


@dataclass(frozen=True)
class View:
    """How a data set looks at its camera: which part of the sensor, and how time is cut."""

    cut: Callable[[Events], Events]
    step: int  # µs of a bin
    downsample: int
    sensor: int  # pixels a side of the whole camera
    start: int | None  # µs where the first bin begins; None: at the recording's first event


def view_of(about: Mapping[str, Any]) -> View:
    """The view of the data set a network was trained on."""
    name, time = str(about["name"]).removesuffix("_simulated"), int(about["time"])
    downsample = int(about["data"].get("options", {}).get("downsample", 1))
    if name == "nmnist":
        return View(lambda events: events, nmnist.SPAN // time, downsample, 34, 0)
    if name == "poker_dvs":
        return View(lambda events: events.crop(0, 0, 35, 35), poker_dvs.SPAN // time, downsample, 128, None)
    if name == "mnist_dvs":
        return View(lambda events: events.mirrored().crop(48, 48, 26, 26), mnist_dvs.SPAN // time, 1, 128, None)
    if name in ("dvs_gesture", "gestures"):
        return View(lambda events: events, dvs_gesture.BIN, 4, 128, None)
    raise UserError(f"a network trained on {about['name']} takes pictures, not recordings of events.")


def spikes_of_file(path: Path, about: Mapping[str, Any], generator: torch.Generator) -> Tensor:
    """Spikes `(time, inputs)` of a picture or a recording."""
    require(path.is_file(), f"{path} is not a file: give a picture or a recording of events.")
    if path.suffix.lower() in PICTURES:
        return spikes_of_picture(path.read_bytes(), str(path), about, generator)
    view = view_of(about)
    recorded = read_events(path)
    begin = int(recorded.t[0]) if view.start is None else view.start
    events = view.cut(recorded)
    time = int(about["time"])
    if about["name"] in ("dvs_gesture", "gestures_simulated"):  # recordings to judge may be longer than those learnt
        time = min(-(-(recorded.duration + 1) // view.step), 10 * time)
    block = binned(events, time, view.step, start=begin, downsample=view.downsample)
    return _fitting(torch.from_numpy(block), about, str(path))


def read_events(path: Path) -> Events:
    """A recording in any of the formats that data sets come in, told by ending and first bytes."""
    ending = path.suffix.lower()
    if ending == ".bin":
        return read_nmnist(path)
    if ending == ".npy":
        return read_gesture_npy(path)
    if ending == ".aedat":
        with path.open("rb") as stream:
            return read_aedat3(path) if stream.read(len(AEDAT3)) == AEDAT3 else read_aedat2(path)
    raise UserError(f"{path}: give a picture ({', '.join(PICTURES)}) or a recording (.aedat, .bin or .npy).")


def spikes_of_picture(data: bytes, name: str, about: Mapping[str, Any], generator: torch.Generator) -> Tensor:
    """Rate-encoded spikes `(time, inputs)` of a picture, bright on dark, of the size the network knows."""
    from PIL import Image, UnidentifiedImageError

    shape = tuple(about["sample_shape"])
    require(len(shape) == 2, f"{name}: a network trained on {about['name']} takes no pictures.")
    require(len(data) <= LARGEST_PICTURE, f"{name} is larger than the {LARGEST_PICTURE:,} bytes that are read.")
    try:
        with Image.open(io.BytesIO(data)) as picture:
            require(
                (picture.height, picture.width) == shape,
                f"{name} has {picture.height}×{picture.width} pixels, but the network takes {shape[0]}×{shape[1]}.",
            )
            grey = np.asarray(picture.convert("L"))
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise UserError(f"{name} cannot be read as a picture ({error}).") from error
    values = torch.from_numpy(grey.reshape(1, -1).copy())
    samples = StaticSamples(values, torch.zeros(1, dtype=torch.int64), int(about["time"]))
    return _fitting(samples.spikes(torch.tensor([0]), generator)[:, 0], about, name)


def bins_of_lines(lines: Iterable[str], about: Mapping[str, Any]) -> Iterator[Tensor]:
    """Spikes `(inputs,)` of each time bin as soon as a line shows that it is over; the last one at the end."""
    view = view_of(about)
    begin: int | None = view.start
    number = 0
    pending: list[NDArray[np.int64]] = []
    for count, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        row = _row(line, count, view.sensor)
        begin = int(row[0]) if begin is None else begin
        bin_of = (int(row[0]) - begin) // view.step
        require(bin_of >= number, f"line {count}: time runs backwards to {int(row[0])} µs.")
        while bin_of > number:
            yield _bin(pending, view, about)
            pending = []
            number += 1
        pending.append(row)
    if pending:
        yield _bin(pending, view, about)


def _row(line: str, count: int, side: int) -> NDArray[np.int64]:
    try:
        t, x, y, p = (int(part) for part in line.replace(",", " ").split())
    except ValueError as error:
        raise UserError(f"line {count} is not `t x y p` in whole numbers: {line.strip()[:60]!r}.") from error
    good = 0 <= x < side and 0 <= y < side and p in (0, 1) and 0 <= t < 2**62
    require(
        good, f"line {count}: x and y must lie in [0, {side - 1}] and p be 0 or 1, but it is {line.strip()[:60]!r}."
    )
    return np.array([t, x, y, p], dtype=np.int64)


def _bin(rows: list[NDArray[np.int64]], view: View, about: Mapping[str, Any]) -> Tensor:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    events = Events(
        t=np.zeros(len(table), dtype=np.int64),
        x=table[:, 1].astype(np.int16),
        y=table[:, 2].astype(np.int16),
        p=table[:, 3].astype(np.uint8),
        width=view.sensor,
        height=view.sensor,
    )
    block = binned(view.cut(events), 1, 1, start=0, downsample=view.downsample)
    return _fitting(torch.from_numpy(block), about, "the stream of events")[0]


def _fitting(spikes: Tensor, about: Mapping[str, Any], name: str) -> Tensor:
    require(
        spikes.shape[1] == about["inputs"],
        f"{name} gives {spikes.shape[1]} inputs, but the network takes {about['inputs']}: it is of another camera.",
    )
    return spikes
