"""Permuted MNIST: the same digits under ever new orders of their pixels, nothing stored, no boundary told.

The protocol of MESU (Bonnet et al., Nature Communications 2025): each task is one epoch of 60,000 images under a
permutation of its own, the first one unpermuted; a learner without boundaries is not told where they lie. One layer of
50 neurons (or 400); here spiking, trained by local losses.
"""

from functools import partial
from typing import Any

from bayspike.continual.tasks import permuted
from bayspike.experiments.split_mnist import MNIST
from bayspike.runs.plan.experiment import CONTINUAL_FIGURES, Experiment, Preset, Published

# Their networks are ordinary ones of 784-50-10, trained by back-propagation.
PUBLISHED = tuple(
    Published(f"{name}, ordinary network", method, predictor, accuracy, of="last five of 200 tasks")
    for name, method, predictor, accuracy in (
        ("MESU", "mesu", "committee", 0.9134),
        ("online EWC", "ewc-online", "point", 0.8854),
        ("SI", "si", "point", 0.8696),
        ("FOO-VB", "bgd", "committee", 0.6866),
        ("streaming EWC", "ewc-online", "point", 0.6573),
        ("SGD", "finetune", "point", 0.5536),
    )
)

NETWORK = {"synapse_decay": 0.0, "membrane_decay": 0.5, "readout_scale": 24.0}
# Nothing is stored; during training those tasks are judged that were learnt, of many the newest and a few others.
NOTHING_STORED = {"replay": "none", "coreset_share": 0.0, "evaluations": 1, "judge": "learnt"}

# Of every class fifty images are not learnt but fit a temperature, seen as the newest task sees them; and logits are
# added up over the steps of a signal. Both for all methods alike, beside the plain mean of the paper.
CALIBRATED = {"held_back": 50}
LOGITS = {"gather": "logits"}

# How many examples a learner without boundaries remembers, and rates: of the frequentists the best of six settings on
# training images that were not learnt, of the others of four (studies/permuted_mnist.py,
# docs/results/permuted-tuning.jsonl). Edit here.
TUNED: dict[str, dict[str, Any]] = {
    "bayes-stream": {"remember": 2_000_000.0},
    "bayes-flat": {"crowd": 400.0},
    "mesu": {"remember": 2_000_000.0},
    "bayes-binary-stream": {"remember": 2_000_000.0, "observations": 2.0, "network.threshold": 8.0},
    "metaplastic": {"lr": 0.5, "metaplasticity": 3.0, "init_scale": 3.0, "network.threshold": 8.0},
    "ste": {"lr": 0.03, "init_scale": 3.0, "network.threshold": 8.0},
    "sgd": {"lr": 0.01},
    "ewc": {"lr": 0.01, "strength": 1e-6, "training.fisher_examples": 1000},
    "si": {"lr": 0.03, "strength": 1e-3},
}

# For a stream without an end a memory of two and a half tasks and a narrower prior: else means grow from task to task,
# and the newest is learnt less and less well. By the last five of twenty tasks on training images that were not learnt.
ENDLESS: dict[str, dict[str, Any]] = {
    "bayes-stream": {"remember": 150_000.0, "prior_std": 0.05},
    "mesu": {"remember": 300_000.0, "prior_std": 0.05},
    "ewc": {"lr": 0.01, "strength": 1e-7, "decay": 0.5},
    "si": {"lr": 0.003, "strength": 1e-4},
}

METHODS = ("bayes-stream", "ewc-online", "finetune")
_ALL = ("bayes-stream", "bayes-flat", "mesu", "bgd", "ewc-online", "si", "finetune")

EXPERIMENT = Experiment(
    name="permuted-mnist",
    title="Permuted MNIST: new orders of the pixels, nothing stored, no boundary told",
    dataset="mnist",
    stream=partial(permuted, count=10),
    tuned=TUNED,
    presets={
        "demo": Preset(
            METHODS,
            seeds=1,
            network={"hidden": (100,), **NETWORK},
            training=NOTHING_STORED,
            data={"name": "digits", "time": 20, "options": {"foreign": "shuffled"}},
            judging={"interim_examples": 500},
            stream=partial(permuted, count=5),
        ),
        "laptop": Preset(
            _ALL,
            seeds=1,
            network={"hidden": (400,), **NETWORK},
            training=NOTHING_STORED,
            data={"train_examples": 10_000, "test_examples": 2000, "time": 20, **CALIBRATED},
            judging={"interim_examples": 1000, **LOGITS},
        ),
        "paper": Preset(
            _ALL,
            seeds=3,
            network={"hidden": (50,), **NETWORK},
            training=NOTHING_STORED,
            data={"time": 20, "test_examples": 2000, **CALIBRATED},  # of each of the 200 tasks
            judging={"interim_examples": 2000, **LOGITS},
            tuned=ENDLESS,
            stream=partial(permuted, count=200),
        ),
    },
    counted=permuted,
    rewires=True,
    figures=("course", *CONTINUAL_FIGURES, "foreign_confidence"),
    published=PUBLISHED,
    paper_data=MNIST,
    published_note="Published: accuracy over the last five of 200 tasks, ordinary networks by back-propagation.",
)
