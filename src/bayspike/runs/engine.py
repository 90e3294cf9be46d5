"""Running a configuration in a run directory, from the beginning or from wherever an earlier process was stopped.

Jobs run one after the other in this process, or several at a time in worker processes. Since every random draw of the
protocol is seeded by its place in the run, the results are the same bits whether and wherever a run was
interrupted, and however many jobs ran at a time.
"""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import torch

from bayspike.errors import UserError, require
from bayspike.kernels import require_kernels
from bayspike.runs import checkpoints
from bayspike.runs.directory import RunDirectory, claimed_run
from bayspike.runs.environment import describe_environment
from bayspike.runs.jobs import Alone, Crew, Stop, Workbench, run_job
from bayspike.runs.plan.config import RunConfig, config_from_json, config_to_json, jobs_of
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.plan.prepare import count_batches, describe_data, load_data, prepare
from bayspike.runs.plan.reduced import fewer_images, repeated
from bayspike.runs.plan.resolve import require_repetitions
from bayspike.runs.reporting import Moment, Reporter
from bayspike.runs.workers import LOCAL, Engine, run_in_workers
from bayspike.storage.files import plain_numbers, read_json, read_lines, write_json, write_lines
from bayspike.storage.plain import differences, to_plain


@contextmanager
def stopping_at_safe_points() -> Iterator[Stop]:
    """The first Ctrl-C (or SIGTERM) asks for a stop after the current mini-batch, a second one stops at once."""
    stop = Stop()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True

    try:
        before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: nothing to catch
        yield stop
        return
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def started(
    config: RunConfig, experiment: Experiment, out: Path, *, force: bool, command: list[str], crew: Crew | None = None
) -> Iterator[tuple[RunDirectory, Workbench]]:
    """Load the data, then make the run directory, which is ours until the block ends.

    A mistake in the options leaves no directory behind, and nothing is begun that could not be taken up again.
    """
    bench = open_bench(config, experiment)
    counted = fewer_images(bench.config.dataset, experiment.paper_data)
    bench = replace(bench, config=replace(bench.config, reduced=(*counted, *bench.config.reduced)))
    config = bench.config
    check_jobs(bench, crew)
    require_storable(config)
    with claimed_run(out, force=force) as run:
        write_json(run.environment, describe_environment(config, command))
        write_json(run.config, config_to_json(config))  # last: from now on the run can be resumed
        yield run, bench


def check_jobs(bench: Workbench, crew: Crew | None = None) -> None:
    """Refuse what some job could not be learnt with, by this process or by those of a `crew`, before any is begun."""
    for job in jobs_of(bench.config):
        (crew or Alone()).check(prepare(bench.config, job, bench.dataset, bench.stream))


def require_storable(config: RunConfig) -> None:
    """Refuse a configuration that would not come back from `config.json` as it is."""
    plain = config_to_json(config)
    stored = plain_numbers(plain)
    for name, wanted, kept in differences(plain, stored):
        raise UserError(f"{name} is {wanted!r}, which cannot be stored (it would become {kept!r}): give another value.")
    found = differences(plain, config_to_json(config_from_json(stored, "the configuration")))
    for name, wanted, kept in found:
        raise UserError(f"{name} is {wanted!r}, which would be taken up again as {kept!r}: give another value.")


def take_up(run: RunDirectory, find: Callable[[str], Experiment], data: Path | None = None) -> Workbench:
    """The configuration and the data of a run that is there; other data under the same name are refused.

    `find` gives the experiment of a name: this room knows none. `data` says where the data lie now, if they have moved.
    """
    config = config_from_json(read_json(run.config), str(run.config))
    if data is not None:
        config = replace(config, data=replace(config.data, root=str(data.resolve())))
    bench = open_bench(config, find(config.experiment))
    # where they lie does not matter; and an older version wrote less about them
    compared = [key for key in config.dataset if key != "place"]
    now, then = ({key: facts.get(key) for key in compared} for facts in (bench.config.dataset, config.dataset))
    found = differences(now, then)
    if found:
        shown = "; ".join(f"{name} was {old!r} and is now {new!r}" for name, new, old in found[:3])
        raise UserError(f"The data are not those {run.path} was started with: {shown}.")
    if data is not None:
        write_json(run.config, config_to_json(config))
    return replace(bench, config=replace(bench.config, dataset=config.dataset))


def with_repetitions(run: RunDirectory, bench: Workbench, seeds: int) -> Workbench:
    """The same run with more repetitions, written down as if it had been begun with them; what is done stays done."""
    config, wanted = bench.config, tuple(range(seeds))
    require(
        set(config.seeds) <= set(wanted),
        f"{run.path} has {len(config.seeds)} repetition(s): some can be added, none taken away.",
    )
    require_repetitions(seeds)
    theirs = bench.experiment.presets["paper"].seeds if bench.experiment.of_paper else seeds
    reduced = tuple(repeated(config.reduced, len(config.seeds), seeds, theirs))
    bench = replace(bench, config=replace(config, seeds=wanted, reduced=reduced))
    environment = read_json(run.environment)
    # the command to paste is to make what is then there
    command = [*_without_seeds([str(word) for word in environment.get("command", [])]), "--seeds", str(seeds)]
    write_json(run.environment, {**environment, "seeds": list(wanted), "command": command})
    write_json(run.config, config_to_json(bench.config))
    return bench


def _without_seeds(typed: list[str]) -> list[str]:
    place = next((k for k, word in enumerate(typed) if word.startswith("--seeds")), None)
    if place is None:
        return typed
    return typed[:place] + typed[place + (1 if "=" in typed[place] else 2) :]


def restart_unusable(run: RunDirectory, config: RunConfig, say: Callable[[str], None]) -> None:
    """Set aside the checkpoints of unfinished jobs none of which can be used, so that these jobs begin anew."""
    for job in jobs_of(config):
        if run.result(job.name).is_file():
            continue
        folder = run.checkpoints(job.name)
        try:
            checkpoints.latest(folder)
        except UserError:
            count = checkpoints.set_aside(folder)
            say(f"warning: {count} checkpoint(s) of {job.name} cannot be used and are set aside: it begins anew.")


def open_bench(config: RunConfig, experiment: Experiment) -> Workbench:
    _check_device(config.device)
    for each in config.methods:
        require_kernels(each.training.kernels)
    torch.set_num_threads(config.threads)
    dataset = load_data(experiment, config.data)
    stream = experiment.tasks_of(config.preset, dataset, config.tasks)
    facts = to_plain(describe_data(dataset, stream, config.data))
    return Workbench(replace(config, dataset=facts, simulated=dataset.simulated), experiment, dataset, stream)


def _check_device(name: str) -> None:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"The device {name!r} cannot be used here; --device cpu always can.") from error


def run_jobs(
    run: RunDirectory,
    bench: Workbench,
    reporter: Reporter,
    stop: Stop,
    parallel: int = 1,
    worker: str = "",
    engine: Engine = LOCAL,
    crew: Crew | None = None,
) -> None:
    """All jobs of the run that are not done yet, `parallel` at a time. Raises `Interrupted` when asked to stop.

    `worker` is the module that a process for one job runs, wherever `engine` has it run; without one all jobs run here,
    by this process or by all those of a `crew`. Whoever calls it holds the lock of the run (`run.locked()`).
    """
    config = bench.config
    run.clear_parts()
    for job in jobs_of(config):
        if run.result(job.name).is_file():  # a power cut may have undone the removal of old checkpoints
            checkpoints.prune(run.checkpoints(job.name))
    learners = {job.name: prepare(config, job, bench.dataset, bench.stream) for job in jobs_of(config)}
    totals = {name: count_batches(prepared) for name, prepared in learners.items()}
    overall = Overall(reporter, totals, [name for name in learners if run.result(name).is_file()])
    left = [name for name in learners if not run.result(name).is_file()]
    try:
        if worker and left and (engine is not LOCAL or min(parallel, len(left)) > 1):
            refresh = partial(merge_metrics, run, list(learners))
            run_in_workers(run.path, worker, left, parallel, overall, stop, refresh, engine)
        else:
            for name in left:
                run_job(run, bench, learners[name], overall, stop, crew)
                merge_metrics(run, list(learners))
    except BaseException:
        # as far as it came; where even that cannot be written, what went wrong first is what to tell
        with suppress(UserError):
            merge_metrics(run, list(learners))
        raise
    merge_metrics(run, list(learners))


class Overall:
    """Reports the batches of single jobs as parts of the whole run."""

    def __init__(self, reporter: Reporter, totals: Mapping[str, int], finished: list[str]) -> None:
        self.reporter, self.total = reporter, sum(totals.values())
        self.done = {name: totals[name] for name in finished}

    def batch(self, moment: Moment) -> None:
        self.done[moment.job] = moment.done
        self.reporter.batch(replace(moment, done=sum(self.done.values()), total=self.total))

    def say(self, sentence: str) -> None:
        self.reporter.say(sentence)


def merge_metrics(run: RunDirectory, jobs: list[str]) -> None:
    """`metrics.jsonl`: the lines of all jobs, one job after the other, however they ran."""
    if not run.path.is_dir():  # deleted under the run: not to be made again for this
        return
    write_lines(run.metrics, [entry for job in jobs for entry in read_lines(run.job_metrics(job))])
