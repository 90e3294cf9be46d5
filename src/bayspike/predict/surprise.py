"""How surprising are the inputs by themselves? The control for foreign inputs that has no network at all.

Every input j is taken to fire with a rate r_j of its own, whatever the others do and whatever the time. With k_j spikes
in T steps, the surprise of an example is the mean over inputs and steps of its negative log-likelihood,

    surprise = −1/(T·J) · Σ_j [ k_j·log r_j + (T − k_j)·log(1 − r_j) ],        r_j = (½ + spikes of j) / (1 + steps),

with the rates of known examples (½ and 1 are Jeffreys' prior: no input is thought never to fire). It knows nothing of
classes and learns nothing but one number an input. A network that is said to notice foreign inputs has to notice them
better than this.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.data.base import Samples

CHUNK = 256  # examples at a time


class InputRates(NamedTuple):
    """Log-probabilities of a spike and of none at every input, `(inputs,)`."""

    spike: Tensor
    silence: Tensor

    @classmethod
    def of(cls, samples: Samples, generator: torch.Generator) -> "InputRates":
        counted = torch.zeros(samples.inputs, dtype=torch.float64)
        for indices in torch.arange(len(samples)).split(CHUNK):
            counted += samples.spikes(indices, generator).sum(dim=(0, 1)).double()
        rates = (counted + 0.5) / (len(samples) * samples.time + 1)
        return cls(rates.log(), (1 - rates).log())

    def surprise(self, samples: Samples, generator: torch.Generator) -> Tensor:
        """Of every example, `(examples,)`, in nats an input and step."""
        found = []
        for indices in torch.arange(len(samples)).split(CHUNK):
            share = samples.spikes(indices, generator).double().mean(dim=0)
            found.append(-(share @ self.spike + (1 - share) @ self.silence) / samples.inputs)
        return torch.cat(found) if found else torch.zeros(0, dtype=torch.float64)
