"""Inputs seen at several ages: delay lines, as the axons of a chip have them.

A neuron that forgets within a few steps sees where something moves, but not from where it came: which way an arm turns
shows only beside what was there a moment ago. With delays d₁ … d_D every input stands D times, and

    channel (k, i) at time t  =  input i at time t − d_k

so that D ages of the picture arrive together, as planes of their own. What is kept of a recording is what the camera
said, once; the ages are made when spikes are asked for.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bayspike.data.base import SpikeSamples
from bayspike.data.items import Items
from bayspike.errors import require

LONGEST = 1000  # steps; a chip has some dozens
NOW = (0,)  # inputs as they are


class Silence(NamedTuple):
    """So many time bins without an event, one after the other."""

    bins: int


def check_delays(delays: Any) -> tuple[int, ...]:
    """Delays that can be used, or a sentence why not; a single number stands for itself."""
    given = tuple(delays) if isinstance(delays, list | tuple) else (delays,)
    sound = all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each <= LONGEST for each in given)
    require(
        sound and len(given) > 0 and list(given) == sorted(set(given)),
        f"delays must be whole numbers of steps from 0 to {LONGEST}, each once and in order, as in [0,5,10], "
        f"but are {list(given)}.",
    )
    return given


def delayed(spikes: Tensor, delays: Sequence[int], lead: int = 0) -> Tensor:
    """Spikes `(time, …, inputs)` at every age, `(time − lead, …, ages · inputs)`; the first `lead` steps are past only.

    Nothing had happened before the first step.
    """
    time = len(spikes) - lead
    ages = []
    for delay in delays:
        first = max(0, lead - delay)  # of the steps seen at this age
        seen = spikes[first : len(spikes) - delay] if delay < len(spikes) else spikes[:0]
        before = spikes.new_zeros(time - len(seen), *spikes.shape[1:])
        ages.append(torch.cat([before, seen]) if len(before) else seen)
    return torch.cat(ages, dim=-1)


def undelayed(spikes: Tensor, delays: Sequence[int]) -> Tensor:
    """What was recorded, as far as it shows at some age: the spikes of which `delayed` makes those given.

    `(time, …, ages · inputs)` to `(longest + time, …, inputs)`, of which the first `longest` steps, as many as the
    longest delay, are past only.
    """
    time, longest = len(spikes), max(delays)
    ages = spikes.unflatten(-1, (len(delays), -1)).unbind(-2)
    recorded = spikes.new_zeros(longest + time, *ages[0].shape[1:])
    for delay, seen in zip(delays, ages, strict=True):
        then = recorded[longest - delay : longest - delay + time]
        torch.maximum(then, seen, out=then)
    return recorded


@dataclass(frozen=True, eq=False)
class DelayedSamples(Items):
    """Recordings seen at several ages. The first `lead` steps of each are its past: they show through delays alone."""

    recorded: SpikeSamples
    delays: tuple[int, ...]
    lead: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delays", check_delays(self.delays))
        require(
            0 <= self.lead < self.recorded.time,
            f"lead must leave some of the {self.recorded.time} steps, but is {self.lead}.",
        )

    def __len__(self) -> int:
        return len(self.recorded)

    @property
    def labels(self) -> Tensor:
        return self.recorded.labels

    @property
    def time(self) -> int:
        return self.recorded.time - self.lead

    @property
    def inputs(self) -> int:
        return self.recorded.inputs * len(self.delays)

    @property
    def bytes_per_sample(self) -> int:
        return self.recorded.bytes_per_sample

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        return delayed(self.recorded.spikes(indices, generator), self.delays, self.lead)

    def subset(self, indices: Tensor) -> "DelayedSamples":
        return DelayedSamples(self.recorded.subset(indices), self.delays, self.lead)

    def _join(self, parts: Sequence["DelayedSamples"]) -> "DelayedSamples":
        require(
            len({(part.delays, part.lead) for part in parts}) == 1, "Only samples with the same delays can be merged."
        )
        return DelayedSamples(self.recorded._join([part.recorded for part in parts]), self.delays, self.lead)


def at_ages(samples: SpikeSamples, delays: Sequence[int], lead: int = 0) -> SpikeSamples | DelayedSamples:
    """The samples as a network with these delays sees them."""
    return samples if tuple(delays) == NOW and lead == 0 else DelayedSamples(samples, tuple(delays), lead)


def delays_of(view: Mapping[str, Any]) -> tuple[int, ...]:
    """Those of a data set's view: at which ages a network was taught to see its inputs. Files may say anything."""
    return check_delays(view.get("delays", NOW))


def shape_now(shape: Sequence[int], view: Mapping[str, Any]) -> tuple[int, ...]:
    """Of what the camera shows at one moment: the planes of one age, which come first among a sample's inputs."""
    ages = len(delays_of(view))
    return tuple(shape) if ages == 1 else (shape[0] // ages, *shape[1:])


def delayed_bins(bins: Iterable[Tensor | Silence], delays: Sequence[int]) -> Iterator[Tensor | Silence]:
    """A stream of bins `(inputs,)` at every age, as `delayed` would have it of the whole, in bounded memory.

    A silence lets the past go by first; only what is silent at every age is passed on as silence.
    """
    if tuple(delays) == NOW:
        yield from bins
        return
    longest = max(delays)
    past: deque[Tensor | None] = deque(maxlen=longest + 1)  # the newest last; None: silent
    empty: Tensor | None = None

    def ages() -> Tensor:
        assert empty is not None
        seen = [past[-1 - delay] if delay < len(past) else None for delay in delays]
        return torch.cat([empty if each is None else each for each in seen])

    for each in bins:
        if not isinstance(each, Silence):
            empty = torch.zeros_like(each) if empty is None else empty
            past.append(each)
            yield ages()
            continue
        left = each.bins
        while left and any(spikes is not None for spikes in list(past)[-longest:]):
            past.append(None)
            left -= 1
            yield ages()
        if left:
            past.clear()
            yield Silence(left)
