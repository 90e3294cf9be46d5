"""The controls keep what they promise to keep, and tell a posterior with structure from one without."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from bayspike.data.base import SpikeSamples
from bayspike.data.encoders import pack
from bayspike.errors import UserError
from bayspike.posteriors.distributions import Bernoulli, BinaryPoint, Gaussian, Point, variance_of
from bayspike.predict.controls import CONTROLS, NOISES, control, judge_controls, noisy, trace_power
from bayspike.predict.predictors import Committee, predict_samples
from bayspike.predict.temperature import Temperature
from bayspike.seeds import generator_for
from bayspike.spiking.network import NetworkConfig, build, unroll


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def samples(spikes: Tensor, labels: Tensor) -> SpikeSamples:
    """Spikes `(time, n, inputs)` as packed samples."""
    packed = torch.from_numpy(pack(spikes.permute(1, 0, 2).numpy().astype("uint8")))
    return SpikeSamples(packed, labels, spikes.shape[0], spikes.shape[2])


GAUSSIAN = Gaussian(torch.randn(7, 12, generator=generator(1)), torch.rand(7, 12, generator=generator(2)) * 50 + 1)
BERNOULLI = Bernoulli(torch.randn(7, 12, generator=generator(3)) * 1.5)
POWER = torch.rand(12, generator=generator(4))


@pytest.mark.parametrize("posterior", [GAUSSIAN, BERNOULLI], ids=["gaussian", "bernoulli"])
def test_constant_keeps_the_mean_variance_and_permuted_all_variances(posterior: Gaussian | Bernoulli) -> None:
    before = variance_of(posterior)
    constant = variance_of(control("constant", posterior, POWER, generator()))
    assert torch.allclose(constant, before.mean().expand_as(before), atol=1e-5)
    permuted = variance_of(control("permuted", posterior, POWER, generator()))
    assert not torch.equal(permuted, before)
    assert torch.allclose(permuted.flatten().sort().values, before.flatten().sort().values, atol=1e-5)


@pytest.mark.parametrize("posterior", [GAUSSIAN, BERNOULLI], ids=["gaussian", "bernoulli"])
def test_centres_stay(posterior: Gaussian | Bernoulli) -> None:
    for name in CONTROLS:
        changed = control(name, posterior, POWER, generator())
        assert torch.equal(changed.mode(), posterior.mode()), name
    assert not variance_of(control("zero", posterior, POWER, generator())).any()


def test_matched_noise_gives_potentials_of_the_same_variance() -> None:
    """Measured: potentials of many drawn weights on the traces of a real input stream."""
    network = build(NetworkConfig(12, (7,), 3, synapse_decay=0.3, membrane_decay=0.6))
    spikes = (torch.rand(40, 200, 12, generator=generator(5)) < POWER / 2).float()
    data = samples(spikes, torch.zeros(200, dtype=torch.int64))
    power = trace_power(network, [GAUSSIAN], data, generator())[0]
    matched = control("matched", GAUSSIAN, power, generator())
    filtering = network.layers[0].neuron.filter
    state, traces = filtering.start(200, 12, torch.float32, torch.device("cpu")), []
    for frame in spikes:
        traces.append(state.trace.clone())
        state = filtering.step(state, frame)
    pre = torch.cat(traces)
    spread = {}
    for name, posterior in (("learnt", GAUSSIAN), ("matched", matched)):
        noise = posterior.sample(400, generator(6)) - posterior.mean()
        spread[name] = float(torch.einsum("bp,mnp->mnb", pre[::20], noise).var(dim=0).mean())
    assert spread["matched"] == pytest.approx(spread["learnt"], rel=0.05)


def test_a_point_with_noise() -> None:
    weights = torch.randn(5, 9, generator=generator(7))
    drawn = noisy(Point(weights), 0.5).sample(20_000, generator())
    assert float((drawn - weights).std()) == pytest.approx(0.5 * float(weights.square().mean().sqrt()), rel=0.02)
    signs = BinaryPoint(weights).mode()
    flipped = (noisy(BinaryPoint(weights), 0.1).sample(20_000, generator()) != signs).float().mean()
    assert float(flipped) == pytest.approx(0.1, rel=0.02)


@pytest.fixture(scope="module")
def structured() -> dict[str, object]:
    """Eight inputs that carry the label, known well; eight that never fire at home, not known at all."""
    network = build(NetworkConfig(16, (40,), 2, synapse_decay=0.0, membrane_decay=0.5, readout_scale=12.0))
    labels = torch.arange(400) % 2
    rates = torch.zeros(400, 16)
    rates[labels == 0, :4], rates[labels == 1, 4:8] = 0.8, 0.8
    own = (torch.rand(15, 400, 16, generator=generator(8)) < rates).float()
    strange = torch.zeros(400, 16)
    strange[:, :4], strange[:, 8:] = 0.8, 0.3
    foreign = (torch.rand(15, 400, 16, generator=generator(9)) < strange).float()
    readout = network.layers[0].readout
    towards = torch.where(readout[0] > readout[1], 1.0, -1.0)
    mean = torch.zeros(40, 16)
    mean[:, :4], mean[:, 4:8] = 1.2 * towards[:, None], -1.2 * towards[:, None]
    precision = torch.full((40, 16), 400.0)
    precision[:, 8:] = 0.5
    everything = samples(own, labels)
    return {
        "network": network,
        "posteriors": [Gaussian(mean, precision)],
        "own": everything.subset(torch.arange(200, 400)),
        "foreign": samples(foreign, labels),
        "held_out": everything.subset(torch.arange(200)),
    }


def test_structure_is_seen_in_foreign_inputs(structured: dict[str, object]) -> None:
    found = judge_controls(**structured, members=8)  # type: ignore[arg-type]
    assert set(found) == {"learnt", *CONTROLS}
    learnt = found["learnt"]
    assert learnt.accuracy > 0.95
    assert learnt.auroc_mutual_information is not None
    for name in ("constant", "permuted", "matched"):
        rival = found[name].auroc_mutual_information
        assert rival is not None
        assert learnt.auroc_mutual_information > rival + 0.05, (name, learnt, found[name])
    assert found["zero"].auroc_mutual_information is None
    assert found["zero"].auroc_entropy is not None


def test_the_noise_of_a_point_is_chosen_on_held_out_examples(structured: dict[str, object]) -> None:
    point = {**structured, "posteriors": [Point(structured["posteriors"][0].mean())]}  # type: ignore[index]
    found = judge_controls(**point, members=4)  # type: ignore[arg-type]
    assert set(found) == {"point", "noise"}
    assert "root mean square" in found["noise"].about
    assert found["noise"].auroc_mutual_information is not None


def test_that_noise_is_best_on_the_held_out_examples_and_not_on_the_others(structured: dict[str, object]) -> None:
    """A sixth of the held-out labels is wrong, so that they want answers less sure than the others do."""
    network = build(NetworkConfig(16, (40,), 2, synapse_decay=0.0, membrane_decay=0.5, readout_scale=4.0))
    readout = network.layers[0].readout
    towards = 0.6 * torch.where(readout[0] > readout[1], 1.0, -1.0)[:, None]
    weights = Point(torch.cat([towards.expand(40, 4), -towards.expand(40, 4), torch.zeros(40, 8)], dim=1))
    own, clean = structured["own"], structured["held_out"]
    labels = clean.labels.clone()  # type: ignore[attr-defined]
    labels[::6] = 1 - labels[::6]
    held_out = replace(clean, labels=labels)  # type: ignore[type-var]

    def loss(data: SpikeSamples, size: float) -> float:
        committee = Committee.draw(network, [noisy(weights, size)], 4, generator=generator_for(0, "committee"))
        answers = predict_samples(committee, data, generator_for(0, "controls", 0)).probabilities[-1].double().numpy()
        return float(-np.log(answers[np.arange(len(data)), data.labels.numpy()]).mean())

    by_held_out, by_own = ({size: loss(data, size) for size in NOISES} for data in (held_out, own))  # type: ignore[arg-type]
    best = min(by_held_out, key=by_held_out.__getitem__)
    assert best not in (NOISES[0], NOISES[-1], min(by_own, key=by_own.__getitem__))
    found = judge_controls(network, [weights], own, None, held_out, members=4)["noise"]  # type: ignore[arg-type]
    assert found.about.startswith(f"{best:g} of")
    assert found.nll == pytest.approx(by_own[best], rel=1e-4)


def test_controls_gather_and_are_scaled_as_asked(structured: dict[str, object]) -> None:
    """By hand: every step's logarithms added up, the members' mean, raised to 1/T; a T of each committee."""
    asked = []

    def calibrate(committee: Committee) -> Temperature:
        asked.append(committee)
        return Temperature(5.0 * len(asked), 1, 0.0, 0.0)

    rest = {name: value for name, value in structured.items() if name != "foreign"}
    found = judge_controls(**rest, foreign=None, members=4, gather="logits", calibrate=calibrate)  # type: ignore[arg-type]
    assert [committee.members for committee in asked] == [4, 4, 4, 4, 1]
    own = structured["own"]
    spikes = own.spikes(torch.arange(len(own)), generator()).float()  # type: ignore[attr-defined, arg-type]
    right = np.arange(len(own)), own.labels.numpy()  # type: ignore[attr-defined, arg-type]
    for number, (name, committee) in enumerate(zip(found, asked, strict=True)):
        answers = []
        for weights in committee.weights[0]:
            (fired,) = unroll(committee.network, spikes, [weights])
            logits = fired.double() @ committee.network.layers[0].readout.double().T
            # the first step of one layer cannot know of the signal
            each = torch.log_softmax(logits[1:], dim=-1).clamp_min(np.log(1e-9)).mean(dim=0)
            answers.append(torch.softmax(each, dim=-1))
        scaled = (torch.stack(answers).mean(dim=0) ** (1 / (5 * (number + 1)))).numpy()
        by_hand = -np.log((scaled / scaled.sum(axis=1, keepdims=True))[right]).mean()
        assert found[name].nll == pytest.approx(by_hand, rel=1e-4), name


def test_unknown_controls_are_refused() -> None:
    with pytest.raises(UserError, match="no control 'shuffled'"):
        control("shuffled", GAUSSIAN, POWER, generator())
