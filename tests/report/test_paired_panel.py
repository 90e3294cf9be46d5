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
