"""Labelled samples that turn into spikes on demand.

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

from bayspike.data import arrays, encoders
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


def merge(parts: Sequence[Samples]) -> Samples:
    """All samples of `parts` one after the other; the parts must agree in kind, time and inputs."""
    require(len(parts) > 0, "There is nothing to merge: give at least one set of samples.")
    first = parts[0]
    shapes = [(type(p).__name__, p.time, p.inputs) for p in parts]
    if len(set(shapes)) > 1:
        raise UserError(f"Only samples of one kind, time and inputs can be merged, but got {set(shapes)}.")
    join = getattr(first, "_join", None)
    if join is None:
        raise UserError(f"Samples of type {type(first).__name__} cannot be merged.")
    joined: Samples = join(list(parts))
    return joined


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
