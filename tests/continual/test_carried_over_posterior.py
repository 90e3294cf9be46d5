"""Two tasks in a row leave the exact posterior of both data sets, where that posterior is known.

**Gaussian.** Every neuron i is a regression y ≈ w·x with unit-free noise σ²: the loss of an example is
ℓ = (y − w·x)²/(2σ²), its negative log-likelihood. Task k has N_k examples. The rule minimises
mean(ℓ) + ρ·KL, so with ρ = 1/N_k the data term is the whole log-likelihood divided by N_k, and the minimiser
(the Gibbs posterior) is Bayes' posterior:

    task 1:  p¹ = p₀ + N₁/σ²       m¹ = (p₀·m₀ + N₁·a₁/σ²) / p¹
    task 2:  p² = p¹ + N₂/σ²       m² = (p¹·m¹ + N₂·a₂/σ²) / p²      with q¹ as the prior
           = p₀ + (N₁ + N₂)/σ²        = (p₀·m₀ + (N₁·a₁ + N₂·a₂)/σ²) / p²

where a_k is the least-squares solution of task k and the inputs are orthogonal columns of ±1 (so that the posterior
has no correlations). The last line is what both data sets give at once; it is computed below by brute force too, as a
linear system over the stacked data.

The rule's mean is stationary where E_q[mean(g)] = ρ·p_prior·(m_prior − m); with E_q[mean(g)] = (m − a)/σ² that is the
formula above. Its precision is stationary at p_prior + E_q[mean(g²)]/ρ, and with x² = 1

    E_q[mean(g²)] = ( mean r² + Σ_j (a_j − m_j)² + Σ_j 1/p_j ) / σ⁴,        r the least-squares residuals,

which is the Hessian 1/σ² if mean r² = σ² − Σ_j (a_j − m_j)² − Σ_j 1/p_j: if the noise that the model believes in is
the noise there is. The residuals are made so (orthogonal to all inputs). Then the exact posterior is the fixed point.

**No sampling error.** g is linear in the potential u = w·x ~ N(m·x, Σ x²/p), so the means of g and of g² over u are
those over the two points m·x ± √(Σ x²/p). Every example is shown at both; the rule then sees its expectations exactly.

**Bernoulli.** For a loss that is linear in the weights, mean loss c·w, the Gibbs posterior of ±1 weights under the
prior exp(w^r₀·w) is exp((w^r₀ − c/ρ)·w): logits add up over tasks, w^r = w^r₀ − c₁/ρ₁ − c₂/ρ₂.
"""

from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard
from torch import Tensor

from bayspike.posteriors.distributions import Bernoulli
from bayspike.rules import BernoulliVI, GaussianVI
from bayspike.rules.bernoulli import BernoulliState, SampledBinaryPotential
from bayspike.rules.gaussian import GaussianState
from bayspike.spiking.local import LocalGradient
from bayspike.spiking.network import Weights

SIGMA2, P0 = 0.5, 8.0
M0 = np.array([[0.2, 0.1, -0.3], [0.1, -0.2, 0.4]])
FITS = (np.array([[0.5, -0.4, 0.1], [-0.3, 0.3, 0.5]]), np.array([[0.3, -0.1, -0.2], [-0.4, 0.1, 0.7]]))
SIZES = (16, 32)


class Exact(NamedTuple):
    mean: np.ndarray
    precision: np.ndarray


class Data(NamedTuple):
    x: np.ndarray  # (examples, inputs)
    y: np.ndarray  # (examples, neurons)


def two_tasks() -> tuple[list[Data], list[Exact]]:
    """The data of both tasks, and the exact posterior after each by the formulas above."""
    tasks, posteriors, before = [], [], Exact(M0, np.full_like(M0, P0))
    for size, fit in zip(SIZES, FITS, strict=True):
        precision = before.precision + size / SIGMA2
        mean = (before.precision * before.mean + size * fit / SIGMA2) / precision
        noise = SIGMA2 - ((fit - mean) ** 2).sum(1) - (1 / precision).sum(1)
        assert (noise > 0).all()
        columns = hadamard(size).astype(np.float64)
        x = columns[:, 1:4]
        tasks.append(Data(x, x @ fit.T + columns[:, 5:7] * np.sqrt(noise)))
        before = Exact(mean, precision)
        posteriors.append(before)
    return tasks, posteriors


def brute_force(tasks: list[Data]) -> Exact:
    """Bayes' rule on the stacked data: full precision matrices and a linear solve for every neuron."""
    x, y = np.concatenate([t.x for t in tasks]), np.concatenate([t.y for t in tasks])
    means, precisions = [], []
    for i in range(len(M0)):
        precision = P0 * np.eye(3) + x.T @ x / SIGMA2
        means.append(np.linalg.solve(precision, P0 * M0[i] + x.T @ y[:, i] / SIGMA2))
        np.testing.assert_allclose(precision, np.diag(np.diag(precision)), atol=1e-9)
        precisions.append(np.diag(precision))
    return Exact(np.stack(means), np.stack(precisions))


def expected_gradient(state: GaussianState, data: Data) -> LocalGradient:
    """Both points m·x ± spread of every example: exact first and second moments of the gradient under q."""
    x, y = torch.from_numpy(data.x), torch.from_numpy(data.y)
    centre, spread = x @ state.mean.T, (x.square() @ state.precision.reciprocal().T).sqrt()
    delta = (torch.cat([centre + spread, centre - spread]) - y.repeat(2, 1)) / SIGMA2
    twice = x.repeat(2, 1)
    return LocalGradient(delta, twice, Weights(state.mean), twice, delta)


def learn(state: GaussianState, data: Data, steps: int = 4000) -> GaussianState:
    rule = GaussianVI(lr=0.2, temperature=1 / len(data.x))
    for _ in range(steps):
        state = rule.update(state, expected_gradient(state, data))
    return state


def first_state() -> GaussianState:
    prior = torch.from_numpy(M0), torch.full(M0.shape, P0, dtype=torch.float64)
    return GaussianState(prior[0].clone(), prior[1].clone(), *prior)


def test_carried_over_gaussian_posterior_is_exact() -> None:
    tasks, posteriors = two_tasks()
    both = brute_force(tasks)
    np.testing.assert_allclose(posteriors[1].mean, both.mean)
    np.testing.assert_allclose(posteriors[1].precision, both.precision)

    rule = GaussianVI()
    after_one = rule.end_task(learn(first_state(), tasks[0]))
    alone = brute_force(tasks[:1])
    np.testing.assert_allclose(after_one.mean, alone.mean, rtol=1e-8)
    np.testing.assert_allclose(after_one.precision, alone.precision, rtol=1e-8)
    after_two = learn(after_one, tasks[1])
    np.testing.assert_allclose(after_two.mean, both.mean, rtol=1e-8)
    np.testing.assert_allclose(after_two.precision, both.precision, rtol=1e-8)


def test_without_the_carry_over_the_first_task_is_lost() -> None:
    """The same run with the first prior kept ends far from the posterior of both: the test above can fail."""
    tasks, _ = two_tasks()
    both = brute_force(tasks)
    lost = learn(learn(first_state(), tasks[0]), tasks[1])
    assert np.abs((lost.mean.numpy() - both.mean) * np.sqrt(both.precision)).max() > 0.5
    assert (lost.precision.numpy() < 0.9 * both.precision).all()


def enumerate_posterior(prior_logits: Tensor, slopes: list[tuple[Tensor, float]]) -> np.ndarray:
    """P(w = +1) of every weight by weighing all 2^n sign vectors with prior · Π exp(−c·w/ρ)."""
    n = prior_logits.numel()
    signs = np.array([[1 if (code >> bit) & 1 else -1 for bit in range(n)] for code in range(2**n)])
    exponent = prior_logits.numpy().reshape(-1).astype(np.float64) - sum(
        c.numpy().reshape(-1).astype(np.float64) / rho for c, rho in slopes
    )
    weight = np.exp(signs @ exponent)
    return (weight[:, None] * (signs > 0)).sum(0) / weight.sum()


@pytest.mark.parametrize("horizon", [None, 4.0])
def test_carried_over_bernoulli_posterior_is_exact(horizon: float | None) -> None:
    """With a horizon the logits settle at w₀ − N·c/ρ of the current slope instead: what is old is let go."""
    slopes = [(torch.tensor([[0.3, -0.2, 0.1], [0.05, 0.4, -0.3]], dtype=torch.float64), 0.5)]
    slopes.append((torch.tensor([[-0.1, -0.3, 0.2], [0.2, 0.1, 0.2]], dtype=torch.float64), 0.8))
    prior = torch.tensor([[0.1, 0.0, -0.2], [0.3, 0.0, 0.1]], dtype=torch.float64)
    state = BernoulliState(prior.clone(), prior.clone())
    for slope, rho in slopes:
        rule = BernoulliVI(lr=0.5, temperature=rho, sampling="neuron", horizon=horizon)
        for _ in range(1500):
            # one example a neuron: delta picks the neuron, pre holds its slopes; no noise, for the loss is linear
            drive = SampledBinaryPotential(torch.tanh(state.logits), torch.Generator(), torch.zeros(2, 2))
            delta = 2 * torch.eye(2, dtype=torch.float64)  # the mean over two examples halves it
            state = rule.update(state, LocalGradient(delta, slope, drive, slope, delta))
        state = rule.end_task(state)
    if horizon is None:
        expected = enumerate_posterior(prior, slopes)
    else:
        expected = enumerate_posterior(prior, [(slopes[1][0], slopes[1][1] / horizon)])
    up = (Bernoulli(state.logits).mean().numpy() + 1) / 2
    np.testing.assert_allclose(up.reshape(-1), expected, rtol=1e-9)
