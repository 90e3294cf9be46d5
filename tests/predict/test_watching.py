"""Streams against the batch form, abstention, and the promise of the rule for foreign inputs."""

import math

import pytest
import torch

from bayspike.errors import UserError
from bayspike.posteriors.distributions import Bernoulli, Gaussian
from bayspike.predict.predictors import Committee, Ensemble, Point
from bayspike.predict.watching import ForeignRule, calibrate_foreign, uncertainty_score
from bayspike.spiking.network import NetworkConfig, build


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def predictor_of(kind, network, binary=False):
    generator = seeded(3)
    posterior = []
    for layer in network.layers:
        mean = torch.randn(layer.shape, generator=generator, dtype=layer.readout.dtype)
        posterior.append(Bernoulli(mean) if binary else Gaussian(mean, torch.full_like(mean, 4.0)))
    if kind == "point":
        return Point.of(network, posterior)
    if kind == "committee":
        return Committee.draw(network, posterior, 4, generator=generator)
    return Ensemble(network, posterior, 4, kind)


@pytest.mark.parametrize("kind", ["point", "committee", "flipped", "independent"])
@pytest.mark.parametrize("reset", ["zero", "subtract", "refractory"])
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("binary", [False, True])
def test_a_stream_decides_as_the_batch_form_does_at_every_step(kind, reset, recurrent, binary):
    config = NetworkConfig(30, (20, 15), 3, reset=reset, recurrent=recurrent, threshold=0.15)
    network = build(config, dtype=torch.float64)
    predictor = predictor_of(kind, network, binary)
    spikes = (torch.rand(12, 5, 30, generator=seeded(1)) < 0.3).to(torch.uint8)
    whole = predictor.predict(spikes, seeded(7), keep_members="all")
    assert float(whole.rates.min()) > 0.01
    stream = predictor.open(5, seeded(7))
    for t, spikes_t in enumerate(spikes):
        decision = stream.push(spikes_t)
        torch.testing.assert_close(decision.probabilities, whole.probabilities[t])
        torch.testing.assert_close(stream.members, whole.members[:, t])
        assert decision.time == t + 1
    best = whole.probabilities[-1].max(dim=-1)
    assert torch.equal(decision.label, best.indices)
    torch.testing.assert_close(decision.confidence, best.values)
    # mutual information, written out
    p = whole.members[:, -1]
    total = -(p.mean(0) * p.mean(0).log()).sum(-1)
    torch.testing.assert_close(decision.epistemic, total + (p * p.log()).sum(-1).mean(0), atol=1e-9, rtol=1e-6)


def test_a_stream_abstains_below_the_confidence_asked_for():
    network = build(NetworkConfig(30, (20,), 3, threshold=0.3))
    predictor = predictor_of("committee", network)
    spikes = (torch.rand(10, 40, 30, generator=seeded(1)) < 0.3).to(torch.uint8)
    final = predictor.predict(spikes).probabilities[-1].amax(-1)
    asked = float(final.median())
    stream = predictor.open(40, confidence=asked)
    first = stream.push(spikes[0])
    assert bool(first.abstain.all())  # nothing has reached the read-out yet
    torch.testing.assert_close(first.confidence, torch.full((40,), 1 / 3))
    for spikes_t in spikes[1:]:
        decision = stream.push(spikes_t)
    assert torch.equal(decision.abstain, decision.confidence < asked)
    assert 0 < int(decision.abstain.sum()) < 40
    assert not bool(decision.foreign.any())
    everything = predictor.open(40)
    for spikes_t in spikes:
        assert not bool(everything.push(spikes_t).abstain.any())


def test_memory_of_a_stream_does_not_grow_with_time():
    network = build(NetworkConfig(10, (8, 6), 2))
    stream = predictor_of("committee", network).open(2)

    def kept() -> int:
        arriving = [each for pair in stream._on_their_way for each in pair]
        tensors = [stream._gathering._said, stream._gathering._weight, stream._fired, *arriving]
        for filtered, refractory, spikes in stream._states:
            tensors += [*filtered, refractory, spikes]
        return sum(tensor.untyped_storage().nbytes() for tensor in tensors)

    spikes = torch.ones(2, 10, dtype=torch.uint8)
    stream.push(spikes)
    early = kept()
    for _ in range(50):
        stream.push(spikes)
    assert kept() <= early


def test_foreign_thresholds_hold_the_promised_rate_of_false_alarms():
    """Exchangeable simulated scores: over many calibrations the rate of alarms is the one promised."""
    generator, alarms = seeded(), []
    for _ in range(400):
        members = torch.softmax(torch.randn(3, 2, 60, 4, generator=generator), dim=-1)
        rule = calibrate_foreign(members[:, :, :40], 0.1, "entropy")
        alarms.append(torch.stack([rule.flags(members[:, t, 40:], t + 1) for t in range(2)]).double().mean())
    rate = float(torch.stack(alarms).mean())
    exact = 1 - math.ceil(41 * 0.9) / 41  # of a continuous score
    assert abs(rate - exact) < 0.012
    assert exact <= 0.1


def test_a_stream_flags_inputs_that_its_members_dispute():
    network = build(NetworkConfig(30, (40,), 2, readout_scale=8.0))
    mean = torch.zeros(40, 30)
    mean[:, :15] = torch.randn(40, 15, generator=seeded(2)) * 2
    precision = torch.full((40, 30), 1e4)
    precision[:, 15:] = 0.2  # nothing is known of the last fifteen channels
    committee = Committee.draw(network, [Gaussian(mean, precision)], 10, generator=seeded())
    own = torch.zeros(20, 100, 30, dtype=torch.uint8)
    own[:, :, :15] = (torch.rand(20, 100, 15, generator=seeded(1)) < 0.4).to(torch.uint8)
    strange = own.flip(2)
    rule = calibrate_foreign(committee.predict(own[:, :60], keep_members="all").members, 0.1)
    assert rule.thresholds.shape == (20,)
    flagged = []
    for spikes in (own[:, 60:], strange[:, 60:]):
        stream = committee.open(40, foreign=rule)
        for spikes_t in spikes:
            decision = stream.push(spikes_t)
        assert torch.equal(decision.abstain, decision.foreign)
        flagged.append(float(decision.foreign.float().mean()))
    assert flagged[0] < 0.3
    assert flagged[1] > 0.9
    assert not bool(rule.flags(committee.predict(own[:, :60]).members, 99).double().mean() > 0.11)  # past its last step


def test_scores_by_hand():
    members = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    for score, expected in {"confidence": 0.5, "entropy": math.log(2), "mutual_information": math.log(2)}.items():
        assert uncertainty_score(members, score).item() == pytest.approx(expected)
    agreed = torch.tensor([[[0.5, 0.5]], [[0.5, 0.5]]])
    assert uncertainty_score(agreed, "mutual_information").item() == pytest.approx(0.0, abs=1e-12)


def test_bad_streams_are_refused_with_a_sentence():
    network = build(NetworkConfig(10, (8,), 2))
    predictor = predictor_of("point", network)
    stream = predictor.open(2)
    with pytest.raises(UserError, match="no time-step yet"):
        _ = stream.members
    with pytest.raises(UserError, match=r"shape \(2, 10\)"):
        stream.push(torch.zeros(3, 10))
    with pytest.raises(UserError, match=r"shape \(2, 10\)"):
        stream.push(torch.zeros(2, 1, 10))
    with pytest.raises(UserError, match="10"):
        stream.push(torch.zeros(2, 9))
    with pytest.raises(UserError, match="not finite"):
        stream.push(torch.full((2, 10), float("nan")))
    with pytest.raises(UserError, match="confidence"):
        predictor.open(2, confidence=1.5)
    with pytest.raises(UserError, match="batch"):
        predictor.open(0)
    with pytest.raises(UserError, match=r"Generator"):
        predictor_of("flipped", network).open(2)
    members = torch.full((2, 3, 10, 2), 0.5)
    with pytest.raises(UserError, match="at least 19"):
        calibrate_foreign(members, 0.05)
    with pytest.raises(UserError, match="keep_members='all'"):
        calibrate_foreign(members[:, 0])
    with pytest.raises(UserError, match="score"):
        ForeignRule("distance", torch.zeros(3))
    with pytest.raises(UserError, match="thresholds"):
        ForeignRule("entropy", torch.zeros(0))


def test_a_long_silence_is_the_same_as_its_steps_one_by_one() -> None:
    network = build(NetworkConfig(inputs=6, hidden=(5, 4), classes=3, seed=1))
    generator = torch.Generator().manual_seed(0)
    weights = [torch.randn(2, *layer.shape, generator=generator) for layer in network.layers]
    events = torch.rand(20, 1, 6, generator=generator) < 0.5
    slow, fast = (Committee(network, weights).open(1) for _ in range(2))
    for spikes in events:
        slow.push(spikes)
        fast.push(spikes)
    for _ in range(3_000):
        stepwise = slow.push(torch.zeros(1, 6, dtype=torch.uint8))
    at_once = fast.rest(3_000)
    assert at_once.time == stepwise.time == 3_020
    torch.testing.assert_close(at_once.probabilities, stepwise.probabilities)
    for spikes in events:  # and awake again afterwards
        torch.testing.assert_close(fast.push(spikes).probabilities, slow.push(spikes).probabilities)
    began = fast.time
    assert fast.rest(10**12).time == began + 10**12  # a second's work, not years


def test_a_network_that_never_rests_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bayspike.predict.watching.LONGEST_ECHO", 50)
    network = build(NetworkConfig(inputs=2, hidden=(3,), classes=2, seed=0, recurrent=True))
    watch = Committee(network, [torch.full((1, *network.layers[0].shape), 50.0)]).open(1)
    watch.push(torch.ones(1, 2, dtype=torch.uint8))
    with pytest.raises(UserError, match="still active"):
        watch.rest(10**9)


def test_a_step_may_come_as_numpy_has_it_and_alone():
    network = build(NetworkConfig(10, (8, 6), 2))
    first, second = (predictor_of("committee", network).open(1) for _ in range(2))
    frame = torch.ones(1, 10, dtype=torch.uint8)
    one, other = first.push(frame), second.push(frame[0].numpy())
    assert torch.equal(one.probabilities, other.probabilities)
