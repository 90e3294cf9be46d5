"""A tuning in its directory, from the beginning or from wherever it was stopped: one worker for every method."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bayspike.errors import UserError, require
from bayspike.runs.child import told_by
from bayspike.runs.engine import Overall
from bayspike.runs.environment import describe_environment
from bayspike.runs.jobs import Stop, Workbench
from bayspike.runs.locks import locked
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.reporting import Reporter
from bayspike.runs.workers import LOCAL, Engine, run_in_workers
from bayspike.storage.files import make_folder, read_json, reason, write_json
from bayspike.storage.plain import to_plain
from bayspike.tuning.plan import TuneConfig, TuneDirectory, open_tuning, tune_from_json
from bayspike.tuning.record import write_record
from bayspike.tuning.study import open_storage, open_study, remove_database, tune_method
from bayspike.tuning.trial import batches_of

OWN_NAMES = ("tune.json", "environment.json", "tuning.json", "report.html", ".lock", "study.sqlite3")


@contextmanager
def begun(
    config: TuneConfig, experiment: Experiment, out: Path, *, force: bool, command: list[str]
) -> Iterator[tuple[TuneDirectory, TuneConfig, Workbench]]:
    """A fresh directory with all that the trials need; ours until the block ends."""
    config, bench = open_tuning(config, experiment)
    directory = TuneDirectory(out)
    _check_free(directory, force)
    try:
        make_folder(out)
    except OSError as error:
        raise UserError(f"{out} cannot be made ({reason(error)}): choose another --out.") from error
    with locked(out / ".lock"):
        _check_free(directory, force)
        for each in (directory.config, directory.record, directory.report):
            each.unlink(missing_ok=True)
        remove_database(directory.database)
        storage = open_storage(config, directory)
        for base in config.methods:
            open_study(config, base.method, storage)
        write_json(directory.environment, describe_environment(config.base, command))
        write_json(directory.config, to_plain(config))  # last: from now on it can be resumed
        yield directory, config, bench


def _check_free(directory: TuneDirectory, force: bool) -> None:
    path = directory.path
    if not path.exists():
        return
    require(path.is_dir(), f"{path} is a file: name a directory for the tuning.")
    present = {each.name for each in path.iterdir()} - {".lock", "environment.json"}
    if not present:
        return
    for name in sorted(present):
        require(
            name.startswith(OWN_NAMES), f"{path} holds {name!r}, which is no part of a tuning: choose another --out."
        )
    require(force, f"{path} is not empty: go on with `bayspike resume {path}`, or overwrite it with --force.")


def is_tuning(path: Path) -> bool:
    return TuneDirectory(path).config.is_file()


def take_up(directory: TuneDirectory, find: Callable[[str], Experiment]) -> tuple[TuneConfig, Workbench]:
    config = tune_from_json(read_json(directory.config), str(directory.config))
    return open_tuning(config, find(config.base.experiment))


def run_methods(
    directory: TuneDirectory,
    config: TuneConfig,
    bench: Workbench,
    reporter: Reporter,
    stop: Stop,
    parallel: int,
    worker: str,
    engine: Engine = LOCAL,
) -> None:
    """All methods, `parallel` at a time; the record is kept up to date. Raises `Interrupted` when asked to stop."""
    totals = {base.method: batches_of(bench, base) * config.trials for base in config.methods}
    overall, refresh = Overall(reporter, totals, []), partial(write_record, config, directory)
    try:
        if engine is LOCAL and min(parallel, len(totals)) == 1:
            for name in totals:
                tune_method(config, bench, directory, name, overall, stop)
                overall.done[name] = totals[name]
        else:
            run_in_workers(directory.path, worker, list(totals), parallel, overall, stop, lambda: None, engine)
    finally:
        refresh()


def work(path: Path, method: str, find: Callable[[str], Experiment]) -> int:
    """The whole life of a worker process; returns its exit code."""
    directory = TuneDirectory(path)

    def carry_out(reporter: Reporter, stop: Stop) -> None:
        config, bench = take_up(directory, find)
        tune_method(config, bench, directory, method, reporter, stop)

    return told_by(method, path, carry_out)
