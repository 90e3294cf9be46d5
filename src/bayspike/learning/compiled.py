"""The loop over time of one mini-batch with compiled kernels, for the Gaussian rule (paper, Algorithm 1).

Spikes are strictly causal, so a layer's traces of time t + 1 are known before the update at t. Hence one pass over the
weights does both: some rows at a time get their two gradient products, are updated by one loop
(`rules.gaussian_compiled`), and are multiplied by the next step's traces for the potentials and their variances. Draws
are those of the plain form, in the same order, so that both learn the same within rounding.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bayspike.learning.batch import BatchReport, pull_due
from bayspike.posteriors import draws
from bayspike.rules import gaussian_compiled as loops
from bayspike.rules.base import Rule, State, block_buffer
from bayspike.rules.gaussian import GaussianState, GaussianVI
from bayspike.rules.gaussian_draws import Scratch
from bayspike.spiking import compiled
from bayspike.spiking.layers import Layer
from bayspike.spiking.network import Network

IN_CACHE = 2**18  # numbers of the rows of a matrix that are worked on together: fewer, and their products are slower

Array = NDArray[Any]
Loop = Callable[[slice, Array, Array], None]  # over some rows, their mean gradient, and room for their variances


def has_compiled_form(network: Network, rule: Rule) -> bool:
    """Whether `present_compiled` can take the place of the plain loop."""
    known = isinstance(rule, GaussianVI) and rule.sampling == "neuron" and rule.samples == 1 and not rule.flat
    return known and all(compiled.has_compiled_form(layer) for layer in network.layers)


def present_compiled(
    network: Network,
    rule: Rule,
    states: Sequence[State],
    spikes: Tensor,
    targets: Tensor,
    generator: torch.Generator,
    burn_in: int,
    evidence: Tensor | None,
) -> tuple[list[State], BatchReport]:
    """The loop over time; see `has_compiled_form`."""
    assert isinstance(rule, GaussianVI)
    time, batch = len(spikes), len(targets)
    threads = compiled.threads_to_share()
    rooms = [_Room(layer, state, batch, rule, threads) for layer, state in zip(network.layers, states, strict=True)]
    updates = [_Updates(rule, state, batch, time - burn_in, threads) for state in states]
    counted = np.ones((batch, 1), dtype=np.float32) if evidence is None else evidence.numpy()
    predicted = targets.new_empty(time, *targets.shape)
    frames, wanted, said = spikes.contiguous().numpy(), targets.numpy(), predicted.numpy()
    for t in range(time):
        arriving = frames[t]
        for room, update in zip(rooms, updates, strict=True):
            draws.normal_into(room.noise, generator)
            room.fire(wanted, counted, said[t])
            room.take_in(arriving)
            if t == burn_in == 0:
                update.prepare()
            evidence_rate = update.evidence if t >= burn_in else None
            room.work_off(evidence_rate, update.loop(t - burn_in), going_on=t + 1 < time)
            arriving = room.emitted
    fired = [torch.tensor(float(room.fired)) / room.emitted.size for room in rooms]
    kept = [Scratch(block_buffer(state.mean), None, room.buffers) for state, room in zip(states, rooms, strict=True)]
    learnt = [state._replace(scratch=scratch) for state, scratch in zip(states, kept, strict=True)]
    return learnt, BatchReport.of(predicted, targets, fired)


class _Updates:
    """What follows the products of each step: `GaussianVI.update` and `pull_back`."""

    def __init__(self, rule: GaussianVI, state: GaussianState, batch: int, steps: int, threads: int) -> None:
        self.rule, self.state, self.steps, self.threads = rule, state, steps, threads
        self.matrices = [part.numpy() for part in state[:4]]
        self.rate, self.pull = rule.rate / batch, rule.precision_rate * rule.pull
        self.evidence = rule.precision_rate / batch * (1.0 if rule.crowd is None else len(state.mean) / rule.crowd)
        self.every = rule.pull_every or 1
        self.held = self.every > 1 or rule.kappa != 1  # the pull is in its implicit form
        self.hold = rule.hold(state.prior_precision) if self.pull > 0 and self.held else 0.0

    def prepare(self) -> None:
        """The pull of the precision before the very first product."""
        if self.pull > 0 and self.every == 1:
            self.state.precision.lerp_(self.state.prior_precision, self.pull)

    def loop(self, update: int) -> Loop:
        """That of an update, counted from 0; below it nothing is learnt yet."""
        mean, precision, _, prior_precision = self.matrices
        pulling = self.pull > 0 and self.every == 1 and -1 <= update < self.steps - 1
        next_share, rate = np.float32(self.pull if pulling else 0.0), np.float32(self.rate)
        since = pull_due(update, self.steps, self.every) if self.pull > 0 else 0
        if update < 0:
            invert = loops.invert.by(self.threads)
            return lambda rows, _, room: invert(precision[rows], prior_precision[rows], room, next_share)
        if since == 0:
            learn = loops.learn.by(self.threads)
            return lambda rows, gradient, room: learn(mean[rows], precision[rows], gradient, room, rate)
        letter = loops.learn_without_overshooting if self.rule.may_overshoot else loops.learn_by_the_letter
        loop, constants = letter.by(self.threads), [rate, np.float32(self.rule.rate * self.rule.pull)]
        if self.held:
            share = 0.0 if self.every == 1 else 1 - (1 - self.pull) ** since
            loop, constants = (
                loops.learn_and_hold.by(self.threads),
                [rate, np.float32(self.hold * since), np.float32(share)],
            )
        return lambda rows, gradient, room: loop(
            *(matrix[rows] for matrix in self.matrices), gradient, room, *constants, next_share
        )


def _buffers(state: GaussianState, rows: int) -> tuple[Tensor, Tensor]:
    """Those of the last mini-batch, since fresh memory costs as much as working in it."""
    kept = None if state.scratch is None else state.scratch.compiled
    if kept is not None and kept[0].shape == (rows, state.mean.shape[1]):
        return kept
    return state.mean.new_zeros(rows, state.mean.shape[1]), state.mean.new_empty(rows, state.mean.shape[1])


class _Block(NamedTuple):
    """Some neurons of a layer, as views that its products and loops take."""

    rows: slice
    means: Tensor  # (pre, neurons)
    precision: Tensor  # (neurons, pre)
    gradient: Tensor
    variances: Tensor
    delta: Tensor  # (neurons, batch)
    squared: Tensor
    potential: Tensor  # (batch, neurons)
    variance: Tensor


class _Room:
    """The arrays of one layer while a mini-batch is learnt."""

    def __init__(self, layer: Layer, state: GaussianState, batch: int, rule: GaussianVI, threads: int) -> None:
        self.threads = threads
        neurons, pre = layer.shape
        filter_: Any = layer.neuron.filter
        self.constants, self.readout = compiled.constants_of(layer), compiled.readout_of(layer)
        self.decays = np.float32(filter_.synapse_decay), np.float32(filter_.membrane_decay)
        self.rounding = 0.0 if rule.grid is None else rule.grid.step**2 / 12
        self.extra, self.fired = np.zeros(batch, dtype=np.float32), 0
        self.hidden, self.refractory = np.zeros((batch, pre), np.float32), np.zeros((batch, neurons), np.float32)
        self.emitted = np.zeros((batch, neurons), np.uint8)
        # traces and their squares, of this step and of the next
        self.traces, self.squares = ([torch.zeros(batch, pre) for _ in range(2)] for _ in range(2))
        self.noise, potential, variance, delta, squared = torch.zeros(5, batch, neurons)
        self.driven = potential.numpy(), variance.numpy(), self.noise.numpy()
        self.factors = delta.numpy(), squared.numpy()
        size = -(-neurons // max(1, round(neurons * pre / IN_CACHE)) // 16) * 16
        pieces = -(-neurons // size)
        self.buffers = gradient, variances = _buffers(state, size)
        edges = pairwise(min(neurons, each * size) for each in range(pieces + 1))
        self.blocks = [
            _Block(
                slice(low, high),
                state.mean[low:high].T,
                state.precision[low:high],
                gradient[: high - low],
                variances[: high - low],
                delta.T[low:high],
                squared.T[low:high],
                potential[:, low:high],
                variance[:, low:high],
            )
            for low, high in edges
        ]

    def fire(self, targets: Array, evidence: Array, said: Array) -> None:
        """Spikes and the factor delta of the gradient, from `noise` and the potentials that the last step left."""
        seen = self.readout, targets, evidence
        left = self.emitted, said, *self.factors
        neuron_step = compiled.neuron_step.by(self.threads)
        self.fired += neuron_step(
            *self.driven, self.extra, self.refractory, *self.constants, *seen, *left, self.threads
        )

    def take_in(self, arriving: Array) -> None:
        """The traces of the next step."""
        old, new, squares = self.traces[0].numpy(), self.traces[1].numpy(), self.squares[1].numpy()
        compiled.filter_step.by(self.threads)(arriving, self.hidden, old, *self.decays, new, squares)
        if self.rounding:
            self.extra = squares.sum(axis=1) * np.float32(self.rounding)

    def work_off(self, evidence_rate: float | None, loop: Loop, going_on: bool) -> None:
        """Learn from this step's factors, and drive the next step, a block of rows at a time."""
        for block in self.blocks:
            if evidence_rate is not None:
                block.precision.addmm_(block.squared, self.squares[0], alpha=evidence_rate)
                block.gradient.addmm_(block.delta, self.traces[0])
            loop(block.rows, block.gradient.numpy(), block.variances.numpy())
            if going_on:
                torch.mm(self.traces[1], block.means, out=block.potential)
                torch.mm(self.squares[1], block.variances.T, out=block.variance)
        self.traces.reverse()
        self.squares.reverse()
