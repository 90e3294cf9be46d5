"""Simulated against genuine MNIST-DVS: a table of event statistics and a figure.

    python -m bayspike.data.simulated.compare docs/img/mnist_dvs_compared.png

needs the genuine recording `mnist_dvs/mnist_0_scale04_0001.aedat` in the data folder. One genuine recording, of a
zero, is what is freely to be had, so the comparison is with simulated zeros.
"""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from bayspike.data.files.aedat import read_aedat2
from bayspike.data.files.events import Events
from bayspike.data.places import find, missing
from bayspike.data.sets import mnist
from bayspike.data.show import BALANCE, OFF, ON, save
from bayspike.data.simulated import mnist_dvs as mnist_dvs_simulated
from bayspike.data.simulated.camera import recorded_events

SPAN = 2_000_000  # µs
SIDE = 48  # the part of the sensor that is compared: the digit's whole path and some margin
CORNER = (37, 38)
GENUINE = "mnist_dvs/mnist_0_scale04_0001.aedat"


@dataclass(frozen=True)
class Statistics:
    """Of one recording of 2 s."""

    rate: float  # events a second
    on_share: float
    same_polarity: float  # share of a pixel's successive events with the same polarity
    interval_25: float  # quartiles of the time between a pixel's successive events, ms
    interval_50: float
    interval_75: float
    width: float  # pixels between the 5th and the 95th percentile of x
    height: float
    pixels: float  # pixels with at least 5 events
    burstiness: float  # variance over mean of the counts in 1 ms; 1 for a Poisson process


NAMES = {
    "rate": "events a second",
    "on_share": "share of ON events",
    "same_polarity": "same polarity as the pixel's last",
    "interval_25": "interval, lower quartile (ms)",
    "interval_50": "interval, median (ms)",
    "interval_75": "interval, upper quartile (ms)",
    "width": "width (pixels)",
    "height": "height (pixels)",
    "pixels": "active pixels",
    "burstiness": "variance / mean of counts in 1 ms",
}


def intervals(events: Events) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Times in ms between successive events of the same pixel, and whether their polarities agree."""
    pixel = events.y.astype(np.int64) * events.width + events.x
    order = np.lexsort((events.t, pixel))
    same = np.diff(pixel[order]) == 0
    return np.diff(events.t[order])[same] / 1e3, (np.diff(events.p[order].astype(np.int8)) == 0)[same]


def statistics(events: Events) -> Statistics:
    """Statistics of the first two seconds."""
    events = events.window(0, SPAN)
    between, agree = intervals(events)
    low, middle, high = np.percentile(between, [25, 50, 75])
    counts = np.bincount(events.y.astype(np.int64) * events.width + events.x)
    per_ms = np.bincount(events.t // 1_000, minlength=SPAN // 1_000)
    return Statistics(
        rate=len(events) / (SPAN / 1e6),
        on_share=float(events.p.mean()),
        same_polarity=float(agree.mean()),
        interval_25=float(low),
        interval_50=float(middle),
        interval_75=float(high),
        width=float(np.ptp(np.percentile(events.x, [5, 95]))),
        height=float(np.ptp(np.percentile(events.y, [5, 95]))),
        pixels=float((counts >= 5).sum()),
        burstiness=float(per_ms.var() / per_ms.mean()),
    )


def genuine(root: Path | None = None) -> Events:
    """The genuine recording, mirrored and cut as the set's loader does, with some margin."""
    path = find(root, lambda place: place / GENUINE if (place / GENUINE).is_file() else None)
    if path is None:
        raise missing(GENUINE, root, "It is the first recording of the digit 0 of MNIST-DVS at scale 4.")
    return read_aedat2(path).mirrored().crop(*CORNER, SIDE, SIDE).upended()


def simulated(count: int, seed: int = 0) -> list[Events]:
    """As many simulated zeros on the same part of the sensor."""
    images, labels = mnist.embedded_digits()
    zeros = images[labels == 0][:: max(1, 500 // count)][:count]
    recordings = []
    for number, zero in enumerate(zeros):
        generator = torch.Generator().manual_seed(seed + number)
        step = mnist_dvs_simulated.STEP
        light = mnist_dvs_simulated.moving_digits(zero[None], SPAN, SIDE, generator)
        recordings.append(recorded_events(mnist_dvs_simulated.CAMERA, light, step, SIDE, SIDE, generator))
    return recordings


def table(real: Statistics, made: list[Statistics]) -> str:
    """A Markdown table: genuine, simulated (mean and range), and the factor between them."""
    lines = ["| | genuine | simulated: mean (range) | factor |", "|---|---:|---:|---:|"]
    for field in fields(Statistics):
        values = np.array([getattr(one, field.name) for one in made])
        truth = getattr(real, field.name)
        factor = max(values.mean() / truth, truth / values.mean())
        shown = f"{_number(values.mean())} ({_number(values.min())} – {_number(values.max())})"
        lines.append(f"| {NAMES[field.name]} | {_number(truth)} | {shown} | {factor:.2f} |")
    return "\n".join(lines)


def picture(real: Events, made: list[Events], out: Path) -> Path:
    """Frames of both at four moments, and the distributions of intervals and counts."""
    figure = Figure(figsize=(12.5, 7.2), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=(1.5, 1)))
    axes = top.subplots(2, 6)
    for row, (events, name) in enumerate(((real, "genuine"), (made[0], "simulated"))):
        for column, start in enumerate(range(0, SPAN, SPAN // 5 - 10_000)):
            part = events.window(start, start + 25_000)
            frame = np.zeros((SIDE, SIDE))
            np.add.at(frame, (part.y, part.x), 2.0 * part.p - 1)
            ax = axes[row, column]
            ax.imshow(frame, cmap=BALANCE, vmin=-2, vmax=2, interpolation="nearest")
            ax.set(xticks=[], yticks=[])
            if row == 0:
                ax.set_title(f"{start / 1e6:.2f} s", fontsize=9, color="#5b6673")
            if column == 0:
                ax.set_ylabel(name, fontsize=11)
    top.suptitle("MNIST-DVS, genuine and simulated: 25 ms of events (ON orange, OFF blue)", fontsize=12, weight="bold")
    left, middle, right = bottom.subplots(1, 3)
    everything = [(real, "genuine", "#10151c", 2.2), *[(one, "simulated", ON, 0.8) for one in made]]
    for events, name, colour, width in reversed(everything):
        label = name if events is real or events is made[0] else None
        style: dict[str, Any] = {"color": colour, "linewidth": width, "label": label}
        between = np.sort(intervals(events)[0])
        left.plot(between, np.linspace(0, 1, len(between)), **style)
        middle.plot(np.arange(0, 2, 0.1), np.histogram(events.t, np.arange(0, SPAN + 1, 100_000))[0] * 10, **style)
        right.plot(*_spectrum(events), **style)
    left.set(xscale="log", xlim=(1, 1_000), xlabel="interval at a pixel (ms)", ylabel="share of intervals below")
    middle.set(xlabel="time (s)", ylabel="events a second", ylim=(0, None))
    right.set(xlabel="frequency (Hz)", ylabel="power of the event rate", yscale="log", xlim=(0, 200), ylim=(0.1, None))
    right.axvline(75, color=OFF, linewidth=1, linestyle=":")
    right.text(78, 0.92, "75 Hz: the monitor", transform=right.get_xaxis_transform(), fontsize=8, color=OFF)
    left.legend(frameon=False)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    return save(figure, out)


def _spectrum(events: Events) -> tuple[NDArray[Any], NDArray[Any]]:
    """Power of the counts in 1 ms over frequency, in units of a Poisson process, smoothed over 2.5 Hz."""
    counts = np.histogram(events.t, np.arange(0, SPAN + 1, 1_000))[0]
    power = np.abs(np.fft.rfft(counts - counts.mean())) ** 2 / counts.sum()
    return np.fft.rfftfreq(len(counts), 1e-3), np.convolve(power, np.ones(5) / 5, mode="same")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


if __name__ == "__main__":
    real_events, made_events = genuine(), simulated(12)
    print(table(statistics(real_events), [statistics(one) for one in made_events]))
    print(picture(real_events, made_events, Path(sys.argv[1] if len(sys.argv) > 1 else "mnist_dvs_compared.png")))
