"""Single samples as they arrive: the input events playing beside the growing confidence of every method."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bayspike.report.markup import Page, Part, Section
from bayspike.report.reading import Array
from bayspike.report.runs import Comparison, Job, Series, assign_views

MOST_SAMPLES = 24
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
                groups.setdefault(kept.packed.tobytes() + kept.labels.tobytes(), []).append(series)
        # Methods that saw the very same spikes are compared on one screen.
        page.streams.extend(_stream(group, assign_views(comparison, group)) for group in groups.values())
    count = len(page.streams) - before
    if not count:
        return None
    lead = (
        "A sample's spikes, step by step, with a fading trail (on events and off events in two colours), and the "
        "probability each model gives to every class. It begins with the hardest of the stored examples, the one whose "
        "class the models believe in least; then comes one of every class, as it came. The true class is bold; play or "
        "drag the slider. "
        "Images are shown in one draw of their random spike code; the models were judged on another."
    )
    return Section("stream", "Decisions as events arrive", lead, [Streams(range(before, before + count))])


class _Kept(NamedTuple):
    """Examples whose input spikes are there."""

    packed: Array  # (k, time, bytes)
    labels: Array  # (k,)
    places: Array  # (k,) in the subset that has probabilities
    shape: tuple[int, ...]  # (channels, height, width)


def _kept(job: Job) -> _Kept | None:
    frames = job.frames()
    if frames is None or job.subset is None or job.labels is None or not len(frames[0]):
        return None
    packed, places, shape = frames
    labels = job.labels[job.subset[places]].astype(np.int64)
    return _Kept(packed, labels, places, picture_shape(shape, packed.shape[2]))


def chosen_samples(labels: Array, truth: Array) -> list[int]:
    """Which examples are shown, by what the methods give to the true class in the end: the hardest, then one of every
    class as it came."""
    hardest = int(truth.argmin())
    firsts = {int(label): k for k, label in reversed(list(enumerate(labels))) if k != hardest}
    return [hardest, *(firsts[label] for label in sorted(firsts))][:MOST_SAMPLES]


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
    inputs = int(np.prod(kept.shape)) if kept.shape else _used(np.unpackbits(kept.packed, axis=-1))
    given: dict[Series, Array] = {}  # probabilities (k, time, classes)
    for series in group:
        pair = series.jobs[0].over_time(series.predictor)
        if pair is not None and len(pair[0]) == kept.packed.shape[1]:
            given[series] = np.nan_to_num(pair[0][:, kept.places].transpose(1, 0, 2))
    headlines = [p for series, p in given.items() if series.predictor == series.jobs[0].headline]
    ends = [p[np.arange(len(p)), -1, kept.labels] for p in headlines if kept.labels.max() < p.shape[2]]
    samples = chosen_samples(kept.labels, np.mean(ends, axis=0) if ends else np.zeros(len(kept.labels)))
    thousandths = {series: np.clip(np.rint(1000 * p[samples]), 0, 1000).astype(int) for series, p in given.items()}
    return {
        "title": first.run.name,
        "simulated": first.run.simulated,
        "seed": first.jobs[0].seed,
        "classes": first.jobs[0].classes,
        "labels": kept.labels[samples].tolist(),
        "shape": list(kept.shape),
        "inputs": inputs,
        "time": kept.packed.shape[1],
        "bytes": kept.packed.shape[2],
        "frames": [base64.b64encode(np.ascontiguousarray(kept.packed[k]).tobytes()).decode() for k in samples],
        "methods": [
            {"name": series.name, "views": views[series], "p": p.tolist()} for series, p in thousandths.items()
        ],
    }


def _used(bits: Array) -> int:
    """Number of inputs when the shape does not tell: all but the padding bits that never spike."""
    used = np.flatnonzero(bits.any(axis=(0, 1)))
    least = int(bits.shape[2]) - 7
    return max(least, int(used[-1]) + 1 if len(used) else least)
