"""`bayspike evaluate --controls` and `--prune`: what is the posterior's own merit, and which synapses can be spared."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from bayspike.data.base import Dataset
from bayspike.errors import require
from bayspike.experiments.registry import experiment
from bayspike.posteriors.distributions import Gaussian, Point
from bayspike.predict.calibration import halves
from bayspike.predict.controls import ControlScores, judge_controls
from bayspike.report.drawing import draw_pruning
from bayspike.report.finish import write_report_of
from bayspike.runs.directory import RunDirectory, open_run
from bayspike.runs.engine import take_up
from bayspike.runs.jobs import Workbench
from bayspike.runs.models import Model, load_model
from bayspike.runs.outcome.asked import controls_of, keep, pruned_rows, pruning_of
from bayspike.runs.outcome.summary import read_results
from bayspike.runs.plan.config import Job, jobs_of
from bayspike.runs.reporting import wide_console
from bayspike.seeds import generator_for


def tell_controls(model: Model, dataset: Dataset, members: int, seed: int, *, as_json: bool) -> int:
    """Judge a model beside its controls and print what came out."""
    choosing, judging = halves(dataset.test.labels, generator_for(seed, "halves"))
    found = judge_controls(
        model.network, model.posteriors, dataset.test.subset(judging), dataset.foreign, dataset.test.subset(choosing),
        members=members, seed=seed,
    )  # fmt: skip
    if as_json:
        facts = {"model": str(model.path), "dataset": dataset.name, "simulated": dataset.simulated}
        print(json.dumps({**facts, "examples": len(judging), "controls": {k: v._asdict() for k, v in found.items()}}))
        return 0
    kind = " (simulated)" if dataset.simulated else ""
    table = Table(title=f"{model.about['label']}, seed {model.about['seed']}, on {dataset.name}{kind}: other spreads")
    table.add_column("spread")
    for heading in ("accuracy", "ECE", "NLL", "AUROC, mutual information", "entropy", "discord", "inputs"):
        table.add_column(heading, justify="right")
    for name, scores in found.items():
        table.add_row(name, *_cells(scores))
    console = wide_console()
    console.print(table)
    foreign = f"foreign: {dataset.foreign_about or 'those of the data set'}" if dataset.foreign else "no foreign inputs"
    foreign += "; inputs: without a network, by how often each input fires" if dataset.foreign else ""
    judged = f"judged on {len(judging)} test examples, chosen on the other {len(choosing)}"
    console.print(f"Committees of {members}; {judged}; {foreign}.", highlight=False, soft_wrap=True)
    for name, scores in found.items():
        if scores.about:
            console.print(f"{name}: {scores.about}.", highlight=False, soft_wrap=True)
    return 0


def _cells(scores: ControlScores) -> list[str]:
    areas = (scores.auroc_mutual_information, scores.auroc_entropy, scores.auroc_discord, scores.auroc_inputs)
    return [
        f"{scores.accuracy:.2%}", f"{scores.ece:.3f}", f"{scores.nll:.3f}",
        *("" if area is None else f"{area:.3f}" for area in areas),
    ]  # fmt: skip


def tell_pruned(
    model: Model, dataset: Dataset, shares: Sequence[float], members: int, seed: int, *, as_json: bool
) -> int:
    """Judge a model without some of its synapses."""
    rows = pruned_rows(model.network, model.posteriors, shares, members, seed, dataset.test)
    if as_json:
        facts = {"model": str(model.path), "dataset": dataset.name, "simulated": dataset.simulated}
        print(json.dumps({**facts, "pruned": rows}))
        return 0
    kind = " (simulated)" if dataset.simulated else ""
    print_pruned(f"{model.about['label']}, seed {model.about['seed']}, on {dataset.name}{kind}: fewer synapses", rows)
    return 0


def print_pruned(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title=title)
    for heading in ("pruned", "by", "accuracy", "ECE", "NLL"):
        table.add_column(heading, justify="left" if heading == "by" else "right")
    names = {"signal": "|m|·√p", "size": "|m|", "": ""}
    for row in rows:
        numbers = [f"{row['accuracy']:.2%}", f"{row['ece']:.3f}", f"{row['nll']:.3f}"]
        table.add_row(f"{row['pruned']:.0%}", names[str(row["by"])], *numbers)
    wide_console().print(table)


def keep_in_run(directory: Path, job: str | None, shares: Sequence[float], controls: bool, data: Path | None) -> int:
    """Judge the finished jobs of a run (or one of them) on its own tasks, and keep it for its report and figures."""
    run = open_run(directory)
    with run.locked():
        bench = take_up(run, experiment, data)
        config = bench.config
        done = [each for each in jobs_of(config) if run.result(each.name).is_file() and job in (None, each.name)]
        require(bool(done), f"{directory} has no finished job{f' {job!r}' if job else ''} to judge.")
        for each in done:
            _keep_job(run, bench, each, shares, controls)
        draw_pruning(run, config, read_results(run, config))
        report = write_report_of([run], run.report)
    print(f"Kept in {run.path / 'asked'}; report: {report}")
    return 0


def _keep_job(run: RunDirectory, bench: Workbench, job: Job, shares: Sequence[float], controls: bool) -> None:
    model = load_model(run.path, job.name)
    network, learnt, stream = model.network, model.posteriors, bench.stream
    found: dict[str, Any] = {}
    if controls:
        found["controls"] = controls_of(bench.config, network, learnt, stream, bench.dataset, job.seed)
    if shares and all(isinstance(each, Gaussian | Point) for each in learnt):
        done = found["pruning"] = pruning_of(bench.config, network, learnt, stream, shares, job.seed)
        print_pruned(f"{job.name}: fewer synapses, {done['examples']} test examples", done["rows"])
    elif shares:
        print(f"{job.name}: synapses of ±1 have no value for none, so none are cut.")
    keep(run, job.name, found)
