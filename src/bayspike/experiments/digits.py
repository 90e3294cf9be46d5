"""The demo: class-incremental learning of real digits that need no download, Bayesian beside frequentist.

The protocol is that of split-MNIST (paper, Sec. "Continual Learning") on 5,000 MNIST digits: five tasks of two
classes, one layer of 400 neurons, coresets of 7.5 %; chosen not at random but as medoids, but for the preset `paper`.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.experiments.split_mnist import MNIST, NETWORK, PUBLISHED, TRAINING
from bayspike.experiments.split_mnist import TUNED as LIKE_MNIST
from bayspike.runs.plan.experiment import CONTINUAL_FIGURES, Experiment, Preset

# Hyper-parameters that differ from the rules' own defaults, by method: those of split-MNIST but for the Bayesian rule,
# which is in its own natural units, and EWC's weight of the past. With 30 stored images a class a strong one pays.
TUNED: dict[str, dict[str, Any]] = LIKE_MNIST | {
    "bayes": {"training.evidence": "once"},
    "ewc": {"strength": 1e-5, "training.fisher_examples": 200},
    "coreset-only": {"training.epochs": 10},
}

MEDOIDS = {**TRAINING, "coreset_selection": "medoids"}
FOREIGN = {"options": {"foreign": "shuffled"}}  # test digits with shuffled pixels

EXPERIMENT = Experiment(
    name="digits",
    title="Split digits: five tasks of two digits each",
    dataset="digits",
    stream=split_by_class,
    tuned=TUNED,
    presets={
        "demo": Preset(
            ("bayes", "ewc", "sgd"),
            seeds=1,
            network=NETWORK,
            training={"epochs": 1, "evaluations": 2, **MEDOIDS},
            data=FOREIGN,
        ),
        "laptop": Preset(
            ("bayes", "ewc", "sgd", "tacos", "finetune", "coreset-only", "joint"),
            seeds=3,
            network=NETWORK,
            training={"epochs": 2, "evaluations": 4, **MEDOIDS},
            data=FOREIGN,
        ),
        "paper": Preset(
            ("bayes", "ewc", "sgd", "tacos"),
            seeds=3,
            network=NETWORK,
            training={"epochs": 1, "evaluations": 4, **TRAINING},
            data=FOREIGN,
        ),
    },
    figures=(*CONTINUAL_FIGURES, "foreign_confidence"),
    published=PUBLISHED,
    paper_data=MNIST,
)
