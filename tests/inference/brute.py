"""Choices by brute force: a grid over the differences of up to four utilities. It calls nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr
from scipy.stats import norm

Array = npt.NDArray[np.float64]
Likelihood = Callable[[list[Array]], Array]

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def chosen(a: int, b: int, width: float = 0.0, lapse: float = 0.0) -> Likelihood:
    """a is called better than b."""
    kinds = 3 if width > 0 else 2
    return lambda f: (1 - lapse) * ndtr(f[a] - f[b] - width) + lapse / kinds


def tied(a: int, b: int, width: float, lapse: float = 0.0) -> Likelihood:
    """a and b are called equally good."""
    return lambda f: (1 - lapse) * (ndtr(width - f[a] + f[b]) - ndtr(-width - f[a] + f[b])) + lapse / 3


def best(items: Sequence[int], first: int) -> Likelihood:
    """`first` is the best of items, each perceived once with noise of variance 1/2."""

    def likelihood(f: list[Array]) -> Array:
        total = np.zeros_like(f[0])
        for z, w in zip(NODES, WEIGHTS):
            one = np.full_like(f[0], w)
            for j in items:
                if j != first:
                    one *= ndtr((f[first] + z * np.sqrt(0.5) - f[j]) / np.sqrt(0.5))
            total += one
        return total

    return likelihood


def order_of_three(a: int, b: int, c: int) -> Likelihood:
    """a before b before c, by the noise of the one in the middle."""

    def likelihood(f: list[Array]) -> Array:
        total = np.zeros_like(f[0])
        for z, w in zip(NODES, WEIGHTS):
            middle = f[b] + z * np.sqrt(0.5)
            total += w * ndtr((f[a] - middle) / np.sqrt(0.5)) * ndtr((middle - f[c]) / np.sqrt(0.5))
        return total

    return likelihood


def by_grid(K: Any, mean: Any, likelihoods: Sequence[Likelihood], points: int = 45) -> tuple[Array, float]:
    """P(a beats b) (n x n) and the log evidence, n = 3 or 4, from a grid over f_i - f_last: no more is needed."""
    n = len(mean)
    A = np.hstack([np.eye(n - 1), -np.ones((n - 1, 1))])
    V, m = A @ K @ A.T, A @ mean
    L = np.linalg.cholesky(V)
    axis = np.linspace(-6.5, 6.5, points)
    unit = np.stack(np.meshgrid(*[axis] * (n - 1), indexing="ij"), axis=-1).reshape(-1, n - 1)
    weight = np.exp(-0.5 * (unit**2).sum(axis=1))
    d = m + unit @ L.T
    f = [*d.T, np.zeros(len(d))]
    joint = weight.copy()
    for likelihood in likelihoods:
        joint *= likelihood(f)
    evidence = joint.sum() / weight.sum()
    P = np.array([[(joint * ndtr(f[a] - f[b])).sum() / joint.sum() for b in range(n)] for a in range(n)])
    return P, float(np.log(evidence))


def after_choice(mean: Array, cov: Array, winner: int, loser: int) -> tuple[Array, Array]:
    """Mean and covariance of N(mean, cov) times Phi(f_winner - f_loser), by the moments of a truncated normal."""
    along = cov[:, winner] - cov[:, loser]
    sd = float(np.sqrt(1.0 + along[winner] - along[loser]))
    z = (mean[winner] - mean[loser]) / sd
    ratio = float(np.exp(norm.logpdf(z) - norm.logcdf(z)))
    return mean + along * ratio / sd, cov - np.outer(along, along) * ratio * (z + ratio) / sd**2
