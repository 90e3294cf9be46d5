"""Wrong labels and a worse camera: the differences are paired by seed, and lines stand in a fixed order."""

from typing import Any

import robustness


def row(learner: str, seed: int, nll: float, kind: str = "wrong labels", size: float = 0.1) -> dict[str, Any]:
    return {"kind": kind, "size": size, "learner": learner, "seed": seed, "accuracy": 0.9, "ece": 0.05, "nll": nll}


def test_differences_are_those_of_seeds_that_both_have() -> None:
    """By hand: 0.5 − 0.4 and 0.7 − 0.4; half an interval is 12.706 · 0.1414 / √2 = 1.2706."""
    rows = [row("bayes", 0, 0.5), row("bayes", 1, 0.7), row("bayes", 2, 9.0), row("sgd", 0, 0.4), row("sgd", 1, 0.4)]
    told = robustness.differences(rows).splitlines()
    assert len(told) == 3
    assert told[2].startswith("| 10 % | bayes − sgd | 2 | ")
    assert told[2].endswith("| +0.2000 [−1.0706, +1.4706] |")


def test_lines_go_by_what_is_wrong_then_by_how_much_then_by_learner() -> None:
    rows = [row("ste", 0, 1.0, "dead", 0.1), row("sgd", 0, 1.0, size=0.2), row("bayes, matched", 0, 1.0, size=0.2)]
    places = [line.split(" | ")[:3] for line in robustness.table([*rows, row("sgd", 0, 1.0)]).splitlines()[2:]]
    assert [place[0].strip("| ") + " " + place[2] for place in places] == [
        "wrong labels sgd",
        "wrong labels bayes, matched",
        "wrong labels sgd",
        "dead ste",
    ]


def test_a_learner_is_known_only_with_its_controls_at_the_same_share_and_seed() -> None:
    rows = [row(who, 0, 1.0, size=0.0) for who in robustness.speakers("bayes")] + [row("bayes", 0, 1.0)]
    assert robustness.is_known(rows, "bayes", 0.0, 0)
    assert not robustness.is_known(rows, "bayes", 0.1, 0)  # without controls
    assert not robustness.is_known(rows, "bayes", 0.0, 1)
    assert not robustness.is_known(rows, "bayes-binary", 0.0, 0)
