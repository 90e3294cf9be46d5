"""Tuning of the event-camera experiments: the same number of trials for every method, on validation data alone.

    BAYSPIKE_DATA=… python studies/tune.py split-nmnist --preset laptop --methods bayes sgd ewc ste bayes-binary
    python studies/tune.py dvs-gestures --simulated --splits 1 --methods bayes sgd ste bayes-binary
    python studies/tune.py mnist-dvs --simulated --splits 1 --methods bayes sgd ewc ste bayes-binary ewc-binary

Writes `docs/results/tuning-EXPERIMENT.jsonl`; trials that are there already are not repeated. A trial is the preset of
the experiment with the settings of one line below, repeated on `--splits` divisions of the data and averaged. What a
line does not say is what the experiment's TUNED said at the time: the gestures' SGD had a read-out of 48 then. Real
recordings: a fifth of the training part judges and takes no part in learning. Simulated ones: other users, digits and
noise are simulated, and their test part judges. The test set of the experiment is never touched.
"""

import argparse
import json
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bayspike.continual.judging import score
from bayspike.continual.methods import method
from bayspike.continual.protocol import run_stream
from bayspike.data.base import Dataset, stratified_split
from bayspike.experiments.registry import experiment
from bayspike.learning.batch import posteriors
from bayspike.predict.by_name import make_predictor
from bayspike.predict.predictors import predict_samples
from bayspike.runs.outcome.examination import headline
from bayspike.runs.plan.config import DataOptions, jobs_of
from bayspike.runs.plan.experiment import Experiment
from bayspike.runs.plan.prepare import load_data, prepare
from bayspike.runs.plan.resolve import Changes, resolve
from bayspike.seeds import generator_for

Settings = dict[str, Any]


# Thresholds to try, real-valued and binary: how strong the input is differs from camera to camera.
THRESHOLDS = {
    "split-nmnist": ((0.25, 1.0), (1.0, 4.0)),
    "dvs-gestures": ((0.25, 1.0), (1.0, 4.0)),
    "mnist-dvs": ((1.0, 2.0), (4.0, 8.0)),
}


# Two more a method near the best of its five, and with a stronger hold on the past where it has one.
SECOND_LOOK: dict[str, dict[str, list[Settings]]] = {
    "split-nmnist": {
        "bayes": [{"lr": 300.0, "network.threshold": 1.0, "temperature": rho} for rho in (1e-5, 3e-5)],
        "sgd": [{"lr": 0.06, "network.threshold": 0.25}, {"lr": 0.12, "network.threshold": 0.5}],
        "ewc": [{"lr": 0.12, "network.threshold": 0.25, "strength": strength} for strength in (1e-3, 1e-5)],
        "bayes-binary": [
            {"sampling": "neuron", "lr": 10.0, "network.threshold": 1.0, "temperature": rho} for rho in (1e-4, 1e-3)
        ],
        "ste": [
            {"init_scale": 3.0, "lr": 1.0, "network.threshold": 1.0},
            {"init_scale": 3.0, "lr": 0.5, "network.threshold": 0.5},
        ],
    }
}


def trials(experiment: str) -> dict[str, list[Settings]]:
    """Five a method: two rates by two thresholds, and the lower rate in one more network."""
    real, binary = THRESHOLDS[experiment]

    def crossed(low: float, high: float, heights: tuple[float, float], last: Settings, **own: Any) -> list[Settings]:
        every: list[Settings] = [
            {"lr": rate, "network.threshold": height} for rate in (low, high) for height in heights
        ]
        return [own | each for each in [*every, {"lr": low, **last}]]

    # the gestures' preset has the larger read-out already
    wide = {"network.threshold": real[0], "network.readout_scale": 24.0 if experiment == "dvs-gestures" else 48.0}
    middle = {"network.threshold": 2.0 if binary[0] < 2 else 16.0}
    grid = {
        "bayes": crossed(100.0, 300.0, real, wide),
        "sgd": crossed(0.12, 0.3, real, wide),
        "ewc": [
            {"lr": 0.12, "network.threshold": real[0], "strength": 1e-6},
            {"lr": 0.3, "network.threshold": real[0], "strength": 1e-6},
            {"lr": 0.12, "network.threshold": real[1], "strength": 1e-6},
            {"lr": 0.12, "network.threshold": real[0], "strength": 1e-4},
            {"lr": 0.12, "strength": 1e-6, **wide},
        ],
        "bayes-binary": crossed(10.0, 30.0, binary, middle, sampling="neuron"),
        "ste": crossed(0.5, 2.0, binary, middle, init_scale=3.0),
        "ewc-binary": crossed(0.5, 2.0, binary, middle, init_scale=3.0, strength=1e-6),
    }
    return {name: first + SECOND_LOOK.get(experiment, {}).get(name, []) for name, first in grid.items()}


class Trial(NamedTuple):
    experiment: str
    preset: str
    method: str
    settings: Settings
    simulated: bool
    splits: int


def validation_data(chosen: Experiment, options: DataOptions, simulated: bool, split: int) -> Dataset:
    """A data set whose test part is not that of the experiment."""
    if simulated:
        return load_data(chosen, replace(options, seed=options.seed + 1 + split))
    whole = load_data(chosen, options)
    learnt_from, judged_by = stratified_split(whole.train.labels, 0.2, seed=1 + split)
    return replace(whole, train=whole.train.subset(learnt_from), test=whole.train.subset(judged_by), foreign=None)


def judge(trial: Trial, split: int) -> dict[str, float]:
    """Learn with one set of settings and score it on one division of the data."""
    chosen = experiment(trial.experiment)
    said = [f"{trial.method}.{key}={value}" for key, value in trial.settings.items()]
    changes = Changes(methods=[trial.method], settings=said, simulated=trial.simulated, training={"evaluations": 1})
    config = resolve(chosen, trial.preset, changes)
    dataset = validation_data(chosen, config.data, trial.simulated, split)
    learner = prepare(config, jobs_of(config)[0], dataset, chosen.stream(dataset))
    done = run_stream(learner.network, learner.rule, learner.stream, learner.training)
    name = headline(method(trial.method), config.judging)
    predictor = make_predictor(name, learner.network, posteriors(learner.rule, done.states), 5, split)
    shown = predict_samples(predictor, dataset.test, generator_for(split, "validation"), keep_members="none")
    return score(shown.probabilities[-1], dataset.test.labels)._asdict() | {"rate": float(shown.rates[-1])}


def run(trial: Trial) -> dict[str, Any]:
    """The mean scores of a trial."""
    torch.set_num_threads(1)
    begin = time.perf_counter()
    scores = [judge(trial, split) for split in range(trial.splits)]
    means = {name: statistics.fmean(each[name] for each in scores) for name in scores[0]}
    return {**trial._asdict(), **means, "seconds": time.perf_counter() - begin}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", choices=sorted(THRESHOLDS))
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--methods", nargs="+", default=["bayes", "sgd", "ewc"])
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or Path(f"docs/results/tuning-{options.experiment}.jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    done = [{key: entry[key] for key in Trial._fields} for entry in known]
    grid = trials(options.experiment)
    planned = [
        Trial(options.experiment, options.preset, name, settings, options.simulated, options.splits)
        for name in options.methods
        for settings in grid[name]
    ]
    with ProcessPoolExecutor(options.workers) as pool:
        for future in as_completed([pool.submit(run, each) for each in planned if each._asdict() not in done]):
            entry = future.result()
            with out.open("a") as lines:
                lines.write(json.dumps(entry) + "\n")
            print(
                f"{entry['method']:13s} accuracy {entry['accuracy']:.4f} ece {entry['ece']:.4f} nll {entry['nll']:.3f} "
                f"rate {entry['rate']:.3f} {entry['seconds']:.0f} s  {entry['settings']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
