"""TACOS: task-agnostic continual learning by metaplasticity and heterosynaptic decay
(paper, Sec. "Biologically Inspired Continual Learning", eqs. tacos-ref, tacos-lr; Soures et al., 2021).

    ν     ← ν + Δν                   where the rates of both neurons pass a threshold
    w_ref ← w_ref + κ·(w − w_ref)
    w     ← w − exp(−|ν·w|)·( η·e_i·s_j·σ'(u_i − ϑ) + γ·(w − w_ref)·s_i )

Averages over the mini-batch stand for the products of one example. Rates are running averages per neuron.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.errors import require_range
from bayspike.posteriors.distributions import Point
from bayspike.rules.base import initial_weights
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights


class TACOSState(NamedTuple):
    weights: Tensor
    reference: Tensor  # w_ref
    metaplasticity: Tensor  # ν
    pre_rate: Tensor  # (pre,)
    post_rate: Tensor  # (neurons,)


@dataclass(frozen=True)
class TACOS:
    """Frequentist learning with three matrices a layer: weight, reference weight, metaplasticity.

    lr, decay, reference_rate, increment: η, γ, κ and Δν of the paper. rate_threshold: of the running average of
    spikes per time-step, whose memory is `rate_memory` per step. use_trace: the pre-synaptic factor is the filtered
    trace instead of the spike s_j of the equation.
    """

    lr: float = 0.1
    decay: float = 1e-3
    reference_rate: float = 1e-3
    increment: float = 1e-3
    rate_threshold: float = 0.1
    rate_memory: float = 0.99
    use_trace: bool = False
    init_scale: float = 1.0

    binary = False
    samples = 1
    needs_fisher = False

    def __post_init__(self) -> None:
        for name in ("lr", "decay", "increment", "rate_threshold", "init_scale"):
            require_range(name, getattr(self, name), 0)
        require_range("reference_rate", self.reference_rate, 0, 1)
        require_range("rate_memory", self.rate_memory, 0, 1, high_open=True)

    def init(self, shape: tuple[int, int], generator: torch.Generator) -> TACOSState:
        weights = initial_weights(shape, self.init_scale, generator)
        return TACOSState(
            weights, weights.clone(), torch.zeros_like(weights), torch.zeros(shape[1]), torch.zeros(shape[0])
        )

    def drive(self, state: TACOSState, generator: torch.Generator) -> Weights:
        return Weights(state.weights)

    def update(self, state: TACOSState, gradient: LocalGradient) -> TACOSState:
        weights, reference, metaplasticity, pre_rate, post_rate = state
        pre_spikes, post_spikes = gradient.rows_of_spikes()
        post = post_spikes.mean(dim=0)
        pre_rate = torch.lerp(pre_spikes.mean(dim=0), pre_rate, self.rate_memory)
        post_rate = torch.lerp(post, post_rate, self.rate_memory)
        presynaptic = gradient.pre if self.use_trace else pre_spikes
        change = (gradient.delta.T * (self.lr / gradient.batch)) @ presynaptic
        change.addcmul_(weights - reference, post.unsqueeze(1), value=self.decay)
        plastic = (metaplasticity * weights).abs_().neg_().exp_()
        active = torch.outer(
            (post_rate > self.rate_threshold).to(weights.dtype), (pre_rate > self.rate_threshold).to(weights.dtype)
        )
        # all right-hand sides of the equations are those of time t
        reference = torch.lerp(reference, weights, self.reference_rate)
        weights = weights.addcmul_(plastic, change, value=-1)
        metaplasticity = metaplasticity.add_(active, alpha=self.increment)
        return TACOSState(weights, reference, metaplasticity, pre_rate, post_rate)

    def end_task(self, state: TACOSState, fisher: Tensor | None = None) -> TACOSState:
        return state

    def posterior(self, state: TACOSState) -> Point:
        return Point(state.weights)
