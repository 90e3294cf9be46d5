"""The tables hold the numbers of summary.json and of the results, unrounded in `data-value` and rounded in sight."""

import json
import statistics
from pathlib import Path

import pytest
from parsed import parse, table

from bayspike.report import write_report

SCORES = ("accuracy", "ece", "nll", "brier")


def test_headline_table_equals_the_summary(run: Path, report: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    found = table(parse(report.read_text()), "headline")
    rows = {row[0].text: row for row in found if row[0].tag == "th"}
    minor = {(row[0].text, row[1].text): row for row in found if row[0].tag == "td"}
    for label, name in (("bayes", "mean"), ("bayes", "committee-8bit")):
        stated = summary["methods"][label]["predictors"][name]["ece"]["mean"]
        assert float(minor[label, name][3].attributes["data-value"]) == stated
    assert len(minor) == 2  # every other predictor once
    for label, scores in summary["methods"].items():
        cells = {cell.attributes["data-key"]: cell for cell in rows[label] if "data-key" in cell.attributes}
        for key in SCORES:
            mean, std = scores[key]["mean"], scores[key]["std"]
            assert float(cells[key].attributes["data-value"]) == mean
            shown = f"{100 * mean:.2f} ± {100 * std:.2f} %" if key == "accuracy" else f"{mean:.3f} ± {std:.3f}"
            assert cells[key].text == shown
        assert cells["ood_auroc"].text == "0.812 ± 0.020"
        assert float(cells["ood_auroc"].attributes["data-value"]) == scores["ood_auroc"]["mean"]
        assert rows[label][1].text == scores["predictor"]
        assert rows[label][-1].text == "2"


def test_published_numbers_stand_below_the_method_they_belong_to(report: Path) -> None:
    rows = [row for row in table(parse(report.read_text()), "headline") if row[0].tag == "th"]
    names = [row[0].text for row in rows]
    at = names.index("sgd")
    assert names[at + 1].split() == ["Frequentist", "paper"]
    assert rows[at + 1][2].text == "77.19 ± 0.65 %"
    assert rows[at + 1][3].text == "0.390 ± 0.010"
    assert names[-1] == "Another rule paper"  # no method of the run is like it
    assert [cell.text for cell in rows[-1][2:5]] == ["83.45 ± 0.55 %", "–", "–"]


def test_continual_and_cost_tables(run: Path, report: Path) -> None:
    root = parse(report.read_text())
    forgetting = statistics.fmean([0.2, 0.21])
    spread = statistics.stdev([0.2, 0.21])
    for row in table(root, "continual"):
        (cell,) = [each for each in row if each.attributes.get("data-key") == "forgetting"]
        assert float(cell.attributes["data-value"]) == pytest.approx(forgetting)
        assert cell.text == f"{100 * forgetting:.2f} ± {100 * spread:.2f} %"
    results = json.loads((run / "results" / "bayes-seed0.json").read_text())
    costs = {row[0].text: [cell.text for cell in row] for row in table(root, "costs")}
    assert costs["bayes"][1:4] == ["57 600", "456.3 KiB", "8.00"]  # 467,280 / 1024
    assert costs["bayes"][-1] == "10 µJ"
    assert results["fixed_point"] is not None
    assert costs["sgd"][7] == "–"  # it has no rounded predictor
    assert costs["bayes"][7] != "–"


def test_scores_of_foreign_inputs(report: Path) -> None:
    rows = {
        (row[0].text, row[1].text): [cell.text for cell in row[2:]]
        for row in table(parse(report.read_text()), "foreign-scores")
    }
    assert rows["sgd", "entropy"] == ["0.830 ± 0.000", "0.720 ± 0.000", "0.380 ± 0.000"]


def test_several_runs_share_one_table(run: Path, simulated_run: Path, tmp_path: Path) -> None:
    page = parse(write_report([run, simulated_run], tmp_path / "both.html").read_text())
    first = [(row[0].text, row[1].text) for row in table(page, "headline")]
    assert ("plain", "sgd") in first
    assert ("made-up", "sgd simulated data") in first


def test_runs_of_the_same_name_are_told_apart(run: Path, tmp_path: Path) -> None:
    page = parse(write_report([run, run], tmp_path / "twice.html").read_text())
    assert {row[0].text for row in table(page, "headline")} == {"plain (1)", "plain (2)"}
