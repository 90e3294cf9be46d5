"""One picture of a data set: samples as the camera (or the encoder) gives them, a raster, and the rate over time."""

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from bayspike.data.base import CoordinateSamples, Dataset, Samples
from bayspike.data.delays import shape_now
from bayspike.errors import UserError
from bayspike.storage.files import write_whole

ON, OFF, _INK, _NIGHT = "#ff9d45", "#3fa7ff", "#1d2733", "#10151c"
BALANCE = LinearSegmentedColormap.from_list("balance", [OFF, _NIGHT, ON])
_GLOW = LinearSegmentedColormap.from_list("glow", [_NIGHT, "#7a4a2a", ON, "#fff3df"])
_CLASS_COLOURS = (OFF, ON)


def draw(dataset: Dataset, out: Path, *, seed: int = 0, rows: int = 5, columns: int = 6) -> Path:
    """Write the picture to `out` (png, pdf or svg) and return its path."""
    samples = dataset.train
    chosen = _one_per_class(samples, rows)
    generator = torch.Generator().manual_seed(seed)
    spikes = samples.spikes(chosen, generator).numpy()
    shape = shape_now(dataset.sample_shape, dataset.view)
    if len(shape) == 3:
        spikes = spikes[..., : math.prod(shape)]
    labels = [dataset.classes[int(label)] for label in samples.labels[chosen]]

    figure = Figure(figsize=(13.5, 1.24 * max(len(chosen), 4) + 1.0), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    kind = "simulated data" if dataset.simulated else "real data" if len(dataset.sample_shape) > 1 else "generated data"
    figure.suptitle(f"{dataset.name}  ({kind})", fontsize=15, fontweight="bold", color=_INK)
    left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.55, 1)))
    if isinstance(samples, CoordinateSamples):
        _points(left, samples, dataset.classes)
    elif len(shape) == 3:
        _event_frames(left, spikes, shape, labels, columns)
    else:
        _growing_counts(left, spikes, shape, labels, columns)
    _raster(right, spikes[:, 0], labels[0], two_polarities=len(shape) == 3 and shape[0] == 2)
    return save(figure, out)


def _one_per_class(samples: Samples, rows: int) -> torch.Tensor:
    """The first sample of each of up to `rows` classes, spread over all classes."""
    classes = np.unique(samples.labels.numpy())
    wanted = classes[np.linspace(0, len(classes) - 1, min(rows, len(classes))).round().astype(int)]
    return torch.stack([torch.nonzero(samples.labels == int(label))[0, 0] for label in wanted])


def _event_frames(
    figure: Any, spikes: NDArray[np.uint8], shape: tuple[int, ...], labels: list[str], columns: int
) -> None:
    """ON less OFF events, gathered over a stretch of time, at `columns` moments."""
    time = len(spikes)
    width = max(1, time // (2 * columns))  # half of the time is shown: longer stretches would smear
    starts = np.linspace(0, time - width, columns).astype(int)
    axes = figure.subplots(len(labels), columns, squeeze=False)
    for row, label in enumerate(labels):
        for column, start in enumerate(starts):
            polarities = spikes[start : start + width, row].reshape(-1, *shape).sum(0, dtype=np.int64)
            ax = axes[row, column]
            balance = polarities[1] - polarities[0] if len(polarities) == 2 else polarities.sum(0)
            ax.imshow(balance, cmap=BALANCE, vmin=-2, vmax=2, interpolation="nearest")
            _bare(ax, label if column == 0 else "", f"steps {start}–{start + width - 1}" if row == 0 else "")
    words = "events: ON orange, OFF blue" if shape[0] == 2 else "events, polarity merged"
    figure.suptitle(words, fontsize=11, color=_INK)


def _growing_counts(
    figure: Any, spikes: NDArray[np.uint8], shape: tuple[int, ...], labels: list[str], columns: int
) -> None:
    """The picture as it grows out of its spikes: their mean up to a moment."""
    time = len(spikes)
    moments = np.unique(np.geomspace(1, time, columns).round().astype(int))
    axes = figure.subplots(len(labels), len(moments), squeeze=False)
    for row, label in enumerate(labels):
        for column, moment in enumerate(moments):
            mean = spikes[:moment, row].mean(0).reshape(shape)
            axes[row, column].imshow(mean, cmap=_GLOW, vmin=0, vmax=1, interpolation="nearest")
            title = ("1 step" if moment == 1 else f"{moment} steps") if row == 0 else ""
            _bare(axes[row, column], label if column == 0 else "", title)
    figure.suptitle("mean of the spikes so far", fontsize=11, color=_INK)


def _points(figure: Any, samples: CoordinateSamples, classes: tuple[str, ...]) -> None:
    """The points, and below them the tuning curves that code their first coordinate."""
    top, bottom = figure.subplots(2, 1, height_ratios=(3, 1), sharex=True)
    for label, name in enumerate(classes):
        points = samples.coordinates[samples.labels == label].numpy()
        colour = _CLASS_COLOURS[label % 2]
        top.scatter(*points.T, s=16, color=colour, edgecolor="white", linewidth=0.4, label=name)
    code = samples.code
    top.set(ylabel="y", ylim=(code.low[1], code.high[1]))
    top.legend(frameon=False, loc="upper right")
    x = torch.linspace(code.low[0], code.high[0], 400)
    grid = torch.stack([x, *[torch.full_like(x, low) for low in code.low[1:]]], 1)
    curves = code.tuning(grid)[:, : code.neurons]
    shades = LinearSegmentedColormap.from_list("shades", [OFF, "#8a8f99", ON])
    for neuron in range(code.neurons):
        bottom.plot(x, curves[:, neuron], color=shades(neuron / (code.neurons - 1)), linewidth=1.6)
    bottom.set(xlabel="x", ylabel="response", ylim=(0, 1.05), xlim=(code.low[0], code.high[0]))
    for ax in (top, bottom):
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle("points, and the tuning curves that code x", fontsize=11, color=_INK)


def _raster(figure: Any, spikes: NDArray[np.uint8], label: str, two_polarities: bool) -> None:
    """The spikes of one sample: which input, when; and how many at a time."""
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    moment, channel = np.nonzero(spikes)
    inputs = spikes.shape[1]
    polarity = channel >= inputs // 2 if two_polarities else np.ones(len(channel), dtype=bool)
    size = float(np.clip(9_000 / max(len(channel), 1), 1.6, 14))
    for which, colour, name in ((polarity, ON, "ON" if two_polarities else ""), (~polarity, OFF, "OFF")):
        if which.any():
            top.scatter(moment[which], channel[which], s=size, marker="s", linewidth=0, color=colour, label=name)
            count = np.bincount(moment[which], minlength=len(spikes))
            bottom.step(np.arange(len(spikes)), count, where="mid", color=colour, linewidth=1.4)
    top.set(ylabel="input", ylim=(-0.5, inputs - 0.5), xlim=(-0.5, len(spikes) - 0.5))
    top.yaxis.set_major_locator(MaxNLocator(integer=True))
    bottom.set(xlabel="time-step", ylabel="spikes", ylim=(0, None))
    for ax in (top, bottom):
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"raster of the first sample ({label}), {len(channel):,} spikes", fontsize=11, color=_INK)


def _bare(ax: Any, label: str, title: str) -> None:
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    if label:
        words = label.replace(" counter-", " counter-\n").replace("hand ", "hand\n").replace("arm ", "arm\n")
        ax.set_ylabel(words, rotation=0, ha="right", va="center", fontsize=10, color=_INK)
    if title:
        ax.set_title(title, fontsize=8.5, color="#5b6673")


def save(figure: Figure, out: Path) -> Path:
    """Write a figure so that the file is whole or not there at all; without a suffix it becomes a png."""
    out = out if out.suffix else out.with_suffix(".png")
    buffer = io.BytesIO()
    try:
        figure.savefig(buffer, dpi=120, format=out.suffix.removeprefix("."))
    except ValueError as error:
        raise UserError(f"The picture {out} cannot be written ({error}).") from error
    write_whole(out, buffer.getvalue())
    return out
