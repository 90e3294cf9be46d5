"""Predictors against the plain loop over time and members, and their draws against the distributions they claim."""

import math

import pytest
import torch
from scipy.stats import chisquare, kstest
from sklearn.datasets import make_moons
from torch import Tensor

from bayspike.data.base import CoordinateSamples, SpikeSamples
from bayspike.data.encoders import PopulationCode, pack
from bayspike.errors import UserError
from bayspike.learning.batch import init_states, posteriors, train_batch
from bayspike.posteriors import distributions
from bayspike.posteriors.distributions import Bernoulli, BinaryPoint, Gaussian
from bayspike.posteriors.grid import Grid
from bayspike.predict import unrolled
from bayspike.predict.predictors import Committee, Ensemble, Point, predict_samples
from bayspike.predict.synapses import SpikeBlock, _events
from bayspike.predict.unrolled import check_binary
from bayspike.rules import SGD, GaussianVI
from bayspike.spiking.filters import Resonator
from bayspike.spiking.network import Network, NetworkConfig, build, unroll


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_spikes(time: int, batch: int, inputs: int, density: float, seed: int = 1) -> Tensor:
    return (torch.rand(time, batch, inputs, generator=seeded(seed)) < density).to(torch.uint8)


def gaussians(network: Network, scale: float = 0.5, precision: float = 4.0) -> list[Gaussian]:
    generator = seeded(2)
    out = []
    for layer in network.layers:
        mean = torch.randn(layer.shape, generator=generator, dtype=layer.readout.dtype) * scale
        out.append(Gaussian(mean, torch.full_like(mean, precision)))
    return out


def stepped(network: Network, spikes: Tensor, weights: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Eq. pred-conf-freq by the filter-first loop over time: probabilities so far, and rates of the layers."""
    emitted = unroll(network, spikes.to(weights[0].dtype), weights)
    each = torch.softmax(emitted[-1] @ network.layers[-1].readout.T, dim=-1)
    delay = len(network.layers)  # the first steps cannot know the input yet, and are not averaged
    torch.testing.assert_close(each[:delay], torch.full_like(each[:delay], 1 / each.shape[-1]))
    averaged = torch.stack([each[min(t, delay) : t + 1].mean(0) for t in range(len(each))])
    return averaged, torch.stack([layer.mean() for layer in emitted])


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("reset", ["zero", "subtract", "refractory"])
@pytest.mark.parametrize("hidden", [(30,), (30, 20, 25)])
@pytest.mark.parametrize(("time", "density"), [(1, 0.3), (3, 0.3), (15, 0.05), (15, 0.6)])
def test_committee_equals_stepping_through_time_member_by_member(recurrent, reset, hidden, time, density):
    network = build(NetworkConfig(40, hidden, 3, reset=reset, recurrent=recurrent, threshold=0.2), dtype=torch.float64)
    committee = Committee.draw(network, gaussians(network, 1.0), 5, generator=seeded())
    spikes = random_spikes(time, 7, 40, density)
    got = committee.predict(spikes, keep_members="all")
    alone = [stepped(network, spikes, [matrix[m] for matrix in committee.weights]) for m in range(5)]
    expected = torch.stack([probabilities for probabilities, _ in alone])
    torch.testing.assert_close(got.members, expected)
    torch.testing.assert_close(got.probabilities, expected.mean(0))
    torch.testing.assert_close(got.rates, torch.stack([rates for _, rates in alone]).mean(0))
    if time == 15 and density == 0.6:
        assert float(got.rates.min()) > 0.02, "the test says nothing of silent networks"


def test_other_filters_and_input_types_give_the_same_numbers():
    network = build(NetworkConfig(30, (20, 15), 4, reset="refractory"), torch.float64, Resonator(0.9, 8.0))
    weights = [posterior.mean() * 2 for posterior in gaussians(network, 1.0)]
    spikes = random_spikes(12, 5, 30, 0.4)
    expected, rates = stepped(network, spikes, weights)
    assert float(rates.min()) > 0
    for given in (spikes, spikes.bool(), spikes.float()):
        torch.testing.assert_close(Point(network, weights).predict(given).probabilities, expected)


def test_single_precision_agrees_but_for_spikes_that_fall_on_the_threshold():
    network = build(NetworkConfig(300, (128, 64), 10, threshold=0.2))
    committee = Committee.draw(network, gaussians(network, 0.3, 400.0), 4, generator=seeded())
    spikes = random_spikes(30, 40, 300, 0.1)
    got = committee.predict(spikes, keep_members="all").members
    for member in range(4):
        expected, rates = stepped(network, spikes, [matrix[member] for matrix in committee.weights])
        assert float(rates.min()) > 0.01
        same = (got[member] - expected).abs().amax(dim=(0, 2)) < 1e-5
        assert float(same.float().mean()) >= 0.95


def test_pieces_of_any_size_give_the_same(monkeypatch):
    network = build(NetworkConfig(40, (30, 20), 3, threshold=0.2), dtype=torch.float64)
    committee = Committee.draw(network, gaussians(network, 1.0), 5, generator=seeded())
    spikes = random_spikes(10, 9, 40, 0.4)
    whole = committee.predict(spikes, keep_members="all")
    monkeypatch.setattr(unrolled, "LEAST_ELEMENTS_A_STEP", 1)
    for limit in (1, 30 * 10 * 2, 30 * 10 * 9 * 3):
        monkeypatch.setattr(unrolled, "ELEMENTS_IN_FLIGHT", limit)
        pieces = committee.predict(spikes, keep_members="all")
        for ours, theirs in zip(pieces, whole, strict=True):
            torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("together", [1, 4])
@pytest.mark.parametrize("sets", [1, 2])
@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_products_by_events_and_by_patterns_equal_the_dense_product(together, sets, density):
    spikes = torch.stack([random_spikes(6, 5, 11, density, seed) for seed in range(sets)])
    tables = torch.randn(2, 11, 7, generator=seeded(), dtype=torch.float64)
    block = SpikeBlock(tuple(spikes.shape), None, _events(spikes, together), together)
    expected = torch.einsum("mtbp,mpn->mtbn", spikes.double().expand(2, -1, -1, -1), tables)
    torch.testing.assert_close(block.times(tables), expected)
    if together == 1:
        signs = torch.randint(2, (5, 11), generator=seeded()).double() * 2 - 1
        expected = torch.einsum("mtbp,mpn->mtbn", spikes.double().expand(2, -1, -1, -1) * signs, tables)
        torch.testing.assert_close(block.signed(signs).times(tables), expected)


def test_sparse_spikes_are_multiplied_as_events_and_few_or_dense_ones_as_they_are():
    large = (1, 40, 50, 100)
    sparse = (torch.rand(large, generator=seeded()) < 0.02).to(torch.uint8)
    half = (torch.rand(large, generator=seeded()) < 0.5).to(torch.uint8)
    assert SpikeBlock.of(sparse, 4000, torch.float32).events is not None
    assert SpikeBlock.of(sparse, 20, torch.float32).events is None  # looking for events would cost more
    assert SpikeBlock.of(half, 4000, torch.float32).together > 1
    assert SpikeBlock.of(half, 4000, torch.float32, join=False).events is None
    assert SpikeBlock.of(sparse[:, :1, :1], 4, torch.float32).events is None


def test_committee_and_ensemble_of_certain_weights_are_the_point():
    network = build(NetworkConfig(20, (15, 10), 3, threshold=0.2), dtype=torch.float64)
    weights = [posterior.mean() * 2 for posterior in gaussians(network, 1.0)]
    spikes = random_spikes(10, 6, 20, 0.4)
    expected = Point(network, weights).predict(spikes).probabilities
    assert float(expected.std()) > 0.01
    certain = [distributions.Point(matrix) for matrix in weights]
    committee = Committee.draw(network, certain, 4, generator=seeded())
    torch.testing.assert_close(committee.predict(spikes).probabilities, expected)
    for draws in ("flipped", "independent"):
        ensemble = Ensemble(network, certain, 4, draws)
        torch.testing.assert_close(ensemble.predict(spikes, seeded()).probabilities, expected)


def test_point_of_a_binary_posterior_is_its_signs_or_its_means():
    network = build(NetworkConfig(4, (3,), 2, binary=True))
    logits = torch.randn(3, 4, generator=seeded())
    torch.testing.assert_close(Point.of(network, [Bernoulli(logits)], "mean").weights[0], torch.tanh(logits))
    assert torch.equal(Point.of(network, [Bernoulli(logits)], "mode").weights[0], torch.sign(logits))
    assert torch.equal(Point.of(network, [BinaryPoint(logits)]).weights[0], torch.sign(logits))


def test_members_can_be_rounded_to_eight_bits():
    network = build(NetworkConfig(12, (9,), 2))
    posterior = gaussians(network)
    plain = Committee.draw(network, posterior, 3, generator=seeded()).weights[0]
    rounded = Committee.draw(network, posterior, 3, generator=seeded(), grid=Grid(0.25)).weights[0]
    torch.testing.assert_close(rounded, torch.round(plain / 0.25) * 0.25)
    fitted = Committee.draw(network, posterior, 3, generator=seeded(), grid="fit").weights[0]
    for drawn, on_grid in zip(plain, fitted, strict=True):
        step = float(drawn.abs().max()) / 127
        levels = on_grid / step
        torch.testing.assert_close(levels, levels.round(), atol=1e-3, rtol=0)
        assert float((on_grid - drawn).abs().max()) <= step / 2 * 1.001


def drawn_weights(ensemble: Ensemble, batch: int, seed: int) -> Tensor:
    """The weights each example sees, read off by one spike on one channel at a time: (members, batch, out, pre)."""
    pre = ensemble.network.layers[0].pre
    probe = torch.eye(pre, dtype=torch.uint8).view(1, pre, 1, pre).expand(1, pre, batch, pre)
    synapses = ensemble.synapses(batch, seeded(seed))[0]
    return synapses.arrive(probe)(slice(None)).permute(0, 2, 3, 1)


@pytest.mark.parametrize("draws", ["flipped", "independent"])
def test_every_example_of_a_gaussian_ensemble_sees_its_own_exact_draw(draws):
    network = build(NetworkConfig(3, (2,), 2), dtype=torch.float64)
    mean = torch.tensor([[0.5, -1.0, 2.0], [0.0, 3.0, -0.2]], dtype=torch.float64)
    precision = torch.tensor([[1.0, 4.0, 0.25], [2.0, 9.0, 16.0]], dtype=torch.float64)
    ensemble = Ensemble(network, [Gaussian(mean, precision)], 5, draws)
    runs = 1500
    weights = torch.stack(
        [drawn_weights(ensemble, 2, seed) for seed in range(runs)]
    )  # (runs, members, batch, out, pre)
    standard = (weights - mean) * precision.sqrt()
    for example in range(2):
        mine = standard[:, :, example].reshape(-1, 6)
        for weight in range(6):
            assert kstest(mine[:, weight].numpy(), "norm").pvalue > 1e-4
        # joint: no weight knows of another (of Gaussians: independence needs more, so squares and products as well)
        noise = 5 / math.sqrt(len(mine))
        torch.testing.assert_close(mine.T @ mine / len(mine), torch.eye(6).double(), atol=1.5 * noise, rtol=0)
        squares = mine.square() - 1
        off = squares.T @ squares / len(mine) - torch.diag((squares**2).mean(0))
        assert float(off.abs().max()) < 4 * noise
        fourth = (mine[:, 0] * mine[:, 1] * mine[:, 3] * mine[:, 4]).mean()  # the pattern r₀c₀·r₀c₁·r₁c₀·r₁c₁ = 1
        assert abs(float(fourth)) < 2 * noise
    between_examples = (standard[:, :, 0] * standard[:, :, 1]).mean(dim=(0, 1))
    between_members = (standard[:, 0] * standard[:, 1]).mean(dim=(0, 1))
    assert float(between_examples.abs().max()) < 5 / math.sqrt(runs * 5) * 1.5
    assert float(between_members.abs().max()) < 5 / math.sqrt(runs * 2) * 1.5


@pytest.mark.parametrize("draws", ["flipped", "independent"])
def test_every_example_of_a_binary_ensemble_sees_its_own_exact_draw(draws):
    network = build(NetworkConfig(2, (2,), 2, binary=True), dtype=torch.float64)
    logits = torch.tensor([[0.3, -0.6], [0.0, 1.0]], dtype=torch.float64)
    ensemble = Ensemble(network, [Bernoulli(logits)], 5, draws)
    weights = torch.stack([drawn_weights(ensemble, 3, seed) for seed in range(800)])
    assert bool((weights.abs() == 1).all())
    up = torch.sigmoid(2 * logits).flatten()
    patterns = torch.tensor([[(number >> bit) & 1 for bit in range(4)] for number in range(16)])
    expected = torch.where(patterns == 1, up, 1 - up).prod(dim=1)  # of all 16 matrices
    for example in range(3):
        ones = (weights[:, :, example].reshape(-1, 4) > 0).long()
        seen = torch.bincount((ones << torch.arange(4)).sum(dim=1), minlength=16)
        assert chisquare(seen.numpy(), (expected * len(ones)).numpy()).pvalue > 1e-4
    assert float((weights[:, :, 0] != weights[:, :, 1]).double().mean()) > 0.2


def test_flipped_and_independent_ensembles_predict_alike():
    network = build(NetworkConfig(12, (40, 20), 3, recurrent=True, threshold=0.3))
    posterior = gaussians(network, 0.8, 3.0)
    spikes = random_spikes(12, 4, 12, 0.5)
    means, spreads = [], []
    for draws in ("flipped", "independent"):
        members = Ensemble(network, posterior, 400, draws).predict(spikes, seeded()).members
        means.append(members.mean(0))
        spreads.append(members.std(0))
    noise = float(spreads[0].max()) * 5 / math.sqrt(400)
    assert float((means[0] - means[1]).abs().max()) < 1.5 * noise
    torch.testing.assert_close(spreads[0], spreads[1], atol=0.02, rtol=0.25)
    assert float(spreads[0].min()) > 0.02


def test_an_ensemble_draws_afresh_at_every_call_and_repeats_itself_from_one_seed():
    network = build(NetworkConfig(12, (40,), 3, threshold=0.3))
    ensemble = Ensemble(network, gaussians(network, 0.8, 3.0), 3)
    spikes = random_spikes(12, 4, 12, 0.5)
    generator = seeded()
    first, second = (ensemble.predict(spikes, generator).probabilities for _ in range(2))
    assert not torch.equal(first, second)
    assert torch.equal(first, ensemble.predict(spikes, seeded()).probabilities)
    twice = spikes[:, :1].expand(-1, 2, -1)
    got = ensemble.predict(twice, seeded()).members
    assert not torch.equal(got[:, 0], got[:, 1])  # the same input, other weights


def test_what_is_kept_of_the_members():
    network = build(NetworkConfig(12, (20,), 3, threshold=0.3))
    committee = Committee.draw(network, gaussians(network, 1.0), 3, generator=seeded())
    spikes = random_spikes(8, 4, 12, 0.5)
    everything = committee.predict(spikes, keep_members="all").members
    assert everything.shape == (3, 8, 4, 3)
    torch.testing.assert_close(committee.predict(spikes).members, everything[:, -1])
    assert committee.predict(spikes, keep_members="none").members is None


def test_a_data_set_is_predicted_in_chunks():
    network = build(NetworkConfig(12, (20,), 3, threshold=0.3))
    committee = Committee.draw(network, gaussians(network, 1.0), 3, generator=seeded())
    spikes = random_spikes(8, 11, 12, 0.5)
    packed = torch.from_numpy(pack(spikes.transpose(0, 1).numpy()))
    samples = SpikeSamples(packed, torch.zeros(11, dtype=torch.int64), 8, 12)
    seen = []
    got = predict_samples(committee, samples, seeded(), 4, progress=lambda done, total: seen.append((done, total)))
    for ours, whole in zip(got, committee.predict(spikes), strict=True):
        torch.testing.assert_close(ours, whole)
    assert seen == [(4, 11), (8, 11), (11, 11)]
    last = predict_samples(committee, samples, seeded(), 4, over_time=False, keep_members="none")
    torch.testing.assert_close(last.probabilities, got.probabilities[-1:])
    assert last.members is None
    with pytest.raises(UserError, match="empty"):
        predict_samples(committee, samples.subset(torch.arange(0)), seeded())


def test_bad_input_is_refused_with_a_sentence():
    network = build(NetworkConfig(5, (4,), 2))
    point = Point(network, [torch.zeros(4, 5)])
    with pytest.raises(UserError, match=r"shape \(time, batch, 5\)"):
        point.predict(torch.zeros(3, 2, 6))
    with pytest.raises(UserError, match="not finite"):
        point.predict(torch.full((3, 2, 5), float("nan")))
    for graded in (torch.full((3, 2, 5), 2, dtype=torch.uint8), torch.full((3, 2, 5), 0.5), -torch.ones(3, 2, 5)):
        with pytest.raises(UserError, match="0 or 1"):
            point.predict(graded)
    with pytest.raises(UserError, match="at least one time-step"):
        check_binary(network, torch.zeros(0, 2, 5))
    with pytest.raises(UserError, match="keep_members"):
        point.predict(torch.zeros(3, 2, 5), keep_members="some")
    with pytest.raises(UserError, match=r"layer 0 must have the shape \(4, 5\)"):
        Point(network, [torch.zeros(5, 4)])
    with pytest.raises(UserError, match="1 layers"):
        Point(network, [torch.zeros(4, 5), torch.zeros(2, 4)])
    with pytest.raises(UserError, match="NaN"):
        Point(network, [torch.full((4, 5), float("nan"))])
    with pytest.raises(UserError, match="centre"):
        Point.of(network, [distributions.Point(torch.zeros(4, 5))], "median")
    with pytest.raises(UserError, match="members"):
        Committee.draw(network, gaussians(network), 0, generator=seeded())
    with pytest.raises(UserError, match=r"torch\.Generator"):
        Ensemble(network, gaussians(network)).predict(torch.zeros(3, 2, 5))
    with pytest.raises(UserError, match="draws"):
        Ensemble(network, gaussians(network), 3, "shared")

    class Odd(distributions.Point):
        pass

    class Strange:
        mean = mode = staticmethod(lambda: torch.zeros(4, 5))

    Ensemble(network, [Odd(torch.zeros(4, 5))]).predict(torch.zeros(3, 2, 5), seeded())
    with pytest.raises(UserError, match="independent"):
        Ensemble(network, [Strange()]).predict(torch.zeros(3, 2, 5), seeded())


def test_two_moons_far_from_the_data_the_bayesian_is_unsure_and_the_frequentist_is_not():
    """The prior's spread is that of the frequentist start: where no data has been, both are the same distribution."""
    code = PopulationCode((-4.0, -4.0), (5.0, 4.5), 20)
    time, deviation = 30, math.sqrt(10)

    def moons(seed: int) -> CoordinateSamples:
        points, labels = make_moons(200, noise=0.1, random_state=seed)
        return CoordinateSamples(torch.tensor(points, dtype=torch.float32), torch.tensor(labels), time, code)

    train, near = moons(0), moons(1)
    corners = torch.cartesian_prod(
        torch.tensor([-3.5, -3.0, 3.8, 4.2]), torch.tensor([-3.5, -3.0, -2.5, 3.0, 3.5, 4.0])
    )
    far = CoordinateSamples(corners, torch.zeros(24, dtype=torch.int64), time, code)
    network = build(NetworkConfig(code.inputs, (64,), 2, readout_scale=12.0))
    confidence = {}
    for name, rule in {
        "frequentist": SGD(lr=0.5, init_scale=deviation * math.sqrt(code.inputs)),
        "bayesian": GaussianVI(
            lr=10.0, precision_lr=100.0, temperature=3e-5, prior_precision=deviation**-2, init_precision=10.0
        ),
    }.items():
        generator = seeded(1)
        states = init_states(network, rule, generator)
        for _ in range(20):
            for batch in torch.randperm(200, generator=generator).split(50):
                spikes, labels = train.spikes(batch, generator), train.labels[batch]
                states, _ = train_batch(network, rule, states, spikes, labels, generator)
        learnt = posteriors(rule, states)
        predictor = (
            Committee.draw(network, learnt, generator=generator) if name == "bayesian" else Point.of(network, learnt)
        )
        at_home = predict_samples(predictor, near, generator).probabilities[-1]
        assert float((at_home.argmax(1) == near.labels).float().mean()) > 0.97
        abroad = predict_samples(predictor, far, generator).probabilities[-1]
        confidence[name] = (float(at_home.amax(1).mean()), float(abroad.amax(1).mean()))
    home, abroad = confidence["bayesian"]
    assert home > 0.88
    assert home - abroad > 0.3
    assert confidence["frequentist"][1] - abroad > 0.08
