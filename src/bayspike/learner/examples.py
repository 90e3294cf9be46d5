"""What people hand over, as samples with the learner's own labels; and samples that stand on their own.

A label is a word, or a whole number. A number is the place of a class in the names that come with the data; where none
come it is a name itself, unless all classes of the learner are words: then it is a place among these.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bayspike.continual.tasks import Concatenated, Task
from bayspike.data.base import CoordinateSamples, Dataset, Samples, SpikeSamples, StaticSamples, merge
from bayspike.data.encoders import pack
from bayspike.errors import require
from bayspike.learner.encoding import Encoding, as_array

Plain = StaticSamples | CoordinateSamples | SpikeSamples
LONGEST_NAME = 200


class Given(NamedTuple):
    """Samples, and the word for each of them."""

    samples: Samples
    words: tuple[str, ...]
    name: str  # of the task


def read_task(
    encoding: Encoding,
    classes: Sequence[str],
    task: Any,
    labels: Any,
    names: Sequence[str] | None,
    same_time: bool = True,
) -> Given:
    """A `Task` or `Dataset` (their training parts), `Samples`, arrays with labels, or a pair of both.

    Examples to be judged may last longer than those to be learnt: without `same_time` they are let through.
    """
    if labels is None and isinstance(task, tuple) and len(task) == 2:
        task, labels = task
    title = getattr(task, "name", "") if isinstance(task, Task | Dataset) else ""
    if isinstance(task, Dataset):
        names = task.classes if names is None else names
    samples = task.train if isinstance(task, Task | Dataset) else task
    if not isinstance(samples, Samples):
        require(labels is not None, "give a task, a data set, samples, or examples with their labels.")
        words = _words(as_labels(labels), classes, names)
        samples = encoding.samples(samples, torch.zeros(len(words), dtype=torch.int64))
    else:
        words = _words(samples.labels if labels is None else as_labels(labels), classes, names)
    require(len(samples) > 0, "there is no example in what was given.")
    require(len(words) == len(samples), f"there are {len(samples)} examples but {len(words)} labels.")
    _check_fit(encoding, samples, samples.time if same_time else encoding.time)
    return Given(samples, words, title or "{" + ",".join(dict.fromkeys(sorted(words))) + "}")


def read_inputs(encoding: Encoding, x: Any) -> Samples:
    """Examples to be judged: samples, the test part of a data set or task, or an array."""
    samples = x.test if isinstance(x, Task | Dataset) else x
    if not isinstance(samples, Samples):
        samples = encoding.samples(samples, torch.zeros(len(as_array(samples)), dtype=torch.int64))
    require(
        samples.inputs == encoding.inputs,
        f"the examples have {samples.inputs} inputs, but the learner takes {encoding.inputs}.",
    )
    return samples


def as_labels(labels: Any) -> Any:
    return labels if isinstance(labels, Tensor) else np.atleast_1d(np.asarray(labels))


def _words(labels: Any, classes: Sequence[str], names: Sequence[str] | None) -> tuple[str, ...]:
    found = labels.numpy(force=True) if isinstance(labels, Tensor) else labels
    require(found.ndim == 1, f"labels must be one row, one for each example, but have the shape {found.shape}.")
    if found.dtype.kind in "iub":
        numbers = [int(each) for each in found]
        require(min(numbers, default=0) >= 0, f"labels must not be negative, but one is {min(numbers, default=0)}.")
        by_number = {number: word_of(number, classes, names) for number in dict.fromkeys(numbers)}
        return tuple(by_number[number] for number in numbers)
    words = found.tolist()
    require(
        all(isinstance(word, str) for word in words),
        f"labels must be words or whole numbers, but are of type {found.dtype}.",
    )
    for word in dict.fromkeys(words):
        check_name(word)
    return tuple(words)


def word_of(number: int, classes: Sequence[str], names: Sequence[str] | None = None) -> str:
    """The word for a class given as a number."""
    if names is None and (not classes or any(each.isdecimal() for each in classes)):
        return str(number)
    known = classes if names is None else names
    require(
        number < len(known),
        f"the label {number} has no name: there are {len(known)}, {', '.join(known[:10])}; give words, or names=.",
    )
    return known[number]


def check_name(word: str) -> None:
    require(
        0 < len(word) <= LONGEST_NAME and word.isprintable(),
        f"the name of a class must be 1 to {LONGEST_NAME} printable characters, but is {word[:40]!r}.",
    )


def _check_fit(encoding: Encoding, samples: Samples, time: int) -> None:
    require(
        (time, samples.inputs) == (encoding.time, encoding.inputs),
        f"the examples have {samples.inputs} inputs over {samples.time} time-steps, but the learner takes "
        f"{encoding.inputs} over {encoding.time}.",
    )


@dataclass(frozen=True)
class Relabelled:
    """Samples of any kind under other labels."""

    samples: Samples
    labels: Tensor

    @property
    def time(self) -> int:
        return self.samples.time

    @property
    def inputs(self) -> int:
        return self.samples.inputs

    @property
    def bytes_per_sample(self) -> int:
        return self.samples.bytes_per_sample

    def __len__(self) -> int:
        return len(self.labels)

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        return self.samples.spikes(indices, generator)

    def subset(self, indices: Tensor) -> "Relabelled":
        return Relabelled(self.samples.subset(indices), self.labels[indices])


def relabelled(samples: Samples, labels: Tensor) -> Samples:
    if isinstance(samples, StaticSamples | CoordinateSamples | SpikeSamples):
        return dataclasses.replace(samples, labels=labels)
    return Relabelled(samples, labels)


def standing_alone(samples: Samples, generator: torch.Generator) -> Plain:
    """A copy that holds its own examples and nothing else, ready for a file.

    Samples of a kind that no file knows are kept as the spikes of one encoding.
    """
    if isinstance(samples, Relabelled):
        return dataclasses.replace(standing_alone(samples.samples, generator), labels=samples.labels.clone())
    if isinstance(samples, Concatenated):
        parts = [standing_alone(part, generator) for part in samples.parts]
        if len({type(part) for part in parts}) == 1:
            joined: Any = merge(parts)
            whole: Plain = joined if samples.order is None else joined.subset(samples.order)
            return whole
    everything = torch.arange(len(samples))
    if isinstance(samples, StaticSamples | CoordinateSamples | SpikeSamples):
        return samples.subset(everything)
    spikes = samples.spikes(everything, generator).transpose(0, 1).contiguous().numpy()
    return SpikeSamples(torch.from_numpy(pack(spikes)), samples.labels.clone(), samples.time, samples.inputs)


def appended(parts: tuple[Plain, ...], more: Plain) -> tuple[Plain, ...]:
    """Sets of examples with some more, joined to the last where they are of one kind."""
    if parts and _kind(parts[-1]) == _kind(more):
        joined: Any = merge([parts[-1], more])
        return (*parts[:-1], joined)
    return (*parts, more)


def _kind(samples: Plain) -> tuple[Any, ...]:
    return type(samples), samples.time, getattr(samples, "encoder", None), getattr(samples, "code", None)
