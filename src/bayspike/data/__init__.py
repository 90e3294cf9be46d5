"""Data sets, encoders and event-camera files.

`load(name)` gives a `Dataset`; `bayspike.data.catalogue` says which ones are at hand and how to get the others.
"""

from bayspike.data.base import CoordinateSamples, Dataset, Samples, SpikeSamples, StaticSamples, merge
from bayspike.data.catalogue import load

__all__ = ["CoordinateSamples", "Dataset", "Samples", "SpikeSamples", "StaticSamples", "load", "merge"]
