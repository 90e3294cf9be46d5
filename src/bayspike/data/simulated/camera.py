"""A simulated event camera: what a DVS pixel does with the light that falls on it.

A pixel follows the logarithm of its light through a low-pass of first order, compares it with a remembered level
and fires ON (or OFF) when it has risen (or fallen) by a threshold; then it remembers the new level and is
silent for the refractory time. Thresholds differ from pixel to pixel; light is noisy, the more so the dimmer
it is; and now and then a pixel fires for no reason. Everything is vectorised over recordings and pixels; time is
stepped, and within one step a pixel fires at most once.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from bayspike.data.encoders import numpy_generator
from bayspike.data.files.events import Events
from bayspike.errors import require_range


@dataclass(frozen=True)
class Camera:
    """Thresholds in units of natural-log light, times in µs, rates in Hz per pixel."""

    on_threshold: float = 0.3
    off_threshold: float = 0.3
    mismatch: float = 0.03  # deviation of the thresholds from pixel to pixel
    refractory: float = 1_000.0
    response: float = 3_000.0  # time constant of the low-pass at light 1; inversely proportional to the light
    noise: float = 0.0  # deviation of the log light in one step at light 1; grows as light ** -0.5
    background: float = 0.0  # rate of events without a cause, both polarities together
    light: float = 1.0

    def __post_init__(self) -> None:
        for name in ("on_threshold", "off_threshold", "light"):
            require_range(name, getattr(self, name), 0, low_open=True)
        for name in ("mismatch", "refractory", "response", "noise", "background"):
            require_range(name, getattr(self, name), 0)


def record(
    camera: Camera, log_light: Iterable[Tensor], step: float, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """For every frame after the first, the recordings and pixels that fire ON and OFF, as indices.

    Frames are `(recordings, pixels)` float32, `step` µs apart; the indices point into the flattened frame.
    """
    random = numpy_generator(generator)
    frames = iter(log_light)
    level = next(frames).clone().flatten()
    pixels = level.numel()

    def thresholds(mean: float) -> Tensor:
        spread = mean + camera.mismatch * torch.randn(pixels, generator=generator)
        return spread.clamp_(min=0.2 * mean)

    on_threshold, off_threshold = thresholds(camera.on_threshold), thresholds(camera.off_threshold)
    # the levels that pixels remember at the start are spread, or else all would fire in step
    remembered = level - (torch.rand(pixels, generator=generator) - 0.5) * torch.minimum(on_threshold, off_threshold)
    rests = max(0, math.ceil(camera.refractory / step) - 1)  # whole steps of silence after an event
    resting_until = torch.zeros(pixels, dtype=torch.int32) if rests else None
    follow = 1.0 if camera.response == 0 else -math.expm1(-step * camera.light / camera.response)
    deviation = camera.noise / math.sqrt(camera.light)

    # buffers of this function alone: fresh ones at every step would cost more than the arithmetic
    change, noise, negative_off = torch.empty(pixels), torch.empty(pixels), -off_threshold
    fires_on, fires_off, awake = (torch.empty(pixels, dtype=torch.bool) for _ in range(3))
    for number, frame in enumerate(frames):
        level.lerp_(frame.flatten(), follow)
        torch.sub(level, remembered, out=change)
        if deviation:
            change.add_(_uniform_noise(noise, random), alpha=deviation)
        torch.ge(change, on_threshold, out=fires_on)
        torch.le(change, negative_off, out=fires_off)
        if resting_until is not None:
            torch.le(resting_until, number, out=awake)
            fires_on &= awake
            fires_off &= awake
        on, off = (torch.from_numpy(np.flatnonzero(fires.numpy())) for fires in (fires_on, fires_off))
        # several thresholds crossed in one step are one event: what happens during the silence is lost
        remembered[on] += on_threshold[on] * torch.floor(change[on] / on_threshold[on])
        remembered[off] -= off_threshold[off] * torch.floor(-change[off] / off_threshold[off])
        if camera.background:
            count = random.poisson(camera.background * step * 1e-6 * pixels)
            stray = torch.from_numpy(random.integers(0, pixels, size=count))
            half = count // 2
            on, off = torch.cat([on, stray[:half]]), torch.cat([off, stray[half:]])
        if resting_until is not None:
            resting_until[on] = number + 1 + rests
            resting_until[off] = number + 1 + rests
        yield on, off


def recorded_events(
    camera: Camera, log_light: Iterable[Tensor], step: int, width: int, height: int, generator: torch.Generator
) -> Events:
    """One recording as `Events`; `log_light` holds frames `(1, height * width)`."""
    random = numpy_generator(generator)
    columns: list[list[np.ndarray]] = [[], [], []]
    for number, fired in enumerate(record(camera, log_light, step, generator)):
        for polarity, pixels in zip((1, 0), fired, strict=True):
            # the step does not say when within it a pixel fired: any moment is as good
            columns[0].append(number * step + random.integers(0, step, size=len(pixels)))
            columns[1].append(pixels.numpy())
            columns[2].append(np.full(len(pixels), polarity, dtype=np.uint8))
    t, pixel, p = (np.concatenate(column) if column else np.zeros(0, dtype=np.int64) for column in columns)
    order = np.argsort(t, kind="stable")
    y, x = np.divmod(pixel[order], width)
    return Events(t[order], x.astype(np.int16), y.astype(np.int16), p[order].astype(np.uint8), width, height)


def recorded_spikes(
    camera: Camera,
    log_light: Iterable[Tensor],
    step: float,
    recordings: int,
    pixels: int,
    time: int,
    steps_per_bin: int,
    generator: torch.Generator,
) -> np.ndarray:
    """Many recordings as spikes `(recordings, time, 2 * pixels)`, OFF before ON, at most one a bin."""
    spikes = torch.zeros((recordings, time, 2, pixels), dtype=torch.uint8)
    for number, fired in enumerate(record(camera, log_light, step, generator)):
        index = number // steps_per_bin
        if index >= time:
            break
        for polarity, flat in zip((1, 0), fired, strict=True):
            spikes[flat // pixels, index, polarity, flat % pixels] = 1
    return spikes.reshape(recordings, time, 2 * pixels).numpy()


def _uniform_noise(out: Tensor, random: np.random.Generator) -> Tensor:
    """Fill with uniform numbers of mean 0 and deviation 1: bytes are ten times cheaper to draw than Gaussians."""
    words = random.integers(0, 2**64 - 1, size=-(-len(out) // 8), dtype=np.uint64, endpoint=True)
    out.copy_(torch.from_numpy(words.view(np.int8)[: len(out)]))
    return out.add_(0.5).mul_(1 / math.sqrt((256**2 - 1) / 12))
