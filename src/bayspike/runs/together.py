"""One job on several processes (`torchrun --nproc-per-node N -m bayspike run …`).

The first process has the run directory, the reporter and the judges; the others hold their rows of the network and do
their part of every mini-batch. After each they agree on whether to stop, to save, or to give up.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import torch

from bayspike.continual.protocol import Evaluate, Hands, OnBatch, Progress, Scores, run_stream
from bayspike.continual.replay import Plan
from bayspike.continual.tasks import Task
from bayspike.errors import UserError, require
from bayspike.learning.batch import BatchReport
from bayspike.learning.health import check_batch
from bayspike.posteriors.distributions import Posterior
from bayspike.runs import checkpoints
from bayspike.runs.engine import open_bench
from bayspike.runs.jobs import Diary, Interrupted, Stop
from bayspike.runs.plan.config import RunConfig, config_from_json, config_to_json, jobs_of
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.plan.prepare import PreparedJob, prepare
from bayspike.seeds import generator_for
from bayspike.sharded.exchange import Group
from bayspike.sharded.states import rows_of_state, whole_posteriors, whole_state
from bayspike.sharded.training import SharedHands, parts_of, require_shareable
from bayspike.spiking.denormals import flushed_denormals

PATIENCE = timedelta(days=7)  # with which the others wait while the first one judges


def under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


class Crew:
    """The processes of a run. Whatever is done together, all of them do in the same order."""

    def __init__(self, group: Group) -> None:
        self.group, self.told = group, False
        shared = SharedHands(group)
        self.hands = Hands(shared.init, shared.train, shared.fisher)

    @property
    def first(self) -> bool:
        return self.group.rank == 0

    # --- what goes to all of them

    def _broadcast(self, value: Any = None) -> Any:
        """The first one's value, as JSON."""
        from torch import distributed

        content = bytearray(json.dumps(value).encode()) if self.first else bytearray()
        size = torch.tensor([len(content)])
        distributed.broadcast(size, 0)
        text = torch.frombuffer(content, dtype=torch.uint8) if self.first else torch.empty(int(size), dtype=torch.uint8)
        distributed.broadcast(text, 0)
        return json.loads(text.numpy().tobytes())

    def tell(self, config: RunConfig | None, left: Sequence[str] = ()) -> None:
        """The first one says what is to be done; None: nothing (more)."""
        self.told = True
        self._broadcast({"config": None if config is None else config_to_json(config), "left": list(left)})

    def _agree(self, *wishes: bool) -> list[bool]:
        """What any of them wishes."""
        from torch import distributed

        voted = torch.tensor([int(each) for each in wishes])
        distributed.all_reduce(voted, distributed.ReduceOp.MAX)
        return [bool(each) for each in voted.tolist()]

    # --- a job

    def check(self, prepared: PreparedJob) -> None:
        """Refuse what these processes could not learn together, before anything is begun."""
        training = prepared.training
        require_shareable(prepared.network, prepared.rule, training.update_every, training.kernels)

    def spread(self, progress: Progress | None, prepared: PreparedJob) -> Progress | None:
        """One's own part of the progress that the first one has."""
        header = None
        if self.first and progress is not None:
            header = {
                **checkpoints.pack_progress(progress)[0],
                "kept": [each.tolist() for each in progress.coresets],
            }
        header = self._broadcast(header)
        if header is None:
            return None
        network, rule = prepared.network, prepared.rule
        shapes = self.hands.init(network, rule, generator_for(0, "shapes"))
        states = []
        for index, (part, own) in enumerate(zip(parts_of(network, self.group), shapes, strict=True)):
            whole = progress.states[index] if progress is not None else None
            states.append(rows_of_state(self.group, part, rule, whole, own))
        return Progress(
            states=tuple(states),
            task=header["task"],
            batch=header["batch"],
            coresets=tuple(torch.tensor(each, dtype=torch.int64) for each in header["kept"]),
            presentations=header["presentations"],
            replayed=header["replayed"],
            evaluations=tuple(checkpoints.evaluation_from_plain(each) for each in header["evaluations"]),
        )

    def whole(self, progress: Progress, prepared: PreparedJob) -> Progress:
        """The whole progress in the first one; the others get their own back."""
        parts = parts_of(prepared.network, self.group)
        found = [
            whole_state(self.group, part, prepared.rule, state)
            for part, state in zip(parts, progress.states, strict=True)
        ]
        return replace(progress, states=tuple(found)) if self.first else progress

    def judge(self, evaluate: Evaluate, prepared: PreparedJob) -> Evaluate:
        """The first one judges the whole network, the others hear of it."""

        def shared(
            posteriors: Sequence[Posterior], judges: Sequence[Task], seed: int
        ) -> dict[str, tuple[tuple[Scores, ...], Scores]]:
            whole = whole_posteriors(self.group, parts_of(prepared.network, self.group), posteriors)
            verdicts = {} if whole is None else evaluate(whole, judges, seed)
            heard = self._broadcast(verdicts)
            return {
                name: (tuple(Scores(*each) for each in tasks), Scores(*overall))
                for name, (tasks, overall) in heard.items()
            }

        return shared

    def on_batch(self, prepared: PreparedJob, stop: Stop, diary: Diary | None) -> OnBatch:
        """After every mini-batch: checks, an agreement, and where it is wanted the whole state for the diary."""

        def look(now: Progress, report: BatchReport, plan: Plan) -> None:
            trouble = ""
            try:
                check_batch(report, now.states, prepared.job.method.method)
            except UserError as error:
                trouble = str(error)
            stopping, saving, failing = self._agree(stop.asked, diary is not None and diary.due(), bool(trouble))
            if failing:
                raise UserError(trouble or "Training diverged in another process of this run: lower the learning rate.")
            judged = any(each.task == now.task and each.batch == now.batch for each in now.evaluations)
            wanted = stopping or saving or judged or now.batch == len(plan)
            whole = self.whole(now, prepared) if wanted else now
            if diary is not None:
                diary.stop, diary.agreed = Stop(stopping), saving  # a wish of this very moment has to wait for the next
                diary.on_batch(whole, report, plan)
            elif stopping:
                raise Interrupted

        return look

    # --- the others

    def follow(self, find: Callable[[str], Experiment], stop: Stop) -> int:
        """The whole life of a process that is not the first; returns its exit code."""
        told = self._broadcast()
        if told["config"] is None:
            return 2
        config = config_from_json(told["config"], "the configuration")
        bench = open_bench(config, find(config.experiment))
        bench = replace(bench, config=config)
        jobs = {job.name: job for job in jobs_of(config)}
        try:
            for name in told["left"]:
                self._follow_job(prepare(config, jobs[name], bench.dataset, bench.stream), stop)
        except Interrupted:
            return 130
        return 0

    def _follow_job(self, prepared: PreparedJob, stop: Stop) -> None:
        with flushed_denormals():
            now = self.spread(None, prepared)
            if now is not None and now.task == len(prepared.stream.tasks):
                return
            judge = self.judge(_nobody, prepared)
            done = run_stream(
                prepared.network, prepared.rule, prepared.stream, prepared.training, judge, now,
                self.on_batch(prepared, stop, None), self.hands,
            )  # fmt: skip
            self.whole(done, prepared)


def _nobody(posteriors: Sequence[Posterior], judges: Sequence[Task], seed: int) -> dict[str, Any]:
    raise AssertionError("only the first process judges")


@contextmanager
def crew_of_torchrun(device: str) -> Iterator[Crew | None]:
    """The processes that torchrun has started; None where it has not."""
    if not under_torchrun():
        yield None
        return
    from torch import distributed

    require(
        not device.startswith("cuda") or torch.cuda.is_available(),
        f"The device {device!r} cannot be used here; --device cpu always can.",
    )
    distributed.init_process_group("gloo", timeout=PATIENCE)
    crew = Crew(Group(distributed.get_rank(), distributed.get_world_size()))
    try:
        yield crew
        if crew.first and not crew.told:
            crew.tell(None)
    except UserError:
        if crew.first and not crew.told:  # a mistake before anything was begun: the others go home
            crew.tell(None)
        raise
    distributed.destroy_process_group()
