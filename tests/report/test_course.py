"""The course of a stream against numbers worked out by hand; where some tasks were not looked at, too."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from parsed import data, parse, table

from bayspike.report import write_report
from bayspike.report.course import course_of, last_tasks, mean_course

NAN = float("nan")


def result(rows: list[list[float | None]], errors: list[float]) -> dict:
    """Evaluations of one predictor: at the end of each task, after one in its middle that does not count."""
    evaluations = []
    for stage, (row, ece) in enumerate(zip(rows, errors, strict=True)):
        tasks = [None if value is None else {"accuracy": value, "ece": 0.5} for value in row]
        wrong = [{"accuracy": 0.0, "ece": 1.0}] * len(row)
        overall = {"accuracy": 0.1, "ece": ece}
        evaluations += [
            {"task": stage, "batch": 1, "predictor": "point", "tasks": wrong, "overall": overall},
            {"task": stage, "batch": 2, "predictor": "point", "tasks": tasks, "overall": overall},
        ]
    finals = [{"accuracy": value} for value in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)]
    names = [str(k) for k in range(len(rows))]
    return {"task_names": names, "evaluations": evaluations, "final": {"point": {"per_task": finals[: len(rows)]}}}


ROWS = [
    [0.9, None, None, None, None, None, None],
    [0.8, 0.7, None, None, None, None, None],
    [0.7, 0.6, 0.5, None, None, None, None],
    [0.6, 0.5, 0.4, 0.8, None, None, None],
    [0.5, 0.5, 0.5, 0.5, 1.0, None, None],
    [0.4, 0.2, 0.3, 0.4, 0.5, 0.6, None],
    [0.4, None, 0.1, 0.2, 0.3, 0.4, 0.5],
]
ERRORS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]


def test_each_curve_is_what_it_says() -> None:
    course = course_of(result(ROWS, ERRORS), "point")
    assert course is not None
    assert course.newest.tolist() == [0.9, 0.7, 0.5, 0.8, 1.0, 0.6, 0.5]
    np.testing.assert_allclose(course.last_five[[4, 5, 6]], [0.6, (0.2 + 0.3 + 0.4 + 0.5 + 0.6) / 5, 0.3])
    # of the two tasks before the last five one was looked at, and stands for the other
    np.testing.assert_allclose(course.learnt[[0, 3, 6]], [0.9, 2.3 / 4, (2 * 0.4 + 0.1 + 0.2 + 0.3 + 0.4 + 0.5) / 7])
    assert course.ece.tolist() == ERRORS
    assert course.sampled  # the second task was left out after the last one
    assert last_tasks(result(ROWS, ERRORS), "point") == pytest.approx((0.3 + 0.4 + 0.5 + 0.6 + 0.8) / 5)
    assert last_tasks(result(ROWS, ERRORS), "point", 1) == 0.8


def test_an_error_over_tasks_not_yet_learnt_is_none_of_those_learnt() -> None:
    full = [[0.9, 0.1, 0.1], [0.8, 0.7, 0.1], [0.7, 0.6, 0.5]]
    course = course_of(result(full, [0.1, 0.2, 0.3]), "point")
    assert course is not None
    assert np.isnan(course.ece[:2]).all()
    assert course.ece[2] == 0.3
    np.testing.assert_allclose(course.learnt, [0.9, 0.75, 0.6])
    assert not course.sampled


def test_what_is_no_course_is_none() -> None:
    assert course_of(result(ROWS, ERRORS), "committee") is None
    assert course_of({**result(ROWS, ERRORS), "task_names": ["a"] * 6}, "point") is None
    assert course_of(result([[0.5, 0.5], [0.5, 0.5]], [0.1, 0.1]), "point") is None  # two tasks
    assert course_of({"task_names": "x", "evaluations": [None, 3]}, "point") is None


def test_seeds_are_averaged_and_precisions_geometrically() -> None:
    low, high = np.full((7, 1, 3), 10.0), np.full((7, 1, 3), 1000.0)
    courses = [course_of(result(ROWS, ERRORS), "point", each) for each in (low, high)]
    mean = mean_course([each for each in courses if each is not None])
    assert mean is not None
    assert mean.precision is not None
    np.testing.assert_allclose(mean.precision, 100.0)
    assert mean.newest.tolist() == [0.9, 0.7, 0.5, 0.8, 1.0, 0.6, 0.5]
    wrong = course_of(result(ROWS, ERRORS), "point", np.ones((3, 1, 3)))  # not one row a task
    assert wrong is not None
    assert wrong.precision is None


def test_the_report_shows_it_with_the_published_numbers_beside(run: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    summary = json.loads((copy / "summary.json").read_text())
    summary["paper"][0] |= {"name": "Theirs", "accuracy": 0.9134, "of": "last five of 200 tasks"}
    (copy / "summary.json").write_text(json.dumps(summary))
    root = parse(write_report([copy], tmp_path / "r.html").read_text())
    rows = {row[0].text: [cell.text for cell in row] for row in table(root, "course-table")}
    job = json.loads((copy / "results" / "sgd-seed0.json").read_text())
    finals = [
        np.mean([each["accuracy"] for each in json.loads(path.read_text())["final"]["point"]["per_task"][-5:]])
        for path in sorted((copy / "results").glob("sgd-*.json"))
    ]
    assert rows["sgd"][2] == f"{100 * np.mean(finals):.2f} ± {100 * np.std(finals, ddof=1):.2f} %"
    theirs = next(cells for name, cells in rows.items() if name.startswith("Theirs"))
    assert theirs[1:3] == ["–", "91.34 ± 0.65 %"]
    (section,) = [each for each in root.every("section") if each.attributes["id"] == "course"]
    assert "published numbers: last five of 200 tasks." in section.every("p")[0].text
    assert not any(row[0].text.startswith("Theirs") for row in table(root, "headline"))
    plots = [
        plot["data"]
        for plot in data(root)["plots"].values()
        if plot["layout"].get("xaxis", {}).get("title") == {"text": "tasks learnt"}
    ]
    assert len(plots) == 3  # no calibration error: all tasks were judged together, learnt or not
    ends = {each["task"]: each for each in job["evaluations"] if each["predictor"] == "point"}
    first = [ends[k]["tasks"][k]["accuracy"] for k in range(5)]
    other = json.loads((copy / "results" / "sgd-seed1.json").read_text())
    ends = {each["task"]: each for each in other["evaluations"] if each["predictor"] == "point"}
    mean = [(a + ends[k]["tasks"][k]["accuracy"]) / 2 for k, a in enumerate(first)]
    drawn = next(trace["y"] for trace in plots[0] if trace["name"] == "sgd")
    np.testing.assert_allclose(drawn, mean, atol=1e-4)
