"""Local losses and the three-factor gradient (paper, eqs. dcll-loss, loss-sg-der).

Every layer has a cross-entropy loss of its own on softmax(B·s_t). Its derivative with respect to a weight is
error × post × pre, an outer product of two vectors per example:

    ∂L/∂w_ij = (e_i · σ'(u_i − ϑ)) · trace_j = delta_i · pre_j

so neither autograd nor per-example gradients are needed. Over a mini-batch

    mean gradient           deltaᵀ·pre / |B|
    mean squared gradient   (delta∘delta)ᵀ·(pre∘pre) / |B|      exact

are one matrix product each. Where an example has several places that share their weights (a convolution) its gradient
is a sum over them, so its square is no product of squares: per-example gradients are taken exactly, a few at a time,

    g_b = delta_bᵀ·patches_b        (maps × places)·(places × fan-in)
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from bayspike.errors import UserError
from bayspike.spiking.layers import Drive, Layer, LayerStep

IN_CACHE = 2**19  # numbers of patches, or of per-example gradients, held at once


class LocalGradient(NamedTuple):
    """The two factors of every example's gradient, `delta (batch, neurons)` and `pre (batch, pre)`.

    With several `places` an example has as many rows of both, one after the other, and `neurons` are maps. It also
    carries what some rules look at besides: the drive (hence the weights) the gradient was taken at, and the raw
    spikes of both sides at this time-step.
    """

    delta: Tensor
    pre: Tensor
    drive: Drive
    pre_spikes: Tensor  # (batch, inputs), as they arrived
    post_spikes: Tensor  # (batch, neurons)
    evidence: Tensor | None = None  # what each example counts as evidence, (batch, 1); None: one. See `train_batch`
    places: int = 1
    gather: Callable[[Tensor], Tensor] | None = None  # makes rows of spikes as they arrived; None: they are the rows
    patches: Callable[[Tensor], Tensor] | None = (
        None  # makes rows of `pre`, which is `(batch, traces)`; None: it is rows
    )

    @property
    def batch(self) -> int:
        return int(self.delta.shape[0]) // self.places

    def mean(self) -> Tensor:
        """Mean gradient over the mini-batch, `(neurons, pre)`."""
        if self.patches is not None:
            return self.add_mean_to(self.delta.new_zeros(self.drive_shape))
        return (self.delta.T / self.batch) @ self.pre  # scale the small factor, not the large result

    def mean_square(self) -> Tensor:
        """Mean of the squared per-example gradients, `(neurons, pre)`."""
        return self.squared().mean() if self.places == 1 else self._replace(evidence=None).means()[1]

    def means(self) -> tuple[Tensor, Tensor]:
        """The mean gradient, and the mean of the squared ones, weighed by what each example counts as evidence.

        For one place these are two products; for several, per-example gradients of a few examples at a time.
        """
        if self.places == 1:
            return self.mean(), (self.evidence_of_delta().T / self.batch) @ self.pre.square()
        neurons, fan_in = self.drive_shape
        once = self.delta.new_full((1, self.batch), 1 / self.batch)
        counted = once if self.evidence is None else self.evidence.T / self.batch
        mean, square = self.delta.new_zeros(2, 1, neurons * fan_in)
        for part, delta, pre in self._few():
            apart = delta.view(-1, self.places, neurons).transpose(1, 2), pre.view(-1, self.places, fan_in)
            each = torch.bmm(*apart).view(-1, neurons * fan_in)
            mean.addmm_(once[:, part], each)
            square.addmm_(counted[:, part], each.square_())
        return mean.view(neurons, fan_in), square.view(neurons, fan_in)

    @property
    def drive_shape(self) -> tuple[int, int]:
        """Of the weight matrix."""
        fan_in = self.pre.shape[1] if self.patches is None else self.patches(self.pre[:1]).shape[1]
        return int(self.delta.shape[1]), int(fan_in)

    def _few(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """The rows of a few examples at a time, as many as stay in the cache with their gradients."""
        neurons, fan_in = self.drive_shape
        few = max(1, IN_CACHE // (fan_in * max(neurons, self.places)))
        for low in range(0, self.batch, few):
            part, rows = slice(low, low + few), slice(low * self.places, (low + few) * self.places)
            yield part, self.delta[rows], self.pre[rows] if self.patches is None else self.patches(self.pre[part])

    def squared(self) -> "LocalGradient":
        """Every example's gradient squared element by element: again an outer product, that of the squared factors.

        For one place alone: a sum of several outer products is none when squared.
        """
        assert self.places == 1
        return self._replace(delta=self.delta.square(), pre=self.pre.square())

    def evidence_of_delta(self) -> Tensor:
        """delta², each example's weighed by what it counts as evidence."""
        squared = self.delta.square()
        return squared if self.evidence is None else squared.mul_(self.evidence)

    def rows_of_spikes(self) -> tuple[Tensor, Tensor]:
        """The spikes of both sides, in rows as `pre` and `delta` are; a recurrent layer's own are on both sides."""
        before = self.pre_spikes if self.gather is None else self.gather(self.pre_spikes)
        if before.shape[1] < self.pre.shape[1]:
            before = torch.cat([before, self.post_spikes], dim=1)
        return before, self.post_spikes.view(self.delta.shape)

    def add_mean_to(self, buffer: Tensor, *, keep: float = 1.0, rate: float = 1.0) -> Tensor:
        """buffer ← keep·buffer + rate·mean, inside the product."""
        if self.patches is not None:
            for part, delta, pre in self._few():
                buffer.addmm_(delta.T, pre, beta=1.0 if part.start else keep, alpha=rate / self.batch)
            return buffer
        return buffer.addmm_(self.delta.T, self.pre, beta=keep, alpha=rate / self.batch)


class LocalError(NamedTuple):
    """A layer's prediction at one time-step and the error it sends to its own neurons."""

    probabilities: Tensor  # softmax(B s_t), (batch, classes)
    error: Tensor  # e_i = ∂L/∂s_i, (batch, neurons); by the sums of windows where the read-out sees those


def local_error(layer: Layer, spikes: Tensor, targets: Tensor) -> LocalError:
    """Eq. dcll-loss and its derivative: e = Bᵀ(softmax(B s) − y). `targets` one-hot `(batch, classes)`."""
    probabilities = torch.softmax(layer.read(spikes) @ layer.readout.T, dim=1)
    return LocalError(probabilities, (probabilities - targets) @ layer.readout)


def local_gradient(
    layer: Layer,
    done: LayerStep,
    drive: Drive,
    spikes_in: Tensor,
    targets: Tensor,
    evidence: Tensor | None = None,
) -> tuple[LocalGradient, Tensor]:
    """The gradient of one layer at one time-step, and the layer's probabilities."""
    probabilities, error = local_error(layer, done.spikes, targets)
    delta = layer.error_at_neurons(error, layer.neuron.post(done.potential))
    gradient = LocalGradient(delta.view(-1, layer.shape[0]), done.pre, drive, spikes_in, done.spikes, evidence)
    if layer.inlet is not None:
        gradient = gradient._replace(places=layer.places, gather=layer.rows_of)
        if layer.places > 1 and len(done.pre) == len(targets):  # the traces themselves, see `step`
            gradient = gradient._replace(patches=layer.gather)
    return gradient, probabilities


def one_hot_targets(labels: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """Labels `(batch,)` to targets `(batch, classes)`, the same at every time-step."""
    if labels.numel() and (int(labels.min()) < 0 or int(labels.max()) >= classes):
        raise UserError(
            f"labels must lie in 0 … {classes - 1}, the classes of the read-out, but range from "
            f"{int(labels.min())} to {int(labels.max())}."
        )
    return one_hot(labels.to(torch.int64), classes).to(dtype)
