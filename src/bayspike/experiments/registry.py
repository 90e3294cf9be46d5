"""The experiments by the names of the command line. To add one: write its file and list it here."""

from bayspike.errors import UserError, hint
from bayspike.experiments import (
    digits,
    drifting_mnist,
    dvs_gestures,
    folder,
    mnist_dvs,
    permuted_mnist,
    poker_dvs,
    rotated_mnist,
    split_fashion_mnist,
    split_gestures,
    split_mnist,
    split_nmnist,
    two_moons,
)
from bayspike.runs.plan.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    each.EXPERIMENT.name: each.EXPERIMENT
    for each in (
        two_moons,
        dvs_gestures,
        split_gestures,
        split_mnist,
        split_fashion_mnist,
        mnist_dvs,
        split_nmnist,
        poker_dvs,
        digits,
        permuted_mnist,
        rotated_mnist,
        drifting_mnist,
        folder,
    )
}


WORKER = "bayspike.experiments.worker"  # the module that a process for one job runs
TUNER = "bayspike.experiments.tuner"  # and one for the trials of a method


def experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        offered = ", ".join(EXPERIMENTS)
        raise UserError(f"There is no experiment {name!r}: choose from {offered}.{hint(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]
