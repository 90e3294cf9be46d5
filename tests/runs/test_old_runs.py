"""A run directory that version 0.1.0 wrote is still read: its results, its report, its trained network."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bayspike.cli import main
from bayspike.experiments.registry import experiment
from bayspike.predict.predictors import Point
from bayspike.runs.checkpoints import load, steps
from bayspike.runs.directory import RunDirectory
from bayspike.runs.models import load_model
from bayspike.runs.outcome.summary import read_results, summarise
from bayspike.runs.plan.config import config_from_json
from bayspike.storage.files import read_json

OLD = Path(__file__).parent / "fixtures" / "run-0.1"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(Path(shutil.copytree(OLD, tmp_path / "run")))


def test_its_summary_comes_out_the_same(run: RunDirectory) -> None:
    config = config_from_json(read_json(run.config), str(run.config))
    made = summarise(experiment("digits"), config, read_results(run, config))
    made = json.loads(json.dumps(made))
    for name, scores in read_json(run.summary)["methods"].items():
        for key, value in scores.items():
            assert _holds(made["methods"][name][key], value), key


def _holds(made: Any, old: Any) -> bool:
    """All that was there is there; later versions may say more."""
    if isinstance(old, dict):
        return isinstance(made, dict) and all(key in made and _holds(made[key], value) for key, value in old.items())
    return bool(made == old)


def test_its_network_is_the_one_stored(run: RunDirectory) -> None:
    model = load_model(run.path)
    stored = load(steps(run.checkpoints("bayes-seed0"))[-1]).tensors["layer.0.mean"]
    assert torch.equal(Point.of(model.network, model.posteriors).weights[0], stored)
    assert model.classes == [str(digit) for digit in range(10)]


def test_it_can_be_evaluated_and_its_scores_follow_from_its_arrays(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run.path), "--predictor", "mean", "--test-examples", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scores"]["mean"]["examples"] == 20
    with np.load(run.arrays("bayes-seed0"), allow_pickle=False) as arrays:
        right = (arrays["final/mean"].argmax(1) == arrays["labels"]).mean()
    assert read_json(run.result("bayes-seed0"))["final"]["mean"]["overall"]["accuracy"] == pytest.approx(right)


def test_its_report_is_made_again(run: RunDirectory) -> None:
    assert main(["report", str(run.path)]) == 0
    page = run.report.read_text("utf-8")
    assert "bayes" in page
    assert '<section id="sets"' in page  # a panel that came later, made from what was stored then


def test_it_needs_no_resuming(run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    """Its one job is done: resume trains nothing, draws and ends well."""
    before = run.result("bayes-seed0").read_bytes()
    assert main(["resume", str(run.path), "--quiet"]) == 0
    assert run.result("bayes-seed0").read_bytes() == before


def test_it_is_taken_up_from_its_checkpoint_though_it_knows_no_fingerprint(run: RunDirectory) -> None:
    """As if it had been killed before its result was written."""
    assert "fingerprint" not in read_json(run.config)["dataset"]
    before = read_json(run.result("bayes-seed0"))
    run.result("bayes-seed0").unlink()
    assert main(["resume", str(run.path), "--quiet", "--parallel", "1"]) == 0
    after = read_json(run.result("bayes-seed0"))
    assert after["presentations"] == before["presentations"]
    assert after["final"]["mean"]["overall"]["accuracy"] == pytest.approx(
        before["final"]["mean"]["overall"]["accuracy"]
    )
