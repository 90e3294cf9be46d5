"""`evaluate --controls` and `--prune`, and what a run keeps of its controls and its spread."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_run import TINY
from torch import Tensor

from bayspike.cli import main
from bayspike.continual.tasks import Concatenated, split_by_class
from bayspike.data import load
from bayspike.hardware import nir
from bayspike.posteriors.draws import normal
from bayspike.predict.controls import CONTROLS
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.runs.models import load_model
from bayspike.runs.outcome.examination import committee_generator
from bayspike.runs.plan.prepare import stratified
from bayspike.seeds import generator_for


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--test-examples", "1"], "--controls needs two test examples or more"),
        (["--predictor", "mean"], "leave out --predictor"),
        (["--gather", "logits"], "leave out --predictor, --gather"),
        (["--coverage", "0.9"], "--coverage"),
        (["--temperature"], "--temperature"),
        (["--foreign"], "--foreign"),
        (["--foreign", "--keep"], "--foreign"),
    ],
)
def test_what_does_not_go_with_controls_is_said(run: Path, capsys: pytest.CaptureFixture[str], arguments, sentence):
    assert main(["evaluate", str(run), "--controls", *arguments]) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--gather", "logits"], "--prune judges committees in one way: leave out --predictor, --gather"),
        (["--foreign"], "--foreign"),
        (["--controls"], "ask for one of them, or for both with --keep"),
    ],
)
def test_what_does_not_go_with_pruning_is_said(run: Path, capsys: pytest.CaptureFixture[str], arguments, sentence):
    assert main(["evaluate", str(run), "--prune", "0.5", *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_pruned_networks_are_judged_by_both_criteria(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["evaluate", str(run), "--prune", "0.5", "0.99", "--test-examples", "20", "--json"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)["pruned"]
    assert [(row["pruned"], row["by"]) for row in rows] == [
        (0.0, ""), (0.5, "signal"), (0.5, "size"), (0.99, "signal"), (0.99, "size"),
    ]  # fmt: skip
    assert main(["evaluate", str(run), "--prune", "1.5"]) == 2
    assert "share to prune must lie in [0, 1)" in capsys.readouterr().err


def test_a_pruned_committee_is_exported(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Half of the 784 × 16 synapses by each criterion; what is left are those with the largest scores."""
    learnt = load_model(run).posteriors[0]
    scores = {
        "size": learnt.mean().abs(),
        "signal-to-noise": learnt.mean().abs() * learnt.precision.sqrt(),  # type: ignore[attr-defined]
    }
    for by, score in scores.items():
        out = tmp_path / by
        command = ["export", str(run), "--out", str(out), "--to", "nir", "--prune", "0.5", "--prune-by", by]
        assert main([*command, "--examples", "4"]) == 0
        assert f"50% of the synapses cut by {by}: 6,272 left." in capsys.readouterr().out
        there = nir.read(out / "member_000.nir").layers[0].weight[0] != 0
        np.testing.assert_array_equal(there, (score > score.flatten().median()).numpy())
    assert main(["export", str(run), "--out", str(tmp_path / "chip"), "--prune", "0.9", "--examples", "4"]) == 0
    assert "µJ" in capsys.readouterr().out
    price = json.loads((tmp_path / "chip" / "manifest.json").read_text("utf-8"))
    assert price["metadata"]["pruned"] == 0.9
    assert price["budget"]["layers"][0]["synapses"] == price["kept_synapses"][0] == 784 * 16 - int(0.9 * 784 * 16)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--prune", "1.5"], "share to prune must lie in [0, 1)"),
        (["--prune", "0.5", "--to", "packed"], "two bytes for a synapse"),
        (["--prune-by", "signal-to-noise"], "needs --prune"),
        (["--prune", "0.5", "--prune-by", "signal-to-noise", "--job", "sgd-seed0"], "prune it by size"),
    ],
)
def test_what_cannot_be_pruned_is_said(run, tmp_path, capsys, arguments, sentence) -> None:
    assert main(["export", str(run), "--out", str(tmp_path / "no"), *arguments]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def draws(mean: Tensor, members: int) -> Tensor:
    return normal((members, *mean.shape), mean, committee_generator(0))


def test_what_is_kept_is_in_summary_report_and_figures(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    result = copy / "results" / "bayes-seed0.json"
    before = result.read_bytes()
    assert main(["evaluate", str(copy), "--prune", "0.9", "0.5", "--controls", "--keep"]) == 0
    assert "bayes-seed0: fewer synapses, 20 test" in capsys.readouterr().out.replace("\n", " ")
    assert result.read_bytes() == before
    summary = json.loads((copy / "summary.json").read_text("utf-8"))
    rows = summary["methods"]["bayes"]["pruning"]
    assert [(row["pruned"], row["by"]) for row in rows] == [
        (0.0, ""), (0.9, "signal"), (0.9, "size"), (0.5, "signal"), (0.5, "size"),
    ]  # fmt: skip
    # nine tenths by size, cut by hand: the same draws of the same means, with a mask
    model, digits = load_model(copy), load("digits", time=8)
    mean, precision = model.posteriors[0].mean(), model.posteriors[0].precision  # type: ignore[attr-defined]
    large = mean.abs() >= mean.abs().flatten().kthvalue(int(0.9 * mean.numel()) + 1).values
    drawn = (mean + draws(mean, 2) / precision.sqrt()) * large
    tests = tuple(task.test for task in split_by_class(replace(digits, test=stratified(digits.test, 20, 0, ""))).judges)
    done = predict_samples(Committee(model.network, [drawn]), Concatenated(tests), generator_for(0, "final"))
    right = done.probabilities[-1].argmax(-1) == Concatenated(tests).labels
    assert rows[2]["accuracy"]["mean"] == pytest.approx(float(right.float().mean()))
    assert [row["by"] for row in summary["methods"]["sgd"]["pruning"]] == ["", "size", "size"]
    assert (
        summary["methods"]["bayes"]["controls"]
        == json.loads((run / "summary.json").read_text("utf-8"))["methods"]["bayes"]["controls"]
    )  # judged again as it was judged then
    assert '<section id="pruning"' in (copy / "report.html").read_text("utf-8")
    names = [each["name"] for each in json.loads((copy / "figures" / "index.json").read_text("utf-8"))]
    assert names[-1] == "pruning"
    assert len(set(names)) == len(names)
    with (copy / "figures" / "pruning.csv").open() as lines:
        line = [each for each in csv.DictReader(lines) if (each["method"], each["cut_by"]) == ("bayes", "size")]
    assert [float(each["share_cut"]) for each in line] == [0, 0.5, 0.9]
    assert float(line[2]["accuracy"]) == pytest.approx(rows[2]["accuracy"]["mean"])
    kept = copy / "asked" / "bayes-seed0.json"
    kept.write_text(kept.read_text("utf-8").replace('"pruned": 0.9', '"pruned": 0.8'))
    assert main(["report", str(copy)]) == 2
    assert "digest does not fit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--keep"], "say what to keep"),
        (["--keep", "--controls", "--test-examples", "5"], "leave out --dataset"),
        (["--keep", "--controls", "--job", "ewc-seed0"], "no finished job 'ewc-seed0'"),
    ],
)
def test_what_cannot_be_kept_is_said(run: Path, capsys: pytest.CaptureFixture[str], arguments, sentence) -> None:
    assert main(["evaluate", str(run), *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_precision_that_was_not_learnt_is_said_at_the_end_and_in_the_report(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "paper-units"
    settings = ["bayes.lr=100", "bayes.temperature=1e-8", "bayes.precision_lr=10", "bayes.prior_precision=300"]
    assert main(["run", "digits", "--method", "bayes", "--out", str(out), *TINY, "--set", *settings]) == 0
    told = capsys.readouterr()
    # twelve images of a task in mini-batches of 16 at 8 steps
    assert "needs 10,000,000 updates to settle and had 8 in this task" in " ".join(told.err.split())
    assert "hardly learnt" in told.out
    assert "hardly learnt" in (out / "report.html").read_text("utf-8")
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    assert len(summary["methods"]["bayes"]["warnings"]) == 1
    natural = json.loads((run / "summary.json").read_text("utf-8"))
    assert not [each for each in natural["methods"]["bayes"]["warnings"] if "hardly learnt" in each]


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
    with np.load(run / "results" / "bayes-seed0.npz", allow_pickle=False) as arrays:
        course = arrays["precision"]
    assert course.shape == (5, 1, 3)
    np.testing.assert_allclose(course[-1, 0], np.quantile(precision, [0.05, 0.5, 0.95]), rtol=1e-3)
    with np.load(run / "results" / "sgd-seed0.npz", allow_pickle=False) as arrays:
        assert not arrays["spread"].any()
        assert "precision" not in arrays


def test_controls_of_a_run_that_gathers_otherwise_stand_that_way_too(run: Path, tmp_path: Path) -> None:
    out, gathers = tmp_path / "gathered", ["--gather", "weighted", "--held-back", "2"]
    assert main(["run", "digits", "--method", "bayes", "sgd", "--out", str(out), *TINY, *gathers]) == 0
    for label, spreads in (("bayes", {"learnt", *CONTROLS}), ("sgd", {"point", "noise"})):
        plain, found = (
            json.loads((out / "summary.json").read_text("utf-8"))["methods"][label][kind]
            for kind in ("controls", "controls_gathered")
        )
        assert set(plain) == set(found) == spreads
        assert all(found[name]["nll"]["mean"] != plain[name]["nll"]["mean"] for name in spreads)
    assert "bayes, weighted, scaled" in (out / "report.html").read_text("utf-8")
    before = json.loads((run / "summary.json").read_text("utf-8"))["methods"]["bayes"]
    assert before["controls_gathered"] is None


def test_a_run_judges_controls_on_as_many_examples_as_it_is_told(tmp_path: Path) -> None:
    for count, expected in ((6, {"examples": 6}), (0, None)):
        out = tmp_path / str(count)
        asked = ["--method", "sgd", "--control-examples", str(count)]
        assert main(["run", "digits", "--out", str(out), *TINY, *asked]) == 0
        found = json.loads((out / "results" / "sgd-seed0.json").read_text("utf-8"))
        found = found.get("result", found)["controls"]
        assert (found and {"examples": found["examples"]}) == expected
