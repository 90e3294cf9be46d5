"""Static values into spikes (paper, sec. Datasets): rate, population and latency codes.

Every encoder takes a batch of values and returns a `uint8` block of zeros and ones `(time, batch, inputs)`.
The chance of a spike is kept in one byte: comparing it with a random byte *is* the Bernoulli draw, at
under a nanosecond a sample, and nothing is ever held in floating point.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.errors import require


def numpy_generator(generator: torch.Generator) -> np.random.Generator:
    """A fast numpy generator (SFC64) seeded by one draw of the caller's torch generator."""
    seed = torch.randint(2**63 - 1, (1,), generator=generator, device=generator.device)
    return np.random.Generator(np.random.SFC64(int(seed)))


def rate(values: Tensor, time: int, generator: torch.Generator) -> Tensor:
    """Bernoulli spikes, independent at every step, with probability `values / 256`.

    `values` is `(batch, inputs)` of `uint8`: 0 never fires, 255 fires 255 times in 256.
    """
    _check(values, time)
    pixels = np.ascontiguousarray(values.numpy(force=True))
    words = -(-pixels.size // 8)
    random = numpy_generator(generator)
    spikes = np.empty((time, *pixels.shape), dtype=np.bool_)
    for step in spikes:  # a step at a time, so that the random bytes stay in the cache
        draw = random.bit_generator.random_raw(words)
        np.less(draw.view(np.uint8)[: pixels.size].reshape(pixels.shape), pixels, out=step)
    return torch.from_numpy(spikes.view(np.uint8))


def latency(values: Tensor, time: int) -> Tensor:
    """One spike per input, the brighter the earlier: 255 at step 0, 1 at the last step, 0 never."""
    _check(values, time)
    brightness = values.to("cpu", torch.float32)
    moment = torch.round((255 - brightness) / 254 * (time - 1)).long().clamp_(max=time - 1)
    spikes = torch.zeros((time, *values.shape), dtype=torch.uint8)
    return spikes.scatter_(0, moment.unsqueeze(0), (values.cpu() > 0).to(torch.uint8).unsqueeze(0))


@dataclass(frozen=True)
class PopulationCode:
    """Each coordinate is spread over `neurons` neurons with raised-cosine tuning curves.

    The curves' centres are equally spaced from `low` to `high`; a curve is `(1 + cos(pi d)) / 2` with `d` the
    distance to its centre in units of twice the spacing, so that four neurons answer to any one value and
    their responses add up to a constant.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    neurons: int = 10

    def __post_init__(self) -> None:
        require(self.neurons >= 2, f"A population code needs at least 2 neurons, not {self.neurons}.")
        require(
            len(self.low) == len(self.high) and all(a < b for a, b in zip(self.low, self.high, strict=True)),
            f"A population code needs low < high in every dimension, but got {self.low} and {self.high}.",
        )

    @property
    def inputs(self) -> int:
        return self.neurons * len(self.low)

    def tuning(self, coordinates: Tensor) -> Tensor:
        """Responses in [0, 1]: `(batch, dimensions)` to `(batch, dimensions * neurons)`."""
        require(
            coordinates.ndim == 2 and coordinates.shape[1] == len(self.low),
            f"Expected coordinates of shape (batch, {len(self.low)}), got {tuple(coordinates.shape)}.",
        )
        low, high = torch.tensor(self.low), torch.tensor(self.high)
        place = (coordinates.float().clamp(low, high) - low) / (high - low) * (self.neurons - 1)
        distance = (place.unsqueeze(-1) - torch.arange(self.neurons)) / 2
        return (0.5 * (1 + torch.cos(math.pi * distance.clamp(-1, 1)))).flatten(1)

    def values(self, coordinates: Tensor) -> Tensor:
        """The tuning responses as bytes, ready for `rate`."""
        return torch.round(self.tuning(coordinates) * 255).to(torch.uint8)


def population(coordinates: Tensor, time: int, generator: torch.Generator, code: PopulationCode) -> Tensor:
    """Bernoulli spikes of a population whose rates are the tuning curves of `code`."""
    return rate(code.values(coordinates), time, generator)


def events_to_spikes(
    moment: NDArray[np.int64], channel: NDArray[np.int64], time: int, inputs: int
) -> NDArray[np.uint8]:
    """Spikes `(time, inputs)` where an event falls on a step and a channel; those of other steps are left out."""
    shown = (moment >= 0) & (moment < time)
    spikes = np.zeros(time * inputs, dtype=np.uint8)
    spikes[moment[shown] * inputs + channel[shown]] = 1
    return spikes.reshape(time, inputs)


def pack(spikes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Zeros and ones `(..., inputs)` as bits `(..., ceil(inputs / 8))`."""
    return np.packbits(spikes, axis=-1)


def unpack(packed: NDArray[np.uint8], inputs: int) -> NDArray[np.uint8]:
    """The inverse of `pack`."""
    return np.unpackbits(packed, axis=-1, count=inputs)


def _check(values: Tensor, time: int) -> None:
    require(
        values.dtype == torch.uint8 and values.ndim == 2,
        f"Expected uint8 values of shape (batch, inputs), got {values.dtype} {tuple(values.shape)}.",
    )
    require(time >= 1, f"The number of time-steps must be at least 1, but is {time}.")
