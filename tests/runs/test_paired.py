"""Differences paired by seed, beside scipy's paired t-test, and when a lead counts."""

import pytest
from scipy import stats

from bayspike.runs.outcome.paired import against_first, better, compare

OURS = {0: 0.91, 1: 0.93, 2: 0.92, 3: 0.95}
THEIRS = {0: 0.90, 1: 0.91, 2: 0.92, 3: 0.93, 7: 0.2}


def test_the_interval_is_that_of_the_paired_t_test() -> None:
    found = compare(OURS, THEIRS)
    assert found is not None
    test = stats.ttest_rel([OURS[s] for s in range(4)], [THEIRS[s] for s in range(4)])
    interval = test.confidence_interval(0.95)
    assert found["seeds"] == 4  # a seed that only one of them has does not count
    assert found["mean"] == pytest.approx(0.0125)
    assert (found["low"], found["high"]) == pytest.approx((interval.low, interval.high))


def test_one_seed_says_nothing() -> None:
    assert compare({0: 1.0}, {0: 0.5}) is None
    assert compare({0: 1.0, 1: 1.0}, {2: 0.5, 3: 0.5}) is None


@pytest.mark.parametrize(
    ("measure", "low", "high", "verdict"),
    [
        ("accuracy", 0.01, 0.02, True),
        ("accuracy", -0.02, -0.01, False),
        ("nll", -0.02, -0.01, True),
        ("ece", 0.01, 0.02, False),
        ("nll", -0.01, 0.02, None),
        ("auroc_own", 0.01, 0.02, True),
    ],
)
def test_a_lead_counts_only_beyond_the_interval(measure: str, low: float, high: float, verdict: bool | None) -> None:
    assert better(measure, {"mean": (low + high) / 2, "low": low, "high": high}) is verdict


def test_every_other_method_is_set_against_the_first() -> None:
    def results(values: dict[int, float]) -> list[dict[str, object]]:
        return [
            {"seed": seed, "headline_predictor": "point", "final": {"point": {"overall": {"accuracy": value}}}}
            for seed, value in values.items()
        ]

    found = against_first({"ours": results(OURS), "none": [], "theirs": results(THEIRS)}, ["accuracy"])
    assert list(found) == ["theirs"]
    assert found["theirs"]["accuracy"]["mean"] == pytest.approx(0.0125)
    assert against_first({"ours": results(OURS)}, ["accuracy"]) == {}
