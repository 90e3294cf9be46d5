"""One trial: a learner with drawn settings goes through the experiment, judged on the validation examples."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from bayspike.continual.judging import judge_with
from bayspike.continual.methods import method
from bayspike.continual.protocol import Evaluation, Progress, run_stream
from bayspike.continual.replay import Plan
from bayspike.continual.tasks import Stream
from bayspike.errors import UserError
from bayspike.learning.batch import BatchReport
from bayspike.learning.health import check_batch
from bayspike.runs.jobs import Interrupted, Stop, Workbench
from bayspike.runs.outcome.examination import headline
from bayspike.runs.plan.config import Job, MethodConfig
from bayspike.runs.plan.prepare import batches_before, count_batches, prepare
from bayspike.runs.reporting import Moment, Reporter
from bayspike.spiking.denormals import flushed_denormals
from bayspike.tuning.plan import Objective

MEMBERS = 5  # of a committee that judges a trial


class Hopeless(Exception):
    """The trial is not worth going on with."""


class Diverged(Exception):
    """The settings do not learn at all."""


class Outcome(NamedTuple):
    """How a trial ended, on all validation examples."""

    scores: dict[str, Any]
    rate: float  # spikes per neuron and time-step while learning, at the end


def so_far(evaluation: Evaluation, stream: Stream, objective: Objective) -> float:
    """The objective over the tasks that have been learnt, each example counting the same."""
    stages = stream.stage_judges
    if stages is None:
        return float(getattr(evaluation.overall, objective))
    seen = [evaluation.tasks[place] for place in sorted({stages[task] for task in range(evaluation.task + 1)})]
    examples = sum(each.examples for each in seen)
    return sum(float(getattr(each, objective)) * each.examples for each in seen) / examples


def run_trial(
    bench: Workbench,
    chosen: MethodConfig,
    seed: int,
    objective: Objective,
    judged: Callable[[int, float], None],
    reporter: Reporter,
    stop: Stop,
    name: str,
) -> Outcome:
    """Learn and judge. `judged` hears the objective after every evaluation, and may raise `Hopeless`."""
    try:
        prepared = prepare(bench.config, Job(chosen, seed), bench.dataset, bench.stream)
    except UserError as error:  # settings that exclude each other
        raise Diverged(str(error)) from error
    total = count_batches(prepared)
    before = batches_before(prepared)
    heard, last_rate = 0, math.nan

    def on_batch(now: Progress, report: BatchReport, plan: Plan) -> None:
        nonlocal heard, last_rate
        try:
            check_batch(report, now.states, chosen.method)
        except UserError as error:
            raise Diverged(str(error)) from error
        last_rate = float(report.rates.mean())
        place = before[now.task] + now.batch
        numbers = (float(report.loss), float(report.accuracy), last_rate, now.replayed / now.presentations)
        reporter.batch(Moment(place, total, chosen.method, name, *numbers))
        known = [each for each in now.evaluations if each.batch]
        for each in known[heard:]:
            judged(heard, so_far(each, prepared.stream, objective))
            heard += 1
        if stop.asked:
            raise Interrupted

    predictor = headline(method(chosen.method), bench.config.judging)
    judge = judge_with(prepared.network, [predictor], members=MEMBERS)
    with flushed_denormals():
        done = run_stream(prepared.network, prepared.rule, prepared.stream, prepared.training, judge, on_batch=on_batch)
    return Outcome(done.evaluations[-1].overall._asdict(), last_rate)


def steps_of(bench: Workbench, chosen: MethodConfig) -> int:
    """How often a trial is judged."""
    prepared = prepare(bench.config, Job(chosen, 0), bench.dataset, bench.stream)
    return len(prepared.stream.tasks) * prepared.training.evaluations


def batches_of(bench: Workbench, chosen: MethodConfig) -> int:
    return count_batches(prepare(bench.config, Job(chosen, 0), bench.dataset, bench.stream))
