"""Continual-learning and energy measures against hand computation."""

import math

import pytest
import torch

from bayspike.errors import UserError
from bayspike.metrics import (
    LOIHI,
    ChipEnergy,
    Population,
    average_accuracy,
    backward_transfer,
    energy_over_time,
    fan_out_of,
    forgetting,
    forward_transfer,
    plasticity,
    spike_counts,
    summarise_continual,
)

MATRIX = torch.tensor(
    [
        [0.90, 0.10, 0.30],
        [0.95, 0.80, 0.20],
        [0.50, 0.85, 0.70],
    ]
)


def test_measures_by_hand() -> None:
    assert average_accuracy(MATRIX) == pytest.approx((0.50 + 0.85 + 0.70) / 3)
    assert forgetting(MATRIX) == pytest.approx(((0.95 - 0.50) + (0.80 - 0.85)) / 2)
    assert backward_transfer(MATRIX) == pytest.approx(((0.50 - 0.90) + (0.85 - 0.80)) / 2)
    baseline = torch.tensor([0.1, 0.2, 0.1])
    assert forward_transfer(MATRIX, baseline) == pytest.approx(((0.10 - 0.20) + (0.20 - 0.10)) / 2)
    assert plasticity(MATRIX) == pytest.approx((0.90 + 0.80 + 0.70) / 3)
    summary = summarise_continual(MATRIX, baseline)
    assert summary.forward_transfer == pytest.approx(0.0)
    assert summary.forgetting == pytest.approx(0.2)
    assert summarise_continual(MATRIX).forward_transfer is None


def test_signs() -> None:
    """A learner that loses everything, and one that gains afterwards."""
    loses = torch.eye(4)
    assert forgetting(loses) == 1.0
    assert backward_transfer(loses) == -1.0
    assert plasticity(loses) == 1.0
    gains = torch.tensor([[0.5, 0.0], [0.9, 0.5]])
    assert forgetting(gains) == pytest.approx(-0.4)
    assert backward_transfer(gains) == pytest.approx(0.4)


def test_tasks_that_come_back() -> None:
    matrix = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.7, 0.4]])  # task 0, task 1, task 0 again
    order = [0, 1, 0]
    assert average_accuracy(matrix, order) == pytest.approx(0.55)
    assert forgetting(matrix, order) == pytest.approx(((0.9 - 0.7) + (0.8 - 0.4)) / 2)
    assert backward_transfer(matrix, order) == pytest.approx(((0.7 - 0.9) + (0.4 - 0.8)) / 2)
    assert plasticity(matrix, order) == pytest.approx(0.85)


def test_one_task_has_nothing_to_forget() -> None:
    one = torch.tensor([[0.8]])
    assert average_accuracy(one) == pytest.approx(0.8)
    assert math.isnan(forgetting(one))
    assert math.isnan(backward_transfer(one))


def test_unmeasured_future_is_allowed_where_unused() -> None:
    matrix = MATRIX.clone()
    matrix[0, 1] = float("nan")
    assert forgetting(matrix) == pytest.approx(0.2)
    with pytest.raises(UserError, match="NaN"):
        forward_transfer(matrix, torch.zeros(3))


def test_tasks_not_looked_at_now_and_then_are_left_out() -> None:
    """Four tasks; of the first, 0.9 and 0.6 were measured before its last 0.5, of the second 0.8 and then 0.7."""
    nan = float("nan")
    matrix = torch.tensor(
        [[0.9, nan, nan, nan], [nan, 0.8, nan, nan], [0.6, nan, 0.7, nan], [0.5, 0.7, 0.6, 0.9]], dtype=torch.float64
    )
    assert forgetting(matrix) == pytest.approx(((0.9 - 0.5) + (0.8 - 0.7) + (0.7 - 0.6)) / 3)
    assert backward_transfer(matrix) == pytest.approx(-(0.4 + 0.1 + 0.1) / 3)
    assert plasticity(matrix) == pytest.approx((0.9 + 0.8 + 0.7 + 0.9) / 4)
    for place in ((1, 1), (3, 0)):
        broken = matrix.clone()
        broken[place] = nan
        with pytest.raises(UserError, match="NaN"):
            forgetting(broken)


def test_bad_matrices_are_refused() -> None:
    with pytest.raises(UserError, match="stage_tasks"):
        forgetting(torch.zeros(3, 2))
    with pytest.raises(UserError, match="stage_tasks"):
        forgetting(torch.zeros(3, 2), [0, 0, 0])
    with pytest.raises(UserError, match="shape"):
        average_accuracy(torch.zeros(3))
    with pytest.raises(UserError, match=r"\[0, 1\]"):
        average_accuracy(100 * MATRIX)
    broken = MATRIX.clone()
    broken[2, 0] = float("nan")
    with pytest.raises(UserError, match="NaN"):
        average_accuracy(broken)
    with pytest.raises(UserError, match="baseline"):
        forward_transfer(MATRIX, torch.zeros(2))


def test_energy_by_hand() -> None:
    inputs = torch.zeros(3, 2, 4)
    inputs[0, 0, :2] = 1  # example 0: two input spikes at t = 0
    inputs[2, 1, 3] = 1  # example 1: one at t = 2
    hidden = torch.zeros(3, 2, 5)
    hidden[1, 0, 0] = 1  # example 0: one hidden spike at t = 1
    populations = [Population(inputs, 5, updated=False), Population(hidden, 10)]
    energy = energy_over_time(populations)
    assert energy.spikes.tolist() == [[2, 0], [3, 0], [3, 1]]
    assert energy.synaptic_operations.tolist() == [[10, 0], [20, 0], [20, 5]]
    assert energy.neuron_updates.tolist() == [[5, 5], [10, 10], [15, 15]]
    assert energy.joules[2, 0].item() == pytest.approx(20 * 23.6e-12 + 15 * 81e-12)
    assert energy.joules[0, 1].item() == pytest.approx(5 * 81e-12)
    ten = energy_over_time(populations, members=10)
    assert ten.joules[2, 1].item() == pytest.approx(10 * energy.joules[2, 1].item())
    assert spike_counts(inputs).tolist() == [2, 1]
    free = ChipEnergy(1.0, 0.0, "unit")
    assert energy_over_time(populations, free).joules.tolist() == energy.synaptic_operations.tolist()
    assert "Davies" in LOIHI.source


def test_fan_out_counts_existing_synapses() -> None:
    weights = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, -1.0]])
    assert fan_out_of(weights).tolist() == [1, 0, 2]
    spikes = torch.ones(1, 1, 3)
    assert energy_over_time([Population(spikes, fan_out_of(weights))]).synaptic_operations.item() == 3


def test_operations_equal_the_products_a_dense_layer_needs() -> None:
    """Independent count: non-zero terms of the weighted sums."""
    generator = torch.Generator().manual_seed(0)
    spikes = (torch.rand(6, 3, 8, generator=generator) < 0.3).float()
    weights = torch.randn(5, 8, generator=generator)
    terms = (spikes.unsqueeze(2) * weights) != 0  # (time, batch, out, in)
    energy = energy_over_time([Population(spikes, 5)])
    assert energy.synaptic_operations[-1].tolist() == terms.sum((0, 2, 3)).tolist()


def test_bad_spikes_are_refused() -> None:
    with pytest.raises(UserError, match="time, batch, neurons"):
        Population(torch.zeros(3, 4), 2)
    with pytest.raises(UserError, match="0 or 1"):
        Population(torch.full((1, 1, 1), float("nan")), 2)
    with pytest.raises(UserError, match="fan_out"):
        Population(torch.zeros(1, 1, 3), torch.tensor([1, 2]))
    with pytest.raises(UserError, match="negative"):
        Population(torch.zeros(1, 1, 3), -1)
    with pytest.raises(UserError, match="at least one"):
        energy_over_time([])
    with pytest.raises(UserError, match="agree"):
        energy_over_time([Population(torch.zeros(2, 1, 3), 1), Population(torch.zeros(3, 1, 3), 1)])
    with pytest.raises(UserError, match="members"):
        energy_over_time([Population(torch.zeros(2, 1, 3), 1)], members=0)
