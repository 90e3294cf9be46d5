"""Permuted, rotated and drifting MNIST end to end, tiny: many tasks, nothing stored, every one judged in the end."""

import json
from pathlib import Path

import numpy as np
import pytest

from bayspike.cli import main
from bayspike.experiments.permuted_mnist import EXPERIMENT

TINY = [
    "--hidden",
    "8",
    "--time",
    "4",
    "--batch",
    "16",
    "--members",
    "2",
    "--threads",
    "1",
    "--parallel",
    "1",
    "--quiet",
]


@pytest.mark.parametrize(("name", "tasks"), [("permuted-mnist", 5), ("rotated-mnist", 5), ("drifting-mnist", 20)])
def test_it_runs_and_keeps_its_books(name: str, tasks: int, tmp_path: Path) -> None:
    out = tmp_path / "run"
    examples = ["--train-examples", "80", "--test-examples", "20"]
    methods = ["--method", "bayes-stream", "finetune"]
    assert main(["run", name, "--preset", "demo", "--out", str(out), *TINY, *methods, *examples]) == 0
    result = json.loads((out / "results" / "bayes-stream-seed0.json").read_text("utf-8"))
    assert len(result["task_names"]) == tasks
    assert result["coreset_examples"] == result["replayed"] == 0
    assert result["presentations"] == (80 if name == "drifting-mnist" else 80 * tasks)
    ends = [each for each in result["evaluations"] if each["predictor"] == "committee" and each["batch"]]
    judged = [sum(scores is not None for scores in each["tasks"]) for each in ends]
    assert judged == [min(k + 1, 10) for k in range(tasks)]
    assert len(result["final"]["committee"]["per_task"]) == tasks
    assert result["continual"]["committee"]["forward_transfer"] is None
    assert result["ood"]["committee"]["auroc"]["mutual_information"] is not None  # shuffled digits
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    if tasks > 5:
        last = [each["accuracy"] for each in result["final"]["committee"]["per_task"][-5:]]
        assert summary["methods"]["bayes-stream"]["last_five"]["mean"] == pytest.approx(np.mean(last))
    index = [each["name"] for each in json.loads((out / "figures" / "index.json").read_text("utf-8"))]
    assert index[0] == "course"
    assert '<section id="course"' in (out / "report.html").read_text("utf-8")


def test_the_published_numbers_are_of_the_last_five_tasks() -> None:
    assert {each.of for each in EXPERIMENT.published} == {"last five of 200 tasks"}
    assert all("ordinary network" in each.name for each in EXPERIMENT.published)
