"""Split-Fashion-MNIST: the protocol of split-MNIST on garments; goes beyond the paper.

Five tasks of two garments, presented one after the other for one epoch each; network, read-out, code and coresets are
those of split-MNIST, and so are the rates of the frequentists. Digits of MNIST are the foreign inputs.
"""

from typing import Any

from bayspike.continual.tasks import split_by_class
from bayspike.experiments.split_mnist import NETWORK, TRAINING
from bayspike.experiments.split_mnist import TUNED as DIGITS
from bayspike.runs.plan.experiment import CONTINUAL_FIGURES, Experiment, Preset

# Nothing was tuned on garments: the Bayesian learner has its natural units, the others what was best on digits.
TUNED: dict[str, dict[str, Any]] = {name: DIGITS[name] for name in ("sgd", "ewc", "tacos", "coreset-only", "joint")}

_ALL = ("bayes", "ewc", "sgd")

EXPERIMENT = Experiment(
    name="split-fashion-mnist",
    title="Split-Fashion-MNIST: five tasks of two garments each",
    dataset="fashion_mnist",
    stream=split_by_class,
    tuned=TUNED,
    presets={
        "demo": Preset(
            _ALL,
            seeds=1,
            network=NETWORK,
            training={"evaluations": 2, **TRAINING},
            data={"train_examples": 4000, "test_examples": 1000},
            judging={"interim_examples": 500},
        ),
        "laptop": Preset(
            _ALL,
            seeds=3,
            network=NETWORK,
            training={"evaluations": 2, **TRAINING},
            data={"train_examples": 10_000, "time": 50},
            judging={"interim_examples": 1000},
        ),
        "paper": Preset(
            (*_ALL, "tacos", "finetune", "coreset-only", "joint", "bayes-joint"),
            seeds=3,
            network=NETWORK,
            training={"evaluations": 4, **TRAINING},
            data={"time": 50},
            judging={"interim_examples": 1000},
        ),
    },
    figures=(*CONTINUAL_FIGURES, "foreign_confidence"),
    published_note="The paper does not have this experiment.",
)
