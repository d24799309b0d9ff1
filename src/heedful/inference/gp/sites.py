"""Sites of EP (expectation propagation): a Gaussian factor for each pairwise comparison, and the Gaussian over the
utilities of items that they define together.

The site of a row, a comparison of items a and b, is exp(-tau g^2 / 2 + nu g), with g = f_a - f_b the difference of
their utilities. `tau` and `nu` (p,) are those of p rows. `m` and `v` (p,) are mean and variance of the cavities, the
Gaussians of g without the row's own site; `log_z` (p,) is the log integral of the row's likelihood over its cavity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]


LARGE = 200
"""Size (number of items) from which a single matrix is inverted by Cholesky."""


class Sites(NamedTuple):
    """The sites of p comparisons, which stand for the answers in the posterior.

    `sweeps`: number of sweeps that EP took; `moved`: the largest relative change of a site in the last sweep. EP did
    not converge if that is above the tolerance.
    """

    tau: Array
    nu: Array
    sweeps: int = 0
    moved: float = 0.0


def initial_sites(sites: Sites | None, count: int) -> tuple[Array, Array]:
    """Return tau and nu (count,) from which expectation propagation starts: copies of those in `sites` for the first
    answers, and 0 for later ones; None stands for no sites."""
    tau, nu = np.zeros(count), np.zeros(count)
    if sites is not None:
        had = min(sites.tau.size, count)
        tau[:had], nu[:had] = sites.tau[:had], sites.nu[:had]
    return tau, nu


def cavities(m: Array, v: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
    """Return the cavities of p rows, from `m` and `v`, mean and variance of g with all sites.

    A row that was given several times has as many sites; one copy is removed.
    """
    left = np.maximum(1.0 - v * tau, 1e-10)
    return (m - v * nu) / left, v / left


def matched_sites(m: Array, v: Array, slope: Array, bend: Array) -> tuple[Array, Array]:
    """Return tau and nu, (p,) each, of the sites that match the moments of p likelihoods over cavities N(m, v).

    `slope`, `bend` (p,): first and minus the second derivative of log_z by m.
    """
    ends = 1.0 - v * bend
    return bend / ends, (slope + m * bend) / ends


def site_steps(m: Array, v: Array, slope: Array, bend: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
    """Return by how much `tau` and `nu` must change, (p,) each, to become the `matched_sites`."""
    to_tau, to_nu = matched_sites(m, v, slope, bend)
    return to_tau - tau, to_nu - nu


def site_changes(to_tau: Array, to_nu: Array, tau: Array, nu: Array) -> Array:
    """Return the size (p,) of the change of each site by `to_tau`, `to_nu` (p,): relative for large ones, absolute for
    small."""
    return np.maximum(np.abs(to_tau) / (1.0 + np.abs(tau)), np.abs(to_nu) / (1.0 + np.abs(nu)))


def log_scales(log_z: Array, m: Array, v: Array, tau: Array, nu: Array) -> Array:
    """Return for each row (p,) its `log_z` minus the log integral of its site over its cavity."""
    grown = 1.0 + v * tau
    return log_z + 0.5 * np.log(grown) - 0.5 * (nu * (2.0 * m + v * nu) - m * m * tau) / grown


class Group(NamedTuple):
    """Indices for o answers of r comparisons each that share noise (such as rankings of one length)."""

    rows: Ints
    """(o x r) indices of the rows"""
    N: Array
    """(o x r x r) covariance D D' / 2 of the noise of the rows, with rows e_winner - e_loser in D"""
    where: Ints
    """(4 o r r) flat indices into T (U x n x n) of (a_i, a_j), (b_i, b_j), (a_i, b_j), (b_i, a_j), for rows i and j of
    an answer that compare a with b
    """
    ends: Ints
    """(2 o r) flat indices into h (U x n) of the winners, then of the losers"""


class Table(NamedTuple):
    """The p comparisons (`rows`) of U people over n items, with their indices into flat arrays; made by `make_table`.

    The arrays T (U x n x n) and h (U x n) hold, for each person, the product of the sites exp(-f' T f / 2 + h' f) of
    the utilities f; `groups` are the answers of several comparisons."""

    rows: PairRows
    U: int
    n: int
    alone: Ints
    """(i,) indices of the rows that are answers of their own"""
    where: Ints
    """(4 i) flat indices into T of (a, a), (b, b), (a, b), (b, a), for rows that compare a with b"""
    ends: Ints
    """(2 i) flat indices into h of the winners, then of the losers"""
    groups: tuple[Group, ...]

    def natural(self, tau: Array, nu: Array) -> tuple[Array, Array]:
        """Return T (U x n x n) and h (U x n). The noise that rows of one answer share is integrated out."""
        times = self.rows.times
        alone = self.alone
        precision, pull = times[alone] * tau[alone], times[alone] * nu[alone]
        where, ends = [self.where], [self.ends]
        values, pulls = [precision, precision, -precision, -precision], [pull, -pull]
        for group in self.groups:
            t, v, w = tau[group.rows], nu[group.rows], times[group.rows][:, :1]
            _, C = perception_covariance(t, group.N)
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
        """Return for each of U people (U,) the log constant that remains from integrating out the noise that rows of
        one answer share.

        It is the sum over these answers of log |I + N T|^(-1/2) + nu' C nu / 2; T = diag(tau), N is the covariance of
        the noise, C its covariance given the sites.
        """
        out = np.zeros(self.U)
        for group in self.groups:
            t, v = tau[group.rows], nu[group.rows]
            _, C = perception_covariance(t, group.N)
            half = 0.5 * np.einsum("oi,oij,oj->o", v, C, v)
            half -= 0.5 * np.linalg.slogdet(np.eye(t.shape[1]) + group.N * t[:, None, :])[1]
            first = group.rows[:, 0]
            out += sum_by(self.rows.user[first], self.rows.times[first] * half, self.U)
        return out

    def site_marginals(self, mean: Array, cov: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
        """Return for each row mean and variance, (p,) each, of the quantity on which its site acts, given `mean` (U x
        n) and `cov` (U x n x n) of the utilities f.

        For a row that is an answer of its own the quantity is g = f_a - f_b; for one of several rows of an answer it is
        the perceived difference y = f_a - f_b + noise.
        """
        m, v = np.empty(tau.size), np.empty(tau.size)
        alone = self.alone
        v[alone] = np.maximum(_gap_covariances(cov, self.where, alone.size), 0.0)
        winners, losers = mean.take(self.ends).reshape(2, -1)
        m[alone] = winners - losers
        for group in self.groups:
            G, C = perception_covariance(tau[group.rows], group.N)
            V = _gap_covariances(cov, group.where, group.N.size).reshape(group.N.shape)
            winners, losers = mean.take(group.ends).reshape(2, *group.rows.shape)
            d = winners - losers + (group.N @ nu[group.rows][:, :, None])[:, :, 0]
            m[group.rows] = (G @ d[:, :, None])[:, :, 0]
            v[group.rows] = np.einsum("oii->oi", C) + np.einsum("oij,ojk,oik->oi", G, V, G)
        return m, v


class Design(NamedTuple):
    """p observations of one person (U = 1) about linear combinations d . f of n utilities (or weights), prepared for
    sweeps of EP.

    It generalises `Table`, where d = e_winner - e_loser, and has the same methods; rows share no noise. Made by
    `make_design`. `D` (p x n): the vectors d.
    """

    rows: PairRows
    D: Array
    U: int = 1

    def natural(self, tau: Array, nu: Array) -> tuple[Array, Array]:
        t, v = self.rows.times * tau, self.rows.times * nu
        return ((self.D * t[:, None]).T @ self.D)[None], (self.D.T @ v)[None]

    def noise_evidence(self, tau: Array, nu: Array) -> Array:
        return np.zeros(1)

    def site_marginals(self, mean: Array, cov: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
        return self.D @ mean[0], np.maximum(np.vecdot(self.D @ cov[0], self.D), 0.0)


def make_design(D: Array, times: Array, equal: npt.NDArray[np.bool_]) -> Design:
    """Make a `Design` of p observations about n utilities f: d . f was perceived as positive or, where `equal`, as a
    tie.

    `D` (p x n): the vectors d; `times` (p,): how often each was observed; `equal` (p,).
    """
    p = len(D)
    return Design(PairRows(np.zeros(p, np.int64), np.zeros((p, 2), np.int64), equal, times, np.full(p, -1)), D)


def make_table(rows: PairRows, U: int, n: int) -> Table:
    """Prepare the comparisons `rows` of U people over n items for sweeps of EP.

    Answers of several rows that share noise (groups) are handled together if they have equally many rows.
    """
    [alone] = (rows.group < 0).nonzero()
    [shared] = (rows.group >= 0).nonzero()
    shared = shared[rows.group[shared].argsort(kind="stable")]
    _, starts, counts = np.unique(rows.group[shared], return_index=True, return_counts=True)
    groups = []
    for r in np.unique(counts).tolist():
        answers = shared[starts[counts == r][:, None] + np.arange(r)]
        u, a, b = rows.user[answers], rows.pairs[answers, 0], rows.pairs[answers, 1]
        i, j = (k.ravel() for k in np.indices((r, r)))
        N = 0.5 * (_meet(a, a) + _meet(b, b) - _meet(a, b) - _meet(b, a))
        ui, ai, bi, aj, bj = (x.ravel() for x in (u[:, i], a[:, i], b[:, i], a[:, j], b[:, j]))
        where = _four(ui, ai, bi, aj, bj, n)
        groups.append(Group(answers, N, where, _two(u.ravel(), a.ravel(), b.ravel(), n)))
    u, a, b = rows.user[alone], rows.pairs[alone, 0], rows.pairs[alone, 1]
    return Table(rows, U, n, alone, _four(u, a, b, a, b, n), _two(u, a, b, n), tuple(groups))


def _meet(x: Ints, y: Ints) -> Array:
    same: Array = (x[:, :, None] == y[:, None, :]).astype(np.float64)
    return same


def _four(u: Ints, a: Ints, b: Ints, c: Ints, d: Ints, n: int) -> Ints:
    """Return the flat indices (4 k,) of (a, c), (b, d), (a, d), (b, c), of people `u` in an array (U x n x n)."""
    base = u * (n * n)
    return np.concatenate([base + a * n + c, base + b * n + d, base + a * n + d, base + b * n + c])


def _two(u: Ints, a: Ints, b: Ints, n: int) -> Ints:
    return np.concatenate([u * n + a, u * n + b])


def perception_covariance(tau: Array, N: Array) -> tuple[Array, Array]:
    """Return the matrices G = (I + N T)^-1 and C = G N, (o x r x r) each, for o answers of r rows whose noise is
    correlated.

    `tau` (o x r) are the precisions of the rows' EP sites (Gaussian factors), and T = diag(tau); `N` (o x r x r) are
    the covariances of the noise. C is the covariance of the perceived differences (utility difference plus noise),
    given the utilities and the sites.
    """
    G = np.linalg.inv(np.eye(N.shape[1]) + N * tau[:, None, :]).astype(np.float64, copy=False)
    C = G @ N
    return G, 0.5 * (C + C.transpose(0, 2, 1))


def sum_by(where: Ints, values: Array, size: int) -> Array:
    """Return the sums (size,) of the `values` with each index 0 to size - 1; `where` has the index of each value."""
    return np.bincount(where, values, size).astype(np.float64, copy=False)  # without values, bincount returns integers


def _gap_covariances(cov: Array, where: Ints, count: int) -> Array:
    """Return the covariances (count,) of f_a - f_b with f_c - f_d at `where` (`_four`); a and b may swap."""
    ac, bd, ad, bc = cov.take(where).reshape(4, count)
    return (ac - ad) + (bd - bc)


def is_diagonal(K: Array) -> bool:
    """Return True if K is one square diagonal matrix without a 0 on the diagonal (not a stack of matrices)."""
    square = K.ndim == 2 and K.shape[0] == K.shape[1]
    return square and bool(np.count_nonzero(K) <= len(K) and (K.diagonal() != 0.0).all())


def inverses(B: Array) -> Array:
    """Return the inverses of U symmetric matrices `B`, (U x n x n).

    A single large positive definite matrix (U = 1) is inverted by Cholesky, in half the time.
    """
    if len(B) == 1 and B.shape[-1] >= LARGE:
        from scipy.linalg.lapack import dpotrf, dpotri

        factor, fails = dpotrf(B[0], lower=1, clean=1)
        if not fails:
            out: Array = dpotri(factor, lower=1, overwrite_c=1)[0]
            out += np.tril(out, -1).T
            return out[None]
    return np.linalg.inv(B).astype(np.float64, copy=False)


def root(K: Array) -> Array:
    """Return L with L L' = K, for a positive semidefinite n x n matrix K, or a stack of such matrices.

    L is n x n, or has fewer columns if K is singular, as with identical items.
    """
    if is_diagonal(K):
        return np.diag(np.sqrt(K.diagonal()))
    try:
        return np.linalg.cholesky(K).astype(np.float64, copy=False)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(K)
        nonzero = values > values[..., -1:] * K.shape[-1] * np.finfo(float).eps
        nonzero, width = np.where(nonzero, values, 0.0), int(nonzero.sum(axis=-1).max())
        return vectors[..., -width:] * np.sqrt(nonzero[..., None, -width:])
