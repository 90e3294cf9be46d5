"""Tuning of the split-MNIST methods: the same number of trials for each, chosen on validation data alone.

    BAYSPIKE_DATA=… python studies/tune_split_mnist.py --out docs/results/tuning-split-mnist.jsonl

Works on part of the training set: `--examples` images to learn from and 10,000 others to judge by; the test set is
never touched. Coresets hold as many images per class as those of the full experiment (7.5 % of all). Trials that
the file already has are not repeated. Each line holds a trial's settings and its scores.
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from bayspike.continual.judging import score
from bayspike.continual.methods import build_rule, method
from bayspike.continual.protocol import StreamConfig, coreset_only, run_stream
from bayspike.continual.tasks import joint, split_by_class
from bayspike.data import Dataset, load
from bayspike.data.base import stratified_split
from bayspike.learning.batch import posteriors
from bayspike.predict.predictors import Committee, Point, predict_samples
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build

FULL = 60_000
NETWORK = {"synapse_decay": 0.0, "membrane_decay": 0.5, "slope": 4.0, "readout_scale": 16.0}

# Five trials a method: its rate of learning, and the constants that are its own. What all share is fixed above.
_BINARY: dict[str, Any] = {"network.threshold": 8.0}
TRIALS: dict[str, list[dict[str, Any]]] = {
    "bayes": [
        {"lr": 150.0, "prior_precision": 1000.0, "precision_lr": 15.0},
        {"lr": 80.0, "prior_precision": 1000.0, "precision_lr": 15.0},
        {"lr": 150.0, "prior_precision": 1000.0, "precision_lr": 50.0},
        {"lr": 100.0, "prior_precision": 600.0, "precision_lr": 10.0},
        {"lr": 250.0, "prior_precision": 1600.0, "precision_lr": 25.0},
    ],
    "sgd": [
        {"lr": 0.12},
        {"lr": 0.06},
        {"lr": 0.25},
        {"lr": 0.12, "network.readout_scale": 24.0},
        {"lr": 0.12, "network.slope": 8.0},
    ],
    "ewc": [
        {"lr": 0.12, "strength": 1e-7},
        {"lr": 0.12, "strength": 1e-6},
        {"lr": 0.12, "strength": 1e-5},
        {"lr": 0.12, "strength": 1e-8},
        {"lr": 0.12, "strength": 1e-7, "network.readout_scale": 24.0},
    ],
    "tacos": [
        {"lr": 0.1, "increment": 1e-2, "use_trace": True},
        {"lr": 0.03, "increment": 1e-2, "use_trace": True},
        {"lr": 0.1, "increment": 1e-1, "use_trace": True},
        {"lr": 0.1, "increment": 1.0, "use_trace": True},
        {"lr": 0.1, "increment": 10.0, "use_trace": True},
    ],
    "tacos-replay": [
        {"lr": 0.12, "increment": 1e-4, "use_trace": True},
        {"lr": 0.12, "increment": 1e-3, "use_trace": True},
        {"lr": 0.12, "increment": 1e-2, "use_trace": True},
        {"lr": 0.06, "increment": 1e-3, "use_trace": True},
        {"lr": 0.25, "increment": 1e-3, "use_trace": True},
    ],
    "coreset-only": [
        {"lr": 0.12, "training.epochs": 10},
        {"lr": 0.12, "training.epochs": 40},
        {"lr": 0.06, "training.epochs": 10},
        {"lr": 0.06, "training.epochs": 40},
        {"lr": 0.25, "training.epochs": 10},
    ],
    "joint": [{"lr": 0.12}, {"lr": 0.06}, {"lr": 0.25}, {"lr": 0.5}, {"lr": 0.12, "network.readout_scale": 24.0}],
    "ste": [
        {"lr": 0.5, **_BINARY},
        {"lr": 0.05, **_BINARY},
        {"lr": 2.0, **_BINARY},
        {"lr": 0.5, "network.threshold": 14.0},
        {"lr": 0.5, "network.threshold": 4.0},
    ],
    "bayes-binary": [
        {"lr": 10.0, "sampling": "neuron", **_BINARY},
        {"lr": 3.0, "sampling": "neuron", **_BINARY},
        {"lr": 30.0, "sampling": "neuron", **_BINARY},
        {"lr": 10.0, "sampling": "neuron", "network.threshold": 14.0},
        {"lr": 10.0, "sampling": "neuron", "network.threshold": 4.0},
    ],
}


def tuning_data(examples: int) -> Dataset:
    """Part of the training set, and 10,000 others of its images to judge by."""
    full = load("mnist", time=50)
    rest, judged = stratified_split(full.train.labels, 1000, seed=1)
    kept = rest[torch.randperm(len(rest), generator=torch.Generator().manual_seed(2))[:examples]]
    return Dataset("mnist-tuning", full.train.subset(kept), full.train.subset(judged), full.classes, full.sample_shape)


def trial(task: tuple[str, dict[str, Any], int]) -> dict[str, Any]:
    """Learn with one set of settings and score it on the validation images."""
    name, settings, examples = task
    torch.set_num_threads(1)
    begin = time.perf_counter()
    options = {key: value for key, value in settings.items() if "." not in key}
    network_options = {key.split(".")[1]: value for key, value in settings.items() if key.startswith("network.")}
    rule = build_rule(name, {"init_scale": 3.0, **({"pull_every": 10} if name == "bayes" else {}), **options})
    dataset = tuning_data(examples)
    stream = split_by_class(dataset)
    network = build(NetworkConfig(784, (400,), 10, binary=rule.binary, **{**NETWORK, **network_options}))
    training = {"coreset_share": 0.075 * FULL / examples, "anneal": 0.98, "fisher_examples": 1000}
    own = {key.split(".")[1]: value for key, value in settings.items() if key.startswith("training.")}
    config = StreamConfig(**{**training, **method(name).training, **own})
    if method(name).tasks == "joint":
        stream = joint(stream)
    elif method(name).tasks == "coresets":
        stream = coreset_only(stream, config)
    learnt = posteriors(rule, run_stream(network, rule, stream, config).states)
    generator = generator_for(0, "committee")
    predictor = (
        Committee.draw(network, learnt, 5, generator=generator, grid=None if rule.binary else "fit")
        if method(name).bayesian
        else Point.of(network, learnt)
    )
    final = predict_samples(predictor, dataset.test, generator, over_time=False, keep_members="none").probabilities[-1]
    scores = score(final, dataset.test.labels)._asdict()
    seconds = time.perf_counter() - begin
    scores["judged"] = scores.pop("examples")
    return {"method": name, "settings": settings, "examples": examples, **scores, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(TRIALS))
    parser.add_argument("--examples", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("docs/results/tuning-split-mnist.jsonl"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    known = [(entry["method"], entry["settings"], entry["examples"]) for entry in done]
    tasks = [
        (name, settings, options.examples)
        for name in options.methods
        for settings in TRIALS[name]
        if (name, settings, options.examples) not in known
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        for entry in pool.map(trial, tasks):
            with options.out.open("a") as lines:
                lines.write(json.dumps(entry) + "\n")
            print(
                f"{entry['method']:13s} accuracy {entry['accuracy']:.4f} ece {entry['ece']:.4f} "
                f"nll {entry['nll']:.3f} {entry['seconds']:.0f} s  {entry['settings']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
