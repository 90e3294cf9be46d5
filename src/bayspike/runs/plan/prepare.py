"""From a configuration to data, tasks, network and rule."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bayspike.continual.methods import build_rule, method
from bayspike.continual.protocol import StreamConfig, coreset_only
from bayspike.continual.tasks import Stream, Task, joint
from bayspike.data import catalogue
from bayspike.data.base import Dataset, Samples, stratified_split
from bayspike.data.delays import delays_of
from bayspike.data.fingerprint import fingerprint
from bayspike.errors import UserError, require, require_range
from bayspike.learning.blocks import check_blocks
from bayspike.rules.base import Rule
from bayspike.runs.plan.config import DataOptions, Job, RunConfig
from bayspike.runs.plan.experiment import Experiment
from bayspike.spiking.network import Network, NetworkConfig, build
from bayspike.storage.named import is_named, require_permitted

_SAID_ELSEWHERE = {
    "name": "name the data set with --dataset",
    "root": "name the folder with --data",
    "time": "give the time-steps with --time",
    "seed": "the data are the same in every repetition, of which there are as many as --seeds says",
}


@dataclass(frozen=True)
class PreparedJob:
    """A job ready to run."""

    job: Job
    network: Network
    network_config: NetworkConfig
    rule: Rule
    stream: Stream
    training: StreamConfig


def load_data(experiment: Experiment, options: DataOptions) -> Dataset:
    """The data set, cut to the sizes asked for."""
    root = None if options.root is None else Path(options.root)
    for option, instead in _SAID_ELSEWHERE.items():
        require(option not in options.options, f"--options takes no {option}: {instead}.")
    if is_named(options.name):
        require_permitted(options.name)
    try:
        dataset = catalogue.load(options.name, root=root, seed=options.seed, time=options.time, **options.options)
    except UserError as error:
        if experiment.stand_in is None or options.name != experiment.dataset or experiment.stand_in not in str(error):
            raise
        raise UserError(f"{error} To run on that simulated stand-in, add --simulated.") from error
    foreign, train, held_back = dataset.foreign, dataset.train, dataset.held_back
    if options.held_back and held_back is None:  # else the data set has its own way, such as by users
        learnt, kept = stratified_split(train.labels, options.held_back, options.seed + 7)
        train, held_back = train.subset(learnt), train.subset(kept)
    return replace(
        dataset,
        held_back=held_back,
        train=stratified(train, options.train_examples, options.seed, "train_examples"),
        test=stratified(dataset.test, options.test_examples, options.seed, "test_examples"),
        foreign=None
        if foreign is None
        else stratified(foreign, options.foreign_examples, options.seed, "foreign_examples"),
    )


def stratified(samples: Samples, count: int | None, seed: int, what: str) -> Samples:
    """`count` samples with all classes as equally represented as can be; all where there are no more."""
    if count is None or count >= len(samples):
        return samples
    require_range(what, count, 1)
    return samples.subset(stratified_indices(samples.labels, count, seed))


def stratified_indices(labels: Tensor, count: int, seed: int) -> Tensor:
    """The first of every class in a random order, then the second of every class, and so on; sorted."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(labels), generator=generator)
    rank = torch.empty_like(order)
    for label in labels.unique():
        members = (labels[order] == label).nonzero().flatten()
        rank[members] = torch.arange(len(members))
    return order[torch.argsort(rank, stable=True)[:count]].sort().values


def describe_data(dataset: Dataset, stream: Stream, options: DataOptions) -> dict[str, Any]:
    """What was really loaded, from where, with a fingerprint: enough to notice other data under the same name."""
    hashed = hashlib.blake2b(digest_size=8)
    for samples in (dataset.train, dataset.test):
        hashed.update(samples.labels.numpy().tobytes())
    place = catalogue.place_of(options.name, None if options.root is None else Path(options.root))
    more: dict[str, Any] = {"about": dataset.about} if dataset.about else {}
    if dataset.held_back is not None:
        more["held_back"] = len(dataset.held_back)
    return {
        "name": dataset.name,
        **more,
        "simulated": dataset.simulated,
        "classes": list(dataset.classes),
        "sample_shape": list(dataset.sample_shape),
        "inputs": dataset.train.inputs,
        "time": dataset.train.time,
        "train": len(dataset.train),
        "test": len(dataset.test),
        "foreign": 0 if dataset.foreign is None else len(dataset.foreign),
        "foreign_about": dataset.foreign_about,
        "tasks": [task.name for task in stream.judges],
        "labels": hashed.hexdigest(),
        "fingerprint": fingerprint(dataset),
        "place": None if place is None else str(place.resolve()),
        "view": dict(dataset.view),
    }


def prepare(config: RunConfig, job: Job, dataset: Dataset, stream: Stream) -> PreparedJob:
    """Network, rule and tasks of one job."""
    chosen = job.method
    rule = build_rule(chosen.method, chosen.rule)
    network_config = chosen.network.config(
        dataset.train.inputs, len(dataset.classes), rule.binary, job.seed, dataset.sample_shape
    )
    training = chosen.training.config(job.seed, dataset.sample_shape, delays_of(dataset.view))
    time = stream.tasks[0].train.time
    require(training.burn_in < time, f"burn_in must leave some of the {time} time-steps to learn from.")
    tasks = method(chosen.method).tasks
    if tasks == "joint":
        stream = joint(stream)
    elif tasks == "coresets":
        stream = coreset_only(stream, training)
    try:
        network = build(network_config).to(config.device)
    except (RuntimeError, MemoryError) as error:  # how torch says that there is no room
        raise UserError(
            f"There is no room for a network of {network_config.described} neurons: make it smaller."
        ) from error
    if training.update_every > 1:
        check_blocks(network, rule, training.update_every)
    return PreparedJob(job, network, network_config, rule, stream, training)


def count_batches(prepared: PreparedJob) -> int:
    """Mini-batches of a whole job: exact for the protocol's plans, and only used to tell the time left."""
    return batches_before(prepared)[-1]


def batches_before(prepared: PreparedJob) -> list[int]:
    """Mini-batches before each task, and last those of all."""
    stream, training = prepared.stream, prepared.training
    totals, stored = [0], 0
    stored_tasks = 0
    for task in stream.tasks:
        fresh = len(task.train) * training.epochs
        if training.replay == "balanced":
            shown = fresh * (1 + stored_tasks)
        else:
            shown = fresh + (stored * training.epochs if training.replay == "pooled" else 0)
        totals.append(totals[-1] - (-shown // training.batch))
        if training.replay != "none" and training.coreset_share > 0:
            stored += round(len(task.train) * training.coreset_share)
            stored_tasks += 1
    return totals


def judged(judges: Sequence[Task], examples: int | None, seed: int) -> list[Samples]:
    """The test samples of every task, cut evenly to `examples` in all."""
    share = None if examples is None else max(1, examples // len(judges))
    return [stratified(task.test, share, seed, "interim_examples") for task in judges]
