"""Training on one mini-batch where each process has some rows of every layer: `bayspike.learning.batch`, shared.

The loop is the same, but for the spikes of a layer, which are exchanged before the error is computed. Draws are those
of one process; so are the results, as far as a product of some rows rounds as that of all rows does. Of a rule that
looks at a whole layer (a carry by evidence) the layer's minimum and mean are put together from the parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.errors import UserError, require
from bayspike.kernels import Kernels
from bayspike.learning.batch import BatchReport, Pulled, frames, pace_of, pull_due, training_inputs
from bayspike.learning.fisher import CHUNK_BYTES
from bayspike.learning.silent import Resting, firing_inputs, rejoin, take_columns
from bayspike.posteriors.draws import OfRows, Rows, on_device
from bayspike.rules.base import Paced, Rule, State, first_state
from bayspike.rules.gaussian import GaussianVI
from bayspike.sharded.exchange import Exchange, share_rows
from bayspike.spiking.denormals import flushed_denormals
from bayspike.spiking.filters import TraceState
from bayspike.spiking.local import LocalGradient, one_hot_targets
from bayspike.spiking.network import Drive, Layer, Network, Weights
from bayspike.spiking.neurons import NeuronState


class Part(NamedTuple):
    """One's own neurons of a layer."""

    layer: Layer  # the whole of it; a layer holds no weights
    shares: Sequence[Rows]
    rows: Rows
    readout: Tensor  # B of one's own neurons, (classes, rows)

    @property
    def shape(self) -> tuple[int, int]:
        return (self.rows.size, self.layer.pre)

    def start(self, batch: int) -> NeuronState:
        dtype, device = self.readout.dtype, self.readout.device
        zeros = torch.zeros(batch, self.rows.size, dtype=dtype, device=device)
        return NeuronState(self.layer.neuron.filter.start(batch, self.layer.pre, dtype, device), zeros, zeros)


class Shown(NamedTuple):
    """What one time-step of one's own neurons leaves behind."""

    state: NeuronState
    gradient: LocalGradient
    probabilities: Tensor
    spikes: Tensor  # of the whole layer


def parts_of(network: Network, exchange: Exchange) -> list[Part]:
    found = []
    for layer in network.layers:
        shares = share_rows(layer.neurons, exchange.ranks)
        rows = shares[exchange.rank]
        found.append(Part(layer, shares, rows, layer.readout[:, rows.start : rows.stop].contiguous()))
    return found


def _step(
    part: Part,
    exchange: Exchange,
    state: NeuronState,
    arriving: Tensor,
    drive: Drive,
    targets: Tensor,
    evidence: Tensor | None = None,
    spare: TraceState | None = None,
) -> Shown:
    layer, neuron, pre = part.layer, part.layer.neuron, state.synapses.trace
    potential = drive(pre).sub_(state.refractory)
    own = torch.gt(potential, neuron.threshold, out=torch.empty_like(potential))
    spikes = exchange.spikes(own, part.shares)
    incoming = torch.cat([arriving, spikes], dim=1) if layer.recurrent else arriving
    following = NeuronState(
        neuron.filter.step(state.synapses, incoming, spare),
        neuron.next_refractory(state.refractory, own, potential),
        own,
    )
    probabilities = torch.softmax(spikes @ layer.readout.T, dim=1)
    delta = ((probabilities - targets) @ part.readout).mul_(neuron.post(potential))
    return Shown(following, LocalGradient(delta, pre, drive, incoming, own, evidence), probabilities, spikes)


@dataclass(frozen=True)
class SharedHands:
    """The work of a stream (`bayspike.continual.protocol.Hands`), shared by the processes of an exchange."""

    exchange: Exchange

    def init(self, network: Network, rule: Rule, generator: torch.Generator) -> list[State]:
        """Fresh states of one's own rows: those rows of what one process would begin with."""
        require_shareable(network, rule)
        parts = parts_of(network, self.exchange)
        return [first_state(rule, part.layer, part.shape, OfRows(generator, part.rows)) for part in parts]

    @flushed_denormals()
    def train(
        self,
        network: Network,
        rule: Rule,
        states: Sequence[State],
        spikes: Tensor,
        labels: Tensor,
        generator: torch.Generator,
        burn_in: int = 0,
        evidence: Tensor | None = None,
        update_every: int = 1,
        kernels: Kernels = "plain",
    ) -> tuple[list[State], BatchReport]:
        """As `train_batch`, for one's own rows."""
        require_shareable(network, rule, update_every, kernels)
        spikes, targets, evidence = training_inputs(network, rule, spikes, labels, burn_in, evidence)
        if isinstance(rule, Paced):
            rule = rule.at(pace_of(network, len(labels), max(1, len(spikes) - burn_in)))
        parts, generator = parts_of(network, self.exchange), on_device(generator, spikes.device)
        firing = firing_inputs(spikes)
        if firing is None or not isinstance(rule, Resting):
            return self._present(parts, rule, states, spikes, targets, generator, burn_in, evidence)
        first = parts[0].layer
        columns = torch.cat([firing, torch.arange(first.inputs, first.pre, device=firing.device)])
        fewer = [parts[0]._replace(layer=replace(first, inputs=len(firing))), *parts[1:]]
        taking_part = [take_columns(states[0], columns), *states[1:]]
        learnt, report = self._present(
            fewer, rule, taking_part, spikes[:, :, firing], targets, generator, burn_in, evidence
        )
        resting = _Resting(rule, self, parts[0])
        learnt[0] = rejoin(resting, states[0], learnt[0], columns, max(0, len(spikes) - burn_in))
        return learnt, report

    def _present(
        self,
        parts: Sequence[Part],
        rule: Rule,
        states: Sequence[State],
        spikes: Tensor,
        targets: Tensor,
        generator: torch.Generator,
        burn_in: int,
        evidence: Tensor | None,
    ) -> tuple[list[State], BatchReport]:
        """The loop over time."""
        time, states = len(spikes), list(states)
        neurons = [part.start(len(targets)) for part in parts]
        spares = [part.start(len(targets)).synapses for part in parts]
        rules = [self.for_rows(rule, state, part) for state, part in zip(states, parts, strict=True)]
        pulled = [each if isinstance(each, Pulled) and each.pull_every > 1 else None for each in rules]
        rules = [each.without_pull() if each else same for each, same in zip(pulled, rules, strict=True)]
        draws = [OfRows(generator, part.rows) for part in parts]
        predicted = targets.new_empty(time, *targets.shape)
        fired = [targets.new_zeros(len(targets), part.layer.neurons) for part in parts]
        for t, (frame, prediction) in enumerate(zip(frames(spikes, targets.dtype), predicted, strict=True)):
            arriving = frame.repeat(rule.samples, 1) if rule.samples > 1 else frame
            for index, part in enumerate(parts):
                drive = rules[index].drive(states[index], draws[index])
                done = _step(
                    part, self.exchange, neurons[index], arriving, drive, targets, evidence, spares[index]
                )  # old traces serve this step yet
                spares[index], neurons[index] = neurons[index].synapses, done.state
                if t >= burn_in:
                    states[index] = rules[index].update(states[index], done.gradient)
                    back = pulled[index]
                    if back and (since := pull_due(t - burn_in, time - burn_in, back.pull_every)):
                        states[index] = back.pull_back(states[index], since)
                fired[index].add_(done.spikes)
                arriving = done.spikes
            prediction.copy_(done.probabilities)
        return states, BatchReport.of(predicted, targets, fired)

    def for_rows(self, rule: Rule, state: State, part: Part) -> Rule:
        """A rule for some rows of a layer: what it would read off the whole layer is put together beforehand."""
        if not isinstance(rule, GaussianVI):
            return rule
        if rule.crowd is not None:  # counts the neurons of its matrix, of which these are some
            rule = replace(rule, crowd=rule.crowd * part.rows.size / part.rows.total)
        if rule.by_evidence and rule.kappa != 1:
            prior = state.prior_precision
            least, total = self.exchange.least(prior.min()), self.exchange.total(prior.sum(dtype=torch.float64))
            mean = total / (part.rows.total * prior.shape[1])
            rule = replace(rule, carry=rule.carry_by(float(1 - least / mean)), by_evidence=False)
        return rule

    def fisher(
        self, network: Network, weights: Sequence[Tensor], samples: Samples, generator: torch.Generator
    ) -> list[Tensor]:
        """As `diagonal_fisher`, for one's own rows."""
        parts = parts_of(network, self.exchange)
        one = sum(part.layer.neurons * part.layer.pre * part.readout.element_size() for part in parts)
        chunk = max(1, min(64, CHUNK_BYTES // one))  # of whole matrices, so that the draws are those of one process
        found = [torch.zeros_like(matrix) for matrix in weights]
        with flushed_denormals():
            for indices in torch.arange(len(samples)).split(chunk):
                spikes = samples.spikes(indices, generator)
                labels = samples.labels[indices]
                for total, each in zip(found, self._gradients(parts, weights, spikes, labels), strict=True):
                    total += each.square_().sum(dim=0)
        return found

    def _gradients(
        self, parts: Sequence[Part], weights: Sequence[Tensor], spikes: Tensor, labels: Tensor
    ) -> list[Tensor]:
        readout = parts[-1].layer.readout
        targets = one_hot_targets(labels, len(readout), readout.dtype).to(readout.device)
        states = [part.start(spikes.shape[1]) for part in parts]
        factors: list[list[tuple[Tensor, Tensor]]] = [[] for _ in parts]
        for frame in spikes.to(readout.device):
            arriving = frame.to(readout.dtype)
            for index, part in enumerate(parts):
                done = _step(part, self.exchange, states[index], arriving, Weights(weights[index]), targets)
                states[index] = done.state
                factors[index].append((done.gradient.delta, done.gradient.pre))
                arriving = done.spikes
        return [
            torch.bmm(torch.stack([delta for delta, _ in steps], dim=2), torch.stack([pre for _, pre in steps], dim=1))
            for steps in factors
        ]


class _Resting(NamedTuple):
    """A rule that lets silent columns of some rows rest."""

    rule: Resting
    hands: SharedHands
    part: Part

    def rest(self, state: State, steps: int) -> State:
        rule = self.hands.for_rows(self.rule, state, self.part)  # type: ignore[arg-type]
        return rule.rest(state, steps)  # type: ignore[attr-defined]


def require_shareable(network: Network, rule: Rule, update_every: int = 1, kernels: Kernels = "plain") -> None:
    """Refuse what one process alone can learn, such as a rule that looks at a whole layer at every step."""
    require(update_every == 1, "time blocks are learnt by one process: leave out torchrun, or --update-every.")
    require(kernels == "plain", "compiled kernels are for one process: leave out torchrun, or --kernels.")
    for number, layer in enumerate(network.layers):
        require(
            layer.inlet is None,
            f"convolutions and poolings, as of layer {number}, are learnt by one process: leave out torchrun, or name "
            "dense layers alone.",
        )
    if isinstance(rule, GaussianVI) and rule.flat:
        raise UserError("one precision for the whole layer (flat) is a control for one process: leave out torchrun.")
