"""Looking after a network while it learns: silence, saturation, exploding precision and NaN are noticed within a batch.

What can still come right is a warning; what cannot (a NaN spreads to every weight it meets) stops the run. At the end
of a task there is one question more: had the posterior time to be learnt?
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.learning.batch import BatchReport
from bayspike.rules.base import Rule
from bayspike.rules.bernoulli import BernoulliVI
from bayspike.rules.gaussian import GaussianVI

SILENT = 1e-5  # spikes per neuron and time-step: less than one spike of a neuron in 100,000 steps
SATURATED = 0.9
LARGEST_PRECISION = 1e12  # a weight that certain cannot move any more in single precision


class Concern(NamedTuple):
    """Something that looks wrong; `kind` and `layer` tell it from others, so that each is said once."""

    kind: str
    layer: int
    sentence: str


def check_batch(report: BatchReport, states: Sequence[Any], method: str) -> list[Concern]:
    """What looks wrong after one mini-batch; raises `UserError` where going on is of no use."""
    _check_finite(report, states, method)
    found = []
    for layer, rate in enumerate(report.rates.tolist()):
        if rate < SILENT:
            found.append(
                Concern(
                    "silent",
                    layer,
                    f"layer {layer} is silent ({rate:.1g} spikes per neuron and step): if it stays so, lower "
                    f"network.threshold or raise {method}.init_scale or network.membrane_decay.",
                )
            )
        elif rate > SATURATED:
            found.append(
                Concern(
                    "saturated",
                    layer,
                    f"layer {layer} is saturated ({rate:.2f} spikes per neuron and step): lower {method}.lr or "
                    f"{method}.init_scale, or raise network.threshold.",
                )
            )
    for layer, state in enumerate(states):
        precision = getattr(state, "precision", None)
        if isinstance(precision, Tensor) and float(precision.max()) > LARGEST_PRECISION:
            found.append(
                Concern(
                    "precision",
                    layer,
                    f"the precision of layer {layer} has grown to {float(precision.max()):.1g} and its weights hardly "
                    f"move: lower {method}.precision_lr, or raise {method}.temperature.",
                )
            )
    return found


def check_settled(rule: Rule, batches: int, steps: int, anneal: float, method: str) -> list[Concern]:
    """At the end of a task: a precision that needs more updates to settle than the task had is hardly learnt.

    p moves η_p·ρ of the way to its fixed point at each step, so that it takes 1/(η_p·ρ) of them; `batches` of `steps`
    time-steps with a rate that falls linearly by the share `anneal` are worth fewer. The logits of ±1 weights move by
    η·ρ alike; they learn their signs long before, but how large they are is then a matter of η and of the time. Asked
    of the paper's units with tasks that end: in natural ones η·ρ is set by the task, and a memory without boundaries
    gathers evidence for as long as it remembers.
    """
    if not isinstance(rule, GaussianVI | BernoulliVI):
        return []
    if rule.lr is None or not rule.temperature or rule.horizon is not None:
        return []
    had = batches * steps * (1 - anneal * (batches - 1) / (2 * batches))
    rate = rule.share if isinstance(rule, BernoulliVI) else rule.precision_rate * rule.pull
    if rate * had >= 1:
        return []
    needed = f"{1 / rate:,.0f}" if rate > 0 else "endlessly many"
    sentence = (
        f"the precision needs {needed} updates to settle and had {had:,.0f} in this task, so that the posterior is "
        f"hardly learnt: leave out {method}.lr and {method}.temperature for natural units, or raise "
        f"{method}.temperature or {method}.precision_lr, whose product is one over that number."
    )
    if isinstance(rule, BernoulliVI):
        sentence = (
            f"the logits need {needed} updates to settle and had {had:,.0f} in this task, so that how sure the "
            f"posterior is of a synapse comes from {method}.lr and the length of the task, and not from "
            f"{method}.temperature: set both to none for natural units, or raise one of them."
        )
    return [Concern("unsettled", 0, sentence)]


def _check_finite(report: BatchReport, states: Sequence[Any], method: str) -> None:
    for layer, state in enumerate(states):
        for name, part in state._asdict().items():
            # one sum, and no mask as large as the weights: it is finite only if every summand is
            if isinstance(part, Tensor) and not bool(torch.isfinite(part.sum())):
                raise UserError(
                    f"Training diverged: {name} of layer {layer} holds NaN or infinity. Lower {method}.lr, or the "
                    f"surrogate's network.slope."
                )
    if not bool(torch.isfinite(report.loss)):
        raise UserError(f"Training diverged: the loss is {float(report.loss)}. Lower {method}.lr.")
