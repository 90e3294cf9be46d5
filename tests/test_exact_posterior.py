"""The elliptical slice sampler that an exact posterior is drawn with, on targets whose moments are known."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

SPEC = importlib.util.spec_from_file_location(
    "exact_posterior", Path(__file__).parents[1] / "studies" / "exact_posterior.py"
)
assert SPEC is not None
assert SPEC.loader is not None
study = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(study)

INPUTS, CHAINS, STEPS, EVERY = 2, 200, 400, 2
WEIGHTS = study.NEURONS * INPUTS


def sampled(monkeypatch: pytest.MonkeyPatch, log_likelihood: object) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean and covariance of the weights that are drawn for this log-likelihood, and how many draws they are worth.

    Chains are independent of each other, so they count at least; what is kept of one is correlated.
    """
    monkeypatch.setattr(study, "log_likelihood", lambda network, weights, *data: log_likelihood(weights))  # type: ignore[operator]
    network, nothing = SimpleNamespace(inputs=INPUTS), torch.empty(0)
    drawn = study.elliptical_slices(network, nothing, nothing, CHAINS, STEPS, EVERY, torch.Generator().manual_seed(0))
    assert drawn.shape == (STEPS // 2 // EVERY, CHAINS, study.NEURONS, INPUTS)
    flat = drawn.flatten(2).double().numpy()
    by_chain = flat.mean(axis=0)
    spread = flat.reshape(-1, WEIGHTS)
    worth = float(CHAINS * np.min(spread.var(axis=0) / by_chain.var(axis=0)))
    assert worth > CHAINS
    return spread.mean(axis=0), np.cov(spread.T), worth


def assert_moments(found: tuple[np.ndarray, np.ndarray, float], mean: np.ndarray, covariance: np.ndarray) -> None:
    """Within five standard errors."""
    variance = np.diag(covariance)
    assert (np.abs(found[0] - mean) < 5 * np.sqrt(variance / found[2])).all()
    # squares forget more slowly than the numbers themselves: half as many draws at most
    errors = np.sqrt((np.outer(variance, variance) + covariance**2) / (found[2] / 2))
    assert (np.abs(found[1] - covariance) < 5 * errors).all()


def test_without_data_the_draws_are_the_priors(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sampled(monkeypatch, lambda weights: torch.full((len(weights),), -3.0))
    assert_moments(found, np.zeros(WEIGHTS), np.eye(WEIGHTS) / study.PRIOR)


def test_a_normal_likelihood_gives_the_exact_posterior(monkeypatch: pytest.MonkeyPatch) -> None:
    """Observations y = A·w + noise of which some see several weights: precision p₀ + AᵀA/s², by Bayes' rule."""
    random = np.random.default_rng(0)
    seen = np.concatenate([np.eye(WEIGHTS)[:3], np.ones((1, WEIGHTS)), random.normal(size=(2, WEIGHTS))])
    answers, noise = random.normal(size=len(seen)), 0.6
    covariance = np.linalg.inv(study.PRIOR * np.eye(WEIGHTS) + seen.T @ seen / noise**2)
    mean = covariance @ seen.T @ answers / noise**2
    matrix, targets = torch.from_numpy(seen).float(), torch.from_numpy(answers).float()

    def log_likelihood(weights: Tensor) -> Tensor:
        return -(weights.flatten(1) @ matrix.T - targets).square().sum(dim=1) / (2 * noise**2)

    found = sampled(monkeypatch, log_likelihood)
    assert_moments(found, mean, covariance)
    prior = np.eye(WEIGHTS) / study.PRIOR
    assert np.abs(mean).max() > 0.3  # what the prior would say is far outside
    assert np.abs(covariance - prior).max() > 0.2
