"""The curvature along a step, all synapses together and one by one."""

import pytest
import torch
import width


def test_synapses_that_always_pull_together_count_once_for_each() -> None:
    gradients = torch.tensor([1.0, -2.0, 0.5, 3.0]).view(4, 1, 1).expand(4, 5, 7)
    together, apart = width.curvatures(gradients, torch.full((5, 7), 0.1))
    assert together / apart == pytest.approx(5 * 7)


def test_synapses_that_pull_each_for_itself_count_one_by_one() -> None:
    signs = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 6).view(64, 2, 3)  # every pattern of six signs once
    step = torch.tensor([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    together, apart = width.curvatures(signs * torch.tensor([2.0, 1.0, 0.5]), step)
    assert together == pytest.approx(apart)
    assert apart == pytest.approx(4 * 1 + 4 + 9 / 4 + 4 * 0.25 + 16 + 1 / 4)
