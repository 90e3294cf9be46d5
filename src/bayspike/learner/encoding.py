"""How an example as people hold it becomes spikes: settled when a learner is made, and part of its file.

Static examples are bytes, each the chance of a spike (`rate`) or its moment (`latency`); points in a few dimensions go
through a population code; spike trains are kept as bits.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.continual.tasks import Concatenated, Remapped
from bayspike.data.base import CoordinateSamples, Samples, SpikeSamples, StaticSamples
from bayspike.data.encoders import PopulationCode, pack
from bayspike.errors import UserError, require, require_range

Kind = Literal["rate", "latency", "population", "spikes"]
LONGEST = 100_000  # time-steps of an example


@dataclass(frozen=True)
class Encoding:
    """`shape` is that of one example: (28, 28), (64,), the dimensions of a point, or one frame of a spike train."""

    kind: Kind
    shape: tuple[int, ...]
    time: int
    code: PopulationCode | None = None

    def __post_init__(self) -> None:
        require(self.kind in get_args(Kind), f"encoder must be one of {', '.join(get_args(Kind))}, not {self.kind!r}.")
        require(len(self.shape) > 0, "inputs must be a number, or the shape of one example, for instance (28, 28).")
        for side in self.shape:
            require_range("inputs", side, 1)
        require_range("time", self.time, 1, LONGEST)
        if self.kind == "population":
            require(
                self.code is not None and self.shape == (len(self.code.low),),
                "an encoder for points needs a PopulationCode with as many dimensions as a point has.",
            )

    @property
    def inputs(self) -> int:
        return math.prod(self.shape) if self.code is None else self.code.inputs

    def samples(self, x: Any, labels: Tensor) -> Samples:
        """Examples as an array, numpy or torch, one for each label."""
        block = as_array(x)
        require(
            block.ndim > 0 and len(block) == len(labels),
            f"there are {len(block) if block.ndim else 0} examples but {len(labels)} labels.",
        )
        if self.kind == "spikes":
            return SpikeSamples(torch.from_numpy(pack(self._trains(block))), labels, self.time, self.inputs)
        flat = block.reshape(len(block), math.prod(block.shape[1:]))
        width = math.prod(self.shape)
        require(
            flat.shape[1] == width,
            f"an example must have the shape {self.shape}, {width} numbers, but those given have {block.shape[1:]}.",
        )
        if self.kind == "population":
            assert self.code is not None
            return CoordinateSamples(torch.from_numpy(flat.astype(np.float32)), labels, self.time, self.code)
        encoder: Literal["rate", "latency"] = "latency" if self.kind == "latency" else "rate"
        return StaticSamples(torch.from_numpy(as_bytes(flat)), labels, self.time, encoder)

    def one(self, x: Any, label: int = 0) -> Samples:
        """A single example."""
        return self.samples(as_array(x)[None], torch.tensor([label]))

    def _trains(self, block: NDArray[Any]) -> NDArray[np.uint8]:
        require(
            block.ndim >= 3 and block.shape[1] == self.time and math.prod(block.shape[2:]) == self.inputs,
            f"spike trains must have the shape (examples, {self.time}, {self.inputs}), but have {block.shape}.",
        )
        require(
            bool(((block == 0) | (block == 1)).all()),
            "spike trains must hold zeros and ones only: bin finer, or cut counts to 1 with numpy.minimum(x, 1).",
        )
        return block.reshape(len(block), self.time, self.inputs).astype(np.uint8)


def as_array(x: Any) -> NDArray[Any]:
    """Whatever looks like numbers, as a numpy array."""
    if isinstance(x, Tensor):
        return x.detach().cpu().numpy()
    try:
        found = np.asarray(x)
    except ValueError as error:
        raise UserError(f"the examples are not one block of numbers ({error}).") from error
    require(
        found.dtype.kind in "biuf",
        f"the examples must be numbers, but are of type {found.dtype}; give an array of them.",
    )
    return found


def as_bytes(values: NDArray[Any]) -> NDArray[np.uint8]:
    """Bytes as they are, truth values as 0 and 255, other whole numbers from 0 to 255, fractions from 0 to 1."""
    if values.dtype == np.uint8:
        return np.ascontiguousarray(values)
    if values.dtype == np.bool_:
        return values.astype(np.uint8) * np.uint8(255)
    low, high = (float(values.min()), float(values.max())) if values.size else (0.0, 0.0)
    if values.dtype.kind == "f":
        require(
            low >= 0 and high <= 1,
            f"fractions must lie between 0 and 1, but those given go from {low:g} to {high:g}: scale all alike.",
        )
        return np.round(values * 255).astype(np.uint8)
    require(
        low >= 0 and high <= 255,
        f"whole numbers must lie between 0 and 255, but those given go from {low:g} to {high:g}: scale all alike.",
    )
    return values.astype(np.uint8)


def encoding_of(samples: Samples, shape: tuple[int, ...]) -> Encoding:
    """The encoding of samples that are there already."""
    if isinstance(samples, Remapped):
        return encoding_of(samples.samples, shape)
    if isinstance(samples, Concatenated):
        return encoding_of(samples.parts[0], shape)
    if isinstance(samples, CoordinateSamples):
        return Encoding("population", (samples.coordinates.shape[1],), samples.time, samples.code)
    fitting = shape if math.prod(shape) == samples.inputs else (samples.inputs,)
    kind: Kind = samples.encoder if isinstance(samples, StaticSamples) else "spikes"
    return Encoding(kind, fitting, samples.time)
