"""Tuning as a whole: the same trials for everyone, nothing of the test examples, and exact resume."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor

from bayspike.cli import main
from bayspike.data.base import Samples
from bayspike.experiments.registry import experiment
from bayspike.runs.jobs import Interrupted, Stop
from bayspike.runs.plan.config import config_from_json
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.runs.reporting import Moment, Quiet
from bayspike.storage.files import read_json
from bayspike.tuning.plan import TuneConfig, TuneDirectory, divide, one_learner_each, open_tuning
from bayspike.tuning.record import read_record, tuned_settings, write_record
from bayspike.tuning.space import spaces
from bayspike.tuning.trial import run_trial

pytest.importorskip("optuna", reason="needs Optuna: pip install 'bayspike[tune]'")

from bayspike.tuning.carry_out import begun, run_methods, take_up

SMALL = {
    "network": {"hidden": (12,)},
    "training": {"batch": 16, "evaluations": 1, "fisher_examples": 5},
    "data": {"time": 6, "train_examples": 100, "test_examples": 20},
}
TINY = [
    "--hidden", "12", "--time", "6", "--train-examples", "100", "--test-examples", "20", "--batch", "16",
    "--members", "2", "--threads", "1", "--parallel", "1", "--quiet", "--evaluations", "1",
]  # fmt: skip


def configured(*methods: str, trials: int = 5) -> TuneConfig:
    changes = Changes(methods=methods, run={"threads": 1}, **SMALL)
    base = one_learner_each(resolve(experiment("digits"), "demo", changes))
    shared, own = spaces(base.methods)
    return TuneConfig(base, trials, shared, {name: dict(each) for name, each in own.items()})


def tried(record: dict[str, Any]) -> dict[str, list[Any]]:
    """All trials but for the seconds they took."""
    return {
        name: [{key: value for key, value in each.items() if key != "seconds"} for each in found["trials"]]
        for name, found in record["methods"].items()
    }


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tuned") / "sgd-ewc"
    command = ["tune", "digits", "--method", "sgd", "ewc", "--trials", "5", "--out", str(out), *TINY]
    assert main(command) == 0
    return out


def test_every_method_has_as_many_trials_and_begins_with_the_same_networks(tuned: Path) -> None:
    record = read_record(tuned)
    sgd, ewc = (record["methods"][name]["trials"] for name in ("sgd", "ewc"))
    assert len(sgd) == len(ewc) == 5
    for one, other in zip(sgd, ewc, strict=True):
        for name in record["shared"]:
            assert one["settings"][name] == other["settings"][name]
    assert record["division"] == {**record["division"], "learnt_from": 80, "judged_by": 20}
    assert (tuned / "study.sqlite3").is_file()
    for found in record["methods"].values():
        values = [each["value"] for each in found["trials"] if each["value"] is not None]
        assert found["best"]["value"] == min(values)


class Poison:
    """Test examples that nobody may look at."""

    def __init__(self, like: Samples) -> None:
        self.labels, self.time, self.inputs = like.labels, like.time, like.inputs

    def __len__(self) -> int:
        return len(self.labels)

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        raise AssertionError("the test examples were looked at")

    def subset(self, indices: Tensor) -> Samples:
        raise AssertionError("the test examples were looked at")


def test_test_examples_are_never_looked_at_and_validation_ones_never_learnt_from() -> None:
    config, bench = open_tuning(configured("sgd"), experiment("digits"))
    from bayspike.runs.plan.prepare import load_data

    whole = load_data(experiment("digits"), config.base.data)
    divided, _ = divide(replace(whole, test=Poison(whole.test)), 0.2, 0)  # type: ignore[arg-type]
    bench = replace(bench, dataset=divided, stream=bench.experiment.stream(divided))
    outcome = run_trial(
        bench, config.methods[0], 0, "nll", lambda step, value: None, Quiet(Console(quiet=True)), Stop(), ""
    )
    assert outcome.scores["examples"] == len(divided.test) == 20
    learnt = {tuple(row) for row in divided.train.values.tolist()}  # type: ignore[attr-defined]
    assert not learnt & {tuple(row) for row in divided.test.values.tolist()}  # type: ignore[attr-defined]


def test_interrupted_anywhere_it_goes_on_to_the_same_trials(tuned: Path, tmp_path: Path) -> None:
    class Impatient(Quiet):
        left = 17

        def batch(self, moment: Moment) -> None:
            self.left -= 1
            stop.asked = self.left <= 0

    stop, stops = Stop(), 0
    whole = TuneConfig(**vars(take_up(TuneDirectory(tuned), experiment)[0]))
    with begun(replace(whole, division={}), experiment("digits"), tmp_path / "t", force=False, command=[]) as opened:
        directory, config, bench = opened
        while True:
            stop.asked = False
            try:
                run_methods(directory, config, bench, Impatient(Console(quiet=True)), stop, 1, "")
                break
            except Interrupted:
                stops += 1
                config, bench = take_up(directory, experiment)
    assert stops >= 4
    assert tried(read_record(tmp_path / "t")) == tried(read_record(tuned))


def test_several_methods_at_a_time_give_the_same_trials(tuned: Path, tmp_path: Path) -> None:
    command = ["tune", "digits", "--method", "sgd", "ewc", "--trials", "5", "--out", str(tmp_path / "t"), *TINY]
    command[command.index("--parallel") + 1] = "2"
    assert main(command) == 0
    assert tried(read_record(tmp_path / "t")) == tried(read_record(tuned))


def test_a_run_takes_the_settings_and_its_report_shows_what_was_tried(tuned: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["run", "digits", "--method", "sgd", "ewc", "finetune", "--tuned", str(tuned), "--out", str(out), *TINY]
    assert main([*command, "--set", "ewc.strength=0.5"]) == 0
    config = config_from_json(read_json(out / "config.json"), "config")
    record = read_record(tuned)
    best = {name: found["best"]["settings"] for name, found in record["methods"].items()}
    for chosen, tuned_as in zip(config.methods, ("sgd", "ewc", "sgd"), strict=True):
        assert chosen.rule["lr"] == best[tuned_as]["lr"]
        assert chosen.network.threshold == best[tuned_as]["network.threshold"]
    assert config.methods[1].rule["strength"] == 0.5  # what is said wins
    assert read_record(out / "tuning.json") == record
    page = (out / "report.html").read_text()
    assert "What was tried" in page
    assert "the test examples took no part" in page
    assert "What was tried" in (tuned / "report.html").read_text()


def test_the_command_that_is_told_names_rules_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bayspike.cli.tune import as_options
    from bayspike.storage import named

    (tmp_path / "tuned_rules.py").write_text("from bayspike.rules import SGD\n\n\nclass Plain(SGD):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(named, "_PERMITTED", set())
    assert main(["tune", "digits", "--rule", "tuned_rules:Plain", "--trials", "1", "--out", "t", *TINY]) == 0
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Use them: bayspike ")]
    assert told.endswith("run digits --preset demo --rule tuned_rules:Plain --tuned t")
    assert main([*told.removeprefix("Use them: bayspike ").split(), "--out", "run", *TINY]) == 0
    assert as_options(["mine:A", "sgd", "mine:B", "ewc"]) == "--method sgd ewc --rule mine:A mine:B"
    assert as_options(["sgd"]) == "--method sgd"


def test_a_second_machine_works_on_the_trials_of_a_shared_database(tmp_path: Path) -> None:
    command = ["tune", "digits", "--method", "sgd", "--storage", f"sqlite:///{tmp_path}/shared.db", *TINY]
    assert main([*command, "--trials", "2", "--out", str(tmp_path / "one")]) == 0
    assert main([*command, "--trials", "3", "--out", str(tmp_path / "two")]) == 0
    first, second = (tried(read_record(tmp_path / name))["sgd"] for name in ("one", "two"))
    assert len(first) == 2
    assert len(second) == 3
    assert second[:2] == first
    assert main(["report", str(tmp_path / "two")]) == 0


def test_a_record_of_something_else_is_refused(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = tmp_path / "tuning.json"
    record = json.loads((tuned / "tuning.json").read_text())
    record["methods"]["sgd"]["best"]["settings"]["lr"] = 99.0
    changed.write_text(json.dumps(record))
    for command, sentence in (
        (["run", "digits", "--tuned", str(changed)], "its digest does not fit"),
        (["run", "digits", "--method", "sgd", "tacos", "--tuned", str(tuned)], "tacos was not tuned"),
        (["run", "two-moons", "--method", "sgd", "--tuned", str(tuned)], "tuned for digits"),
        (["run", "digits", "--tuned", str(tmp_path / "none")], "is not there"),
        (["tune", "digits", "--out", str(tuned), "--trials", "1"], "bayspike resume"),
        (["tune", "digits", "--space", "sgd.network.slope=[1,2]", "--method", "sgd"], "the same for all"),
        (["tune", "digits", "--storage", "nothing://x", "--out", str(tmp_path / "n"), *TINY], "database of the trials"),
    ):
        assert main(command) == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("prune", [True, False])
def test_hopeless_trials_are_given_up_and_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prune: bool) -> None:
    """With a stand-in for the training whose likelihood is known: the further from a rate of 0.1, the worse."""
    from bayspike.tuning import study
    from bayspike.tuning.trial import Outcome

    ended = []

    def stand_in(bench: Any, chosen: Any, seed: Any, objective: Any, judged: Any, *rest: Any) -> Outcome:
        worse = abs(math.log10(chosen.rule["lr"]) + 1)
        for step in range(4):
            judged(step, worse)
        ended.append(worse)
        return Outcome({"nll": worse, "accuracy": 0.5, "ece": 0.0, "examples": 20}, 0.1)

    monkeypatch.setattr(study, "run_trial", stand_in)
    config = replace(configured("sgd", trials=16), prune=prune)
    with begun(config, experiment("digits"), tmp_path / "t", force=False, command=[]) as (directory, whole, bench):
        run_methods(directory, whole, bench, Quiet(Console(quiet=True)), Stop(), 1, "")
        record = write_record(whole, directory)
    found = record["methods"]["sgd"]
    hopeless = [each for each in found["trials"] if each["state"] == "hopeless"]
    assert len(found["trials"]) == 16 == len(ended) + len(hopeless)
    assert bool(hopeless) == prune
    assert found["best"]["value"] == min(ended)
    for each in hopeless:  # worse than most of those that came to their end
        assert min(each["judged"].values()) > sorted(ended)[len(ended) // 2]


def test_settings_that_cannot_learn_are_told_and_never_chosen(tmp_path: Path) -> None:
    config = configured("sgd", trials=2)
    config = replace(config, own={"sgd": {"lr": replace(config.own["sgd"]["lr"], low=1e30, high=1e31)}})
    with begun(config, experiment("digits"), tmp_path / "t", force=False, command=[]) as (directory, whole, bench):
        run_methods(directory, whole, bench, Quiet(Console(quiet=True)), Stop(), 1, "")
        record = write_record(whole, directory)
    assert [each["state"] for each in record["methods"]["sgd"]["trials"]] == ["did not learn"] * 2
    assert record["methods"]["sgd"]["best"] is None
    with pytest.raises(ValueError, match="more trials"):
        tuned_settings(record, "digits", ["sgd"])
