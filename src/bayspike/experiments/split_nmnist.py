"""Split-N-MNIST: the protocol of split-MNIST on real recordings of an event camera; goes beyond the paper.

Five tasks of two digits, one layer of 400 neurons, 34×34×2 inputs down-sampled to 17×17×2, T = 50, coresets of 10 %.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.experiments.base import Experiment, Preset

# Hyper-parameters that differ from the rules' own defaults, by method. Edit here.
TUNED: dict[str, dict[str, Any]] = {
    "bayes": {"lr": 1000.0, "temperature": 1e-8, "prior_precision": 3000.0},
    "bayes-binary": {"lr": 1.0, "temperature": 1e-6},
    "sgd": {"lr": 0.1},
    "ste": {"lr": 0.1},
    "ewc": {"strength": 1e-4, "training.fisher_examples": 200},
    "tacos": {"lr": 0.1},
    "coreset-only": {"training.epochs": 20},
}

_SMALL = {"downsample": 2}

EXPERIMENT = Experiment(
    name="split-nmnist",
    title="Split-N-MNIST: five tasks of two digits, real event-camera recordings",
    dataset="nmnist",
    stream=split_by_class,
    tuned=TUNED,
    presets={
        "demo": Preset(
            ("bayes", "ewc", "sgd"),
            seeds=1,
            training={"epochs": 2, "evaluations": 2, "coreset_share": 0.1},
            data={"train_examples": 800, "test_examples": 200, "options": _SMALL},
            judging={"interim_examples": 200},
        ),
        "laptop": Preset(
            ("bayes", "ewc", "sgd", "finetune", "coreset-only", "joint"),
            seeds=3,
            training={"epochs": 4, "evaluations": 4, "coreset_share": 0.1},
            data={"train_examples": 2000, "test_examples": 1000, "options": _SMALL},
        ),
        "paper": Preset(
            ("bayes", "ewc", "sgd", "tacos", "finetune", "coreset-only", "joint"),
            seeds=3,
            training={"epochs": 5, "evaluations": 5, "coreset_share": 0.1},
            data={"options": _SMALL},
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
    published_note="The paper does not have this experiment.",
)
