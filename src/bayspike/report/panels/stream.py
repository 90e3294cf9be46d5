"""Single samples as they arrive: the input events playing beside the growing confidence of every method."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayspike.report.markup import Page, Part, Section
from bayspike.report.reading import Array
from bayspike.report.runs import Comparison, Job, Series, assign_views

MOST_SAMPLES = 8
MOST_PIXELS = 1 << 16


@dataclass(frozen=True)
class Streams(Part):
    """Places that the script fills with the streams of these numbers."""

    template = "streams.html"
    numbers: Sequence[int]


def panel(comparison: Comparison, page: Page) -> Section | None:
    before = len(page.streams)
    for run in comparison.runs:
        groups: dict[bytes, list[Series]] = {}
        for series in comparison.series:
            if series.run is run and (kept := _kept(series.jobs[0])) is not None:
                groups.setdefault(kept[0].tobytes() + kept[1].tobytes(), []).append(series)
        # Methods that saw the very same spikes are compared on one screen.
        page.streams.extend(_stream(group, assign_views(comparison, group)) for group in groups.values())
    count = len(page.streams) - before
    if not count:
        return None
    lead = (
        "A sample's spikes, step by step, with a fading trail (on events and off events in two colours), and the "
        "probability each model gives to every class. The true class is bold; play or drag the slider. "
        "Images are shown in one draw of their random spike code; the models were judged on another."
    )
    return Section("stream", "Decisions as events arrive", lead, [Streams(range(before, before + count))])


def _kept(job: Job) -> tuple[Array, Array, tuple[int, ...]] | None:
    """Packed frames `(k, time, bytes)`, their labels `(k,)` and the shape (channels, height, width)."""
    frames = job.frames()
    if frames is None or job.subset is None or job.labels is None:
        return None
    packed, shape = frames
    labels = job.labels[job.subset[: len(packed)]]
    return packed[:MOST_SAMPLES], labels[:MOST_SAMPLES].astype(np.int64), picture_shape(shape, packed.shape[2])


def picture_shape(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    """(channels, height, width) of a frame, or () where the inputs are no picture and are shown as a raster."""
    if len(shape) == 2:
        shape = (1, *shape)
    fits = len(shape) == 3 and all(side > 0 for side in shape) and shape[0] <= 2
    inputs = int(np.prod(shape, dtype=np.int64)) if fits else 0
    return shape if fits and inputs <= MOST_PIXELS and -(-inputs // 8) == width else ()


def _stream(group: list[Series], views: dict[Series, list[str]]) -> dict[str, Any]:
    first = group[0]
    kept = _kept(first.jobs[0])
    assert kept is not None  # only such series were grouped
    packed, labels, shape = kept
    bits = np.unpackbits(packed, axis=-1)
    inputs = int(np.prod(shape)) if shape else _used(bits)
    methods = []
    for series in group:
        pair = series.jobs[0].over_time(series.predictor)
        if pair is not None and len(pair[0]) == packed.shape[1]:
            p = np.nan_to_num(pair[0][:, : len(packed)].transpose(1, 0, 2))
            thousandths = np.clip(np.rint(1000 * p), 0, 1000).astype(int).tolist()
            methods.append({"name": series.name, "views": views[series], "p": thousandths})
    classes = first.jobs[0].classes
    return {
        "title": first.run.name,
        "simulated": first.run.simulated,
        "seed": first.jobs[0].seed,
        "classes": classes,
        "labels": labels.tolist(),
        "shape": list(shape),
        "inputs": inputs,
        "time": packed.shape[1],
        "bytes": packed.shape[2],
        "frames": [base64.b64encode(np.ascontiguousarray(sample).tobytes()).decode() for sample in packed],
        "methods": methods,
    }


def _used(bits: Array) -> int:
    """Number of inputs when the shape does not tell: all but the padding bits that never spike."""
    used = np.flatnonzero(bits.any(axis=(0, 1)))
    least = int(bits.shape[2]) - 7
    return max(least, int(used[-1]) + 1 if len(used) else least)
