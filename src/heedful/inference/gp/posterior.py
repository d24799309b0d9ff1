"""Gaussian posteriors over the utilities of items, and the choice probabilities that follow from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.pairwise import Index
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

SAME = 1e-6
"""Two utilities of a draw count as equal if they differ by less than SAME times the largest standard deviation."""


class Posterior(NamedTuple):
    """A Gaussian posterior over the utilities f of n items: `mean` (n,) and `cov` (n x n).

    Only differences matter: item a is chosen over b with probability Phi(f_a - f_b), so the unit of utility is the
    standard deviation of the noise of one choice.
    """

    mean: Array
    cov: Array

    @property
    def var(self) -> Array:
        """Variances (n,) of the utilities of n items."""
        return self.cov.diagonal()

    def row(self, i: int) -> Array:
        """Return the covariances (n,) of the utility of item i with those of all n items."""
        return self.cov[i]  # type: ignore[no-any-return]

    def block(self, low: int, high: int) -> Array:
        """Return part of the covariance of the n items, as a new array: rows `low` to `high` - 1, columns `low` + 1 to
        n - 1."""
        return self.cov[low:high, low + 1 :].copy()

    def of_items(self, items: Ints) -> Posterior:
        """Return the marginal posterior over k items with the numbers `items` (k,)."""
        return Posterior(self.mean[items], self.cov[np.ix_(items, items)])

    def whole(self) -> Posterior:
        """Return the posterior as one Gaussian with a full covariance: itself."""
        return self

    def components(self) -> list[tuple[float, Posterior]]:
        """Return (weight, Gaussian) for each component of the posterior: here one with weight 1."""
        return [(1.0, self)]

    def gap(self, a: Index, b: Index) -> tuple[Array, Array]:
        """Return mean and variance of f_a - f_b, the difference in utility of items a and b.

        `a` and `b` are item numbers: two integers, or two integer arrays of the same shape. Each result has this shape
        (a scalar for integers).
        """
        cov = self.cov
        v = (cov[a, a] - cov[a, b]) + (cov[b, b] - cov[b, a])  # grouped in this way, the result is symmetric in a and b
        return self.mean[a] - self.mean[b], np.maximum(v, 0.0)

    def beats(self, a: Index, b: Index) -> Array:
        """Return the probability that item a is chosen over item b in the next choice, with its noise, as `gap`
        does."""
        return choice_probability(*self.gap(a, b))

    def better(self, a: Index, b: Index) -> Array:
        """Return P(f_a > f_b), the probability that item a has the higher utility, without the noise of a choice; 1/2
        for two items with identical utilities. Shapes are as in `gap`."""
        from scipy.special import ndtr

        m, v = self.gap(a, b)
        floor = (SAME * SAME) * max(float(self.cov.diagonal().max(initial=0.0)), np.finfo(float).tiny)
        return ndtr(m / np.sqrt(np.maximum(v, floor)))  # type: ignore[no-any-return]

    def ranking(self) -> Ints:
        """Return the numbers (n,) of n items by posterior mean, best first; of equal means the lower number comes
        first.
        """
        return (-self.mean).argsort(kind="stable")

    def sd(self) -> Array:
        """Return for each of n items the standard deviation (n,) of its utility minus the average
        utility of all items.
        """
        cov = self.cov - self.cov.mean(axis=0)
        centred = cov - cov.mean(axis=1, keepdims=True)
        return np.sqrt(np.maximum(centred.diagonal(), 0.0))  # type: ignore[no-any-return]

    def draws(self, count: int, seed: int = 0) -> Array:
        """Return `count` draws of the utilities of n items (count x n), made with `seed`. The covariance may be
        singular.
        """
        n = self.mean.size
        out: Array = np.random.default_rng(seed).standard_normal((count, n))
        tied = np.count_nonzero(self.cov, axis=1) > (self.cov.diagonal() != 0.0)
        alone = np.flatnonzero(~tied)
        out[:, alone] *= np.sqrt(np.maximum(self.cov.diagonal()[alone], 0.0))
        if tied.any():
            _correlate(out, self.cov, np.flatnonzero(tied))
        out += self.mean
        return out


def choice_probability(mean: Array, var: Array) -> Array:
    """Return the probability of choosing the first of two items, Phi(`mean` / sqrt(1 + `var`)), elementwise.

    `mean` and `var` are those of the first item's utility less the second's, which is Gaussian, in arrays of one shape.
    The noise of the choice has variance 1.
    """
    from scipy.special import ndtr

    return ndtr(mean / np.sqrt(1.0 + var))  # type: ignore[no-any-return]


class PreferenceModel(ABC):
    """A fitted model of the utilities of items to people.

    In each method `user` is the number of a person, `a` and `b` are numbers of items: three integers, or three integer
    arrays of the same shape. Each result has this shape (a scalar for integers).
    """

    @abstractmethod
    def gap(self, user: Index, a: Index, b: Index) -> tuple[Array, Array]:
        """Return mean and variance of f_u(a) - f_u(b), the utility of item a less that of item b for person u =
        `user`."""

    def predict_proba(self, user: Index, a: Index, b: Index) -> Array:
        """Return P(`user` prefers item `a` to `b`), including the noise of the answer."""
        return choice_probability(*self.gap(user, a, b))


def user_gap(mean: Array, cov: Array, user: Index, a: Index, b: Index) -> tuple[Array, Array]:
    """Return mean and variance of f_u(a) - f_u(b), the difference in utility of items a and b for person u = `user`.

    `mean` (U x n), `cov` (U x n x n): of the utilities of n items for U people. `user`, `a`, `b`: numbers, or arrays of
    one shape, which the results have.
    """
    user, a, b = (np.asarray(x, np.int64) for x in (user, a, b))
    v = (cov[user, a, a] - cov[user, a, b]) + (cov[user, b, b] - cov[user, b, a])
    return mean[user, a] - mean[user, b], np.maximum(v, 0.0)


def _correlate(z: Array, cov: Array, items: Ints) -> None:
    """Turn columns of standard normal draws z (d x n), in place, into draws with the covariance of `items` in `cov`."""
    from scipy.linalg.blas import dtrmm
    from scipy.linalg.lapack import dpstrf

    every = items.size == len(cov)
    L, order, rank, _ = dpstrf(cov if every else cov[np.ix_(items, items)], lower=1)
    L[:, rank:] = 0.0
    columns = items[order - 1]
    # Entries above the diagonal are not read
    z[:, columns] = dtrmm(1.0, L, (z if every else z[:, items]).T, lower=1).T


class LowRankPosterior(NamedTuple):
    """A Gaussian posterior over the utilities of n out of N items: the prior's covariance less the low-rank left
    right'.

    Its methods are those of `Posterior`. Rows of the covariance are computed when needed, so the n x n matrix is never
    formed."""

    mean: Array
    """(n,) posterior means"""
    prior: Array
    """(N x N) prior covariance of all items"""
    items: Ints
    """(n,) numbers of the items, rising"""
    left: Array
    right: Array
    """`left`, `right` (n x q), q being the number of items in the answers"""

    @property
    def var(self) -> Array:
        return self.prior.diagonal()[self.items] - np.vecdot(self.left, self.right)  # type: ignore[no-any-return]

    def row(self, i: int) -> Array:
        row: Array = self.prior[self.items[i]][self.items] - np.vecdot(self.right, self.left[i])
        return row

    def block(self, low: int, high: int) -> Array:
        low_rank = product(self.left[low:high], self.right[low + 1 :])
        return np.subtract(self._prior(self.items[low:high], self.items[low + 1 :]), low_rank, out=low_rank)

    def whole(self) -> Posterior:
        cov = self._prior(self.items, self.items) - self.left @ self.right.T
        return Posterior(self.mean, 0.5 * (cov + cov.T))

    def _prior(self, a: Ints, b: Ints) -> Array:
        if a.size and b.size and a[-1] - a[0] == a.size - 1 and b[-1] - b[0] == b.size - 1:
            return self.prior[a[0] : a[-1] + 1, b[0] : b[-1] + 1]
        return self.prior[np.ix_(a, b)]


_SMALL = 1 << 18
"""The greatest number of multiplications for which OpenBLAS computes a product in the calling thread."""


def product(a: Array, b: Array) -> Array:
    """Return the matrix product a b' (h x n) of `a` (h x q) and the transpose of `b` (n x q).

    It is computed in blocks so small that BLAS starts no other threads: on a busy machine, waiting for these costs many
    times the product.
    """
    h, q, n = len(a), a.shape[1], len(b)
    w = max(1, _SMALL // max(h * q, 1))
    out, parts = np.empty((h, n)), n // w
    if parts:
        blocks = b[: parts * w].reshape(parts, w, q).transpose(0, 2, 1)
        np.matmul(a[None], blocks, out=out[:, : parts * w].reshape(h, parts, w).transpose(1, 0, 2))
    if n > parts * w:
        np.matmul(a, b[parts * w :].T, out=out[:, parts * w :])
    return out
