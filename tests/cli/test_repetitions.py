"""`bayspike resume RUN --seeds N`: one repetition more tomorrow."""

import json
import shutil
from pathlib import Path

import pytest
from tiny_run import TINY

from bayspike.cli import main

OF_THE_CLOCK = ("seconds", "digest")  # how long it took, and a seal over that too
ONCE = ["run", "digits", "--preset", "paper", "--method", "sgd"]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("repetitions") / "once"
    assert main([*ONCE, "--seeds", "1", "--out", str(out), *TINY]) == 0
    return out


def timeless(value: object) -> object:
    if isinstance(value, dict):
        return {key: timeless(each) for key, each in value.items() if key not in OF_THE_CLOCK}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def read(path: Path) -> object:
    return timeless(json.loads(path.read_text("utf-8")))


def test_a_run_with_one_more_is_the_run_that_was_begun_with_it(once: Path, tmp_path: Path) -> None:
    twice, copy = tmp_path / "twice", tmp_path / "copy"
    assert main([*ONCE, "--seeds", "2", "--out", str(twice), *TINY]) == 0
    shutil.copytree(once, copy)
    first = (copy / "results" / "sgd-seed0.json").read_bytes()
    assert main(["resume", str(copy), "--seeds", "2", "--quiet", "--parallel", "1"]) == 0
    assert (copy / "results" / "sgd-seed0.json").read_bytes() == first  # what was done is not done again
    for name in ("config.json", "summary.json", "results/sgd-seed1.json"):
        assert read(copy / name) == read(twice / name)
    assert len(json.loads((copy / "summary.json").read_text())["methods"]["sgd"]["accuracy"]["seeds"]) == 2
    told = json.loads((copy / "environment.json").read_text())
    assert told["seeds"] == [0, 1]
    assert told["command"][told["command"].index("--seeds") + 1] == "2"
    assert "--seeds 2" in (copy / "report.html").read_text("utf-8")


def test_repetitions_are_added_and_never_taken_away(
    once: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(once, copy)
    before = (copy / "config.json").read_bytes()
    for seeds, sentence in (("0", "none taken away"), ("10001", "must lie in [1, 10000]")):
        assert main(["resume", str(copy), "--seeds", seeds, "--quiet"]) == 2
        assert sentence in capsys.readouterr().err
    assert (copy / "config.json").read_bytes() == before
