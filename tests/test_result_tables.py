"""The tables of the docs that hold a learner against its controls, and without some of its synapses."""

import importlib.util
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("tables", Path(__file__).parents[1] / "studies" / "tables.py")
assert SPEC is not None
assert SPEC.loader is not None
tables = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(tables)


def measured(*values: float | None) -> dict:
    names = ("accuracy", "ece", "nll", "auroc_mutual_information", "auroc_entropy")
    return {
        name: None if value is None else {"mean": value, "std": 0.01, "seeds": [value]}
        for name, value in zip(names, values, strict=True)
    }


def test_controls_stand_below_what_was_learnt() -> None:
    summary = {
        "methods": {
            "bayes": {
                "controls": {"zero": measured(0.8, 0.1, 0.5, None, 0.7), "learnt": measured(0.9, 0.02, 0.3, 0.95, 0.9)}
            },
            "sgd": {
                "controls": {"point": measured(0.7, 0.2, 0.9, None, 0.6), "noise": measured(0.71, 0.1, 0.8, 0.8, 0.7)}
            },
            "old": {"controls": None},
        }
    }
    lines = tables.controls(summary).splitlines()
    assert lines[0].count("|") == 8
    assert (
        lines[2]
        == "| bayes | as learnt | 90.00 ± 1.00 | 0.0200 ± 0.0100 | 0.300 ± 0.010 | 0.950 ± 0.010 | 0.900 ± 0.010 |"
    )
    assert lines[3] == "| bayes | zero | 80.00 ± 1.00 | 0.1000 ± 0.0100 | 0.500 ± 0.010 |  | 0.700 ± 0.010 |"
    assert [line.split(" | ")[1] for line in lines[4:]] == ["a point", "its best noise"]
    assert "--controls --keep" in tables.controls({"methods": {"old": {}}})


def test_a_column_for_every_share_and_a_row_for_every_order() -> None:
    def row(share: float, by: str, accuracy: float) -> dict:
        return {"pruned": share, "by": by, "accuracy": {"mean": accuracy, "std": None}}

    rows = [row(0, "", 0.9), row(0.95, "signal", 0.5), row(0.95, "size", 0.6), row(0.5, "size", 0.89)]
    text = tables.pruning({"methods": {"bayes": {"pruning": rows}, "tacos": {"pruning": None}}})
    assert text.splitlines() == [
        "| method | cut by | 0 % cut | 50 % cut | 95 % cut |",
        "|---|---|---|---|---|",
        "| bayes | size | 90.00 | 89.00 | 60.00 |",
        "| bayes | signal to noise | 90.00 |  | 50.00 |",
    ]


def test_every_kind_can_be_asked_for_on_the_page(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"methods": {}}')
    page = tables.fill("a\n<!-- controls x -->\nold\n<!-- end -->\nb", tmp_path)
    assert "No controls were judged" in page
    assert "old" not in page
