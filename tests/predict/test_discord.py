"""Discord, the share of members' spiking in which they differ: by hand, in every form of the pass, and on a stream."""

import pytest
import torch
from torch import Tensor

from bayspike.errors import UserError
from bayspike.metrics import auroc
from bayspike.posteriors.distributions import Gaussian
from bayspike.predict.controls import judge_controls
from bayspike.predict.discord import discord
from bayspike.predict.predictors import Committee, Ensemble, Point
from bayspike.predict.watching import calibrate_foreign, uncertainty_score
from bayspike.spiking.network import Network, NetworkConfig, Weights, build, network_step

TIME, BATCH, MEMBERS = 12, 7, 6


def committee(hidden: tuple[int, ...], seed: int = 0) -> tuple[Network, Committee, Tensor]:
    network = build(NetworkConfig(40, hidden, 5, synapse_decay=0.2, membrane_decay=0.5, seed=seed))
    generator = torch.Generator().manual_seed(seed)
    learnt = [
        Gaussian(0.3 * torch.randn(layer.shape, generator=generator), torch.full(layer.shape, 10.0))
        for layer in network.layers
    ]
    spikes = (torch.rand(TIME, BATCH, 40, generator=generator) < 0.3).to(torch.uint8)
    return network, Committee.draw(network, learnt, MEMBERS, generator=generator), spikes


def test_is_what_the_sum_over_members_says() -> None:
    """Two members, two inputs, two neurons, by hand: (3, 1) and (1, 1) differ from (2, 1) by 1 each, of 12 in all."""
    counts = torch.tensor([[[3.0, 1.0], [2.0, 0.0]], [[1.0, 1.0], [0.0, 2.0]]])
    assert discord(counts).tolist() == pytest.approx([2 / 12, 1 / 2])


def test_has_no_unit_and_ends_at_one_minus_one_over_the_members() -> None:
    counts = torch.randint(20, (4, 3, 5), generator=torch.Generator().manual_seed(1)).float()
    torch.testing.assert_close(discord(7 * counts), discord(counts))
    assert discord(counts[:1].expand(4, -1, -1)).abs().max() < 1e-12
    assert discord(torch.eye(4).unsqueeze(1)).item() == pytest.approx(1 - 1 / 4)
    assert discord(torch.zeros(4, 2, 5)).tolist() == [0.0, 0.0]  # nobody fires, nobody differs


@pytest.mark.parametrize("hidden", [(30,), (30, 20)])
def test_counts_what_the_read_out_has_seen(hidden: tuple[int, ...]) -> None:
    """Against each member run alone, step by step, by the network's own function."""
    network, many, spikes = committee(hidden)
    seen = torch.zeros(MEMBERS, TIME, BATCH, network.layers[-1].neurons)
    for member in range(MEMBERS):
        drives = [Weights(matrices[member]) for matrices in many.weights]
        states = network.start(BATCH)
        for t, frame in enumerate(spikes.float()):
            steps = network_step(network, states, frame, drives)
            states = tuple(done.state for done in steps)
            seen[member, t:] += steps[-1].spikes
    expected = discord(seen)
    found = many.predict(spikes, keep_members="all").discord
    assert found is not None
    torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=0)
    final = many.predict(spikes).discord
    assert final is not None
    torch.testing.assert_close(final, found[-1])
    assert final.max() > 0.1  # there is something to tell


def test_compiled_pieces_and_streams_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    network, many, spikes = committee((30, 20))
    whole = many.predict(spikes, keep_members="all").discord
    compiled = Committee(network, many.weights, kernels="compiled").predict(spikes, keep_members="all").discord
    assert whole is not None
    torch.testing.assert_close(compiled, whole)
    watch = many.open(BATCH)
    for frame, expected in zip(spikes, whole, strict=True):
        torch.testing.assert_close(watch.push(frame).discord, expected)
    monkeypatch.setattr("bayspike.predict.unrolled.ELEMENTS_IN_FLIGHT", 30 * TIME * 3)
    monkeypatch.setattr("bayspike.predict.unrolled.LEAST_ELEMENTS_A_STEP", 1)
    torch.testing.assert_close(many.predict(spikes, keep_members="all").discord, whole)


def test_a_silence_adds_nothing() -> None:
    _, many, spikes = committee((30,))
    watch = many.open(BATCH)
    for frame in spikes:
        watch.push(frame)
    settled = watch.rest(60).discord
    torch.testing.assert_close(watch.rest(1000).discord, settled)


def test_one_network_has_none_and_an_ensemble_has_its_own() -> None:
    network, many, spikes = committee((30,))
    point = Point(network, [matrices[0] for matrices in many.weights])
    assert point.predict(spikes).discord is None
    assert point.open(BATCH).push(spikes[0]).discord.tolist() == [0.0] * BATCH
    assert many.predict(spikes, keep_members="none").discord is None
    learnt = [Gaussian(matrices.mean(0), torch.full(matrices.shape[1:], 10.0)) for matrices in many.weights]
    found = Ensemble(network, learnt, MEMBERS).predict(spikes, torch.Generator().manual_seed(0)).discord
    assert found is not None
    assert found.shape == (BATCH,)
    assert 0 < float(found.min()) <= float(found.max()) < 1


def doubting() -> tuple[Network, list[Gaussian]]:
    """Sure of the first half of its inputs, not of the second."""
    network = build(NetworkConfig(40, (60,), 5, synapse_decay=0.0, membrane_decay=0.5))
    mean = 0.3 * torch.randn(60, 20, generator=torch.Generator().manual_seed(3)).repeat(
        1, 2
    )  # each half means the same
    precision = torch.full((60, 40), 1e4)
    precision[:, 20:] = 8.0
    return network, [Gaussian(mean, precision)]


class Halves:
    """Spikes in one half of the inputs alone."""

    time, inputs, bytes_per_sample = TIME, 40, 40

    def __init__(self, half: int, count: int = 60) -> None:
        self.half, self.labels = half, torch.arange(count) % 5

    def __len__(self) -> int:
        return len(self.labels)

    def spikes(self, indices: Tensor, generator: torch.Generator) -> Tensor:
        frames = torch.zeros(TIME, len(indices), 40, dtype=torch.uint8)
        frames[..., 20 * self.half : 20 * self.half + 20] = (
            torch.rand(TIME, len(indices), 20, generator=generator) < 0.4
        )
        return frames


def test_tells_inputs_that_arrive_where_nothing_is_known_and_its_controls_do_not() -> None:
    network, learnt = doubting()
    found = judge_controls(network, learnt, Halves(0), Halves(1), Halves(0), members=10)  # type: ignore[arg-type]
    assert found["learnt"].auroc_discord is not None
    assert found["learnt"].auroc_discord > 0.99
    for name in ("constant", "permuted", "matched"):
        area = found[name].auroc_discord
        assert area is not None
        assert 0.2 < area < 0.8, name
    assert found["zero"].auroc_discord is None


def test_a_rule_keeps_its_promise_and_flags_the_foreign_on_a_stream() -> None:
    network, learnt = doubting()
    many = Committee.draw(network, learnt, 10, generator=torch.Generator().manual_seed(0))
    generator, every = torch.Generator().manual_seed(1), torch.arange(60)
    own = many.predict(Halves(0).spikes(every, generator), keep_members="all")
    assert own.members is not None
    rule = calibrate_foreign(own.members, 0.1, "discord", own.discord)
    fresh = many.open(60, foreign=rule)
    strange = many.open(60, foreign=rule)
    for mine, other in zip(Halves(0).spikes(every, generator), Halves(1).spikes(every, generator), strict=True):
        at_home, abroad = fresh.push(mine), strange.push(other)
    assert at_home.foreign.float().mean() < 0.25
    assert abroad.foreign.float().mean() > 0.95
    assert float(auroc(at_home.discord, abroad.discord)) > 0.99


@pytest.mark.parametrize("members", [2, 3, 7])
def test_a_stream_flags_what_the_whole_signal_flags(members: int) -> None:
    """To the last bit: spikes are counted, so that inputs often lie right at the threshold."""
    network, learnt = doubting()
    many = Committee.draw(network, learnt, members, generator=torch.Generator().manual_seed(members))
    spikes = Halves(0, 200).spikes(torch.arange(200), torch.Generator().manual_seed(1))[:5]
    own = many.predict(spikes, keep_members="all")
    assert own.members is not None
    assert own.discord is not None
    rule = calibrate_foreign(own.members, 0.2, "discord", own.discord)
    watch = many.open(200, foreign=rule)
    for t, frame in enumerate(spikes):
        flags = rule.flags(own.members[:, t], t + 1, own.discord[t])
        assert torch.equal(watch.push(frame).foreign, flags)
        assert flags.double().mean() <= 0.2


def test_refuses_what_it_cannot_score() -> None:
    members = torch.full((3, 4, 30, 2), 0.5)
    with pytest.raises(UserError, match="give their discord"):
        calibrate_foreign(members, 0.1, "discord")
    with pytest.raises(UserError, match="keep_members='all'"):
        calibrate_foreign(None, 0.1)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="a number for each step and example"):
        calibrate_foreign(members, 0.1, "discord", torch.zeros(30))
    assert uncertainty_score(members[:, 0], "discord", torch.arange(30.0)).tolist() == list(range(30))
