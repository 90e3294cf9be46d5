"""The panel of differences shows the summary's intervals and says which of them are more than chance."""

import json
import shutil
from pathlib import Path

from parsed import parse, table

from bayspike.report import write_report


def test_intervals_and_verdicts(run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run, tmp_path / "run"))
    summary = json.loads((run / "summary.json").read_text())
    summary["paired"] = {
        "bayes": {
            "accuracy": {"mean": -0.02, "low": -0.03, "high": -0.01, "seeds": 3},
            "ece": {"mean": -0.001, "low": -0.004, "high": 0.002, "seeds": 3},
            "nll": {"mean": -0.1, "low": -0.15, "high": -0.05, "seeds": 3},
            "brier": None,
        }
    }
    (run / "summary.json").write_text(json.dumps(summary))
    page = tmp_path / "page.html"
    write_report([run], page)
    (row,) = [row for row in table(parse(page.read_text()), "paired") if row[0].text.endswith("bayes")]
    assert row[0].text == "sgd − bayes"
    assert row[1].text == "−2.00 [−3.00, −1.00] behind"
    assert row[2].text == "−0.0010 [−0.0040, +0.0020] within chance"
    assert row[3].text == "−0.1000 [−0.1500, −0.0500] ahead"
    assert row[4].text == "–"


def test_one_seed_has_no_panel(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    write_report([run], page)
    assert '<section id="paired"' not in page.read_text()


def test_the_other_way_to_gather_and_foreign_inputs_stand_beside(run: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(run, tmp_path / "run"))
    summary = json.loads((run / "summary.json").read_text())
    ahead = {"mean": 0.02, "low": 0.01, "high": 0.03, "seeds": 3}
    summary["paired"] = {"bayes": {"accuracy": ahead, "auroc_own": {**ahead, "low": -0.01}}}
    summary["paired_gathered"] = {"bayes": {"accuracy": ahead}}
    summary["methods"]["sgd"]["gathered"] = "point-logits"
    summary["methods"]["bayes"]["gathered"] = "committee-logits"
    (run / "summary.json").write_text(json.dumps(summary))
    root = parse(write_report([run], tmp_path / "page.html").read_text())
    plain, beside = [row for row in table(root, "paired") if "bayes" in row[0].text]
    assert beside[0].text == "sgd − bayes (point-logits − committee-logits)"
    assert plain[1].text == beside[1].text == "+2.00 [+1.00, +3.00] ahead"
    assert [plain[5].text, plain[6].text] == ["–", "+0.0200 [−0.0100, +0.0300] within chance"]
    assert [beside[5].text, beside[6].text] == ["–", "–"]
