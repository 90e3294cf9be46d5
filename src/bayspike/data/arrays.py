"""Arrays of one's own, numpy's or torch's, in the forms that samples keep: labels, bytes of pictures, bits of trains.

What can be taken without a guess is taken; everything else is refused with a sentence that says what to write instead.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.data.encoders import pack
from bayspike.errors import UserError, require

_ROWS = 1024  # samples that are converted at a time: bounds what is held in floating point
_SHOWN = 5  # names that a sentence lists


def as_array(value: Any, what: str) -> NDArray[Any]:
    """A numpy array of numbers (or words) from an array, a tensor or a list."""
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        return np.asarray((value.float() if value.is_floating_point() else value).numpy())
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of unequal length
        raise UserError(f"{what} is not one array, since its rows differ in shape: make all samples alike.") from error
    if array.dtype == object and all(isinstance(each, str) for each in array.flat):
        array = array.astype(str)
    require(array.dtype.kind in "buifUS", f"{what} must be an array of numbers, but is of type {array.dtype}.")
    return array


def as_labels(value: Any) -> Tensor:
    """Labels `(samples,)` as int64, from whole numbers of any width."""
    if isinstance(value, Tensor) and value.dtype == torch.int64:
        return value
    array = as_array(value, "labels")
    require(
        array.dtype.kind in "bui",
        f"labels must be whole numbers from 0 on, but are of type {array.dtype}; words go to Dataset.from_arrays.",
    )
    require(not array.size or int(array.max()) < 2**63, "labels must be whole numbers from 0 on that fit in 63 bits.")
    return torch.from_numpy(array.astype(np.int64))


def number_classes(parts: Sequence[Any], classes: Sequence[str] | None) -> tuple[list[Tensor], tuple[str, ...]]:
    """The labels of every part as numbers, and the names of the classes.

    Words are numbered in the order of `classes`, or of the alphabet; whole numbers stay, and must leave no gaps
    where no `classes` name them.
    """
    arrays = [as_array(part, "labels") for part in parts]
    for array in arrays:
        require(array.ndim == 1, f"labels must have the shape (samples,), but have {array.shape}.")
    words = {array.dtype.kind in "US" for array in arrays if array.size}
    require(len(words) <= 1, "labels of the training and of the test part must both be words, or both be numbers.")
    if classes is not None:
        require(
            len(set(classes)) == len(classes) and all(isinstance(name, str) for name in classes),
            f"classes must be different words, but are {_listed(classes)}.",
        )
    if words == {True}:
        return _number_words([_text(array) for array in arrays], classes)
    return _check_numbers([as_labels(array) for array in arrays], classes)


def _text(array: NDArray[Any]) -> NDArray[Any]:
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _number_words(arrays: list[NDArray[Any]], classes: Sequence[str] | None) -> tuple[list[Tensor], tuple[str, ...]]:
    found = sorted({str(word) for array in arrays for word in np.unique(array)})
    names = tuple(found if classes is None else classes)
    unknown = [word for word in found if word not in names]
    if unknown:
        raise UserError(f"the label {unknown[0]!r} is not among the classes {_listed(names)}.")
    place = {name: number for number, name in enumerate(names)}
    return [torch.tensor([place[str(word)] for word in array], dtype=torch.int64) for array in arrays], names


def _check_numbers(labels: list[Tensor], classes: Sequence[str] | None) -> tuple[list[Tensor], tuple[str, ...]]:
    present = torch.cat(labels).unique()
    require(len(present) > 0, "there are no labels: give at least one sample of every class.")
    low, high = int(present[0]), int(present[-1])
    require(low >= 0, f"labels must be whole numbers from 0 on, but the smallest is {low}.")
    if classes is not None:
        require(
            high < len(classes),
            f"there are {len(classes)} names of classes, {_listed(classes)}, but the largest label is {high}: "
            f"name the classes 0 to {high}.",
        )
        return labels, tuple(classes)
    gaps = len(present) != high + 1
    if gaps:
        missing = int((present != torch.arange(len(present))).nonzero()[0])
        raise UserError(
            f"no sample has the label {missing}, but some have {high}: number the classes 0, 1, 2, … without gaps, "
            "give classes=…, or pass the labels as words (y.astype(str))."
        )
    return labels, tuple(str(number) for number in range(high + 1))


def is_trains(x: NDArray[Any], time: int | None) -> bool:
    """Whether an array is taken for spike trains: no `time` is given for it, or it has as many steps of 0 and 1."""
    return time is None or (x.ndim >= 3 and x.shape[1] == time and _only_zeros_and_ones(x))


def as_bytes(x: NDArray[Any], *, single: bool = False) -> tuple[Tensor, tuple[int, ...]]:
    """Pictures or features `(samples, inputs)` as bytes, and the shape of one; a `single` one may well be black."""
    if x.ndim == 4:
        require(
            x.shape[1] == 1,
            f"pictures must have one channel, but x has the shape {x.shape}: make them grey, as by x.mean(axis=1).",
        )
        x = x[:, 0]
    require(
        x.ndim in (2, 3),
        f"x has the shape {x.shape}, but pictures have (samples, height, width) and features (samples, features).",
    )
    require(x.size > 0, f"x has the shape {x.shape}: there is nothing in it.")
    _check_values(x, single)
    values = np.empty((len(x), math.prod(x.shape[1:])), dtype=np.uint8)
    for at in range(0, len(x), _ROWS):
        rows = x[at : at + _ROWS].reshape(-1, values.shape[1])
        whole = rows.dtype.kind in "ui"
        values[at : at + _ROWS] = rows if whole else np.rint(255 * rows.astype(np.float32))
    return torch.from_numpy(values), tuple(int(side) for side in x.shape[1:])


def _check_values(x: NDArray[Any], single: bool) -> None:
    require(x.dtype.kind in "buif", f"x must be an array of numbers, but is of type {x.dtype}.")
    low, high = float(x.min()), float(x.max())
    if x.dtype.kind == "f":
        require(math.isfinite(low) and math.isfinite(high), "x holds values that are not finite numbers.")
        require(
            low >= 0 and high <= 1,
            f"pictures of floating point must lie in [0, 1], but x reaches from {low:g} to {high:g}: scale it, as by "
            "(x - low) / (high - low) with the same low and high for training and test.",
        )
    elif x.dtype.kind in "ui":
        require(
            low >= 0 and high <= 255,
            f"pictures of whole numbers must lie in [0, 255], but x reaches from {low:g} to {high:g}: scale it.",
        )
        require(
            single or high > 1,
            "x holds nothing but 0 and 1, which as bytes are next to black: give pictures as x.astype(bool), "
            "and spike trains (samples, time, inputs) without time.",
        )


def as_bits(x: NDArray[Any], inputs: int | None) -> tuple[Tensor, int, tuple[int, ...]]:
    """Spike trains as bits `(samples, time, bytes)`, the number of inputs, and the shape of one step.

    Trains are `(samples, time, inputs)` or have further axes for the inputs, such as polarity, height and width.
    With `inputs` they may be packed, eight to a byte, as `bayspike.data.encoders.pack` does it.
    """
    require(
        x.ndim >= 3,
        f"x has the shape {x.shape}, but spike trains have (samples, time, inputs); pictures need time=…, the number "
        "of time-steps for which each is shown.",
    )
    require(x.size > 0, f"x has the shape {x.shape}: there is nothing in it.")
    if inputs is not None and x.ndim == 3 and x.shape[2] != inputs:
        require(
            x.dtype == np.uint8 and x.shape[2] == -(-inputs // 8),
            f"x has {x.shape[2]} columns of {x.dtype}, but {inputs} inputs have {inputs} columns, or {-(-inputs // 8)} "
            "of uint8 when packed.",
        )
        return torch.from_numpy(np.ascontiguousarray(x)), inputs, (inputs,)
    shape = tuple(int(side) for side in x.shape[2:])
    count = math.prod(shape)
    require(inputs in (None, count), f"x has {count} inputs at each step, but inputs is {inputs}.")
    if not _only_zeros_and_ones(x):
        low, high = float(x.min()), float(x.max())
        raise UserError(
            f"x reaches from {low:g} to {high:g}, but a spike train holds 0 and 1: cut counts down by (x > 0), or use "
            "shorter time-steps; pictures need time=…, the number of time-steps for which each is shown."
        )
    packed = np.empty((len(x), x.shape[1], -(-count // 8)), dtype=np.uint8)
    for at in range(0, len(x), _ROWS):
        rows = x[at : at + _ROWS]
        packed[at : at + _ROWS] = pack(rows.reshape(len(rows), x.shape[1], count).astype(np.uint8))
    return torch.from_numpy(packed), count, shape


def fitting_shape(inputs: int, natural: tuple[int, ...], asked: Sequence[int] | None) -> tuple[int, ...]:
    """The shape asked for, if it holds as many numbers as there are inputs; else the natural one."""
    if asked is None:
        return natural
    shape = tuple(int(side) for side in asked)
    require(
        math.prod(shape) == inputs and all(side > 0 for side in shape),
        f"sample_shape {shape} holds {math.prod(shape)} values, but a sample has {inputs} inputs.",
    )
    return shape


def _only_zeros_and_ones(x: NDArray[Any]) -> bool:
    if x.dtype == np.bool_:
        return True
    parts = (x[at : at + _ROWS] for at in range(0, len(x), _ROWS))
    return all(bool(((part == 0) | (part == 1)).all()) for part in parts)


def _listed(names: Sequence[Any]) -> str:
    shown = ", ".join(str(name) for name in names[:_SHOWN])
    return f"{shown}, …" if len(names) > _SHOWN else shown
