"""What every measure asks of its arguments.

Probabilities are `(..., batch, classes)`: one prediction per example, or with leading dimensions such as
time. Labels are `(batch,)` integers. A measure reduces the batch and keeps the leading dimensions, so the
cumulative probabilities `(time, batch, classes)` of a predictor give the measure as a function of t.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from bayspike.errors import UserError, require

TOLERANCE = 1e-3  # of a row's sum: float32 softmax averages over time and members stay far below this


def as_tensor(values: Any, name: str) -> Tensor:
    """Tensors as they are; arrays of numpy, and lists, as tensors."""
    if isinstance(values, Tensor):
        return values
    try:
        return torch.from_numpy(np.array(values, order="C"))
    except (TypeError, ValueError) as error:  # words, or rows of unequal length
        raise UserError(f"{name} must be one array of numbers ({error}).") from error


def check_probabilities(probabilities: Tensor, name: str = "probabilities", *, least_dims: int = 2) -> Tensor:
    """The same values in float64, refused unless every row of the last dimension is a distribution."""
    probabilities = as_tensor(probabilities, name)
    require(
        probabilities.dim() >= least_dims and probabilities.shape[-1] >= 2,
        f"{name} must have shape (..., batch, classes) with at least two classes, "
        f"but has {tuple(probabilities.shape)}.",
    )
    require(probabilities.numel() > 0, f"{name} hold no example: shape {tuple(probabilities.shape)}.")
    require(
        probabilities.is_floating_point(),
        f"{name} must be floating point, but are {probabilities.dtype}; pass probabilities, not classes.",
    )
    exact = probabilities.detach().to(torch.float64)
    require(
        bool(torch.isfinite(exact).all()),
        f"{name} contain NaN or infinity; look for a diverged model before measuring it.",
    )
    require(
        bool((exact >= -TOLERANCE).all()) and bool(((exact.sum(-1) - 1).abs() <= TOLERANCE).all()),
        f"{name} are not normalised: each row must be non-negative and sum to 1; apply softmax to logits.",
    )
    return exact.clamp_min(0.0)


def check_labels(labels: Tensor, batch: int, classes: int, name: str = "labels") -> Tensor:
    """The labels as int64 `(batch,)`, refused if of another length or outside `0 .. classes - 1`."""
    labels = as_tensor(labels, name)
    require(
        labels.dim() == 1 and labels.shape[0] == batch,
        f"{name} must have shape ({batch},) to match the probabilities, but have {tuple(labels.shape)}.",
    )
    require(
        not labels.is_floating_point() and not labels.is_complex() and labels.dtype != torch.bool,
        f"{name} must be integers, but are {labels.dtype}.",
    )
    labels = labels.detach().to(torch.int64)
    low, high = int(labels.min()), int(labels.max())
    require(
        low >= 0 and high < classes,
        f"{name} must lie in 0..{classes - 1} for {classes} classes, but range over {low}..{high}.",
    )
    return labels


def check_pair(probabilities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and labels, each checked and fitting each other."""
    probabilities = check_probabilities(probabilities)
    return probabilities, check_labels(labels, probabilities.shape[-2], probabilities.shape[-1])


def check_scores(scores: Tensor, name: str) -> Tensor:
    """One score per example, `(..., examples)`, in float64 and finite."""
    scores = as_tensor(scores, name)
    require(
        scores.dim() >= 1 and scores.numel() > 0,
        f"{name} must hold at least one score per example, but have shape {tuple(scores.shape)}.",
    )
    scores = scores.detach().to(torch.float64)
    require(bool(torch.isfinite(scores).all()), f"{name} contain NaN or infinity.")
    return scores
