"""Data sets, encoders and event-camera files.

In come files, arrays and other libraries' data sets; out go spikes `(time, batch, inputs)` of zeros and ones, drawn
from the caller's generator, with their labels. Nothing here knows networks.

`load(name)` gives a `Dataset`; `status()` says which are at hand, `get(name)` gets one, `show(name, out)`
draws it.
"""

from bayspike.data.base import CoordinateSamples, Dataset, Samples, SpikeSamples, StaticSamples, merge
from bayspike.data.catalogue import get, load, show, status

__all__ = [
    "CoordinateSamples",
    "Dataset",
    "Samples",
    "SpikeSamples",
    "StaticSamples",
    "get",
    "load",
    "merge",
    "show",
    "status",
]
