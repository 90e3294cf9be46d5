"""Split-MNIST against coreset size, number of training images and wrong labels, at the settings of the experiment.

    BAYSPIKE_DATA=… python studies/curves_split_mnist.py --out docs/results/curves-split-mnist.jsonl \
        --picture docs/img/split-mnist-curves.png

Coreset sizes and wrong labels are tried with 3,000 training images; all but the first curve keep coresets of 7.5 %. A
wrong label is that of the other digit of the task. All 10,000 test images judge; nothing is chosen by them. Runs that
the file already has are not repeated, and the picture is drawn from the file alone. Committees of 10 with 8-bit
weights, points with 8-bit weights.
"""

import argparse
import json
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bayspike.continual.judging import score
from bayspike.continual.methods import build_rule, method
from bayspike.continual.protocol import run_stream
from bayspike.continual.tasks import split_by_class
from bayspike.data import Dataset, load
from bayspike.data.base import Samples
from bayspike.experiments.split_mnist import EXPERIMENT
from bayspike.learning.batch import posteriors
from bayspike.predict.by_name import make_predictor
from bayspike.predict.predictors import predict_samples
from bayspike.runs.outcome.examination import headline
from bayspike.runs.plan.prepare import stratified
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.seeds import generator_for
from bayspike.spiking.network import build

# The experiment's own settings, and both ways of holding on to the past with a hundred to a thousand times the weight.
LEARNERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bayes": ("bayes", ()),
    "bayes, strong prior": ("bayes", ("bayes.temperature=3e-5",)),
    "sgd": ("sgd", ()),
    "ewc": ("ewc", ()),
    "ewc, strong": ("ewc", ("ewc.strength=1e-5",)),
}
SHARES = (0.0, 0.01, 0.025, 0.075, 0.15)
IMAGES = (500, 1000, 3000, 6000)
WRONG = (0.0, 0.1, 0.2, 0.3)
FEW, USUAL = 3000, 0.075


class Run(NamedTuple):
    learner: str
    examples: int
    share: float
    wrong: float
    seed: int


def runs(seeds: int) -> list[Run]:
    settings = [(FEW, share, 0.0) for share in SHARES]
    settings += [(count, USUAL, 0.0) for count in IMAGES]
    settings += [(FEW, USUAL, wrong) for wrong in WRONG]
    return [Run(name, *each, seed) for seed, each, name in product(range(seeds), dict.fromkeys(settings), LEARNERS)]


def mislabel(train: Samples, share: float, seed: int) -> Samples:
    """Give some images the label of the other digit of their task."""
    wrong = torch.rand(len(train), generator=torch.Generator().manual_seed(seed)) < share
    return replace(train, labels=torch.where(wrong, train.labels ^ 1, train.labels))


def measure(run: Run) -> dict[str, Any]:
    """Train and judge one learner."""
    torch.set_num_threads(1)
    begin = time.perf_counter()
    name, settings = LEARNERS[run.learner]
    changes = Changes(methods=[name], settings=settings, training={"coreset_share": run.share, "evaluations": 1})
    config = resolve(EXPERIMENT, "paper", changes)
    chosen = config.methods[0]
    full = load("mnist", time=50)
    train = mislabel(stratified(full.train, run.examples, run.seed, "examples"), run.wrong, run.seed)
    dataset = Dataset("mnist", train, full.test, full.classes, full.sample_shape)
    rule = build_rule(name, chosen.rule)
    network = build(chosen.network.config(784, 10, rule.binary, run.seed))
    done = run_stream(network, rule, split_by_class(dataset), chosen.training.config(run.seed))
    judge = f"{headline(method(name), config.judging)}-8bit"
    predictor = make_predictor(judge, network, posteriors(rule, done.states), 10, run.seed)
    generator = generator_for(run.seed, "final")
    final = predict_samples(predictor, full.test, generator, over_time=False, keep_members="none").probabilities[-1]
    seconds = time.perf_counter() - begin
    scores = score(final, full.test.labels)._asdict() | {"test_examples": len(full.test)}
    return {**scores, **run._asdict(), "predictor": judge, "seconds": seconds}


def draw(lines: list[dict[str, Any]], path: Path) -> None:
    """Accuracy and ECE, mean and standard deviation over seeds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    sheet, axes = plt.subplots(2, 3, figsize=(13, 6), layout="constrained", sharex="col")
    columns = (
        ("share", SHARES, {"examples": FEW, "wrong": 0.0}, f"coreset share of each class ({FEW:,} training images)"),
        ("examples", IMAGES, {"share": USUAL, "wrong": 0.0}, f"training images (coresets of {USUAL:.1%})"),
        ("wrong", WRONG, {"examples": FEW, "share": USUAL}, f"wrong labels ({FEW:,} images, coresets of {USUAL:.1%})"),
    )
    for column, (key, values, fixed, label) in enumerate(columns):
        where = range(len(values)) if key != "examples" else values
        for row, (measure_name, title) in enumerate((("accuracy", "accuracy"), ("ece", "ECE"))):
            axis = axes[row, column]
            for name, marker in zip(LEARNERS, "oPsDX", strict=True):
                same = [line for line in lines if {"learner": name, **fixed}.items() <= line.items()]
                found = [[line[measure_name] for line in same if line[key] == value] for value in values]
                shown = [(place, each) for place, each in zip(where, found, strict=True) if each]
                means = [statistics.fmean(each) for _, each in shown]
                spreads = [statistics.stdev(each) if len(each) > 1 else 0.0 for _, each in shown]
                axis.errorbar([place for place, _ in shown], means, spreads, marker=marker, capsize=3, label=name)
            axis.set_ylabel(title)
            axis.grid(alpha=0.3)
            if key == "examples":
                axis.set_xscale("log")
                axis.minorticks_off()
            axis.set_xticks(where, [f"{each:,}" if key == "examples" else f"{each:.1%}" for each in values])
            if row == 1:
                axis.set_xlabel(label)
    axes[0, 0].legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/curves-split-mnist.jsonl"))
    parser.add_argument("--picture", type=Path, default=Path("docs/img/split-mnist-curves.png"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    lines = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = {Run(*(line[key] for key in Run._fields)) for line in lines}
    with ProcessPoolExecutor(options.workers) as pool:
        waiting = [pool.submit(measure, run) for run in runs(options.seeds) if run not in known]
        for number, future in enumerate(as_completed(waiting), 1):
            entry = future.result()
            lines.append(entry)
            with options.out.open("a") as out:
                out.write(json.dumps(entry) + "\n")
            run = Run(*(entry[key] for key in Run._fields))
            print(f"{number}/{len(waiting)} {run}: {entry['accuracy']:.4f}", flush=True)
    draw(lines, options.picture)


if __name__ == "__main__":
    main()
