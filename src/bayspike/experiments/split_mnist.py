"""Split-MNIST (paper, Sec. "Continual Learning", Table comparison-continual; Fig. weights_distrib).

Five tasks of two digits, presented one after the other for one epoch each; one layer of 400 neurons, rate code
over T = 50 steps, coresets of 7.5 % of every class, mini-batches of 64.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.runs.plan.experiment import CONTINUAL_FIGURES, Experiment, PaperData, Preset, Published

PUBLISHED = (
    Published("TACOS (full precision)", "tacos", "point", 0.8345, 0.0055),
    Published("Frequentist", "ewc", "point", 0.7719, 0.0065, 0.39, 0.01),
    Published("Bayesian committee machine", "bayes", "committee", 0.8544, 0.0016, 0.36, 0.01),
    Published("Bayesian ensemble decision", "bayes", "ensemble", 0.8503, 0.0054, 0.36, 0.01),
)
MNIST = PaperData("mnist", (60_000, 10_000))

# A quick membrane: spikes from the second step on, so that the average over time is not diluted by a slow start. The
# learning rate falls linearly within each task, for every method alike.
NETWORK = {"synapse_decay": 0.0, "membrane_decay": 0.5, "readout_scale": 16.0}
TRAINING = {"anneal": 0.98}

# Hyper-parameters that differ from the rules' own defaults, by method; chosen on validation images by
# a grid of five trials (docs/results/tuning-split-mnist.jsonl); `bayspike tune` does the like today. Edit here.
TUNED: dict[str, dict[str, Any]] = {
    "bayes": {
        "lr": 100.0,
        "temperature": 1e-8,
        "precision_lr": 10.0,
        "prior_precision": 300.0,
        "init_scale": 0.3,
        "pull_every": 10,
    },
    "bayes-binary": {"lr": 30.0, "temperature": 1e-6, "sampling": "neuron", "network.threshold": 8.0},
    "sgd": {"lr": 0.12},
    "ste": {"lr": 0.5, "init_scale": 3.0, "network.threshold": 8.0},
    "ewc": {"strength": 1e-8, "training.fisher_examples": 1000},
    "tacos": {"lr": 0.1, "increment": 1.0, "use_trace": True},
    "tacos-replay": {"lr": 0.25, "increment": 1e-3},
    "coreset-only": {"training.epochs": 40},
    "joint": {"lr": 0.25},
}

_ALL = ("bayes", "ewc", "sgd", "tacos")

EXPERIMENT = Experiment(
    name="split-mnist",
    title="Split-MNIST: five tasks of two digits each",
    dataset="mnist",
    stream=split_by_class,
    tuned=TUNED,
    presets={
        "demo": Preset(
            ("bayes", "ewc", "sgd"),
            seeds=1,
            network=NETWORK,
            training={"evaluations": 2, **TRAINING},
            data={"train_examples": 4000, "test_examples": 1000},
            judging={"interim_examples": 500},
        ),
        "laptop": Preset(
            _ALL,
            seeds=1,
            network=NETWORK,
            training={"evaluations": 2, **TRAINING},
            data={"train_examples": 30_000},
            judging={"interim_examples": 1000},
        ),
        "paper": Preset(
            (*_ALL, "tacos-replay", "finetune", "coreset-only", "joint", "bayes-binary", "ste"),
            seeds=3,
            network=NETWORK,
            training={"evaluations": 4, **TRAINING},
            data={"time": 50},
            judging={"interim_examples": 1000},
        ),
    },
    figures=(*CONTINUAL_FIGURES, "foreign_confidence"),
    published=PUBLISHED,
    paper_data=MNIST,
)
