"""What an experiment is: data, tasks, presets, tuned hyper-parameters, published numbers, figures.

One file of `bayspike.experiments` makes one `Experiment` value; `resolve` turns it with a preset and the user's changes
into a `RunConfig` in which nothing is left open.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bayspike.continual.grouping import split_as_written
from bayspike.continual.tasks import Stream, Task
from bayspike.data.base import Dataset
from bayspike.errors import require

Table = Mapping[str, Mapping[str, Any]]  # method -> hyper-parameters; "network.…" and "training.…" reach those options


@dataclass(frozen=True)
class Preset:
    """Sizes of an experiment. `tuned` wins over the experiment's own table; `simulated` are loader options."""

    methods: tuple[str, ...]
    seeds: int
    network: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    judging: Mapping[str, Any] = field(default_factory=dict)
    tuned: Table = field(default_factory=dict)
    simulated: Mapping[str, Any] = field(default_factory=dict)
    stream: Callable[[Dataset], Stream] | None = None  # tasks other than the experiment's own


@dataclass(frozen=True)
class Published:
    """A number of the paper beside which ours stand; None where the paper gives none."""

    name: str
    method: str  # the method of ours it is to be compared with
    predictor: str
    accuracy: float | None = None
    accuracy_std: float | None = None
    ece: float | None = None
    ece_std: float | None = None
    of: str = ""  # which tasks it is the accuracy of; all, where nothing is said


@dataclass(frozen=True)
class PaperData:
    """The data that the published numbers are of: their name in the catalogue, and how many images to learn from and to
    judge on, where those are known."""

    name: str
    images: tuple[int, int] | None = None


# What there is to see of learners of one task after the other; names as in `drawing`.
CONTINUAL_FIGURES = (
    "training_curves",
    "final_boxes",
    "accuracy_matrix",
    "reliability",
    "over_time",
    "risk_coverage",
    "top_classes",
    "mean_parameters",
)


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper, or of ours."""

    name: str
    title: str
    dataset: str
    presets: Mapping[str, Preset]
    tuned: Table
    stream: Callable[[Dataset], Stream]
    figures: tuple[str, ...] = CONTINUAL_FIGURES
    stand_in: str | None = None  # the simulated data set that may replace the real one
    stand_in_presets: Mapping[str, Preset] = field(default_factory=dict)  # and what holds for it alone
    stand_in_tuned: Table = field(default_factory=dict)
    published: tuple[Published, ...] = ()
    published_note: str = ""  # what to bear in mind when comparing
    paper_data: PaperData | None = None  # of the published numbers; None: those of the preset `paper`
    of_paper: bool = True  # whether it has a preset `paper` that smaller ones are held against
    extras: Callable[..., dict[str, Any]] | None = None  # further arrays of a job, see `judging`
    counted: Callable[[Dataset, int], Stream] | None = None  # a stream of as many tasks as one likes
    rewires: bool = False  # whether each task has all classes behind inputs in an order of its own

    def tasks_of(self, preset: str, dataset: Dataset, written: str | None) -> Stream:
        """The tasks of a preset, or those that a person asks for: so many, or groups of classes."""
        if written is None:
            return (self.presets[preset].stream or self.stream)(dataset)
        if self.counted is None:
            return split_as_written(dataset, written)
        count = int(written) if written.strip().isdecimal() and len(written) < 6 else 0
        require(count >= 1, f"--tasks of {self.name} is how many tasks there are to be, but is {written[:40]!r}.")
        return self.counted(dataset, count)


def offline(dataset: Dataset) -> Stream:
    """All data at once: offline learning is a stream of one task."""
    return Stream((Task("all", dataset.train, dataset.test),), len(dataset.classes))
