"""Local losses and the three-factor gradient (paper, eqs. dcll-loss, loss-sg-der).

Every layer has a cross-entropy loss of its own on softmax(B·s_t). Its derivative with respect to a weight is
error × post × pre, an outer product of two vectors per example:

    ∂L/∂w_ij = (e_i · σ'(u_i − ϑ)) · trace_j = delta_i · pre_j

so neither autograd nor per-example gradients are needed. Over a mini-batch

    mean gradient           deltaᵀ·pre / |B|
    mean squared gradient   (delta∘delta)ᵀ·(pre∘pre) / |B|      exact

are one matrix product each.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from bayspike.errors import UserError
from bayspike.spiking.network import Drive, Layer, LayerStep


class LocalGradient(NamedTuple):
    """The two factors of every example's gradient, `delta (batch, neurons)` and `pre (batch, pre)`.

    Also carries what some rules look at besides: the drive (hence the weights) the gradient was taken at, and the
    raw spikes of both sides at this time-step.
    """

    delta: Tensor
    pre: Tensor
    drive: Drive
    pre_spikes: Tensor  # (batch, inputs), as they arrived
    post_spikes: Tensor  # (batch, neurons)
    evidence: Tensor | None = None  # what each example counts as evidence, (batch, 1); None: one. See `train_batch`

    @property
    def batch(self) -> int:
        return int(self.delta.shape[0])

    def mean(self) -> Tensor:
        """Mean gradient over the mini-batch, `(neurons, pre)`."""
        return (self.delta.T / self.batch) @ self.pre  # scale the small factor, not the large result

    def mean_square(self) -> Tensor:
        """Mean of the squared per-example gradients, `(neurons, pre)`."""
        return self.squared().mean()

    def squared(self) -> "LocalGradient":
        """Every example's gradient squared element by element: again an outer product, that of the squared factors."""
        return self._replace(delta=self.delta.square(), pre=self.pre.square())

    def evidence_of_delta(self) -> Tensor:
        """delta², each example's weighed by what it counts as evidence."""
        squared = self.delta.square()
        return squared if self.evidence is None else squared.mul_(self.evidence)

    def add_mean_to(self, buffer: Tensor, *, keep: float = 1.0, rate: float = 1.0) -> Tensor:
        """buffer ← keep·buffer + rate·mean, inside the product."""
        return buffer.addmm_(self.delta.T, self.pre, beta=keep, alpha=rate / self.batch)


class LocalError(NamedTuple):
    """A layer's prediction at one time-step and the error it sends to its own neurons."""

    probabilities: Tensor  # softmax(B s_t), (batch, classes)
    error: Tensor  # e_i = ∂L/∂s_i, (batch, neurons)


def local_error(layer: Layer, spikes: Tensor, targets: Tensor) -> LocalError:
    """Eq. dcll-loss and its derivative: e = Bᵀ(softmax(B s) − y). `targets` one-hot `(batch, classes)`."""
    probabilities = torch.softmax(spikes @ layer.readout.T, dim=1)
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
    delta = error.mul_(layer.neuron.post(done.potential))
    return LocalGradient(delta, done.pre, drive, spikes_in, done.spikes, evidence), probabilities


def one_hot_targets(labels: Tensor, classes: int, dtype: torch.dtype) -> Tensor:
    """Labels `(batch,)` to targets `(batch, classes)`, the same at every time-step."""
    if labels.numel() and (int(labels.min()) < 0 or int(labels.max()) >= classes):
        raise UserError(
            f"labels must lie in 0 … {classes - 1}, the classes of the read-out, but range from "
            f"{int(labels.min())} to {int(labels.max())}."
        )
    return one_hot(labels.to(torch.int64), classes).to(dtype)
