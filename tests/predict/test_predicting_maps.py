"""Predictors on convolutions and poolings against the plain loop over time with the same weights."""

import pytest
import torch
from torch import Tensor

from bayspike.posteriors.distributions import Bernoulli, Gaussian, Posterior
from bayspike.predict import predictors, unrolled
from bayspike.predict.predictors import Committee, Ensemble, Point
from bayspike.predict.synapses import Flipped
from bayspike.spiking.network import Network, NetworkConfig, build, unroll

F64 = torch.float64
TIME, BATCH, MEMBERS = 9, 6, 3
STACKS = {
    "sums": ("3c3-2p-4c3-6", (2, 9, 8)),
    "strides": ("3c5s2p1-4c2p0-6r", (2, 11, 9)),
    "maxima": ("3c3-2m-5r", (7, 6)),
    "pooled inputs": ("2p-4c3s2-2p", (2, 13, 14)),
    "pooled inputs of a dense layer": ("3p-8r-5", (2, 9, 9)),
}


def network_of(name: str) -> tuple[Network, Tensor]:
    words, shape = STACKS[name]
    inputs = int(torch.tensor(shape).prod())
    config = NetworkConfig(inputs, (), 3, membrane_decay=0.8, layers=words, shape=shape, threshold=0.2)
    spikes = (torch.rand(TIME, BATCH, inputs, generator=torch.Generator().manual_seed(1)) < 0.3).to(torch.uint8)
    return build(config, F64), spikes


def posteriors_of(network: Network) -> list[Posterior]:
    generator = torch.Generator().manual_seed(2)
    found: list[Posterior] = []
    for layer in network.layers:
        mean = 3 * torch.randn(layer.shape, generator=generator, dtype=F64) / layer.pre**0.5
        found.append(Gaussian(mean, torch.full_like(mean, layer.pre)))
    return found


def by_the_loop(network: Network, spikes: Tensor, weights: list[Tensor]) -> Tensor:
    """Cumulative probabilities `(time, batch, classes)` of one member."""
    last = network.layers[-1]
    logits = last.read(unroll(network, spikes.to(F64), weights)[-1]) @ last.readout.T
    delay, steps = len(network.layers), torch.softmax(logits, dim=-1)
    answers = steps[delay:].cumsum(0) / torch.arange(1, TIME - delay + 1).view(-1, 1, 1)
    return torch.cat([torch.full_like(steps[:delay], 1 / 3), answers])


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.parametrize("in_flight", [1 << 23, 500], ids=["at once", "piece by piece"])
def test_a_committee_is_the_loop_over_time(name: str, in_flight: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unrolled, "ELEMENTS_IN_FLIGHT", in_flight)
    monkeypatch.setattr(unrolled, "LEAST_ELEMENTS_A_STEP", 1)
    network, spikes = network_of(name)
    committee = Committee.draw(network, posteriors_of(network), MEMBERS, generator=torch.Generator().manual_seed(3))
    done = committee.predict(spikes, keep_members="all")
    assert done.members is not None
    for member in range(MEMBERS):
        weights = [matrices[member] for matrices in committee.weights]
        torch.testing.assert_close(done.members[member], by_the_loop(network, spikes, weights))
    assert done.rates.min() > 0.005


@pytest.mark.parametrize("name", STACKS)
def test_a_stream_is_the_committee_one_step_at_a_time(name: str) -> None:
    network, spikes = network_of(name)
    committee = Committee.draw(network, posteriors_of(network), MEMBERS, generator=torch.Generator().manual_seed(3))
    expected, watch = committee.predict(spikes).probabilities, committee.open(BATCH)
    for t in range(TIME):
        torch.testing.assert_close(watch.push(spikes[t]).probabilities, expected[t])


@pytest.mark.parametrize("draws", ["flipped", "independent"])
@pytest.mark.parametrize("name", STACKS)
def test_every_input_of_an_ensemble_has_the_weights_it_is_said_to_have(
    name: str, draws: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, spikes = network_of(name)
    ensemble = Ensemble(network, posteriors_of(network), MEMBERS, draws)  # type: ignore[arg-type]
    kept: list[list[predictors.Synapses]] = []
    original = Ensemble.synapses

    def remembered(self: Ensemble, batch: int, generator: torch.Generator | None) -> list[predictors.Synapses]:
        kept.append(original(self, batch, generator))
        return kept[-1]

    monkeypatch.setattr(Ensemble, "synapses", remembered)
    done = ensemble.predict(spikes, torch.Generator().manual_seed(4), keep_members="all")
    assert done.members is not None
    for member in range(MEMBERS):
        for example in range(BATCH):
            weights = [_matrix(each, member, example) for each in kept[0]]
            alone = by_the_loop(network, spikes[:, example : example + 1], weights)
            torch.testing.assert_close(done.members[member][:, example : example + 1], alone)


def _matrix(synapses: predictors.Synapses, member: int, example: int) -> Tensor:
    if not isinstance(synapses, Flipped):
        return synapses.tables[member, example].T  # type: ignore[attr-defined]
    rows = synapses.spread.shape[2]
    signs = torch.outer(synapses.signs_in[example], synapses.signs_out[example][:rows])
    return (synapses.centre[0] + synapses.spread[member] * signs).T


def test_a_binary_ensemble_on_maps() -> None:
    words, shape = STACKS["sums"]
    network = build(NetworkConfig(144, (), 3, binary=True, layers=words, shape=shape), F64)
    logits = [torch.randn(layer.shape, dtype=F64) for layer in network.layers]
    done = Ensemble(network, [Bernoulli(each) for each in logits], 4).predict(
        network_of("sums")[1], torch.Generator().manual_seed(0)
    )
    torch.testing.assert_close(done.probabilities.sum(-1), torch.ones(TIME, BATCH, dtype=F64))


def test_the_mean_is_a_point() -> None:
    network, spikes = network_of("strides")
    posteriors = posteriors_of(network)
    done = Point.of(network, posteriors, "mean").predict(spikes)
    torch.testing.assert_close(done.probabilities, by_the_loop(network, spikes, [each.mean() for each in posteriors]))
