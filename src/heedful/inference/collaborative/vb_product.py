"""Variational Bayes for the factor g = W H of [H12] section 5, where g are preferences of people on pairs of items: it
finds independent Gaussians over the weights W of people and the values H of pairs, given Gaussian sites of g.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.collaborative.priors import triangle
from heedful.inference.collaborative.sparse_cells import Cells, SiteSums, Sums

Array = npt.NDArray[np.float64]

WIDE = 1000
"""With at most this many pairs of items, the start is from singular vectors over pairs; with more, from those over
items.
"""

_AT_ONCE, _DEEP = 1 << 18, 512  # numbers of sums made together, and of terms at a time, so that they stay in the cache


class Factors(NamedTuple):
    """The Gaussians over the two factors of the preferences g = W H, all elements independent, for D functions.

    W are the weights of U people, with means `mw` and variances `vw` (U x D); H are the values of the functions at P
    pairs of items, with means `mh` and variances `vh` (D x P).
    """

    mw: Array
    vw: Array
    mh: Array
    vh: Array

    def at(self, of: Cells) -> tuple[Array, Array]:
        """Return mean and variance, (R,) each, of g at each of R answers."""
        mw, vw, mh, vh = self
        return of.at_rows((mw, mh)), of.at_rows((mw * mw, vh), (vw, mh * mh + vh))


def initial_factors(sums: SiteSums, t3: Array, t4: Array) -> Factors:
    """Return the Gaussians over W and H to start from: means from singular vectors of the table (U x P) of observed
    means of the preferences g = W H, and the prior variances.

    `sums`: the sites of g; cells of the table without an answer count as 0. `t3` (U x D), `t4` (D x P): prior
    precisions of W and H. Means of 0 would be a stationary point of the iteration.
    """
    of, (D, P) = sums.of, t4.shape
    mw, mh = np.zeros((of.U, D)), np.zeros((D, P))
    if P <= WIDE:
        from scipy.sparse import csr_array

        u, p, g = sums.means()
        M = csr_array((g, (u, p)), shape=(of.U, P))
        _, V = np.linalg.eigh((M.T @ M).toarray())
        k = min(D, P, of.U)
        mh[:k] = V[:, ::-1][:, :k].T
        mw[:, :k] = M @ mh[:k].T
    else:
        n = int(of.second.max()) + 1
        score = sums.score(n)
        _, V = np.linalg.eigh(score.T @ score)
        k = min(D, n, of.U)
        V = V[:, ::-1][:, :k] / np.sqrt(n)
        mw[:, :k], mh[:k] = score @ V, (V[of.first] - V[of.second]).T
    return Factors(mw, 1.0 / t3, mh, 1.0 / t4)


def sweep(q: Factors, sums: SiteSums, to_w: tuple[Array, Array], to_h: tuple[Array, Array]) -> Factors:
    """Return the Gaussians `q` over W and H after one pass of coordinate ascent: the weights W of each person, one
    function after the other, then the values H of each pair of items.

    `to_w` (U x D each), `to_h` (D x P each): precision, and precision times mean, of the priors of W and H. Each step
    is optimal with everything else fixed.
    """
    if not sums.of.lists:
        return _sweep_dense(q, sums, to_w, to_h)
    mh, vh = np.ascontiguousarray(q.mh.T), np.ascontiguousarray(q.vh.T)
    mw, vw = _half(sums.by_user(mh, vh), q.mw, *to_w)
    mh, vh = _half(sums.by_pair(mw, vw), mh, to_h[0].T, to_h[1].T)
    return Factors(mw, vw, np.ascontiguousarray(mh.T), np.ascontiguousarray(vh.T))


def _half(sums: Iterable[Sums], x: Array, t0: Array, n0: Array) -> tuple[Array, Array]:
    """Return new means and variances (A x D) of weights, or values at pairs, from `sums`, means `x` and a prior."""
    mean, var = n0 / t0, 1.0 / t0  # for people or pairs without answers
    for rows, cross, spread, pull in sums:
        mean[rows], var[rows] = coordinate_ascent(cross, spread, pull, x[rows], t0[rows], n0[rows])
    return mean, var


def coordinate_ascent(cross: Array, spread: Array, pull: Array, x: Array, t0: Array, n0: Array) -> tuple[Array, Array]:
    """Return new means (A x D), updated from `x` one function after the other, and variances (A x D), of the weights of
    A people or the values of A pairs of items, for D functions.

    For the answers of each, t and n are precision and precision times mean of the site, m and v (D,) mean and variance
    of the other side (pairs or people). `cross` (A x D x D), `spread` and `pull` (A x D) are the sums of t m m', t v
    and n m; `cross` is overwritten. `t0`, `n0` (A x D): natural parameters of the prior.
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


def _sweep_dense(q: Factors, sums: SiteSums, to_w: tuple[Array, Array], to_h: tuple[Array, Array]) -> Factors:
    """Return the factors `q` after one `sweep` of a dense table; of symmetric sums only the upper triangle is made."""
    mw, vw = _side(sums.t.T, sums.n.T, q.mh, q.vh, q.mw.T, to_w[0].T, to_w[1].T)
    mh, vh = _side(sums.t, sums.n, mw, vw, q.mh, *to_h)
    return Factors(np.ascontiguousarray(mw.T), np.ascontiguousarray(vw.T), mh, vh)


def _side(T: Array, N: Array, m: Array, v: Array, x: Array, t0: Array, n0: Array) -> tuple[Array, Array]:
    """Return new means and variances (D x A) of one side of a dense table, from means `x`, a prior, the other side."""
    D, (B, A) = len(m), T.shape
    starts = np.cumsum(np.arange(D + 1, 1, -1)) - D - 1  # of rows of the triangle: d with d, d + 1, ...
    count = D * (D + 1) // 2
    size = max(min(_AT_ONCE // count, A), 1)
    mean, var = x.copy(), np.empty((D, A))
    buffer, cross, back = np.empty((count, min(B, _DEEP))), np.zeros((count, size)), np.empty((D, size))
    for lo in range(0, A, size):
        block = slice(lo, lo + size)
        means, variances = mean[:, block], var[:, block]
        cross, back = cross[:, : means.shape[1]], back[:, : means.shape[1]]
        for k in range(0, B, _DEEP):
            part = m[:, k : k + _DEEP]
            products = buffer[:, : part.shape[1]]
            triangle(part, products)
            if k == 0:
                np.matmul(products, T[:_DEEP, block], out=cross)
            else:
                cross += products @ T[k : k + _DEEP, block]
        variances[:] = 1.0 / (cross[starts] + v @ T[:, block] + t0[:, block])
        pull = m @ N[:, block] + n0[:, block]
        for d, first in enumerate(starts.tolist()):
            after = cross[first + 1 : first + D - d]
            means[d] = (pull[d] - np.einsum("ea,ea->a", after, means[d + 1 :])) * variances[d]
            pull[d + 1 :] -= np.multiply(after, means[d], out=back[d + 1 :])
    return mean, var
