"""A folder of one's own: pictures or recordings of events, each sub-folder a class; or any data set that is named.

Two classes a task unless `--tasks` says otherwise, one layer of 400 neurons. The settings are those of split-MNIST: a
start, not tuned on anybody's data.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.experiments.split_mnist import NETWORK, TRAINING
from bayspike.experiments.split_mnist import TUNED as LIKE_MNIST
from bayspike.runs.plan.experiment import Experiment, Preset

# Hyper-parameters that differ from the rules' own defaults, by method. Edit here.
TUNED: dict[str, dict[str, Any]] = LIKE_MNIST | {
    "bayes": LIKE_MNIST["bayes"] | {"temperature": 3e-5},
    "ewc": {"strength": 1e-5, "training.fisher_examples": 200},
    "coreset-only": {"training.epochs": 20},
}

_SMALL = {"coreset_share": 0.2, "batch": 16, **TRAINING}

EXPERIMENT = Experiment(
    name="folder",
    title="A folder of one's own",
    dataset="folder",
    stream=split_by_class,
    tuned=TUNED,
    presets={
        "demo": Preset(
            ("bayes", "ewc", "sgd"),
            seeds=1,
            network=NETWORK,
            training={"epochs": 3, "evaluations": 2, **_SMALL},
            data={"train_examples": 2000, "test_examples": 500},
        ),
        "laptop": Preset(
            ("bayes", "ewc", "sgd", "finetune", "coreset-only", "joint"),
            seeds=3,
            network=NETWORK,
            training={"epochs": 10, "evaluations": 4, **_SMALL},
        ),
    },
    of_paper=False,
)
