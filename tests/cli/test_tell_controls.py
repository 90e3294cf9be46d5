"""`evaluate --controls` and `--prune`, and what a run keeps of its controls and its spread."""

import json
from pathlib import Path

import numpy as np
import pytest

from bayspike.cli import main
from bayspike.predict.controls import CONTROLS
from bayspike.runs.models import load_model


def test_a_posterior_beside_its_controls(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run), "--controls", "--test-examples", "60", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["controls"]) == {"learnt", *CONTROLS}
    assert found["examples"] == 30  # the other half chose
    assert found["controls"]["zero"]["auroc_mutual_information"] is None
    assert found["controls"]["learnt"]["auroc_entropy"] is not None  # shuffled digits
    assert main(["evaluate", str(run), "--job", "sgd-seed0", "--controls", "--test-examples", "60"]) == 0
    shown = capsys.readouterr().out
    assert "noise" in shown
    assert "root mean square" in shown.replace("\n", " ")


def test_pruned_networks_are_judged_by_both_criteria(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(run), "--prune", "0.5", "0.99", "--test-examples", "20", "--json"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)["pruned"]
    assert [(row["pruned"], row["by"]) for row in rows] == [
        (0.0, ""), (0.5, "signal"), (0.5, "size"), (0.99, "signal"), (0.99, "size"),
    ]  # fmt: skip
    assert main(["evaluate", str(run), "--prune", "1.5"]) == 2
    assert "share to prune must lie in [0, 1)" in capsys.readouterr().err


def test_a_run_keeps_its_controls_and_its_spread(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    table = summary["methods"]["bayes"]["controls"]
    assert set(table) == {"learnt", *CONTROLS}
    assert len(table["matched"]["nll"]["seeds"]) == 1
    assert set(summary["methods"]["sgd"]["controls"]) == {"point", "noise"}
    with np.load(run / "results" / "bayes-seed0.npz", allow_pickle=False) as arrays:
        spread = arrays["spread"]
    assert spread.shape == (5, 784)
    precision = load_model(run).posteriors[0].precision.numpy()  # type: ignore[attr-defined]
    np.testing.assert_allclose(spread[-1], np.sqrt((1 / precision).mean(axis=0)), rtol=1e-3)
    with np.load(run / "results" / "sgd-seed0.npz", allow_pickle=False) as arrays:
        assert not arrays["spread"].any()
