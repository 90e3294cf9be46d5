"""A digest of what is in a data set: enough to notice other data under the same name."""

import hashlib
from typing import Any

import torch
from torch import Tensor

from bayspike.data.base import CoordinateSamples, Dataset, Samples, SpikeSamples, StaticSamples

SAMPLES = "samples"  # the digest's place among the facts about a data set
MOST_BYTES = 2**28  # of each part that are looked at; of a larger one, evenly spread samples
LOOKED_AT = 64  # samples of a kind that is not known here, by the spikes they give


def fingerprint(dataset: Dataset) -> str:
    """A digest of inputs and labels of all parts."""
    hashed = hashlib.blake2b(digest_size=16)
    for samples in (dataset.train, dataset.test, dataset.foreign):
        if samples is None:
            hashed.update(b"none")
            continue
        values = stored_values(samples)
        hashed.update(repr((tuple(values.shape), str(values.dtype), len(samples))).encode())
        hashed.update(_bytes(samples.labels))
        hashed.update(_bytes(spread_rows(values)))
    return hashed.hexdigest()


def stored_values(samples: Samples) -> Tensor:
    """What the samples are made of, one row each; of a foreign kind, spikes of a few of them."""
    known: Any = samples
    if isinstance(samples, StaticSamples):
        return known.values  # type: ignore[no-any-return]
    if isinstance(samples, CoordinateSamples):
        return known.coordinates  # type: ignore[no-any-return]
    if isinstance(samples, SpikeSamples):
        return known.packed  # type: ignore[no-any-return]
    chosen = torch.linspace(0, len(samples) - 1, min(LOOKED_AT, len(samples))).long()
    return samples.spikes(chosen, torch.Generator().manual_seed(0)).transpose(0, 1)


def spread_rows(values: Tensor) -> Tensor:
    """All rows, or as many evenly spread ones as are looked at."""
    size = values.numel() * values.element_size()
    every = -(-size // MOST_BYTES)
    return values if every <= 1 else values[::every]


def _bytes(values: Tensor) -> bytes:
    return values.contiguous().cpu().numpy().tobytes()
