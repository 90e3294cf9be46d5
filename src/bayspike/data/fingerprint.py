"""A fingerprint of the data really used: all labels, and the contents of every part, or of samples spread over it."""

import hashlib

import numpy as np
import torch
from torch import Tensor

from bayspike.data.base import CoordinateSamples, Dataset, Samples, SpikeSamples, StaticSamples
from bayspike.data.delays import DelayedSamples

MOST_BYTES = 2**28  # of each part that are looked at; of a larger one, samples evenly spread over it
LOOKED_AT = 256  # samples of a kind that does not tell what it stores


def fingerprint(dataset: Dataset) -> str:
    """The same for the same data, and, but for an accident, another for others."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in (dataset.train, dataset.test, dataset.foreign):
        if part is None:
            hashed.update(b"none")
            continue
        values = contents(part)
        hashed.update(repr((len(part), part.time, part.inputs, tuple(values.shape), str(values.dtype))).encode())
        hashed.update(_bytes(part.labels))
        hashed.update(_bytes(values))
    return hashed.hexdigest()


def spread(count: int) -> Tensor:
    """Up to `LOOKED_AT` places from the first to the last, evenly."""
    return torch.from_numpy(
        np.unique(np.linspace(0, max(count - 1, 0), min(count, LOOKED_AT)).round().astype(np.int64))
    )


def contents(samples: Samples) -> Tensor:
    """What is stored of the samples, as much as is looked at; of kinds that do not tell, the spikes of a fixed draw."""
    if isinstance(samples, StaticSamples):
        return _thinned(samples.values)
    if isinstance(samples, CoordinateSamples):
        return _thinned(samples.coordinates)
    if isinstance(samples, SpikeSamples):
        return _thinned(samples.packed)
    if isinstance(samples, DelayedSamples):  # by how much is a matter of the configuration
        return _thinned(samples.recorded.packed)
    return samples.spikes(spread(len(samples)), torch.Generator().manual_seed(0))


def _thinned(values: Tensor) -> Tensor:
    every = -(-values.numel() * values.element_size() // MOST_BYTES)
    return values if every <= 1 else values[::every]


def _bytes(values: Tensor) -> bytes:
    return np.ascontiguousarray(values.cpu().numpy()).tobytes()
