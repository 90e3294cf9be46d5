"""The tables hold the numbers of summary.json and of the results, unrounded in `data-value` and rounded in sight."""

import json
import statistics
from pathlib import Path

import pytest
from parsed import bodies, parse, table
from synthetic import make_run

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


def test_published_numbers_stand_once_at_the_bottom(report: Path) -> None:
    ours, paper = bodies(parse(report.read_text()), "headline")
    assert not [cell for row in ours for cell in row if "paper" in cell.text]
    assert [cell.text for cell in paper[0]] == ["Published numbers, on mnist (60,000 + 10,000 images)"]
    assert paper[0][0].attributes["colspan"] == str(len(ours[0]))
    assert [row[0].text for row in paper[1:]] == ["Frequentist paper", "Another rule paper"]
    assert [cell.text for cell in paper[1][1:4]] == ["point", "77.19 ± 0.65 %", "0.390 ± 0.010"]
    assert [cell.text for cell in paper[2][2:5]] == ["83.45 ± 0.55 %", "–", "–"]


def test_published_numbers_of_another_data_set_are_marked(run: Path, tmp_path: Path) -> None:
    elsewhere = make_run(tmp_path / "elsewhere", same_data=False, seeds=1)
    paper = bodies(parse(write_report([elsewhere]).read_text()), "headline")[1]
    assert paper[0][0].text == (
        "Published numbers, on mnist (60,000 + 10,000 images); this run has another data set, so the numbers cannot be "
        "compared one to one"
    )
    assert [row[0].text.endswith("paper, other data") for row in paper[1:]] == [True, True]
    both = bodies(parse(write_report([run, elsewhere], tmp_path / "both.html").read_text()), "headline")[1]
    assert "; elsewhere had another data set" in both[0][0].text
    assert [row[1].text for row in both[1:]] == ["Frequentist paper", "Another rule paper"]  # once for both runs
    assert len({len(row) for row in both[1:]}) == 1


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


def test_a_comparison_says_first_what_differs(run: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", labels=("bayes", "ewc"), seeds=1, lr=0.3, foreign=True)
    page = parse(write_report([run, other], tmp_path / "both.html").read_text())
    assert page.every("section")[0].attributes["id"] == "differences"
    assert [cell.text for cell in page.every("table", id="differences")[0].every("thead")[0].every("th")][1:] == [
        "plain",
        "other",
    ]
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table(page, "differences")}
    assert rows == {
        "seeds": ["0, 1", "0"],
        "learners": ["sgd, bayes", "bayes, ewc"],
        "bayes.rule.lr": ["0.1", "0.3"],
    }


def test_runs_in_which_nothing_differs_say_so(run: Path, tmp_path: Path) -> None:
    page = parse(write_report([run, run], tmp_path / "twice.html").read_text())
    assert "Nothing that was recorded differs" in page.every("section", id="differences")[0].text
    alone = parse(write_report([run], tmp_path / "alone.html").read_text())
    assert not alone.every("section", id="differences")
