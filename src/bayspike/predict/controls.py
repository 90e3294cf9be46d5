"""Controls: what of a committee's merit is its posterior's own, and what any noise would have given.

The same means with other spreads. A claim about a posterior stands only where it beats all of them.

- `constant`   every synapse of a layer has the layer's mean variance
- `permuted`   the layer's variances, dealt out anew among its synapses
- `matched`    every synapse of a layer has the one variance that gives the potentials of its neurons, on inputs of the
               model's own kind, the same mean variance: Σ_j E[x_j²]·σ²_ij, with x the traces. The strongest control:
               noise of the right size, without the posterior's structure
- `zero`       no spread: the means alone

A frequentist has no spread of its own; its control is `noise`: normal noise of one size a layer (random signs for ±1
weights), of the size that makes held-out labels most likely. And where foreign inputs are told from own ones, `inputs`
tells them apart without any network (`bayspike.predict.surprise`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.errors import UserError
from bayspike.kernels import Kernels
from bayspike.metrics import accuracy, auroc, ece, entropy, mutual_information, nll
from bayspike.posteriors.distributions import Bernoulli, BinaryPoint, Gaussian, Point, Posterior, variance_of
from bayspike.predict.gathering import Gather
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.predict.surprise import InputRates
from bayspike.predict.temperature import Temperature
from bayspike.seeds import generator_for
from bayspike.spiking.network import Network, Weights, network_step

CONTROLS = ("constant", "permuted", "matched", "zero")
NOISES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5)  # in root mean squares of a layer's weights
Calibrate = Callable[[Committee], Temperature | None]  # each committee's own, from examples that are not judged
FLIPS = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16)  # shares of ±1 weights that change sign
POWER_EXAMPLES = 256


class ControlScores(NamedTuple):
    """How a committee did; the AUROCs tell foreign inputs from own ones, None where there are no foreign ones."""

    accuracy: float
    ece: float
    nll: float
    auroc_mutual_information: float | None
    auroc_entropy: float | None
    auroc_discord: float | None = None  # see `bayspike.predict.discord`
    auroc_inputs: float | None = None  # by the inputs alone, the same for all: said of the learner itself
    about: str = ""  # what was chosen, for instance the size of a noise


def trace_power(
    network: Network, posteriors: Sequence[Posterior], samples: Samples, generator: torch.Generator
) -> list[Tensor]:
    """E[x_j²] of every layer's traces, `(pre,)`, over time and some of the samples, at the mean weights."""
    indices = torch.arange(min(POWER_EXAMPLES, len(samples)))
    readout = network.layers[-1].readout
    spikes = samples.spikes(indices, generator).to(readout)
    drives = [Weights(each.mean().to(readout)) for each in posteriors]
    states = network.start(len(indices))
    power = [readout.new_zeros(layer.pre) for layer in network.layers]
    for frame in spikes:
        steps = network_step(network, states, frame, drives)
        states = tuple(done.state for done in steps)
        for total, done in zip(power, steps, strict=True):
            total += done.pre.square().mean(dim=0)
    return [total / len(spikes) for total in power]


def with_variance(posterior: Posterior, variance: Tensor) -> Posterior:
    """The same centres with another variance of every weight; a ±1 weight keeps its more probable sign."""
    if isinstance(posterior, Gaussian | Point):
        return Gaussian(posterior.mean(), variance.expand_as(posterior.mean()).reciprocal())
    if isinstance(posterior, Bernoulli | BinaryPoint):
        size = (1 - variance).clamp(0, 1).sqrt().clamp(max=1 - 1e-6).expand_as(posterior.mean())
        return Bernoulli(posterior.mode() * torch.atanh(size))
    raise UserError(f"{type(posterior).__name__} has no control: its spread is not known.")


def control(name: str, posterior: Posterior, power: Tensor, generator: torch.Generator) -> Posterior:
    """One layer's posterior with the spread of a control; `power` is the layer's E[x_j²]."""
    variance = variance_of(posterior)
    if name == "zero":
        return Point(posterior.mean()) if isinstance(posterior, Gaussian) else BinaryPoint(posterior.mode())
    if name == "constant":
        return with_variance(posterior, variance.mean())
    if name == "permuted":
        order = torch.randperm(variance.numel(), generator=generator).to(variance.device)
        return with_variance(posterior, variance.flatten()[order].view_as(variance))
    if name == "matched":
        return with_variance(posterior, (variance @ power).mean() / power.sum().clamp_min(1e-30))
    raise UserError(f"There is no control {name!r}: choose from {', '.join(CONTROLS)}.")


def noisy(posterior: Posterior, size: float) -> Posterior:
    """A point with noise: of `size` root mean squares, or with that share of ±1 weights changing sign."""
    if isinstance(posterior, BinaryPoint):
        return with_variance(posterior, torch.tensor(1 - (1 - 2 * size) ** 2))
    return with_variance(posterior, posterior.mean().square().mean() * size**2)


def judge_controls(
    network: Network,
    posteriors: Sequence[Posterior],
    own: Samples,
    foreign: Samples | None,
    held_out: Samples,
    *,
    members: int = 10,
    seed: int = 0,
    kernels: Kernels = "plain",
    gather: Gather = "mean",
    calibrate: Calibrate | None = None,
) -> dict[str, ControlScores]:
    """The committee as `learnt` (or the point) and its controls, on the same inputs and from the same draws.

    `held_out` serves to choose a point's noise, to measure the traces and to learn the rates of inputs; it must not
    share examples with `own`. All `gather` alike; `calibrate` gives each of them a temperature of its own.
    """
    spread = any(bool((variance_of(each) > 0).any()) for each in posteriors)
    way = _Way(network, members, seed, kernels, gather, calibrate)
    judge = _judge(way, own, foreign)
    by_inputs = None if foreign is None else _by_inputs(own, foreign, held_out, seed)
    found = {"learnt" if spread else "point": judge(posteriors)._replace(auroc_inputs=by_inputs)}
    if spread:
        power = trace_power(network, posteriors, held_out, generator_for(seed, "power"))
        for name in CONTROLS:
            generator = generator_for(seed, "permuted")
            changed = [control(name, each, part, generator) for each, part in zip(posteriors, power, strict=True)]
            found[name] = judge(changed)
        return found
    trial = _judge(way, held_out, None)
    binary = any(isinstance(each, BinaryPoint) for each in posteriors)
    sizes = FLIPS if binary else NOISES
    best = min(sizes, key=lambda size: trial([noisy(each, size) for each in posteriors]).nll)
    unit = "of the signs flipped" if binary else "of a layer's root mean square weight"
    found["noise"] = judge([noisy(each, best) for each in posteriors])._replace(about=f"{best:g} {unit}")
    return found


class _Way(NamedTuple):
    """How every committee is drawn and asked."""

    network: Network
    members: int
    seed: int
    kernels: Kernels
    gather: Gather
    calibrate: Calibrate | None


def _judge(way: _Way, own: Samples, foreign: Samples | None) -> Callable[[Sequence[Posterior]], ControlScores]:
    def judge(posteriors: Sequence[Posterior]) -> ControlScores:
        certain = not any(bool((variance_of(each) > 0).any()) for each in posteriors)
        committee = Committee.draw(
            way.network, posteriors, 1 if certain else way.members,
            generator=generator_for(way.seed, "committee"), gather=way.gather, kernels=way.kernels,
        )  # fmt: skip
        temperature = None if way.calibrate is None else way.calibrate(committee)
        done = list(_answers(committee, [own] if foreign is None else [own, foreign], way.seed, temperature))
        final, kept, apart = done[0]
        by_members = by_entropy = by_discord = None
        if foreign is not None:
            foreign_final, foreign_kept, foreign_apart = done[1]
            by_entropy = float(auroc(entropy(final), entropy(foreign_final)))
            if apart is not None and foreign_apart is not None:
                by_members = float(auroc(mutual_information(kept), mutual_information(foreign_kept)))
                by_discord = float(auroc(apart, foreign_apart))
        right = (float(accuracy(final, own.labels)), float(ece(final, own.labels)), float(nll(final, own.labels)))
        return ControlScores(*right, by_members, by_entropy, by_discord)

    return judge


def _by_inputs(own: Samples, foreign: Samples, held_out: Samples, seed: int) -> float:
    known = InputRates.of(held_out, generator_for(seed, "input rates"))
    surprises = (known.surprise(each, generator_for(seed, "inputs", k)) for k, each in enumerate((own, foreign)))
    return float(auroc(*surprises))


def _answers(
    committee: Committee, parts: Sequence[Samples], seed: int, temperature: Temperature | None
) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
    """Final probabilities, scaled if there is a temperature; members as they are; the discord of several of them."""
    for number, part in enumerate(parts):
        done = predict_samples(committee, part, generator_for(seed, "controls", number), over_time=False)
        assert done.members is not None
        final = done.probabilities[-1].cpu()
        final = final if temperature is None else temperature.apply(final)
        yield final, done.members.cpu(), None if done.discord is None else done.discord.cpu()
