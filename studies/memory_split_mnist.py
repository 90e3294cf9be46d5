"""What is a kept byte worth? Split-MNIST with 0 to 450 stored images a class, each learner tuned at each size.

    BAYSPIKE_DATA=… python studies/memory_split_mnist.py tune --stored 0 10 450             # validation images, small
    BAYSPIKE_DATA=… python studies/memory_split_mnist.py judge --stored 0 10 450 --seeds 3  # the test set
    BAYSPIKE_DATA=… python studies/memory_split_mnist.py judge --train-examples 20000       # a smaller study of its own
    BAYSPIKE_DATA=… python studies/memory_split_mnist.py neighbours --stored 10 --learners ewc --seeds 3
    BAYSPIKE_DATA=… python studies/memory_split_mnist.py tune --data fashion_mnist          # the same of garments
    python studies/memory_split_mnist.py draw                                               # the figure of the docs

The same network (784→400, T = 50), read-out and number of trials for every learner, whose steps are annealed alike.
`tune`: five tasks of two digits, one epoch of 1,000 images a class, judged on 2,000 other training images; every
learner is tried with five settings at every memory size, the Bayesian one with its default first. `judge` takes for
each learner and size the setting of the lowest validation loss, learns from all training images but 1,000 and is judged
once on the 10,000 test images, with the posterior's controls beside it; by the 1,000, which no learner has seen, the
best noise of a point is chosen. What suits 10,000 images need not suit 59,000: `neighbours` judges the settings beside
the chosen one too, so that one can see how much hangs on it. Trials that the files already have are not repeated, so
all can be stopped.
"""

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from bayspike.continual import Stream, StreamConfig, coreset_only, run_stream, split_by_class
from bayspike.continual.judging import score
from bayspike.data import Dataset, load
from bayspike.data.base import stratified_split
from bayspike.kernels import Kernels
from bayspike.learning.batch import posteriors
from bayspike.predict.controls import judge_controls
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.rules import EWC, SGD, BernoulliVI, GaussianVI, Rule, carry
from bayspike.runs.plan.prepare import stratified
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build

RESULTS = Path("docs/results")
SIZES = (0, 1, 3, 10, 45, 450)
MEMBERS, FOREIGN, HELD_BACK = 10, 2000, 1000
ANNEAL = 0.98  # of every learner's step, over each task
# Numbers a synapse needs between two tasks, at a byte each: q of the Gaussian is mean and precision (its prior is q
# itself), EWC keeps weights, importance and anchor, of which the online variant's anchor is the weights, and a logit
# says all of a ±1 synapse.
NUMBERS = {"bayes": 2, "bayes-binary": 1, "ewc": 3, "ewc-online": 2, "sgd": 1, "coreset-only": 1}
OTHER = {"mnist": "fashion_mnist", "fashion_mnist": "mnist"}  # what each does not know
NAMES = ("learner", "rule", "stored", "seed", "images", "held_back")  # what tells two trials apart

POINT = {"lr": 0.12, "init_scale": 3.0}
# Five settings of every learner; the more is stored, the less must be held on to. Those of EWC lie about half a decade
# apart, over one and a half to two decades at each size.
CARRIES: dict[int, tuple[float | None, ...]] = {
    0: (None, 300.0, 900.0, 1500.0, 3000.0),
    450: (None, 1.0, 3.0, 10.0, 30.0),
}
CARRIES_BETWEEN = (None, 30.0, 100.0, 300.0, 900.0)
STRENGTHS = {
    0: (3e-4, 1e-3, 2e-3, 3e-3, 1e-2),
    1: (1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
    3: (1e-5, 3e-5, 1e-4, 3e-4, 1e-3),
    10: (1e-5, 3e-5, 1e-4, 3e-4, 1e-3),
    45: (1e-6, 3e-6, 1e-5, 3e-5, 1e-4),
    450: (1e-8, 3e-8, 1e-7, 3e-7, 1e-6),
}
RATES = (0.03, 0.06, 0.12, 0.25, 0.5)


def settings(learner: str, stored: int) -> list[Rule]:
    """What is tried of a learner at a memory size; the first is its default, where it has one."""
    carries = CARRIES.get(stored, CARRIES_BETWEEN)
    strengths = STRENGTHS[stored]
    return {
        "bayes": [GaussianVI(carry=kappa) for kappa in carries],
        "bayes-binary": [BernoulliVI(lr=None, temperature=None, sampling="neuron", carry=kappa) for kappa in carries],
        "ewc": [EWC(strength=strength, **POINT) for strength in strengths],
        "ewc-online": [EWC(strength=strength, online=True, **POINT) for strength in strengths],
        "sgd": [SGD(lr=lr, init_scale=3.0) for lr in RATES],
        "coreset-only": [SGD(lr=lr, init_scale=3.0) for lr in RATES],
    }[learner]


def epochs_of_stored(stream: Stream, stored: int) -> int:
    """How often the stored images alone must be shown, to be as many presentations as balanced replay makes: a task
    shows each of its images once, and as many of every task before."""
    shown = sum(len(task.train) * (1 + before) for before, task in enumerate(stream.tasks))
    return max(1, round(shown / stored))


def trial(
    learner: str,
    rule: Rule,
    stored: int,
    seed: int,
    data: Dataset,
    foreign: Dataset,
    kernels: Kernels = "plain",
) -> dict[str, Any]:
    """One learner through the five tasks; its scores, and the bytes it keeps. Where images are held back also the
    scores of its controls, for which they serve."""
    per_class = len(data.train) / 10
    network = build(
        NetworkConfig(
            784,
            (400,),
            10,
            binary=rule.binary,
            synapse_decay=0.0,
            membrane_decay=0.5,
            readout_scale=16.0,
            seed=seed,
            threshold=8.0 if rule.binary else None,
        )
    )
    stream = split_by_class(data)
    config = StreamConfig(
        coreset_share=stored / per_class,
        replay="balanced" if stored else "none",
        anneal=ANNEAL,
        evidence="once",
        fisher_examples=1000,
        seed=seed,
        kernels=kernels,
    )
    if learner == "coreset-only":  # what the stored images alone teach
        tasks, stream = stream, coreset_only(stream, config)
        epochs = epochs_of_stored(tasks, len(stream.tasks[0].train))
        config = replace(config, replay="none", coreset_share=0.0, epochs=epochs)
    done = run_stream(network, rule, stream, config)
    learnt = posteriors(rule, done.states)
    if data.held_back is not None:
        other = foreign.test.subset(torch.arange(FOREIGN))
        judged = judge_controls(
            network, learnt, data.test, other, data.held_back, members=MEMBERS, seed=seed, kernels=kernels
        )
        found = {name: scores._asdict() for name, scores in judged.items()}
    else:
        members = MEMBERS if learner.startswith("bayes") else 1
        committee = Committee.draw(network, learnt, members, generator=generator_for(seed, "committee"))
        answer = predict_samples(committee, data.test, generator_for(seed, "own"), over_time=False)
        found = {"learnt": score(answer.probabilities[-1], data.test.labels)._asdict()}
    synapses = sum(state[0].numel() for state in done.states)
    return {
        "found": found,
        "bytes": {"rule": synapses * NUMBERS[learner], "stored": stored * 10 * 784},
    }


def tuning_of(name: str) -> Path:
    """The file of the small trials on a set of images."""
    return RESULTS / ("memory-tuning.jsonl" if name == "mnist" else f"memory-tuning-{name.replace('_', '-')}.jsonl")


@lru_cache(maxsize=1)
def small(seed: int, name: str = "mnist") -> tuple[Dataset, Dataset]:
    """1,000 images a class to learn from and 2,000 others to judge by, all of the training set."""
    full = load(name, time=50)
    rest, judged = stratified_split(full.train.labels, 200, seed=1)
    pool = full.train.subset(rest)
    _, kept = stratified_split(pool.labels, 1000, seed=2 + seed)
    data = Dataset(f"{name} part", pool.subset(kept), full.train.subset(judged), full.classes, full.sample_shape)
    return data, load(OTHER[name], time=50)


@lru_cache(maxsize=1)
def whole(examples: int | None, name: str = "mnist") -> tuple[Dataset, Dataset]:
    """All training images but those that are held back, or so many of them; and the test set."""
    full = load(name, time=50)
    rest, held_back = stratified_split(full.train.labels, HELD_BACK // 10, seed=1)
    train = stratified(full.train.subset(rest), examples, 0, "--train-examples")
    return replace(full, train=train, held_back=full.train.subset(held_back)), load(OTHER[name], time=50)


def own_scores(found: Mapping[str, Any]) -> dict[str, Any]:
    """Of the learner itself among its controls: a committee as it learnt, or a point."""
    own: dict[str, Any] = next(found[name] for name in ("learnt", "point", "zero") if name in found)
    return own


def tuned(learner: str, stored: int, name: str = "mnist") -> Rule:
    """The setting with the lowest validation loss of all that were tried; refused where some are missing."""
    tried = {json.dumps(line["rule"]): line for line in lines(tuning_of(name)) if _is(line, learner, stored)}
    losses = []
    for rule in settings(learner, stored):
        key = json.dumps(plain(rule))
        if key not in tried:
            raise SystemExit(f"{learner} with {stored} stored images has not been tuned: run `tune` first.")
        losses.append(own_scores(tried[key]["found"])["nll"])
    return settings(learner, stored)[losses.index(min(losses))]


def _is(line: dict[str, Any], learner: str, stored: int) -> bool:
    return bool(line["learner"] == learner and line["stored"] == stored)


def jobs(
    kind: str, learners: list[str], sizes: list[int], seeds: int, as_it_comes: bool = False, name: str = "mnist"
) -> Iterator[tuple[str, Rule, int, int]]:
    for seed in range(seeds):
        for stored in sizes:
            for learner in learners:
                if learner == "coreset-only" and stored == 0:
                    continue
                every = settings(learner, stored)
                if kind == "tune":
                    chosen = every
                elif as_it_comes and learner.startswith("bayes"):
                    chosen = every[:1]
                else:
                    chosen = [tuned(learner, stored, name)]
                if kind == "judge" and learner.startswith("bayes"):  # the default beside the best by hand
                    chosen = list(dict.fromkeys([*chosen, every[0]]))
                if kind == "neighbours":
                    chosen = beside(every, chosen[0])
                yield from ((learner, rule, stored, seed) for rule in chosen)


def beside(tried: list[Rule], chosen: Rule) -> list[Rule]:
    """The settings tried next to the chosen one."""
    place = tried.index(chosen)
    return [tried[each] for each in (place - 1, place + 1) if 0 <= each < len(tried)]


def _is_beside(options: argparse.Namespace, learner: str, rule: Rule, stored: int) -> bool:
    """Whether this is not the best by the small trials; as it comes, a Bayesian learner need not have been tuned."""
    return (options.as_it_comes and learner.startswith("bayes")) or rule != tuned(learner, stored, options.data)


def plain(rule: Any) -> dict[str, Any]:
    """A rule in plain values; a carry by default is told by the constants of its law, which may change."""
    told = {"kind": type(rule).__name__, **{key: value for key, value in asdict(rule).items() if value is not None}}
    if getattr(rule, "carry", 0.0) is None:
        told["carry_law"] = [carry.MOST_CARRY, carry.LARGE_TASK, carry.ENOUGH, carry.ENOUGH_SHARE]
    return told


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


PANELS = {
    "accuracy": "accuracy",
    "ece": "ECE",
    "nll": "NLL",
    "auroc_entropy": "foreign images noticed by entropy, AUROC",
    "auroc_mutual_information": "by mutual information (of a spread)",
    "auroc_discord": "by the discord of the members (of a spread)",
}
KILOBYTES = (300, 500, 1000, 2000, 4000)


def by_bytes(every: list[dict[str, Any]], learner: str, measure: str, also: str = "") -> dict[int, list[float]]:
    """What the seeds of a learner had at every size of memory, with its best setting by the small trials or, with
    `also="default"`, as it comes, which may be the same; empty where it has none."""
    found: dict[int, list[float]] = {}
    for line in every:
        value = own_scores(line["found"]).get(measure)
        meant = "carry_law" in line["rule"] if also == "default" else line.get("also", "") == also
        if line["learner"] == learner and meant and value is not None:
            found.setdefault(sum(line["bytes"].values()), []).append(value)
    return dict(sorted(found.items()))


def draw(path: Path, picture: Path) -> None:
    """Every measure against the bytes kept; bars are ± one standard deviation. Dashed: as a rule comes."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(13, 7), constrained_layout=True)
    every = lines(path)
    for number, learner in enumerate(dict.fromkeys(line["learner"] for line in every)):
        for axis, measure in zip(axes.flat, PANELS, strict=True):
            for also, style, label in (("", "-", learner), ("default", "--", f"{learner}, as it comes")):
                found = by_bytes(every, learner, measure, also)
                means = [sum(each) / len(each) for each in found.values()]
                spread = [float(torch.tensor(each).std()) if len(each) > 1 else 0.0 for each in found.values()]
                at = [total / 1000 for total in found]
                if found:
                    axis.errorbar(
                        at, means, spread, marker="o", capsize=2, label=label, color=f"C{number}", linestyle=style
                    )
    for axis, title in zip(axes.flat, PANELS.values(), strict=True):
        axis.set_xscale("log")
        axis.set_xticks(KILOBYTES, [f"{each:,}" for each in KILOBYTES])
        axis.set_xticks([], minor=True)
        axis.set_xlabel("kB kept")
        axis.set_title(title)
        axis.grid(alpha=0.3)
    axes[0, 2].set_yscale("log")
    if axes[0, 0].has_data():
        axes[0, 0].legend(frameon=False, fontsize=8)
    figure.savefig(picture, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["tune", "judge", "neighbours", "draw"])
    parser.add_argument("--data", default="mnist", choices=list(OTHER))
    parser.add_argument("--learners", nargs="+", default=list(NUMBERS), choices=list(NUMBERS))
    parser.add_argument("--stored", nargs="+", type=int, default=list(SIZES), choices=SIZES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--train-examples", type=int, help="judge with so many images, in a file of its own")
    parser.add_argument("--as-it-comes", action="store_true", help="judge Bayesian learners by their default alone")
    parser.add_argument("--kernels", choices=["plain", "compiled"], default="plain", help="the same within rounding")
    options = parser.parse_args()
    if options.kind == "tune" and options.train_examples is not None:
        parser.error("settings are tuned on 10,000 images, whatever they are judged with: leave out --train-examples.")
    torch.set_num_threads(1)
    images = "" if options.train_examples is None else f"-{options.train_examples}"
    study = f"memory-split-{options.data.replace('_', '-')}{images}"
    out = tuning_of(options.data) if options.kind == "tune" else RESULTS / f"{study}.jsonl"
    if options.kind == "draw":
        draw(out, Path("docs/img") / f"{study}.png")
        return
    known = [{key: line.get(key) for key in NAMES} for line in lines(out)]
    for learner, rule, stored, seed in jobs(
        options.kind, options.learners, options.stored, options.seeds, options.as_it_comes, options.data
    ):
        name: dict[str, Any] = {"learner": learner, "rule": plain(rule), "stored": stored, "seed": seed}
        data, foreign = (
            small(seed, options.data) if options.kind == "tune" else whole(options.train_examples, options.data)
        )
        if data.held_back is not None:
            name |= {"images": len(data.train), "held_back": len(data.held_back)}
        if {**dict.fromkeys(NAMES), **name} in known:
            continue
        begin = time.perf_counter()
        found = trial(learner, rule, stored, seed, data, foreign, options.kernels)
        if options.kind != "tune" and _is_beside(options, learner, rule, stored):
            name["also"] = "default" if options.kind == "judge" else "neighbour"
        line = json.dumps({**name, **found, "seconds": round(time.perf_counter() - begin, 1)})
        print(line, flush=True)
        with out.open("a") as stream:
            stream.write(line + "\n")


if __name__ == "__main__":
    main()
