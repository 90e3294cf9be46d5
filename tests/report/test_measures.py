"""What the plots draw, against plain counting and scikit-learn."""

from pathlib import Path

import numpy as np
import pytest
from parsed import data, parse
from sklearn.metrics import roc_auc_score
from synthetic import TASKS, TIME

from bayspike.report import measures
from bayspike.report.runs import HEADLINE, ROUNDED, Comparison, Series, assign_views, compare, load_run, views


@pytest.fixture(scope="module")
def comparison(run: Path) -> Comparison:
    return compare([load_run(run)])


def series_of(comparison: Comparison, label: str, predictor: str) -> Series:
    (found,) = [s for s in comparison.series if (s.label, s.predictor) == (label, predictor)]
    return found


def stored(run: Path, label: str, predictor: str) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    found = []
    for seed in (0, 1):
        arrays = np.load(run / "results" / f"{label}-seed{seed}.npz")
        labels = arrays["labels"][arrays["subset"]]
        found.append((arrays[f"probabilities/{predictor}"].astype(np.float64), labels, arrays[f"foreign/{predictor}"]))
    return found


def counted(p: np.ndarray, labels: np.ndarray) -> tuple[list[int], float]:
    """Examples of each of ten bins and the ECE, one example at a time."""
    members: list[list[tuple[float, bool]]] = [[] for _ in range(10)]
    for row, label in zip(p, labels, strict=True):
        confidence = float(row.max())
        number = next(m for m in range(10) if confidence <= np.float32((m + 1) / 10) or m == 9)
        members[number].append((confidence, int(row.argmax()) == label))
    error = sum(abs(sum(c for c, _ in m) - sum(r for _, r in m)) for m in members) / len(labels)
    return [len(m) for m in members], error


def test_reliability_pools_the_seeds(run: Path, comparison: Comparison) -> None:
    bins = measures.reliability_over_time(series_of(comparison, "bayes", "committee"))
    assert bins is not None
    p = np.concatenate([each[0] for each in stored(run, "bayes", "committee")], axis=1)
    labels = np.concatenate([each[1] for each in stored(run, "bayes", "committee")])
    assert bins.examples == 120
    for t in (0, 7, TIME - 1):
        counts, error = counted(p[t], labels)
        assert bins.counts[t].tolist() == counts
        assert bins.ece[t] == pytest.approx(error, abs=1e-6)
        assert bins.mean_accuracy[t] == pytest.approx((p[t].argmax(-1) == labels).mean())
        assert bins.mean_confidence[t] == pytest.approx(p[t].max(-1).mean(), abs=1e-6)


def test_curves_are_averaged_over_seeds(run: Path, comparison: Comparison) -> None:
    curves = measures.curves_over_time(series_of(comparison, "sgd", "point"))
    assert curves is not None
    each = [(p.argmax(-1) == labels).mean(1) for p, labels, _ in stored(run, "sgd", "point")]
    assert np.allclose(curves["accuracy"].mean, (each[0] + each[1]) / 2)
    assert curves["accuracy"].std is not None
    assert np.allclose(curves["accuracy"].std, np.abs(each[0] - each[1]) / np.sqrt(2))  # sample deviation of two
    errors = [[counted(p[t], labels)[1] for t in range(TIME)] for p, labels, _ in stored(run, "sgd", "point")]
    assert np.allclose(curves["ece"].mean, np.mean(errors, axis=0), atol=1e-6)


def test_auroc_equals_scikit_learn(run: Path, comparison: Comparison) -> None:
    found = measures.foreign_over_time(series_of(comparison, "bayes", "mean"))
    assert found is not None
    parts = stored(run, "bayes", "mean")
    own = np.concatenate([p.max(-1) for p, _, _ in parts], axis=1)
    foreign = np.concatenate([f.max(-1) for _, _, f in parts], axis=1)
    truth = np.r_[np.zeros(own.shape[1]), np.ones(foreign.shape[1])]
    for t in (0, 10, TIME - 1):
        assert found.auroc[t] == pytest.approx(roc_auc_score(truth, np.r_[1 - own[t], 1 - foreign[t]]))
    assert found.own.sum(1).tolist() == [120] * TIME
    assert found.foreign.sum(1).tolist() == [80] * TIME


def test_training_runs_on_over_tasks(comparison: Comparison) -> None:
    curves = measures.training(series_of(comparison, "sgd", "point"))
    assert curves is not None
    assert curves.batch.tolist() == [5, 10, 15, 20, 25, 30, 35, 40, 45, 50]
    assert curves.current.tolist() == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert curves.accuracy.shape == (10, TASKS)
    assert curves.accuracy[-1].tolist() == pytest.approx([0.55, 0.65, 0.75, 0.85, 0.95])
    assert curves.seeds == 2


def test_the_current_task_is_bold(report: Path) -> None:
    plots = data(parse(report.read_text()))["plots"].values()
    (first, *_) = [
        plot for plot in plots if plot["layout"].get("xaxis", {}).get("title", {}).get("text") == "mini-batches"
    ]
    bold = [trace for trace in first["data"] if trace["line"]["width"] > 3 and trace["yaxis"] == "y"]
    drawn = [[x for x, y in zip(trace["x"], trace["y"], strict=True) if y is not None] for trace in bold]
    # each stretch begins where the task before ended
    assert drawn == [[5, 10], [10, 15, 20], [20, 25, 30], [30, 35, 40], [40, 45, 50]]


def test_views_compare_all_methods(comparison: Comparison) -> None:
    names = {(s.label, s.predictor): found for s, found in assign_views(comparison).items()}
    assert names == {
        ("sgd", "point"): [HEADLINE, "point", "committee", "mean", ROUNDED],
        ("bayes", "committee"): [HEADLINE, "point", "committee"],
        ("bayes", "mean"): ["mean"],
        ("bayes", "committee-8bit"): [ROUNDED],
    }
    assert views(comparison) == [HEADLINE, "mean", ROUNDED]


def test_a_predictor_without_data_falls_back_to_the_headline(comparison: Comparison) -> None:
    drawn = [s for s in comparison.series if s.predictor != "committee-8bit"]
    shown = assign_views(comparison, drawn)
    assert ROUNDED in shown[series_of(comparison, "bayes", "committee")]
