"""Drifting MNIST: a few pixels change places all the time, every image is shown once, there are no boundaries at all.

The stream is cut into chunks so that one can look at it: from each chunk to the next a share of the pixels moves on in
a cycle. A learner is judged on the pixels as they stood in earlier chunks. Learners that need boundaries (EWC) are told
where a chunk ends. The settings are those of permuted MNIST; none was tuned on these streams.
"""

from functools import partial

from bayspike.continual.tasks import drifting
from bayspike.experiments.permuted_mnist import METHODS, NETWORK, NOTHING_STORED, TUNED
from bayspike.runs.plan.experiment import CONTINUAL_FIGURES, Experiment, Preset

EXPERIMENT = Experiment(
    name="drifting-mnist",
    title="Drifting MNIST: pixels change places all the time, nothing stored, no boundaries",
    dataset="mnist",
    stream=partial(drifting, count=60, share=0.02, apart=True),
    tuned=TUNED,
    presets={
        "demo": Preset(
            METHODS,
            seeds=1,
            network={"hidden": (100,), **NETWORK},
            training=NOTHING_STORED,
            data={"name": "digits", "time": 20, "test_examples": 500, "options": {"foreign": "shuffled"}},
            judging={"interim_examples": 500},
            stream=partial(drifting, count=20, share=0.05, apart=True),
        ),
        "laptop": Preset(
            METHODS,
            seeds=1,
            network={"hidden": (400,), **NETWORK},
            training=NOTHING_STORED,
            data={"test_examples": 500, "time": 20},  # of each of the 60 chunks
            judging={"interim_examples": 1000},
        ),
    },
    rewires=True,
    figures=("course", *CONTINUAL_FIGURES, "foreign_confidence"),
    of_paper=False,
)
