"""Training through a stream of tasks (paper, Secs. "Frequentist / Bayesian Continual Learning").

All that a run needs to go on is in a `Progress` value, and every random draw is seeded by the run's seed and the place
in the stream. So a run that is taken up from any `Progress` does exactly what the uninterrupted one would have done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from bayspike.continual.answers import StoredAs, said_of, targets_of
from bayspike.continual.coresets import Selection, draw_coreset
from bayspike.continual.replay import Mixing, Plan, fetch, first_time, plan_task
from bayspike.continual.tasks import Concatenated, Stream, Task
from bayspike.data.augment import Augment
from bayspike.data.base import Samples
from bayspike.errors import require, require_range
from bayspike.kernels import Kernels, check_kernels
from bayspike.learning.batch import BatchReport, init_states, pace_of, posteriors, train_batch
from bayspike.learning.fisher import diagonal_fisher
from bayspike.posteriors.distributions import Posterior
from bayspike.rules import GaussianVI
from bayspike.rules.base import Pace, Paced, Rule, State
from bayspike.seeds import generator_for, seed_for
from bayspike.spiking.network import Network

Evidence = Literal["always", "once"]
Judged = Literal["all", "learnt"]
NEWEST, SPREAD = 5, 5  # tasks that are judged of many: the last ones, and some between the first and those


@dataclass(frozen=True)
class StreamConfig:
    """How a learner goes through a stream.

    evaluations: how often all tasks are judged during each task, evenly spaced, the last time at its end.
    anneal: share of the learning rate that is taken off, linearly, over each task; for every rule alike. In natural
    units the step of the mean alone falls, see `anneal`.
    fisher_examples: from how many examples of a task the Fisher information is estimated (None: all).
    evidence: "always" is the paper's objective, in which a replayed example raises precisions again; with "once" it
    moves the means alone, as does an example of the task from its second epoch on: each has been counted before.
    judge: which tasks are judged during training: "all", or those "learnt" so far, of many the newest five and five
    more spread evenly over the others, so that judging costs the same after every task however many there are.
    update_every: time-steps for which the weights stand still before an update of all of them; 1 is the letter.
    kernels: which form of the inner loops is used, plain or compiled (`bayspike.kernels`).
    stored_as: what a stored example is taken for when it is replayed: its label, or what the learner answered when its
    task ended (`bayspike.continual.answers`).
    augment: how spikes are changed whenever they are learnt from; None leaves them, and all draws, as they are.
    augment_stored: the same for replayed examples alone, which are seen again and again.
    """

    epochs: int = 1
    batch: int = 64
    replay: Mixing = "balanced"
    coreset_share: float = 0.075
    coreset_selection: Selection = "random"
    evaluations: int = 1
    fisher_examples: int | None = None
    burn_in: int = 0
    anneal: float = 0.0
    evidence: Evidence = "always"
    judge: Judged = "all"
    seed: int = 0
    augment: Augment | None = None
    augment_stored: Augment | None = None
    update_every: int = 1
    kernels: Kernels = "plain"
    stored_as: StoredAs = "labels"

    def __post_init__(self) -> None:
        require_range("epochs", self.epochs, 1)
        require_range("batch", self.batch, 1)
        require_range("coreset_share", self.coreset_share, 0, 1)
        require_range("evaluations", self.evaluations, 1)
        require_range("burn_in", self.burn_in, 0)
        require_range("anneal", self.anneal, 0, 1)
        require_range("update_every", self.update_every, 1)
        check_kernels(self.kernels)
        if self.fisher_examples is not None:
            require_range("fisher_examples", self.fisher_examples, 1)
        for name, value, choices in (
            ("replay", self.replay, get_args(Mixing)),
            ("evidence", self.evidence, get_args(Evidence)),
            ("judge", self.judge, get_args(Judged)),
            ("coreset_selection", self.coreset_selection, get_args(Selection)),
            ("stored_as", self.stored_as, get_args(StoredAs)),
        ):
            require(value in choices, f"{name} must be one of {', '.join(choices)}, but is {value!r}.")


class Scores(NamedTuple):
    """How good and how honest the decisions on one test set were."""

    accuracy: float
    ece: float
    nll: float
    brier: float
    confidence: float
    examples: int


_NAN = float("nan")
UNJUDGED = Scores(_NAN, _NAN, _NAN, _NAN, _NAN, 0)  # stands for a task that was not looked at


class Evaluation(NamedTuple):
    """The tasks judged at one moment by one predictor."""

    task: int  # the task being learnt, or just learnt
    batch: int  # mini-batches of it presented so far; 0 before the first of all: the untrained network
    predictor: str
    tasks: tuple[Scores, ...]  # in the order of Stream.judges; UNJUDGED where one was left out
    overall: Scores  # all test examples that were looked at together


# posteriors, judges, seed -> for every predictor the scores of each task and of all together
Evaluate = Callable[[Sequence[Posterior], Sequence[Task], int], dict[str, tuple[tuple[Scores, ...], Scores]]]


@dataclass(frozen=True)
class Progress:
    """Where a run stands: `batch` mini-batches into task number `task`."""

    states: tuple[State, ...]
    task: int = 0
    batch: int = 0
    coresets: tuple[Tensor, ...] = ()  # indices into each finished task's training samples
    answers: tuple[Tensor, ...] = ()  # what the learner said of those, where that is stored too
    presentations: int = 0
    replayed: int = 0
    evaluations: tuple[Evaluation, ...] = field(default=())


OnBatch = Callable[[Progress, BatchReport, Plan], None]


class Hands(NamedTuple):
    """Who does the work: this process alone, or several that share the neurons of every layer (`bayspike.sharded`)."""

    init: Callable[[Network, Rule, torch.Generator], list[State]] = init_states
    train: Callable[..., tuple[list[State], BatchReport]] = train_batch
    fisher: Callable[[Network, Sequence[Tensor], Samples, torch.Generator], list[Tensor]] = diagonal_fisher


ALONE = Hands()


def start(network: Network, rule: Rule, seed: int, hands: Hands = ALONE) -> Progress:
    """A run before its first mini-batch."""
    return Progress(tuple(hands.init(network, rule, generator_for(seed, "init"))))


def run_stream(
    network: Network,
    rule: Rule,
    stream: Stream,
    config: StreamConfig,
    evaluate: Evaluate | None = None,
    progress: Progress | None = None,
    on_batch: OnBatch | None = None,
    hands: Hands = ALONE,
) -> Progress:
    """Train through all tasks, from the beginning or from where `progress` stands.

    The untrained network is judged first, then at the moments of the configuration. `on_batch` is called after every
    mini-batch with the new progress (its tensors are reused by the next batch: copy what is to be kept), the batch's
    report and the plan of the task. A progress that has come to the end of the stream is refused, since nothing would
    be learnt: a further task is what `extend` is for.
    """
    require(
        stream.tasks[0].train.inputs == network.inputs and stream.classes == network.classes,
        f"the stream has {stream.tasks[0].train.inputs} inputs and {stream.classes} classes, but the network "
        f"{network.inputs} and {network.classes}.",
    )
    time = stream.tasks[0].train.time
    require(config.burn_in < time, f"burn_in must leave some of the {time} time-steps to learn from.")
    now = progress or start(network, rule, config.seed, hands)
    require(
        now.task < len(stream.tasks),
        f"the progress given has {now.task} tasks behind it and the stream only {len(stream.tasks)}, so nothing would "
        "be learnt: learn one more task with bayspike.continual.extend.",
    )
    if evaluate is not None and now.task == 0 and now.batch == 0 and not now.evaluations:
        now = replace(now, evaluations=_judge(rule, stream.judges, config, now, evaluate, stream.stage_judges))
    while now.task < len(stream.tasks):
        parts = Parts(stream, now.task, now.coresets)
        stages = stream.stage_judges
        now = run_task(network, rule, parts, config, now, stream.judges, evaluate, on_batch, stages, hands)
        now = end_task(network, rule, stream.tasks[now.task].train, config, now, hands)
    return now


def plan_for(parts: Sequence[Samples], config: StreamConfig, task: int) -> Plan:
    """The mini-batches of a task: a pure function of the configuration and the sizes of the task and the coresets."""
    return plan_task(
        len(parts[0]),
        [] if config.replay == "none" else [len(kept) for kept in parts[1:]],
        batch=config.batch,
        epochs=config.epochs,
        mixing=config.replay,
        seed=seed_for(config.seed, "plan", task),
    )


def run_task(
    network: Network,
    rule: Rule,
    parts: Sequence[Samples],
    config: StreamConfig,
    now: Progress,
    judges: Sequence[Task] = (),
    evaluate: Evaluate | None = None,
    on_batch: OnBatch | None = None,
    stages: Sequence[int] | None = None,
    hands: Hands = ALONE,
) -> Progress:
    """All mini-batches of one task, or those that are left: `parts` are its examples, then each stored set.

    `stages` names the judge of every task, where each has one.
    """
    plan = plan_for(parts, config, now.task)
    moments = {round(len(plan) * (k + 1) / config.evaluations) for k in range(config.evaluations)}
    paced = rule.at(_pace(network, config, plan, parts)) if isinstance(rule, Paced) else rule
    natural = isinstance(rule, GaussianVI) and rule.lr is None
    for position in range(now.batch, len(plan)):
        generator = generator_for(config.seed, "batch", now.task, position)
        sources, indices = plan.pick(position)
        spikes, labels = fetch(parts, sources, indices, generator)
        if now.answers:
            dtype = network.layers[-1].readout.dtype
            labels = targets_of(labels, sources, indices, now.answers, network.classes, dtype)
        if config.augment is not None:
            spikes = config.augment(spikes, generator)
        fresh = int((sources == 0).sum())  # they come first
        if config.augment_stored is not None and fresh < len(sources):
            spikes[:, fresh:] = config.augment_stored(spikes[:, fresh:], generator)
        slower = anneal(paced, config.anneal * position / len(plan), counted=natural)
        evidence = None if config.evidence == "always" else first_time(plan, position, len(parts[0]))
        states, report = hands.train(
            network, slower, now.states, spikes, labels, generator, config.burn_in, evidence, config.update_every,
            config.kernels,
        )  # fmt: skip
        now = replace(
            now,
            states=tuple(states),
            batch=position + 1,
            presentations=now.presentations + len(sources),
            replayed=now.replayed + int((sources > 0).sum()),
        )
        if evaluate is not None and now.batch in moments:
            now = replace(now, evaluations=now.evaluations + _judge(rule, judges, config, now, evaluate, stages))
        if on_batch is not None:
            on_batch(now, report, plan)
    return now


def _pace(network: Network, config: StreamConfig, plan: Plan, parts: Sequence[Samples]) -> Pace:
    stored = 0.0 if config.replay == "none" else _per_class([part.labels for part in parts[1:]])
    # a stored example that is shifted teaches as much as so many more; the new ones may be shifted too
    again = 1 if config.augment_stored is None else config.augment_stored.looks
    every = 1 if config.augment is None else config.augment.looks
    return pace_of(network, config.batch, parts[0].time - config.burn_in)._replace(
        examples=plan.presentations,
        stored=stored * max(again, every),
        share=stored * max(again, every) / (max(1.0, _per_class([parts[0].labels])) * every),
        first=len(parts) == 1,
        fresh=len(parts[0]),
    )


def _per_class(labels: Sequence[Tensor]) -> float:
    """Examples of a class, on average over the classes that are there; those of different parts count apart."""
    classes = sum(len(each.unique()) for each in labels)
    return sum(map(len, labels)) / classes if classes else 0.0


def anneal(rule: Rule, share: float, counted: bool = False) -> Rule:
    """The same rule with `share` of its learning rate taken off, and of the precision's where it has one of its own.

    `counted`: the precision counts evidence, as in natural units. Then the step of the mean alone becomes smaller: what
    comes late in a task is as much evidence as what came first.
    """
    if share == 0:
        return rule
    settings: Any = rule  # every rule is a dataclass with a learning rate `lr`
    rates = {"lr": settings.lr * (1 - share)}
    if counted:
        rates["precision_lr"] = settings.precision_rate
    elif getattr(rule, "precision_lr", None) is not None:
        rates["precision_lr"] = settings.precision_lr * (1 - share)
    slower: Rule = replace(settings, **rates)
    return slower


def _judge(
    rule: Rule,
    judges: Sequence[Task],
    config: StreamConfig,
    now: Progress,
    evaluate: Evaluate,
    stages: Sequence[int] | None,
) -> tuple[Evaluation, ...]:
    seed = seed_for(config.seed, "judge", now.task, now.batch)
    places = range(len(judges)) if config.judge == "all" or stages is None else judged_places(stages[: now.task + 1])
    found = []
    for name, (scores, overall) in evaluate(posteriors(rule, now.states), [judges[k] for k in places], seed).items():
        everyone = [UNJUDGED] * len(judges)
        for place, each in zip(places, scores, strict=True):
            everyone[place] = each
        found.append(Evaluation(now.task, now.batch, name, tuple(everyone), overall))
    return tuple(found)


def judged_places(learnt: Sequence[int]) -> list[int]:
    """Of the judges of the tasks so far, in the order they were learnt: the newest, and some from amid equal parts of
    the others, for which they stand."""
    once = list(dict.fromkeys(reversed(learnt)))[::-1]  # one that came back is as new as its last time
    older, newest = once[:-NEWEST], once[-NEWEST:]
    chosen = {int((part + 0.5) * len(older) / SPREAD) for part in range(SPREAD)} if older else set()
    return sorted([older[k] for k in chosen] + newest)


def end_task(
    network: Network, rule: Rule, train: Samples, config: StreamConfig, now: Progress, hands: Hands = ALONE
) -> Progress:
    """The posterior becomes the prior, and a coreset of the task is drawn once and for all."""
    fisher: Sequence[Tensor | None] = [None] * len(now.states)
    if rule.needs_fisher:
        generator = generator_for(config.seed, "fisher", now.task)
        count = min(len(train), config.fisher_examples or len(train))
        chosen = train.subset(torch.randperm(len(train), generator=generator)[:count]) if count < len(train) else train
        modes = [posterior.mode() for posterior in posteriors(rule, now.states)]
        share = len(train) / count  # the paper sums over the whole data set
        fisher = [share * part for part in hands.fisher(network, modes, chosen, generator)]
    states = tuple(rule.end_task(state, part) for state, part in zip(now.states, fisher, strict=True))
    generator = generator_for(config.seed, "coreset", now.task)
    share = config.coreset_share if config.replay != "none" else 0.0
    kept = draw_coreset(train, share, config.coreset_selection, generator)
    answers = now.answers
    if config.stored_as == "answers":
        require(hands is ALONE, "answers of stored examples need a process that has the whole network.")
        seed = seed_for(config.seed, "answers", now.task)
        answers = (*answers, said_of(train.subset(kept), network, posteriors(rule, states), seed))
    return replace(now, states=states, task=now.task + 1, batch=0, coresets=(*now.coresets, kept), answers=answers)


class Parts(Sequence[Samples]):
    """What the plan of a task draws from: its own examples, then the coresets, each taken out when first asked for.

    So a task costs the same however many went before it, unless their examples are replayed.
    """

    def __init__(self, stream: Stream, task: int, coresets: Sequence[Tensor]) -> None:
        self._stream, self._coresets = stream, coresets
        self._taken: dict[int, Samples] = {0: stream.tasks[task].train}

    def __len__(self) -> int:
        return 1 + len(self._coresets)

    def __getitem__(self, source: Any) -> Any:
        if isinstance(source, slice):
            return [self[each] for each in range(*source.indices(len(self)))]
        if source not in self._taken:
            self._taken[source] = self._stream.tasks[source - 1].train.subset(self._coresets[source - 1])
        return self._taken[source]


def coreset_samples(stream: Stream, coresets: Sequence[Tensor]) -> list[Samples]:
    """The stored examples of every finished task."""
    return [task.train.subset(kept) for task, kept in zip(stream.tasks, coresets, strict=False)]


def coreset_only(stream: Stream, config: StreamConfig) -> Stream:
    """The rival that stores and does nothing else: one final training on the coresets alone (as in GDumb)."""
    coresets = [
        draw_coreset(
            task.train, config.coreset_share, config.coreset_selection, generator_for(config.seed, "coreset", k)
        )
        for k, task in enumerate(stream.tasks)
    ]
    stored = Concatenated(tuple(coreset_samples(stream, coresets)))
    return Stream((Task("coresets", stored, stream.judges[0].test),), stream.classes, stream.judges)
