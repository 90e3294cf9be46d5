"""MNIST-DVS (paper, Sec. "Continual Learning", Figs. continual-exp, continual-final, weights_distrib).

Five tasks of two moving digits seen by an event camera, 100 epochs each; layers of 2048-4096-4096-2048-1024
neurons, T = 80, coresets of 10 %, mini-batches of 64; real-valued and binary synapses.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.experiments.base import Experiment, Preset

# Hyper-parameters that differ from the rules' own defaults, by method. Edit here.
TUNED: dict[str, dict[str, Any]] = {
    "bayes": {"lr": 1000.0, "temperature": 1e-8, "prior_precision": 3000.0},
    "ewc": {"lr": 0.1, "strength": 1e-4, "training.fisher_examples": 200},
    "sgd": {"lr": 0.1},
    "bayes-binary": {"lr": 1.0, "temperature": 1e-6},
    "ste": {"lr": 0.1},
    "ewc-binary": {"lr": 0.1, "strength": 1e-4, "training.fisher_examples": 200},
}

_METHODS = ("ewc", "bayes", "ewc-binary", "bayes-binary")

EXPERIMENT = Experiment(
    name="mnist-dvs",
    title="Split MNIST-DVS: five tasks of two digits seen by an event camera",
    dataset="mnist_dvs",
    stand_in="mnist_dvs_simulated",
    stream=split_by_class,
    tuned=TUNED,
    presets={
        "demo": Preset(
            ("ewc", "bayes"),
            seeds=1,
            network={"hidden": (256, 128)},
            training={"epochs": 2, "evaluations": 2, "coreset_share": 0.1},
            data={"train_examples": 400, "test_examples": 200, "time": 40},
            judging={"interim_examples": 200},
            simulated={"per_class": 60, "digits": "embedded"},
        ),
        "laptop": Preset(
            _METHODS,
            seeds=1,
            network={"hidden": (512, 256)},
            training={"epochs": 2, "evaluations": 4, "coreset_share": 0.1},
            data={"train_examples": 1800, "test_examples": 500},
            judging={"interim_examples": 250},
            simulated={"per_class": 250},
        ),
        "paper": Preset(
            _METHODS,
            seeds=3,
            network={"hidden": (2048, 4096, 4096, 2048, 1024)},
            training={"epochs": 100, "evaluations": 10, "coreset_share": 0.1},
            data={"time": 80},
        ),
    },
    figures=(
        "training_curves",
        "final_boxes",
        "accuracy_matrix",
        "reliability",
        "over_time",
        "risk_coverage",
        "top_classes",
        "mean_parameters",
    ),
    published_note="The paper shows MNIST-DVS in figures only.",
)
