"""Every experiment end to end, tiny: the files are all there, and their numbers agree with each other."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from bayspike.cli import main

TINY = [
    "--hidden",
    "16",
    "--batch",
    "16",
    "--epochs",
    "1",
    "--members",
    "3",
    "--parallel",
    "1",
    "--threads",
    "1",
    "--quiet",
]
EXPERIMENTS = {
    "two-moons": ["--time", "12", "--method", "sgd", "bayes", "bayes-binary", "--set",
                  "bayes.temperature=[1e-8,1e-4]", "bayes-binary.temperature=1e-3"],
    "dvs-gestures": ["--simulated", "--time", "8", "--train-examples", "44", "--test-examples", "22",
                     "--foreign-examples", "11"],
    "split-mnist": ["--time", "8"],
    "mnist-dvs": ["--simulated", "--time", "8", "--train-examples", "60", "--test-examples", "20"],
    "split-nmnist": ["--time", "8"],
    "digits": ["--time", "8", "--train-examples", "80", "--test-examples", "40", "--method", "bayes", "sgd", "finetune",
               "coreset-only", "joint", "--seeds", "2"],
}  # fmt: skip


@pytest.fixture(scope="module", params=EXPERIMENTS)
def run(request: pytest.FixtureRequest, data_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp(request.param) / "run"
    command = ["run", request.param, "--out", str(out), "--data", str(data_root), *TINY, *EXPERIMENTS[request.param]]
    assert main(command) == 0
    return out


def read(path: Path) -> dict:
    return json.loads(path.read_text("utf-8"), parse_constant=lambda name: pytest.fail(f"{name} in {path}"))


def test_all_files_are_there(run: Path) -> None:
    for name in ("config.json", "environment.json", "metrics.jsonl", "summary.json", "report.html"):
        assert (run / name).stat().st_size > 0, name
    for figure in read(run / "figures" / "index.json"):
        assert figure["caption"]
        assert {Path(file).suffix for file in figure["files"]} == {".png", ".svg", ".csv"}
        assert all((run / "figures" / file).stat().st_size > 0 for file in figure["files"])
    config = read(run / "config.json")
    assert config["reduced"]
    command = read(run / "environment.json")["command"]
    assert command[:3] == ["bayspike", "run", config["experiment"]]
    assert str(run) in command
    if config["experiment"] in ("digits", "split-mnist"):
        counts = "{train:,} training and {test:,} test images".format_map(config["dataset"])
        assert config["reduced"][0] == f"{counts} instead of 60,000 and 10,000."
    assert config["simulated"] == ("simulated" in config["dataset"]["name"])
    for method in config["methods"]:
        for seed in config["seeds"]:
            folder = next((run / "checkpoints").glob(f"{method['method']}*-seed{seed}"))
            assert (folder / "best.safetensors").is_file()


def test_published_numbers_know_their_data(run: Path) -> None:
    summary, config = read(run / "summary.json"), read(run / "config.json")
    wanted = {"digits": ("mnist", [60_000, 10_000], False), "split-mnist": ("mnist", [60_000, 10_000], True),
              "dvs-gestures": ("dvs_gesture", None, False)}.get(config["experiment"])  # fmt: skip
    data = summary["paper_data"]
    assert (None if data is None else (data["name"], data["images"], data["same"])) == wanted


def test_stored_spikes_are_of_every_class_in_the_subset(run: Path) -> None:
    for path in (run / "results").glob("*.npz"):
        arrays = np.load(path)
        labels = arrays["labels"][arrays["subset"]]
        shown = arrays["frames_of"]
        assert len(arrays["frames"]) == len(shown) <= 36
        assert set(labels[shown]) == set(labels)
        counts = np.bincount(labels)
        assert (np.bincount(labels[shown]) == np.minimum(counts, 3)).all()
        bayesian = "bayes" in path.name
        assert ("deviations/0_counts" in arrays) == bayesian
        if bayesian:
            assert arrays["deviations/0_counts"].sum() == arrays["weights/0_counts"].sum()


def test_summary_holds_what_is_promised(run: Path) -> None:
    summary, config = read(run / "summary.json"), read(run / "config.json")
    assert list(summary["methods"]) == [method["label"] for method in config["methods"]]
    for scores in summary["methods"].values():
        for measure in ("accuracy", "ece", "nll", "brier"):
            assert set(scores[measure]) == {"mean", "std", "seeds", "per_task"}
            assert (scores[measure]["std"] is None) == (len(config["seeds"]) == 1)
        for key in ("predictor", "parameters", "memory_bytes", "coreset_examples", "presentations", "seconds", "seeds"):
            assert scores[key] is not None, key
        assert (scores["ood_auroc"] is None) == (config["dataset"]["foreign"] == 0)
    assert summary["complete"]
    assert summary["protocol"]["dataset"]["train"] > 0


def test_scores_follow_from_the_stored_probabilities(run: Path) -> None:
    """Accuracy, Brier score and NLL recomputed by numpy from the arrays, for every job and predictor."""
    found = list((run / "results").glob("*.json"))
    assert found
    for file in found:
        result = read(file)
        with np.load(file.with_suffix(".npz"), allow_pickle=False) as arrays:
            labels, task, subset = arrays["labels"], arrays["task"], arrays["subset"]
            assert set(task) == set(range(len(result["task_names"])))
            for name in result["predictors"]:
                final = arrays[f"final/{name}"].astype(np.float64)
                right = final.argmax(1) == labels
                scores = result["final"][name]
                assert scores["overall"]["accuracy"] == pytest.approx(right.mean())
                for k, each in enumerate(scores["per_task"]):
                    assert each["accuracy"] == pytest.approx(right[task == k].mean())
                chosen = final[np.arange(len(labels)), labels]
                assert scores["overall"]["nll"] == pytest.approx(-np.log(chosen.clip(1e-12)).mean(), rel=1e-5)
                one_hot = np.eye(final.shape[1])[labels]
                assert scores["overall"]["brier"] == pytest.approx(((final - one_hot) ** 2).sum(1).mean(), rel=1e-5)
                over_time = arrays[f"probabilities/{name}"]
                np.testing.assert_allclose(over_time[-1], final[subset], rtol=1e-6)
                if f"members/{name}" in arrays:
                    np.testing.assert_allclose(arrays[f"members/{name}"].mean(0), final[subset], atol=1e-5)


def test_books_are_kept(run: Path) -> None:
    """Parameters, presentations and stored examples, counted by hand from the configuration."""
    config = read(run / "config.json")
    inputs, classes = config["dataset"]["inputs"], len(config["dataset"]["classes"])
    for method in config["methods"]:
        result = read(run / "results" / f"{slug(method['label'])}-seed0.json")
        fan_in, parameters = inputs, 0
        for neurons in method["network"]["hidden"]:
            parameters, fan_in = parameters + neurons * fan_in, neurons
        assert result["parameters"] == parameters
        assert result["memory_bytes"]["total"] == result["memory_bytes"]["rule"] + result["memory_bytes"]["coresets"]
        floats = {"bayes": 4, "bayes-binary": 2, "ewc": 3, "ewc-binary": 3}.get(method["method"], 1)
        assert result["memory_bytes"]["rule"] == 4 * floats * parameters
        assert result["presentations"] >= result["replayed"]
        if method["training"]["replay"] == "none" and method["method"] != "coreset-only":
            assert result["coreset_examples"] == 0
            assert result["presentations"] == config["dataset"]["train"] * method["training"]["epochs"]
        if config["data"]["name"] == "digits" and method["method"] in ("bayes", "sgd"):
            # ten classes of eight: 7.5 % is less than one, so one of each is stored; tasks of 16 examples in all
            assert result["coreset_examples"] == 10
            assert result["presentations"] == 16 * (1 + 2 + 3 + 4 + 5)
        assert len(result["rates"]) == len(method["network"]["hidden"])
        assert 0 <= result["energy"]["joules"] < math.inf
        assert classes == len(result["classes"])


def slug(label: str) -> str:
    return label.replace(" ", "_").replace("ρ", "rho").replace("=", "_")


def test_metrics_tell_every_batch_and_evaluation(run: Path) -> None:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    for file in (run / "results").glob("*.json"):
        result = read(file)
        mine = [line for line in lines if line["job"] == result["job"]]
        told = [
            {k: v for k, v in line.items() if k not in ("kind", "job")} for line in mine if line["kind"] == "evaluation"
        ]
        assert told == result["evaluations"]
        batches = [line for line in mine if line["kind"] == "batch"]
        assert batches
        assert all(0 <= line["replay_share"] < 1 and line["batch"] <= line["batches"] for line in batches)
