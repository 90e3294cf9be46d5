"""Trials on genuine gestures: what is tried differs in its own settings alone, and the table means over folds."""

import json
from typing import Any

import gesture_trials
import pytest

from bayspike.experiments.split_gestures import OF_MAPS


def line(stream: str, how: str, number: int, fold: int, judged: int, nll: float) -> dict[str, Any]:
    spec = gesture_trials.spec_of(stream, how, gesture_trials.TRIALS[stream][how][number], fold)
    found = {"stream": stream, "fold": fold, "spec": json.loads(json.dumps(spec)), "judged": judged}
    return {**found, "accuracy": 0.5, "ece": 0.1, "nll": nll}


def test_the_first_that_is_tried_is_what_the_preset_has() -> None:
    spec = gesture_trials.spec_of("in-tasks", "bayes", gesture_trials.TRIALS["in-tasks"]["bayes"][0], 3)
    assert spec["rule"] == OF_MAPS["bayes"]
    assert spec["training"]["epochs"] == 4
    assert spec["training"]["coreset_share"] == 0.25


@pytest.mark.parametrize("stream", gesture_trials.TRIALS)
def test_no_two_settings_of_a_learner_are_the_same(stream: str) -> None:
    for how, settings in gesture_trials.TRIALS[stream].items():
        specs = [json.dumps(gesture_trials.spec_of(stream, how, each, 3)) for each in settings]
        assert len(set(specs)) == len(specs)


def test_folds_weigh_by_their_recordings_and_only_what_differs_is_named() -> None:
    lines = [line("all-at-once", "sgd", 1, 2, 30, 1.0), line("all-at-once", "sgd", 1, 3, 10, 2.0)]
    told = gesture_trials.table(lines).splitlines()
    assert told[2:] == ["| all-at-once | sgd | lr 0.02 | 2, 3 | 50.0 | 0.100 | 1.250 |"]
