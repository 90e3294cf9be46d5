"""The figures of a run, from its stored results alone: `figures/` and its `index.json`.

Every function takes the results of a run and draws one figure of the paper (or returns None where the run has
nothing for it). Curves and maps are of the first seed; box plots and tables gather all.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bayspike import figures
from bayspike.errors import UserError
from bayspike.figures import Figure
from bayspike.metrics import accuracy, confidence_histogram, ece, mean_confidence, reliability_bins, risk_coverage
from bayspike.report.course import course_of
from bayspike.runs.directory import RunDirectory
from bayspike.runs.plan.config import RunConfig
from bayspike.runs.plan.experiment import Experiment
from bayspike.storage.arrays import read_arrays
from bayspike.storage.files import read_json, write_json

MOST_PANELS = 6  # side by side on a page
MOST_TASKS = 20  # with a curve each over training; of longer streams the course tells more


@dataclass(frozen=True)
class Results:
    """The first seed's results of every method, with their arrays, and where figures go."""

    folder: Path
    jobs: Mapping[str, Mapping[str, Any]]  # by label
    arrays: Mapping[str, Mapping[str, NDArray[Any]]]
    simulated: bool

    def headline(self, label: str, what: str) -> NDArray[Any] | None:
        """An array of the headline predictor, such as `final`."""
        return self.arrays[label].get(f"{what}/{self.jobs[label]['headline_predictor']}")

    @property
    def task_names(self) -> list[str]:
        return list(next(iter(self.jobs.values()))["task_names"])


def draw_figures(
    run: RunDirectory, experiment: Experiment, config: RunConfig, results: Sequence[Mapping[str, Any]]
) -> list[Figure]:
    """All figures of the experiment; `figures/index.json` lists them with their captions."""
    jobs = {each["label"]: each for each in results if each["seed"] == config.seeds[0]}
    if not jobs:
        return []
    arrays = {label: read_arrays(run.arrays(each["job"])) for label, each in jobs.items()}
    gathered = Results(run.figures, jobs, arrays, config.simulated)
    names = (*experiment.figures, "pruning")  # the last one where it was asked for
    drawn = [figure for name in names if (figure := _drawn(name, gathered, run)) is not None]
    write_json(run.figures / "index.json", [_entry(each) for each in drawn])
    return drawn


def draw_pruning(run: RunDirectory, config: RunConfig, results: Sequence[Mapping[str, Any]]) -> Figure | None:
    """That figure alone, beside those that are there."""
    jobs = {each["label"]: each for each in results if each["seed"] == config.seeds[0]}
    figure = _drawn("pruning", Results(run.figures, jobs, {}, config.simulated), run)
    if figure is not None:
        index = run.figures / "index.json"
        there = [each for each in (read_json(index) if index.is_file() else []) if each.get("name") != figure.name]
        write_json(index, [*there, _entry(figure)])
    return figure


def _entry(figure: Figure) -> dict[str, Any]:
    files = [path.name for path in (figure.png, figure.svg, figure.csv)]
    return {"name": figure.name, "caption": figure.caption, "files": files}


def _drawn(name: str, results: Results, run: RunDirectory) -> Figure | None:
    """One figure; numbers that are missing or do not fit together are the files' fault, and said so."""
    try:
        return FIGURES[name](results)
    except UserError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, AssertionError, RuntimeError) as error:
        raise UserError(
            f"the figure {name} cannot be drawn from {run.path / 'results'} ({type(error).__name__}: {error}): its "
            "files do not fit together; delete the results of the job, and resume."
        ) from error


def training_curves(results: Results) -> Figure | None:
    """Accuracy and ECE of every task while training goes on (paper, Fig. continual-exp)."""
    panels = {}
    for label, job in list(results.jobs.items())[:MOST_PANELS]:
        mine = [each for each in job["evaluations"] if each["predictor"] == job["headline_predictor"]]
        if not 2 <= len(job["task_names"]) <= MOST_TASKS or not mine:
            continue
        ends = {each["task"]: each["batch"] for each in mine}  # the last evaluation of a task is at its end
        moments = [each["task"] + each["batch"] / ends[each["task"]] for each in mine]
        panels[label] = {
            "epoch": moments,
            "current_task": [each["task"] for each in mine],
            "accuracy": [[_score(scores, "accuracy") for scores in each["tasks"]] for each in mine],
            "ece": [[_score(scores, "ece") for scores in each["tasks"]] for each in mine],
        }
    if not panels:
        return None
    return figures.training_curves(
        results.folder, panels, results.task_names, unit="tasks seen", simulated=results.simulated
    )


def _score(scores: Mapping[str, Any] | None, name: str) -> float:
    """NaN where a task was not judged."""
    return float("nan") if scores is None or scores[name] is None else float(scores[name])


def final_boxes(results: Results) -> Figure | None:
    """Final accuracy and ECE over the tasks (paper, Fig. continual-final)."""
    if len(results.task_names) < 2:
        return None
    boxes = {}
    for label, job in results.jobs.items():
        finals = job["final"][job["headline_predictor"]]["per_task"]
        boxes[label] = {name: [scores[name] for scores in finals] for name in ("accuracy", "ece")}
    return figures.final_boxes(results.folder, boxes, simulated=results.simulated)


def accuracy_matrix(results: Results) -> Figure | None:
    """Accuracy on every task after every task."""
    matrices = {
        label: job["accuracy_matrix"][job["headline_predictor"]]
        for label, job in results.jobs.items()
        if len(job["accuracy_matrix"].get(job["headline_predictor"], ())) > 1
    }
    if not matrices:
        return None
    shown = dict(list(matrices.items())[:MOST_PANELS])
    return figures.accuracy_matrices(results.folder, shown, results.task_names, simulated=results.simulated)


def reliability(results: Results) -> Figure | None:
    """Reliability diagrams over confidence histograms (paper, Figs. bayes-id-real, bayes-id-bin)."""
    panels = {}
    for label in list(results.jobs)[:MOST_PANELS]:
        final = results.headline(label, "final")
        bins = reliability_bins(torch.as_tensor(final), torch.as_tensor(results.arrays[label]["labels"]))
        panels[label] = {
            "counts": bins.counts.numpy(),
            "confidence": bins.confidence.numpy(),
            "accuracy": bins.accuracy.numpy(),
        }
    return figures.reliability_diagrams(results.folder, panels, simulated=results.simulated)


def foreign_confidence(results: Results) -> Figure | None:
    """Confidence on foreign inputs (paper, Fig. bayes-ood)."""
    panels: dict[str, dict[str, Any]] = {}
    for label, job in results.jobs.items():
        foreign, own = results.headline(label, "foreign"), results.headline(label, "final")
        if foreign is None or own is None:
            continue
        row = panels.setdefault(_synapses(job["method"]), {})
        row[label] = {
            "foreign": confidence_histogram(torch.as_tensor(foreign[-1]))[1].numpy(),
            "own": confidence_histogram(torch.as_tensor(own))[1].numpy(),
            "auroc": job["ood"][job["headline_predictor"]]["auroc"]["confidence"],
        }
    return figures.foreign_histograms(results.folder, panels, simulated=results.simulated) if panels else None


def over_time(results: Results) -> Figure | None:
    """Accuracy, ECE and confidence while the signal arrives (paper, Fig. online), of foreign inputs if there are."""
    panels: dict[str, dict[str, Any]] = {}
    data = "test examples"
    for label, job in results.jobs.items():
        series, arrays = results.headline(label, "probabilities"), results.arrays[label]
        labels = arrays["labels"][arrays["subset"]]
        foreign = results.headline(label, "foreign")
        if foreign is not None and "foreign_labels" in arrays:
            series, labels, data = foreign, arrays["foreign_labels"], "out-of-distribution examples"
        probabilities, truth = torch.as_tensor(series), torch.as_tensor(labels)
        panels.setdefault(_synapses(job["method"]), {})[label] = {
            "accuracy": accuracy(probabilities, truth).numpy(),
            "ece": ece(probabilities, truth).numpy(),
            "confidence": mean_confidence(probabilities).numpy(),
        }
    return figures.measures_over_time(results.folder, panels, data=data, simulated=results.simulated)


def risk_coverage_figure(results: Results) -> Figure | None:
    """Error among accepted decisions against the share accepted."""
    curves = {}
    for label in results.jobs:
        curve = risk_coverage(
            torch.as_tensor(results.headline(label, "final")), torch.as_tensor(results.arrays[label]["labels"])
        )
        curves[label] = {"coverage": curve.coverage.numpy(), "risk": curve.risk.numpy()}
    return figures.risk_coverage_curves(results.folder, curves, simulated=results.simulated)


def top_classes(results: Results) -> Figure | None:
    """The three most probable classes on examples where Bayesian and frequentist differ (paper, Fig. visualisation)."""
    rows: dict[str, dict[str, Any]] = {}
    for synapses in ("real-valued synapses", "binary synapses"):
        pair = _pair(results, synapses)
        if pair is None:
            continue
        bayes, other = (results.headline(label, "final") for label in pair)
        arrays = results.arrays[pair[0]]
        assert bayes is not None
        assert other is not None
        labels = arrays["labels"]
        right, right_too = bayes.argmax(1) == labels, other.argmax(1) == labels
        wanted = {
            "both wrong": ~right & ~right_too,
            "only Bayesian right": right & ~right_too,
            "only frequentist right": ~right & right_too,
        }
        for column, which in wanted.items():
            found = np.flatnonzero(which)
            if not len(found):
                continue
            # the most telling one: where the frequentist is surest of what it says
            number = int(found[other[found].max(1).argmax()])
            row = rows.setdefault(synapses, {})
            row[column] = {
                "label": int(labels[number]),
                "probabilities": {pair[0]: bayes[number].tolist(), pair[1]: other[number].tolist()},
            }
    if not rows:
        return None
    classes = next(iter(results.jobs.values()))["classes"]
    return figures.top_classes(results.folder, rows, classes, shown=min(3, len(classes)), simulated=results.simulated)


def mean_parameters(results: Results) -> Figure | None:
    """Distribution of the mean parameters (paper, Fig. weights_distrib), of the Bayesian method if there is one."""
    label = next((each for each in results.jobs if "committee" in results.jobs[each]["predictors"]), None)
    if label is None:
        return None
    arrays = results.arrays[label]
    counted = [name for name in arrays if name.startswith("weights/") and name.endswith("_counts")]
    layers = sorted(int(name.removeprefix("weights/").split("_")[0]) for name in counted)
    panels = {
        f"{label}, layer {layer + 1}": {
            "edges": arrays[f"weights/{layer}_edges"],
            "counts": arrays[f"weights/{layer}_counts"],
            "nonzero": float(arrays[f"weights/{layer}_nonzero"]),
        }
        for layer in layers[:MOST_PANELS]
    }
    return figures.mean_parameters(results.folder, panels, simulated=results.simulated)


def course(results: Results) -> Figure | None:
    """Newest task, last five, all so far, calibration and precision after each task."""
    panels: dict[str, dict[str, Any]] = {}
    sampled = False
    for label, job in results.jobs.items():
        found = course_of(job, job["headline_predictor"], results.arrays[label].get("precision"))
        if found is not None:
            curves = {name: getattr(found, name) for name in ("newest", "last_five", "learnt", "ece")}
            first = None if found.precision is None else found.precision[:, 0]
            panels[label] = {**curves, "precision": first}
            sampled = sampled or found.sampled
    if not panels:
        return None
    return figures.stream_course(results.folder, panels, sampled=sampled, simulated=results.simulated)


def pruning(results: Results) -> Figure | None:
    """Accuracy without a share of the synapses, where it was asked for."""
    curves: dict[str, dict[str, Any]] = {}
    for label, job in results.jobs.items():
        rows = (job.get("pruning") or {}).get("rows", [])
        for order in ("size", "signal"):
            mine = [row for row in rows if row["by"] == order]
            if mine:
                line = [row for row in rows if row["pruned"] == 0] + sorted(mine, key=lambda row: row["pruned"])
                curve = {"share": [row["pruned"] for row in line], "accuracy": [row["accuracy"] for row in line]}
                curves.setdefault(label, {})[order] = curve
    return figures.pruning_curves(results.folder, curves, simulated=results.simulated) if curves else None


def confidence_maps(results: Results) -> Figure | None:
    """Predictive probabilities over the plane of two-moons (paper, Fig. twomoons_exp)."""
    maps: dict[str, dict[str, Any]] = {}
    for label, job in results.jobs.items():
        grid = results.headline(label, "grid")
        if grid is not None:
            maps.setdefault(_synapses(job["method"]), {})[label] = grid[:, :, 1]
    if not maps:
        return None
    arrays = next(iter(results.arrays.values()))
    x, y = arrays["grid_x"], arrays["grid_y"]
    return figures.confidence_maps(
        results.folder, maps, arrays["points"], arrays["point_labels"],
        (float(x[0]), float(x[-1]), float(y[0]), float(y[-1])), simulated=results.simulated,
    )  # fmt: skip


def _synapses(name: str) -> str:
    return "binary synapses" if "binary" in name or name == "ste" else "real-valued synapses"


def _pair(results: Results, synapses: str) -> tuple[str, str] | None:
    """A Bayesian and a frequentist method with the same kind of synapses."""
    mine = [label for label, job in results.jobs.items() if _synapses(job["method"]) == synapses]
    bayes = [label for label in mine if "committee" in results.jobs[label]["predictors"]]
    others = [label for label in mine if label not in bayes]
    return (bayes[0], others[0]) if bayes and others else None


FIGURES: dict[str, Callable[[Results], Figure | None]] = {
    "training_curves": training_curves,
    "final_boxes": final_boxes,
    "accuracy_matrix": accuracy_matrix,
    "reliability": reliability,
    "foreign_confidence": foreign_confidence,
    "over_time": over_time,
    "risk_coverage": risk_coverage_figure,
    "top_classes": top_classes,
    "mean_parameters": mean_parameters,
    "confidence_maps": confidence_maps,
    "course": course,
    "pruning": pruning,
}
