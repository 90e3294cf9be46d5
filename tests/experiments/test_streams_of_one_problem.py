"""Permuted, rotated and drifting MNIST end to end, tiny: many tasks, nothing stored, every one judged in the end."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from bayspike.cli import main
from bayspike.continual.tasks import Remapped, Task
from bayspike.data.base import Dataset
from bayspike.data.samples import SpikeSamples
from bayspike.experiments.permuted_mnist import EXPERIMENT
from bayspike.predict.predictors import Point
from bayspike.runs.outcome.examination import held_back_temperature
from bayspike.spiking.network import NetworkConfig, build

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


def test_as_many_orders_as_one_asks_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Examples held back fit a temperature, also where every task re-wires its inputs."""
    out = tmp_path / "run"
    examples = ["--train-examples", "80", "--test-examples", "20", "--held-back", "2", "--gather", "logits"]
    asked = ["run", "permuted-mnist", "--preset", "demo", "--method", "bayes-stream", *TINY, *examples]
    assert main([*asked, "--tasks", "3", "--out", str(out)]) == 0
    result = json.loads((out / "results" / "bayes-stream-seed0.json").read_text("utf-8"))
    assert len(result["task_names"]) == 3
    assert result["gathered"]["temperature"]["examples"] == 20
    assert "committee-logits" in result["final"]
    ends = [each for each in result["evaluations"] if each["predictor"] == "committee-logits" and each["batch"]]
    assert [sum(scores is not None for scores in each["tasks"]) for each in ends] == [1, 2, 3]
    assert len(result["accuracy_matrix"]["committee-logits"]) == 3
    capsys.readouterr()
    assert main(["evaluate", str(out), "--json", "--predictor", "committee", "--gather", "mean"]) == 0
    said, told = json.loads(capsys.readouterr().out), result["final"]["committee"]["overall"]
    assert said["scores"]["committee"]["examples"] == 60  # of every order its own
    assert said["scores"]["committee"]["accuracy"] == pytest.approx(told["accuracy"])
    assert main([*asked, "--tasks", "0,1;2", "--out", str(tmp_path / "other")]) == 2
    assert "--tasks of permuted-mnist is how many tasks there are to be" in capsys.readouterr().err


def test_held_back_examples_are_seen_as_the_newest_task_sees_them() -> None:
    """The temperature of a re-wired task is that of images whose pixels were moved beforehand."""
    network = build(NetworkConfig(12, (6,), 3, synapse_decay=0.0, membrane_decay=0.5, readout_scale=8.0))
    generator = torch.Generator().manual_seed(0)
    point = Point(network, [torch.randn(6, 12, generator=generator)])
    spikes = (torch.rand(9, 40, 12, generator=generator) < 0.4).to(torch.uint8)
    labels, source = torch.arange(40) % 3, torch.randperm(12, generator=generator)
    kept, moved = (
        SpikeSamples(torch.from_numpy(np.packbits(each.transpose(0, 1).numpy(), axis=2)), labels, 9, 12)
        for each in (spikes, spikes[:, :, source])
    )
    task = Task("newest", Remapped(kept, source), Remapped(kept, source))
    known = Dataset("made", kept, kept, ("a", "b", "c"), (12,), held_back=kept)
    found = held_back_temperature(point, known, 0, task)
    expected = held_back_temperature(point, replace(known, held_back=moved), 0)
    plain = held_back_temperature(point, known, 0)
    assert found is not None
    assert expected is not None
    assert plain is not None
    assert found.value == expected.value != plain.value
    some = replace(known, held_back=kept.subset((labels != 1).nonzero().flatten()))  # as if none of one class was
    assert held_back_temperature(point, some, 0, known=torch.tensor([1])) is None
    of_two = held_back_temperature(point, known, 0, known=torch.tensor([0, 2]))
    expected = held_back_temperature(point, some, 0)
    assert of_two is not None
    assert expected is not None
    assert (of_two.value, of_two.examples) == (expected.value, expected.examples) != (plain.value, plain.examples)
