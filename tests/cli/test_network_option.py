"""`--network`: a run with convolutions from training to the chip, and what is said of mistakes."""

import json
from pathlib import Path

import pytest
from tiny_run import TINY

from bayspike.cli import main
from bayspike.hardware.export import verify


def without_hidden(options: list[str]) -> list[str]:
    """The options of a tiny run without --hidden and its values."""
    kept, skipping = [], False
    for each in options:
        skipping = each == "--hidden" or (skipping and not each.startswith("--"))
        if not skipping:
            kept.append(each)
    return kept


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("maps") / "run"
    options = without_hidden(list(TINY))
    assert main(["run", "digits", "--method", "bayes", "--network", "3c5s2-2p-8", "--out", str(out), *options]) == 0
    return out


def test_a_run_keeps_its_words_and_judges_its_chip(run: Path) -> None:
    config = json.loads((run / "config.json").read_text())
    assert config["methods"][0]["network"]["layers"] == "3c5s2-2p-8"
    (result,) = (json.loads(path.read_text()) for path in (run / "results").glob("*.json"))
    assert result["parameters"] == 3 * 25 + 8 * (7 * 7 * 3)
    assert "refused" not in result["chip"]
    assert result["energy"]["synaptic_operations"] > 0


def test_its_checkpoint_is_evaluated_exported_and_goes_on(run: Path, tmp_path: Path) -> None:
    assert main(["evaluate", str(run)]) == 0
    for to in ("fixed-point", "netx"):
        out = tmp_path / to
        assert main(["export", str(run), "--to", to, "--out", str(out), "--examples", "3"]) == 0
        assert verify(out).members == 2
    assert main(["resume", str(run)]) == 0


@pytest.mark.parametrize("words", ["3c5s2-2p-8", "2p-4"])
def test_maps_learn_in_time_blocks(words: str, tmp_path: Path) -> None:
    out, options = tmp_path / "run", without_hidden(list(TINY))
    given = ["--method", "bayes", "--network", words, "--update-every", "2"]
    assert main(["run", "digits", *given, "--out", str(out), *options]) == 0
    assert len(list((out / "results").glob("*.json"))) == 1


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--network", "16c5-2x-128"], "network '16c5-2x-128', word 2 ('2x') is none of 128 (dense)"),
        (["--network", "16c5", "--hidden", "12"], "--hidden and --network both name the layers"),
        (["--network", "4c99p0-10"], "word 1 (4c99p0): the kernel is larger than the maps below, 28 × 28"),
    ],
)
def test_mistakes(
    given: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "digits", *given]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err
    assert printed.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
