"""The experiments by the names of the command line."""

from bayspike.errors import UserError
from bayspike.experiments import digits, split_mnist
from bayspike.experiments.base import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    each.EXPERIMENT.name: each.EXPERIMENT for each in (digits, split_mnist)
}


def experiment(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise UserError(f"There is no experiment {name!r}: choose from {', '.join(EXPERIMENTS)}.")
    return EXPERIMENTS[name]
