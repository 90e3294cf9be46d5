"""`make results`: every command is understood, and every table that the docs show has one that makes it."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import results
import tables

from bayspike.cli import main
from bayspike.cli.models import Evaluate
from bayspike.cli.run import Run
from bayspike.experiments.registry import experiment
from bayspike.runs.plan.config import RunConfig
from bayspike.runs.plan.resolve import resolve

ROOT = Path(__file__).parents[2]
RUNS = [step for step in results.STEPS if step.summary is not None]
STUDIES = [step for step in results.STEPS if step.summary is None]
FILES_OF_FIGURES = {"confidence_maps": "two_moons"}  # all others are called as their file is


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a step would run, parsed as the command line does; nothing is begun."""

    def configuration(step: results.Step) -> RunConfig:
        asked: list[Run] = []
        monkeypatch.setattr(Run, "execute", lambda self, typed=(): asked.append(self) or 0)
        monkeypatch.setattr(results, "RUNS", Path("nowhere"))
        assert main(results.command(step)[3:]) == 0
        (run,) = asked
        assert run.out == Path("nowhere") / step.name
        return resolve(experiment(run.experiment), run.preset, replace(run.changes(), seeds=run.seeds))

    return configuration


@pytest.mark.parametrize("step", RUNS, ids=lambda step: step.name)
def test_a_run_has_a_valid_configuration_and_draws_the_figures_that_are_copied(
    step: results.Step, resolved: Any
) -> None:
    config = resolved(step)
    drawn = {FILES_OF_FIGURES.get(name, name) for name in experiment(config.experiment).figures}
    assert set(step.figures) <= drawn | ({"pruning"} if step.prune else set())


@pytest.mark.parametrize(
    ("name", "simulated", "layers", "methods"),
    [
        ("gestures-genuine", False, "32c5s2-2p-64c5s2", ["bayes", "sgd"]),
        ("dvs-gestures", True, None, ["sgd", "bayes", "ste", "bayes-binary"]),
        ("nmnist-maps", False, "24c5s2-2p-48c5s2-210", ["bayes", "ewc", "sgd"]),
        ("permuted-mnist-200-of-50", False, None, ["bayes-stream", "finetune"]),
    ],
)
def test_a_table_is_made_by_what_it_is_called_after(
    name: str, simulated: bool, layers: str | None, methods: list[str], resolved: Any
) -> None:
    (step,) = [step for step in RUNS if step.summary == name]
    config = resolved(step)
    assert config.simulated is simulated
    assert [each.label for each in config.methods] == methods
    assert {each.network.layers for each in config.methods} == {layers}


def test_fifty_tasks_are_remembered_and_two_hundred_are_not(resolved: Any) -> None:
    by_name = {step.name: resolved(step) for step in RUNS if step.name.startswith("permuted")}
    remembered = {name: config.methods[0].rule["remember"] for name, config in by_name.items()}
    assert remembered["permuted-mnist-50"] == remembered["permuted-mnist"] > 60_000 * 30
    assert remembered["permuted-mnist-200"] == 150_000.0


def test_every_step_has_a_place_of_its_own() -> None:
    for names in ([step.name for step in results.STEPS], [step.summary for step in RUNS]):
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("step", STUDIES, ids=lambda step: step.name)
def test_a_study_exists_and_asks_only_runs_that_came_before(step: results.Step) -> None:
    script, *words = step.arguments.split()
    assert (ROOT / script).is_file()
    assert step.lines is not None
    before = {each.name for each in results.STEPS[: results.STEPS.index(step)] if each.summary is not None}
    assert {Path(word).name for word in words if word.startswith("runs/")} <= before


def test_every_table_of_the_docs_can_be_made_again() -> None:
    pages = [(ROOT / "docs" / name).read_text("utf-8") for name in ("results.md", "tables.md")]
    shown = {name for page in pages for name in re.findall(rf"<!-- (?:{'|'.join(tables.KINDS)}) ([\w-]+) -->", page)}
    made = {step.summary for step in RUNS}
    assert len(shown) > 10
    assert shown - made - {step.lines for step in STUDIES} <= set(results.CHANGED_SINCE)
    assert not made & set(results.CHANGED_SINCE)
    for name in results.CHANGED_SINCE:
        assert (ROOT / "docs" / "results" / f"{name}.json").is_file()


def test_every_picture_of_a_run_in_the_docs_comes_from_a_step() -> None:
    copied = {step.picture(figure) for step in RUNS for figure in step.figures}
    assert set((ROOT / "docs" / "img").glob("results-*.png")) <= copied


def made_run(step: results.Step, typed: str) -> None:
    (step.run / "figures").mkdir(parents=True)
    (step.run / "summary.json").write_text(
        '{"methods": {}, "protocol": {"dataset": {"place": "/somewhere/else/mnist"}}}'
    )
    (step.run / "environment.json").write_text(json.dumps({"command": ["bayspike", "run", *typed.split()]}))
    for figure in step.figures:
        (step.run / "figures" / f"{figure}.png").write_bytes(figure.encode())


def test_what_a_run_leaves_in_the_docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RUNS", tmp_path / "runs")
    for folder in ("results", "img"):
        (tmp_path / "docs" / folder).mkdir(parents=True)
    step = results.Step("mine", "two-moons --seeds 5", 1, "theirs", ("foreign_confidence",))
    assert results.state(step) == "missing"
    made_run(step, "two-moons --seeds 5 --quiet")
    assert results.state(step) == "done"
    assert results.state(step._replace(arguments="two-moons --seeds 3")) == "other"
    results.publish(step, tmp_path / "docs")
    kept = json.loads((tmp_path / "docs" / "results" / "theirs.json").read_text())
    assert kept == {"methods": {}, "protocol": {"dataset": {"place": "mnist"}}}
    assert (tmp_path / "docs" / "img" / "results-mine-foreign-confidence.png").read_bytes() == b"foreign_confidence"


def test_a_run_that_is_to_be_pruned_is_done_when_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RUNS", tmp_path)
    (step,) = [step for step in RUNS if step.prune]
    made_run(step, step.arguments)
    for kept, state in ((None, "begun"), ([{"share": 0.5}], "done")):
        (step.run / "summary.json").write_text(json.dumps({"methods": {"bayes": {"pruning": kept}}}))
        assert results.state(step) == state
    asked: list[Evaluate] = []
    monkeypatch.setattr(Evaluate, "execute", lambda self: asked.append(self) or 0)
    assert main(results.after(step)[3:]) == 0
    assert asked[0].prune == (0.5, 0.75, 0.9, 0.95)
    assert asked[0].keep


def test_the_list_counts_lines_and_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RUNS", tmp_path)
    done = results.Step("mine", "two-moons", 1.5, "mine")
    made_run(done, "two-moons")
    study = results.Step("asked", "studies/tables.py", 2, lines="two")
    (tmp_path / "docs" / "results").mkdir(parents=True)
    assert results.state(study, tmp_path / "docs") == "0 lines"
    (tmp_path / "docs" / "results" / "two.jsonl").write_text("{}\n{}\n")
    assert results.state(study, tmp_path / "docs") == "2 lines"
    assert results.listed([done, study]).splitlines()[-1] == (
        "about 3.5 hours in all, 1.5 of them for runs that are done"
    )
