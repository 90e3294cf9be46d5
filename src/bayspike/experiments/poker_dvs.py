"""POKER-DVS: the four suits of playing cards, real recordings of an event camera; goes beyond the paper.

Two tasks of two suits, one layer of 400 neurons, 35×35×2 inputs, 20 ms in 40 bins. There are 131 recordings in all,
so a test set holds 33 of them: the spread over seeds, each with its own weights, says more than any one figure.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.experiments.split_mnist import NETWORK, TRAINING
from bayspike.experiments.split_mnist import TUNED as LIKE_MNIST
from bayspike.runs.plan.experiment import Experiment, Preset

# Hyper-parameters that differ from the rules' own defaults, by method. Too few recordings to tune on: those of
# split-MNIST. Edit here.
TUNED: dict[str, dict[str, Any]] = LIKE_MNIST | {"coreset-only": {"training.epochs": 30}}

_SMALL = {"coreset_share": 0.2, "batch": 16, **TRAINING}

EXPERIMENT = Experiment(
    name="poker-dvs",
    title="POKER-DVS: two tasks of two suits, real event-camera recordings",
    dataset="poker_dvs",
    stream=split_by_class,
    tuned=TUNED,
    presets={
        "demo": Preset(
            ("bayes", "ewc", "sgd"),
            seeds=1,
            network=NETWORK,
            training={"epochs": 5, "evaluations": 2, **_SMALL},
        ),
        "laptop": Preset(
            ("bayes", "ewc", "sgd", "finetune", "coreset-only", "joint"),
            seeds=3,
            network=NETWORK,
            training={"epochs": 10, "evaluations": 4, **_SMALL},
        ),
        "paper": Preset(
            ("bayes", "ewc", "sgd", "tacos", "finetune", "coreset-only", "joint", "bayes-binary", "ste"),
            seeds=3,
            network=NETWORK,
            training={"epochs": 10, "evaluations": 4, **_SMALL},
        ),
    },
    published_note="The paper does not have this experiment.",
)
