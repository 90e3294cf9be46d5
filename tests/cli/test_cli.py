"""The command line as a user meets it: exit codes, sentences, and what is printed."""

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from PIL import Image
from tiny_run import TINY

from bayspike import __version__
from bayspike.cli import main, options
from bayspike.continual.methods import METHODS
from bayspike.experiments.registry import EXPERIMENTS
from bayspike.runs.locks import locked


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"bayspike {__version__}\n"


def test_names_of_the_command_line_are_those_of_the_registries() -> None:
    assert set(get_args(options.ExperimentName)) == set(EXPERIMENTS)
    assert set(get_args(options.MethodName)) == set(METHODS)


@pytest.mark.parametrize(
    "command", [[], *([each] for each in ["run", "resume", "report", "evaluate", "predict", "export", "data", "info"])]
)
def test_help_tells_no_default_that_is_none(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # asking twice changes nothing
        with pytest.raises(SystemExit) as done:
            main([*command, "--help"])
        assert done.value.code == 0
        told = " ".join(re.sub("[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
        assert not re.search(r"\(default: (None|False|\(\))?\)", told)
        assert "None" not in told
    if not command:
        assert "bayspike --version says which version this is" in told
    if command in (["report"], ["predict"]):
        assert "PATH [PATH ...]" in told
        assert "(at least one)" in told
    if command == ["run"]:
        assert "(default: demo)" in told  # what is a value is told
        assert re.search(r"--seeds INT Number of repetitions\. --", told)


@pytest.mark.parametrize("command", [[], ["run", "--help"], ["predict", "--help"], ["data", "--help"]])
def test_help_teaches_by_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command)
    assert ended.value.code == 0
    assert f"bayspike {command[0] if command else 'run'} " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["run", "digits", "--set", "bayes.lrr=1"], "no hyper-parameter 'lrr': it has remember"),
        (["run", "digits", "--set", "bayes.lr=fast"], "bayes.lr must be a number, but is 'fast'"),
        (["run", "digits", "--set", "ste.lr=1"], "'ste' is not part of this run"),
        (["run", "digits", "--set", "lr"], "--set takes name=value"),
        (["run", "digits", "--set", "bayes.temperature=0.1"], "lr and temperature belong together"),
        (["run", "digits", "--set", "bayes.temperature=0.1", "bayes.lr=100"], "lr · temperature must lie in"),
        (["run", "digits", "--seeds", "0"], "--seeds"),
        (["run", "digits", "--hidden", "0"], "layer size"),
        (["run", "digits", "--simulated"], "no simulated stand-in"),
        (["run", "digits", "--device", "warp"], "--device cpu"),
        (["run", "digits", "--coreset-share", "2"], "coreset_share must lie in [0, 1]"),
        (["run", "dvs-gestures"], "add --simulated"),
        (["run", "digits", "--address", "head:6379"], "add --engine ray"),
        (["tune", "digits", "--trials", "0"], "--trials must be at least 1"),
        (["tune", "digits", "--validation", "1"], "validation must lie in (0, 1)"),
        (["run", "digits", "--update-every", "0"], "update_every must lie in [1"),
        (["resume", "nowhere"], "nowhere is not a directory"),
        (["report", "nowhere"], "nowhere is not a directory"),
        (["evaluate", "nowhere"], "nowhere is neither a checkpoint nor a directory"),
        (["data", "get"], "name the data set"),
        (["data", "get", "atlantis"], "no data set 'atlantis'"),
    ],
)
def test_mistakes_are_one_sentence_and_code_2(
    command: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BAYSPIKE_DATA", str(tmp_path))
    assert main(command) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    assert list(tmp_path.iterdir()) == []  # and nothing is left behind


def test_debug_shows_where_a_mistake_came_from() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        main(["resume", "nowhere", "--debug"])


def test_a_run_is_not_overwritten(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (run / "summary.json").read_bytes()
    assert main(["run", "digits", "--out", str(run), *TINY]) == 2
    assert "bayspike resume" in capsys.readouterr().err
    assert (run / "summary.json").read_bytes() == before


def test_the_table_shows_our_numbers_and_the_papers(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["resume", str(run), "--quiet"]) == 0  # nothing left to do but to print
    printed = capsys.readouterr().out
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    assert f"{100 * summary['methods']['bayes']['accuracy']['mean']:.2f} %" in printed
    assert "85.44" in printed
    assert str(run / "report.html") in printed


def test_a_changed_configuration_is_refused_by_what_differs(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    config = json.loads((copy / "config.json").read_text("utf-8"))
    config["methods"][0]["rule"]["observations"] = 123.0
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "results" / "bayes-seed0.json").unlink()
    assert main(["resume", str(copy), "--quiet", "--parallel", "1"]) == 2
    assert "method.rule.observations is None there and 123.0 here" in capsys.readouterr().err
    config["methods"][0]["rule"]["colour"] = "red"
    config["nonsense"] = 1
    (copy / "config.json").write_text(json.dumps(config))
    assert main(["resume", str(copy), "--quiet"]) == 2
    assert "no entry 'nonsense'" in capsys.readouterr().err


def test_evaluate_agrees_with_the_examination_of_the_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same network on the same test digits: other draws of spikes, so close but not equal."""
    assert main(["evaluate", str(run), "--job", "sgd-seed0", "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)["scores"]["point"]
    stored = json.loads((run / "results" / "sgd-seed0.json").read_text("utf-8"))["final"]["point"]["overall"]
    assert scores["examples"] == stored["examples"] == 20
    assert scores["accuracy"] == pytest.approx(stored["accuracy"], abs=0.25)
    assert scores["nll"] == pytest.approx(stored["nll"], rel=0.2)


def test_predict_tells_a_decision_at_every_step(run: Path, picture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(run), str(picture), "--json", "--foreign"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["time"] for line in lines] == list(range(1, 9))
    for line in lines:
        assert sum(line["probabilities"]) == pytest.approx(1, abs=1e-4)
        assert line["confidence"] == pytest.approx(max(line["probabilities"]), abs=1e-5)
        assert line["probabilities"][line["label"]] == pytest.approx(line["confidence"], abs=1e-5)
        assert isinstance(line["foreign"], bool)


def test_predict_reads_standard_input(
    run: Path, picture: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["predict", str(run), str(picture), "--json"]) == 0
    from_file = [json.loads(line)["probabilities"] for line in capsys.readouterr().out.splitlines()]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(picture.read_bytes())))
    assert main(["predict", str(run), "-", "--json"]) == 0
    assert [json.loads(line)["probabilities"] for line in capsys.readouterr().out.splitlines()] == from_file


def test_predict_refuses_what_does_not_fit(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(np.zeros((5, 7), dtype=np.uint8)).save(tmp_path / "small.png")
    (tmp_path / "not.png").write_bytes(b"no picture")
    for name, sentence in (("small.png", "5×7"), ("not.png", "cannot be read"), ("gone.png", "not a file")):
        assert main(["predict", str(run), str(tmp_path / name)]) == 2
        assert sentence in capsys.readouterr().err


def test_export_writes_a_committee_that_verifies(run: Path, tmp_path: Path) -> None:
    from bayspike.hardware.export import verify

    assert main(["export", str(run), "--out", str(tmp_path / "chip"), "--examples", "3"]) == 0
    assert verify(tmp_path / "chip").members == 2
    assert main(["export", str(run), "--out", str(tmp_path / "chip"), "--examples", "3"]) == 2


def test_data_json_lists_every_set_with_its_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BAYSPIKE_DATA", str(tmp_path))
    assert main(["data", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["digits"]["ready"]
    assert not entries["dvs_gesture"]["ready"]
    assert entries["mnist_dvs_simulated"]["simulated"]


def test_info(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["bayspike"] == __version__
    assert set(facts["methods"]) == set(METHODS)


def test_report_compares_runs(run: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "both.html", Path(shutil.copytree(run, tmp_path / "other"))
    assert main(["report", str(run), str(other), "--out", str(out)]) == 0
    assert out.stat().st_size > 0
    assert main(["report", str(run), str(other), "--out", str(out)]) == 2  # nothing is overwritten


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs POSIX signals")
def test_ctrl_c_keeps_everything_and_says_how_to_go_on(tmp_path: Path) -> None:
    """A real process with real workers: interrupted, resumed, and killed for good."""
    out = tmp_path / "run"
    command = [sys.executable, "-m", "bayspike"]
    alone = TINY.index("--parallel")
    sizes = [*TINY[:alone], "--epochs", "60", "--parallel", "2", "--checkpoint-seconds", "0", "--quiet"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    def started(*arguments: str) -> "subprocess.Popen[str]":
        child = subprocess.Popen([*command, *arguments], stderr=subprocess.PIPE, text=True, env=environment)
        seen = steps()
        deadline = time.monotonic() + 300
        while steps() == seen and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        return child

    def steps() -> list[str]:
        return sorted(path.name for path in out.glob("checkpoints/*/step-*.json"))

    child = started("run", "digits", "--method", "bayes", "sgd", "--out", str(out), *sizes)
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=300)
    assert child.returncode == 130
    assert f"bayspike resume {out}" in errors
    kept = steps()
    assert kept
    assert not list(out.glob("results/*.json"))

    child = started("resume", str(out), "--quiet", "--parallel", "2")
    child.send_signal(signal.SIGKILL)
    child.wait(timeout=300)
    # the workers notice that they are orphans and let go, so that the next resume finds the field clear
    for folder in out.glob("checkpoints/*"):
        with locked(folder / ".lock", wait=True):
            pass
    after = steps()
    time.sleep(1)
    assert steps() == after
    assert max(after) >= max(kept)
