"""The tables of the docs: what a learner costs, and how it does against its controls, cut, and against others."""

from pathlib import Path

import foreign_gestures
import pytest
import tables


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
    otherwise = {"methods": {"bayes": {"controls": None, "controls_gathered": summary["methods"]["bayes"]["controls"]}}}
    assert tables.controls_gathered(otherwise).splitlines()[2:] == lines[2:4]
    assert "--controls --keep" in tables.controls_gathered(summary)


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


def interval(mean: float, half: float) -> dict:
    return {"mean": mean, "low": mean - half, "high": mean + half, "seeds": 3}


def method(predictor: str, **more: object) -> dict:
    return {"predictor": predictor, "predictors": {predictor: {}, f"{predictor}-8bit": {}}, "seeds": [0, 1, 2], **more}


def test_a_difference_is_bold_only_where_its_interval_excludes_nought() -> None:
    entry = {
        "accuracy": interval(0.02, 0.01),
        "ece": interval(0.002, 0.003),
        "nll": interval(-0.1, 0.05),
        "brier": None,
    }
    beside = {"accuracy": interval(-0.01, 0.004), "auroc_own": interval(0.2, 0.3)}
    summary = {
        "methods": {"bayes": method("committee", gathered="c-logits"), "ewc": method("point", gathered="p-logits")},
        "paired": {"ewc": entry},
        "paired_gathered": {"ewc": beside},
    }
    assert tables.paired(summary).splitlines() == [
        "| difference | predictors | seeds | accuracy, points | ECE | NLL | AUROC by own score |",
        "|---|---|---|---|---|---|---|",
        "| bayes − ewc | committee − point | 3 | **+2.00 [+1.00, +3.00]** | +0.0020 [−0.0010, +0.0050] | "
        "**−0.1000 [−0.1500, −0.0500]** |  |",
        "| bayes − ewc | c-logits − p-logits | 3 | **−1.00 [−1.40, −0.60]** |  |  | +0.2000 [−0.1000, +0.5000] |",
    ]


def test_an_older_summary_is_paired_by_what_every_seed_had() -> None:
    from bayspike.runs.outcome.paired import compare

    def each(*values: float) -> dict:
        return {"accuracy": {"mean": 0, "std": 0, "seeds": list(values)}, "ece": {"mean": 0.1, "std": 0.1}}

    ours, theirs = (0.9, 0.93, 0.92), (0.8, 0.82, 0.85)
    methods = {
        "bayes": method("committee") | {"predictors": {"committee": each(0, 0, 0), "committee-weighted": each(*ours)}},
        "sgd": method("point") | {"predictors": {"point": each(0, 0, 0), "point-weighted": each(*theirs)}},
    }
    *_, line = tables.paired({"methods": methods, "paired": {}}).splitlines()
    expected = compare(dict(enumerate(ours)), dict(enumerate(theirs)))
    assert line.startswith("| bayes − sgd | committee-weighted − point-weighted | 3 | **+9.33 [")
    assert tables.difference("accuracy", expected) in line
    assert expected["mean"] == pytest.approx(0.28 / 3)
    assert "takes two seeds" in tables.paired({"methods": {"bayes": method("committee")}})


def test_costs_have_all_bytes_where_the_summary_knows_them() -> None:
    one = {"bytes_per_synapse": 16.0, "coreset_examples": 10, "presentations": 50, "replayed": 7}
    with_total = tables.costs({"methods": {"bayes": {**one, "memory_bytes": {"total": 1234567}}, "old": one}})
    assert with_total.splitlines() == [
        "| method | bytes per synapse | coreset images | bytes kept in all | presentations | replayed |",
        "|---|---|---|---|---|---|",
        "| bayes | 16 | 10 | 1,234,567 | 50 | 7 |",
        "| old | 16 | 10 |  | 50 | 7 |",
    ]
    assert "in all" not in tables.costs({"methods": {"old": one}})


def judged(stored: int, accuracy: float, seed: int, **more: object) -> dict:
    found = {"accuracy": accuracy, "ece": 0.1, "nll": 0.5, "auroc_entropy": 0.8, "auroc_mutual_information": 0.9}
    line = {"learner": "bayes", "rule": {"kind": "GaussianVI"}, "stored": stored, "seed": seed}
    return {**line, "bytes": {"rule": 1000, "stored": 500}, "found": {"learnt": found, "zero": found}, **more}


def test_seeds_of_a_memory_size_stand_in_one_row_and_other_settings_apart() -> None:
    lines = [judged(10, 0.8, 0), judged(10, 0.9, 1), judged(10, 0.7, 0, also="neighbour"), judged(0, 0.5, 0)]
    lines[2]["rule"] = {"kind": "EWC", "strength": 1e-4, "lr": 0.1}
    found = tables.memory(lines).splitlines()
    assert found[2].startswith("| 0 | bayes | κ by default | chosen | 1 | 2 | 50.0 | 0.100 | 0.500 |")
    assert found[3].startswith("| 10 | bayes | κ by default | chosen | 2 | 2 | 85.0 ± 7.1 | 0.100 ± 0.000 |")
    assert found[4].startswith("| 10 | bayes | strength 0.0001 | beside the chosen one | 1 |")
    assert "discord" not in found[0]  # nobody was asked for it


def test_controls_of_a_memory_size_take_three_seeds() -> None:
    few, many = [judged(10, 0.8, 0)], [judged(450, 0.9, seed) for seed in range(3)]
    found = tables.memory_controls([*few, *many]).splitlines()[2:]
    assert [row.split(" | ")[:4] for row in found] == [
        ["| 450", "bayes", "κ by default", "as learnt"],
        ["| 450", "bayes", "κ by default", "zero"],
    ]


def test_the_posterior_as_it_comes_is_paired_with_its_rivals_by_seed() -> None:
    """By hand: .10, .12 and .14 have the mean .12, the deviation .02, and an interval of 4.303 · .02 / √3."""
    rival = {"kind": "SGD", "lr": 0.1}
    lines = [judged(10, 0.8 + 0.02 * seed, seed, rule={"kind": "GaussianVI", "carry_law": [1]}) for seed in range(3)]
    lines += [judged(10, 0.7, seed, learner="sgd", rule=rival) for seed in (2, 1, 0)]
    lines += [judged(45, 0.9, 0, rule={"kind": "GaussianVI", "carry_law": [1]}), judged(45, 0.5, 0, learner="sgd")]
    lines += [judged(10, 0.1, seed, rule={"kind": "GaussianVI", "carry": 3.0}) for seed in range(3)]  # set by hand
    found = [row.split(" | ") for row in tables.memory_paired(lines).splitlines()[2:]]
    assert [row[:4] for row in found] == [
        ["| 10", "sgd, rate 0.1", "3", "**+12.00 [+7.03, +16.97]**"],
        ["| 10", "its own, zero", "3", "+0.00 [+0.00, +0.00]"],
    ]


def test_what_was_left_out_is_told_with_its_mean_over_the_cases() -> None:
    def told(case: str, auroc: float) -> dict:
        scores = {"accuracy": 0.8, "auroc_mutual_information": auroc, "auroc_entropy": 0.5}
        scores |= {"auroc_discord": None, "auroc_inputs": None}
        return {"case": case, "learner": "bayes", "seed": 0, "found": {"mean": {"learnt": scores}}}

    rows = foreign_gestures.table([told("gestures-0-1", 0.6), told("gestures-2-3", 0.8), told("light-lab", 0.5)])
    assert rows.splitlines()[2:] == [
        "| gestures | mean | bayes | learnt | 80.0 ± 0.0 | 0.700 ± 0.141 | 0.500 ± 0.000 |  |  |",
        "| light | mean | bayes | learnt | 80.0 | 0.500 | 0.500 |  |  |",
    ]


def test_what_a_committee_notices_is_held_against_others_case_by_case() -> None:
    """By hand: 0.1 and 0.3 above SGD's entropy; half an interval is 12.706 · 0.1414 / √2 = 1.271."""

    def told(case: str, learner: str, name: str, known: float | None, entropy: float) -> dict:
        scores = {"auroc_mutual_information": known, "auroc_entropy": entropy}
        scores |= {"auroc_discord": None, "auroc_inputs": None}
        return {"case": case, "learner": learner, "seed": 0, "found": {"logits": {name: scores}}}

    lines = [
        told("gestures-0-1", "bayes", "learnt", 0.6, 0.6),
        told("gestures-0-1", "sgd", "point", None, 0.5),
        told("gestures-2-3", "bayes", "learnt", 0.8, 0.8),
        told("gestures-2-3", "sgd", "point", None, 0.5),
        told("gestures-4-5", "bayes", "learnt", 0.9, 0.9),
        told("light-lab", "bayes", "learnt", 0.9, 0.9),
    ]
    rows = foreign_gestures.differences(lines).splitlines()[2:]
    assert rows == [
        "| gestures | logits | its own entropy | 3 | +0.0000 [+0.0000, +0.0000] |",
        "| gestures | logits | the entropy of SGD | 2 | +0.2000 [−1.0706, +1.4706] |",
    ]
