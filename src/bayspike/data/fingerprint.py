"""A fingerprint of the data really used: all labels, and the contents of samples spread over every part."""

import hashlib

import numpy as np
import torch
from torch import Tensor

from bayspike.data.base import CoordinateSamples, Dataset, Samples, SpikeSamples, StaticSamples

LOOKED_AT = 256  # samples of a part


def fingerprint(dataset: Dataset) -> str:
    """The same for the same data, and, but for an accident, another for others."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in (dataset.train, dataset.test, dataset.foreign):
        if part is None:
            hashed.update(b"none")
            continue
        hashed.update(repr((len(part), part.time, part.inputs)).encode())
        hashed.update(np.ascontiguousarray(part.labels.numpy()).tobytes())
        hashed.update(np.ascontiguousarray(contents(part, spread(len(part))).numpy()).tobytes())
    return hashed.hexdigest()


def spread(count: int) -> Tensor:
    """Up to `LOOKED_AT` places from the first to the last, evenly."""
    return torch.from_numpy(
        np.unique(np.linspace(0, max(count - 1, 0), min(count, LOOKED_AT)).round().astype(np.int64))
    )


def contents(samples: Samples, indices: Tensor) -> Tensor:
    """What is stored of some samples; of kinds that do not tell, the spikes of a fixed draw."""
    if isinstance(samples, StaticSamples):
        return samples.values[indices]
    if isinstance(samples, CoordinateSamples):
        return samples.coordinates[indices]
    if isinstance(samples, SpikeSamples):
        return samples.packed[indices]
    return samples.spikes(indices, torch.Generator().manual_seed(0))
