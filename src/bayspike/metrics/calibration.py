"""Reliability bins and calibration errors (paper, Sec. "Reliability diagrams" and eq. ece).

Bin m of M is the half-open interval ((m-1)/M, m/M], as the paper has it; confidence 0 belongs to the
first bin and 1 to the last, so every example is counted. The edges are rounded to the precision of the
probabilities before comparing: a float32 confidence that is the float32 of m/M lies in bin m, although
its exact value may be slightly above m/M.

All functions take `(..., batch, classes)` and keep the leading dimensions: cumulative probabilities
`(time, batch, classes)` give the measure for every t.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require
from bayspike.metrics.checks import as_tensor, check_pair, check_probabilities


class ReliabilityBins(NamedTuple):
    """What a reliability diagram draws; means of empty bins are NaN."""

    edges: Tensor  # (M + 1,)
    counts: Tensor  # (..., M)
    confidence: Tensor  # (..., M) mean confidence in the bin
    accuracy: Tensor  # (..., M) share of right decisions in the bin


def reliability_bins(probabilities: Tensor, labels: Tensor, bins: int = 10) -> ReliabilityBins:
    """Count, mean confidence and accuracy of the examples in each bin ((m-1)/M, m/M]."""
    dtype = as_tensor(probabilities, "probabilities").dtype
    probabilities, labels = check_pair(probabilities, labels)
    confidence, right = _decisions(probabilities, labels)
    count, confidences, rights = _sums(confidence, right, _equal_width_index(confidence, bins, dtype), bins)
    edges = torch.arange(bins + 1, dtype=torch.float64) / bins
    return ReliabilityBins(edges, count, confidences / count, rights / count)


def ece(probabilities: Tensor, labels: Tensor, bins: int = 10) -> Tensor:
    """Expected calibration error (eq. ece): sum over bins of |B_m|/|D| * |conf(B_m) - acc(B_m)|."""
    dtype = as_tensor(probabilities, "probabilities").dtype
    probabilities, labels = check_pair(probabilities, labels)
    confidence, right = _decisions(probabilities, labels)
    return _error(confidence, right, _equal_width_index(confidence, bins, dtype), bins)


def chance_ece(probabilities: Tensor, draws: int = 200, seed: int = 0, bins: int = 10) -> float:
    """The error that as many examples would show by chance if every confidence were exactly right: `(batch, classes)`.

    An ECE is never below zero, so few examples show one whatever the predictor; one near this value says no more than
    that nothing speaks against it.
    """
    exact = check_probabilities(probabilities, least_dims=2)
    require(exact.dim() == 2, f"chance_ece takes probabilities (batch, classes), not {tuple(exact.shape)}.")
    confidence = exact.amax(-1).cpu()
    generator = torch.Generator().manual_seed(seed)
    right = torch.rand(draws, len(confidence), generator=generator, dtype=confidence.dtype) < confidence
    index = _equal_width_index(confidence, bins, as_tensor(probabilities, "probabilities").dtype)
    values, index = (each.expand(draws, -1) for each in (confidence, index))
    return float(_error(values, right.to(confidence.dtype), index, bins).mean())


def adaptive_ece(probabilities: Tensor, labels: Tensor, bins: int = 10) -> Tensor:
    """The same with bins that hold equally many examples instead of being equally wide.

    Equal confidences always share a bin, so the order of the examples does not matter.
    """
    _check_bins(bins)
    probabilities, labels = check_pair(probabilities, labels)
    confidence, right = _decisions(probabilities, labels)
    n = confidence.shape[-1]
    last = -(-torch.arange(1, bins, device=confidence.device) * n // bins) - 1  # ceil(m n / M), from 0
    edges = confidence.sort(-1).values.index_select(-1, last)
    return _error(confidence, right, torch.searchsorted(edges, confidence), bins)


def classwise_ece(probabilities: Tensor, labels: Tensor, bins: int = 10) -> Tensor:
    """Mean over classes k of the error of p(c = k) as a statement about how often the label is k."""
    dtype = as_tensor(probabilities, "probabilities").dtype
    probabilities, labels = check_pair(probabilities, labels)
    by_class = probabilities.transpose(-1, -2).contiguous()  # (..., classes, batch)
    is_class = torch.nn.functional.one_hot(labels, probabilities.shape[-1]).double().T.expand(by_class.shape)
    return _error(by_class, is_class, _equal_width_index(by_class, bins, dtype), bins).mean(-1)


def confidence_histogram(probabilities: Tensor, bins: int = 10) -> tuple[Tensor, Tensor]:
    """Edges `(M + 1,)` and number of examples `(..., M)` with their confidence in each bin.

    For out-of-distribution data this is the paper's empirical confidence histogram; no labels needed.
    """
    dtype = as_tensor(probabilities, "probabilities").dtype
    confidence = check_probabilities(probabilities).amax(-1)
    index = _equal_width_index(confidence, bins, dtype)
    count, _, _ = _sums(confidence, torch.zeros_like(confidence), index, bins)
    return torch.arange(bins + 1, dtype=torch.float64) / bins, count


def _decisions(probabilities: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    confidence, decided = probabilities.max(-1)
    return confidence.contiguous(), (decided == labels).double()


def _check_bins(bins: int) -> None:
    require(isinstance(bins, int) and bins >= 1, f"bins must be a whole number of at least 1, but is {bins!r}.")


def _equal_width_index(values: Tensor, bins: int, dtype: torch.dtype) -> Tensor:
    _check_bins(bins)
    edges = torch.arange(1, bins, dtype=torch.float64, device=values.device) / bins
    # right=False means edge < value <= next edge; only inner edges are given, so 0 and 1 find a bin too.
    return torch.bucketize(values, edges.to(dtype).to(torch.float64), right=False)


def _sums(values: Tensor, hits: Tensor, index: Tensor, bins: int) -> tuple[Tensor, Tensor, Tensor]:
    """Per bin: number of examples, sum of their values, sum of their hits."""
    empty = values.new_zeros(*values.shape[:-1], bins)
    count = empty.scatter_add(-1, index, torch.ones_like(values))
    return count, empty.scatter_add(-1, index, values), empty.scatter_add(-1, index, hits)


def _error(values: Tensor, hits: Tensor, index: Tensor, bins: int) -> Tensor:
    # |B|/n * |mean value - mean hit| = |sum of values - sum of hits| / n, which needs no care for empty bins
    _, value_sum, hit_sum = _sums(values, hits, index, bins)
    return (value_sum - hit_sum).abs().sum(-1) / values.shape[-1]
