"""Two-moons (paper, sec. Two-moons dataset): 200 points per class, noise 0.1, population code, T = 100.

The foreign inputs are the points of the plane that lie far from all training points: a model that is surer near the
data than far away tells them apart by its confidence.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from bayspike.data.base import CoordinateSamples, Dataset
from bayspike.data.encoders import PopulationCode
from bayspike.errors import require, require_range

TIME = 100
FAR = 0.5  # a moon's half width and noise are well within
MOST_POINTS, LARGEST_NOISE = 100_000, 1_000  # of a class; beyond, there is no room and no moon
CODE = PopulationCode(low=(-1.5, -1.0), high=(2.5, 1.5), neurons=10)


def load(
    *, root: Path | None = None, seed: int = 0, time: int = TIME, per_class: int = 200, noise: float = 0.1
) -> Dataset:
    """Two interleaved half circles; train and test are drawn apart. `root` is not used."""
    del root
    require_range("per_class", per_class, 1, MOST_POINTS)
    require_range("noise", noise, 0, LARGEST_NOISE)
    train, test = (_moons(per_class, noise, time, np.random.RandomState((2 * seed + part) % 2**32)) for part in (0, 1))
    plane = grid(time=time)
    far = torch.cdist(plane.coordinates, train.coordinates).amin(dim=1) > FAR
    about = f"points of the plane more than {FAR:g} from all training points"
    return Dataset(
        "two_moons",
        train,
        test,
        ("upper moon", "lower moon"),
        (2,),
        foreign=plane.subset(far.nonzero().flatten()),
        foreign_about=about,
    )


def grid(side: int = 50, *, time: int = TIME) -> CoordinateSamples:
    """The evaluation grid: `side * side` points over the coded range, row by row from below; label 0 throughout."""
    require(side >= 2, f"The grid needs at least 2 points a side, not {side}.")
    x, y = (torch.linspace(low, high, side) for low, high in zip(CODE.low, CODE.high, strict=True))
    rows, columns = torch.meshgrid(y, x, indexing="ij")
    points = torch.stack([columns.flatten(), rows.flatten()], 1)
    return CoordinateSamples(points, torch.zeros(side * side, dtype=torch.int64), time, CODE)


def _moons(per_class: int, noise: float, time: int, random: np.random.RandomState) -> CoordinateSamples:
    from sklearn.datasets import make_moons

    points, labels = make_moons(n_samples=2 * per_class, noise=noise, random_state=random)
    coordinates: Tensor = torch.from_numpy(points.astype(np.float32))
    return CoordinateSamples(coordinates, torch.from_numpy(labels.astype(np.int64)), time, CODE)
