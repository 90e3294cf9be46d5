"""The fingerprint of a data set: the same for the same data, another for one changed pixel, spike, label or shape."""

from dataclasses import replace

import numpy as np
import torch

from bayspike.data.base import CoordinateSamples, Dataset
from bayspike.data.encoders import PopulationCode
from bayspike.data.fingerprint import fingerprint, spread

X = np.random.default_rng(0).integers(0, 256, (40, 4, 5), dtype=np.uint8)
Y = np.arange(40) % 4


def of(x=X, y=Y, **options) -> str:
    return fingerprint(Dataset.from_arrays(x, y, test=(x[:8], y[:8]), **{"time": 5, **options}))


def test_one_changed_number_is_seen():
    assert of() == of()
    pixel, label = X.copy(), Y.copy()
    pixel[17, 2, 3] ^= 1
    label[17] = (label[17] + 1) % 4
    assert len({of(), of(pixel), of(y=label), of(time=6), of(X[:, ::-1])}) == 5


def test_spikes_points_and_foreign_inputs_count():
    trains = (X > 99).astype(np.uint8)
    other = trains.copy()
    other[3, 1, 1] ^= 1
    assert of(trains, time=None) != of(other, time=None)
    code = PopulationCode((0.0,), (1.0,))
    points = [CoordinateSamples(torch.tensor([[0.1], [value]]), torch.tensor([0, 1]), 4, code) for value in (0.2, 0.3)]
    sets = [Dataset("points", each, each, ("a", "b"), (1,)) for each in points]
    assert fingerprint(sets[0]) != fingerprint(sets[1])
    assert fingerprint(replace(sets[0], foreign=points[1])) != fingerprint(sets[0])


def test_what_is_looked_at_is_spread_over_all():
    assert spread(3).tolist() == [0, 1, 2]
    places = spread(100_000)
    assert len(places) == 256
    assert (int(places[0]), int(places[-1])) == (0, 99_999)
    assert spread(0).tolist() in ([], [0])
