import numpy as np
import pytest
import torch

from bayspike.errors import UserError
from bayspike.spiking.filters import DoubleExponential, Resonator
from bayspike.spiking.network import Layer, Weights, step
from bayspike.spiking.neurons import Neuron, Reset
from bayspike.spiking.surrogates import SURROGATES, surrogate
from srm_reference import Constants, run_layer

F64 = torch.float64


def record(layer: Layer, weights: torch.Tensor, spikes: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Potentials and spikes over time."""
    state, potentials, emitted = layer.start(spikes.shape[1]), [], []
    for now in spikes:
        done = step(layer, state, now, Weights(weights))
        state = done.state
        potentials.append(done.potential.numpy())
        emitted.append(done.spikes.numpy())
    return np.stack(potentials), np.stack(emitted)


def layer_of(neuron: Neuron, inputs: int, neurons: int) -> Layer:
    return Layer(inputs, neurons, neuron, torch.zeros(2, neurons, dtype=F64))


@pytest.mark.parametrize("reset", ["refractory", "zero", "subtract"])
@pytest.mark.parametrize("synapse_decay", [0.0, 0.6])
def test_every_reset_equals_the_plain_integrate_and_fire_recursion(reset: Reset, synapse_decay: float) -> None:
    generator = torch.Generator().manual_seed(3)
    spikes = (torch.rand(60, 4, 12, generator=generator) < 0.4).to(F64)
    weights = torch.randn(7, 12, generator=generator, dtype=F64) + 0.4
    neuron = Neuron(DoubleExponential(synapse_decay, 0.85), 0.9, reset, refractory_decay=0.6, refractory_height=1.3)
    constants = Constants(synapse_decay, 0.85, 0.9, reset, 0.6, 1.3)
    expected = run_layer(weights.numpy(), spikes.numpy(), constants)
    potentials, emitted = record(layer_of(neuron, 12, 7), weights, spikes)
    assert 0.05 < expected.spikes.mean() < 0.95  # the reset is really at work
    np.testing.assert_allclose(potentials, expected.potential, atol=1e-10)
    np.testing.assert_array_equal(emitted, expected.spikes)


def one_neuron(reset: Reset) -> tuple[list[float], list[float]]:
    """One synapse of weight 6 and a spike at every step; decays ½ and ½, so a gain of ¼. Threshold 2."""
    neuron = Neuron(DoubleExponential(0.5, 0.5), 2.0, reset, refractory_decay=0.5, refractory_height=0.75)
    ones = torch.ones(5, 1, 1, dtype=F64)
    potentials, emitted = record(layer_of(neuron, 1, 1), torch.full((1, 1), 6.0, dtype=F64), ones)
    return potentials.flatten().tolist(), emitted.flatten().tolist()


def test_potentials_by_hand_refractory() -> None:
    # currents 1/4, 3/8, 7/16, 15/32; hence traces 1/4, 1/2, 11/16, 13/16; times 6: 1.5, 3, 4.125, 4.875
    # R adds 1.5 a spike and halves: after the spike at step 2 it is 1.5, then 0.75 + 1.5 = 2.25
    potentials, emitted = one_neuron("refractory")
    assert potentials == [0, 1.5, 3.0, 4.125 - 1.5, 4.875 - 2.25]
    assert emitted == [0, 0, 1, 1, 1]


def test_potentials_by_hand_zero() -> None:
    # membranes: 1.5, 0.75 + 2.25 = 3 (spike, to 0), 0 + 2.625 (spike, to 0), 0 + 2.8125
    potentials, emitted = one_neuron("zero")
    assert potentials == [0, 1.5, 3.0, 2.625, 2.8125]
    assert emitted == [0, 0, 1, 1, 1]


def test_potentials_by_hand_subtract() -> None:
    # membranes: 1.5, 3 (spike, to 1), 0.5 + 2.625 = 3.125 (spike, to 1.125), 0.5625 + 2.8125
    potentials, emitted = one_neuron("subtract")
    assert potentials == [0, 1.5, 3.0, 3.125, 3.375]
    assert emitted == [0, 0, 1, 1, 1]


def test_a_potential_at_the_threshold_does_not_fire() -> None:
    neuron = Neuron(DoubleExponential(0.0, 0.0), threshold=1.0)
    for weight, fires in ((1.0, 0.0), (np.nextafter(1.0, 2.0), 1.0)):
        _, emitted = record(
            layer_of(neuron, 1, 1), torch.full((1, 1), weight, dtype=F64), torch.ones(2, 1, 1, dtype=F64)
        )
        assert emitted.flatten().tolist() == [0, fires]


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize("slope", [0.5, 4.0])
def test_a_surrogate_is_the_derivative_of_a_step_from_zero_to_one(name: str, slope: float) -> None:
    distance = torch.linspace(-500 / slope, 500 / slope, 400_000, dtype=F64)
    height = surrogate(name)(distance, slope)
    assert float(height.min()) >= 0
    assert float(torch.trapezoid(height, distance)) == pytest.approx(1, abs=0.01)  # fast_sigmoid has heavy tails
    assert torch.allclose(height, height.flip(0))
    assert float(distance[height.argmax()].abs()) <= 0.5 / slope  # highest at the threshold


def test_slope_is_in_units_of_the_threshold() -> None:
    """Scaling weights and threshold together must not change the shape of the post-synaptic factor."""
    potential = torch.tensor([0.2, 0.9, 1.0, 1.4], dtype=F64)
    small, large = Neuron(threshold=1.0).post(potential), Neuron(threshold=28.0).post(28 * potential)
    assert torch.allclose(28 * large, small)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"threshold": 0.0}, r"threshold must lie in \(0, inf\), but is 0\.0"),
        ({"slope": -1.0}, r"slope must lie in \(0, inf\), but is -1\.0"),
        ({"refractory_decay": 1.0}, r"refractory_decay must lie in \[0, 1\), but is 1\.0"),
        ({"refractory_height": -2.0}, r"refractory_height must lie in \[0, inf\), but is -2\.0"),
        ({"reset": "half"}, r"reset must be one of refractory, zero, subtract, but is 'half'"),
        ({"surrogate": "step"}, r"surrogate must be one of sigmoid, .*boxcar, but is 'step'"),
        ({"filter": Resonator(), "reset": "zero"}, r"reset='zero' needs a membrane .* Resonator; choose"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Neuron(**arguments)  # type: ignore[arg-type]


def test_a_resonator_fires_with_the_refractory_reset() -> None:
    """Two spikes half a period apart cancel, a whole period apart they add up."""
    neuron = Neuron(Resonator(0.99, 8.0), threshold=0.015, reset="refractory")
    weights = torch.ones(1, 1, dtype=F64)
    together, against = torch.zeros(12, 1, 1, dtype=F64), torch.zeros(12, 1, 1, dtype=F64)
    together[[0, 8]], against[[0, 4]] = 1, 1
    assert record(layer_of(neuron, 1, 1), weights, together)[1].sum() > 0
    assert record(layer_of(neuron, 1, 1), weights, against)[1].sum() == 0
