"""Split-MNIST (paper, Sec. "Continual Learning", Table comparison-continual; Fig. weights_distrib).

Five tasks of two digits, presented one after the other for one epoch each; one layer of 400 neurons, rate code
over T = 50 steps, coresets of 7.5 % of every class, mini-batches of 64.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.experiments.base import Experiment, Preset, Published

PUBLISHED = (
    Published("TACOS (full precision)", "tacos", "point", 0.8345, 0.0055),
    Published("Frequentist", "ewc", "point", 0.7719, 0.0065, 0.39, 0.01),
    Published("Bayesian committee machine", "bayes", "committee", 0.8544, 0.0016, 0.36, 0.01),
    Published("Bayesian ensemble decision", "bayes", "ensemble", 0.8503, 0.0054, 0.36, 0.01),
)

# Hyper-parameters that differ from the rules' own defaults, by method. Edit here.
TUNED: dict[str, dict[str, Any]] = {
    "bayes": {"lr": 3000.0, "temperature": 1e-8, "prior_precision": 3000.0, "network.slope": 3.0},
    "bayes-binary": {"lr": 1.0, "temperature": 1e-6},
    "sgd": {"lr": 0.15, "network.slope": 6.0},
    "ste": {"lr": 0.1},
    "ewc": {"strength": 1e-4, "training.fisher_examples": 1000},
    "tacos": {"lr": 0.1},
    "coreset-only": {"training.epochs": 10},
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
            training={"evaluations": 2},
            data={"train_examples": 4000, "test_examples": 1000},
            judging={"interim_examples": 500},
        ),
        "laptop": Preset(
            _ALL,
            seeds=1,
            training={"evaluations": 2},
            data={"train_examples": 30_000},
            judging={"interim_examples": 1000},
        ),
        "paper": Preset(
            (*_ALL, "finetune", "coreset-only", "joint"),
            seeds=3,
            training={"evaluations": 4},
            data={"time": 50},
            judging={"interim_examples": 1000},
        ),
    },
    figures=(
        "training_curves",
        "final_boxes",
        "accuracy_matrix",
        "reliability",
        "over_time",
        "risk_coverage",
        "foreign_confidence",
        "top_classes",
        "mean_parameters",
    ),
    published=PUBLISHED,
)
