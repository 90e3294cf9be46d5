"""Split-N-MNIST: the protocol of split-MNIST on real recordings of an event camera; goes beyond the paper.

Five tasks of two digits, one layer of 400 neurons, 34×34×2 inputs down-sampled to 17×17×2, T = 20, coresets of 25 %.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.runs.plan.experiment import Experiment, Preset

# Hyper-parameters that differ from the rules' own defaults, by method; chosen on held-out training recordings by
# a grid (docs/results/tuning-split-nmnist.jsonl); `bayspike tune` does the like today. Edit here.
TUNED: dict[str, dict[str, Any]] = {
    "bayes": {
        "lr": 300.0,
        "temperature": 1e-8,
        "prior_precision": 300.0,
        "precision_lr": 10.0,
        "init_scale": 1.0,
        "pull_every": 10,
        "network.threshold": 1.0,
    },
    "bayes-binary": {"lr": 10.0, "sampling": "neuron", "network.threshold": 1.0},
    "sgd": {"lr": 0.12},
    "ste": {"lr": 2.0, "init_scale": 3.0, "network.threshold": 1.0},
    "ewc": {"lr": 0.12, "strength": 1e-5, "training.fisher_examples": 200},
    "tacos": {"lr": 0.1, "increment": 1.0, "use_trace": True},
    "coreset-only": {"training.epochs": 20},
}

# Slow synapses and a low threshold bridge the pauses between the camera's three movements.
NETWORK = {"synapse_decay": 0.8, "membrane_decay": 0.8, "threshold": 0.25, "readout_scale": 24.0}
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
            network=NETWORK,
            training={"epochs": 4, "anneal": 0.98, "evaluations": 2, "coreset_share": 0.25},
            data={"train_examples": 800, "test_examples": 200, "time": 20, "options": _SMALL},
            judging={"interim_examples": 200},
        ),
        "laptop": Preset(
            ("bayes", "ewc", "sgd", "finetune", "coreset-only", "joint"),
            seeds=3,
            network=NETWORK,
            training={"epochs": 4, "anneal": 0.98, "evaluations": 4, "coreset_share": 0.25},
            data={"train_examples": 2000, "test_examples": 1000, "time": 20, "options": _SMALL},
        ),
        "paper": Preset(
            ("bayes", "ewc", "sgd", "tacos", "finetune", "coreset-only", "joint"),
            seeds=3,
            network=NETWORK,
            training={"epochs": 5, "anneal": 0.98, "evaluations": 5, "coreset_share": 0.25},
            data={"time": 20, "options": _SMALL},
        ),
    },
    published_note="The paper does not have this experiment.",
)
