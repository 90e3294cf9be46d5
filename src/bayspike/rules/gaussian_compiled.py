"""The update of `GaussianVI` as compiled loops (numba): one pass over mean, precision and prior, in place.

Each function takes some rows of the state after `precision` has got its product, a·H added to it, and the product G of
the mean gradient; it leaves the variances 1/p that the next step's potentials are drawn with, and G at nought, since a
product that is added to something is faster than one that is not. The pull of the precision comes before its product
(`gaussian.GaussianVI.update`): that of the *next* step, its share 0 where there is none, is taken in the same pass.

A row is worked off in two loops, the second of which finds it in the nearest cache: a loop over more arrays, which
might overlap for all the compiler knows, would be done one number at a time.
"""

import numba
import numpy as np

from bayspike.spiking.compiled import compiled


@compiled
def learn(mean, precision, gradient, variance, rate):  # type: ignore[no-untyped-def]
    """m ← m − η·G/p: a step without the pull."""
    for i in numba.prange(mean.shape[0]):
        m, p, g, v = mean[i], precision[i], gradient[i], variance[i]
        for j in range(len(m)):
            v[j] = np.float32(1) / p[j]
            m[j] -= rate * g[j] * v[j]
            g[j] = np.float32(0)


@compiled
def learn_by_the_letter(  # type: ignore[no-untyped-def]
    mean, precision, prior_mean, prior_precision, gradient, variance, rate, pull, next_share
):
    """m ← m − 1/p·(η·G + ηρ·p₀·(m − m₀)), p ← p + s·(p₀ − p): Algorithm 1."""
    for i in numba.prange(mean.shape[0]):
        m, p, m0, p0 = mean[i], precision[i], prior_mean[i], prior_precision[i]
        g, v = gradient[i], variance[i]
        for j in range(len(p)):
            v[j] = np.float32(1) / p[j]
            p[j] += next_share * (p0[j] - p[j])
        for j in range(len(m)):
            m[j] -= v[j] * (rate * g[j] + pull * p0[j] * (m[j] - m0[j]))
            g[j] = np.float32(0)


@compiled
def learn_without_overshooting(  # type: ignore[no-untyped-def]
    mean, precision, prior_mean, prior_precision, gradient, variance, rate, pull, next_share
):
    """The same with a pull of the mean that ends at m₀ where ηρ·p₀/p is above 1."""
    for i in numba.prange(mean.shape[0]):
        m, p, m0, p0 = mean[i], precision[i], prior_mean[i], prior_precision[i]
        g, v = gradient[i], variance[i]
        for j in range(len(p)):
            v[j] = np.float32(1) / p[j]
        for j in range(len(m)):
            m[j] -= v[j] * (rate * g[j] + min(pull * p0[j], p[j]) * (m[j] - m0[j]))
            g[j] = np.float32(0)
        for j in range(len(p)):
            p[j] += next_share * (p0[j] - p[j])


@compiled
def learn_and_hold(  # type: ignore[no-untyped-def]
    mean, precision, prior_mean, prior_precision, gradient, variance, rate, hold, share, next_share
):
    """m ← m − η·G/p, p ← p + s·(p₀ − p), and the pull of the mean in its implicit form.

    m ← (m + a·m₀)/(1 + a) with a = hold·p₀/p.
    """
    for i in numba.prange(mean.shape[0]):
        m, p, m0, p0 = mean[i], precision[i], prior_mean[i], prior_precision[i]
        g, v = gradient[i], variance[i]
        for j in range(len(m)):
            m[j] -= rate * g[j] / p[j]
            g[j] = np.float32(0)
            p[j] += share * (p0[j] - p[j])
        for j in range(len(p)):
            v[j] = np.float32(1) / p[j]
            weight = hold * p0[j]
            m[j] += weight * (m0[j] - m[j]) / (p[j] + weight)
        for j in range(len(p)):
            p[j] += next_share * (p0[j] - p[j])


@compiled
def invert(precision, prior_precision, variance, next_share):  # type: ignore[no-untyped-def]
    """1/p, and the pull of the precision before the next step's product, where nothing is learnt yet."""
    for i in numba.prange(precision.shape[0]):
        p, p0, v = precision[i], prior_precision[i], variance[i]
        for j in range(len(p)):
            v[j] = np.float32(1) / p[j]
            p[j] += next_share * (p0[j] - p[j])
