"""One file, or a stream of event lines, as input spikes of a trained network: as its own data set would encode it.

Pictures are rate-encoded; recordings are cut, mirrored, binned and down-sampled as the loader of the network's data set
does. Event lines are text, `t x y p` with t in µs, separated by blanks or commas.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.data.base import StaticSamples
from bayspike.data.delays import Silence, delayed, delayed_bins, delays_of
from bayspike.data.files import pictures, recordings
from bayspike.data.files.events import Events, View, binned
from bayspike.data.files.pictures import read_picture
from bayspike.data.files.recordings import read_events
from bayspike.data.sets import dvs_gesture, folder, mnist_dvs, nmnist, poker_dvs
from bayspike.errors import UserError, require

LONGEST_SILENCE = 86_400_000_000  # µs: a day
LONGEST_LINE = 200  # characters of one event


def view_of(about: Mapping[str, Any]) -> View:
    """The view of the data set a network was trained on."""
    name, time = str(about["name"]).removesuffix("_simulated"), int(about["time"])
    if about.get("view", {}).get("kind") == "recordings":
        return folder.view_of(about["view"], time)
    if name == "nmnist":
        return View(lambda events: events, nmnist.SPAN // time, _merged(about, 34), (34, 34), 0)
    if name == "poker_dvs":
        factor = _merged(about, 35)
        return View(lambda events: events.crop(0, 0, 35, 35), poker_dvs.SPAN // time, factor, (128, 128), None)
    if name == "mnist_dvs":
        return View(lambda events: events.mirrored().crop(48, 48, 26, 26), mnist_dvs.SPAN // time, 1, (128, 128), None)
    if name in ("dvs_gesture", "gestures"):
        usual = {"bin_ms": dvs_gesture.BIN // 1000}
        step = int({**usual, **about["data"].get("options", {}), **about.get("view", {})}["bin_ms"]) * 1000
        return View(lambda events: events, step, _merged(about, 128), (128, 128), None)
    raise UserError(f"a network trained on {about['name']} takes pictures, not recordings of events.")


def _merged(about: Mapping[str, Any], pixels: int) -> int:
    """How many pixels to a side became one, of a camera's `pixels`: by the size of what the network sees."""
    return max(1, round(pixels / int(about["sample_shape"][-1])))


def spikes_of_file(path: Path, about: Mapping[str, Any], generator: torch.Generator, resize: bool = False) -> Tensor:
    """Spikes `(time, inputs)` of a picture (with `resize` of any size) or a recording."""
    require(path.is_file(), f"{path} is not a file: give a picture or a recording of events.")
    if path.suffix.lower() in pictures.ENDINGS:
        return spikes_of_picture(path, str(path), about, generator, resize)
    require(
        path.suffix.lower() in recordings.ENDINGS,
        f"{path}: give a picture ({', '.join(pictures.ENDINGS)}) or a recording ({', '.join(recordings.ENDINGS)}).",
    )
    view = view_of(about)
    seen = about.get("view", {})
    recorded = read_events(path, sensor=view.sensor, sort=bool(seen.get("sort", False)))
    begin = int(recorded.t[0]) if view.start is None else view.start
    events = view.cut(recorded)
    time = int(about["time"])
    # recordings to judge may be longer than those learnt
    if about["name"] in ("dvs_gesture", "gestures_simulated") and "kind" not in seen:
        time = min(-(-(recorded.duration + 1) // view.step), 10 * time)
    block = binned(events, time, view.step, start=begin, downsample=view.downsample)
    return _fitting(delayed(torch.from_numpy(_planes(block, about)), delays_of(seen)), about, str(path))


def spikes_of_picture(
    source: Path | bytes, name: str, about: Mapping[str, Any], generator: torch.Generator, resize: bool = False
) -> Tensor:
    """Spikes `(time, inputs)` of a picture, bright on dark, of the size the network knows or brought to it."""
    shape = tuple(about["sample_shape"])
    require(len(shape) == 2, f"{name}: a network trained on {about['name']} takes no pictures.")
    seen = about.get("view", {})
    resize = resize or bool(seen.get("resize", False))
    invert = bool(seen.get("invert", False))
    grey = read_picture(source, (shape[0], shape[1]), name=name, resize=resize, invert=invert)
    encoder = about.get("data", {}).get("options", {}).get("encoder", "rate")
    values = torch.from_numpy(grey.reshape(1, -1).copy())
    samples = StaticSamples(values, torch.zeros(1, dtype=torch.int64), int(about["time"]), encoder)
    return _fitting(samples.spikes(torch.tensor([0]), generator)[:, 0], about, name)


def bins_of_lines(lines: Iterable[str | bytes], about: Mapping[str, Any]) -> Iterator[Tensor | Silence]:
    """Spikes `(inputs,)` of each time bin, at every age that the network sees; see `_bins`."""
    for each in delayed_bins(_bins(lines, about), delays_of(about.get("view", {}))):
        yield each if isinstance(each, Silence) else _fitting(each[None], about, "the stream of events")[0]


def _bins(lines: Iterable[str | bytes], about: Mapping[str, Any]) -> Iterator[Tensor | Silence]:
    """What the camera said in each time bin as soon as a line shows that it is over; the last one at the end.

    Bins without an event come as one `Silence`, however many they are. Where a signal begins at a time of its own, a
    clock that shows a later one than a whole signal lasts began before it: then its first event's bin is the first.
    """
    view = view_of(about)
    begin: int | None = view.start
    number = last = 0
    pending: dict[tuple[int, int, int], None] = {}  # of one bin: each channel once, so that no stream fills the memory
    for count, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        t, *channel = _row(line, count, view.sensor)
        if begin is None:
            begin = t
        elif not last and t - begin >= int(about["time"]) * view.step:
            begin = t - (t - begin) % view.step
        last = last or begin
        require(
            t - last <= LONGEST_SILENCE,
            f"line {count}: time leaps from {last} to {t} µs, more than a day: the clock of the camera is not sound.",
        )
        last = t
        bin_of = (t - begin) // view.step
        require(bin_of >= number, f"line {count}: time runs backwards to {t} µs.")
        if bin_of > number:
            if pending:
                yield _bin(pending, view, about)
                number += 1
            if bin_of > number:
                yield Silence(bin_of - number)
            number = bin_of
            pending = {}
        pending[channel[0], channel[1], channel[2]] = None
    if pending:
        yield _bin(pending, view, about)


def _row(line: str | bytes, count: int, sensor: tuple[int, int]) -> tuple[int, int, int, int]:
    shown = line[:60].strip() if isinstance(line, str) else line[:60].strip().decode("ascii", "backslashreplace")
    try:
        text = line if isinstance(line, str) else line.decode("ascii")
        require(len(text) <= LONGEST_LINE, f"line {count} is longer than the {LONGEST_LINE} characters that are read.")
        t, x, y, p = (int(part) for part in text.replace(",", " ").split())
    except UserError:
        raise
    except ValueError as error:
        raise UserError(f"line {count} is not `t x y p` in whole numbers: {shown!r}.") from error
    width, height = sensor
    good = 0 <= x < width and 0 <= y < height and p in (0, 1) and 0 <= t < 2**62
    limits = (
        f"x and y must lie in [0, {width - 1}]" if width == height else f"x must be below {width}, y below {height}"
    )
    require(good, f"line {count}: {limits} and p be 0 or 1, but it is {shown!r}.")
    return t, x, y, p


def _bin(channels: Iterable[tuple[int, int, int]], view: View, about: Mapping[str, Any]) -> Tensor:
    table = np.array(list(channels), dtype=np.int64).reshape(-1, 3)
    events = Events(
        t=np.zeros(len(table), dtype=np.int64),
        x=table[:, 0].astype(np.int16),
        y=table[:, 1].astype(np.int16),
        p=table[:, 2].astype(np.uint8),
        width=view.sensor[0],
        height=view.sensor[1],
    )
    block = binned(view.cut(events), 1, 1, start=0, downsample=view.downsample)
    return torch.from_numpy(_planes(block, about))[0]


def _planes(block: NDArray[np.uint8], about: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Both polarities `(time, 2 · pixels)`, or either of them for a network that was taught without telling them."""
    shape = about.get("sample_shape", ())
    if len(shape) != 3 or shape[0] != len(delays_of(about.get("view", {}))):
        return block
    return np.maximum(*np.split(block, 2, axis=1))


def _fitting(spikes: Tensor, about: Mapping[str, Any], name: str) -> Tensor:
    require(
        spikes.shape[1] == about["inputs"],
        f"{name} gives {spikes.shape[1]} inputs, but the network takes {about['inputs']}: it is of another camera.",
    )
    return spikes
