"""Figures drawn again from a run directory."""

import json
from pathlib import Path

import pytest
from parsed import parse
from synthetic import make_two_moons

from bayspike.errors import UserError
from bayspike.experiments.registry import experiment
from bayspike.report import write_figures, write_report
from bayspike.runs.plan.config import config_to_json, jobs_of
from bayspike.runs.plan.resolve import Changes, resolve


def test_two_moons_figures(tmp_path: Path) -> None:
    run = make_two_moons(tmp_path / "run")
    config = resolve(experiment("two-moons"), "demo", Changes(methods=["sgd"], seeds=1))
    (run / "config.json").write_text(json.dumps(config_to_json(config)))
    assert [job.name for job in jobs_of(config)] == ["sgd-seed0"]
    drawn = {figure.name: figure for figure in write_figures(run)}
    index = json.loads((run / "figures" / "index.json").read_text())
    assert [each["name"] for each in index] == list(drawn)
    assert "two_moons" in drawn
    for entry in index:
        assert entry["caption"]
        assert all((run / "figures" / name).is_file() for name in entry["files"])
    assert len(parse(write_report([run]).read_text()).every("img")) == len(index)


def test_a_run_without_results(tmp_path: Path) -> None:
    config = resolve(experiment("two-moons"), "demo", Changes(methods=["sgd"], seeds=1))
    (tmp_path / "config.json").write_text(json.dumps(config_to_json(config)))
    with pytest.raises(UserError, match="no finished job"):
        write_figures(tmp_path)
