"""The compiled loop over time learns what the plain one does, within rounding; its parts are held against formulas."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from bayspike.learning.batch import BatchReport, init_states, train_batch
from bayspike.posteriors.grid import Grid
from bayspike.rules import SGD, GaussianVI
from bayspike.rules.base import Rule, State
from bayspike.rules.gaussian import GaussianState
from bayspike.spiking.local import local_error, one_hot_targets
from bayspike.spiking.network import Network, NetworkConfig, build

pytest.importorskip("numba", reason="compiled kernels need numba (extra fast)")

# rates at which rounding is not blown up from step to step: what is compared is arithmetic, not chaos
PAPER = {"lr": 5.0, "temperature": 1e-4, "prior_precision": 300.0}
RULES = {
    "letter": GaussianVI(**PAPER),
    "no pull": GaussianVI(lr=5.0, temperature=0.0, prior_precision=300.0),
    "rare pull": GaussianVI(**PAPER, pull_every=5),
    "carried at every step": GaussianVI(**PAPER, carry=30.0, pull_every=1),
    "carried now and then": GaussianVI(**PAPER, carry=30.0, pull_every=4),
    "natural units": GaussianVI(prior_std=0.05),
    "remembering": GaussianVI(remember=500.0, prior_std=0.05),
    "own rate of the precision": GaussianVI(**PAPER, precision_lr=2.0),
    "8 bits": GaussianVI(**PAPER, grid=Grid(1 / 64)),
}


def network_for(hidden: tuple[int, ...] = (19, 16), **settings: object) -> Network:
    return build(NetworkConfig(21, hidden, 3, threshold=0.03, slope=0.5, **settings))  # type: ignore[arg-type]


def learnt(
    network: Network, rule: Rule, kernels: str, *, burn_in: int = 0, evidence: Tensor | None = None, batches: int = 3
) -> tuple[list[State], BatchReport]:
    """What a few mini-batches leave behind, the second with inputs that stay silent."""
    states = [rule.end_task(state) for state in init_states(network, rule, torch.Generator().manual_seed(0))]
    draws = torch.Generator().manual_seed(1)
    for number in range(batches):
        spikes = torch.rand(12, 6, 21, generator=torch.Generator().manual_seed(2 + number)) < 0.3
        if number == 1:
            spikes[:, :, 5:10] = False
        states, report = train_batch(
            network, rule, states, spikes, torch.arange(6) % 3, draws, burn_in, evidence,
            kernels=kernels,  # type: ignore[arg-type]
        )  # fmt: skip
    return states, report


def assert_alike(ours: tuple[list[State], BatchReport], theirs: tuple[list[State], BatchReport]) -> None:
    for mine, other in zip(ours[0], theirs[0], strict=True):
        for name in ("mean", "precision", "prior_mean", "prior_precision"):
            torch.testing.assert_close(getattr(mine, name), getattr(other, name), rtol=2e-5, atol=2e-6, msg=name)
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-5, atol=1e-6)
    assert float(theirs[1].rates.min()) > 0.01  # neurons did fire


@pytest.mark.parametrize("burn_in", [0, 4, 12])
@pytest.mark.parametrize("name", sorted(RULES))
def test_learns_what_the_plain_form_learns(name: str, burn_in: int) -> None:
    network = network_for()
    ours, theirs = (learnt(network, RULES[name], kernels, burn_in=burn_in) for kernels in ("compiled", "plain"))
    assert_alike(ours, theirs)


@pytest.mark.parametrize("surrogate", ["sigmoid", "fast_sigmoid", "triangle", "boxcar"])
@pytest.mark.parametrize("reset", ["zero", "subtract", "refractory"])
def test_knows_every_neuron(reset: str, surrogate: str) -> None:
    network = network_for((18,), reset=reset, surrogate=surrogate, synapse_decay=0.0, membrane_decay=0.7)
    ours, theirs = (learnt(network, RULES["letter"], kernels, batches=1) for kernels in ("compiled", "plain"))
    assert_alike(ours, theirs)


def test_counts_evidence_as_the_plain_form_does() -> None:
    evidence, network = torch.tensor([1.0, 0.0, 1.0, 0.0, 0.5, 1.0]), network_for()
    ours, theirs = (learnt(network, RULES["letter"], kernels, evidence=evidence) for kernels in ("compiled", "plain"))
    assert_alike(ours, theirs)


def test_works_block_by_block(monkeypatch: pytest.MonkeyPatch) -> None:
    from bayspike.learning import compiled

    network = network_for((50,))
    whole = learnt(network, RULES["letter"], "compiled")
    monkeypatch.setattr(compiled, "IN_CACHE", 21 * 16)
    assert_alike(learnt(network, RULES["letter"], "compiled"), whole)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", ["letter", "carried now and then"])
def test_is_the_same_twice_and_on_several_threads(name: str, threads: int) -> None:
    before, found = torch.get_num_threads(), []
    try:
        for each in (1, threads):
            torch.set_num_threads(each)
            found.append(learnt(network_for((32,)), RULES[name], "compiled", burn_in=2))
    finally:
        torch.set_num_threads(before)
    for mine, other in zip(*(states[0][:4] for states, _ in found), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-6 * (threads - 1), atol=1e-7 * (threads - 1))


def test_nothing_but_the_state_goes_on_to_the_next_mini_batch() -> None:
    """So a run that is resumed from its checkpoint comes to the same bits."""
    network, rule, found = network_for(), RULES["letter"], []
    for forgetful in (False, True):
        states = init_states(network, rule, torch.Generator().manual_seed(0))
        for number in range(3):
            spikes = torch.rand(8, 6, 21, generator=torch.Generator().manual_seed(number)) < 0.3
            draws = torch.Generator().manual_seed(number)
            states, _ = train_batch(network, rule, states, spikes, torch.arange(6) % 3, draws, kernels="compiled")
            if forgetful:
                states = [GaussianState(*(part.clone() for part in state[:4])) for state in states]
        found.append(states)
    for mine, other in zip(*found, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(mine[:4], other[:4], strict=True))


@pytest.mark.parametrize(
    ("rule", "settings"),
    [
        (SGD(), {}),
        (GaussianVI(**PAPER, sampling="synapse"), {}),
        (GaussianVI(**PAPER, samples=2), {}),
        (RULES["letter"], {"recurrent": True}),
    ],
)
def test_what_has_no_compiled_form_is_plain_to_the_bit(rule: Rule, settings: dict[str, object]) -> None:
    network = network_for(**settings)
    ours, theirs = (learnt(network, rule, kernels, batches=1)[0] for kernels in ("compiled", "plain"))
    for mine, other in zip(ours, theirs, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(mine, other, strict=True) if isinstance(a, Tensor))


def test_a_state_may_change_its_kernels() -> None:
    network, rule = network_for(), RULES["letter"]
    spikes = torch.rand(8, 6, 21, generator=torch.Generator().manual_seed(2)) < 0.3
    states = init_states(network, rule, torch.Generator().manual_seed(0))
    for kernels in ("compiled", "plain", "compiled"):
        states, _ = train_batch(
            network, rule, states, spikes, torch.arange(6) % 3, torch.Generator().manual_seed(1),
            kernels=kernels,  # type: ignore[arg-type]
        )  # fmt: skip
    assert all(bool(torch.isfinite(part).all()) for state in states for part in state[:4])


def test_the_step_of_the_neurons_is_that_of_the_formulas() -> None:
    from bayspike.spiking import compiled

    layer, random = network_for((33,)).layers[0], torch.Generator().manual_seed(0)
    exact = replace(layer, readout=layer.readout.double())
    mean, noise, refractory = torch.randn(3, 5, 33, generator=random)
    variance, targets = torch.rand(5, 33, generator=random), one_hot_targets(torch.arange(5) % 3, 3, torch.float32)
    u = (mean.double() + variance.double().sqrt() * noise.double() - refractory.double()).requires_grad_()
    spikes = (u.detach() > layer.neuron.threshold).double()
    probabilities, error = local_error(exact, spikes, targets.double())
    # σ'(u − ϑ) by autograd, from the smooth step itself
    smooth = torch.sigmoid((u - layer.neuron.threshold) * layer.neuron.slope / layer.neuron.threshold)
    (slope,) = torch.autograd.grad(smooth.sum(), u)
    emitted, delta, squared = np.zeros((5, 33), np.uint8), np.zeros((5, 33), np.float32), np.zeros((5, 33), np.float32)
    said, own = np.zeros((5, 3), np.float32), refractory.clone().numpy()
    counted = np.full((5, 1), 0.5, np.float32)
    fired = compiled.neuron_step.alone(
        mean.numpy(), variance.numpy(), noise.numpy(), np.zeros(5, np.float32), own, *compiled.constants_of(layer),
        compiled.readout_of(layer), targets.numpy(), counted, emitted, said, delta, squared, 2,
    )  # fmt: skip
    assert fired == int(spikes.sum()) > 0
    np.testing.assert_array_equal(emitted, spikes.numpy())
    np.testing.assert_allclose(said, probabilities.numpy(), rtol=1e-5)
    expected = (error * slope).numpy()
    np.testing.assert_allclose(delta, expected, rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(squared, 0.5 * expected**2, rtol=1e-4, atol=1e-9)
    decayed = layer.neuron.filter.membrane_decay * (refractory.double() + spikes * u.detach())  # type: ignore[attr-defined]
    np.testing.assert_allclose(own, decayed.numpy(), rtol=1e-5, atol=1e-6)


def test_the_update_is_that_of_the_paper() -> None:
    from bayspike.rules import gaussian_compiled as loops

    random = torch.Generator().manual_seed(0)
    m, m0, g = torch.randn(3, 7, 37, generator=random).double()
    p, p0, h = (torch.rand(3, 7, 37, generator=random).double() + 0.5) * 100
    eta, rho = 0.7, 0.01
    expected_p = (1 - eta * rho) * p + eta * (h + rho * p0)
    expected_m = m - eta / expected_p * (g - rho * p0 * (m0 - m))
    state = GaussianState(*(part.float() for part in (m, p, m0, p0)))
    state.precision.lerp_(state.prior_precision, eta * rho).add_(h.float(), alpha=eta)
    gradient, variance = g.float().numpy(), np.zeros((7, 37), np.float32)
    matrices = [part.numpy() for part in state[:4]]
    loops.learn_by_the_letter.alone(
        *matrices, gradient, variance, np.float32(eta), np.float32(eta * rho), np.float32(eta * rho)
    )
    torch.testing.assert_close(state.mean.double(), expected_m, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, 1 / expected_p, rtol=1e-5)
    torch.testing.assert_close(state.precision.double(), torch.lerp(expected_p, p0, eta * rho), rtol=1e-6, atol=1e-6)
    assert not gradient.any()


@pytest.mark.parametrize("silent", [True, False])
def test_no_pull_diverges(silent: bool) -> None:
    """ηρ·p₀/p begins at 9e4, where the explicit step ended in NaN; the mean ends at m₀, as in the plain form."""
    network = build(NetworkConfig(21, (19,), 3, threshold=0.03, slope=0.5))
    rule = GaussianVI(lr=1.0, temperature=0.1, precision_lr=1e-6, prior_precision=1e6, init_precision=1.0)
    spikes = (torch.rand(200, 6, 21, generator=torch.Generator().manual_seed(2)) < 0.3) & (not silent)
    ends = []
    for kernels in ("compiled", "plain"):
        (state,) = init_states(network, rule, torch.Generator().manual_seed(0))
        begin, draws = state.mean.clone(), torch.Generator().manual_seed(1)
        (state,), _ = train_batch(
            network, rule, [state], spikes, torch.arange(6) % 3, draws,
            kernels=kernels,  # type: ignore[arg-type]
        )  # fmt: skip
        assert bool(torch.isfinite(state.mean).all())
        if silent:
            assert bool((state.mean.abs() <= begin.abs() + 1e-6).all())
        ends.append(state)
    torch.testing.assert_close(ends[0].precision, ends[1].precision, rtol=1e-4, atol=0)


def test_a_pull_that_would_overshoot_ends_at_the_prior() -> None:
    """By hand: m ← m − η·G/p − min(1, ηρ·p₀/p)·(m − m₀); what does not overshoot is the letter's to the bit."""
    from bayspike.rules import gaussian_compiled as loops

    random, eta, pull, share = torch.Generator().manual_seed(0), 0.7, 0.5, 0.01
    m, m0, g = torch.randn(3, 7, 37, generator=random).double()
    p, p0 = (torch.rand(2, 7, 37, generator=random).double() + 0.1) * 100
    expected = m - eta / p * g - (pull * p0 / p).clamp(max=1) * (m - m0)
    ends = []
    for loop in (loops.learn_without_overshooting, loops.learn_by_the_letter):
        state = GaussianState(*(part.float() for part in (m, p, m0, p0)))
        gradient, variance = g.float().numpy(), np.zeros((7, 37), np.float32)
        constants = (np.float32(each) for each in (eta, pull, share))
        loop.alone(*(part.numpy() for part in state[:4]), gradient, variance, *constants)
        np.testing.assert_allclose(variance, 1 / p, rtol=1e-5)
        torch.testing.assert_close(state.precision.double(), torch.lerp(p, p0, share), rtol=1e-6, atol=1e-6)
        assert not gradient.any()
        ends.append(state.mean)
    torch.testing.assert_close(ends[0].double(), expected, rtol=1e-5, atol=1e-6)
    within = pull * p0 < 0.999 * p
    assert 0.1 < float(within.double().mean()) < 0.9
    assert torch.equal(ends[0][within], ends[1][within])


def test_loops_are_compiled_even_where_they_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    from bayspike.spiking import compiled

    plain = numba.njit

    def nowhere(**options: object) -> object:
        if "cache" in options:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(**options)

    monkeypatch.setattr(numba, "njit", nowhere)
    assert compiled.jitted(lambda number: number + 1)(2) == 3
