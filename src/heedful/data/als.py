"""Matrix factorisation of ratings by alternating least squares, for the movie features of [J15] section 6.1.2.

[J15] uses the "SVD embedding" of Bell & Koren (ICDM 2007, Eq. 15), fitted to the observed ratings, with the number of
factors and the regularisation chosen by cross-validation. The penalty on the size of factors is either "plain", the
same for each row, as there, or "weighted" (Zhou et al. 2008) by the row's number of ratings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

DIMENSIONS = (2, 5, 7, 10, 15, 20)
REGULARISATIONS = {"plain": (1.0, 2.0, 5.0, 7.5, 10.0, 15.0, 20.0), "weighted": (0.05, 0.075, 0.1, 0.15, 0.2)}
"""Strengths of regularisation that cross-validation tries, by penalty."""


class Factors(NamedTuple):
    """The result of a matrix factorisation with k factors, for U users and M movies: `P` (U x k) and `Q` (M x k); P Q^T
    approximates the observed ratings."""

    P: Array
    Q: Array


class Trial(NamedTuple):
    """The result of cross-validating one number of factors (`dimension`) and `regularisation`: `rmse`, the root mean
    squared error of the held-out ratings, over all folds.
    """

    dimension: int
    regularisation: float
    rmse: float


def alternating_least_squares(
    users: Ints,
    movies: Ints,
    values: Array,
    shape: tuple[int, int],
    dimension: int,
    regularisation: float,
    *,
    penalty: str = "plain",
    seed: int = 0,
    tolerance: float = 1e-4,
    sweeps: int = 100,
) -> Factors:
    """Factorise n ratings `values` (n,), given by `users` (n,) to `movies` (n,), both numbered from 0, into factors of
    k = `dimension` numbers.

    `shape` is (U, M), the numbers of users and movies. The result p_u, q_j (rows of P and Q) minimises

        L = sum (r - p_u . q_j)^2 + regularisation (sum_u c_u |p_u|^2 + sum_j c_j |q_j|^2)

    where the first sum is over the ratings r of movie j by user u, and c = 1 (`penalty` "plain") or the number of
    ratings of the row ("weighted"). P and Q are solved for in turn, until a sweep lowers L by less than the fraction
    `tolerance`, or after `sweeps`. Rows without ratings are 0. Q starts as the movies' mean ratings plus small normal
    noise, made with `seed`. There are no intercepts: the factors contain one if the ratings need it."""
    U, M = shape
    by_user = _Rows.of(users, movies, values, U, penalty)
    by_movie = _Rows.of(movies, users, values, M, penalty)
    Q = 0.1 * np.random.default_rng(seed).standard_normal((M, dimension))
    Q[:, 0] = np.bincount(movies, values, M) / np.maximum(np.bincount(movies, minlength=M), 1)
    before = np.inf
    for _ in range(sweeps):
        P, _ = by_user.best(Q, regularisation)
        Q, squares = by_movie.best(P, regularisation)
        loss = squares + regularisation * float(by_user.times @ (P**2).sum(axis=1))
        if before - loss <= tolerance * loss:
            break
        before = loss
    return Factors(P, Q)


def cross_validate(
    users: Ints,
    movies: Ints,
    values: Array,
    shape: tuple[int, int],
    dimensions: Sequence[int] = DIMENSIONS,
    regularisations: Sequence[float] = (),
    *,
    penalty: str = "plain",
    folds: int = 5,
    seed: int = 0,
) -> list[Trial]:
    """Cross-validate every combination of `dimensions` and `regularisations` in random `folds`; return the results,
    best first.

    The n ratings `values` were given by `users` to `movies`, (n,) each; `shape` is (number of users, number of movies).
    `regularisations` defaults to REGULARISATIONS for the `penalty`, which is "plain" or "weighted" as in
    `alternating_least_squares`. `seed` draws the folds and the start.
    """
    fold = np.random.default_rng([seed, 1]).permutation(values.size) % folds
    trials = []
    for dimension in dimensions:
        for regularisation in regularisations or REGULARISATIONS[penalty]:
            squares = 0.0
            for out in range(folds):
                training, left = fold != out, fold == out
                ratings = users[training], movies[training], values[training]
                P, Q = alternating_least_squares(*ratings, shape, dimension, regularisation, penalty=penalty, seed=seed)
                squares += float(((values[left] - (P[users[left]] * Q[movies[left]]).sum(axis=1)) ** 2).sum())
            trials.append(Trial(dimension, regularisation, float(np.sqrt(squares / values.size))))
    return sorted(trials, key=lambda one: one.rmse)


class _Rows(NamedTuple):
    """Ratings by row (users, or movies): those of row r are at the positions ends[r] to ends[r + 1] - 1.

    `columns` has the other side of each rating, `times` (rows,) the weight of each row's penalty |p|^2."""

    columns: Ints
    values: Array
    ends: Ints
    times: Array

    @classmethod
    def of(cls, rows: Ints, columns: Ints, values: Array, n: int, penalty: str) -> _Rows:
        order = np.argsort(rows, kind="stable")
        ends = np.searchsorted(rows[order], np.arange(n + 1))
        times = {"plain": np.ones(n), "weighted": np.diff(ends).astype(np.float64)}[penalty]
        return cls(columns[order], values[order], ends, times)

    def best(self, Q: Array, regularisation: float) -> tuple[Array, float]:
        """Return (P, minimum) for all rows: P (rows x k) minimises sum (r - p . q)^2 + regularisation sum times |p|^2,
        with q rows of `Q`."""
        n, k = self.ends.size - 1, Q.shape[1]
        A, b = np.empty((n, k, k)), np.empty((n, k))
        for r in range(n):
            lo, hi = self.ends[r], self.ends[r + 1]
            q = Q[self.columns[lo:hi]]
            A[r] = q.T @ q
            b[r] = q.T @ self.values[lo:hi]
        A += np.maximum(regularisation * self.times, 1e-12)[:, None, None] * np.eye(k)
        P = np.linalg.solve(A, b[:, :, None])[:, :, 0].astype(np.float64)
        return P, float(self.values @ self.values - (b * P).sum())  # the minimum, by the normal equations
