"""A folder of one's own: each sub-folder is a class, or `train` and `test` hold the sub-folders.

Pictures (PNG, JPEG, BMP, GIF, PGM) become grey bytes; recordings of events (.bin, AEDAT 2.0, 3.1 and 4, .npy) become
spikes. All files are of one kind. What is not fixed by the files is an option, and what was decided stands in
`Dataset.view`, so that a single file is read later as these were.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bayspike.data.base import Dataset, Encoder, Samples, StaticSamples, stratified_split
from bayspike.data.delays import NOW, at_ages, check_delays
from bayspike.data.files import pictures, recordings
from bayspike.data.files.events import Events, View, binned
from bayspike.data.files.pictures import read_picture
from bayspike.data.files.recordings import read_events
from bayspike.data.sets.recordings import bin_length, packed_recordings, per_class_limit, with_bar
from bayspike.errors import UserError, require, require_range

TIME_OF_PICTURES, TIME_OF_RECORDINGS = 50, 40
MOST_INPUTS = 128 * 128  # of a picture that nobody asked to make smaller
LONGEST_SIDE = 36  # pixels to which a recording is merged down where nothing is said
LONGEST_SPAN = 10**12  # µs: eleven days
MOST_BYTES = 2**33
_LOOKED_AT = 200  # recordings that decide how long is shown
_MANY = 2_000
HOW = "Name a folder of your own: bayspike run folder --data DIR, with a sub-folder for each class."


class Files(NamedTuple):
    """The files of one part with the numbers of their classes."""

    paths: list[Path]
    labels: list[int]


def find_folder(root: Path | None) -> Path | None:
    """The folder itself, if it is named and holds classes."""
    return root if root is not None and root.is_dir() and any(_classes(part) for part in _parts(root)) else None


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int | None = None,
    test_share: float = 0.2,
    per_class: int | None = None,
    encoder: Encoder = "rate",
    size: int | Sequence[int] | None = None,
    invert: bool = False,
    span: int | None = None,
    downsample: int | None = None,
    sensor: int | Sequence[int] | None = None,
    crop: Sequence[int] | None = None,
    delays: Sequence[int] | None = None,
    sort: bool = False,
) -> Dataset:
    """The pictures or recordings of a folder.

    Of pictures: size (height and width, or one number) to bring them to; invert, for dark on light. Of recordings:
    span, the µs that are shown (by default as long as the longest); sensor, the width and height of the camera; crop,
    the left, top, width and height of what is looked at; downsample, how many pixels a side become one; delays, ages in
    steps at which every input is seen. `test_share` of every class is for testing where there is no folder `test`.
    """
    if root is None:
        raise UserError(HOW)
    require(root.is_dir(), f"{root} is not a folder.")
    require(0 < test_share < 1, f"test_share must lie between 0 and 1, but is {test_share}.")
    parts, names = _files(root, per_class)
    pair = "pictures" if parts[0].paths[0].suffix.lower() in pictures.ENDINGS else "recordings"
    _refuse(pair == "recordings", {"size": size, "invert": invert or None}, "recordings")
    of_recordings = {"span": span, "downsample": downsample, "sensor": sensor, "crop": crop, "delays": delays}
    _refuse(pair == "pictures", of_recordings, "pictures")
    if pair == "pictures":
        shown = TIME_OF_PICTURES if time is None else time
        samples, shape, view = _pictures(parts, shown, encoder, _pair("size", size), invert)
    else:
        require(encoder == "rate", "recordings are spikes already: leave out encoder.")
        shown = TIME_OF_RECORDINGS if time is None else time
        ages = check_delays(NOW if delays is None else delays)
        samples, shape, view = _recordings(parts, shown, span, downsample, _pair("sensor", sensor), crop, ages, sort)
    if len(samples) == 1:
        train, test = stratified_split(samples[0].labels, test_share, seed)
        samples = [samples[0].subset(train), samples[0].subset(test)]
    return Dataset("folder", samples[0], samples[1], names, shape, view=view)


def _pictures(
    parts: Sequence[Files], time: int, encoder: Encoder, size: tuple[int, int] | None, invert: bool
) -> tuple[list[Samples], tuple[int, ...], dict[str, Any]]:
    require_range("time", time, 1)
    first = parts[0].paths[0]
    shape = size or read_picture(first, invert=invert).shape
    height, width = int(shape[0]), int(shape[1])
    require(
        size is not None or height * width <= MOST_INPUTS,
        f"{first} has {height}×{width} pixels, and each would be an input: make them smaller with --options size=28.",
    )
    count = sum(len(part.paths) for part in parts)
    require(
        count * height * width <= MOST_BYTES,
        f"{count:,} pictures of {height}×{width} pixels are more than the {MOST_BYTES:,} bytes that are held: "
        "choose a smaller size, or fewer with per_class.",
    )
    samples: list[Samples] = []
    for part in parts:
        values = np.empty((len(part.paths), height * width), dtype=np.uint8)
        for index, path in enumerate(with_bar(part.paths, "reading pictures", least=_MANY)):
            grey = read_picture(path, size, resize=size is not None, invert=invert)
            require(
                grey.shape == (height, width),
                f"{path} has {grey.shape[0]}×{grey.shape[1]} pixels, but {first} {height}×{width}: bring all to one "
                "size with --options size=28.",
            )
            values[index] = grey.reshape(-1)
        samples.append(StaticSamples(torch.from_numpy(values), torch.tensor(part.labels), time, encoder))
    return samples, (height, width), {"kind": "pictures", "resize": size is not None, "invert": invert}


def _recordings(
    parts: Sequence[Files],
    time: int,
    span: int | None,
    downsample: int | None,
    sensor: tuple[int, int] | None,
    crop: Sequence[int] | None,
    delays: tuple[int, ...],
    sort: bool,
) -> tuple[list[Samples], tuple[int, ...], dict[str, Any]]:
    def read(path: Path) -> Events:
        return read_events(path, sensor=sensor, sort=sort)

    first = read(parts[0].paths[0])
    if crop is not None:
        inside = len(crop) == 4 and min(crop[:2]) >= 0 and min(crop[2:]) >= 1
        inside = inside and crop[0] + crop[2] <= first.width and crop[1] + crop[3] <= first.height
        require(
            inside, f"crop is left, top, width and height within {first.width}×{first.height}, but is {list(crop)}."
        )
    width, height = (first.width, first.height) if crop is None else (int(crop[2]), int(crop[3]))
    factor = -(-max(width, height) // LONGEST_SIDE) if downsample is None else downsample
    require_range("downsample", factor, 1, max(width, height))
    if span is not None:
        require_range("span", span, 1, LONGEST_SPAN)
    shown = _longest(parts[0].paths, read) if span is None else span
    view = {
        "kind": "recordings", "span": max(shown, time), "sensor": [first.width, first.height],
        "crop": None if crop is None else [int(side) for side in crop], "downsample": factor, "sort": sort,
    }  # fmt: skip
    look = view_of(view, time)
    sides = (-(-height // factor), -(-width // factor))
    inputs = 2 * sides[0] * sides[1]
    count = sum(len(part.paths) for part in parts)
    require(
        count * time * inputs // 8 <= MOST_BYTES,
        f"{count:,} recordings of {time} steps and {inputs:,} inputs are more than the {MOST_BYTES:,} bytes that are "
        "held: choose a larger downsample, or fewer with per_class.",
    )

    def encode(path: Path) -> NDArray[np.uint8]:
        events = read(path)
        begin = int(events.t[0])
        return binned(look.cut(events), time, look.step, start=begin, downsample=factor)

    samples: list[Samples] = [
        at_ages(packed_recordings(part.paths, part.labels, encode, time, inputs, "recordings"), delays)
        for part in parts
    ]
    return samples, (2 * len(delays), *sides), view | ({} if delays == NOW else {"delays": list(delays)})


def view_of(view: Mapping[str, Any], time: int) -> View:
    """How a recording is looked at, from the plain values of `Dataset.view`."""
    crop, (width, height) = view["crop"], view["sensor"]

    def cut(events: Events) -> Events:
        return events if crop is None else events.crop(*crop)

    return View(cut, bin_length(int(view["span"]), time), int(view["downsample"]), (int(width), int(height)), None)


def _longest(paths: Sequence[Path], read: Callable[[Path], Events]) -> int:
    """µs of the longest of some recordings, spread over all, to the next millisecond."""
    places = np.unique(np.linspace(0, len(paths) - 1, _LOOKED_AT).round().astype(int))
    return max(1000, *(-(-(read(paths[place]).duration + 1) // 1000) * 1000 for place in places))


def _parts(root: Path) -> list[Path]:
    """`train` and `test`, where they are there; else the folder itself."""
    named = {child.name.lower(): child for child in root.iterdir() if child.is_dir()}
    if "train" not in named:
        require("test" not in named or len(named) > 1, f"{root} holds a folder test, but no folder train beside it.")
        return [root]
    extra = [name for name in named if name not in ("train", "test") and not name.startswith(".")]
    require(not extra, f"{root} holds a folder train, but also {extra[:1]}: classes go into train and test.")
    return [named["train"], named["test"]] if "test" in named else [named["train"]]


def _classes(folder: Path) -> list[Path]:
    found = [child for child in folder.iterdir() if child.is_dir() and not child.name.startswith(".")]
    return sorted(found, key=lambda child: _natural(child.name))


def _files(root: Path, per_class: int | None) -> tuple[list[Files], tuple[str, ...]]:
    folders = _parts(root)
    names = [child.name for child in _classes(folders[0])]
    require(
        len(names) >= 2,
        f"{folders[0]} has {len(names)} sub-folders: put the files of each class, two classes at least, into a folder "
        "of its name.",
    )
    parts, kinds = [], dict[str, Path]()
    for folder in folders:
        part = Files([], [])
        for child in _classes(folder):
            require(child.name in names, f"{child} is of a class that {folders[0]} does not have.")
            found = _readable(child)
            require(bool(found), f"{child} holds no pictures ({_listed(pictures.ENDINGS)}) and no recordings "
                    f"({_listed(recordings.ENDINGS)}).")  # fmt: skip
            part.paths.extend(found)
            part.labels.extend([names.index(child.name)] * len(found))
            for path in found:
                kinds.setdefault(_kind(path), path)
        kept = per_class_limit(part.labels, per_class)
        parts.append(Files([part.paths[i] for i in kept], [part.labels[i] for i in kept]))
    if len(kinds) > 1:
        one, other = list(kinds.values())[:2]
        raise UserError(f"{root} holds files of two kinds, such as {one} and {other}: keep one kind in a folder.")
    return parts, tuple(names)


def _readable(folder: Path) -> list[Path]:
    known = (*pictures.ENDINGS, *recordings.ENDINGS)
    found = (p for p in folder.iterdir() if p.suffix.lower() in known and not p.name.startswith("."))
    return sorted((path for path in found if path.is_file()), key=lambda path: _natural(path.name))


def _kind(path: Path) -> str:
    return "picture" if path.suffix.lower() in pictures.ENDINGS else path.suffix.lower()


def _natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """A key that puts 10 behind 9, and is never equal for different names."""
    pieces = re.findall(r"[0-9]{1,300}|[^0-9]+", name)
    return [(0, int(piece), "") if piece[0] in "0123456789" else (1, 0, piece) for piece in pieces], name


def _pair(name: str, value: int | Sequence[int] | None) -> tuple[int, int] | None:
    if value is None:
        return None
    sides = (value, value) if isinstance(value, int) else tuple(value)
    whole = len(sides) == 2 and all(isinstance(side, int) and 1 <= side <= 2**14 for side in sides)
    require(whole, f"{name} must be one whole number, or two as in [28,28], but is {value!r}.")
    return int(sides[0]), int(sides[1])


def _refuse(wrong: bool, options: Mapping[str, Any], kind: str) -> None:
    for name, value in options.items():
        require(not wrong or value is None, f"{name} is not an option for {kind}: leave it out.")


def _listed(endings: Sequence[str]) -> str:
    return ", ".join(endings)
