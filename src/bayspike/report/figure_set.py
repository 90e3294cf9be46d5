"""The figures of a run, drawn again from its stored results."""

from pathlib import Path
from shlex import quote

from bayspike.errors import require
from bayspike.experiments.registry import experiment
from bayspike.figures import Figure
from bayspike.report.drawing import draw_figures
from bayspike.runs.directory import RunDirectory
from bayspike.runs.outcome.shapes import DRAWN
from bayspike.runs.outcome.summary import read_results
from bayspike.runs.plan.config import config_from_json
from bayspike.storage.files import read_json


def write_figures(run_dir: str | Path) -> list[Figure]:
    """Draw those of the paper's figures that the run's experiment has into `figures/`, with `figures/index.json`."""
    run = RunDirectory(Path(run_dir))
    config = config_from_json(read_json(run.config), str(run.config))
    results = read_results(run, config, DRAWN)
    require(bool(results), f"{run.path} has no finished job yet: go on with `bayspike resume {quote(str(run.path))}`.")
    return draw_figures(run, experiment(config.experiment), config, results)
