"""Does a Bayesian learner stay plastic over many tasks?

    python benchmarks/many_tasks.py [--tasks 80] [--seeds 3] [--horizon 2 5] [--out docs/img/many-tasks.png]

Real digits (8×8, from scikit-learn), each task behind a permutation of the pixels of its own; one epoch of 320
images a task, no replay. After each task the accuracy on *that* task is measured: a learner that is stiff with old
certainty no longer learns it. The learners of one network:

- carried over    at each task's end the posterior becomes the prior, as in the paper;
- boundary-free   `horizon` N: the prior is q^(1−1/N)·p₀^(1/N) at every step, and task boundaries are not used;
- SGD             for comparison: no prior at all.

Prints accuracy and precision, averaged over blocks of tasks, and draws them.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bayspike.continual import Progress, Stream, StreamConfig, permuted, run_stream
from bayspike.data.base import Dataset
from bayspike.data.catalogue import load
from bayspike.figures.style import WIDTH, new_sheet, plot_line, series_style, styled
from bayspike.learning.batch import posteriors
from bayspike.metrics import accuracy
from bayspike.predict.predictors import Point, predict_samples
from bayspike.rules import SGD, GaussianVI, Rule
from bayspike.spiking.network import Network, NetworkConfig, build

TIME, TRAIN, TEST, NEURONS = 15, 320, 200, 50
BAYES = GaussianVI(lr=3000.0, prior_precision=1000.0, temperature=1e-2 / 3000)


class Curve(NamedTuple):
    accuracy: Tensor  # on each task just after it was learnt, (tasks,)
    precision: Tensor  # mean over the weights at that moment, (tasks,); NaN for SGD


def stream(tasks: int, seed: int) -> Stream:
    digits = load("digits", source="sklearn", time=TIME)
    order = torch.randperm(len(digits.train), generator=torch.Generator().manual_seed(seed))
    train, test = digits.train.subset(order[:TRAIN]), digits.test.subset(torch.arange(TEST))
    return permuted(Dataset("digits", train, test, digits.classes, digits.sample_shape), tasks, seed)


def learn(network: Network, rule: Rule, tasks: Stream, seed: int) -> Curve:
    accuracies, precisions = [], []

    def at_the_end_of_each_task(now: Progress, report: object, plan: Any) -> None:
        if now.batch < len(plan):
            return
        test = tasks.tasks[now.task].test
        predictor = Point.of(network, posteriors(rule, now.states))
        done = predict_samples(predictor, test, torch.Generator().manual_seed(seed), over_time=False)
        accuracies.append(float(accuracy(done.probabilities[-1], test.labels)))
        precision = getattr(now.states[0], "precision", None)
        precisions.append(float("nan") if precision is None else float(precision.mean()))

    config = StreamConfig(batch=32, replay="none", seed=seed)
    run_stream(network, rule, tasks, config, on_batch=at_the_end_of_each_task)
    return Curve(torch.tensor(accuracies), torch.tensor(precisions))


@styled
def draw(curves: dict[str, list[Curve]], path: Path) -> None:
    sheet = new_sheet(WIDTH, 2.8)
    left, right = sheet.subplots(1, 2)
    for index, (name, runs) in enumerate(curves.items()):
        style = series_style(index)
        scores = torch.stack([run.accuracy for run in runs]) * 100
        at = range(1, scores.shape[1] + 1)
        left.fill_between(at, scores.amin(0), scores.amax(0), color=style.colour, alpha=0.15, linewidth=0)
        plot_line(left, at, scores.mean(0), style, name)
        if not runs[0].precision.isnan().any():
            plot_line(right, at, torch.stack([run.precision for run in runs]).mean(0), style, name)
    left.set(xlabel="tasks learnt", ylabel="accuracy on the newest task (%)", ylim=(0, 100))
    right.set(xlabel="tasks learnt", ylabel="mean precision of the weights", ylim=(0, None))
    sheet.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=len(curves))
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    sheet.savefig(beside, format=path.suffix.removeprefix(".") or "png", dpi=200)
    os.replace(beside, path)


def table(curves: dict[str, list[Curve]], tasks: int) -> None:
    block = max(1, tasks // 8)
    starts = range(0, tasks, block)
    print("tasks".ljust(34) + "".join(f"{f'{a + 1}-{min(a + block, tasks)}':>9}" for a in starts))
    for name, runs in curves.items():
        mean = torch.stack([run.accuracy for run in runs]).mean(0)
        print(
            f"{name}: accuracy %".ljust(34) + "".join(f"{100 * float(mean[a : a + block].mean()):9.1f}" for a in starts)
        )
    for name, runs in curves.items():
        mean = torch.stack([run.precision for run in runs]).mean(0)
        if not mean.isnan().any():
            row = "".join(f"{float(mean[a : a + block].mean()):9.0f}" for a in starts)
            print(f"{name}: precision".ljust(34) + row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=80)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--horizon", type=float, nargs="+", default=[2.0, 5.0])
    parser.add_argument("--out", type=Path, default=Path("docs/img/many-tasks.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    rules: dict[str, Rule] = {"carried over": BAYES}
    rules |= {f"boundary-free, N = {n:g}": replace(BAYES, horizon=n) for n in options.horizon}
    rules["SGD"] = SGD(lr=0.3)
    network = build(NetworkConfig(64, (NEURONS,), 10))
    curves = {
        name: [learn(network, rule, stream(options.tasks, seed), seed) for seed in range(options.seeds)]
        for name, rule in rules.items()
    }
    table(curves, options.tasks)
    draw(curves, options.out)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
