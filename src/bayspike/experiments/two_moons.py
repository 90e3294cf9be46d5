"""Two-moons (paper, Sec. "Two-moons dataset", Fig. twomoons_exp): what the temperature ρ does to confidence.

Offline learning with two layers of 256 neurons, T = 100, 100 epochs, mini-batches of 64; real-valued and binary
synapses, several ρ, the frequentist beside them. The trained networks are asked about every point of the plane.
"""

from typing import Any

from bayspike.data.base import CoordinateSamples, Dataset
from bayspike.data.sets.two_moons import grid
from bayspike.predict.predictors import Predictor, predict_samples
from bayspike.runs.plan.experiment import Experiment, Preset, offline
from bayspike.seeds import generator_for

GRID_SIDE = 40
MAPPED = ("committee", "mean", "point")  # predictors whose answers are mapped

# Hyper-parameters that differ from the rules' own defaults, by method; a list makes one learner of each. Edit here.
TUNED: dict[str, dict[str, Any]] = {
    "sgd": {"lr": 0.1},
    "bayes": {"lr": 300.0, "prior_precision": 300.0, "init_scale": 1.0, "temperature": [1e-9, 1e-6, 3e-5]},
    "ste": {
        "lr": 0.1,
        "network.threshold": 1.0,
    },  # the paper's root of the fan-in leaves 20 inputs too weak to be heard
    "bayes-binary": {"lr": 1.0, "temperature": [1e-6, 1e-3, 1e-2], "network.threshold": 1.0},
}

_METHODS = ("sgd", "bayes", "ste", "bayes-binary")
_OFFLINE = {"replay": "none", "coreset_share": 0.0}


def plane(name: str, predictor: Predictor, dataset: Dataset, seed: int) -> dict[str, Any]:
    """Probabilities over the plane, and the training points."""
    if name not in MAPPED:
        return {}
    assert isinstance(dataset.train, CoordinateSamples)
    points = grid(GRID_SIDE, time=dataset.test.time)
    done = predict_samples(predictor, points, generator_for(seed, "grid"), over_time=False, keep_members="none")
    across = points.coordinates.reshape(GRID_SIDE, GRID_SIDE, 2)
    return {
        f"grid/{name}": done.probabilities[-1].reshape(GRID_SIDE, GRID_SIDE, -1).numpy(),
        "grid_x": across[0, :, 0].numpy(),
        "grid_y": across[:, 0, 1].numpy(),
        "points": dataset.train.coordinates.numpy(),
        "point_labels": dataset.train.labels.numpy(),
    }


EXPERIMENT = Experiment(
    name="two-moons",
    title="Two-moons: confidence over the plane",
    dataset="two_moons",
    stream=offline,
    tuned=TUNED,
    presets={
        "demo": Preset(
            _METHODS,
            seeds=1,
            network={"hidden": (256, 256)},
            training={"epochs": 10, "evaluations": 2, **_OFFLINE},
            data={"time": 50},
        ),
        "laptop": Preset(
            _METHODS, seeds=1, network={"hidden": (256, 256)}, training={"epochs": 50, "evaluations": 5, **_OFFLINE}
        ),
        "paper": Preset(
            _METHODS,
            seeds=3,
            network={"hidden": (256, 256)},
            training={"epochs": 100, "evaluations": 10, **_OFFLINE},
            data={"time": 100},
        ),
    },
    figures=("confidence_maps", "reliability", "over_time", "risk_coverage", "mean_parameters"),
    extras=plane,
    published_note="The paper shows two-moons as a figure only.",
)
