"""What is searched: one space for what methods share, and no way to have another for one of them."""

import math

import pytest

from bayspike.errors import UserError
from bayspike.experiments.registry import EXPERIMENTS, experiment
from bayspike.runs.plan.config import RunConfig
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.tuning.plan import default_threshold, one_learner_each, study_name, tune_from_json
from bayspike.tuning.space import SHARED, searched, settings_for, spaces, with_settings


def config(*methods: str, name: str = "digits", **changes: object) -> RunConfig:
    return one_learner_each(resolve(experiment(name), "demo", Changes(methods=methods, **changes)))


@pytest.mark.parametrize("name", sorted(EXPERIMENTS))
def test_every_method_of_every_experiment_shares_one_space(name: str) -> None:
    base = config(name=name)
    shared, own = spaces(base.methods)
    for each in base.methods:
        ranges = searched(each, shared, own[each.method])
        assert list(ranges)[: len(SHARED)] == list(SHARED)  # drawn first, in the same order
        assert {key: ranges[key] for key in SHARED} == dict(SHARED)
        lowest = with_settings(each, {key: value.low for key, value in ranges.items()})
        highest = with_settings(each, {key: value.high for key, value in ranges.items()})
        assert lowest.network.readout_scale == SHARED["network.readout_scale"].low
        assert highest.rule["init_scale"] == SHARED["init_scale"].high


def test_a_range_of_one_method_alone_for_what_all_share_is_refused() -> None:
    methods = config("sgd", "ewc").methods
    for key in ("sgd.network.readout_scale", "ewc.init_scale", "sgd.network.slope", "sgd.training.batch"):
        with pytest.raises(UserError, match="the same for all"):
            spaces(methods, [f"{key}=[1,2]"])
    shared, own = spaces(methods, ["network.slope=[1,10]", "ewc.strength=[1e-5,1e-3]", "init_scale=none"])
    assert shared["network.slope"].log
    assert "init_scale" not in shared
    assert own["ewc"]["strength"].high == 1e-3
    assert "strength" not in own["sgd"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sgd.lr=[1]", "two numbers"),
        ("sgd.lr=[2,1]", "lower and a higher"),
        ("sgd.warp=[1,2]", "no 'warp'"),
        ("x=none", "nothing"),
    ],
)
def test_mistakes_in_a_range_are_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        spaces(config("sgd").methods, [text])


def test_thresholds_are_in_units_of_the_default() -> None:
    real, binary = config("sgd", "ste").methods
    drawn = {"network.threshold": 0.5, "network.membrane_decay": 0.75}
    assert settings_for(drawn, default_threshold(real, {"membrane_decay": 0.75}, 784))["network.threshold"] == 0.5
    # √784 inputs, times the gain (1 − 0)·(1 − 0.75) of the filter
    expected = 0.5 * 28 * 0.25
    found = settings_for(drawn, default_threshold(binary, {"membrane_decay": 0.75}, 784))["network.threshold"]
    assert math.isclose(found, expected)


def test_natural_units_have_no_rate_to_search() -> None:
    assert "lr" not in spaces(config("bayes").methods)[1]["bayes"]
    assert "lr" in spaces(config("bayes", name="split-mnist").methods)[1]["bayes"]
    assert set(spaces(config("bayes-stream").methods)[1]["bayes-stream"]) == {"prior_std", "remember"}


def test_a_configuration_comes_back_from_its_file_and_names_its_study() -> None:
    from dataclasses import replace

    from bayspike.storage.files import plain_numbers
    from bayspike.storage.plain import to_plain
    from bayspike.tuning.plan import TuneConfig

    base = config("sgd", "ewc")
    shared, own = spaces(base.methods)
    made = TuneConfig(base, 3, shared, {name: dict(each) for name, each in own.items()}, division={"judged_by": 2})
    again = tune_from_json(plain_numbers(to_plain(made)), "tune.json")
    assert again == made
    # where and how fast it runs does not matter, what is searched does
    elsewhere = replace(made, trials=9, storage="sqlite:///x", base=replace(base, threads=7, device="cuda"))
    assert study_name(elsewhere, "sgd") == study_name(made, "sgd") != study_name(made, "ewc")
    assert study_name(replace(made, seed=1), "sgd") != study_name(made, "sgd")
    assert study_name(replace(made, objective="accuracy"), "sgd") != study_name(made, "sgd")
