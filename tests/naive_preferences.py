"""Gaussian process classification of pairs, as [H12] Section 2 has it: written in the space of pairs, with the
preference kernel, one site after the other. Slow, and imports nothing of ours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr
from scipy.stats import norm

Array = npt.NDArray[np.float64]


def preference_kernel(k: Array, pairs: Sequence[Any]) -> Array:
    """k_pref((i, j), (k, l)) = k(i, k) + k(j, l) - k(i, l) - k(j, k)."""
    return np.array([[k[i, m] + k[j, n] - k[i, n] - k[j, m] for m, n in pairs] for i, j in pairs])


def ep_over_pairs(
    k: Array, mean: Array, pairs: Sequence[Any], sweeps: int = 400
) -> tuple[Array, Array, float, Array, Array]:
    """Sites (tau, nu) and log evidence of the probit classifier whose labels are all 1, by the textbook's sweeps.

    The prior of g is N(A mean, k_pref). One site after the other: its cavity, the moments of Phi against it, the site
    that has them; then the posterior anew.
    """
    K = preference_kernel(k, pairs)
    m0 = np.array([mean[i] - mean[j] for i, j in pairs])
    p = len(pairs)
    tau, nu = np.zeros(p), np.zeros(p)
    for _ in range(sweeps):
        old = tau.copy(), nu.copy()
        for i in range(p):
            S, mu = pair_posterior(K, m0, tau, nu)
            t = 1 / S[i, i] - tau[i]
            m, v = (mu[i] / S[i, i] - nu[i]) / t, 1 / t
            z = m / math.sqrt(1 + v)
            ratio = math.exp(norm.logpdf(z) - log_ndtr(z))
            new_mean = m + v * ratio / math.sqrt(1 + v)
            new_var = v - v * v * ratio / (1 + v) * (z + ratio)
            tau[i] = 1 / new_var - 1 / v
            nu[i] = new_mean / new_var - m / v
        if max(abs(tau - old[0]).max(), abs(nu - old[1]).max()) < 1e-13:
            break
    S, mu = pair_posterior(K, m0, tau, nu)
    log_z = 0.0
    # Rasmussen & Williams, Eq. 3.65: the tilted normalisers and Gaussians of site means around cavities
    t, n = 1 / np.diag(S) - tau, mu / np.diag(S) - nu
    m, v = n / t, 1 / t
    site_mean, site_var = nu / tau, 1 / tau
    log_z += log_ndtr(m / np.sqrt(1 + v)).sum()
    log_z += (0.5 * np.log(v + site_var) + (m - site_mean) ** 2 / (2 * (v + site_var))).sum()
    W = K + np.diag(site_var)
    log_z -= 0.5 * np.linalg.slogdet(W)[1] + 0.5 * (site_mean - m0) @ np.linalg.solve(W, site_mean - m0)
    return tau, nu, float(log_z), S, mu


def pair_posterior(K: Array, m0: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
    """Covariance and mean of g under N(m0, K) and the sites."""
    B = np.eye(len(K)) + K * tau
    S = np.linalg.solve(B, K)
    return S, m0 + S @ (nu - tau * m0)


def predict_pair(k: Array, mean: Array, pairs: Sequence[Any], tau: Array, nu: Array, pair: Any) -> float:
    """P(the first of a new pair beats the second), Eq. 7 for one person."""
    both = [*pairs, pair]
    K = preference_kernel(k, both)
    m0 = np.array([mean[i] - mean[j] for i, j in both])
    B = np.eye(len(pairs)) + K[:-1, :-1] * tau
    cross = K[-1, :-1]
    mu = m0[-1] + cross @ np.linalg.solve(np.eye(len(pairs)) + tau[:, None] * K[:-1, :-1], nu - tau * m0[:-1])
    var = K[-1, -1] - cross @ (tau[:, None] * np.linalg.solve(B, K[:-1, -1:]))[:, 0]
    return float(norm.cdf(mu / math.sqrt(1 + var)))


def items_posterior(k: Array, mean: Array, pairs: Sequence[Any], tau: Array, nu: Array) -> tuple[Array, Array]:
    """Mean and covariance of f from the sites on g = A f."""
    A = np.zeros((len(pairs), len(mean)))
    for row, (i, j) in enumerate(pairs):
        A[row, i], A[row, j] = 1, -1
    precision = np.linalg.inv(k) + A.T @ np.diag(tau) @ A
    S = np.linalg.inv(precision)
    return S @ (np.linalg.solve(k, mean) + A.T @ nu), S


def hierarchical(k: Array, people: Sequence[Sequence[Any]], nu0: float, steps: int) -> tuple[Array, Array, float]:
    """m, S and the log evidence of f_u ~ N(m, S) after so many steps of EM, one person after the other:
    m = mean of the means; S = (nu0 K + sum (Sigma_u + d d')) / (U + nu0)."""
    m, S = np.zeros(len(k)), k
    for _ in range(steps):
        means, spread = [], nu0 * k
        evidence = 0.0
        for pairs in people:
            tau, nu, log_z, _, _ = ep_over_pairs(S, m, pairs)
            mu, sigma = items_posterior(S, m, pairs, tau, nu)
            means.append(mu)
            spread = spread + sigma
            evidence += log_z
        m = sum(means) / len(people)  # type: ignore[assignment]
        for mu in means:
            spread = spread + np.outer(mu - m, mu - m)
        S = spread / (len(people) + nu0)
    return m, S, evidence
