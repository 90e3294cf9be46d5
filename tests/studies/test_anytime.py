"""Decisions before the signal is over: gathered and calibrated as the run was, and nothing judged twice."""

import json
import sys
from pathlib import Path
from typing import Any

import anytime
import pytest
import torch

from bayspike.cli import main
from bayspike.cli.models import load_data_of
from bayspike.predict.conformal import EarlyStopping
from bayspike.predict.temperature import Temperature
from bayspike.runs.models import Model, load_model

TINY = ["--hidden", "20", "--time", "10", "--train-examples", "300", "--test-examples", "100", "--members", "2",
        "--evaluations", "1", "--parallel", "1", "--threads", "1", "--seeds", "1", "--quiet"]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("anytime") / "run"
    words = ["run", "digits", "--method", "bayes", "sgd", "--held-back", "4", "--gather", "weighted", "--out", str(out)]
    assert main([*words, *TINY]) == 0
    return out


def called(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["anytime.py", *map(str, words)])
    anytime.main()


def test_the_temperature_is_that_of_the_run_and_all_test_examples_judge(run: Path) -> None:
    model = load_model(run, "bayes-seed0")
    found = anytime.judged(model, load_data_of(model, None, None, None))
    own = json.loads((run / "results" / "bayes-seed0.json").read_text("utf-8"))["gathered"]
    assert found["gather"] == "weighted"
    assert found["calibrated"]["on"] == "examples held back"
    assert found["calibrated"]["examples"] == own["temperature"]["examples"] == 40
    assert found["calibrated"]["temperature"] == pytest.approx(own["temperature"]["value"])
    assert (found["examples"], found["conformal"]["examples"]) == (100, 50)
    assert found["whole"]["accuracy"] == found["course"]["accuracy"][-1]


def test_without_examples_held_back_one_half_calibrates(run: Path) -> None:
    model = load_model(run, "sgd-seed0")
    data = anytime.load_data_of(model, None, None, None)
    found = anytime.judged(model, anytime.Dataset(data.name, data.train, data.test, data.classes, data.sample_shape))
    assert found["calibrated"]["on"] == "half of the test examples"
    assert (found["calibrated"]["examples"], found["examples"]) == (50, 50)


@pytest.mark.parametrize(
    ("about", "how"),
    [
        ({"experiment": "split-nmnist", "gather": "logits"}, "logits"),
        ({"experiment": "split-nmnist"}, "weighted"),
        ({"experiment": "dvs-gestures"}, "logits"),
    ],
)
def test_steps_are_gathered_as_the_run_did(about: dict[str, Any], how: str) -> None:
    model = Model(Path("x"), None, (), "bayes", about)  # type: ignore[arg-type]
    assert anytime.gather_of(model) == how


def test_the_level_is_the_lowest_that_costs_no_more_than_a_point() -> None:
    """Two steps, two classes: all are sure of the wrong class at first, of the right one at last."""
    said = torch.tensor([[[0.2, 0.8]] * 10, [[0.95, 0.05]] * 10])
    level = anytime.lowest_level(anytime.Answers(said, torch.zeros(10, dtype=torch.long)))
    assert level == min(each for each in anytime.LEVELS.tolist() if each > 0.8)


def test_sets_are_followed_from_checkpoint_to_checkpoint() -> None:
    """By hand: four signals, two classes, checkpoints at steps 1 and 3; a set holds what has at least 0.3."""
    sure, torn, wrong = [0.9, 0.1], [0.5, 0.5], [0.2, 0.8]
    said = torch.tensor([[sure, torn, wrong, torn], [torn] * 4, [sure, sure, sure, torn]])
    sets = EarlyStopping((1, 3), torch.full((2, 2), 0.7), 0.1, class_conditional=False)
    found = anytime.by_sets(sets, anytime.Answers(said, torch.zeros(4, dtype=torch.long)), Temperature(1.0, 1, 0, 0))
    assert found["course"]["step"] == [1, 3]
    assert found["course"]["stopped"] == [0.5, 1.0]  # the first and the third at once, the others at the end
    assert found["course"]["mean_stop"] == [1.0, 2.0]
    assert found["course"]["coverage"] == [0.75, 0.75]  # the third has lost the right class for good
    assert found["course"]["size"] == [1.5, 1.0]  # in the end the third has none: what it kept became unlikely
    assert found["accuracy"] == pytest.approx(0.75)
    assert found["ece"] == pytest.approx((0.1 + 0.1 + 0.8 + 0.5) / 4, abs=0.5)
    assert found["stopped_at"] == 2.0


def test_what_the_file_has_is_not_judged_again(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "anytime.jsonl"
    called(monkeypatch, run, "--out", out, "--pictures", tmp_path)
    first = out.read_text()
    assert [json.loads(line)["label"] for line in first.splitlines()] == ["bayes", "sgd"]
    assert (tmp_path / "anytime-digits.png").is_file()
    monkeypatch.setattr(anytime, "judged", lambda *_: pytest.fail("judged once more"))
    called(monkeypatch, run, "--out", out, "--pictures", tmp_path)
    assert out.read_text() == first


def test_nothing_to_do_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    for words, sentence in (
        (["--out", tmp_path / "none.jsonl"], "name the directories of runs"),
        ([tmp_path, "--out", tmp_path / "none.jsonl"], "no run with trained networks"),
    ):
        with pytest.raises(SystemExit):
            called(monkeypatch, *words)
        assert sentence in capsys.readouterr().err
