"""Gaussian priors that D functions have in common, and the posteriors of these functions given Gaussian factors.

A site of a value x is a Gaussian factor exp(-tau x^2 / 2 + nu x), which stands for what answers say about x; each
function has its own sites. In all methods `tau` and `nu` (D x N) are those of D functions at the N points (pairs of
items or people) of the prior, and log integrals (D,) are those of the prior times all sites of a function.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

LEAST = 1e-9
"""The least variance of a value. The difference of two identical items has none, and would lead to a division by 0."""

_PRODUCTS = 1 << 20  # greatest number of products of two values of R that are held at once


class ItemPrior(NamedTuple):
    """The prior of the differences h = f_a - f_b of a function f at P pairs of items, with f ~ N(0, L L') over n items.

    `first` and `second` (P,) are the numbers of the items a and b of each pair. This is the preference kernel of [H12],
    without its P x P matrix."""

    L: Array
    """(n x m) a root of the covariance of the utilities f of the n items"""
    first: Ints
    second: Ints

    def variance(self) -> Array:
        """Return the prior variances of the differences at the P pairs (P,)."""
        gap = self.L[self.first] - self.L[self.second]
        return np.maximum(np.einsum("pi,pi->p", gap, gap), LEAST)  # type: ignore[no-any-return]

    def utilities(self, tau: Array, nu: Array) -> tuple[Array, Array, Array]:
        """Return the posterior of the functions over n items: means (D x n), covariances (D x n x n) and log integrals
        (D,)."""
        B, r = self._natural(tau, nu)
        C = np.linalg.inv(B)
        half = (C @ r[:, :, None])[:, :, 0]
        log_z = 0.5 * np.einsum("di,di->d", r, half) - 0.5 * np.linalg.slogdet(B)[1]
        cov = self.L @ C @ self.L.T
        return half @ self.L.T, 0.5 * (cov + cov.transpose(0, 2, 1)), log_z

    def marginals(self, tau: Array, nu: Array) -> tuple[Array, Array]:
        """Return the posterior mean and variance, (D x P) each, of the differences at the P pairs."""
        B, r = self._natural(tau, nu)
        C = np.linalg.inv(B)
        mean = (C @ r[:, :, None])[:, :, 0] @ self.L.T
        return gaps(mean, self.L @ C @ self.L.T, self.first, self.second)

    def _natural(self, tau: Array, nu: Array) -> tuple[Array, Array]:
        """Return I + L' T L (D x m x m) and L' r (D x m)."""
        D, n = len(tau), len(self.L)
        a, b = self.first, self.second
        T = np.zeros((D, n, n))
        T[:, a, b] = T[:, b, a] = -tau  # the pairs are distinct
        i = np.arange(n)
        T[:, i, i] = -T.sum(axis=2)
        pull = np.zeros((D, n, n))
        pull[:, a, b], pull[:, b, a] = nu, -nu
        return np.eye(self.L.shape[1]) + self.L.T @ T @ self.L, pull.sum(axis=2) @ self.L

    def tilted(self, tau: Array, nu: Array) -> tuple[Array, Array, Array]:
        """Return means (D x P), variances (D x P) and log integrals (D,) of the posterior of the differences."""
        mean, cov, log_z = self.utilities(tau, nu)
        m, v = gaps(mean, cov, self.first, self.second)
        return m, v, log_z


class FactorPrior(NamedTuple):
    """The prior of a function's values x at N points as a factor model: x = R z + e.

    The latent variables z ~ N(0, I) are m numbers that all points share; e has independent variances at each point. So
    the covariance of x is R R' + diag(independent): FITC has this form, and with variances 0 any covariance has."""

    R: Array
    """(N x m)"""
    independent: Array
    """(N,)"""

    def variance(self) -> Array:
        """Return the prior variances of x at the N points (N,)."""
        return np.maximum(np.einsum("ni,ni->n", self.R, self.R) + self.independent, LEAST)  # type: ignore[no-any-return]

    def inner(self, tau: Array, nu: Array) -> tuple[Array, Array, Array]:
        """Return means (D x m), covariances (D x m x m) and log integrals (D,) of the posterior of the m latent
        variables z of each function."""
        more = 1.0 + self.independent * tau
        B = np.eye(self.R.shape[1]) + np.matmul(self.R.T, (tau / more)[:, :, None] * self.R)
        C = np.linalg.inv(B)
        r = (nu / more) @ self.R
        mean = (C @ r[:, :, None])[:, :, 0]
        log_z = 0.5 * np.einsum("di,di->d", r, mean) - 0.5 * np.linalg.slogdet(B)[1]
        log_z += 0.5 * (self.independent * nu * nu / more - np.log(more)).sum(axis=1)
        return mean, 0.5 * (C + C.transpose(0, 2, 1)), log_z

    def marginals(self, tau: Array, nu: Array) -> tuple[Array, Array]:
        """Return the posterior mean and variance, (D x N) each, of the values x."""
        N, m = self.R.shape
        if N * m * (m + 1) // 2 > _PRODUCTS:
            return self.tilted(tau, nu)[:2]
        more = 1.0 + self.independent * tau
        i, j = np.triu_indices(m)
        Rt = np.ascontiguousarray(self.R.T)
        products = np.empty((i.size, N))
        triangle(Rt, products)
        B = np.empty((len(tau), m, m))
        B[:, i, j] = B[:, j, i] = (tau / more) @ products.T
        B += np.eye(m)
        C = np.linalg.inv(B)
        z = (C @ ((nu / more) @ self.R)[:, :, None])[:, :, 0]
        v = (C[:, i, j] + np.where(i == j, 0.0, C[:, j, i])) @ products
        return (z @ Rt + self.independent * nu) / more, np.maximum(self.independent / more + v / (more * more), LEAST)

    def tilted(self, tau: Array, nu: Array) -> tuple[Array, Array, Array]:
        """Return means (D x N), variances (D x N) and log integrals (D,) of the posterior of the values x."""
        z, C, log_z = self.inner(tau, nu)
        more = 1.0 + self.independent * tau
        v = np.einsum("dni,ni->dn", self.R @ C, self.R)
        mean = (z @ self.R.T + self.independent * nu) / more
        return mean, np.maximum(self.independent / more + v / (more * more), LEAST), log_z


def triangle(rows: Array, out: Array) -> None:
    """Write the elementwise products of all pairs of rows of `rows` (D x N) into `out` (D (D + 1) / 2 x N).

    A pair may be a row with itself. The order of the products is that of `numpy.triu_indices(D)`.
    """
    D, first = len(rows), 0
    for d in range(D):
        np.multiply(rows[d], rows[d:], out=out[first : first + D - d])
        first += D - d


def gaps(mean: Array, cov: Array, a: Ints, b: Ints) -> tuple[Array, Array]:
    """Return mean and variance, (D x P) each, of the differences f_a - f_b of D functions f at P pairs of items.

    `mean` (D x n) and `cov` (D x n x n) are those of the functions over n items; `a`, `b` (P,) are the item numbers of
    each pair. Variances are at least 1e-9.
    """
    var = np.diagonal(cov, axis1=1, axis2=2)
    v = (var[:, a] - cov[:, a, b]) + (var[:, b] - cov[:, b, a])
    return mean[:, a] - mean[:, b], np.maximum(v, LEAST)


def whitening(within: Array) -> Array:
    """Return a matrix B (m x k) such that B B' is the pseudo-inverse of the covariance `within` (m x m) of m points,
    where k is its numerical rank."""
    values, vectors = np.linalg.eigh(within)
    nonzero = values > 1e-9 * max(float(values[-1]), 1e-300)
    return vectors[:, nonzero] / np.sqrt(values[nonzero])  # type: ignore[no-any-return]


def fitc(across: Array, within: Array, diagonal: Array) -> FactorPrior:
    """Return the FITC prior (a sparse Gaussian process approximation) of N points, [H12] section 5.1.

    `across` (N x m): covariances of the points with m pseudo-inputs; `within` (m x m): those of the pseudo-inputs;
    `diagonal` (N,): variances of the points.
    """
    R = across @ whitening(within)
    return FactorPrior(R, np.maximum(diagonal - np.einsum("ni,ni->n", R, R), 0.0))
