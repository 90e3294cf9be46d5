import math

import numpy as np
import pytest
import torch
from scipy import stats

from bayspike.data import encoders
from bayspike.errors import UserError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rate_frequencies_follow_the_binomial_law():
    values = torch.tensor([[0, 1, 13, 64, 128, 200, 254, 255]], dtype=torch.uint8)
    time = 40_000
    counts = encoders.rate(values, time, generator()).sum((0, 1), dtype=torch.int64).numpy()
    assert counts[0] == 0
    for value, count in zip(values[0, 1:].tolist(), counts[1:], strict=True):
        assert stats.binomtest(int(count), time, value / 256).pvalue > 1e-4


def test_rate_draws_are_independent_over_time_batch_and_inputs():
    spikes = encoders.rate(torch.full((7, 33), 128, dtype=torch.uint8), 3_001, generator()).numpy()
    assert spikes.shape == (3_001, 7, 33)
    flat = spikes.reshape(3_001, -1).astype(float) - spikes.mean()
    correlation = np.corrcoef(flat.T) - np.eye(flat.shape[1])
    assert np.abs(correlation).max() < 6 / math.sqrt(3_001)
    lagged = (flat[:-1] * flat[1:]).mean() / flat.var()
    assert abs(lagged) < 5 / math.sqrt(flat.size)


def test_rate_is_fixed_by_the_seed_and_moves_the_callers_generator():
    values = torch.full((3, 5), 100, dtype=torch.uint8)
    one = generator(4)
    first, second = encoders.rate(values, 50, one), encoders.rate(values, 50, one)
    assert torch.equal(first, encoders.rate(values, 50, generator(4)))
    assert not torch.equal(first, second)
    assert first.dtype == torch.uint8
    assert set(first.unique().tolist()) == {0, 1}


def test_latency_by_hand():
    values = torch.tensor([[255, 128, 1, 0]], dtype=torch.uint8)
    spikes = encoders.latency(values, 5)[:, 0]  # (255 - 128) / 254 * 4 = 2
    assert spikes.tolist() == [[1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0]]


@pytest.mark.parametrize("time", [1, 2, 7, 50, 99])
def test_latency_fires_every_bright_input_exactly_once(time):
    values = torch.arange(256, dtype=torch.uint8).unsqueeze(0)
    spikes = encoders.latency(values, time)[:, 0].long()
    assert spikes.sum(0).tolist() == [0] + [1] * 255
    moments = spikes[:, 1:].argmax(0)
    assert (moments.diff() <= 0).all()


def test_population_tuning_by_hand():
    code = encoders.PopulationCode((0.0,), (9.0,), 10)  # centres at 0, 1, ..., 9, half-width 2
    response = code.tuning(torch.tensor([[3.0], [3.5]]))
    half = 0.5 * (1 + math.cos(math.pi / 2))
    assert response[0].tolist() == pytest.approx([0, 0, half, 1, half, 0, 0, 0, 0, 0], abs=1e-6)
    near, far = 0.5 * (1 + math.cos(math.pi / 4)), 0.5 * (1 + math.cos(3 * math.pi / 4))
    assert response[1].tolist() == pytest.approx([0, 0, far, near, near, far, 0, 0, 0, 0], abs=1e-6)


def test_population_responses_add_up_to_a_constant_and_are_clamped_outside():
    code = encoders.PopulationCode((-1.0, 0.0), (1.0, 3.0), 10)
    step = 2 / 9
    inside = torch.linspace(-1 + step, 1 - step, 200)
    points = torch.stack([inside, torch.full_like(inside, 1.5)], 1)
    assert torch.allclose(code.tuning(points)[:, :10].sum(1), torch.full((200,), 2.0), atol=1e-5)
    assert torch.equal(code.tuning(torch.tensor([[-9.0, 9.0]])), code.tuning(torch.tensor([[-1.0, 3.0]])))


def test_population_spikes_have_the_tuning_rates():
    code = encoders.PopulationCode((0.0,), (1.0,), 10)
    point = torch.tensor([[0.37]])
    spikes = encoders.population(point.expand(200, 1), 500, generator(), code)
    assert spikes.shape == (500, 200, 10)
    expected = code.tuning(point)[0]
    assert torch.allclose(spikes.float().mean((0, 1)), expected, atol=0.012)


def test_pack_is_inverted_by_unpack_for_any_number_of_inputs():
    random = np.random.default_rng(0)
    for inputs in (1, 7, 8, 9, 1352):
        spikes = random.integers(0, 2, (3, 4, inputs), dtype=np.uint8)
        packed = encoders.pack(spikes)
        assert packed.shape == (3, 4, math.ceil(inputs / 8))
        assert np.array_equal(encoders.unpack(packed, inputs), spikes)


@pytest.mark.parametrize(
    ("values", "time"),
    [
        (torch.zeros(2, 2), 5),
        (torch.zeros(2, dtype=torch.uint8), 5),
        (torch.zeros(2, 2, dtype=torch.uint8), 0),
    ],
)
def test_bad_values_are_refused(values, time):
    with pytest.raises(UserError):
        encoders.rate(values, time, generator())
    with pytest.raises(UserError):
        encoders.latency(values, time)


def test_bad_population_codes_are_refused():
    with pytest.raises(UserError, match="low < high"):
        encoders.PopulationCode((1.0,), (0.0,))
    with pytest.raises(UserError, match="2 neurons"):
        encoders.PopulationCode((0.0,), (1.0,), 1)
    with pytest.raises(UserError, match="shape"):
        encoders.PopulationCode((0.0,), (1.0,)).tuning(torch.zeros(3, 2))
