"""`tuning.json`: all that was tried, and the best of it; what a run takes its settings from and its report shows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bayspike.continual.methods import method
from bayspike.errors import require
from bayspike.runs.directory import RunDirectory
from bayspike.runs.outcome.shapes import fits
from bayspike.storage.files import read_json, write_json
from bayspike.storage.plain import to_plain
from bayspike.storage.sealed import check_seal, seal
from bayspike.tuning.plan import TuneConfig, TuneDirectory
from bayspike.tuning.study import open_storage, open_study, trials_of

FORMAT = 1
SHAPE = {"format": int, "experiment": str, "preset": str, "objective": str}


def write_record(config: TuneConfig, directory: TuneDirectory) -> dict[str, Any]:
    """As far as it has come."""
    storage = open_storage(config, directory)
    methods: dict[str, Any] = {}
    for base in config.methods:
        tried = trials_of(open_study(config, base.method, storage))
        methods[base.method] = {"own": to_plain(config.own[base.method]), "trials": tried, "best": _best(config, tried)}
    record = {
        "format": FORMAT,
        "experiment": config.base.experiment,
        "preset": config.base.preset,
        "objective": config.objective,
        "trials": config.trials,
        "seed": config.seed,
        "validation": config.validation,
        "division": config.division,
        "pruned": config.prune,
        "simulated": config.base.simulated,
        "dataset": to_plain(config.base.dataset),
        "shared": to_plain(config.shared),
        "methods": methods,
    }
    write_json(directory.record, seal(record))
    return record


def _best(config: TuneConfig, tried: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    done = [each for each in tried if each["value"] is not None]
    if not done:
        return None
    sign = 1 if config.objective == "nll" else -1
    best = min(done, key=lambda each: (sign * each["value"], each["number"]))
    return {key: best[key] for key in ("number", "value", "settings", "scores")}


def read_record(path: Path) -> dict[str, Any]:
    """A record by its file or its directory; a changed or damaged one is refused."""
    file = TuneDirectory(path).record if path.is_dir() else path
    require(file.is_file(), f"{file} is not there: give the directory of a tuning, or its tuning.json.")
    record = read_json(file)
    require(
        isinstance(record, dict) and fits(record, SHAPE) and isinstance(record.get("methods"), dict),
        f"{file} is not the record of a tuning.",
    )
    require(
        record["format"] == FORMAT, f"{file} is of format {record['format']!r:.20}, but this version reads {FORMAT}."
    )
    check_seal(record, str(file))
    found: dict[str, Any] = record
    return found


def tuned_settings(record: Mapping[str, Any], experiment: str, methods: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The best settings of every method. One that was not tuned is refused: it would not stand on the same ground."""
    require(
        record["experiment"] == experiment,
        f"The settings were tuned for {record['experiment']}, not for {experiment}: tune that.",
    )
    found = {}
    for name in methods:
        chosen: str | None = name
        while chosen is not None and chosen not in record["methods"]:
            chosen = method(chosen).like
        tuned = ", ".join(record["methods"])
        require(chosen is not None, f"{name} was not tuned (only {tuned}): tune it too, or leave it out.")
        best = record["methods"][chosen].get("best")
        require(isinstance(best, dict), f"no trial of {chosen} came to its end: give it more trials.")
        found[name] = dict(best["settings"])
    return found


def keep_record(record: Mapping[str, Any], run: RunDirectory) -> None:
    """A copy in the run that uses its settings, for the report."""
    write_json(run.tuning, seal(record))
