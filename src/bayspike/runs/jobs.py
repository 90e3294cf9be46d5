"""One job of a run: training with checks, metrics and checkpoints, then the final examination.

A job is done when `results/<job>.json` is there; a job under way is taken up from its newest checkpoint.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from bayspike.continual.methods import method
from bayspike.continual.protocol import ALONE, Evaluate, Hands, OnBatch, Parts, Progress, plan_for, run_stream
from bayspike.continual.replay import Plan
from bayspike.continual.tasks import Stream
from bayspike.data.base import Dataset
from bayspike.errors import require
from bayspike.learner.file import has_name, save_state
from bayspike.learner.from_stream import learner_of_stream
from bayspike.learning.batch import BatchReport, posteriors
from bayspike.learning.health import Concern, check_batch, check_settled
from bayspike.posteriors.distributions import precision_quantiles, spread_by_input
from bayspike.runs import checkpoints
from bayspike.runs.directory import MetricsLog, RunDirectory
from bayspike.runs.locks import Held, locked
from bayspike.runs.outcome.examination import headline, interim
from bayspike.runs.outcome.results import job_result
from bayspike.runs.outcome.shapes import fits
from bayspike.runs.plan.config import RunConfig, identity
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.plan.prepare import PreparedJob, batches_before, count_batches
from bayspike.runs.reporting import Moment, Reporter
from bayspike.runs.tensorboard import EventWriter, open_writer
from bayspike.spiking.denormals import flushed_denormals
from bayspike.storage.arrays import write_arrays
from bayspike.storage.files import read_lines, write_json
from bayspike.storage.plain import to_plain
from bayspike.storage.sealed import seal

LINE = {"kind": str, "task": int, "batch": int}  # what every line of metrics has
SPREAD = {**LINE, "std": [float]}  # of kind "spread"
PRECISION = {**LINE, "precision": [[float]]}
WARNING = {"kind": str, "name": str, "layer": int}
WARNED = {**WARNING, **LINE, "sentence": str}
SAVING_SHARE = 0.05  # of the time, at most, goes into periodic checkpoints


class Interrupted(Exception):
    """The user stopped the run; everything up to the last mini-batch is kept."""


@dataclass
class Stop:
    """Set by a signal, looked at after every mini-batch."""

    asked: bool = False


@dataclass(frozen=True)
class Workbench:
    """A configuration with its experiment and its data."""

    config: RunConfig
    experiment: Experiment
    dataset: Dataset
    stream: Stream


class Crew(Protocol):
    """Several processes that share a network (`bayspike.runs.together`), seen from the first of them."""

    hands: Hands

    def check(self, prepared: PreparedJob) -> None: ...

    def spread(self, progress: Progress | None, prepared: PreparedJob) -> Progress | None: ...

    def whole(self, progress: Progress, prepared: PreparedJob) -> Progress: ...

    def judge(self, evaluate: Evaluate, prepared: PreparedJob) -> Evaluate: ...

    def on_batch(self, prepared: PreparedJob, stop: Stop, diary: "Diary") -> OnBatch: ...


class Alone:
    """One process that has all of the network."""

    hands = ALONE

    def check(self, prepared: PreparedJob) -> None:
        return

    def spread(self, progress: Progress | None, prepared: PreparedJob) -> Progress | None:
        return progress

    def whole(self, progress: Progress, prepared: PreparedJob) -> Progress:
        return progress

    def judge(self, evaluate: Evaluate, prepared: PreparedJob) -> Evaluate:
        return evaluate

    def on_batch(self, prepared: PreparedJob, stop: Stop, diary: "Diary") -> OnBatch:
        return diary.on_batch


def run_job(
    run: RunDirectory,
    bench: Workbench,
    prepared: PreparedJob,
    reporter: Reporter,
    stop: Stop,
    crew: Crew | None = None,
) -> None:
    """Train, examine and store one job, or what is left of it. Raises `Interrupted` when asked to stop.

    Batches are reported as of the job alone. A process that died without letting go (as when its parent was killed) is
    waited for.
    """
    config, job, crew = bench.config, prepared.job, crew or Alone()
    folder = run.checkpoints(job.name)
    events = run.path / "tensorboard" if config.tensorboard else None
    # denormals are flushed throughout: the switch outlives a computation, and must not depend on what came before
    with locked(folder / ".lock", wait=True) as held, flushed_denormals(), open_writer(events) as writer:
        progress, spent = _newest(folder, config, prepared, reporter)
        place = (-1, -1) if progress is None else (progress.task, progress.batch)
        log = MetricsLog(
            run.job_metrics(job.name), lambda entry: fits(entry, LINE) and (entry["task"], entry["batch"]) <= place
        )
        clock = _Clock(spent)
        diary = Diary(run, bench, prepared, log, reporter, stop, writer, clock, held)
        try:
            final, own = progress, crew.spread(progress, prepared)
            if final is None or final.task < len(prepared.stream.tasks):  # else killed between training and results
                # of tasks that are still to come nothing is known: then no temperature either
                calibrating = bench.dataset if prepared.training.judge == "learnt" else None
                judge = interim(
                    prepared.network, method(job.method.method), config.judging, job.seed, prepared.training.kernels,
                    calibrating if bench.dataset.held_back is not None else None,
                )  # fmt: skip
                done = run_stream(
                    prepared.network, prepared.rule, prepared.stream, prepared.training, crew.judge(judge, prepared),
                    own, crew.on_batch(prepared, stop, diary), crew.hands,
                )  # fmt: skip
                final = crew.whole(done, prepared)
                diary.save(final)
        finally:
            log.close()
        result, arrays = job_result(bench.experiment, config, prepared, bench.dataset, final, clock.seconds())
        lines = read_lines(run.job_metrics(job.name))
        spread = [entry["std"] for entry in lines if fits(entry, SPREAD)]
        arrays["spread"] = np.array(spread, dtype=np.float32)
        course = [entry["precision"] for entry in lines if fits(entry, PRECISION)]
        if course and all(course[-1]):
            arrays["precision"] = np.array(course, dtype=np.float32)
        result["warnings"] = [entry for entry in lines if fits(entry, WARNED)]
        held.require_there()
        _write_learner(run, bench, prepared, final)
        write_arrays(run.arrays(job.name), arrays)
        # last: it says that the job is done; with the settings it was made with
        write_json(run.result(job.name), seal({**result, "identity": identity(config, job)}))
    best = result["final"][result["headline_predictor"]]["overall"]
    reporter.say(f"{job.name}: accuracy {best['accuracy']:.2%}, ECE {best['ece']:.3f} ({result['headline_predictor']})")


def _write_learner(run: RunDirectory, bench: Workbench, prepared: PreparedJob, final: Progress) -> None:
    """`models/<job>.bayspike`: what the job has learnt, with its stored examples."""
    if not has_name(prepared.rule):
        return
    learner = learner_of_stream(
        prepared.network_config, prepared.rule, prepared.stream, prepared.training, final, bench.dataset,
        bench.config.judging.members, about_model(bench.config, prepared), bench.config.judging.gather,
    )  # fmt: skip
    save_state(learner, run.model(prepared.job.name))


def about_model(config: RunConfig, prepared: PreparedJob) -> dict[str, Any]:
    """What a file says of the network in it: enough to build it again, to feed it and to name its answers."""
    job = prepared.job
    return {
        "experiment": config.experiment,
        "preset": config.preset,
        "asked_tasks": config.tasks,
        "network": to_plain(prepared.network_config),
        "method": job.method.method,
        "label": job.method.label,
        "rule": to_plain(job.method.rule),
        "seed": job.seed,
        "members": config.judging.members,
        **({} if config.judging.gather == "mean" else {"gather": config.judging.gather}),
        "data": to_plain(config.data),
        **config.dataset,
    }


def _newest(
    folder: Path, config: RunConfig, prepared: PreparedJob, reporter: Reporter
) -> tuple[Progress | None, float]:
    found = checkpoints.latest(folder, reporter.say)
    if found is None:
        return None, 0.0
    checkpoints.check_identity(found, identity(config, prepared.job), folder)
    progress = checkpoints.unpack_progress(found, prepared.network, prepared.rule, folder)
    spent = found.header.get("seconds")
    require(
        fits(spent, float) and _reached(progress, prepared),
        f"The newest checkpoint in {folder} tells of a place that this run does not have: begin the job anew with "
        "`bayspike resume --restart`.",
    )
    return progress, float(spent)  # type: ignore[arg-type]


def _reached(progress: Progress, prepared: PreparedJob) -> bool:
    """Whether the stream has this place: so many tasks, so many mini-batches, and coresets of the tasks before."""
    tasks = prepared.stream.tasks
    if progress.task > len(tasks) or len(progress.coresets) > progress.task:
        return False
    inside = all(
        not len(kept) or int(kept.max()) < len(task.train) for kept, task in zip(progress.coresets, tasks, strict=False)
    )
    if progress.task == len(tasks) or not inside:
        return inside and progress.batch == 0
    return progress.batch <= len(
        plan_for(Parts(prepared.stream, progress.task, progress.coresets), prepared.training, progress.task)
    )


class _Clock:
    """Seconds spent on a job, over all the processes that worked on it."""

    def __init__(self, before: float) -> None:
        self._before, self._started = before, time.monotonic()

    def seconds(self) -> float:
        return self._before + time.monotonic() - self._started


class Diary:
    """What happens after every mini-batch: checks, a line of metrics, progress, checkpoints, and the wish to stop."""

    def __init__(
        self,
        run: RunDirectory,
        bench: Workbench,
        prepared: PreparedJob,
        log: MetricsLog,
        reporter: Reporter,
        stop: Stop,
        events: EventWriter,
        clock: _Clock,
        held: Held,
    ) -> None:
        self.run, self.bench, self.prepared, self.log = run, bench, prepared, log
        self.reporter, self.stop, self.events, self.clock = reporter, stop, events, clock
        self.held = held
        self.total = count_batches(prepared)
        self.before = batches_before(prepared)
        self.warned = {(entry["name"], entry["layer"]) for entry in log.kept if fits(entry, WARNING)}
        self.interval = bench.config.checkpoint_seconds
        self.saved_at = time.monotonic()
        self.agreed: bool | None = None  # whether to save now, where others have a say in it

    def on_batch(self, now: Progress, report: BatchReport, plan: Plan) -> None:
        config, job = self.bench.config, self.prepared.job
        self.held.require_there()
        task = now.task
        self._warn(now, check_batch(report, now.states, job.method.method))
        if now.batch == len(plan):
            training = self.prepared.training
            steps = self.prepared.stream.tasks[task].train.time - training.burn_in
            self._warn(now, check_settled(self.prepared.rule, len(plan), steps, training.anneal, job.method.method))
        rates, loss, accuracy = report.rates.tolist(), float(report.loss), float(report.accuracy)
        share = now.replayed / now.presentations
        name = self.prepared.stream.tasks[task].name
        step = self.before[task] + now.batch
        self.reporter.batch(Moment(step, self.total, job.name, name, loss, accuracy, sum(rates) / len(rates), share))
        if now.batch % config.log_every == 0 or now.batch == len(plan):
            entry = {"loss": loss, "accuracy": accuracy, "rates": rates, "replay_share": share}
            place = {"kind": "batch", "job": job.name, "task": task, "batch": now.batch, "batches": len(plan)}
            self.log.append({**place, **entry})
            self.events.batch(job.name, step, entry)
        first = task == 0 and now.batch == 1  # the untrained network was judged before the first batch
        judged = [
            each
            for each in now.evaluations
            if each.task == task and (each.batch == now.batch or (first and not each.batch))
        ]
        for each in judged:
            plain = checkpoints.evaluation_to_plain(each)
            self.log.append({"kind": "evaluation", "job": job.name, **plain})
            self.events.evaluation(job.name, step, plain)
        if judged:
            self._keep_best(now)
        if now.batch == len(plan):
            self.log.append({"kind": "spread", "job": job.name, "task": task, "batch": now.batch, **self._spread(now)})
        if self.stop.asked:
            self.save(now)
            raise Interrupted
        if self.due() if self.agreed is None else self.agreed:
            self.save(now)

    def _warn(self, now: Progress, concerns: list[Concern]) -> None:
        """Say each concern once, and keep it."""
        job = self.prepared.job.name
        for concern in concerns:
            if (concern.kind, concern.layer) not in self.warned:
                self.warned.add((concern.kind, concern.layer))
                self.reporter.say(f"warning: {job}, task {now.task}, batch {now.batch}: {concern.sentence}")
                self.log.append(
                    {"kind": "warning", "job": job, "task": now.task, "batch": now.batch, "name": concern.kind,
                     "layer": concern.layer, "sentence": concern.sentence}
                )  # fmt: skip

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self.saved_at >= self.interval

    def save(self, now: Progress) -> None:
        """A numbered checkpoint; the last two stay."""
        begun = time.monotonic()
        self.log.sync()
        folder = self.run.checkpoints(self.prepared.job.name)
        checkpoints.save(folder, f"step-{now.task:03d}-{now.batch:07d}", *self._packed(now))
        checkpoints.prune(folder)
        self.saved_at = time.monotonic()
        if self.interval > 0:
            self.interval = max(self.bench.config.checkpoint_seconds, (self.saved_at - begun) / SAVING_SHARE)

    def _keep_best(self, now: Progress) -> None:
        first = headline(method(self.prepared.job.method.method), self.bench.config.judging)
        # of the trained network: the untrained one is judged too, and may be luckier than a short training
        accuracies = [each.overall.accuracy for each in now.evaluations if each.predictor == first and each.batch]
        if accuracies and accuracies[-1] >= max(accuracies):
            checkpoints.save(self.run.checkpoints(self.prepared.job.name), checkpoints.BEST, *self._packed(now))

    def _spread(self, now: Progress) -> dict[str, Any]:
        """How unsure the learner is of each input at the end of a task, in four digits (nought for a point), and the
        quantiles of every layer's precisions (none for what has none)."""
        learnt = posteriors(self.prepared.rule, now.states)
        return {
            "std": [float(f"{value:.4g}") for value in spread_by_input(learnt[0]).tolist()],
            "precision": [precision_quantiles(each) for each in learnt],
        }

    def _packed(self, now: Progress) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        job, config = self.prepared.job, self.bench.config
        progress, tensors = checkpoints.pack_progress(now)
        header = {
            "job": job.name,
            "identity": identity(config, job),
            "progress": progress,
            "seconds": self.clock.seconds(),
            "model": about_model(config, self.prepared),
        }
        return header, tensors
