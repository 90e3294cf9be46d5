"""Simulated stand-in for DVS-Gesture: a puppet's gestures in front of a simulated event camera.

Eleven gestures, thirty "users" (proportions, speed, amplitude), five lights. Pre-processing and partition are the
paper's (sec. DVS-Gestures): 32×32×2 inputs in bins of 10 ms, 500 ms for training and 1,500 ms for test, the first half
of the users train, the others test; four lights are in-distribution, the fifth gives the foreign inputs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bayspike.data.base import Dataset, SpikeSamples
from bayspike.data.encoders import pack
from bayspike.data.sets.dvs_gesture import GESTURES
from bayspike.data.sets.recordings import with_bar
from bayspike.data.simulated.cache import cached
from bayspike.data.simulated.camera import Camera, recorded_spikes
from bayspike.data.simulated.puppet import SIDE, Puppets, gesturing, standing
from bayspike.errors import require

USERS = 30
BIN = 10_000  # µs
TIME = 50  # bins of a training window
TEST_TIME = 150
STEP = 5_000  # µs of the simulation
MOST_BYTES = 4 * 2**30  # of all recordings, eight pixels to a byte
_BATCH = 192


@dataclass(frozen=True)
class Light:
    """What a kind of light does to picture and camera."""

    background: float  # light of the wall
    haze: float  # added everywhere: lowers the contrast
    flicker: float = 0.0  # share by which the light swings, at 100 Hz
    shadow: float = 0.0  # depth of a soft shadow that drifts across
    level: float = 1.0
    noise: float = 0.015
    stray: float = 0.1  # Hz per pixel


LIGHTS = {
    "fluorescent": Light(background=0.30, haze=0.05, flicker=0.05),
    "fluorescent_led": Light(background=0.34, haze=0.04, flicker=0.03, level=1.3),
    "lab": Light(background=0.24, haze=0.08, level=0.8, noise=0.02, stray=0.2),
    "led": Light(background=0.28, haze=0.03, level=1.2, noise=0.01),
    "natural": Light(background=0.40, haze=0.12, shadow=0.4, level=0.4, noise=0.025, stray=0.5),
}
FOREIGN = "natural"
CAMERA = Camera(on_threshold=0.18, off_threshold=0.18, mismatch=0.03, refractory=1_000, response=4_000)


def load(
    *,
    root: Path | None = None,
    seed: int = 0,
    time: int = TIME,
    test_time: int = TEST_TIME,
    users: int = USERS,
    repeats: int = 1,
    windows: int = 3,
) -> Dataset:
    """`time` and `test_time` count bins of 10 ms; `users` (fewer for a demonstration) are halved into train and test.

    Every user makes every gesture `repeats` times in every light; each training recording is cut into `windows`
    pieces of `time` bins that follow one another.
    """
    require(users >= 2, f"users must be at least 2, but is {users}.")
    for name, value in (("time", time), ("test_time", test_time), ("repeats", repeats), ("windows", windows)):
        require(value >= 1, f"{name} must be at least 1, but is {value}.")
    size = users * len(LIGHTS) * len(GESTURES) * repeats * max(time * windows, test_time) * 2 * SIDE * SIDE // 8
    require(
        size <= MOST_BYTES,
        f"so many gestures would take {size / 2**30:,.0f} GiB, and {MOST_BYTES / 2**30:.0f} are the most: choose fewer "
        "users, repeats, windows or time-steps.",
    )
    settings = {"seed": seed, "users": users, "repeats": repeats, "train": time * windows, "test": test_time}

    def make() -> dict[str, np.ndarray]:
        half, known = (users + 1) // 2, [name for name in LIGHTS if name != FOREIGN]
        parts = {
            "train": (range(half), known, time * windows),
            "test": (range(half, users), known, test_time),
            "foreign": (range(half, users), [FOREIGN], test_time),
        }
        arrays = {}
        for part, (who, lights, bins) in parts.items():
            arrays[part], arrays[f"{part}_labels"] = _simulate(part, list(who), lights, repeats, bins, seed)
        return arrays

    names = [f"{part}{kind}" for part in ("train", "test", "foreign") for kind in ("", "_labels")]
    arrays = cached("gestures_simulated", settings, root, make, names)

    def samples(part: str, bins: int) -> SpikeSamples:
        packed, labels = torch.from_numpy(arrays[part]), torch.from_numpy(arrays[f"{part}_labels"])
        cut = packed.reshape(-1, bins, packed.shape[-1])
        return SpikeSamples(cut, labels.repeat_interleave(len(cut) // len(packed)), bins, 2 * SIDE * SIDE)

    return Dataset(
        "gestures_simulated",
        samples("train", time),
        samples("test", test_time),
        GESTURES,
        (2, SIDE, SIDE),
        simulated=True,
        foreign=samples("foreign", test_time),
        foreign_about="gestures in another light",
        foreign_classes=True,
    )


def cast(who: list[int], repeats: int, seed: int, take: int) -> Puppets:
    """Every user in every gesture, `repeats` times; `take` tells one light's recordings from another's."""
    user = torch.tensor(who).repeat_interleave(len(GESTURES) * repeats)
    gesture = torch.arange(len(GESTURES)).repeat_interleave(repeats).repeat(len(who))
    people = torch.rand((1 << 10, 9), generator=torch.Generator().manual_seed(seed))[user % (1 << 10)]
    mood = torch.rand((len(user), 8), generator=torch.Generator().manual_seed(((seed << 12) + take + 1) % 2**63))

    def between(low: float, high: float, share: Tensor) -> Tensor:
        return low + (high - low) * share

    return Puppets(
        gesture=gesture,
        size=between(0.82, 1.08, people[:, 0]),
        shoulder=between(4.6, 6.0, people[:, 1]),
        arm=between(11.5, 14.0, people[:, 2]),
        speed=between(0.7, 1.35, people[:, 3]) * between(0.92, 1.08, mood[:, 0]),
        amplitude=between(0.75, 1.2, people[:, 4]) * between(0.92, 1.08, mood[:, 1]),
        left=between(-2.0, 2.0, people[:, 5]) + between(-0.7, 0.7, mood[:, 2]),
        top=between(-1.5, 1.5, people[:, 6]),
        shirt=between(0.05, 0.18, people[:, 7]),
        skin=between(0.55, 1.0, people[:, 8]),
        phase=2 * math.pi * mood[:, 3],
        whim=torch.cat([between(0.6, 1.6, mood[:, 4:6]), mood[:, 6:8]], 1)[:, [0, 2, 1, 3]],
    )


def log_light(puppets: Puppets, light: Light, duration: int, generator: torch.Generator) -> Iterator[Tensor]:
    """Log light `(recordings, 32 * 32)` every 5 ms for `duration` µs and one step more."""
    start = torch.rand((len(puppets), 3), generator=generator)
    body = standing(puppets, light.background)
    columns = torch.arange(SIDE * SIDE) % SIDE
    for number in range(duration // STEP + 1):
        seconds = number * STEP * 1e-6
        seen = gesturing(puppets, seconds, body)
        lamp = 1 + light.flicker * torch.sin(2 * math.pi * (100 * seconds + start[:, :1]))
        if light.shadow:
            # a cloud's edge that wanders over the picture and back
            edge = SIDE * (0.5 + 0.5 * torch.sin(2 * math.pi * (0.25 * seconds + start[:, 1:2])))
            lamp = lamp * (1 - light.shadow * torch.sigmoid((columns - edge) / 3))
        yield torch.log(light.haze + seen * lamp)


def _simulate(
    part: str, who: list[int], lights: list[str], repeats: int, bins: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Packed spikes `(recordings, bins, 256)` and labels."""
    jobs = []
    for light in lights:
        take = list(LIGHTS).index(light) + len(LIGHTS) * (part != "train")
        puppets = cast(who, repeats, seed, take)
        jobs += [(light, take, start, puppets) for start in range(0, len(puppets), _BATCH)]
    packed, labels = [], []
    for lamp, take, start, puppets in with_bar(jobs, f"simulating gestures ({part})"):
        chosen = LIGHTS[lamp]
        camera = replace(CAMERA, light=chosen.level, noise=chosen.noise, background=chosen.stray)
        group = puppets.part(start, start + _BATCH)
        generator = torch.Generator().manual_seed(((seed << 24) + (take << 16) + start) % 2**63)
        frames = log_light(group, chosen, bins * BIN, generator)
        spikes = recorded_spikes(camera, frames, STEP, len(group), SIDE * SIDE, bins, BIN // STEP, generator)
        packed.append(pack(spikes))
        labels.append(group.gesture.numpy())
    return np.concatenate(packed), np.concatenate(labels)
