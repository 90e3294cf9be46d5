"""How surprising are the inputs by themselves? The control for foreign inputs that has no network at all.

Every input j is taken to fire with a rate r_j of its own, whatever the others do and whatever the time. With k_j spikes
in T steps, the surprise of an example is the mean over inputs and steps of its negative log-likelihood,

    surprise = −1/(T·J) · Σ_j [ k_j·log r_j + (T − k_j)·log(1 − r_j) ],        r_j = (½ + spikes of j) / (1 + steps),

with the rates of known examples (½ and 1 are Jeffreys' prior: no input is thought never to fire). It knows nothing of
classes and learns nothing but one number an input. A network that is said to notice foreign inputs has to notice them
better than this.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.data.base import Samples

AT_A_TIME = 2**26  # numbers of the spikes that are looked at together


class InputRates(NamedTuple):
    """Log-probabilities of a spike and of none at every input, `(inputs,)`."""

    spike: Tensor
    silence: Tensor

    @classmethod
    def of(cls, samples: Samples, generator: torch.Generator) -> "InputRates":
        counted = torch.zeros(samples.inputs, dtype=torch.float64)
        for counts in _counts(samples, generator):
            counted += counts.sum(dim=0)
        rates = (counted + 0.5) / (len(samples) * samples.time + 1)
        return cls(rates.log(), (1 - rates).log())

    def surprise(self, samples: Samples, generator: torch.Generator) -> Tensor:
        """Of every example, `(examples,)`, in nats an input and step."""
        found = [torch.zeros(0, dtype=torch.float64)]
        for counts in _counts(samples, generator):
            share = counts.double() / samples.time
            found.append(-(share @ self.spike + (1 - share) @ self.silence) / samples.inputs)
        return torch.cat(found)


def _counts(samples: Samples, generator: torch.Generator) -> Iterator[Tensor]:
    """How often each input fires in each example, `(examples, inputs)`, some examples at a time."""
    chunk = max(1, AT_A_TIME // (samples.time * samples.inputs))
    for indices in torch.arange(len(samples)).split(chunk):
        yield samples.spikes(indices, generator).sum(dim=0)
