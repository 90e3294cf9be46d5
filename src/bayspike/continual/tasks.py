"""Task streams (paper, Sec. "Offline versus Continual Learning").

A stream is a sequence of tasks. The learner sees batches and "a new task begins", never which task it is. Streams are
made from any data set: split by classes, repeated, with permuted inputs, or with inputs that drift or rotate.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from bayspike.data.base import Dataset, Samples, whole
from bayspike.data.items import Items
from bayspike.errors import UserError, hint, require, require_range


@dataclass(frozen=True)
class Task:
    """One data set D^(k) with the test set that judges it."""

    name: str
    train: Samples
    test: Samples


@dataclass(frozen=True)
class Stream:
    """The tasks in the order of presentation, and those by which the learner is judged.

    Without `judges` these are the tasks themselves, each once, in order of first appearance.
    """

    tasks: tuple[Task, ...]
    classes: int
    judges: tuple[Task, ...] = ()

    def __post_init__(self) -> None:
        require(len(self.tasks) > 0, "a stream needs at least one task, but got none.")
        if not self.judges:
            object.__setattr__(self, "judges", tuple({id(task): task for task in self.tasks}.values()))
        # recordings to be judged on may be longer than those to learn from, as those of DVS-Gestures are
        parts = {"train": [task.train for task in self.tasks], "test": [task.test for task in self.judges]}
        for part, all_samples in parts.items():
            shapes = {(samples.time, samples.inputs) for samples in all_samples}
            require(len(shapes) == 1, f"all tasks must {part} with one (time, inputs), but have {sorted(shapes)}.")
        inputs = {samples.inputs for all_samples in parts.values() for samples in all_samples}
        require(len(inputs) == 1, f"training and test samples must have as many inputs, but have {sorted(inputs)}.")
        for task in self.tasks + self.judges:
            for part, samples in (("train", task.train), ("test", task.test)):
                require(len(samples) > 0, f"task {task.name!r} has no {part} samples.")
                low, high = int(samples.labels.min()), int(samples.labels.max())
                require(
                    low >= 0 and high < self.classes,
                    f"task {task.name!r} has labels from {low} to {high} in its {part} part, but the read-out has "
                    f"the classes 0 … {self.classes - 1}.",
                )

    @property
    def stage_judges(self) -> tuple[int, ...] | None:
        """For every task the judge that is the same task; None if some task has none (as in joint training)."""
        places = {id(judge): place for place, judge in enumerate(self.judges)}
        found = tuple(places[id(task)] for task in self.tasks if id(task) in places)
        return found if len(found) == len(self.tasks) else None


def split_by_class(dataset: Dataset, groups: Sequence[Sequence[int | str]] | None = None) -> Stream:
    """One task per group of classes, numbers or names; by default pairs in order, {0,1}, {2,3}, and so on."""
    classes = len(dataset.classes)
    if groups is None:
        groups = [list(range(first, min(first + 2, classes))) for first in range(0, classes, 2)]
    seen: set[int] = set()
    tasks = []
    for named in groups:
        group = _numbers(dataset.classes, named)
        for label in group:
            require(0 <= label < classes, f"class {label} does not exist: the data set has 0 … {classes - 1}.")
            require(label not in seen, f"class {label} stands in two groups; use `repeated` to show a task again.")
            seen.add(label)
        name = "{" + ",".join(dataset.classes[label] for label in group) + "}"
        tasks.append(Task(name, of_classes(dataset.train, group), of_classes(dataset.test, group)))
    return Stream(tuple(tasks), classes)


def _numbers(classes: Sequence[str], group: Sequence[int | str]) -> list[int]:
    """The places of a group's classes, which are numbers or names."""
    if isinstance(group, str) or not isinstance(group, Iterable):
        raise UserError(f"a group must be a list of classes, as in [[0, 1], [2, 3]], but is {group!r}.")
    places = []
    for each in group:
        if isinstance(each, str) and each not in classes:
            raise UserError(f"class {each!r} does not exist: they are {', '.join(classes)}.{hint(each, classes)}")
        places.append(classes.index(each) if isinstance(each, str) else whole("a class that is no name", each))
    return places


def of_classes(samples: Samples, group: Sequence[int]) -> Samples:
    """The samples whose label is in the group."""
    wanted = torch.isin(samples.labels, torch.tensor(list(group)))
    return samples.subset(wanted.nonzero().flatten())


def repeated(stream: Stream, order: Sequence[int]) -> Stream:
    """The tasks of a stream in another order, any of them more than once."""
    require(
        all(0 <= k < len(stream.tasks) for k in order),
        f"order must name tasks 0 … {len(stream.tasks) - 1}, but is {list(order)}.",
    )
    return Stream(tuple(stream.tasks[k] for k in order), stream.classes)


def joint(stream: Stream) -> Stream:
    """All tasks at once: the ceiling that no continual learner is expected to pass."""
    everything = Task("all", Concatenated(tuple(t.train for t in stream.judges)), stream.judges[0].test)
    return Stream((everything,), stream.classes, stream.judges)


@dataclass(frozen=True)
class Concatenated(Items):
    """Samples of several sets, one after the other, of any kinds with equal time and inputs.

    With `order` sample i is number `order[i]` of that row.
    """

    parts: tuple[Samples, ...]
    order: Tensor | None = None

    def __post_init__(self) -> None:
        shapes = {(part.time, part.inputs) for part in self.parts}
        require(len(shapes) == 1, f"samples of different (time, inputs) cannot be joined: {sorted(shapes)}.")

    @property
    def labels(self) -> Tensor:
        row = torch.cat([part.labels for part in self.parts])
        return row if self.order is None else row[self.order]

    @property
    def time(self) -> int:
        return self.parts[0].time

    @property
    def inputs(self) -> int:
        return self.parts[0].inputs

    @property
    def bytes_per_sample(self) -> int:
        """That of the dearest kind."""
        return max(part.bytes_per_sample for part in self.parts)

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts)

    def _locate(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """Which part each index falls into, and where in it."""
        place = indices if self.order is None else self.order[indices]
        lengths = torch.tensor([len(part) for part in self.parts])
        ends = lengths.cumsum(0)
        which = torch.searchsorted(ends, place, right=True)
        return which, place - (ends - lengths)[which]

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        which, inner = self._locate(indices)
        out = torch.empty(self.time, len(indices), self.inputs, dtype=torch.uint8)
        for number in which.unique().tolist():
            here = which == number
            out[:, here] = self.parts[number].spikes(inner[here], generator)
        return out

    def subset(self, indices: Tensor) -> "Concatenated":
        which, inner = self._locate(indices)
        parts = tuple(self.parts[n].subset(inner[which == n]) for n in which.unique().tolist())
        # the new parts hold the samples grouped; a sample's place there is its rank in the grouping
        order = which.argsort(stable=True).argsort()
        return Concatenated(parts or (self.parts[0].subset(indices),), order)


@dataclass(frozen=True)
class Remapped(Items):
    """Samples whose input channels are re-wired: channel j shows what channel `source[j]` showed, −1 is silence."""

    samples: Samples
    source: Tensor  # (inputs,), int64

    @property
    def labels(self) -> Tensor:
        return self.samples.labels

    @property
    def time(self) -> int:
        return self.samples.time

    @property
    def inputs(self) -> int:
        return len(self.source)

    @property
    def bytes_per_sample(self) -> int:
        return self.samples.bytes_per_sample

    def __len__(self) -> int:
        return len(self.samples)

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        spikes = self.samples.spikes(indices, generator)[:, :, self.source.clamp(min=0)]
        spikes[:, :, self.source < 0] = 0
        return spikes

    def subset(self, indices: Tensor) -> "Remapped":
        return Remapped(self.samples.subset(indices), self.source)


def _remapped_task(name: str, dataset: Dataset, source: Tensor) -> Task:
    return Task(name, Remapped(dataset.train, source), Remapped(dataset.test, source))


def permuted(dataset: Dataset, count: int, seed: int = 0) -> Stream:
    """`count` tasks of the same classes, each behind a fixed random permutation of the inputs (the first untouched)."""
    require_range("count", count, 1)
    generator = torch.Generator().manual_seed(seed)
    sources = [torch.arange(dataset.train.inputs)]
    sources += [torch.randperm(dataset.train.inputs, generator=generator) for _ in range(count - 1)]
    tasks = [_remapped_task(f"permutation {k}", dataset, source) for k, source in enumerate(sources)]
    return Stream(tuple(tasks), len(dataset.classes))


def drifting(dataset: Dataset, count: int, share: float = 0.1, seed: int = 0, apart: bool = False) -> Stream:
    """`count` tasks of the same classes; from each to the next, `share` of the inputs change places.

    With `apart` each task has a part of the training samples of its own, so that the stream shows every sample once: a
    drift without boundaries, cut into chunks so that one can look at it.
    """
    require_range("count", count, 1)
    require_range("share", share, 0, 1)
    generator = torch.Generator().manual_seed(seed)
    inputs = dataset.train.inputs
    sources = [torch.arange(inputs)]
    for _ in range(count - 1):
        moving = torch.randperm(inputs, generator=generator)[: round(share * inputs)]
        source = sources[-1].clone()
        source[moving] = source[moving.roll(1)]  # in a cycle, so each of them really moves
        sources.append(source)
    parts = [dataset.train] * count
    if apart:
        require(
            len(dataset.train) >= count,
            f"{len(dataset.train)} training samples cannot be parted into {count} chunks: have fewer chunks.",
        )
        order = torch.randperm(len(dataset.train), generator=generator)
        parts = [dataset.train.subset(order[k::count]) for k in range(count)]
    tasks = [
        Task(f"drift {k}", Remapped(part, source), Remapped(dataset.test, source))
        for k, (part, source) in enumerate(zip(parts, sources, strict=True))
    ]
    return Stream(tuple(tasks), len(dataset.classes))


def rotated(dataset: Dataset, angles: Sequence[float]) -> Stream:
    """One task per angle in degrees: the same classes, the picture turned clockwise about its centre (domain shift)."""
    if len(dataset.sample_shape) < 2:
        raise UserError(
            f"{dataset.name} has no picture plane to rotate: its samples have the shape {dataset.sample_shape}."
        )
    sources = [rotation_source(dataset.sample_shape, angle) for angle in angles]
    tasks = [_remapped_task(f"{angle:g}°", dataset, source) for angle, source in zip(angles, sources, strict=True)]
    return Stream(tuple(tasks), len(dataset.classes))


def rotation_source(shape: tuple[int, ...], degrees: float) -> Tensor:
    """Where each channel of a picture turned clockwise comes from (nearest one); `shape` ends in the two sides."""
    height, width = shape[-2:]
    rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
    y, x = rows - (height - 1) / 2, columns - (width - 1) / 2
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    from_row = torch.round(cosine * y - sine * x + (height - 1) / 2).long()
    from_column = torch.round(sine * y + cosine * x + (width - 1) / 2).long()
    inside = (from_row >= 0) & (from_row < height) & (from_column >= 0) & (from_column < width)
    plane = torch.where(inside, from_row * width + from_column, -1).flatten()
    planes = math.prod(shape[:-2])
    offsets = torch.arange(planes).unsqueeze(1) * (height * width)
    return torch.where(plane >= 0, plane + offsets, -1).flatten()
