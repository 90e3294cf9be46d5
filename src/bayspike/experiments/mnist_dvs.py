"""MNIST-DVS (paper, Sec. "Continual Learning", Figs. continual-exp, continual-final, weights_distrib).

Five tasks of two moving digits seen by an event camera, 100 epochs each; layers of 2048-4096-4096-2048-1024
neurons, T = 80, coresets of 10 %, mini-batches of 64; real-valued and binary synapses.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.runs.plan.experiment import Experiment, Preset

# Hyper-parameters that differ from the rules' own defaults, by method; chosen on other simulated recordings by
# a grid (docs/results/tuning-mnist-dvs.jsonl); `bayspike tune` does the like today. Edit here.
TUNED: dict[str, dict[str, Any]] = {
    "bayes": {
        "lr": 100.0,
        "temperature": 1e-8,
        "precision_lr": 10.0,
        "prior_precision": 300.0,
        "init_scale": 3.0,
        "pull_every": 10,
    },
    "ewc": {"lr": 0.12, "strength": 1e-6, "training.fisher_examples": 200},
    "sgd": {"lr": 0.3, "init_scale": 3.0},
    "bayes-binary": {"lr": 10.0, "sampling": "neuron", "network.threshold": 4.0},
    "ste": {"lr": 0.5, "init_scale": 3.0, "network.threshold": 4.0},
    "ewc-binary": {"strength": 1e-6, "training.fisher_examples": 200},
}

_NETWORK = {"readout_scale": 24.0}
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
            network={"hidden": (256, 128), **_NETWORK},
            training={"epochs": 2, "evaluations": 2, "coreset_share": 0.1, "anneal": 0.98},
            data={"train_examples": 400, "test_examples": 200, "time": 40},
            judging={"interim_examples": 200},
            simulated={"per_class": 60, "digits": "embedded"},
        ),
        "laptop": Preset(
            _METHODS,
            seeds=1,
            network={"hidden": (512, 256), **_NETWORK},
            training={"epochs": 2, "evaluations": 4, "coreset_share": 0.1, "anneal": 0.98},
            data={"train_examples": 1800, "test_examples": 500},
            judging={"interim_examples": 250},
            simulated={"per_class": 250},
        ),
        "paper": Preset(
            _METHODS,
            seeds=3,
            network={"hidden": (2048, 4096, 4096, 2048, 1024), **_NETWORK},
            training={"epochs": 100, "evaluations": 10, "coreset_share": 0.1, "anneal": 0.98},
            data={"time": 80},
        ),
    },
    published_note="The paper shows MNIST-DVS in figures only.",
)
