"""What an experiment sees of any data set: labelled samples that turn into spikes on demand.

`StaticSamples` (images) are encoded afresh at every call, `CoordinateSamples` (points) likewise through a
population code, `SpikeSamples` (event recordings, binned once) are kept as bits and unpacked. Nothing
ever holds a whole data set in floating point. `Dataset.from_arrays` and `Dataset.from_torch` take what one has.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from bayspike.data import arrays, encoders, lazy
from bayspike.data.items import Items
from bayspike.errors import UserError, require


@runtime_checkable
class Samples(Protocol):
    """Labelled samples that turn into spikes on demand."""

    @property
    def labels(self) -> Tensor:
        """Class of every sample: `(samples,)`, int64."""

    @property
    def time(self) -> int:
        """Number of time-steps T."""

    @property
    def inputs(self) -> int:
        """Number of input channels."""

    @property
    def bytes_per_sample(self) -> int:
        """What storing one sample costs; coresets are counted with it."""

    def __len__(self) -> int: ...

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        """Zeros and ones `(time, batch, inputs)`, uint8, of the samples at `indices`."""

    def subset(self, indices: Tensor) -> "Samples":
        """The samples at `indices`, in that order."""


Encoder = Literal["rate", "latency"]


@dataclass(frozen=True, eq=False)
class StaticSamples(Items):
    """Images of bytes `(samples, inputs)`, encoded afresh at every call."""

    values: Tensor
    labels: Tensor
    time: int
    encoder: Encoder = "rate"

    def __post_init__(self) -> None:
        _take_arrays(self, "values")
        _check_labels(self.labels, len(self.values), self.time)
        require(
            self.values.dtype == torch.uint8 and self.values.ndim == 2,
            f"Expected uint8 values (samples, inputs), got {self.values.dtype} {tuple(self.values.shape)}.",
        )
        require(
            self.encoder in ("rate", "latency"),
            f"Unknown encoder {self.encoder!r}: choose 'rate' or 'latency'.",
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def inputs(self) -> int:
        return int(self.values.shape[1])

    @property
    def bytes_per_sample(self) -> int:
        return self.inputs

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        values = self.values[indices]
        if self.encoder == "latency":
            return encoders.latency(values, self.time)
        return encoders.rate(values, self.time, generator)

    def subset(self, indices: Tensor) -> "StaticSamples":
        return StaticSamples(self.values[indices], self.labels[indices], self.time, self.encoder)

    def _join(self, parts: Sequence["StaticSamples"]) -> "StaticSamples":
        require(len({p.encoder for p in parts}) == 1, "Only samples with the same encoder can be merged.")
        values = torch.cat([p.values for p in parts])
        return StaticSamples(values, torch.cat([p.labels for p in parts]), self.time, self.encoder)


@dataclass(frozen=True, eq=False)
class CoordinateSamples(Items):
    """Points `(samples, dimensions)` of float32, spread over a population of neurons at every call."""

    coordinates: Tensor
    labels: Tensor
    time: int
    code: encoders.PopulationCode

    def __post_init__(self) -> None:
        _take_arrays(self, "coordinates")
        _check_labels(self.labels, len(self.coordinates), self.time)
        require(bool(torch.isfinite(self.coordinates).all()), "The coordinates must be finite numbers.")
        self.code.tuning(self.coordinates[:0])  # refuses a wrong number of dimensions

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def inputs(self) -> int:
        return self.code.inputs

    @property
    def bytes_per_sample(self) -> int:
        return 4 * int(self.coordinates.shape[1])

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        return encoders.population(self.coordinates[indices], self.time, generator, self.code)

    def subset(self, indices: Tensor) -> "CoordinateSamples":
        return CoordinateSamples(self.coordinates[indices], self.labels[indices], self.time, self.code)

    def _join(self, parts: Sequence["CoordinateSamples"]) -> "CoordinateSamples":
        require(len({p.code for p in parts}) == 1, "Only samples with the same code can be merged.")
        coordinates = torch.cat([p.coordinates for p in parts])
        return CoordinateSamples(coordinates, torch.cat([p.labels for p in parts]), self.time, self.code)


@dataclass(frozen=True, eq=False)
class SpikeSamples(Items):
    """Recorded spikes as bits: `packed` is uint8 `(samples, time, ceil(inputs / 8))`."""

    packed: Tensor
    labels: Tensor
    time: int
    inputs: int

    def __post_init__(self) -> None:
        _take_arrays(self, "packed")
        _check_labels(self.labels, len(self.packed), self.time)
        expected = (len(self.labels), self.time, -(-self.inputs // 8))
        require(
            self.packed.dtype == torch.uint8 and tuple(self.packed.shape) == expected,
            f"Expected packed uint8 spikes of shape {expected}, got {self.packed.dtype} {tuple(self.packed.shape)}.",
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def bytes_per_sample(self) -> int:
        return int(self.packed.shape[1] * self.packed.shape[2])

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        """The recorded spikes; nothing is random here, so `generator` is left untouched."""
        bits = self.packed[indices].transpose(0, 1).contiguous().numpy()
        return torch.from_numpy(encoders.unpack(bits, self.inputs))

    def subset(self, indices: Tensor) -> "SpikeSamples":
        return SpikeSamples(self.packed[indices], self.labels[indices], self.time, self.inputs)

    def _join(self, parts: Sequence["SpikeSamples"]) -> "SpikeSamples":
        packed = torch.cat([p.packed for p in parts])
        return SpikeSamples(packed, torch.cat([p.labels for p in parts]), self.time, self.inputs)


@dataclass(frozen=True)
class Dataset:
    """A named data set with its split; `foreign` holds out-of-distribution test inputs where it has them.

    `foreign_about` says what they are; `foreign_classes`, whether they are of the same classes, seen otherwise. `view`
    says in plain values how a file becomes spikes, where single files are to be read later as these were.
    """

    name: str
    train: Samples
    test: Samples
    classes: tuple[str, ...]
    sample_shape: tuple[int, ...]
    simulated: bool = False
    foreign: Samples | None = None
    foreign_about: str = ""
    foreign_classes: bool = False
    view: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        coded = isinstance(self.train, CoordinateSamples)  # the shape is then that of a point, not of its code
        require(
            coded or math.prod(self.sample_shape) == self.train.inputs,
            f"sample_shape {self.sample_shape} holds {math.prod(self.sample_shape)} values, but a sample has "
            f"{self.train.inputs} inputs.",
        )
        for part, samples in (("training", self.train), ("test", self.test)):
            require(
                samples.inputs == self.train.inputs,
                f"the {part} samples have {samples.inputs} inputs, but the training samples {self.train.inputs}.",
            )
            highest = int(samples.labels.max()) if len(samples) else 0
            require(
                highest < len(self.classes),
                f"a {part} sample has the label {highest}, but there are {len(self.classes)} names of classes.",
            )

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        y: Any,
        *,
        time: int | None = None,
        test: tuple[Any, Any] | float = 0.2,
        classes: Sequence[str] | None = None,
        sample_shape: Sequence[int] | None = None,
        inputs: int | None = None,
        encoder: Encoder = "rate",
        kind: Literal["pictures", "trains"] | None = None,
        name: str = "own",
        seed: int = 0,
    ) -> "Dataset":
        """A data set from arrays of numpy or torch.

        Pictures `(n, h, w)`, `(n, 1, h, w)` or features `(n, features)`, bytes or floats in [0, 1], are shown for
        `time` steps. Spike trains `(n, time, inputs)` of 0 and 1 bring their own time: leave `time` out (or give the
        very same); packed eight to a byte they need `inputs`. Labels are whole numbers, or words, in the order of
        `classes`.

        test: arrays of the test part, `(x, y)`; or a share (a number) of every class, drawn by `seed`.
        kind: says what `x` is where the rule above would be wrong.
        """
        pairs = [(x, y), test] if isinstance(test, tuple) else [(x, y)]
        require(
            all(len(pair) == 2 for pair in pairs), "test must be (x, y), a share of every class, or a number of it."
        )
        labels, names = arrays.number_classes([pair[1] for pair in pairs], classes)
        blocks = [arrays.as_array(pair[0], "x") for pair in pairs]
        trains = arrays.is_trains(blocks[0], time) if kind is None else kind == "trains"
        parts: list[Samples] = []
        natural: tuple[int, ...] = ()
        for block, numbers in zip(blocks, labels, strict=True):
            require(
                len(block) == len(numbers),
                f"x has {len(block)} samples, but y has {len(numbers)} labels: one for each.",
            )
            if trains:
                packed, count, shape = arrays.as_bits(block, inputs)
                parts.append(SpikeSamples(packed, numbers, int(packed.shape[1]), count))
            else:
                require(time is not None, "pictures need time=…, the number of time-steps for which each is shown.")
                assert time is not None
                values, shape = arrays.as_bytes(block)
                parts.append(StaticSamples(values, numbers, time, encoder))
            require(
                natural in ((), shape), f"training samples have the shape {natural}, but test samples have {shape}."
            )
            natural = shape
        if not isinstance(test, tuple):
            parts = _split(parts[0], test, seed)
        return cls(name, parts[0], parts[1], names, arrays.fitting_shape(parts[0].inputs, natural, sample_shape))

    @classmethod
    def from_torch(
        cls,
        dataset: Any,
        *,
        test: Any = 0.2,
        time: int | None = None,
        span: int | None = None,
        sensor_size: Sequence[int] | None = None,
        downsample: int = 1,
        encoder: Encoder = "rate",
        clip: bool = False,
        kind: Literal["pictures", "trains"] | None = None,
        classes: Sequence[str] | None = None,
        memory: int = lazy.MEMORY,
        name: str | None = None,
        seed: int = 0,
    ) -> "Dataset":
        """A data set from a map-style one of torch, torchvision or tonic, whose items `(x, label)` are read when wanted.

        Pictures are shown for `time` steps. Frames and spike trains bring their time; counts become 0 and 1 with `clip`.
        Events with the fields t, x, y and p are put into `time` steps over `span` µs (by default as long as the longest)
        of a camera of `sensor_size`, `downsample` pixels a side becoming one. Up to `memory` bytes are kept.

        test: another such data set, or a share of every class, drawn by `seed`.
        """
        how = lazy.Reading(time, span, sensor_size, downsample, encoder, clip, kind, memory)
        share = test if isinstance(test, int | float) else None
        sources = [dataset] if share is not None else [dataset, test]
        for source in sources:
            lazy.check_map_style(source)
        named = getattr(dataset, "classes", None) if classes is None else classes
        named = [str(each) for each in named] if isinstance(named, list | tuple) else None
        labels, names = arrays.number_classes([lazy.labels_of(source) for source in sources], named)
        form = lazy.form_of(dataset, how)
        parts: list[Samples] = [
            lazy.LazySamples(
                source, torch.arange(len(numbers)), numbers, form.time, form.inputs, form.convert, form.encoder, kept
            )
            for source, numbers, kept in zip(
                sources, labels, [lazy.Kept(memory // len(sources)) for _ in sources], strict=True
            )
        ]
        if share is not None:
            parts = _split(parts[0], share, seed)
        return cls(name or type(dataset).__name__.lower(), parts[0], parts[1], names, form.shape)


def _split(samples: Samples, share: float, seed: int) -> list[Samples]:
    require(share > 0, f"test is a share or a number of samples of every class and must be above 0, but is {share}.")
    train, test = stratified_split(samples.labels, share, seed)
    return [samples.subset(train), samples.subset(test)]


def merge(parts: Sequence[Samples]) -> Samples:
    """All samples of `parts` one after the other; the parts must agree in kind, time and inputs."""
    require(len(parts) > 0, "There is nothing to merge: give at least one set of samples.")
    first = parts[0]
    shapes = [(type(p).__name__, p.time, p.inputs) for p in parts]
    if len(set(shapes)) > 1:
        raise UserError(f"Only samples of one kind, time and inputs can be merged, but got {set(shapes)}.")
    if not isinstance(first, StaticSamples | CoordinateSamples | SpikeSamples):
        raise UserError(f"Samples of type {type(first).__name__} cannot be merged.")
    alike: list[Any] = list(parts)
    return first._join(alike)


def stratified_split(labels: Tensor, per_class_test: int | float, seed: int) -> tuple[Tensor, Tensor]:
    """Indices of a train and a test part with the same share of every class, fixed by `seed`.

    `per_class_test` is a number of samples per class, or a fraction of each class below one.
    """
    generator = torch.Generator().manual_seed(seed)
    train, test = [], []
    for label in np.unique(labels.numpy()):
        members = torch.nonzero(labels == int(label)).flatten()
        members = members[torch.randperm(len(members), generator=generator)]
        count = int(per_class_test) if per_class_test >= 1 else max(1, round(len(members) * per_class_test))
        require(
            0 < count < len(members),
            f"Class {label} has {len(members)} samples: {count} for the test part leave none to train on.",
        )
        test.append(members[:count])
        train.append(members[count:])
    return torch.cat(train).sort().values, torch.cat(test).sort().values


def _take_arrays(samples: Any, name: str) -> None:
    """numpy's arrays become torch's, labels of any width int64."""
    given = getattr(samples, name)
    if not isinstance(given, Tensor):
        object.__setattr__(samples, name, torch.from_numpy(np.ascontiguousarray(arrays.as_array(given, name))))
    object.__setattr__(samples, "labels", arrays.as_labels(samples.labels))


def _check_labels(labels: Tensor, samples: int, time: int) -> None:
    require(
        labels.shape == (samples,),
        f"Expected labels of shape ({samples},), one for each sample, got {tuple(labels.shape)}.",
    )
    require(not len(labels) or int(labels.min()) >= 0, "Labels must be whole numbers from 0 on, but some are negative.")
    require(time >= 1, f"The number of time-steps must be at least 1, but is {time}.")
