"""People with tastes in common, for the tests of the collaborative models."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.pairwise import PairRows, pair_rows

Array = npt.NDArray[np.float64]


class Crowded(NamedTuple):
    X: Array
    K: Array
    rows: PairRows
    f: Array
    """(U x n) the true utilities"""


def covariance(X: Array, wide: float = 1.0, amplitude: float = 1.0) -> Array:
    """Plain RBF, by hand."""
    d2 = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    return np.asarray(amplitude**2 * np.exp(-0.5 * d2 / wide**2))


def crowded(users: int, n: int, each: int, D: int = 2, seed: int = 0, amplitude: float = 1.0) -> Crowded:
    """`users` people who weigh D functions of n items with features (n x 2), `each` random choices of everybody."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = covariance(X, 1.0, amplitude) + 1e-6 * np.eye(n)
    f = rng.normal(size=(users, D)) @ rng.multivariate_normal(np.zeros(n), K, D)
    user = np.repeat(np.arange(users), each)
    a = rng.integers(n, size=user.size)
    b = (a + rng.integers(1, n, size=user.size)) % n
    won = f[user, a] - f[user, b] + rng.normal(size=user.size) > 0.0
    pairs = np.where(won[:, None], np.stack([a, b], axis=1), np.stack([b, a], axis=1))
    return Crowded(X, K, pair_rows(pairs, user=user), f)


def queries(users: int, n: int) -> tuple[Any, Any, Any]:
    """Everybody, every ordered pair."""
    grid = np.array([(u, i, j) for u in range(users) for i in range(n) for j in range(n) if i != j])
    return grid[:, 0], grid[:, 1], grid[:, 2]


def error(model: Any, f: Array) -> float:
    """The share of pairs that a model has in the wrong order."""
    u, a, b = queries(*f.shape)
    return float(((model.predict_proba(u, a, b) > 0.5) != (f[u, a] > f[u, b])).mean())


def triples(rows: PairRows) -> list[tuple[int, int, int]]:
    """(user, winner, loser) of each row."""
    return [(int(u), int(i), int(j)) for u, (i, j) in zip(rows.user, rows.pairs)]
