"""Variational Bayes for the factor g = W H of [H12] section 5: independent Gaussians over W and H, Gaussian g given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.preferences.collaborative.cells import Sums, Told

Array = npt.NDArray[np.float64]

WIDE = 1000
"""Pairs up to which the start is from their own singular vectors; beyond, from those of the items."""


class Factors(NamedTuple):
    """Means and variances of W (U x D) and of H (D x P)."""

    mw: Array
    vw: Array
    mh: Array
    vh: Array


def begin(told: Told, t3: Array, t4: Array) -> Factors:
    """Where to start from: means from singular vectors of the table of what was told of g, 0 where nothing was.

    With nothing but zeros there would be no direction to go. Variances are those of the priors.
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


def refined(q: Factors, told: Told, to_w: tuple[Array, Array], to_h: tuple[Array, Array]) -> Factors:
    """One pass: everybody's weights, one function after the other, then every pair's values, likewise.

    to_w, to_h: precisions and precisions times means of the priors, (U x D) and (D x P). Each step is the best of its
    weights or values, all others as they are.
    """
    mh, vh = np.ascontiguousarray(q.mh.T), np.ascontiguousarray(q.vh.T)
    mw, vw = _half(told.by_user(mh, vh), q.mw, *to_w)
    mh, vh = _half(told.by_pair(mw, vw), mh, to_h[0].T, to_h[1].T)
    return Factors(mw, vw, np.ascontiguousarray(mh.T), np.ascontiguousarray(vh.T))


def _half(sums: Iterable[Sums], x: Array, t0: Array, n0: Array) -> tuple[Array, Array]:
    """New means and variances (A x D) of one side, x their means so far, t0 and n0 of the prior (A x D)."""
    mean, var = n0 / t0, 1.0 / t0  # of who has no row
    for who, cross, spread, pull in sums:
        mean[who], var[who] = settled(cross, spread, pull, x[who], t0[who], n0[who])
    return mean, var


def settled(cross: Array, spread: Array, pull: Array, x: Array, t0: Array, n0: Array) -> tuple[Array, Array]:
    """Means, one function after the other from x on, and variances (A x D), of sums of rows; overwrites cross."""
    i = np.arange(x.shape[1])
    cross[:, i, i] += t0 + spread
    pull = pull + n0
    precision = cross[:, i, i]
    x = x.copy()
    for d in i:
        x[:, d] += (pull[:, d] - np.einsum("ad,ad->a", cross[:, d], x)) / precision[:, d]
    return x, 1.0 / precision
