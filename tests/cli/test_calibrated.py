"""Sets, temperatures and packed posteriors as a user of the command line meets them."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

from bayspike.cli import main
from bayspike.cli.models import load_data_of
from bayspike.cli.predict import Telling
from bayspike.predict.by_name import make_predictor
from bayspike.predict.calibration import Calibration
from bayspike.predict.conformal import EarlyStopping
from bayspike.predict.predictors import predict_samples
from bayspike.predict.watching import Decision
from bayspike.runs.models import load_model
from bayspike.runs.outcome.examination import committee_generator

OLD = Path(__file__).parents[1] / "runs" / "fixtures" / "run-0.1"  # of digits without foreign inputs


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def held_out(run: Path, examples: int) -> tuple[np.ndarray, np.ndarray]:
    """What the run's committee makes of its held-out examples, `(time, n, classes)`, and their labels."""
    model = load_model(run)
    samples = load_data_of(model, None, None, examples).test
    committee = make_predictor("committee", model.network, model.posteriors, 2, committee_generator(0))
    done = predict_samples(committee, samples, torch.Generator().manual_seed(0))
    return done.probabilities.double().numpy(), samples.labels.numpy()


def test_predict_shows_the_sets_of_the_definition(run: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["predict", str(run), str(picture), "--coverage", "0.8", "--every", "3", "--held-out", "100", "--json"]
    assert main(command) == 0
    told = lines(capsys)
    assert [line["time"] for line in told] == [3, 6, 8]  # every third, and the last
    p, labels = held_out(run, 100)
    inside, unsure, single = np.ones(10, dtype=bool), np.zeros(10, dtype=bool), None
    for line in told:
        strangeness = np.sort(1 - p[line["time"] - 1, np.arange(100), labels])
        threshold = strangeness[math.ceil(101 * (1 - 0.2 / 3)) - 1]
        own = 1 - np.array(line["probabilities"])
        inside &= own <= threshold
        unsure |= np.abs(own - threshold) <= 1e-6  # probabilities are printed with six digits
        shown = np.isin(np.arange(10), [int(k) for k in line["set"]])
        assert shown[~unsure].tolist() == inside[~unsure].tolist()
        assert unsure.sum() <= 3
        single = single or (line["time"] if shown.sum() == 1 else None)
        assert line["single_since"] == single
        assert line["empty_since"] is None or not line["set"]
        assert (line["coverage"], line["held_out"]) == (0.8, 100)


def test_predict_says_what_it_promises_and_on_what(
    run: Path, picture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--coverage", "0.5", "--temperature", "--foreign", "--held-out", "60"]
    assert main(["predict", str(run), str(picture), *options]) == 0
    printed = capsys.readouterr().out
    assert "Calibrated on 60 test examples of digits, which took no part in training." in printed
    assert "With probability 0.5 the sets of all 7 time-steps from 2 to 8 hold the right class" in printed
    assert "Probabilities scaled by a temperature of" in printed
    assert "5% of own inputs look foreign" in printed
    assert printed.count("  set ") == 8
    assert main(["predict", str(run), str(picture), *options, "--json"]) == 0
    captured = capsys.readouterr()
    assert "Calibrated on 60" in captured.err
    final = [json.loads(line) for line in captured.out.splitlines()][-1]
    became = "the set has become a single class" in printed
    assert became == (final["single_since"] is not None)
    assert ("the set has become empty" in printed) == (final["empty_since"] is not None)


def test_a_set_becomes_single_and_then_empty(capsys: pytest.CaptureFixture[str]) -> None:
    """Classes are kept whose probability is at least 0.3, then 0.5, then 0.9."""
    rule = EarlyStopping((1, 2, 4), torch.tensor([[0.7] * 3, [0.5] * 3, [0.1] * 3], dtype=torch.float64), 0.1, False)
    told = Telling("wave.bin", ["up", "down", "still"], Calibration(99, sets=rule), as_json=False)
    for time, p in enumerate([[0.4, 0.4, 0.2], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1], [1.0, 0.0, 0.0]], 1):
        probabilities = torch.tensor([p])
        number, flag = torch.zeros(1), torch.zeros(1, dtype=torch.bool)
        said = probabilities.argmax(-1), probabilities.amax(-1)
        decision = Decision(*said, number, flag, flag, time, probabilities, number)
        told.see(decision, tell=time in (1, 2))
    told.end(decision)
    found = [line.removeprefix("wave.bin  ") for line in capsys.readouterr().out.splitlines()]
    assert [line[:6].strip() for line in found] == ["t=1", "t=2", "t=2: t", "t=4", "t=4: t", "t=5"]
    assert [line.partition("  set ")[2] for line in found if "  set " in line] == ["{up, down}", "{up}", "{}", "{}"]
    assert found[2] == "t=2: the set has become a single class, up."
    assert found[4] == "t=4: the set has become empty: no class is plausible, the input looks foreign."


def test_predict_scales_by_the_best_temperature(run: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(run), str(picture), "--json"]) == 0
    plain = lines(capsys)[-1]
    assert main(["predict", str(run), str(picture), "--json", "--temperature", "--held-out", "100"]) == 0
    scaled = lines(capsys)[-1]
    temperature = scaled["temperature"]
    before, after = np.array(plain["probabilities"]), np.array(scaled["probabilities"])
    large = before > 0.01  # the others are rounded too much for their logarithm
    ratios = np.log(after[large] / after.max())
    assert ratios == pytest.approx(np.log(before[large] / before.max()) / temperature, abs=1e-4)
    assert scaled["confidence"] == pytest.approx(max(scaled["probabilities"]), abs=1e-5)
    assert scaled["label"] == plain["label"]
    p, labels = held_out(run, 100)

    def loss(t: float) -> float:
        power = p[-1] ** (1 / t)
        improbable = 0.5 * (np.log(t) / np.log(2)) ** 2  # by the prior of T
        return len(labels) * log_loss(labels, power / power.sum(-1, keepdims=True), labels=range(10)) + improbable

    assert loss(temperature) <= min(loss(temperature * 1.02), loss(temperature / 1.02))


def test_evaluate_judges_on_the_half_that_did_not_calibrate(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(run), "--coverage", "0.8", "--temperature", "--test-examples", "200", "--predictor"]
    assert main([*command, "committee", "committee-packed", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["calibrated_on"], found["coverage"]) == (100, 0.8)
    for scores in found["scores"].values():
        assert scores["examples"] == scores["scaled"]["examples"] == 100
        assert scores["scaled"]["accuracy"] == scores["accuracy"]  # scaling keeps every decision
        assert scores["temperature"] > 0
        sets = scores["sets"]
        assert sets["coverage"] >= 0.7  # 0.8 promised, ± 0.04 of chance
        assert 1 <= sets["stopped_at"] <= 8
        assert 0 <= sets["size"] <= 10
        assert 0 <= sets["single"] <= 1
    assert main([*command, "committee"]) == 0
    printed = capsys.readouterr().out
    assert "100 test examples calibrated; all figures are of the other 100" in printed
    assert "committee, scaled" in printed
    assert f"{found['scores']['committee']['sets']['coverage']:.2%}" in printed
    assert f"{found['scores']['committee']['sets']['stopped_at']:.1f}" in printed


def test_a_packed_posterior_predicts_as_the_packed_committee_does(
    run: Path, picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = tmp_path / "small"
    assert main(["export", str(run), "--to", "packed", "--out", str(small)]) == 0
    model = load_model(run)
    synapses = sum(layer.neurons * layer.pre for layer in model.network.layers)
    assert f"{2 * synapses:,} bytes, two a synapse" in capsys.readouterr().out
    assert main(["evaluate", str(run), "--predictor", "committee-packed", "--json"]) == 0
    inside = json.loads(capsys.readouterr().out)["scores"]["committee-packed"]
    assert main(["evaluate", str(small), "--predictor", "committee", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["committee"] == inside
    assert main(["predict", str(small), str(picture), "--json"]) == 0
    shipped = lines(capsys)[-1]["probabilities"]
    assert main(["predict", str(run), str(picture), "--json"]) == 0
    assert lines(capsys)[-1]["probabilities"] == pytest.approx(shipped, abs=0.1)
    assert main(["export", str(run), "--to", "packed", "--out", str(small)]) == 2
    assert main(["export", str(run), "--to", "packed", "--out", str(small), "--force"]) == 0


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["predict", "RUN", "PICTURE", "--coverage", "1"], "--coverage must lie in (0, 1), but is 1.0"),
        (["predict", "RUN", "PICTURE", "--coverage", "90"], "--coverage must lie in (0, 1), but is 90.0"),
        (
            ["predict", "RUN", "PICTURE", "--coverage", "0.99"],
            "500 held-out examples cannot promise a",
        ),
        (["predict", "RUN", "PICTURE", "--every", "0"], "--every must be at least 1, but is 0"),
        (["predict", "RUN", "PICTURE", "--temperature", "--held-out", "0"], "--held-out must be at least 1, but is 0"),
        (["evaluate", "RUN", "--coverage", "0"], "--coverage must lie in (0, 1), but is 0.0"),
        (["evaluate", "RUN", "--coverage", "0.95"], "10 held-out examples cannot promise a coverage of 0.95"),
        (["evaluate", "OLD", "--foreign"], "digits comes with no foreign inputs"),
        (
            ["evaluate", "RUN", "--job", "sgd-seed0", "--predictor", "committee-packed"],
            "sgd is one network and has no committee-packed",
        ),
        (["export", "RUN", "--job", "sgd-seed0", "--to", "packed", "--out", "OUT"], "only Gaussian posteriors"),
    ],
)
def test_nonsense_is_one_sentence_and_code_2(
    command: list[str], sentence: str, run: Path, picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"RUN": str(run), "OLD": str(OLD), "PICTURE": str(picture), "OUT": str(tmp_path / "out")}
    assert main([places.get(word, word) for word in command]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_silence_is_cut_where_sets_are_narrowed() -> None:
    narrowing: Any = SimpleNamespace(checkpoints=(3, 6, 9))
    watched = Telling("-", ["a", "b"], Calibration(0, sets=narrowing), as_json=False)
    assert list(watched.cut(2, 10)) == [1, 3, 3, 3]
    assert list(watched.cut(9, 10)) == [10]
    assert list(Telling("-", ["a", "b"], Calibration(0), as_json=False).cut(2, 10)) == [10]
