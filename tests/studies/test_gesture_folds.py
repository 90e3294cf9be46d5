"""The folds of gestures: nobody is judged by a temperature that he helped to choose."""

import json
from pathlib import Path
from typing import Any

import gesture_folds
import pytest
import torch

from bayspike.predict.temperature import fit_temperature


def fold(number: int, right: int, learner: str = "sgd") -> dict[str, Any]:
    """Ten recordings, all called the first of two gestures with 0.8; so many of them are."""
    labels = [0] * right + [1] * (10 - right)
    said = [[[0.8, 0.2]] * 10] * len(gesture_folds.FIFTHS)
    return {"fold": number, "learner": learner, "labels": labels, "said": {"mean": said[-1:], "logits": said}}


def every(*right: int) -> list[dict[str, Any]]:
    return [fold(k + 1, n, how) for k, n in enumerate(right) for how in ("bayes", "sgd")]


def test_a_fold_is_scaled_by_the_other_four() -> None:
    """By hand: of the other forty 36 are right, so that 0.8 becomes 0.9, however wrong the fold itself is."""
    found = gesture_folds.scaled_folds(every(2, 9, 9, 9, 9), "sgd", "mean")
    said, labels = found[1]
    assert said[-1, :, 0].tolist() == pytest.approx([0.9] * 10, abs=0.015)  # the prior of T holds a little
    assert labels.tolist() == [0, 0] + [1] * 8
    assert found[2][0][-1, 0, 0] == pytest.approx((2 + 27) / 40, abs=0.015)


def test_each_fifth_of_a_signal_has_a_temperature_of_its_own() -> None:
    """Half of the answers are right early, nine of ten at the end; both are said with 0.8."""
    lines = every(9, 9, 9, 9, 9)
    for line in lines:  # early, four of ten more are told to be the other gesture
        early = [[0.8, 0.2]] * 5 + [[0.2, 0.8]] * 4 + [[0.8, 0.2]]
        line["said"]["logits"] = [early, *line["said"]["logits"][1:]]
    apart = gesture_folds.scaled_folds(lines, "sgd", "logits", each_step=True)[1][0]
    alike = gesture_folds.scaled_folds(lines, "sgd", "logits")[1][0]
    assert 0.5 < apart[0].max() < 0.65  # the prior holds a little here too
    assert apart[-1].max() == pytest.approx(0.9, abs=0.015)
    assert torch.equal(apart[-1], alike[-1])
    assert alike[0].max() == alike[-1].max()
    row = gesture_folds.over_time(lines).splitlines()[2]
    assert row == "| bayes | none | 0.300 | 0.100 | 0.100 | 0.100 | 0.100 |"


def test_both_learners_are_told_and_their_difference_by_fold() -> None:
    lines = every(8, 8, 8, 8, 8)
    for line in lines:
        if line["learner"] == "bayes":
            line["labels"] = [0] * 9 + [1]
    told = gesture_folds.table(lines).splitlines()
    assert told[2].startswith("| bayes | mean | 50 | 90.0 | 0.100 | ")
    assert told[3].startswith("| sgd | mean | 50 | 80.0 | 0.000 | 0.500 | 0.000 | ")
    assert told[7].startswith("Bayes − SGD, by fold, scaled, mean: accuracy **+10.00 [+10.00, +10.00]** points, ECE ")


def test_what_the_file_has_is_learnt_again_only_with_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, learnt = tmp_path / "folds.jsonl", []
    kept = {**fold(1, 8), "settings": gesture_folds.settings(1, "sgd")}
    of_before = {**fold(2, 1), "settings": {**gesture_folds.settings(2, "sgd"), "rule": {"lr": 1.0}}}
    out.write_text("".join(json.dumps(line) + "\n" for line in (kept, of_before)))

    def of_fold(number: int, how: str) -> dict[str, Any]:
        learnt.append((number, how))
        return {key: value for key, value in fold(number, 8).items() if key in ("labels", "said")}

    monkeypatch.setattr(gesture_folds, "OUT", out)
    monkeypatch.setattr(gesture_folds, "of_fold", of_fold)
    for _ in range(2):
        monkeypatch.setattr("sys.argv", ["gesture_folds.py"])
        gesture_folds.main()
    assert len(learnt) == 14
    assert (1, "sgd") not in learnt
    assert (2, "sgd") in learnt
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 15
    assert kept in lines
    assert of_before not in lines
    expected = fit_temperature(torch.tensor([[0.8, 0.2]] * 40), torch.tensor(([0] * 8 + [1] * 2) * 4)).value
    assert expected == pytest.approx(1.0, abs=1e-3)
    said, _ = gesture_folds.scaled_folds(lines, "bayes", "logits")[5]
    assert said[-1, 0, 0] == pytest.approx(0.8, abs=1e-3)
