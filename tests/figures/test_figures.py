"""Figures: what is drawn and written equals the numbers given, and files are whole and repeatable."""

import csv
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.image
import numpy as np
import pytest
import torch
from matplotlib.collections import PathCollection

from bayspike import figures, metrics
from bayspike.errors import UserError
from bayspike.figures import calibration, continual, examples, online, output, style, two_moons, weights
from bayspike.figures.style import series_style, task_style

RNG = np.random.default_rng(0)
TASKS = ["{0, 1}", "{2, 3}", "{4, 5}"]


def bins_of(scale: float) -> tuple[dict[str, Any], torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(4, (300,), generator=generator)
    logits = torch.randn(300, 4, generator=generator, dtype=torch.float64)
    logits[torch.arange(300), labels] += 1
    probabilities = (scale * logits).softmax(-1)
    found = metrics.reliability_bins(probabilities, labels)._asdict()
    return {key: value.numpy() for key, value in found.items()}, probabilities, labels


def curve(moments: int = 9) -> dict[str, Any]:
    return {
        "epoch": np.arange(1, moments + 1),
        "current_task": np.repeat([0, 1, 2], moments // 3),
        "accuracy": RNG.random((moments, 3)),
        "ece": RNG.random((moments, 3)) / 2,
    }


GRID = np.linspace(0, 1, 12).reshape(3, 4)
POINTS, LABELS = np.array([[0.1, 0.2], [0.5, 0.5], [0.9, 0.1]]), np.array([0, 1, 1])
EXAMPLE = {
    "label": 2,
    "image": np.eye(4),
    "probabilities": {"Frequentist": [0.7, 0.1, 0.15, 0.05], "Bayesian": [0.3, 0.1, 0.4, 0.2]},
}
SERIES = {"accuracy": [0.2, 0.5, 0.9], "ece": [0.3, 0.2, 0.1], "confidence": [0.4, 0.6, 0.8]}

COURSE = {
    "newest": [0.9, 0.8, 0.85], "last_five": [0.9, 0.7, 0.6], "learnt": [0.9, 0.7, 0.6],
    "ece": [0.1, float("nan"), 0.05], "precision": [[10, 12, 90], [11, 20, 200], [12, 40, 900]],
}  # fmt: skip
PRUNED = {"share": [0, 0.5, 0.95], "accuracy": [0.9, 0.91, 0.6]}

DRAW: dict[str, Callable[..., figures.Figure]] = {
    "course": lambda d, **k: figures.stream_course(
        d, {"Bayes": COURSE, "Freq": {**COURSE, "precision": None}}, sampled=True, **k
    ),
    "pruning": lambda d, **k: figures.pruning_curves(
        d, {"Bayes": {"size": PRUNED, "signal": PRUNED}, "Freq": {"size": PRUNED}}, **k
    ),
    "maps": lambda d, **k: figures.confidence_maps(
        d, {"Real": {"Freq": GRID, "Bayes": GRID / 2}, "Binary": {"Freq": GRID}}, POINTS, LABELS, (0, 1, 0, 1), **k
    ),
    "reliability": lambda d, **k: figures.reliability_diagrams(d, {"Freq": bins_of(3)[0], "Bayes": bins_of(1)[0]}, **k),
    "foreign": lambda d, **k: figures.foreign_histograms(
        d, {"Real": {"Freq": {"own": [0, 1, 5], "foreign": [2, 1, 1], "auroc": 0.7}, "Bayes": {"foreign": [3, 0]}}}, **k
    ),
    "top": lambda d, **k: figures.top_classes(d, {"Real": {"both wrong": EXAMPLE}}, list("abcd"), **k),
    "time": lambda d, **k: figures.measures_over_time(
        d, {"Real": {"Freq": SERIES, "Bayes": {**SERIES, "ece_spread": [0.01, 0.02, 0.03]}}}, **k
    ),
    "risk": lambda d, **k: figures.risk_coverage_curves(d, {"Freq": {"coverage": [0.5, 1], "risk": [0.1, 0.3]}}, **k),
    "curves": lambda d, **k: figures.training_curves(d, {"Bayes": curve(), "Freq": curve()}, TASKS, **k),
    "boxes": lambda d, **k: figures.final_boxes(
        d, {"Freq": {"accuracy": [0.1, 0.5, 0.9], "ece": [0.1, 0.2, 0.3]}, "One": {"accuracy": [0.5], "ece": [0]}}, **k
    ),
    "matrix": lambda d, **k: figures.accuracy_matrices(
        d, {"Bayes": [[0.9, np.nan, 0.0], [0.8, 0.95, 0.1], [0.7, 0.9, 0.92]]}, TASKS, **k
    ),
    "weights": lambda d, **k: figures.mean_parameters(d, {"MNIST": figures.count_means([0, 0, 1.0, -2.0])}, **k),
}  # fmt: skip


@pytest.fixture(autouse=True)
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer pixels than a paper needs, for speed."""
    monkeypatch.setitem(style._RC, "savefig.dpi", 60)


@pytest.fixture
def sheets(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every sheet just before it is written, to look at what was drawn."""
    seen: list[Any] = []

    def spy(sheet: Any, *args: Any, **kwargs: Any) -> figures.Figure:
        seen.append(sheet)
        return output.write_figure(sheet, *args, **kwargs)

    for module in (calibration, continual, examples, online, two_moons, weights):
        monkeypatch.setattr(module, "write_figure", spy)
    return seen


def table(figure: figures.Figure) -> list[dict[str, str]]:
    with figure.csv.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("kind", sorted(DRAW))
def test_every_figure_is_written_whole(kind: str, tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    figure = DRAW[kind](tmp_path / "new folder", name="drawn", simulated=True)
    assert dict(matplotlib.rcParams) == before
    pixels = matplotlib.image.imread(figure.png)
    assert pixels.shape[1] <= 7.2 * 60 + 1
    assert pixels[..., :3].std() > 0.03  # not a blank page
    assert ET.parse(figure.svg).getroot().tag.endswith("svg")
    assert len(table(figure)) > 0
    assert figure.caption.startswith("Simulated data. ")
    assert figure.text.read_text().strip() == figure.caption
    assert sorted(p.name for p in figure.png.parent.iterdir()) == [f"drawn.{e}" for e in ("csv", "png", "svg", "txt")]


@pytest.mark.parametrize("kind", ["reliability", "matrix", "top"])
def test_same_results_give_the_same_files(kind: str, tmp_path: Path) -> None:
    one, two = DRAW[kind](tmp_path / "1"), DRAW[kind](tmp_path / "2")
    assert one.svg.read_bytes() == two.svg.read_bytes()
    assert one.png.read_bytes() == two.png.read_bytes()
    assert not one.caption.startswith("Simulated")


def test_simulated_is_on_the_sheet(tmp_path: Path, sheets: list[Any]) -> None:
    DRAW["risk"](tmp_path, simulated=True)
    DRAW["risk"](tmp_path)
    assert sheets[0].get_suptitle() == "Simulated data"
    assert sheets[1].get_suptitle() == ""


def test_reliability_shows_the_measured_errors(tmp_path: Path, sheets: list[Any]) -> None:
    result, probabilities, labels = bins_of(3)
    figure = figures.reliability_diagrams(tmp_path, {"Freq": result})
    top = sheets[0].axes[0]
    assert f"ECE {metrics.ece(probabilities, labels).item():.3f}" in top.get_title()
    assert f"accuracy {100 * metrics.accuracy(probabilities, labels).item():.1f} %" in top.get_title()
    filled = result["counts"] > 0
    heights = [bar.get_height() for bar in top.containers[0]]
    assert heights == pytest.approx(result["accuracy"][filled])
    for gap, conf, acc in zip(top.containers[1], result["confidence"][filled], result["accuracy"][filled], strict=True):
        assert sorted([gap.get_y(), gap.get_y() + gap.get_height()]) == pytest.approx(sorted([conf, acc]))
    confidence_line, accuracy_line = sheets[0].axes[1].lines
    assert confidence_line.get_xdata()[0] == pytest.approx(metrics.mean_confidence(probabilities).item())
    assert accuracy_line.get_xdata()[0] == pytest.approx(metrics.accuracy(probabilities, labels).item())
    assert sum(int(row["examples"]) for row in table(figure)) == 300


def test_maps_are_the_right_way_up(tmp_path: Path, sheets: list[Any]) -> None:
    figure = figures.confidence_maps(tmp_path, {"Real": {"Freq": GRID}}, POINTS, LABELS, (0, 4, 0, 3))
    axes = sheets[0].axes[0]
    assert axes.images[0].origin == "lower"
    assert axes.get_ylim() == (0, 3)
    triangles, circles = (c for c in axes.collections if isinstance(c, PathCollection))
    assert triangles.get_offsets().tolist() == [[0.1, 0.2]]
    assert circles.get_offsets().tolist() == [[0.5, 0.5], [0.9, 0.1]]
    rows = table(figure)
    assert (rows[0]["x"], rows[0]["y"], float(rows[0]["probability_of_class_1"])) == ("0.5", "0.5", 0.0)
    assert (rows[-1]["x"], rows[-1]["y"], float(rows[-1]["probability_of_class_1"])) == ("3.5", "2.5", 1.0)


def test_top_three_and_the_bold_one(tmp_path: Path, sheets: list[Any]) -> None:
    rows = table(DRAW["top"](tmp_path))
    assert [(r["model"], r["class"]) for r in rows] == [
        *(("Frequentist", c) for c in "acb"),
        *(("Bayesian", c) for c in "cad"),
    ]
    assert [r["is_label"] for r in rows] == ["0", "1", "0", "1", "0", "0"]
    bars = [axes for axes in sheets[0].axes if axes.patches]
    bold = [[t.get_fontweight() == "bold" for t in axes.get_yticklabels()] for axes in bars]
    assert bold == [[False, True, False], [True, False, False]]


def test_current_task_is_bold_while_it_is_trained(tmp_path: Path, sheets: list[Any]) -> None:
    result = curve()
    figure = figures.training_curves(tmp_path, {"Bayes": result}, TASKS)
    thick = [line for line in sheets[0].axes[0].lines if line.get_linewidth() > 2]
    assert len(thick) == 3
    for task, line in enumerate(thick):
        drawn = ~np.isnan(line.get_ydata())
        trained = result["current_task"] == task
        first = int(np.flatnonzero(trained)[0])
        expected = trained.copy()
        expected[max(first - 1, 0)] = True  # from the moment at which the task began
        assert drawn.tolist() == expected.tolist()
        assert line.get_ydata()[drawn].tolist() == result["accuracy"][expected, task].tolist()
    rows = [r for r in table(figure) if r["measure"] == "ece" and r["task"] == TASKS[1]]
    assert [float(r["value"]) for r in rows] == pytest.approx(result["ece"][:, 1], rel=1e-5)


def test_boxes_are_quartiles(tmp_path: Path, sheets: list[Any]) -> None:
    values = [0.1, 0.2, 0.3, 0.4, 0.95]
    figures.final_boxes(tmp_path, {"A": {"accuracy": values, "ece": values}})
    axes = sheets[0].axes[0]
    box = axes.patches[0].get_path().vertices[:, 1]
    assert (box.min(), box.max()) == pytest.approx((np.quantile(values, 0.25), np.quantile(values, 0.75)))
    outliers = [line for line in axes.lines if line.get_markerfacecolor() == "none" and line.get_marker() == "o"]
    assert outliers[0].get_ydata().tolist() == [0.95]  # beyond 0.4 + 1.5 * 0.2


def test_over_time_starts_at_one(tmp_path: Path, sheets: list[Any]) -> None:
    rows = table(DRAW["time"](tmp_path))
    chosen = [r for r in rows if r["model"] == "Bayes" and r["measure"] == "ece"]
    assert [(r["t"], float(r["value"]), float(r["spread"])) for r in chosen] == [
        ("1", 0.3, 0.01),
        ("2", 0.2, 0.02),
        ("3", 0.1, 0.03),
    ]
    assert sheets[0].axes[0].lines[0].get_xdata().tolist() == [1, 2, 3]


def test_over_time_names_the_models_of_every_column(tmp_path: Path, sheets: list[Any]) -> None:
    figures.measures_over_time(tmp_path, {"real": {"A": SERIES, "B": SERIES}, "binary": {"C": SERIES, "B": SERIES}})
    (legend,) = sheets[0].legends
    assert [text.get_text() for text in legend.get_texts()] == ["A", "B", "C"]
    styles = {
        axes.get_title(): [(line.get_label(), line.get_color()) for line in axes.lines] for axes in sheets[0].axes[:2]
    }
    assert dict(styles["real"])["B"] == dict(styles["binary"])["B"] != dict(styles["binary"])["C"]


def test_count_means_by_hand() -> None:
    counted = figures.count_means([[0.0, 0.0], [1.0, -1.0]], bins=3)
    assert counted["counts"] == [1, 2, 1]
    assert counted["nonzero"] == 0.5
    flat = np.repeat(np.arange(-50, 51) / 16, 7)  # every grid point equally often: a level histogram
    ragged = figures.count_means(flat, bins=21, step=1 / 16)
    assert len(set(ragged["counts"][1:-1])) == 1
    assert sum(ragged["counts"]) == flat.size
    assert figures.count_means(np.zeros(5))["nonzero"] == 0.0


def test_methods_and_tasks_differ_without_colour() -> None:
    for styles in ([series_style(i) for i in range(7)], [task_style(i, 5) for i in range(5)]):
        assert len({(str(s.line), s.marker) for s in styles}) == len(styles)
    many = [task_style(i, 50).colour for i in range(50)]
    assert len(set(many)) == 50
    shades = [matplotlib.colors.to_rgb(c) @ np.array([0.2126, 0.7152, 0.0722]) for c in many]
    assert shades == sorted(shades)  # dark to light


def test_many_tasks_get_a_scale(tmp_path: Path, sheets: list[Any]) -> None:
    moments, tasks = 20, 10
    result = {
        "epoch": np.arange(moments),
        "current_task": np.arange(moments) // 2,
        "accuracy": RNG.random((moments, tasks)),
        "ece": RNG.random((moments, tasks)),
    }
    figures.training_curves(tmp_path, {"Bayes": result}, [str(i) for i in range(tasks)])
    assert any(axes.get_ylabel() == "task" for axes in sheets[0].axes)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda d: figures.reliability_diagrams(d, {}), "nothing to draw"),
        (lambda d: figures.reliability_diagrams(d, {"A": {"counts": [1]}}), "has no 'confidence'"),
        (lambda d: figures.foreign_histograms(d, {"R": {"A": {"foreign": [0, 0]}}}), "no example"),
        (lambda d: figures.confidence_maps(d, {"R": {"A": GRID * 2}}, POINTS, LABELS, (0, 1, 0, 1)), r"\[0, 1\]"),
        (lambda d: figures.confidence_maps(d, {"R": {"A": GRID}}, POINTS, LABELS[:2], (0, 1, 0, 1)), "match"),
        (lambda d: figures.top_classes(d, {"R": {"A": EXAMPLE}}, ["a", "b"]), "class names"),
        (lambda d: figures.top_classes(d, {"R": {"A": EXAMPLE}}, list("abcde")), "one per class"),
        (lambda d: figures.measures_over_time(d, {"R": {"A": {**SERIES, "ece": [np.nan]}}}), "finite"),
        (lambda d: figures.risk_coverage_curves(d, {"A": {"coverage": [1], "risk": [0, 1]}}), "equally long"),
        (lambda d: figures.training_curves(d, {"A": curve()}, TASKS[:2]), "shape"),
        (lambda d: figures.accuracy_matrices(d, {"A": [[90.0]]}, ["x"]), r"\[0, 1\]"),
        (lambda d: figures.accuracy_matrices(d, {"A": [[0.9]]}, TASKS), "tasks"),
        (lambda d: figures.accuracy_matrices(d, {"A": [[0.9], [0.1, 0.2]]}, TASKS), "regular array"),
        (lambda d: figures.mean_parameters(d, {"A": {"edges": [0, 1], "counts": [0], "nonzero": 1}}), "some parameter"),
        (lambda d: figures.risk_coverage_curves(d, {"A": {"coverage": [1], "risk": [0]}}, name="../x"), "plain file"),
    ],
)  # fmt: skip
def test_bad_results_are_refused_and_nothing_is_written(
    draw: Callable[[Path], figures.Figure], words: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=words):
        draw(tmp_path)
    assert list(tmp_path.iterdir()) == []
