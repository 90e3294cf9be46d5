"""What an experiment sees of any data set: labelled samples that turn into spikes on demand.

`StaticSamples` (images) are encoded afresh at every call, `CoordinateSamples` (points) likewise through a
population code, `SpikeSamples` (event recordings, binned once) are kept as bits and unpacked. Nothing
ever holds a whole data set in floating point.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from bayspike.data import encoders
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
class StaticSamples:
    """Images of bytes `(samples, inputs)`, encoded afresh at every call."""

    values: Tensor
    labels: Tensor
    time: int
    encoder: Encoder = "rate"

    def __post_init__(self) -> None:
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
class CoordinateSamples:
    """Points `(samples, dimensions)` of float32, spread over a population of neurons at every call."""

    coordinates: Tensor
    labels: Tensor
    time: int
    code: encoders.PopulationCode

    def __post_init__(self) -> None:
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
class SpikeSamples:
    """Recorded spikes as bits: `packed` is uint8 `(samples, time, ceil(inputs / 8))`."""

    packed: Tensor
    labels: Tensor
    time: int
    inputs: int

    def __post_init__(self) -> None:
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

    `foreign_about` says what they are; `foreign_classes`, whether they are of the same classes, seen otherwise.
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


def _check_labels(labels: Tensor, samples: int, time: int) -> None:
    require(
        labels.dtype == torch.int64 and labels.shape == (samples,),
        f"Expected int64 labels of shape ({samples},), got {labels.dtype} {tuple(labels.shape)}.",
    )
    require(time >= 1, f"The number of time-steps must be at least 1, but is {time}.")
