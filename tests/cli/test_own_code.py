"""Data sets and rules from outside the package: they run when a person names them, never because a file does."""

import json
import sys
from pathlib import Path

import pytest

from bayspike.cli import main
from bayspike.storage import named

OWN = '''
from dataclasses import dataclass

import numpy as np
import torch
from bayspike import Dataset
from bayspike.posteriors.distributions import Point
from bayspike.rules import initial_weights
from bayspike.rules.sgd import SGDState
from bayspike.spiking.network import Weights


def load(seed=0, time=6, noise=0.1):
    y = np.arange(80) % 4
    x = np.clip(np.eye(4).repeat(4, 1)[y] * 0.9 + noise * np.random.default_rng(seed).random((80, 16)), 0, 1)
    return Dataset.from_arrays(x, [("ant", "bee", "cow", "doe")[label] for label in y], time=time)


def arrays():
    return np.zeros(3)


@dataclass(frozen=True)
class Signs:
    """Steps of one size."""

    lr: float = 0.01
    binary = False
    samples = 1
    needs_fisher = False

    def init(self, shape, generator):
        return SGDState(initial_weights(shape, 1.0, generator))

    def drive(self, state, generator):
        return Weights(state.weights)

    def update(self, state, gradient):
        return SGDState(state.weights.sub_(self.lr * torch.sign(gradient.mean())))

    def end_task(self, state, fisher=None):
        return state

    def posterior(self, state):
        return Point(state.weights)
'''
TINY = ["--hidden", "16", "--members", "2", "--threads", "1", "--quiet"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_things.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_things", raising=False)
    monkeypatch.setattr(named, "_PERMITTED", set())
    return tmp_path


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a new process knows."""
    monkeypatch.setattr(named, "_PERMITTED", set())


def test_a_data_set_and_a_rule_of_ones_own(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "folder", "--dataset", "own_things:load", "--rule", "own_things:Signs", "--method", "bayes"]
    settings = ["--set", "Signs.lr=0.02", "--options", "noise=0.3", "--tasks", "ant,bee;cow,doe", "--parallel", "2"]
    assert main([*command, *settings, "--out", "run", *TINY]) == 0
    config = json.loads(Path("run/config.json").read_text("utf-8"))
    assert [method["label"] for method in config["methods"]] == ["bayes", "Signs"]
    assert config["methods"][1]["rule"]["lr"] == 0.02
    assert config["dataset"]["tasks"] == ["{ant,bee}", "{cow,doe}"]
    summary = json.loads(Path("run/summary.json").read_text("utf-8"))
    assert summary["methods"]["Signs"]["accuracy"]["mean"] > 0.6  # chance is 0.25; it runs in a process of its own

    forget(monkeypatch)
    capsys.readouterr()
    for refused, name in (
        (["evaluate", "run"], "own_things:load"),
        (["evaluate", "run", "--job", "Signs-seed0"], "own_things:Signs"),
        (["resume", "run", "--quiet"], "own_things:load"),
    ):
        assert main(refused) == 2
        assert f"{name} is code from outside bayspike" in capsys.readouterr().err
    assert main(["report", "run"]) == 0  # needs none of it
    assert main(["evaluate", "run", "--job", "Signs-seed0", "--own-code", "--json"]) == 0


def test_a_rule_alone_is_the_only_learner(here: Path) -> None:
    assert (
        main(["run", "folder", "--dataset", "own_things:load", "--rule", "own_things:Signs", "--out", "run", *TINY])
        == 0
    )
    assert sorted(path.stem for path in Path("run/results").glob("*.json")) == ["Signs-seed0"]


def test_a_file_that_names_code_does_not_run_it(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run directory from somebody else, changed to name a module that leaves a trace when it is imported."""
    assert (
        main(
            [
                "run",
                "digits",
                "--method",
                "sgd",
                "--out",
                "run",
                "--train-examples",
                "40",
                "--test-examples",
                "20",
                *TINY,
            ]
        )
        == 0
    )
    Path("trap.py").write_text("import pathlib\npathlib.Path('sprung').touch()\ndef load():\n    pass\n")
    path = Path("run/config.json")
    config = json.loads(path.read_text("utf-8"))
    config["data"]["name"] = "trap:load"
    path.write_text(json.dumps(config))
    capsys.readouterr()
    assert main(["resume", "run", "--quiet"]) == 2
    assert "add --own-code" in capsys.readouterr().err
    for checkpoint in Path("run/checkpoints/sgd-seed0").glob("*.json"):
        header = json.loads(checkpoint.read_text("utf-8"))
        header["model"]["method"] = "trap:Rule"
        checkpoint.write_text(json.dumps(header))
    assert main(["evaluate", "run"]) == 2
    assert not Path("sprung").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--dataset", "own_things:arrays"], "own_things:arrays gave a ndarray: a data set is a bayspike Dataset"),
        (["--dataset", "own_things:load", "--options", "colour=1"], "has no option 'colour': its options are noise"),
        (["--dataset", "own_things:load", "--data", "."], "takes no 'root': leave it out"),
        (["--dataset", "own_things:OWN"], "has no 'OWN'"),
        (["--dataset", "own_things:np"], "own_things:np is no function"),
        (["--dataset", "own_things:"], "does not name a data set: write package.module:name"),
        (["--dataset", "broken:load"], "broken:load cannot be imported (ZeroDivisionError"),
        (["--dataset", "needs:load"], "needs:load cannot be imported: it needs the module 'no_such_thing'"),
    ],
)
def test_what_is_wrong_with_it_is_said(
    options: list[str], sentence: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("broken.py").write_text("1 / 0\n")
    Path("needs.py").write_text("import no_such_thing\n")
    assert main(["run", "folder", *options, "--out", "run", *TINY]) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1
    assert not Path("run").exists()
