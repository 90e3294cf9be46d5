"""Tuning of the other experiments: the same number of trials for every method, chosen on validation data alone.

    BAYSPIKE_DATA=… python studies/tune.py split-nmnist            # docs/results/tuning-split-nmnist.jsonl

A fifth of the training examples judges the trials and takes no part in learning; the test set is never touched. A trial
is the preset of the experiment with the settings of one line below, one seed.
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from bayspike.continual.judging import score
from bayspike.continual.protocol import generator_for, run_stream
from bayspike.data.base import stratified_split
from bayspike.experiments.base import Changes, resolve
from bayspike.experiments.config import jobs_of
from bayspike.experiments.judging import headline, make_predictor
from bayspike.experiments.methods import method
from bayspike.experiments.prepare import load_data, prepare
from bayspike.experiments.registry import experiment
from bayspike.learning import posteriors
from bayspike.predictors import predict_samples

Settings = dict[str, Any]

# Two rates by two read-outs for each method, and one more rate.
_POINT: list[Settings] = [
    {"lr": 0.12, "network.readout_scale": 8.0},
    {"lr": 0.12, "network.readout_scale": 16.0},
    {"lr": 0.3, "network.readout_scale": 8.0},
    {"lr": 0.3, "network.readout_scale": 16.0},
    {"lr": 0.05, "network.readout_scale": 16.0},
]
_GAUSS: list[Settings] = [
    {"lr": 100.0, "prior_precision": 600.0, "precision_lr": 10.0, "network.readout_scale": 8.0},
    {"lr": 100.0, "prior_precision": 600.0, "precision_lr": 10.0, "network.readout_scale": 16.0},
    {"lr": 300.0, "prior_precision": 600.0, "precision_lr": 10.0, "network.readout_scale": 8.0},
    {"lr": 300.0, "prior_precision": 600.0, "precision_lr": 10.0, "network.readout_scale": 16.0},
    {"lr": 100.0, "prior_precision": 200.0, "precision_lr": 10.0, "network.readout_scale": 16.0},
]
_STE: list[Settings] = [
    {"lr": 0.5, "network.threshold": threshold, "network.readout_scale": 16.0} for threshold in (1.0, 2.0, 4.0, 8.0)
] + [{"lr": 2.0, "network.threshold": 4.0, "network.readout_scale": 16.0}]
_BERNOULLI: list[Settings] = [
    {"lr": 10.0, "sampling": "neuron", "network.threshold": threshold, "network.readout_scale": 16.0}
    for threshold in (1.0, 2.0, 4.0, 8.0)
] + [{"lr": 30.0, "sampling": "neuron", "network.threshold": 4.0, "network.readout_scale": 16.0}]
_EWC: list[Settings] = [
    {"lr": 0.12, "strength": 1e-6, "network.readout_scale": 16.0},
    {"lr": 0.12, "strength": 1e-5, "network.readout_scale": 16.0},
    {"lr": 0.3, "strength": 1e-6, "network.readout_scale": 16.0},
    {"lr": 0.12, "strength": 1e-6, "network.readout_scale": 8.0},
    {"lr": 0.3, "strength": 1e-5, "network.readout_scale": 8.0},
]
TRIALS: dict[str, list[Settings]] = {
    "bayes": _GAUSS,
    "sgd": _POINT,
    "ewc": _EWC,
    "ste": _STE,
    "bayes-binary": _BERNOULLI,
    "ewc-binary": [{**settings, "strength": 1e-6} for settings in _STE],
}


class Trial(NamedTuple):
    experiment: str
    preset: str
    method: str
    settings: Settings
    simulated: bool


def run(trial: Trial) -> dict[str, Any]:
    """Learn with one set of settings and score it on the validation examples."""
    torch.set_num_threads(1)
    begin = time.perf_counter()
    chosen = experiment(trial.experiment)
    said = [f"{trial.method}.{key}={value}" for key, value in trial.settings.items()]
    changes = Changes(methods=[trial.method], settings=said, simulated=trial.simulated, training={"evaluations": 1})
    config = resolve(chosen, trial.preset, changes)
    whole = load_data(chosen, config.data)
    learnt_from, judged_by = stratified_split(whole.train.labels, 0.2, seed=1)
    dataset = replace(whole, train=whole.train.subset(learnt_from), test=whole.train.subset(judged_by), foreign=None)
    learner = prepare(config, jobs_of(config)[0], dataset, chosen.stream(dataset))
    done = run_stream(learner.network, learner.rule, learner.stream, learner.training)
    name = headline(method(trial.method), config.judging)
    predictor = make_predictor(name, learner.network, posteriors(learner.rule, done.states), 5, 0)
    generator = generator_for(0, "validation")
    shown = predict_samples(predictor, dataset.test, generator, over_time=False, keep_members="none")
    scores = score(shown.probabilities[-1], dataset.test.labels)._asdict()
    rates = [round(float(rate), 4) for rate in shown.rates]
    return {**trial._asdict(), **scores, "rates": rates, "seconds": time.perf_counter() - begin}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment")
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--methods", nargs="+", default=["bayes", "sgd", "ewc"])
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or Path(f"docs/results/tuning-{options.experiment}.jsonl")
    out.parent.mkdir(parents=True, exist_ok=True)
    known = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    trials = [
        Trial(options.experiment, options.preset, name, settings, options.simulated)
        for name in options.methods
        for settings in TRIALS[name]
    ]
    waiting = [each for each in trials if each._asdict() not in [{k: old[k] for k in Trial._fields} for old in known]]
    with ProcessPoolExecutor(options.workers) as pool:
        for future in as_completed([pool.submit(run, trial) for trial in waiting]):
            entry = future.result()
            with out.open("a") as lines:
                lines.write(json.dumps(entry) + "\n")
            print(
                f"{entry['method']:13s} accuracy {entry['accuracy']:.4f} ece {entry['ece']:.4f} nll {entry['nll']:.3f} "
                f"rates {entry['rates']} {entry['seconds']:.0f} s  {entry['settings']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
