"""`torchrun -m bayspike run`: one network on two processes, stopped, taken up by another number, to the same end."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import distributed

from bayspike.cli import main
from bayspike.runs.checkpoints import steps

ARGUMENTS = [
    "digits", "--method", "bayes", "ewc", "--hidden", "96", "48", "--time", "6", "--train-examples", "60",
    "--test-examples", "20", "--batch", "8", "--members", "2", "--threads", "1", "--quiet", "--checkpoint-seconds", "0",
]  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not distributed.is_available() or not distributed.is_gloo_available(), reason="torch was built without gloo"
    ),
]


def torchrun(ranks: int, *command: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return subprocess.Popen(
        [*launcher, "-m", "bayspike", *command],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def learnt(run: Path) -> dict[str, torch.Tensor]:
    found = {}
    for job in ("bayes-seed0", "ewc-seed0"):
        last = steps(run / "checkpoints" / job)[-1].with_suffix(".safetensors")
        found |= {f"{job} {name}": tensor for name, tensor in load_file(last).items()}
    return found


def scores(run: Path) -> dict[str, float]:
    summary = json.loads((run / "summary.json").read_text())
    return {name: each["accuracy"]["mean"] for name, each in summary["methods"].items()}


def test_stopped_on_two_processes_and_taken_up_by_one_and_by_three(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    assert main(["run", *ARGUMENTS, "--parallel", "1", "--out", str(alone)]) == 0
    together = tmp_path / "together"
    first = torchrun(2, "run", *ARGUMENTS, "--out", str(together))
    deadline = time.monotonic() + 120
    while not steps(together / "checkpoints" / "bayes-seed0") and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(first.pid, signal.SIGTERM)  # torchrun hands it on to both
    first.communicate(timeout=120)
    assert not (together / "summary.json").exists()
    third = torchrun(3, "resume", str(together), "--quiet")
    deadline = time.monotonic() + 120
    while not steps(together / "checkpoints" / "ewc-seed0") and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(third.pid, signal.SIGKILL)
    third.communicate(timeout=120)
    assert main(["resume", str(together), "--parallel", "1", "--quiet"]) == 0
    expected, found = learnt(alone), learnt(together)
    assert expected.keys() == found.keys()
    for name, tensor in expected.items():
        # the same bits where products of some rows round as those of all do; else a spike may flip here and there
        same = torch.isclose(found[name].double(), tensor.double(), rtol=1e-4, atol=1e-5)
        assert float(same.double().mean()) > 0.9, name
    assert scores(alone) == pytest.approx(scores(together), abs=0.1)


def test_a_mistake_is_said_once(tmp_path: Path) -> None:
    plain = [*ARGUMENTS[: ARGUMENTS.index("--hidden")], *ARGUMENTS[ARGUMENTS.index("--time") :]]
    for command in (
        [*ARGUMENTS, "--set", "bayes.lrr=1"],
        [*ARGUMENTS, "--data", str(tmp_path), "--dataset", "mnist"],
        [*plain, "--network", "2p-48"],
        [*ARGUMENTS, "--update-every", "2"],
    ):
        failed = torchrun(2, "run", *command, "--out", str(tmp_path / "x"))
        _, said = failed.communicate(timeout=200)
        assert failed.returncode != 0
        assert said.count("bayspike: ") == 1
        assert not (tmp_path / "x").exists()


def test_who_is_alone_with_a_mistake_says_it_after_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []
    monkeypatch.setattr("time.sleep", waited.append)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "some")
    for rank, patience in (("0", []), ("1", [30.0])):
        monkeypatch.setenv("RANK", rank)
        assert main(["run", "digits", "--set", "bayes.lrr=1"]) == 2
        assert waited == patience
        assert capsys.readouterr().err.startswith("bayspike: ")
