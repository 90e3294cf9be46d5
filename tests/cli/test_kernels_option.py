"""`--kernels`: asked for by name, part of the run, one sentence where the compiler is missing."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from tiny_run import TINY

from bayspike import kernels
from bayspike.cli import main
from bayspike.errors import UserError
from bayspike.learner import Learner
from bayspike.predict.predictors import Committee
from bayspike.runs.plan.config import TrainingOptions
from bayspike.spiking.network import NetworkConfig, build
from bayspike.storage.plain import from_plain, to_plain

needs_numba = pytest.mark.skipif(
    importlib.util.find_spec("numba") is None, reason="compiled kernels need numba (extra fast)"
)


@pytest.fixture
def no_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "find_spec", lambda name: None)


@pytest.mark.usefixtures("no_numba")
def test_without_numba_it_is_one_sentence_and_code_2(
    run: Path, picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (
        ["run", "digits", "--out", str(tmp_path / "run"), *TINY],
        ["evaluate", str(run)],
        ["predict", str(run), str(picture)],
    ):
        assert main([*command, "--kernels", "compiled"]) == 2
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1
        assert "pip install 'bayspike[fast]'" in printed
    assert not (tmp_path / "run").exists()
    with pytest.raises(UserError, match="needs numba"):
        Learner(4, kernels="compiled")


@pytest.mark.usefixtures("no_numba")
def test_plain_needs_no_numba() -> None:
    Committee(build(NetworkConfig(3, (4,), 2)), [torch.zeros(1, 4, 3)], kernels="plain")


def test_a_name_that_is_none() -> None:
    with pytest.raises(UserError, match="kernels must be one of plain, compiled, but is 'quick'"):
        TrainingOptions(kernels="quick")  # type: ignore[arg-type]


def test_a_configuration_of_before_is_plain() -> None:
    old = {name: value for name, value in to_plain(TrainingOptions()).items() if name != "kernels"}
    assert from_plain(TrainingOptions, old, "old").kernels == "plain"


@needs_numba
def test_a_run_keeps_its_kernels(tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "run"
    command = ["run", "digits", "--method", "bayes", "sgd", "--out", str(out), "--kernels", "compiled", *TINY]
    assert main(command) == 0
    config = json.loads((out / "config.json").read_text("utf-8"))
    assert {each["training"]["kernels"] for each in config["methods"]} == {"compiled"}
    assert main(["resume", str(out), "--quiet"]) == 0
    ours, theirs = (json.loads((each / "summary.json").read_text("utf-8"))["methods"] for each in (out, run))
    # SGD learns by the plain form and is judged by the compiled one: the same but for rounding
    assert ours["sgd"]["nll"]["mean"] == pytest.approx(theirs["sgd"]["nll"]["mean"], rel=1e-3)
    capsys.readouterr()
    scores = []
    for name in ("plain", "compiled"):
        assert main(["evaluate", str(out), "--job", "bayes-seed0", "--json", "--kernels", name]) == 0
        scores.append(json.loads(capsys.readouterr().out)["scores"]["committee"])
    assert scores[0]["nll"] == pytest.approx(scores[1]["nll"], abs=1e-3)


@needs_numba
def test_a_learner_keeps_its_kernels(tmp_path: Path) -> None:
    learner = Learner(6, time=5, hidden=(8,), members=2, kernels="compiled")
    random = torch.Generator().manual_seed(0)
    values = torch.randint(0, 256, (20, 6), generator=random, dtype=torch.uint8).numpy()
    learner.learn(values, ["a", "b"] * 10)
    learner.save(tmp_path / "learner.bayspike")
    loaded = Learner.load(tmp_path / "learner.bayspike")
    assert loaded.state.recipe.training.kernels == "compiled"
    ours, theirs = (each.predict(values).probabilities for each in (loaded, learner))
    assert torch.equal(torch.as_tensor(ours), torch.as_tensor(theirs))
