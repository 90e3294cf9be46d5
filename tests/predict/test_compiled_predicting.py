"""Compiled predictions: sums of 8-bit weights to the last bit, spikes and probabilities as the plain form has them."""

import numpy as np
import pytest
import torch

from bayspike.posteriors.distributions import Gaussian
from bayspike.posteriors.grid import Grid
from bayspike.predict.predictors import Committee, Point
from bayspike.spiking.network import Network, NetworkConfig, build

pytest.importorskip("numba", reason="compiled kernels need numba (extra fast)")


def committee_for(
    network: Network, members: int = 3, grid: Grid | str | None = "fit", spread: float = 3.0
) -> Committee:
    random = torch.Generator().manual_seed(0)
    posteriors = [
        Gaussian(spread * layer.pre**-0.5 * torch.randn(layer.shape, generator=random), torch.full(layer.shape, 300.0))
        for layer in network.layers
    ]
    return Committee.draw(network, posteriors, members, generator=random, grid=grid)  # type: ignore[arg-type]


def spikes_of(density: float = 0.3, time: int = 15, batch: int = 7, inputs: int = 21) -> torch.Tensor:
    """Some channels fire at almost every step, as bright pixels do, and some never."""
    random = torch.Generator().manual_seed(5)
    chance = torch.rand(batch, inputs, generator=random) * 2 * density
    chance[:, :4], chance[:, 4:6] = 0.95, 0.0
    return (torch.rand(time, batch, inputs, generator=random) < chance).to(torch.uint8)


@pytest.mark.parametrize("grid", ["fit", Grid(1 / 64), None])
@pytest.mark.parametrize("reset", ["zero", "subtract", "refractory"])
@pytest.mark.parametrize("hidden", [(19,), (19, 16)])
def test_predicts_what_the_plain_form_predicts(hidden: tuple[int, ...], reset: str, grid: Grid | str | None) -> None:
    network = build(NetworkConfig(21, hidden, 3, reset=reset, threshold=0.3))  # type: ignore[arg-type]
    plain = committee_for(network, grid=grid)
    fast = Committee(network, plain.weights, kernels="compiled")
    for density in (0.05, 0.5):
        ours, theirs = (each.predict(spikes_of(density), keep_members="all") for each in (fast, plain))
        torch.testing.assert_close(ours.probabilities, theirs.probabilities, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(ours.members, theirs.members, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(ours.rates, theirs.rates)
    assert float(theirs.rates.min()) > 0.01


def test_sums_of_8_bit_weights_are_exact() -> None:
    from bayspike.predict import compiled

    network = build(NetworkConfig(21, (19,), 3, threshold=0.3))
    layer, spikes = network.layers[0], spikes_of(0.4)
    plain = committee_for(network)
    (rows,) = compiled.rows_of(network, plain._fixed) or []
    assert rows.tables.dtype == np.int16
    torch.testing.assert_close(
        torch.from_numpy(rows.tables * rows.steps[:, None, None]), plain._fixed[0].tables, rtol=1e-6, atol=0.0
    )
    # the sums as whole numbers, then the scan in single precision, in the same order of operations
    sums = np.einsum("tbj,mji->mtbi", spikes.numpy().astype(np.int64), rows.tables.astype(np.int64))
    thresholds, decays, _, _ = compiled._constants(layer.neuron, rows.steps)
    expected = np.zeros(sums.shape, np.uint8)
    current = np.zeros(sums[:, 0].shape, np.float32)
    trace = np.zeros_like(current)
    for t in range(sums.shape[1]):
        current = (sums[:, t] + decays[0].astype(np.float64) * current).astype(np.float32)  # fused: rounded once
        trace = (current + decays[1].astype(np.float64) * trace).astype(np.float32)
        expected[:, t] = trace > thresholds[:, None, None]
        trace[expected[:, t] > 0] = 0
    emitted = np.empty_like(expected)
    channels, edges = compiled._events(spikes.numpy()[None])
    tally = np.zeros((emitted.shape[0], *emitted.shape[2:]), dtype=np.float32)
    constants = compiled._constants(layer.neuron, rows.steps)
    count = compiled._fire(channels, edges, rows.tables, *constants, emitted, tally)
    np.testing.assert_array_equal(tally, expected.sum(axis=1))
    np.testing.assert_array_equal(emitted, expected)
    assert count == expected.sum() > 0


def test_events_say_which_channels_fire() -> None:
    from bayspike.predict import compiled

    spikes = spikes_of(0.4)
    channels, edges = compiled._events(spikes.numpy()[None])
    for b in range(spikes.shape[1]):
        usual = set(channels[edges[0, b, 0] : edges[0, b, 1]])
        for t in range(len(spikes)):
            more = set(channels[edges[0, b, 2 * t + 1] : edges[0, b, 2 * t + 2]])
            less = set(channels[edges[0, b, 2 * t + 2] : edges[0, b, 2 * t + 3]])
            assert (usual | more) - less == set(spikes[t, b].nonzero().flatten().tolist())
            assert less <= usual
            assert not more & usual


def test_sums_that_16_bits_cannot_hold_stay_floating_point() -> None:
    from bayspike.predict import compiled

    network = build(NetworkConfig(300, (16,), 3))
    weights = torch.ones(2, 16, 300)
    committee = Committee(network, [weights], kernels="compiled")
    (rows,) = compiled.rows_of(network, committee._fixed) or []
    assert rows.tables.dtype == np.float32  # 300 · 127 > 2¹⁵
    spikes = torch.ones(6, 2, 300, dtype=torch.uint8)
    expected = Committee(network, [weights]).predict(spikes)
    torch.testing.assert_close(committee.predict(spikes).probabilities, expected.probabilities)


@pytest.mark.parametrize("time", [1, 2, 3])
def test_short_signals(time: int) -> None:
    network = build(NetworkConfig(21, (19, 16), 3))
    plain = committee_for(network)
    fast = Committee(network, plain.weights, kernels="compiled")
    ours, theirs = (each.predict(spikes_of(time=time)).probabilities for each in (fast, plain))
    torch.testing.assert_close(ours, theirs)


def test_piece_by_piece_and_by_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from bayspike.predict import compiled

    network = build(NetworkConfig(21, (19,), 3, threshold=0.3))
    fast = Committee(network, committee_for(network).weights, kernels="compiled")
    whole = fast.predict(spikes_of())
    monkeypatch.setattr(compiled, "SPIKES_IN_FLIGHT", 2 * 3 * 19 * 15)
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found = fast.predict(spikes_of())
            assert torch.equal(found.probabilities, whole.probabilities)
            torch.testing.assert_close(found.rates, whole.rates)
    finally:
        torch.set_num_threads(before)


def test_added_classes_leave_the_logits_of_the_others() -> None:
    from bayspike.predict import compiled

    spikes = (torch.rand(2, 4, 3, 21, generator=torch.Generator().manual_seed(0)) < 0.3).to(torch.uint8).numpy()
    readout = np.random.default_rng(0).normal(size=(21, 32)).astype(np.float32)
    few, many = np.zeros((2, 4, 3, 3), np.float32), np.zeros((2, 4, 20, 3), np.float32)
    compiled._read(spikes, np.ascontiguousarray(readout[:, :16]), few)
    compiled._read(spikes, readout, many)
    np.testing.assert_array_equal(few, many[:, :, :3])


@pytest.mark.parametrize("settings", [{"recurrent": True}, {"layers": "4c3-8", "shape": (1, 5, 5), "hidden": ()}])
def test_what_has_no_compiled_form_is_plain_to_the_bit(settings: dict[str, object]) -> None:
    inputs = 25 if "shape" in settings else 21
    network = build(NetworkConfig(inputs=inputs, classes=3, **{"hidden": (9,), **settings}))  # type: ignore[arg-type]
    plain = committee_for(network)
    fast = Committee(network, plain.weights, kernels="compiled")
    spikes = spikes_of(inputs=inputs)
    assert torch.equal(fast.predict(spikes).probabilities, plain.predict(spikes).probabilities)


def test_a_point_has_it_too() -> None:
    network = build(NetworkConfig(21, (19,), 3, threshold=0.3))
    weights = [matrices[0] for matrices in committee_for(network).weights]
    ours, theirs = Point(network, weights, kernels="compiled"), Point(network, weights)
    torch.testing.assert_close(ours.predict(spikes_of()).probabilities, theirs.predict(spikes_of()).probabilities)


def test_dense_spikes_are_left_to_products_where_weights_are_floating_point() -> None:
    from bayspike.predict import compiled

    network = build(NetworkConfig(21, (19,), 3))
    noise, bright = torch.ones(16, 8, 21, dtype=torch.uint8), torch.ones(16, 8, 21, dtype=torch.uint8)
    noise[::2] = 0
    for grid, expected in ((None, False), ("fit", True)):
        rows = compiled.rows_of(network, committee_for(network, grid=grid)._fixed) or []
        assert compiled.worthwhile(rows, noise) is expected
        assert compiled.worthwhile(rows, bright)  # all channels fire always: nothing is left
    plain = committee_for(network, grid=None)
    fast = Committee(network, plain.weights, kernels="compiled")
    assert torch.equal(fast.predict(noise).probabilities, plain.predict(noise).probabilities)
