"""What a user can get wrong on the command line: one sentence, exit code 2, and nothing left behind."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from bayspike.cli import main
from bayspike.cli.arguments import options_of
from bayspike.cli.run import Run

TINY = [
    "--hidden", "8", "--time", "4", "--train-examples", "60", "--test-examples", "20", "--batch", "16",
    "--members", "2", "--threads", "1", "--parallel", "1", "--quiet",
]  # fmt: skip

DIGITS = ["run", "digits"]


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ([*DIGITS, "--threads", "0"], "--threads must be at least 1, but is 0"),
        ([*DIGITS, "--threads", "100000"], "threads must lie in [1, 512], but is 100000"),
        ([*DIGITS, "--parallel", "0"], "--parallel must be at least 1"),
        ([*DIGITS, "--checkpoint-seconds", "-1"], "checkpoint_seconds must lie in [0, 86400], but is -1.0"),
        ([*DIGITS, "--checkpoint-seconds", "inf"], "checkpoint_seconds must lie in"),
        ([*DIGITS, "--checkpoint-seconds", "nan"], "checkpoint_seconds must lie in"),
        ([*DIGITS, "--hidden", "99999999999"], "synapses, more than the 2,147,483,648"),
        ([*DIGITS, "--hidden", "9" * 5000], "--hidden takes a whole number"),
        ([*DIGITS, "--members", "0"], "members must lie in [1, 10000], but is 0"),
        ([*DIGITS, "--threshold", "inf"], "threshold must be a finite number, but is inf"),
        ([*DIGITS, "--threshold", "nan"], "threshold must be a finite number, but is nan"),
        ([*DIGITS, "--network", "8r", "--update-every", "2"], "a recurrent layer sees its own last spikes"),
        ([*DIGITS, "--set", "bayes.samples=2", "training.update_every=2"], "several samples a step are drawn step"),
        ([*DIGITS, "--burn-in", "50"], "burn_in must leave some of the 50 time-steps"),
        ([*DIGITS, "--epochs", "99999999999"], "epochs must lie in [1, 100000]"),
        ([*DIGITS, "--seeds", "99999999999"], "--seeds is the number of repetitions"),
        ([*DIGITS, "--time", "0"], "time must lie in [1, 100000], but is 0"),
        ([*DIGITS, "--set", "sgd.lr=1e30"], "sgd.lr must lie in [0, 1e+06], but is 1e+30"),
        ([*DIGITS, "--set", "sgd.lr=Infinity"], "--set sgd.lr must be a finite number, but is Infinity"),
        ([*DIGITS, "--set", "sgd.lr=1e999"], "sgd.lr must be a finite number, but is inf"),
        ([*DIGITS, "--set", "training.epochs=NaN"], "--set training.epochs must be a finite number, but is NaN"),
        ([*DIGITS, "--set", "training.epochs=1e300"], "training.epochs must be a whole number"),
        ([*DIGITS, "--set", f"training.epochs={'9' * 5000}"], "has a number of 5,000 digits"),
        ([*DIGITS, "--set", "sgd.lr=1", "sgd.lr=2"], "--set gives sgd.lr twice"),
        ([*DIGITS, "--set", "sgd.lr=1", "--set", "ewc.lr=2"], "--set is given twice: put all values behind one"),
        ([*DIGITS, "--set", "sgd.lr=[true]"], "must be a number, or a list of numbers"),
        ([*DIGITS, "--set", "sgd.rate=1"], "no hyper-parameter 'rate'"),
        ([*DIGITS, "--method", "sgd", "sgd"], "--method names sgd twice"),
        ([*DIGITS, "--method", "sgd", "--method", "ewc"], "--method is given twice"),
        ([*DIGITS, "--seeds=1", "--seeds", "2"], "--seeds is given twice."),
        ([*DIGITS, "--method", "byes"], "--method byes: did you mean bayes?"),
        ([*DIGITS, "--method", "xyzzy"], "--method xyzzy: choose from bayes, bayes-binary"),
        (["run", "digit"], "EXPERIMENT digit: did you mean digits?"),
        (["run"], "bayspike run needs EXPERIMENT: one of two-moons"),
        (["run", "digits", "folder"], "does not know what to do with 'folder'"),
        (["rnu", "digits"], "There is no command 'rnu': did you mean run?"),
        (["--verison"], "bayspike has no option --verison: did you mean --version?"),
        ([*DIGITS, "--epoch", "3"], "no option --epoch: did you mean --epochs?"),
        ([*DIGITS, "-e", "3"], "bayspike run has no option -e"),
        ([*DIGITS, "--epochs"], "--epochs needs a value"),
        ([*DIGITS, "--epochs", "ten"], "--epochs takes a whole number, but got 'ten'"),
        ([*DIGITS, "--slope", "steep"], "--slope takes a number, but got 'steep'"),
        ([*DIGITS, "--quiet=yes"], "--quiet takes no value"),
        ([*DIGITS, "--preset", "demp"], "--preset demp: did you mean demo?"),
        ([*DIGITS, "--recurrent", "yes"], "--recurrent yes: choose from True, False"),
        ([*DIGITS, "--data", "nowhere"], "--data nowhere is not a folder"),
        (["run", "split-mnist", "--data", "."], "was not found in"),
        (["run", "folder"], "Name a folder of your own"),
        (["run", "folder", "--data", "."], "has 0 sub-folders"),
        (["run", "folder", "--preset", "paper", "--data", "."], "has no preset 'paper': choose from demo, laptop"),
        ([*DIGITS, "--dataset", "mnits"], "There is no data set 'mnits'"),
        ([*DIGITS, "--dataset", "no.such.module:load"], "There is no module 'no.such.module'"),
        ([*DIGITS, "--dataset", "json:nothing"], "The module 'json' has no 'nothing'"),
        ([*DIGITS, "--dataset", "json:dumps"], "The data set 'json:dumps' failed: TypeError"),
        ([*DIGITS, "--rule", "Momentum"], "--rule takes package.module:Class, but got 'Momentum'"),
        ([*DIGITS, "--rule", "json:JSONDecoder"], "json:JSONDecoder is no rule: a rule is a frozen dataclass"),
        ([*DIGITS, "--rule", "bayspike.continual.tasks:Task"], "is no rule: it has no lr, binary"),
        ([*DIGITS, "--options", "colour=red"], "has no option 'colour'"),
        ([*DIGITS, "--options", "encoder"], "--options takes name=value, for example size=28"),
        ([*DIGITS, "--tasks", "0,1"], "--tasks leaves out '2'"),
        ([*DIGITS, "--tasks", "11"], "--tasks must lie in [1, 10]"),
        ([*DIGITS, "--augment", "shift=2,shout=1"], "augment takes shift, drop, jitter, turn, stretch"),
        ([*DIGITS, "--augment", "shift=28"], "shift of augment must lie in [0, 27]"),
        (["run", "two-moons", "--augment", "shift=1"], "shift of augment needs pictures or events"),
        (["export", "nowhere"], "bayspike export needs --out"),
        (["data", "show"], "name the data set"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_left_behind(
    command: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BAYSPIKE_DATA", raising=False)
    monkeypatch.setattr("bayspike.data.places.user_cache_path", lambda name: tmp_path / "cache")
    out = ["--out", str(tmp_path / "out")] if command[0] == "run" and len(command) > 1 else []
    assert main([*command, *out]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert len(printed.err) < 700
    assert not (tmp_path / "out").exists()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mistakes") / "run"
    assert main(["run", "digits", "--method", "bayes", "sgd", "--out", str(out), *TINY]) == 0
    return out


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["predict", "{run}", "x.png", "--every", "0"], "--every must be at least 1"),
        (["predict", "{run}", "x.png", "--members", "0"], "--members must be at least 1"),
        (["evaluate", "{run}", "--members", "0"], "--members must be at least 1"),
        (["evaluate", "{run}", "--test-examples", "0"], "--test-examples must be at least 1"),
        (["export", "{run}", "--out", "chip", "--members", "0"], "--members must be at least 1"),
        (["evaluate", "{run}", "--job", "sgd-seed0", "--predictor", "committee"], "sgd is one network and has no comm"),
        (["predict", "{run}", "x.png", "--job", "sgd-seed0", "--predictor", "mean"], "has no mean: choose point"),
        (["predict", "{run}", "x.png", "--job", "sgd-seed0", "--members", "4"], "leave out --members"),
        (["export", "{run}", "--out", "chip", "--job", "sgd-seed0", "--members", "4"], "leave out --members"),
        (["evaluate", "{run}/report.html"], "report.html is no checkpoint: give {run}, or a file in its checkpoints"),
        (["evaluate", "{run}/config.json"], "config.json is no checkpoint"),
        (["report", "{run}", "{run}/../run"], "is named twice: name every run once"),
        (["evaluate", "{run}", "--predictor", "commitee"], "--predictor commitee: did you mean committee?"),
        (["resume", "{run}", "--parallel", "0"], "--parallel must be at least 1"),
    ],
)  # fmt: skip
def test_mistakes_with_a_run(
    command: list[str],
    sentence: str,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([word.replace("{run}", str(run)) for word in command]) == 2
    printed = capsys.readouterr()
    assert sentence.replace("{run}", str(run)) in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_export_names_the_option_that_replaces(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "chip").mkdir()
    assert main(["export", str(run), "--out", str(tmp_path / "chip"), "--examples", "2"]) == 2
    assert "--force" in capsys.readouterr().err


def test_predict_goes_on_after_a_bad_file(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bright = np.zeros((28, 28), dtype=np.uint8)
    bright[4:24, 12:16] = 255
    for name in ("one.png", "two.png"):
        Image.fromarray(bright).save(tmp_path / name)
    (tmp_path / "bad.png").write_bytes(b"no picture")
    files = [str(tmp_path / name) for name in ("one.png", "bad.png", "two.png")]
    assert main(["predict", str(run), *files, "--json", "--every", "4"]) == 2
    printed = capsys.readouterr()
    told = [json.loads(line) for line in printed.out.splitlines()]
    assert [line["file"] for line in told] == [files[0], files[2]]
    assert told[0]["probabilities"] == told[1]["probabilities"]
    assert "bad.png cannot be read as a picture" in printed.err


def test_predict_resizes_when_asked(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A picture of blocks twice the size is, brought to size, the picture itself."""
    small = np.kron(np.eye(7, dtype=np.uint8) * 255, np.ones((4, 4), dtype=np.uint8))
    Image.fromarray(small).save(tmp_path / "small.png")
    Image.fromarray(np.kron(small, np.ones((20, 20), dtype=np.uint8))).save(tmp_path / "large.png")
    assert main(["predict", str(run), str(tmp_path / "large.png")]) == 2
    assert "560×560 pixels, not 28×28: add --resize" in capsys.readouterr().err
    found = []
    for name in ("small.png", "large.png"):
        assert main(["predict", str(run), str(tmp_path / name), "--resize", "--json", "--every", "4"]) == 0
        found.append(json.loads(capsys.readouterr().out)["probabilities"])
    assert np.abs(np.subtract(*found)).max() < 0.2


def test_a_refused_run_does_not_block_the_next(tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["run", "digits", "--method", "sgd", "--out", str(out), *TINY, "--interim-examples", "0"]) == 2
    assert main(["run", "digits", "--method", "sgd", "--out", str(out), *TINY]) == 0


def test_help_lists_the_version_and_shows_no_none(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["--help"], ["run", "--help"], ["predict", "--help"], ["data", "--help"]):
        with pytest.raises(SystemExit):
            main(command)
        printed = capsys.readouterr().out
        assert "None" not in printed
        assert "[1e-" not in re.sub(r"'[a-z_.]+=\[", "", printed)  # a bracket is a pattern to a shell: quoted
        assert "--version" in printed or command != ["--help"]


def test_every_option_is_known_to_the_check() -> None:
    """Read off the dataclass: groups, choices and lists among them."""
    options = {option.name: option for option in options_of(Run)}
    assert options["experiment"].positional
    assert options["hidden"].many
    assert options["hidden"].kind is int
    assert "bayes" in options["method"].choices
    assert options["reset"].choices == ("refractory", "zero", "subtract")
    assert options["quiet"].kind is bool
    assert not options["seeds"].required


def test_moved_data_are_named_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run from a folder that has moved: refused with where it was, taken up with where it is, refused if changed."""
    random = np.random.default_rng(0)
    for name in ("ant", "bee"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(6):
            pixels = random.integers(0, 200, (6, 6), dtype=np.uint8)
            pixels[:, :3] += 50 if name == "ant" else 0
            Image.fromarray(pixels).save(tmp_path / "data" / name / f"{number}.png")
    out = tmp_path / "run"
    assert main(["run", "folder", "--data", str(tmp_path / "data"), "--method", "sgd", "--out", str(out), *TINY]) == 0
    stored = json.loads((out / "config.json").read_text("utf-8"))["dataset"]
    assert stored["place"] == str(tmp_path / "data")
    (tmp_path / "data").rename(tmp_path / "moved")
    assert main(["resume", str(out), "--quiet"]) == 2
    assert "is not a folder" in capsys.readouterr().err
    (out / "results" / "sgd-seed0.json").unlink()
    assert main(["resume", str(out), "--quiet", "--data", str(tmp_path / "moved")]) == 0
    assert (out / "results" / "sgd-seed0.json").is_file()
    shutil.copy(tmp_path / "moved/ant/0.png", tmp_path / "moved/ant/1.png")  # other pixels, the same labels
    capsys.readouterr()
    assert main(["resume", str(out), "--quiet"]) == 2
    assert "fingerprint was" in capsys.readouterr().err
