"""Runs on event recordings, tiny: two ways to gather beside each other, and a temperature from what was held back."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bayspike.cli import main
from bayspike.errors import UserError
from bayspike.experiments.registry import experiment
from bayspike.learner import Learner
from bayspike.runs.plan.resolve import Changes, resolve

TINY = ["--hidden", "12", "--batch", "16", "--epochs", "1", "--members", "2", "--parallel", "1", "--threads", "1",
        "--seeds", "1", "--quiet"]  # fmt: skip


@pytest.fixture(scope="module")
def gestures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every gesture of four users, in a zip; each moves in a place of its own."""
    root = tmp_path_factory.mktemp("gestures")
    (root / "dvs_gesture").mkdir()
    random = np.random.default_rng(0)
    with zipfile.ZipFile(root / "dvs_gesture" / "some.zip", "w", zipfile.ZIP_LZMA) as archive:
        for user in (1, 2, 15, 16):
            for label in range(11):
                t = np.sort(random.integers(0, 1500, 500))
                x, y = random.integers(11 * label, 11 * label + 12, 500), random.integers(0, 128, 500)
                stream = io.BytesIO()
                np.save(stream, np.stack([x, y, np.ones(500), t], 1).astype(np.int16))
                archive.writestr(f"ibmGestureTrain/user{user:02}_lab/{label}.npy", stream.getvalue())
    return root


@pytest.fixture(scope="module")
def run(gestures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("split-gestures") / "run"
    command = ["run", "split-gestures", "--preset", "laptop", "--method", "bayes", "sgd", "--data", str(gestures)]
    command += ["--options", "bin_ms=100", "test_time=15", "held_back_users=1", "--time", "5", "--gather", "weighted"]
    command += ["--threshold", "0.02"]  # few events: else nothing fires
    assert main([*command, *TINY, "--out", str(out)]) == 0
    return out


def read(path: Path) -> dict:
    return json.loads(path.read_text("utf-8"))


def test_both_ways_to_gather_are_judged(run: Path) -> None:
    for job, first in (("bayes-seed0", "committee"), ("sgd-seed0", "point")):
        result = read(run / "results" / f"{job}.json")
        beside = f"{first}-weighted"
        assert result["headline_predictor"] == first
        assert result["predictors"][-1] == beside
        assert result["gathered"]["predictor"] == beside
        assert result["gathered"]["temperature"]["examples"] == result["held_back_examples"] == 11
        assert result["memory_bytes"]["held_back"] == 11 * 15 * 128
        for name in result["predictors"]:
            over_time = result["final"][name]["over_time"]
            assert len(over_time["ece"]) == len(over_time["accuracy"]) == 15
            assert over_time["accuracy"][-1] == pytest.approx(result["final"][name]["overall"]["accuracy"])
            assert over_time["ece"][-1] == pytest.approx(result["final"][name]["overall"]["ece"], abs=1e-9)
    summary = read(run / "summary.json")
    assert "committee-weighted" in summary["methods"]["bayes"]["predictors"]
    assert summary["methods"]["bayes"]["predictors"]["committee-weighted"]["worst_ece"]["mean"] >= 0
    about = read(run / "config.json")["dataset"]["about"]
    assert about == "DVS-Gesture, 44 recordings of users 1–2, 15–16, polarity merged"
    assert "polarity merged" in (run / "report.html").read_text("utf-8")


def test_the_answers_of_every_tasks_end_are_calibrated(run: Path) -> None:
    """Judged are the tasks learnt so far, with a temperature of their classes; so the last one is the final one."""
    result = read(run / "results" / "bayes-seed0.json")
    mine = [each for each in result["evaluations"] if each["predictor"] == "committee-weighted" and each["batch"]]
    ends = [last for last, after in zip(mine, [*mine[1:], {"task": 5}], strict=True) if last["task"] != after["task"]]
    assert [sum(scores is not None for scores in each["tasks"]) for each in ends] == [1, 2, 3, 4, 5]
    plain = [each for each in result["evaluations"] if each["predictor"] == "committee" and each["batch"]]
    assert [each["overall"]["ece"] for each in mine] != [each["overall"]["ece"] for each in plain]


def test_a_runs_learner_is_calibrated_by_recordings_longer_than_what_it_learns_from(run: Path, tmp_path: Path) -> None:
    """Pieces of five steps are learnt, eleven whole recordings of fifteen were held back: the run's own temperature."""
    learner = Learner.load(run / "models" / "bayes-seed0.bayspike")
    assert [part.time for part in learner.state.held_back] == [15]
    stored = read(run / "results" / "bayes-seed0.json")["gathered"]["temperature"]
    for each in (learner, Learner.load(learner.save(tmp_path / "again.bayspike"))):
        calibration = each.state.calibration
        assert calibration is not None
        assert calibration.temperature is not None
        assert calibration.temperature.value == pytest.approx(stored["value"])
        assert calibration.examples == stored["examples"] == 11


def test_evaluate_and_predict_gather_as_the_run_did(
    run: Path, gestures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run), "--temperature", "--json", "--data", str(gestures)]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]
    assert {"committee", "committee-weighted"} <= set(scores)
    stored = read(run / "results" / "bayes-seed0.json")
    assert scores["committee-weighted"]["temperature"] == pytest.approx(stored["gathered"]["temperature"]["value"])
    assert scores["committee-weighted"]["scaled"]["ece"] == pytest.approx(
        stored["final"]["committee-weighted"]["overall"]["ece"]
    )
    with zipfile.ZipFile(gestures / "dvs_gesture" / "some.zip") as archive:
        (tmp_path / "3.npy").write_bytes(archive.read("ibmGestureTrain/user16_lab/3.npy"))
    lines = {}
    for how in ("mean", "weighted", ""):
        more = ["--gather", how] if how else []
        assert main(["predict", str(run), str(tmp_path / "3.npy"), "--json", "--data", str(gestures), *more]) == 0
        lines[how] = [json.loads(line)["probabilities"] for line in capsys.readouterr().out.splitlines()]
    assert lines["weighted"] == lines[""] != lines["mean"]
    assert main(["predict", str(run), str(tmp_path / "3.npy"), "--temperature", "--data", str(gestures)]) == 0
    assert "Calibrated on 11 examples held back" in capsys.readouterr().out


def test_the_stand_in_has_presets_of_its_own() -> None:
    gestures = experiment("dvs-gestures")
    real, simulated = (resolve(gestures, "laptop", Changes(simulated=each)) for each in (False, True))
    assert real.data.name == "dvs_gesture"
    assert simulated.data.name == "gestures_simulated"
    assert [each.method for each in simulated.methods] == ["sgd", "bayes", "ste", "bayes-binary"]
    assert simulated.methods[1].rule["lr"] == 100.0
    assert real.methods[0].network != simulated.methods[1].network


def test_a_share_held_back_is_not_learnt(data_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["run", "split-nmnist", "--data", str(data_root), "--held-back", "1", "--gather", "logits"]
    assert main([*command, *TINY, "--time", "8", "--method", "sgd", "--out", str(out)]) == 0
    facts = read(out / "config.json")["dataset"]
    assert (facts["train"], facts["test"], facts["held_back"]) == (50, 20, 10)
    assert read(out / "results" / "sgd-seed0.json")["gathered"]["temperature"]["examples"] == 10
    learner = Learner.load(out / "models" / "sgd-seed0.bayspike")
    assert learner.state.recipe.gather == "logits"
    assert learner.state.calibration.temperature.examples == 10
    with pytest.raises(UserError, match="gather must be one of"):
        resolve(experiment("digits"), "demo", Changes(judging={"gather": "loudly"}))
