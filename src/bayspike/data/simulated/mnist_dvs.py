"""Simulated stand-in for MNIST-DVS: MNIST digits on a moving screen in front of a simulated event camera.

The genuine set shows digits on a monitor, moved along a slow figure of eight. The numbers below (path, size,
75 Hz refresh, camera) are fitted to the one genuine recording that is freely to be had; docs/data.md
compares the two. Pre-processing and split are those of `mnist_dvs`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bayspike.data.base import Dataset, SpikeSamples, stratified_split
from bayspike.data.encoders import pack
from bayspike.data.sets import mnist
from bayspike.data.sets.recordings import with_bar
from bayspike.data.simulated.cache import cached
from bayspike.data.simulated.camera import Camera, recorded_spikes
from bayspike.errors import UserError, require

TIME = 80
SPAN = 2_000_000  # µs
SIDE = 26
STEP = 2_000  # µs of the simulation; a bin of the default set has 12.5 of them
CAMERA = Camera(
    on_threshold=0.45,
    off_threshold=0.45,
    mismatch=0.09,
    refractory=1_500,
    response=9_500,
    noise=0.054,
    background=0.012,
)
_BATCH = 256


@dataclass(frozen=True)
class Screen:
    """How a digit moves and looks; lengths in sensor pixels, times in µs."""

    refresh: float = 1e6 / 75  # the genuine events keep the beat of the monitor
    magnification: float = 1.18  # sensor pixels to a pixel of MNIST
    blur: float = 0.15  # deviation of the lens's point spread
    dark: float = 0.055  # light of the background, the digit's being 1
    amplitude_x: float = 4.2
    amplitude_y: float = 1.65
    period_x: float = 1_251_000
    period_y: float = 625_500
    gamma: float = 2.5  # light of the monitor = value of the pixel to this power
    jitter: float = 0.15  # share by which amplitude varies from recording to recording


SCREEN = Screen()


def moving_digits(
    images: Tensor, duration: int, side: int, generator: torch.Generator, screen: Screen = SCREEN, step: int = STEP
) -> Iterator[Tensor]:
    """Log light `(recordings, side * side)` every `step` µs for `duration` µs and one step more.

    `images` are bytes `(recordings, 784)`. Each recording starts at its own phase of the path.
    """
    count = len(images)
    pictures = (images.reshape(count, 28, 28).float() / 255) ** screen.gamma
    phase = 2 * math.pi * torch.rand(count, generator=generator)
    scale = 1 + screen.jitter * (2 * torch.rand(count, 2, generator=generator) - 1)
    shown, light = -1, torch.empty(0)
    for number in range(duration // step + 1):
        refresh = int(number * step / screen.refresh)
        if refresh != shown:  # the picture on the monitor changes with its refresh only
            shown = refresh
            moment = 2 * math.pi * refresh * screen.refresh
            x = scale[:, 0] * screen.amplitude_x * torch.sin(moment / screen.period_x + phase)
            y = scale[:, 1] * screen.amplitude_y * torch.sin(moment / screen.period_y + 2 * phase - 1.05)
            rows, columns = (_shift(offset, side, screen) for offset in (y, x))
            picture = torch.bmm(torch.bmm(rows, pictures), columns.transpose(1, 2)).flatten(1)
            light = torch.log(screen.dark + (1 - screen.dark) * picture)
        yield light


def _shift(offset: Tensor, side: int, screen: Screen) -> Tensor:
    """Matrices `(recordings, side, 28)` that magnify, shift by `offset` and blur one axis of a picture."""
    target = torch.arange(side) - (side - 1) / 2
    source = (torch.arange(28) - 13.5) * screen.magnification
    distance = target[:, None] - source[None, :] - offset[:, None, None]
    # a pixel of the picture is a bar of light: its share at a point of the sensor is a difference of two erfs
    half, root = screen.magnification / 2, math.sqrt(2) * screen.blur
    return (torch.erf((distance + half) / root) - torch.erf((distance - half) / root)) / 2


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    per_class: int | None = None,
    digits: str = "auto",
) -> Dataset:
    """26×26×2 inputs; a tenth of the `per_class` recordings of each digit is the test part.

    `digits` is where the pictures come from: `mnist` (1,000 per class by default), `embedded` (the 5,000 of an
    installed package, 500 per class) or `auto`, which takes MNIST where it is found.
    """
    require(digits in ("auto", "mnist", "embedded"), f"digits must be auto, mnist or embedded, not {digits!r}.")
    require(1 <= time <= SPAN // STEP, f"time must lie in [1, {SPAN // STEP}], but is {time}.")
    found = mnist.find_files("mnist", root) if digits != "embedded" else None
    if digits == "mnist" and found is None:
        raise UserError("No MNIST files were found: get them with `bayspike data get mnist`, or use digits=embedded.")
    count = per_class if per_class is not None else 1_000 if found else 500
    require(count >= 2, f"per_class must be at least 2, but is {count}.")
    settings = {"time": time, "per_class": count, "digits": "mnist" if found else "embedded", "seed": seed}

    def make() -> dict[str, np.ndarray]:
        images, labels = mnist.read_pair(found[0], found[1]) if found else mnist.embedded_digits()
        chosen = stratified_split(labels, count, seed)[1]
        packed = simulate(images[chosen], time, seed)
        return {"packed": packed, "labels": labels[chosen].numpy()}

    arrays = cached("mnist_dvs_simulated", settings, root, make, ("packed", "labels"))
    samples = SpikeSamples(
        torch.from_numpy(arrays["packed"]), torch.from_numpy(arrays["labels"]), time, 2 * SIDE * SIDE
    )
    train, test = stratified_split(samples.labels, max(1, count // 10), seed)
    return Dataset(
        "mnist_dvs_simulated",
        samples.subset(train),
        samples.subset(test),
        tuple("0123456789"),
        (2, SIDE, SIDE),
        simulated=True,
    )


def simulate(images: Tensor, time: int, seed: int) -> np.ndarray:
    """Packed spikes `(recordings, time, 169)` of images of bytes `(recordings, 784)`."""
    # a bin takes a whole number of steps, so a step is shortened or lengthened to fit
    steps_per_bin = max(1, round(SPAN / time / STEP))
    step = SPAN // (time * steps_per_bin)
    packed = np.empty((len(images), time, 2 * SIDE * SIDE // 8), dtype=np.uint8)
    for start in with_bar(range(0, len(images), _BATCH), "simulating MNIST-DVS"):
        generator = torch.Generator().manual_seed(((seed << 20) + start) % 2**63)
        part = images[start : start + _BATCH]
        frames = moving_digits(part, SPAN, SIDE, generator, step=step)
        spikes = recorded_spikes(CAMERA, frames, step, len(part), SIDE * SIDE, time, steps_per_bin, generator)
        packed[start : start + len(part)] = pack(spikes)
    return packed
