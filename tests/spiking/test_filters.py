import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bayspike.errors import UserError
from bayspike.spiking.filters import DoubleExponential, Filter, Resonator
from srm_reference import convolve, double_exponential

CPU = torch.device("cpu")
TIME = 12


def run(filter_: Filter, spikes: torch.Tensor) -> torch.Tensor:
    """Traces as the synapses see them at every step, `(time, batch, inputs)`."""
    state = filter_.start(spikes.shape[1], spikes.shape[2], torch.float64, CPU)
    traces = []
    for now in spikes:
        traces.append(state.trace.clone())
        state = filter_.step(state, now)
    return torch.stack(traces)


def some_spikes(seed: int) -> torch.Tensor:
    return (torch.rand(TIME, 3, 4, generator=torch.Generator().manual_seed(seed)) < 0.4).to(torch.float64)


decays = st.floats(0, 0.99)


@given(decays, decays, st.integers(0, 2**31))
@settings(max_examples=40)
def test_double_exponential_trace_is_the_convolution_with_its_kernel(
    synapse: float, membrane: float, seed: int
) -> None:
    spikes = some_spikes(seed)
    expected = convolve(spikes.numpy(), double_exponential(TIME, synapse, membrane))
    np.testing.assert_allclose(run(DoubleExponential(synapse, membrane), spikes), expected, atol=1e-12)


@given(decays, decays)
def test_double_exponential_kernel_in_closed_form(synapse: float, membrane: float) -> None:
    kernel = DoubleExponential(synapse, membrane).kernel(TIME)
    np.testing.assert_allclose(kernel, double_exponential(TIME, synapse, membrane), rtol=1e-4, atol=1e-9)


def test_double_exponential_kernel_of_equal_decays_is_an_alpha_function() -> None:
    kernel = DoubleExponential(0.8, 0.8).kernel(3)
    np.testing.assert_allclose(kernel, 0.04 * np.array([1, 2 * 0.8, 3 * 0.8**2]))


def test_no_synaptic_decay_gives_the_plain_leaky_integrator() -> None:
    np.testing.assert_allclose(DoubleExponential(0.0, 0.5).kernel(4), 0.5 * 0.5 ** np.arange(4))


def test_a_channel_that_always_fires_tends_to_a_trace_of_one() -> None:
    traces = run(DoubleExponential(0.5, 0.9), torch.ones(300, 1, 1, dtype=torch.float64))
    assert float(traces[-1]) == pytest.approx(1, abs=1e-9)


@given(decays, st.floats(2, 50), st.integers(0, 2**31))
@settings(max_examples=40)
def test_resonator_trace_is_the_convolution_with_a_damped_oscillation(decay: float, period: float, seed: int) -> None:
    turn = decay * np.exp(2j * math.pi / period)
    kernel = (1 - decay) * np.real(turn ** np.arange(TIME))  # powers of one complex number
    spikes = some_spikes(seed)
    filter_ = Resonator(decay, period)
    np.testing.assert_allclose(run(filter_, spikes), convolve(spikes.numpy(), kernel), atol=1e-12)
    np.testing.assert_allclose(filter_.kernel(TIME), kernel, atol=1e-12)


def test_resonator_changes_sign_after_a_quarter_of_its_period() -> None:
    kernel = Resonator(0.9, 8.0).kernel(5)
    assert float(kernel[1]) > 0
    assert float(kernel[2]) == pytest.approx(0, abs=1e-12)
    assert float(kernel[3]) < 0


@pytest.mark.parametrize("filter_", [DoubleExponential(0.5, 0.9), Resonator(0.9, 7.0)])
def test_the_trace_knows_the_spikes_of_the_past_only(filter_: Filter) -> None:
    spikes = torch.zeros(6, 1, 1, dtype=torch.float64)
    spikes[2] = 1
    trace = run(filter_, spikes).flatten()
    assert trace[:3].tolist() == [0, 0, 0]
    assert float(trace[3]) > 0


@pytest.mark.parametrize("filter_", [DoubleExponential(0.5, 0.9), Resonator(0.9, 7.0)])
def test_a_step_leaves_the_state_it_was_given_alone(filter_: Filter) -> None:
    state = filter_.start(1, 2, torch.float64, CPU)
    later = filter_.step(state, torch.ones(1, 2, dtype=torch.float64))
    kept = later.hidden.clone(), later.trace.clone()
    filter_.step(later, torch.ones(1, 2, dtype=torch.float64))
    assert torch.equal(later.hidden, kept[0])
    assert torch.equal(later.trace, kept[1])
    assert not state.trace.any()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: DoubleExponential(synapse_decay=1.0), r"synapse_decay must lie in \[0, 1\), but is 1\.0"),
        (lambda: DoubleExponential(membrane_decay=-0.1), r"membrane_decay must lie in \[0, 1\), but is -0\.1"),
        (lambda: DoubleExponential(membrane_decay=float("nan")), r"membrane_decay must lie in .* but is nan"),
        (lambda: Resonator(decay=1.5), r"decay must lie in \[0, 1\), but is 1\.5"),
        (lambda: Resonator(period=1.0), r"period must lie in \[2, inf\), but is 1\.0"),
    ],
)
def test_bad_constants_are_named(make: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        make()  # type: ignore[operator]
