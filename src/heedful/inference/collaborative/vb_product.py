"""Variational Bayes for the factor g = W H of [H12] section 5: independent Gaussians over W and H, given a
Gaussian g.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.collaborative.priors import triangle
from heedful.inference.collaborative.sparse_cells import SiteSums, Sums

Array = npt.NDArray[np.float64]

WIDE = 1000
"""The greatest number of pairs with which the start is from the singular vectors of pairs; with more, from those of
items."""

_AT_ONCE, _DEEP = 1 << 18, 512  # numbers of sums that are made together, of so many at a time: they stay in the cache


class Factors(NamedTuple):
    """The means and variances of W (U x D) and of H (D x P)."""

    mw: Array
    vw: Array
    mh: Array
    vh: Array


def initial_factors(told: SiteSums, t3: Array, t4: Array) -> Factors:
    """Return the factors to start from: prior variances, and means from the singular vectors of the table of means
    of g (0 for a cell without answers).

    A start at zero would leave no direction to move in. `t3`, `t4`: prior precisions of W and H.
    """
    of, (D, P) = told.of, t4.shape
    mw, mh = np.zeros((of.U, D)), np.zeros((D, P))
    if P <= WIDE:
        from scipy.sparse import csr_array

        u, p, g = told.means()
        M = csr_array((g, (u, p)), shape=(of.U, P))
        _, V = np.linalg.eigh((M.T @ M).toarray())
        k = min(D, P, of.U)
        mh[:k] = V[:, ::-1][:, :k].T
        mw[:, :k] = M @ mh[:k].T
    else:
        n = int(of.second.max()) + 1
        score = told.score(n)
        _, V = np.linalg.eigh(score.T @ score)
        k = min(D, n, of.U)
        V = V[:, ::-1][:, :k] / np.sqrt(n)
        mw[:, :k], mh[:k] = score @ V, (V[of.first] - V[of.second]).T
    return Factors(mw, 1.0 / t3, mh, 1.0 / t4)


def sweep(q: Factors, told: SiteSums, to_w: tuple[Array, Array], to_h: tuple[Array, Array]) -> Factors:
    """Do one pass of coordinate ascent: each person's weights, one function after the other, then each pair's values.

    to_w, to_h: natural parameters of the priors, (U x D) and (D x P). Each step is optimal with everything else fixed.
    """
    if not told.of.lists:
        return _sweep_dense(q, told, to_w, to_h)
    mh, vh = np.ascontiguousarray(q.mh.T), np.ascontiguousarray(q.vh.T)
    mw, vw = _half(told.by_user(mh, vh), q.mw, *to_w)
    mh, vh = _half(told.by_pair(mw, vw), mh, to_h[0].T, to_h[1].T)
    return Factors(mw, vw, np.ascontiguousarray(mh.T), np.ascontiguousarray(vh.T))


def _half(sums: Iterable[Sums], x: Array, t0: Array, n0: Array) -> tuple[Array, Array]:
    """Return the new means and variances (A x D) of one side, from its means x so far.

    t0, n0 (A x D): natural parameters of its prior.
    """
    mean, var = n0 / t0, 1.0 / t0  # of who has no row
    for who, cross, spread, pull in sums:
        mean[who], var[who] = coordinate_ascent(cross, spread, pull, x[who], t0[who], n0[who])
    return mean, var


def coordinate_ascent(cross: Array, spread: Array, pull: Array, x: Array, t0: Array, n0: Array) -> tuple[Array, Array]:
    """Return means (A x D), updated one function after the other from x, and variances (A x D), from sums over
    rows.

    `cross` (A x D x D), `spread` and `pull` (A x D): the sums of t m m', t v and n m; `cross` is overwritten. t0, n0 (A
    x D): the prior.
    """
    i = np.arange(x.shape[1])
    cross[:, i, i] += t0 + spread
    pull = pull + n0
    precision = cross[:, i, i]
    x = x.copy()
    for d in i:
        x[:, d] += (pull[:, d] - np.einsum("ad,ad->a", cross[:, d], x)) / precision[:, d]
    return x, 1.0 / precision


# ---------------------------------------------------------------------------- the same where the table is kept whole


def _sweep_dense(q: Factors, told: SiteSums, to_w: tuple[Array, Array], to_h: tuple[Array, Array]) -> Factors:
    """Do the pass of `sweep` on a dense table: functions are rows, and only the upper triangle of t m m' is summed."""
    mw, vw = _side(told.t.T, told.n.T, q.mh, q.vh, q.mw.T, to_w[0].T, to_w[1].T)
    mh, vh = _side(told.t, told.n, mw, vw, q.mh, *to_h)
    return Factors(np.ascontiguousarray(mw.T), np.ascontiguousarray(vw.T), mh, vh)


def _side(T: Array, N: Array, m: Array, v: Array, x: Array, t0: Array, n0: Array) -> tuple[Array, Array]:
    """Return the new means and variances (D x A) of one side from its means x (D x A).

    t0, n0: its prior; m and v (D x B): the other side; T and N (B x A): the table.
    """
    D, (B, A) = len(m), T.shape
    starts = np.cumsum(np.arange(D + 1, 1, -1)) - D - 1  # of the rows of the triangle: d with d, d + 1, ...
    count = D * (D + 1) // 2
    size = max(min(_AT_ONCE // count, A), 1)
    mean, var = x.copy(), np.empty((D, A))
    made, cross, back = np.empty((count, min(B, _DEEP))), np.zeros((count, size)), np.empty((D, size))
    for lo in range(0, A, size):
        at = slice(lo, lo + size)
        here, each = mean[:, at], var[:, at]
        cross, back = cross[:, : here.shape[1]], back[:, : here.shape[1]]
        for k in range(0, B, _DEEP):
            part = m[:, k : k + _DEEP]
            products = made[:, : part.shape[1]]
            triangle(part, products)
            if k == 0:
                np.matmul(products, T[:_DEEP, at], out=cross)
            else:
                cross += products @ T[k : k + _DEEP, at]
        each[:] = 1.0 / (cross[starts] + v @ T[:, at] + t0[:, at])
        pull = m @ N[:, at] + n0[:, at]
        for d, first in enumerate(starts.tolist()):
            after = cross[first + 1 : first + D - d]
            here[d] = (pull[d] - np.einsum("ea,ea->a", after, here[d + 1 :])) * each[d]
            pull[d + 1 :] -= np.multiply(after, here[d], out=back[d + 1 :])
    return mean, var
