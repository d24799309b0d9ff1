"""Linear algebra for rarely switching OFUL: update V^-1 and det V for a new row, and score items with a fixed vector.

OFUL is the linear bandit of Abbasi-Yadkori, Pal & Szepesvari, *Improved Algorithms for Linear Stochastic Bandits*,
2011, which in section 5.1 computes a new estimate only when the determinant of the design matrix V has grown enough.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints, kernel, noinline, primitive
from heedful.learners.ratings.ridge import invert_triangle

Array = npt.NDArray[np.float64]


def _column_scores_loop(columns: Array, items: Ints, w: Array) -> Array:
    n = items.size
    out = np.empty(n)
    contiguous = items[n - 1] == n - 1  # rising and distinct: all from 0 on
    for a in range(w.size):
        f, row = w[a], columns[a]
        if contiguous and a > 0:
            for j in range(n):
                out[j] += f * row[j]
        elif contiguous:
            for j in range(n):
                out[j] = f * row[j]
        else:
            for j in range(n):
                out[j] = (out[j] if a > 0 else 0.0) + f * row[items[j]]
    return out


@noinline
@primitive(_column_scores_loop)
def column_scores(columns: Array, items: Ints, w: Array) -> Array:
    """Return the inner products of one user's factors `w` (k,) with the factors of the items `items` (n,): scores (n,).

    `items` are ascending indices of columns of `columns` (k x m), which has the k factors of each of m items as a
    column.
    """
    chosen = columns[:, items]
    s = w[0] * chosen[0]
    for a in range(1, w.size):
        s += w[a] * chosen[a]
    return s  # type: ignore[no-any-return]


@noinline
@kernel
def inverse_from_root(L: Array, out: Array) -> None:
    """Write the inverse of L L' into `out` (k x k), for a lower triangular matrix L = `L` (k x k)."""
    k = L.shape[0]
    M = np.zeros((k, k))
    invert_triangle(L, M)
    for a in range(k):
        for b in range(k):
            v = 0.0
            for i in range(max(a, b), k):
                v += M[i, a] * M[i, b]
            out[a, b] = v


@noinline
@kernel
def rank_one_update(inverse: Array, x: Array) -> float:
    """Update the inverse of a matrix V, in place, to that of V + x x', and return 1 + x' V^-1 x, the factor by which
    the determinant of V grows.

    `inverse` (k x k) is V^-1, `x` (k,) are the k factors of a rated item.
    """
    k = x.size
    w, d = np.zeros(k), 1.0
    for a in range(k):
        for b in range(k):
            w[a] += inverse[a, b] * x[b]
        d += x[a] * w[a]
    d = max(d, 1.0)
    for a in range(k):
        for b in range(k):
            inverse[a, b] -= w[a] * w[b] / d
    return d


@noinline
@kernel
def grow_by_user(inverse: Array, growth: Array, users: int) -> tuple[Array, Array]:
    """Return copies of `inverse` and `growth` with room for at least `users` users, and for at least twice as many as
    now.

    `inverse` (n x k x k) and `growth` (n,) have an element for each of n users of k factors (`ALBState`). For new users
    the inverse is 0 and the growth infinite, so that their factors are computed at their first rating.
    """
    n, k = growth.size, inverse.shape[1]
    more, grown = np.zeros((max(users, 2 * n), k, k)), np.full(max(users, 2 * n), np.inf)
    for i in range(n):
        grown[i] = growth[i]
        for a in range(k):
            for b in range(k):
                more[i, a, b] = inverse[i, a, b]
    return more, grown
