"""Predictors: from a distribution over weights to class probabilities at every time-step (paper, Secs. "Frequentist
versus Bayesian Learning" and "Confidence levels", eqs. pred-conf-freq, pred-conf-bayes).

- `Point`      one weight vector: the frequentist predictor, or the mode or mean of a posterior.
- `Committee`  N_S weight vectors, drawn once and kept for all inputs.
- `Ensemble`   N_S weight vectors drawn afresh for every input.

Probabilities are cumulative, gathered over the steps up to t (`gathering`; by default their average) and averaged over
the members, so that the decision at any t is the one that would be given if the signal stopped there. All members see
the same input spikes.

A spike takes one step per layer, so the answer f(w, xᵗ) of the equations comes L steps after xᵗ. The first L steps say
nothing about the input: probabilities are uniform there, and gathering begins after them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch
from torch import Tensor

from bayspike.data.base import Samples
from bayspike.errors import UserError, require, require_range
from bayspike.kernels import Kernels, require_kernels
from bayspike.posteriors import distributions, draws
from bayspike.posteriors.distributions import Posterior
from bayspike.posteriors.grid import Grid, grid_for
from bayspike.predict.discord import Tally
from bayspike.predict.gathering import Gather, check_gather, gathered
from bayspike.predict.synapses import Fixed, Flipped, Own, Synapses
from bayspike.predict.unrolled import Outcome, check_binary, unroll_members
from bayspike.predict.watching import ForeignRule, Watch
from bayspike.spiking.convolution import Convolution
from bayspike.spiking.network import Layer, Network

if TYPE_CHECKING:
    from bayspike.predict.compiled import Rows

KeepMembers = Literal["all", "final", "none"]
OWN_WEIGHTS_IN_FLIGHT = 1 << 26  # numbers: 256 MiB in single precision


class Prediction(NamedTuple):
    """Cumulative class probabilities, and what is needed to judge them."""

    probabilities: Tensor  # (time, batch, classes)
    members: Tensor | None  # "all": (members, time, batch, classes); "final": (members, batch, classes)
    rates: Tensor  # mean spikes per neuron and time-step of each layer, over batch and members, (layers,)
    discord: Tensor | None = None  # of several members that are kept, "all": (time, batch); "final": (batch,)


class Predictor(ABC):
    """What the three kinds share: they differ only in how they draw weights."""

    network: Network
    members: int  # N_S
    gather: Gather = "mean"  # how the steps of a signal become one answer

    @abstractmethod
    def synapses(self, batch: int, generator: torch.Generator | None) -> list[Synapses]:
        """The weights of every layer for a batch of inputs."""

    def batch_limit(self) -> int | None:
        """How many inputs may be given weights at once; None: any number."""
        return None

    @torch.no_grad()
    def predict(
        self, spikes: Tensor, generator: torch.Generator | None = None, keep_members: KeepMembers = "final"
    ) -> Prediction:
        """Probabilities for `spikes` `(time, batch, inputs)` of zeros and ones. Only an Ensemble uses the generator."""
        spikes = torch.as_tensor(spikes)  # an array of numpy's will do
        check_binary(self.network, spikes)
        require(
            keep_members in ("all", "final", "none"),
            f"keep_members must be 'all', 'final' or 'none', but is {keep_members!r}.",
        )
        readout = self.network.layers[-1].readout
        spikes = spikes.to(readout.device)
        time, batch, _ = spikes.shape
        total = readout.new_zeros(time, batch, self.network.classes)
        answers = slice(min(len(self.network.layers), time - 1), None)  # the steps that can depend on the input
        kept = None
        if keep_members != "none":
            steps = (time,) if keep_members == "all" else ()
            kept = readout.new_empty(self.members, *steps, batch, self.network.classes)
        counts = torch.zeros(len(self.network.layers), dtype=torch.float64, device=readout.device)
        plain = self.gather == "mean"  # which is the same whether members or steps are averaged first
        tally = None
        if kept is not None and self.members > 1:
            tally = Tally(self.members, time, batch, over_time=keep_members == "all")
        limit = self.batch_limit() or batch
        for low in range(0, batch, limit):
            part = spikes[:, low : low + limit]
            for piece in self.unroll(part, generator):
                rows = slice(low + piece.rows.start, low + piece.rows.stop)
                said = piece.probabilities
                if not plain:
                    said[:, answers] = gathered(self.gather, said[:, answers])
                total[:, rows] += said.sum(dim=0)
                counts += piece.spikes
                if tally is not None:
                    tally.add(piece, rows)
                if kept is not None and keep_members == "all":
                    kept[piece.members, :, rows] = said
                elif kept is not None:
                    kept[piece.members, rows] = said[:, answers].mean(dim=1) if plain else said[:, -1]
        if plain:
            _average_over_time(total[answers])
            if kept is not None and keep_members == "all":
                _average_over_time(kept[:, answers])
        neurons = torch.tensor([layer.neurons for layer in self.network.layers], device=readout.device)
        rates = counts / (neurons * (self.members * time * batch))
        found = None if tally is None else tally.found.to(readout)
        return Prediction(total.div_(self.members), kept, rates.to(readout.dtype), found)

    def unroll(self, spikes: Tensor, generator: torch.Generator | None) -> Iterator[Outcome]:
        """What all members say about `spikes`, piece by piece."""
        return unroll_members(self.network, self.synapses(spikes.shape[1], generator), spikes)

    def open(
        self,
        batch: int = 1,
        generator: torch.Generator | None = None,
        confidence: float = 0.0,
        foreign: ForeignRule | None = None,
    ) -> Watch:
        """Start `batch` streams that decide at every time-step; see `bayspike.predict.watching`."""
        require_range("batch", batch, 1)
        synapses = self.synapses(batch, generator)
        return Watch(self.network, synapses, batch, confidence, foreign, self.gather)


class Point(Predictor):
    """One weight vector: a matrix `(neurons, pre)` for every layer."""

    def __init__(
        self, network: Network, weights: Sequence[Tensor], gather: Gather = "mean", kernels: Kernels = "plain"
    ) -> None:
        check_gather(gather)
        self.network, self.members, self.gather = network, 1, gather
        self._committee = Committee(network, [matrix.unsqueeze(0) for matrix in weights], kernels=kernels)

    @staticmethod
    def of(
        network: Network,
        posteriors: Sequence[Posterior],
        centre: Literal["mode", "mean"] = "mode",
        gather: Gather = "mean",
        kernels: Kernels = "plain",
    ) -> "Point":
        """The most probable or the mean weights; they differ for binary synapses."""
        require(centre in ("mode", "mean"), f"centre must be 'mode' or 'mean', but is {centre!r}.")
        centres = [each.mode() if centre == "mode" else each.mean() for each in posteriors]
        return Point(network, centres, gather, kernels)

    @property
    def weights(self) -> list[Tensor]:
        return [matrix[0] for matrix in self._committee.weights]

    def synapses(self, batch: int, generator: torch.Generator | None) -> list[Synapses]:
        return self._committee.synapses(batch, generator)

    def unroll(self, spikes: Tensor, generator: torch.Generator | None) -> Iterator[Outcome]:
        return self._committee.unroll(spikes, generator)


class Committee(Predictor):
    """N_S weight vectors kept for all inputs: weights `(members, neurons, pre)` for every layer.

    `kernels` says which form of the forward pass is used, see `bayspike.kernels`.
    """

    def __init__(
        self, network: Network, weights: Sequence[Tensor], gather: Gather = "mean", kernels: Kernels = "plain"
    ) -> None:
        check_gather(gather)
        require_kernels(kernels)
        self.network, self.gather = network, gather
        tables = _tables(network, weights)
        self._fixed = [Fixed(each, _maps(layer)) for each, layer in zip(tables, network.layers, strict=True)]
        self.members = self._fixed[0].members
        self._rows: list[Rows] | None = None  # the weights as compiled loops read them
        if kernels == "compiled":
            from bayspike.predict import compiled  # needs numba

            self._rows = compiled.rows_of(network, self._fixed)

    @staticmethod
    def draw(
        network: Network,
        posteriors: Sequence[Posterior],
        members: int = 10,
        *,
        generator: torch.Generator,
        grid: Grid | Literal["fit"] | None = None,
        gather: Gather = "mean",
        kernels: Kernels = "plain",
    ) -> "Committee":
        """Draw the members. `grid` rounds them to 8 bits: one grid for all, or the finest `fit` of each matrix."""
        require_range("members", members, 1)
        drawn = [each.sample(members, generator) for each in posteriors]
        if grid is not None:
            drawn = [torch.stack([_on_grid(matrix, grid) for matrix in matrices]) for matrices in drawn]
        return Committee(network, drawn, gather, kernels)

    @property
    def weights(self) -> list[Tensor]:
        return [fixed.tables.transpose(1, 2) for fixed in self._fixed]

    def synapses(self, batch: int, generator: torch.Generator | None) -> list[Synapses]:
        return list(self._fixed)

    def unroll(self, spikes: Tensor, generator: torch.Generator | None) -> Iterator[Outcome]:
        if self._rows is not None:
            from bayspike.predict import compiled

            if compiled.worthwhile(self._rows, spikes):
                return compiled.unroll_compiled(self.network, self._rows, spikes)
        return super().unroll(spikes, generator)


@dataclass(frozen=True)
class Ensemble(Predictor):
    """N_S weight vectors drawn afresh for every input.

    `draws` says how the inputs of one batch get theirs. In both cases the draws of any one input are exact, and its
    members are independent of each other.

    - `flipped`      the inputs of a batch share the sizes of the deviations and differ in random signs: two products
                     in place of a draw per input (`synapses.Flipped`). A Gaussian is its mean and a symmetric
                     deviation. A ±1 weight of mean μ is sign(μ) with probability |μ| and a fair coin otherwise;
                     the inputs share which weights are coins, and each has its own toss of them all.
    - `independent`  each input has draws of all its own: exact jointly too, slow, for any posterior; the reference.
    """

    network: Network
    posteriors: Sequence[Posterior]
    members: int = 10
    draws: Literal["flipped", "independent"] = "flipped"
    gather: Gather = "mean"

    def __post_init__(self) -> None:
        require_range("members", self.members, 1)
        check_gather(self.gather)
        require(
            self.draws in ("flipped", "independent"),
            f"draws must be 'flipped' or 'independent', but is {self.draws!r}.",
        )
        _tables(self.network, [each.mean().unsqueeze(0) for each in self.posteriors])  # refuses what does not fit

    def batch_limit(self) -> int | None:
        if self.draws == "flipped":
            return None
        weights = sum(prod(layer.shape) for layer in self.network.layers)
        return max(1, OWN_WEIGHTS_IN_FLIGHT // (weights * self.members))

    def synapses(self, batch: int, generator: torch.Generator | None) -> list[Synapses]:
        if generator is None:
            raise UserError("an Ensemble draws weights for every input: pass it a torch.Generator.")
        draw = self._flipped if self.draws == "flipped" else self._independent
        generator = draws.on_device(generator, self.network.layers[0].readout.device)
        return [
            draw(layer, posterior, batch, generator)
            for layer, posterior in zip(self.network.layers, self.posteriors, strict=True)
        ]

    def _independent(self, layer: Layer, posterior: Posterior, batch: int, generator: torch.Generator) -> Synapses:
        drawn = posterior.sample(self.members * batch, generator).to(layer.readout)
        return Own(drawn.unflatten(0, (self.members, batch)).transpose(2, 3), _maps(layer))

    def _flipped(self, layer: Layer, posterior: Posterior, batch: int, generator: torch.Generator) -> Synapses:
        if isinstance(posterior, distributions.Point | distributions.BinaryPoint):
            return Fixed(posterior.mean().T.to(layer.readout).expand(self.members, -1, -1).contiguous(), _maps(layer))
        centre, spread = _centre_and_spread(posterior, self.members, generator)
        maps = _maps(layer)
        inputs, outputs = (layer.pre, layer.neurons) if maps is None else (maps.below.channels, layer.shape[0])
        signs_in, signs_out = (_signs(layer, (batch, count), generator) for count in (inputs, outputs))
        return Flipped(
            centre.transpose(1, 2).to(layer.readout).contiguous(),
            spread.transpose(1, 2).to(layer.readout).contiguous(),
            signs_in.repeat(1, layer.pre // inputs) if maps else signs_in,
            signs_out.repeat(1, layer.places) if maps else signs_out,
            maps,
        )


def predict_samples(
    predictor: Predictor,
    samples: Samples,
    generator: torch.Generator,
    batch: int = 256,
    *,
    over_time: bool = True,
    keep_members: KeepMembers = "final",
    progress: Callable[[int, int], None] | None = None,
) -> Prediction:
    """Predict a whole data set in chunks. The generator encodes the spikes, and feeds an Ensemble.

    Without `over_time` only the last step's probabilities are kept, as a time of one. `progress` is called with the
    number of samples done and their total.
    """
    require_range("batch", batch, 1)
    require(len(samples) > 0, "there is nothing to predict: the samples are empty.")
    parts = []
    rates = torch.zeros(len(predictor.network.layers), dtype=torch.float64)
    for indices in torch.arange(len(samples)).split(batch):
        done = predictor.predict(samples.spikes(indices, generator), generator, keep_members)
        rates += done.rates.double().cpu() * len(indices)
        # a copy, lest the kept last step hold on to all of them
        parts.append(done if over_time else done._replace(probabilities=done.probabilities[-1:].clone()))
        if progress is not None:
            progress(int(indices[-1]) + 1, len(samples))
    members = [part.members for part in parts if part.members is not None]
    discords = [part.discord for part in parts if part.discord is not None]
    return Prediction(
        torch.cat([part.probabilities for part in parts], dim=1),
        torch.cat(members, dim=-2) if members else None,
        (rates / len(samples)).to(parts[0].rates),
        torch.cat(discords, dim=-1) if discords else None,
    )


def _average_over_time(probabilities: Tensor) -> None:
    """Replace those of every step by the mean up to it; time is the third dimension from the end."""
    seen = torch.arange(1, probabilities.shape[-3] + 1, device=probabilities.device).view(-1, 1, 1)
    torch.cumsum(probabilities, dim=-3, out=probabilities).div_(seen)


def _tables(network: Network, weights: Sequence[Tensor]) -> list[Tensor]:
    """Weights `(members, neurons, pre)` of every layer, checked, as tables `(members, pre, neurons)`."""
    require(
        len(weights) == len(network.layers),
        f"the network has {len(network.layers)} layers, but weights are given for {len(weights)}.",
    )
    tables = []
    for index, (layer, matrices) in enumerate(zip(network.layers, weights, strict=True)):
        fits = matrices.ndim == 3 and len(matrices) == len(weights[0]) > 0 and tuple(matrices.shape[1:]) == layer.shape
        require(
            fits,
            f"the weights of layer {index} must have the shape {layer.shape} for every member, and as many members as "
            f"those of layer 0, but have {tuple(matrices.shape)}.",
        )
        require(
            bool(torch.isfinite(matrices).all()),
            f"the weights of layer {index} hold NaN or infinity; training diverged or the file is damaged.",
        )
        tables.append(matrices.detach().transpose(1, 2).to(layer.readout).contiguous())
    return tables


def _maps(layer: Layer) -> Convolution | None:
    return layer if isinstance(layer, Convolution) else None


def _on_grid(matrix: Tensor, grid: Grid | Literal["fit"]) -> Tensor:
    return (grid_for(matrix) if grid == "fit" else grid).round(matrix)


def _centre_and_spread(posterior: Posterior, members: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A draw split into a part that all inputs share, `(1 or members, …)`, and one symmetric about zero."""
    if isinstance(posterior, distributions.Gaussian):
        return posterior.centre.unsqueeze(0), posterior.sample(members, generator).sub_(posterior.centre)
    if isinstance(posterior, distributions.Bernoulli):
        mean = posterior.mean()
        uniform = draws.uniform((members, *mean.shape), mean, generator)
        settled = uniform < mean.abs()
        # given that it is not settled, what is left of the uniform number tells a fair coin
        coin = torch.where(uniform < (1 + mean.abs()) / 2, 1.0, -1.0).to(mean.dtype)
        return torch.where(settled, mean.sign(), 0.0), torch.where(settled, 0.0, coin)
    raise UserError(
        f"there is no flipped draw for a posterior of kind {type(posterior).__name__}; choose draws='independent'."
    )


def _signs(layer: Layer, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    bits = torch.randint(2, shape, generator=generator, device=generator.device)
    return bits.to(layer.readout).mul_(2).sub_(1)
