"""What follows the last job: summary, figures, report, and the table on the terminal."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from rich.console import Console
from rich.table import Table

from bayspike.errors import require
from bayspike.experiments.registry import experiment
from bayspike.report.drawing import draw_figures
from bayspike.report.panels.headline import paper_title
from bayspike.report.runs import load_run
from bayspike.runs.directory import RunDirectory
from bayspike.runs.outcome.summary import read_results, summarise
from bayspike.runs.plan.config import RunConfig, config_from_json
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.reporting import Reporter
from bayspike.storage.files import plain_numbers, read_json, write_json


def finish(run: RunDirectory, chosen: Experiment, config: RunConfig, reporter: Reporter) -> Path | None:
    """Write summary, figures and report of whatever jobs are done; returns the report's path."""
    results = read_results(run, config)
    write_json(run.summary, summarise(chosen, config, results))
    reporter.say("drawing figures and the report")
    draw_figures(run, chosen, config, results)
    return write_report_of([run], run.report)


def write_report_of(runs: Sequence[RunDirectory], out: Path) -> Path:
    """The HTML report of runs; a run that is not finished is summarised as far as it has come.

    A report that goes elsewhere leaves the runs as they are: they may lie on a disk that is not ours to write to.
    """
    from bayspike.report import write_report

    summaries = []
    for run in runs:
        config = config_from_json(read_json(run.config), str(run.config))
        results = read_results(run, config)
        require(
            bool(results), f"{run.path} has no finished job yet: go on with `bayspike resume {quote(str(run.path))}`."
        )
        summaries.append(plain_numbers(summarise(experiment(config.experiment), config, results)))
    if [run.report for run in runs] == [out]:
        write_json(runs[0].summary, summaries[0])
    return write_report([run.path for run in runs], out, summaries)


def print_table(run: RunDirectory, console: Console) -> None:
    """Every method beside what the paper has."""
    summary = read_json(run.summary)
    table = Table(title=summary["title"] + (" (simulated data)" if summary["simulated"] else ""))
    long = any("last_five" in scores for scores in summary["methods"].values())
    for heading in (
        "method",
        "predictor",
        "accuracy",
        *(["last five"] if long else []),
        "ECE",
        "NLL",
        "memory",
        "time",
    ):
        table.add_column(heading, justify="left" if heading in ("method", "predictor") else "right")
    for label, scores in summary["methods"].items():
        for name, each in scores["predictors"].items():
            first = name == scores["predictor"]
            table.add_row(
                label if first else "",
                name,
                _percent(each["accuracy"]["mean"], each["accuracy"]["std"]),
                *([_last_five(scores) if first else ""] if long else []),
                _number(each["ece"]["mean"], each["ece"]["std"]),
                _number(each["nll"]["mean"], each["nll"]["std"]),
                _bytes(scores["memory_bytes"]["total"]) if first else "",
                f"{scores['seconds']:.0f} s" if first else "",
            )
    if summary["paper"]:
        table.add_section()
        for published in summary["paper"]:
            table.add_row(*_published(published, long))
    console.print(table)
    if summary["paper"]:
        console.print(f"{paper_title([load_run(run.path)])}. {summary['paper_note']}".strip(), highlight=False)
    for label, scores in summary["methods"].items():
        for sentence in scores["warnings"]:
            console.print(f"warning: {label}: {sentence}", highlight=False, markup=False, soft_wrap=True)


def _published(entry: Mapping[str, Any], long: bool) -> list[str]:
    """An accuracy of the last tasks stands in their column."""
    of, accuracy = entry.get("of"), _percent(entry["accuracy"], entry["accuracy_std"])
    places = ["", accuracy] if long and of else [accuracy, ""] if long else [accuracy]
    name = f"paper: {entry['name']}" + (f" ({of})" if of and not long else "")
    return [name, entry["predictor"], *places, _number(entry["ece"], entry["ece_std"]), "", "", ""]


def _last_five(scores: Mapping[str, Any]) -> str:
    found = scores.get("last_five")
    return _percent(found["mean"], found["std"]) if found else ""


def _percent(mean: float | None, std: float | None) -> str:
    if mean is None:
        return ""
    return f"{100 * mean:.2f} %" if std is None else f"{100 * mean:.2f} ± {100 * std:.2f} %"


def _number(mean: float | None, std: float | None) -> str:
    if mean is None:
        return ""
    return f"{mean:.3f}" if std is None else f"{mean:.3f} ± {std:.3f}"


def _bytes(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"
