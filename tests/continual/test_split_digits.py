"""Split digits, the paper's class-incremental protocol on a small scale: real MNIST digits, two classes a task, one
head, one epoch, coresets of 7.5 % of each class, balanced replay.

200 images per class to learn from, 100 to be judged on; 128 neurons, 20 time-steps. The step sizes were chosen
on a validation split (200 other images per class, two seeds each), with equal effort for the two rivals: 14 settings of
learning rate and strength for EWC (best 85.7 %), 14 of learning rate, prior precision and temperature for Gaussian
variational inference (best 86.6 %, committee of 5). The test images were not looked at for that.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from bayspike.continual import (
    Stream,
    StreamConfig,
    coreset_only,
    joint,
    judge_with,
    memory_of,
    run_stream,
    split_by_class,
    summarise,
)
from bayspike.data.base import Dataset, stratified_split
from bayspike.data.catalogue import load
from bayspike.learning.batch import posteriors
from bayspike.rules import EWC, SGD, STE, TACOS, BernoulliVI, GaussianVI, Rule
from bayspike.spiking.network import NetworkConfig, build

CONFIG = StreamConfig()
BAYES = GaussianVI(lr=2000.0, prior_precision=1000.0, temperature=1e-6)
ELASTIC = EWC(lr=0.4, strength=1e-5)

Shown = Callable[[Stream], Stream]


def as_it_is(stream: Stream) -> Stream:
    return stream


METHODS: dict[str, tuple[Rule, Shown, StreamConfig]] = {
    "fine-tuning": (SGD(lr=0.2), as_it_is, replace(CONFIG, replay="none")),
    "replay": (SGD(lr=0.2), as_it_is, CONFIG),
    "pooled replay": (SGD(lr=0.2), as_it_is, replace(CONFIG, replay="pooled")),
    "EWC": (ELASTIC, as_it_is, CONFIG),
    "online EWC": (replace(ELASTIC, online=True), as_it_is, CONFIG),
    "TACOS": (TACOS(lr=0.2), as_it_is, CONFIG),
    "Bayes": (BAYES, as_it_is, CONFIG),
    "straight-through": (STE(lr=1.0), as_it_is, CONFIG),
    "binary Bayes": (BernoulliVI(lr=100.0, sampling="neuron"), as_it_is, CONFIG),
    "coresets only": (SGD(lr=0.2), lambda stream: coreset_only(stream, CONFIG), replace(CONFIG, epochs=10)),
    "joint": (SGD(lr=0.2), joint, replace(CONFIG, replay="none")),
}


@cache
def digits() -> Stream:
    full = load("digits", time=20)
    learnt, _ = stratified_split(full.train.labels, 200, 0)
    return split_by_class(Dataset("digits", full.train.subset(learnt), full.test, full.classes, full.sample_shape))


@cache
def average_accuracy(method: str, seed: int = 0) -> float:
    """Learn through the stream, then judge: by a committee of ten where there is a posterior to draw from."""
    rule, shown, config = METHODS[method]
    stream = shown(digits())
    network = build(NetworkConfig(784, (128,), 10, binary=rule.binary))
    done = run_stream(network, rule, stream, replace(config, seed=seed))
    if method in ("EWC", "Bayes"):
        assert memory_of(stream, done).coresets == 10 * 15 * 784  # the same for both: 15 images of every class
    kind: str = "committee" if isinstance(rule, GaussianVI | BernoulliVI) else "point"
    tasks, _ = judge_with(network, (kind,))(posteriors(rule, done.states), stream.judges, seed)[kind]
    return sum(scores.accuracy for scores in tasks) / len(tasks)


def test_fine_tuning_forgets() -> None:
    rule, _, config = METHODS["fine-tuning"]
    network = build(NetworkConfig(784, (128,), 10))
    runs = [run_stream(network, rule, digits(), config, judge_with(network, ("point",))) for _ in range(2)]
    floor = summarise(digits(), runs[0].evaluations, "point")
    assert floor.average_accuracy < 0.30
    assert floor.plasticity > 0.85  # it has learnt every task
    assert floor.forgetting > 0.7
    assert runs[0].evaluations == runs[1].evaluations  # the seed decides


@pytest.mark.parametrize("method", [name for name in METHODS if name != "fine-tuning"])
def test_every_method_beats_fine_tuning(method: str) -> None:
    """By far: the floor is near a fifth, the weakest of these above a half."""
    assert average_accuracy(method) > average_accuracy("fine-tuning") + 0.3


def test_the_bayesian_committee_is_at_least_as_accurate_as_ewc_with_the_same_coresets() -> None:
    """Mean of two seeds. The seed decides initial weights, order, spikes and coresets, for both alike."""
    bayes, elastic = (sum(average_accuracy(method, seed) for seed in (0, 1)) / 2 for method in ("Bayes", "EWC"))
    assert bayes >= elastic
    assert elastic > 0.75  # the rival is in good shape
