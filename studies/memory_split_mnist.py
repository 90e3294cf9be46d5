"""What is a kept byte worth? Split-MNIST with 0 to 450 stored images a class, each learner tuned at each size.

    BAYSPIKE_DATA=… python studies/memory_split_mnist.py tune --stored 0 10 450             # validation images, small
    BAYSPIKE_DATA=… python studies/memory_split_mnist.py judge --stored 0 10 450 --seeds 3  # all images, the test set
    python studies/memory_split_mnist.py draw                                               # the figure of the docs

The same network (784→400, T = 50), read-out and number of trials for every learner. `tune`: five tasks of two digits,
one epoch of 1,000 images a class, judged on 2,000 other training images; every learner is tried with the same number of
settings at every memory size, the Bayesian one with its default first. `judge` takes for each learner and size the
setting of the lowest validation loss, learns from all 60,000 images and is judged once on the 10,000 test images, with
the posterior's controls beside it. Trials that the files already have are not repeated, so both can be stopped.
"""

import argparse
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from bayspike.continual import StreamConfig, coreset_only, run_stream, split_by_class
from bayspike.continual.judging import score
from bayspike.data import Dataset, load
from bayspike.data.base import stratified_split
from bayspike.learning.batch import posteriors
from bayspike.predict.controls import judge_controls
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.rules import EWC, SGD, BernoulliVI, GaussianVI, Rule
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build

RESULTS = Path("docs/results")
SIZES = (0, 1, 3, 10, 45, 450)
MEMBERS, FOREIGN = 10, 2000
# Numbers a synapse needs between two tasks, at a byte each: q of the Gaussian is mean and precision (its prior is q
# itself), EWC keeps weights, importance and anchor, a logit says all of a ±1 synapse.
NUMBERS = {"bayes": 2, "bayes-binary": 1, "ewc": 3, "ewc-online": 3, "sgd": 1, "coreset-only": 1}
TUNE, JUDGE = RESULTS / "memory-tuning.jsonl", RESULTS / "memory-split-mnist.jsonl"

POINT = {"lr": 0.12, "init_scale": 3.0}
EWC_STRENGTHS = {0: (1e-3, 3e-3, 1e-2), 450: (1e-7, 1e-6, 1e-5)}
EWC_BETWEEN = (3e-5, 1e-4, 3e-4)
CARRIES = {0: (None, 300.0, 900.0), 450: (None, 1.0, 10.0)}
CARRIES_BETWEEN = (None, 30.0, 300.0)
RATES = (0.12, 0.03, 0.5)


def settings(learner: str, stored: int) -> list[Rule]:
    """What is tried of a learner at a memory size; the first is its default."""
    strengths = EWC_STRENGTHS.get(stored, EWC_BETWEEN)
    carries = CARRIES.get(stored, CARRIES_BETWEEN)
    return {
        "bayes": [GaussianVI(carry=carry) for carry in carries],
        "bayes-binary": [
            BernoulliVI(lr=None, temperature=None, sampling="neuron", carry=carry or 1.0) for carry in carries
        ],
        "ewc": [EWC(strength=strength, **POINT) for strength in strengths],
        "ewc-online": [EWC(strength=strength, online=True, **POINT) for strength in strengths],
        "sgd": [SGD(lr=lr, init_scale=3.0) for lr in RATES],
        "coreset-only": [SGD(lr=lr, init_scale=3.0) for lr in RATES],
    }[learner]


def trial(
    learner: str, rule: Rule, stored: int, seed: int, data: Dataset, foreign: Dataset, controls: bool
) -> dict[str, Any]:
    """One learner through the five tasks; its scores, those of its controls where asked, and the bytes it keeps."""
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
        anneal=0.98 if isinstance(rule, SGD | EWC) else 0.0,
        evidence="once",
        fisher_examples=1000,
        seed=seed,
    )
    if learner == "coreset-only":  # what the stored images alone teach
        stream = coreset_only(stream, config)
        config = replace(config, replay="none", coreset_share=0.0, epochs=max(1, round(3000 / stored)))
    done = run_stream(network, rule, stream, config)
    learnt, found = posteriors(rule, done.states), {}
    if controls:
        held_out = data.train.subset(torch.arange(0, len(data.train), max(1, len(data.train) // 1000)))
        other = foreign.test.subset(torch.arange(FOREIGN))
        judged = judge_controls(network, learnt, data.test, other, held_out, members=MEMBERS, seed=seed)
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


def small(seed: int) -> tuple[Dataset, Dataset]:
    """1,000 images a class to learn from and 2,000 others to judge by, all of the training set."""
    full = load("mnist", time=50)
    rest, judged = stratified_split(full.train.labels, 200, seed=1)
    pool = full.train.subset(rest)
    _, kept = stratified_split(pool.labels, 1000, seed=2 + seed)
    data = Dataset("mnist part", pool.subset(kept), full.train.subset(judged), full.classes, full.sample_shape)
    return data, load("fashion_mnist", time=50)


def whole(seed: int) -> tuple[Dataset, Dataset]:
    del seed
    return load("mnist", time=50), load("fashion_mnist", time=50)


def tuned(learner: str, stored: int) -> Rule:
    """The setting with the lowest validation loss of all that were tried; refused where some are missing."""
    tried = {json.dumps(line["rule"]): line for line in lines(TUNE) if _is(line, learner, stored)}
    losses = []
    for rule in settings(learner, stored):
        key = json.dumps(plain(rule))
        if key not in tried:
            raise SystemExit(f"{learner} with {stored} stored images has not been tuned: run `tune` first.")
        own = tried[key]["found"]
        losses.append(own["learnt" if "learnt" in own else "zero"]["nll"])
    return settings(learner, stored)[losses.index(min(losses))]


def _is(line: dict[str, Any], learner: str, stored: int) -> bool:
    return bool(line["learner"] == learner and line["stored"] == stored)


def jobs(kind: str, learners: list[str], sizes: list[int], seeds: int) -> Iterator[tuple[str, Rule, int, int]]:
    for seed in range(seeds):
        for stored in sizes:
            for learner in learners:
                if learner == "coreset-only" and stored == 0:
                    continue
                chosen = settings(learner, stored) if kind == "tune" else [tuned(learner, stored)]
                if kind == "judge" and learner.startswith("bayes"):  # the default beside the best by hand
                    chosen = list(dict.fromkeys([*chosen, settings(learner, stored)[0]]))
                yield from ((learner, rule, stored, seed) for rule in chosen)


def plain(rule: Any) -> dict[str, Any]:
    return {"kind": type(rule).__name__, **{key: value for key, value in asdict(rule).items() if value is not None}}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def draw(path: Path) -> None:
    """Accuracy, ECE, NLL and notice of Fashion-MNIST against the bytes kept; bars are ± one standard deviation."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = (("accuracy", "accuracy"), ("ece", "ECE"), ("nll", "NLL"), ("auroc", "Fashion-MNIST noticed, AUROC"))
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.8), constrained_layout=True)
    every = lines(path)
    for learner in dict.fromkeys(line["learner"] for line in every):
        points: dict[int, list[dict[str, float]]] = {}
        for line in every:
            if line["learner"] == learner and not line.get("also"):
                own = line["found"].get("learnt") or line["found"]["zero"]
                score = {**own, "auroc": own["auroc_mutual_information"] or own["auroc_entropy"] or float("nan")}
                points.setdefault(sum(line["bytes"].values()), []).append(score)
        kept = sorted(points)
        for axis, (name, _) in zip(axes, panels, strict=True):
            values = [torch.tensor([each[name] for each in points[size]]) for size in kept]
            spread = [float(each.std()) if len(each) > 1 else 0.0 for each in values]
            axis.errorbar(kept, [float(each.mean()) for each in values], spread, marker="o", capsize=2, label=learner)
    for axis, (_, title) in zip(axes, panels, strict=True):
        axis.set_xscale("log")
        axis.set_xlabel("bytes kept")
        axis.set_title(title)
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False, fontsize=8)
    figure.savefig("docs/img/memory-split-mnist.png", dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["tune", "judge", "draw"])
    parser.add_argument("--learners", nargs="+", default=list(NUMBERS), choices=list(NUMBERS))
    parser.add_argument("--stored", nargs="+", type=int, default=list(SIZES))
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    out = TUNE if options.kind == "tune" else JUDGE
    if options.kind == "draw":
        draw(out)
        return
    known = [{key: line[key] for key in ("learner", "rule", "stored", "seed")} for line in lines(out)]
    for learner, rule, stored, seed in jobs(options.kind, options.learners, options.stored, options.seeds):
        name = {"learner": learner, "rule": plain(rule), "stored": stored, "seed": seed}
        if name in known:
            continue
        begin = time.perf_counter()
        data, foreign = small(seed) if options.kind == "tune" else whole(seed)
        found = trial(learner, rule, stored, seed, data, foreign, controls=options.kind == "judge")
        if options.kind == "judge" and rule != tuned(learner, stored):
            name["also"] = "default"
        line = json.dumps({**name, **found, "seconds": round(time.perf_counter() - begin, 1)})
        print(line, flush=True)
        with out.open("a") as stream:
            stream.write(line + "\n")


if __name__ == "__main__":
    main()
