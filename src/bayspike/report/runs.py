"""What the report and the figures know of a run: its directory, read into plain values.

A run is one experiment with several methods; a job is one method with one seed. A job whose result is not there
yet is simply absent. Everything that may be missing is None or empty, and each panel decides what it can show.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from bayspike.errors import require
from bayspike.report.reading import Array, Arrays, mapping, number, read_json, read_mapping, sequence

HEADLINE = "headline"
ROUNDED = "8-bit weights"
SUMMARY_KEYS = ("accuracy", "ece", "nll", "brier")


@dataclass(frozen=True, eq=False)
class Job:
    """One method with one seed: its result and its arrays."""

    name: str
    result: dict[str, Any]
    arrays: Arrays

    @property
    def label(self) -> str:
        return str(self.result.get("label") or self.result.get("method") or self.name)

    @property
    def method(self) -> str:
        return str(self.result.get("method") or self.label)

    @property
    def seed(self) -> str:
        return str(self.result.get("seed", "?"))

    @property
    def predictors(self) -> list[str]:
        return [str(p) for p in sequence(self.result.get("predictors"))]

    @property
    def headline(self) -> str:
        known = self.predictors
        return str(self.result.get("headline_predictor") or (known[0] if known else ""))

    @property
    def classes(self) -> list[str]:
        return [str(c) for c in sequence(self.result.get("classes"))]

    @property
    def task_names(self) -> list[str]:
        return [str(t) for t in sequence(self.result.get("task_names"))]

    @cached_property
    def labels(self) -> Array | None:
        """Labels of all test examples, `(N,)`."""
        return self.arrays.get("labels", 1)

    @cached_property
    def subset(self) -> Array | None:
        """Which test examples have probabilities over time, `(n,)`."""
        subset, labels = self.arrays.get("subset", 1), self.labels
        if subset is None or labels is None or subset.dtype.kind not in "iu":
            return None
        inside = int(subset.min()) >= 0 and int(subset.max()) < len(labels)
        return subset.astype(np.int64) if inside else None

    def over_time(self, predictor: str) -> tuple[Array, Array] | None:
        """Probabilities `(time, n, classes)` of the stored subset and its labels `(n,)`."""
        p = self.arrays.get(f"probabilities/{predictor}", 3)
        if p is None or self.subset is None or self.labels is None or p.shape[1] != len(self.subset):
            return None
        return p, self.labels[self.subset].astype(np.int64)

    def frames(self) -> tuple[Array, Array, tuple[int, ...]] | None:
        """Packed input spikes `(k, time, bytes)`, their places in the subset `(k,)`, and the shape of a frame."""
        packed, shape = self.arrays.get("frames", 3), self.arrays.get("frames_shape", 1)
        if shape is None:  # older runs see inputs at one age only
            shape = self.arrays.get("sample_shape", 1)
        if packed is None or packed.dtype != np.uint8 or self.subset is None:
            return None
        sizes = tuple(int(side) for side in shape) if shape is not None else ()
        places = self.arrays.get("frames_of", 1)
        if places is None:  # version 0.1 kept those of the first of the subset
            places = np.arange(min(len(packed), len(self.subset)))
        if (
            places.dtype.kind not in "iu"
            or len(places) > len(packed)
            or not set(places) <= set(range(len(self.subset)))
        ):
            return None
        return packed[: len(places)], places.astype(np.int64), sizes


@dataclass(frozen=True, eq=False)
class Run:
    """One run directory."""

    path: Path
    name: str
    config: dict[str, Any]
    environment: dict[str, Any]
    summary: dict[str, Any]
    jobs: tuple[Job, ...]
    figures: tuple[dict[str, Any], ...]

    @property
    def simulated(self) -> bool:
        said = (self.config, self.summary, mapping(self.config.get("dataset")))
        return any(bool(each.get("simulated")) for each in said)

    @property
    def experiment(self) -> str:
        """What was run, in the words of the summary."""
        return str(self.summary.get("title") or self.config.get("experiment") or self.name)

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """`summary.json` by method label."""
        held = mapping(self.summary.get("methods"))
        return {str(label): scores for label, scores in held.items() if isinstance(scores, dict)}

    @property
    def labels(self) -> list[str]:
        """Method labels, in the order of the summary, then of the results."""
        return list(dict.fromkeys([*self.methods, *(job.label for job in self.jobs)]))

    def jobs_of(self, label: str) -> list[Job]:
        return [job for job in self.jobs if job.label == label]


def load_run(path: str | Path) -> Run:
    """Read a run directory; refused only if it is not one at all."""
    path = Path(path)
    require(path.is_dir(), f"{path} is not a directory; give the directory that a run wrote.")
    config, summary = read_mapping(path / "config.json"), read_mapping(path / "summary.json")
    jobs = tuple(_jobs(path / "results"))
    require(
        bool(config or summary or jobs),
        f"{path} holds neither config.json nor summary.json nor results; give the directory that a run wrote.",
    )
    environment = read_mapping(path / "environment.json")
    index = [entry for entry in sequence(read_json(path / "figures" / "index.json")) if isinstance(entry, dict)]
    name = path.resolve().name
    return Run(path, name, config, environment, summary, jobs, tuple(index))


def _jobs(folder: Path) -> list[Job]:
    if not folder.is_dir():
        return []
    found = []
    for file in sorted(folder.glob("*.json")):
        result = read_mapping(file)
        if result:
            kept = read_mapping(folder.parent / "asked" / file.name)  # what was asked for later wins
            result |= {name: kept[name] for name in ("controls", "pruning") if kept.get(name)}
            found.append(Job(file.stem, result, Arrays(file.with_suffix(".npz"))))
    return sorted(found, key=lambda job: (number(job.result.get("seed")) or 0.0, job.name))


@dataclass(frozen=True, eq=False)
class Series:
    """One line of a comparison: the jobs of one method of one run, seen through one predictor."""

    run: Run
    label: str
    predictor: str
    jobs: tuple[Job, ...]
    colour: int
    name: str


class Comparison(NamedTuple):
    """All that the panels look at."""

    runs: Sequence[Run]
    series: Sequence[Series]


def load_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Read several directories; runs of the same name are told apart by a number."""
    require(len(paths) > 0, "give at least one run directory.")
    runs = [load_run(path) for path in paths]
    names = [run.name for run in runs]
    return [
        replace(run, name=f"{run.name} ({names[: i + 1].count(run.name)})") if names.count(run.name) > 1 else run
        for i, run in enumerate(runs)
    ]


def compare(runs: Sequence[Run]) -> Comparison:
    """Every (run, method, predictor) that has a result, the headline predictor of a method first."""
    found: list[Series] = []
    colour = 0
    for run in runs:
        for label in run.labels:
            jobs = tuple(run.jobs_of(label))
            if not jobs:
                continue
            shown = f"{run.name}: {label}" if len(runs) > 1 else label
            own = list(dict.fromkeys([jobs[0].headline, *jobs[0].predictors]))
            for predictor in own:
                name = f"{shown}, {predictor}" if len(own) > 1 else shown
                found.append(Series(run, label, predictor, jobs, colour, name))
            colour += 1
    return Comparison(runs, found)


def simulated_among(series: Sequence[Series]) -> bool | Literal["partly"]:
    """Whether all, none or some of what is drawn together is simulated."""
    flags = {each.run.simulated for each in series}
    return "partly" if len(flags) > 1 else flags == {True}


def legend_name(series: Series, drawn: Sequence[Series]) -> str:
    """A series' name beside others; simulated ones are marked where real ones stand beside them."""
    marked = series.run.simulated and simulated_among(drawn) == "partly"
    return f"{series.name} (simulated)" if marked else series.name


def view_of(predictor: str) -> str:
    """The choice of the predictor menu that shows it; weights rounded for the chip are one choice for all methods."""
    return ROUNDED if predictor.endswith("-8bit") else predictor


def assign_views(comparison: Comparison, drawn: Sequence[Series] | None = None) -> dict[Series, list[str]]:
    """Under which choices of the predictor menu each of `drawn` is shown.

    A method without the chosen predictor, or without data for it, is shown through its headline one, so that every
    choice compares all methods. The first choice is every method's headline.
    """
    kept = list(comparison.series) if drawn is None else list(drawn)
    choices = [HEADLINE, *dict.fromkeys(view_of(series.predictor) for series in comparison.series)]
    shown: dict[Series, list[str]] = {series: [] for series in kept}
    methods = dict.fromkeys((series.run.path, series.label) for series in kept)
    for method in methods:
        own = [series for series in kept if (series.run.path, series.label) == method]
        default = next((s for s in own if s.predictor == s.jobs[0].headline), own[0])
        for choice in choices:
            shown[next((s for s in own if view_of(s.predictor) == choice), default)].append(choice)
    return shown


def views(comparison: Comparison) -> list[str]:
    """The choices of the predictor menu, without those that show nothing but the headlines."""
    shown = assign_views(comparison)
    every = list(dict.fromkeys(view for found in shown.values() for view in found))
    sets = {view: [series for series, found in shown.items() if view in found] for view in every}
    return [view for view in every if view == HEADLINE or sets[view] != sets[HEADLINE]]
