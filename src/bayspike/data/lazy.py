"""Samples of a map-style torch data set (torchvision's, tonic's, anybody's), read when they are wanted.

An item is `(x, label)`. What x is shows in the first item: events with the fields t, x, y and p, a picture, or a spike
train (frames of an event camera among them). Each becomes bytes or bits once; these are kept up to a bound of memory,
and what is beyond it is read again whenever it is wanted.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.data import arrays, encoders
from bayspike.data.items import Items
from bayspike.errors import UserError, require, require_range

MEMORY = 2**30  # bytes that are kept
_LOOKED_AT = 64  # recordings that decide how long is shown
_FIELDS = {"t", "x", "y", "p"}
Block = NDArray[np.uint8]


@dataclass
class Kept:
    """What has been read already, as far as there is room; shared by all parts of a data set."""

    room: int
    blocks: dict[int, Block] = field(default_factory=dict)

    def put(self, place: int, block: Block) -> None:
        if place not in self.blocks and block.nbytes <= self.room:
            self.room -= block.nbytes
            self.blocks[place] = block


@dataclass(frozen=True, eq=False)
class LazySamples(Items):
    """Items of a data set at `places`; `convert` makes bytes `(inputs,)` or bits `(time, bytes)` of one."""

    source: Any
    places: Tensor
    labels: Tensor
    time: int
    inputs: int
    convert: Callable[[Any, int], Block]
    encoder: Literal["rate", "latency"] | None  # None: spikes already
    kept: Kept

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def bytes_per_sample(self) -> int:
        return self.inputs if self.encoder else self.time * -(-self.inputs // 8)

    def block(self, place: int) -> Block:
        """The stored form of one item of the source."""
        found = self.kept.blocks.get(place)
        if found is None:
            found = self.convert(item(self.source, place)[0], place)
            self.kept.put(place, found)
        return found

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        blocks = np.stack([self.block(place) for place in self.places[indices].tolist()])
        if self.encoder == "latency":
            return encoders.latency(torch.from_numpy(blocks), self.time)
        if self.encoder == "rate":
            return encoders.rate(torch.from_numpy(blocks), self.time, generator)
        return torch.from_numpy(encoders.unpack(np.ascontiguousarray(blocks.transpose(1, 0, 2)), self.inputs))

    def subset(self, indices: Tensor) -> "LazySamples":
        return LazySamples(
            self.source, self.places[indices], self.labels[indices], self.time, self.inputs, self.convert,
            self.encoder, self.kept,
        )  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """How items are read; see `Dataset.from_torch`."""

    time: int | None = None
    span: int | None = None
    sensor_size: Sequence[int] | None = None
    downsample: int = 1
    encoder: Literal["rate", "latency"] = "rate"
    clip: bool = False
    kind: Literal["pictures", "trains"] | None = None
    memory: int = MEMORY


@dataclass(frozen=True)
class Form:
    """What the items of a data set are: found at its first item, and asked of all others."""

    time: int
    inputs: int
    shape: tuple[int, ...]
    convert: Callable[[Any, int], Block]
    encoder: Literal["rate", "latency"] | None


def item(source: Any, place: int) -> tuple[Any, Any]:
    """One item as a pair; anything else is refused."""
    found = source[place]
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise UserError(f"item {place} of the data set is no pair (x, label), but a {type(found).__name__}.")
    return found[0], found[1]


def check_map_style(source: Any) -> None:
    whole = hasattr(source, "__len__") and hasattr(source, "__getitem__")
    require(whole, f"{type(source).__name__} is no map-style data set: it needs __len__ and __getitem__.")
    require(len(source) > 0, f"{type(source).__name__} has no items.")


def labels_of(source: Any) -> Sequence[Any]:
    """The labels of all items: those the data set lists, if they are what its items say, else read one by one."""
    if getattr(source, "target_transform", None) is None and getattr(source, "transforms", None) is None:
        for name in ("targets", "labels"):
            listed = getattr(source, name, None)
            if listed is not None and not callable(listed) and len(listed) == len(source):
                return _plain(listed)
    return _plain([item(source, place)[1] for place in range(len(source))])


def _plain(labels: Any) -> Sequence[Any]:
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return [each.item() if hasattr(each, "item") else each for each in values]


def form_of(source: Any, how: Reading) -> Form:
    """What the first item is taken for."""
    x = item(source, 0)[0]
    if isinstance(x, np.ndarray) and x.dtype.names is not None and set(x.dtype.names) >= _FIELDS:
        return _events(source, how)
    first = _array(x)
    # one picture or train is one of an array of them
    trains = arrays.is_trains(first[None], how.time) or first.ndim == 4 if how.kind is None else how.kind == "trains"
    return _trains(first, how) if trains else _pictures(first, how)


def _array(x: Any) -> NDArray[Any]:
    if hasattr(x, "convert") and hasattr(x, "getbands"):  # a picture of Pillow's
        x = x.convert("L")
    return arrays.as_array(x, "x")


def _pictures(first: NDArray[Any], how: Reading) -> Form:
    time = how.time
    if time is None:
        raise UserError("pictures need time=…, the number of time-steps for which each is shown.")
    require_range("time", time, 1)

    def convert(x: Any, place: int) -> Block:
        values, shape = arrays.as_bytes(_array(x)[None], single=True)
        _same(shape, form.shape, place)
        return values[0].numpy()

    values, shape = arrays.as_bytes(first[None], single=True)
    form = Form(time, int(values.shape[1]), shape, convert, how.encoder)
    return form


def _trains(first: NDArray[Any], how: Reading) -> Form:
    def block(x: NDArray[Any]) -> tuple[Tensor, int, tuple[int, ...]]:
        return arrays.as_bits((x > 0 if how.clip else x)[None], None)

    def convert(x: Any, place: int) -> Block:
        packed, _, shape = block(_array(x))
        _same((packed.shape[1], *shape), (form.time, *form.shape), place)
        return packed[0].numpy()

    packed, inputs, shape = block(first)
    form = Form(int(packed.shape[1]), inputs, shape, convert, None)
    return form


def _same(found: tuple[int, ...], expected: tuple[int, ...], place: int) -> None:
    require(
        found == expected,
        f"item {place} has the shape {found}, but item 0 has {expected}: make all alike by a transform, such as a "
        "resize of pictures or a fixed number of time bins.",
    )


def _events(source: Any, how: Reading) -> Form:
    time = how.time
    if time is None:
        raise UserError("events need time=…, the number of time-steps they are put into.")
    require_range("time", time, 1)
    require_range("downsample", how.downsample, 1)
    sensor = getattr(source, "sensor_size", None) if how.sensor_size is None else how.sensor_size
    if sensor is None or len(sensor) < 2:
        raise UserError("events need sensor_size=(width, height, 2): the data set does not tell it.")
    width, height = (-(-int(side) // how.downsample) for side in sensor[:2])
    inputs = 2 * height * width
    span = _longest(source) if how.span is None else how.span
    require(span >= time, f"span must be at least one µs for each of the {time} steps, but is {span}.")

    def convert(x: Any, place: int) -> Block:
        require(
            isinstance(x, np.ndarray) and x.dtype.names is not None and set(x.dtype.names) >= _FIELDS,
            f"item {place} holds no events with the fields t, x, y and p, as item 0 does.",
        )
        t, across, down = (x[name].astype(np.int64) for name in ("t", "x", "y"))
        inside = (across >= 0) & (across < sensor[0]) & (down >= 0) & (down < sensor[1])
        require(bool(inside.all()), f"item {place} has events outside the {sensor[0]}×{sensor[1]} sensor.")
        moment = (t - (t.min() if len(t) else 0)) // (span // time)
        channel = ((x["p"] > 0) * height + down // how.downsample) * width + across // how.downsample
        return encoders.pack(encoders.events_to_spikes(moment, channel, time, inputs))

    return Form(time, inputs, (2, height, width), convert, None)


def _longest(source: Any) -> int:
    """µs of the longest of some recordings, spread over all, to the next millisecond."""
    longest = 0
    for place in np.unique(np.linspace(0, len(source) - 1, _LOOKED_AT).round().astype(int)):
        t = item(source, int(place))[0]["t"]
        longest = max(longest, int(t.max() - t.min()) + 1 if len(t) else 0)
    return max(1000, -(-longest // 1000) * 1000)
