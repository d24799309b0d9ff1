"""Sites of expectation propagation on differences of utilities, and the Gaussian over the items that they make."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]


LARGE = 200
"""Items from which on one matrix is inverted as what it is, symmetric and positive definite."""


class Sites(NamedTuple):
    """What each answer adds to the log of the posterior, -tau g^2 / 2 + nu g with g = f_winner - f_loser: tau, nu (p,).

    `sweeps` says how many were needed, `moved` by how much the last one moved a site, as a share: above the tolerance,
    it did not converge.
    """

    tau: Array
    nu: Array
    sweeps: int = 0
    moved: float = 0.0


class Group(NamedTuple):
    """The rows that share noise with r - 1 others each, and where they act: o answers of r rows."""

    at: Ints
    """(o x r) the rows"""
    N: Array
    """(o x r x r) the covariance of their noise, D D' / 2"""
    where: Ints
    """(4 o r r) places in a flat T of (a_i, a_j), (b_i, b_j), (a_i, b_j), (b_i, a_j)"""
    ends: Ints
    """(2 o r) places in a flat h of the winners, then of the losers"""


class Table(NamedTuple):
    """Rows made ready for the sweeps of U people over n items: where they act in flat arrays."""

    rows: PairRows
    U: int
    n: int
    alone: Ints
    """(i,) the rows that stand alone"""
    where: Ints
    """(4 i) places in a flat T (U n n) of (a, a), (b, b), (a, b), (b, a)"""
    ends: Ints
    """(2 i) places in a flat h (U n) of the winners, then of the losers"""
    groups: tuple[Group, ...]

    def natural(self, tau: Array, nu: Array) -> tuple[Array, Array]:
        """T (U x n x n), h (U x n) of exp(-f'Tf / 2 + h'f), the product of the sites, groups' noise integrated out."""
        times = self.rows.times
        at = self.alone
        precision, pull = times[at] * tau[at], times[at] * nu[at]
        where, ends = [self.where], [self.ends]
        values, pulls = [precision, precision, -precision, -precision], [pull, -pull]
        for group in self.groups:
            t, v, w = tau[group.at], nu[group.at], times[group.at][:, :1]
            _, C = perception(t, group.N)
            # (T^-1 + N)^-1 = T - T C T, the precision of D f
            W = w[:, :, None] * (t[:, :, None] * np.eye(t.shape[1]) - t[:, :, None] * C * t[:, None, :])
            pull = w * (v - t * (C @ v[:, :, None])[:, :, 0])
            where.append(group.where)
            ends.append(group.ends)
            values += [W.ravel(), W.ravel(), -W.ravel(), -W.ravel()]
            pulls += [pull.ravel(), -pull.ravel()]
        U, n = self.U, self.n
        T = sum_by(np.concatenate(where), np.concatenate(values), U * n * n)
        return T.reshape(U, n, n), sum_by(np.concatenate(ends), np.concatenate(pulls), U * n).reshape(U, n)

    def noise_evidence(self, tau: Array, nu: Array) -> Array:
        """(U,) the log of what integrating groups' noise leaves as a factor, |I + N T|^(-1/2) e^(nu' C nu / 2)."""
        out = np.zeros(self.U)
        for group in self.groups:
            t, v = tau[group.at], nu[group.at]
            _, C = perception(t, group.N)
            half = 0.5 * np.einsum("oi,oij,oj->o", v, C, v)
            half -= 0.5 * np.linalg.slogdet(np.eye(t.shape[1]) + group.N * t[:, None, :])[1]
            first = group.at[:, 0]
            out += sum_by(self.rows.user[first], self.rows.times[first] * half, self.U)
        return out

    def believed(self, mean: Array, cov: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
        """Mean and variance (p,) of what each site is on: g of rows alone, y of rows in groups."""
        m, v = np.empty(tau.size), np.empty(tau.size)
        at = self.alone
        v[at] = np.maximum(_gap_covariances(cov, self.where, at.size), 0.0)
        won, lost = mean.take(self.ends).reshape(2, -1)
        m[at] = won - lost
        for group in self.groups:
            G, C = perception(tau[group.at], group.N)
            V = _gap_covariances(cov, group.where, group.N.size).reshape(group.N.shape)
            won, lost = mean.take(group.ends).reshape(2, *group.at.shape)
            d = won - lost + (group.N @ nu[group.at][:, :, None])[:, :, 0]
            m[group.at] = (G @ d[:, :, None])[:, :, 0]
            v[group.at] = np.einsum("oii->oi", C) + np.einsum("oij,ojk,oik->oi", G, V, G)
        return m, v


class Design(NamedTuple):
    """Rows on d . f with any d (p x n) in place of e_winner - e_loser, those of a person together; same methods as
    `Table`. Made by `design_of`."""

    rows: PairRows
    U: int
    n: int
    D: Array
    own: tuple[slice, ...]
    """the rows of each person"""

    def natural(self, tau: Array, nu: Array) -> tuple[Array, Array]:
        t, v = self.rows.times * tau, self.rows.times * nu
        T, h = np.empty((self.U, self.n, self.n)), np.empty((self.U, self.n))
        for u, at in enumerate(self.own):
            D = self.D[at]
            T[u], h[u] = (D * t[at, None]).T @ D, D.T @ v[at]
        return T, h

    def noise_evidence(self, tau: Array, nu: Array) -> Array:
        return np.zeros(self.U)

    def believed(self, mean: Array, cov: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
        m, v = np.empty(len(self.D)), np.empty(len(self.D))
        for u, at in enumerate(self.own):
            D = self.D[at]
            m[at], v[at] = D @ mean[u], np.vecdot(D @ cov[u], D)
        return m, np.maximum(v, 0.0)


def design_of(D: Array, times: Array, user: Ints, users: int, equal: npt.NDArray[np.bool_]) -> Design:
    """Rows d of D (p x n) that won, or are equally good, each so many times (p,), of people whose numbers `user` (p,)
    rise."""
    p, n = D.shape
    alone = PairRows(user, np.zeros((p, 2), np.int64), equal, times, np.full(p, -1))
    ends = np.searchsorted(user, np.arange(users + 1))
    return Design(alone, users, n, D, tuple(slice(int(a), int(b)) for a, b in pairwise(ends)))


def ready(rows: PairRows, U: int, n: int) -> Table:
    """The rows of U people over n items, those of a group together, groups of one size together."""
    [alone] = (rows.group < 0).nonzero()
    [shared] = (rows.group >= 0).nonzero()
    shared = shared[rows.group[shared].argsort(kind="stable")]
    _, starts, counts = np.unique(rows.group[shared], return_index=True, return_counts=True)
    groups = []
    for r in np.unique(counts).tolist():
        at = shared[starts[counts == r][:, None] + np.arange(r)]
        u, a, b = rows.user[at], rows.pairs[at, 0], rows.pairs[at, 1]
        i, j = (k.ravel() for k in np.indices((r, r)))
        N = 0.5 * (_meet(a, a) + _meet(b, b) - _meet(a, b) - _meet(b, a))
        ui, ai, bi, aj, bj = (x.ravel() for x in (u[:, i], a[:, i], b[:, i], a[:, j], b[:, j]))
        where = _four(ui, ai, bi, aj, bj, n)
        groups.append(Group(at, N, where, _two(u.ravel(), a.ravel(), b.ravel(), n)))
    u, a, b = rows.user[alone], rows.pairs[alone, 0], rows.pairs[alone, 1]
    return Table(rows, U, n, alone, _four(u, a, b, a, b, n), _two(u, a, b, n), tuple(groups))


def _meet(x: Ints, y: Ints) -> Array:
    same: Array = (x[:, :, None] == y[:, None, :]).astype(np.float64)
    return same


def _four(u: Ints, a: Ints, b: Ints, c: Ints, d: Ints, n: int) -> Ints:
    """Flat places of (a, c), (b, d), (a, d), (b, c) in arrays (U x n x n)."""
    base = u * (n * n)
    return np.concatenate([base + a * n + c, base + b * n + d, base + a * n + d, base + b * n + c])


def _two(u: Ints, a: Ints, b: Ints, n: int) -> Ints:
    return np.concatenate([u * n + a, u * n + b])


def perception(tau: Array, N: Array) -> tuple[Array, Array]:
    """G = (I + N T)^-1 and C = G N (o x r x r), T = diag(tau) of tau (o x r): what y is, given f, has covariance C."""
    G = np.linalg.inv(np.eye(N.shape[1]) + N * tau[:, None, :]).astype(np.float64, copy=False)
    C = G @ N
    return G, 0.5 * (C + C.transpose(0, 2, 1))


def sum_by(where: Ints, values: Array, size: int) -> Array:
    """The sums of the values that belong to each place (size,)."""
    return np.bincount(where, values, size).astype(np.float64, copy=False)  # of no values, whole numbers


def _gap_covariances(cov: Array, where: Ints, count: int) -> Array:
    """Covariances (count,) of f_a - f_b with f_c - f_d, from the places of `_four`; (a, b) and (b, a) agree."""
    ac, bd, ad, bc = cov.take(where).reshape(4, count)
    return (ac - ad) + (bd - bc)


def diagonal(K: Array) -> bool:
    """Whether this is one matrix (n x n) with nothing beside its diagonal."""
    square = K.ndim == 2 and K.shape[0] == K.shape[1]
    return square and bool(np.count_nonzero(K) <= len(K) and (K.diagonal() != 0.0).all())


def inverses(B: Array) -> Array:
    """Of symmetric matrices (U x n x n); of a large one by Cholesky where that is there, in half the time."""
    if len(B) == 1 and B.shape[-1] >= LARGE:
        from scipy.linalg.lapack import dpotrf, dpotri

        factor, fails = dpotrf(B[0], lower=1, clean=1)
        if not fails:
            out: Array = dpotri(factor, lower=1, overwrite_c=1)[0]
            out += np.tril(out, -1).T
            return out[None]
    return np.linalg.inv(B).astype(np.float64, copy=False)


def root(K: Array) -> Array:
    """L with L L' = K (n x n, or several of them), which may be singular, such as of items that are the same."""
    if diagonal(K):
        return np.diag(np.sqrt(K.diagonal()))
    try:
        return np.linalg.cholesky(K).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(K)
        kept = values > values[..., -1:] * K.shape[-1] * np.finfo(float).eps
        kept, width = np.where(kept, values, 0.0), int(kept.sum(axis=-1).max())
        return vectors[..., -width:] * np.sqrt(kept[..., None, -width:])
