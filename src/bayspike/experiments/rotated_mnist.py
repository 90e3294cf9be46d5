"""Rotated MNIST: the same digits turned further from task to task, nothing stored, no boundary told.

A domain that shifts by degrees: each task is one epoch of the images under a larger angle. The settings are those of
permuted MNIST; none was tuned on these streams.
"""

from functools import partial

from bayspike.continual.tasks import rotated
from bayspike.experiments.permuted_mnist import METHODS, NETWORK, NOTHING_STORED, TUNED
from bayspike.runs.plan.experiment import CONTINUAL_FIGURES, Experiment, Preset

EXPERIMENT = Experiment(
    name="rotated-mnist",
    title="Rotated MNIST: digits turned further and further, nothing stored, no boundary told",
    dataset="mnist",
    stream=partial(rotated, angles=range(0, 181, 20)),
    tuned=TUNED,
    presets={
        "demo": Preset(
            METHODS,
            seeds=1,
            network={"hidden": (100,), **NETWORK},
            training=NOTHING_STORED,
            data={"name": "digits", "time": 20, "options": {"foreign": "shuffled"}},
            judging={"interim_examples": 500},
            stream=partial(rotated, angles=range(0, 81, 20)),
        ),
        "laptop": Preset(
            METHODS,
            seeds=1,
            network={"hidden": (400,), **NETWORK},
            training=NOTHING_STORED,
            data={"train_examples": 10_000, "test_examples": 2000, "time": 20},
            judging={"interim_examples": 1000},
        ),
    },
    rewires=True,
    figures=("course", *CONTINUAL_FIGURES, "foreign_confidence"),
    of_paper=False,
)
