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
    whole = items[n - 1] == n - 1  # rising and distinct: all from 0 on
    for a in range(w.size):
        f, row = w[a], columns[a]
        if whole and a > 0:
            for j in range(n):
                out[j] += f * row[j]
        elif whole:
            for j in range(n):
                out[j] = f * row[j]
        else:
            for j in range(n):
                out[j] = (out[j] if a > 0 else 0.0) + f * row[items[j]]
    return out


@noinline
@primitive(_column_scores_loop)
def column_scores(columns: Array, items: Ints, w: Array) -> Array:
    """Return the scores w . B_j of the items with indices `items` (n,), ascending, as (n,). `columns` (k x m) has the k
    factors B_j of each of m items j as column j; `w` (k,) are those of the user."""
    chosen = columns[:, items]
    s = w[0] * chosen[0]
    for a in range(1, w.size):
        s += w[a] * chosen[a]
    return s  # type: ignore[no-any-return]


@noinline
@kernel
def inverse_from_root(L: Array, out: Array) -> None:
    """Write (L L')^-1 into `out`, for a lower triangular `L`; both k x k."""
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
    """Update V^-1, given as `inverse` (k x k), to (V + x x')^-1 in place, for the k factors `x` (k,). Return 1 + x'
    V^-1 x, the factor by which det V grows."""
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
    """Return copies of `inverse` (n x k x k) and `growth` (n,), two arrays with an entry for each of n users of k
    factors, with room for at least `users` users; growth is infinite for the new ones, so that their factors are
    computed at their first rating."""
    n, k = growth.size, inverse.shape[1]
    more, grown = np.zeros((max(users, 2 * n), k, k)), np.full(max(users, 2 * n), np.inf)
    for i in range(n):
        grown[i] = growth[i]
        for a in range(k):
            for b in range(k):
                more[i, a, b] = inverse[i, a, b]
    return more, grown
