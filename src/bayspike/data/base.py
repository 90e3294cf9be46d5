"""What an experiment sees of any data set: a `Dataset` of training and test samples, and ways to make one.

The kinds of samples are in `samples`; `Dataset.from_arrays` and `Dataset.from_torch` take arrays and torch's data sets.
"""

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from bayspike.data import arrays, lazy
from bayspike.data.samples import CoordinateSamples, Encoder, Samples, SpikeSamples, StaticSamples, merge
from bayspike.errors import UserError, require

__all__ = [
    "CoordinateSamples",
    "Dataset",
    "Encoder",
    "Samples",
    "SpikeSamples",
    "StaticSamples",
    "merge",
    "stratified_split",
    "whole",
]


@dataclass(frozen=True)
class Dataset:
    """A named data set with its split; `foreign` holds out-of-distribution test inputs where it has them.

    `foreign_about` says what they are; `foreign_classes`, whether they are of the same classes, seen otherwise. `view`
    says in plain values how a file becomes spikes, where single files are to be read later as these were. `about` says
    in words what the data really are, which part of a larger set for instance. `held_back` are examples that are not
    learnt from but kept for calibration.
    """

    name: str
    train: Samples
    test: Samples
    classes: tuple[str, ...]
    sample_shape: tuple[int, ...]
    simulated: bool = False
    foreign: Samples | None = None
    foreign_about: str = ""
    foreign_classes: bool = False
    view: Mapping[str, Any] = field(default_factory=dict, compare=False)
    about: str = ""
    held_back: Samples | None = None

    def __post_init__(self) -> None:
        coded = isinstance(self.train, CoordinateSamples)  # the shape is then that of a point, not of its code
        require(
            coded or math.prod(self.sample_shape) == self.train.inputs,
            f"sample_shape {self.sample_shape} holds {math.prod(self.sample_shape)} values, but a sample has "
            f"{self.train.inputs} inputs.",
        )
        for part, samples in (("training", self.train), ("test", self.test)):
            require(
                samples.inputs == self.train.inputs,
                f"the {part} samples have {samples.inputs} inputs, but the training samples {self.train.inputs}.",
            )
            highest = int(samples.labels.max()) if len(samples) else 0
            require(
                highest < len(self.classes),
                f"a {part} sample has the label {highest}, but there are {len(self.classes)} names of classes.",
            )

    @classmethod
    def from_arrays(
        cls,
        x: Any,
        y: Any,
        *,
        time: int | None = None,
        test: Sequence[Any] | float = 0.2,
        classes: Sequence[str] | None = None,
        sample_shape: Sequence[int] | None = None,
        inputs: int | None = None,
        encoder: Encoder = "rate",
        kind: Literal["pictures", "trains"] | None = None,
        name: str = "own",
        seed: int = 0,
    ) -> "Dataset":
        """A data set from arrays of numpy or torch.

        Pictures `(n, h, w)`, `(n, 1, h, w)` or features `(n, features)`, bytes or floats in [0, 1], are shown for
        `time` steps. Spike trains `(n, time, inputs)` of 0 and 1 bring their own time: leave `time` out (or give the
        very same); packed eight to a byte they need `inputs`. Labels are whole numbers, or words, in the order of
        `classes`.

        test: arrays of the test part, `(x, y)`; or a share (a number) of every class, drawn by `seed`.
        kind: says what `x` is where the rule above would be wrong.
        """
        pairs: list[Sequence[Any]] = [(x, y)]
        if isinstance(test, tuple | list):
            pairs.append(test)
        require(
            len(pairs[-1]) == 2 and isinstance(test, tuple | list | Real),
            "test must be (x, y), a share of every class, or a number of it.",
        )
        labels, names = arrays.number_classes([pair[1] for pair in pairs], classes)
        blocks = [arrays.as_array(pair[0], "x") for pair in pairs]
        trains = arrays.is_trains(blocks[0], time) if kind is None else kind == "trains"
        parts: list[Samples] = []
        natural: tuple[int, ...] = ()
        for block, numbers in zip(blocks, labels, strict=True):
            require(
                len(block) == len(numbers),
                f"x has {len(block)} samples, but y has {len(numbers)} labels: one for each.",
            )
            if trains:
                packed, count, shape = arrays.as_bits(block, inputs)
                parts.append(SpikeSamples(packed, numbers, int(packed.shape[1]), count))
            else:
                require(time is not None, "pictures need time=…, the number of time-steps for which each is shown.")
                assert time is not None
                values, shape = arrays.as_bytes(block)
                parts.append(StaticSamples(values, numbers, whole("time", time), encoder))
            require(
                natural in ((), shape), f"training samples have the shape {natural}, but test samples have {shape}."
            )
            natural = shape
        if isinstance(test, Real):
            parts = _split(parts[0], float(test), seed)
        return cls(name, parts[0], parts[1], names, arrays.fitting_shape(parts[0].inputs, natural, sample_shape))

    @classmethod
    def from_torch(
        cls,
        dataset: Any,
        *,
        test: Any = 0.2,
        time: int | None = None,
        span: int | None = None,
        sensor_size: Sequence[int] | None = None,
        downsample: int = 1,
        encoder: Encoder = "rate",
        clip: bool = False,
        kind: Literal["pictures", "trains"] | None = None,
        classes: Sequence[str] | None = None,
        memory: int = lazy.MEMORY,
        name: str | None = None,
        seed: int = 0,
    ) -> "Dataset":
        """A data set from a map-style one of torch, torchvision or tonic, whose items `(x, label)` are read if wanted.

        Pictures are shown for `time` steps. Frames and spike trains bring their time; counts become 0 and 1 with
        `clip`. Events with the fields t, x, y and p are put into `time` steps over `span` µs (by default as long as
        the longest) of a camera of `sensor_size`, `downsample` pixels a side becoming one. Up to `memory` bytes are
        kept.

        test: another such data set, or a share of every class, drawn by `seed`.
        """
        how = lazy.Reading(time, span, sensor_size, downsample, encoder, clip, kind, memory)
        share = test if isinstance(test, int | float) else None
        sources = [dataset] if share is not None else [dataset, test]
        for source in sources:
            lazy.check_map_style(source)
        named = getattr(dataset, "classes", None) if classes is None else classes
        named = [str(each) for each in named] if isinstance(named, list | tuple) else None
        labels, names = arrays.number_classes([lazy.labels_of(source) for source in sources], named)
        form = lazy.form_of(dataset, how)
        parts: list[Samples] = [
            lazy.LazySamples(
                source, torch.arange(len(numbers)), numbers, form.time, form.inputs, form.convert, form.encoder, kept
            )
            for source, numbers, kept in zip(
                sources, labels, [lazy.Kept(memory // len(sources)) for _ in sources], strict=True
            )
        ]
        if share is not None:
            parts = _split(parts[0], share, seed)
        return cls(name or type(dataset).__name__.lower(), parts[0], parts[1], names, form.shape)


def whole(name: str, value: Any) -> int:
    """A whole number, of Python's or numpy's kind; floats are refused."""
    try:
        return int(operator.index(value))
    except TypeError as error:
        raise UserError(f"{name} must be a whole number, but is {value!r}.") from error


def _split(samples: Samples, share: float, seed: int) -> list[Samples]:
    require(share > 0, f"test is a share or a number of samples of every class and must be above 0, but is {share}.")
    train, test = stratified_split(samples.labels, share, whole("seed", seed))
    return [samples.subset(train), samples.subset(test)]


def stratified_split(labels: Tensor, per_class_test: int | float, seed: int) -> tuple[Tensor, Tensor]:
    """Indices of a train and a test part with the same share of every class, fixed by `seed`.

    `per_class_test` is a number of samples per class, or a fraction of each class below one.
    """
    generator = torch.Generator().manual_seed(seed)
    train, test = [], []
    for label in np.unique(labels.numpy()):
        members = torch.nonzero(labels == int(label)).flatten()
        members = members[torch.randperm(len(members), generator=generator)]
        count = int(per_class_test) if per_class_test >= 1 else max(1, round(len(members) * per_class_test))
        require(
            0 < count < len(members),
            f"Class {label} has {len(members)} samples: {count} for the test part leave none to train on.",
        )
        test.append(members[:count])
        train.append(members[count:])
    return torch.cat(train).sort().values, torch.cat(test).sort().values
