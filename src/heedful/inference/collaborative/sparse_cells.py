"""Answers as a sparse table of people by pairs of items, and weighted sums over its rows and columns, for the
collaborative model.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.inference.gp.sites import sum_by
from heedful.inference.pairwise import PairRows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

FULL = 12
"""The table is stored dense if it has at most this many cells for each answer, because BLAS is then faster."""

_AT_ONCE = 1 << 13  # rows processed at a time, so that intermediate arrays stay in the cache

Sums = tuple[Ints | slice, Array, Array, Array]
"""Indices of g people (or pairs of items), and sums over the answers of each: of t m m' (g x D x D), of t v and of n m
(g x D). t and n are precision and precision times mean of an answer's site; m and v are mean and variance, for D
functions, of the values of its pair (or of the weights of its person).
"""


class Lists(NamedTuple):
    """The answers of g people (or pairs of items) that have about equally many."""

    numbers: Ints
    """(g,) numbers of the people or pairs"""
    rows: Ints
    """(g x m) indices of their answers; the padding is R, the number of all answers"""


class Cells(NamedTuple):
    """R answers of U people about P pairs of items, as a sparse table. A pair has the items a < b, and the latent value
    f_a - f_b."""

    U: int
    first: Ints
    """(P,) item a of each pair"""
    second: Ints
    """(P,) item b of each pair"""
    user: Ints
    """(R,) number of the person"""
    pair: Ints
    """(R,) number of the pair"""
    sign: Array
    """(R,) 1 if item a won, -1 if b did"""
    times: Array
    """(R,) how often the answer was given"""
    lists: tuple[tuple[Lists, ...], ...]
    """the answers of the people, and those of the pairs; empty if the table is stored dense"""

    @property
    def P(self) -> int:
        """Number of pairs."""
        return self.first.size

    def site_sums(self, t: Array, n: Array) -> SiteSums:
        """Return the sites of the R answers as `SiteSums`; `t`, `n` (R,): precision, and precision times mean, of each,
        which are multiplied by how often the answer was given."""
        t, n = self.times * t, self.times * n
        if self.lists:
            return SiteSums(self, np.append(t, 0.0), np.append(n, 0.0))
        where, size = self.user * self.P + self.pair, self.U * self.P
        return SiteSums(self, sum_by(where, t, size).reshape(self.U, -1), sum_by(where, n, size).reshape(self.U, -1))

    def at_rows(self, *products: tuple[Array, Array]) -> Array:
        """Return for each of R answers (R,) the element of the matrix A B at the answer's person (row) and pair
        (column), summed over all `products` (A (U x D), B (D x P))."""
        if not self.lists:
            sums = products[0][0] @ products[0][1]
            for A, B in products[1:]:
                sums += A @ B
            return sums.ravel().take(self.user * self.P + self.pair)
        out = np.zeros(self.user.size)
        turned = [(A, np.ascontiguousarray(B.T)) for A, B in products]
        for lo in range(0, out.size, _AT_ONCE):
            part = slice(lo, lo + _AT_ONCE)
            u, p = self.user[part], self.pair[part]
            for A, B in turned:
                out[part] += np.einsum("rd,rd->r", A.take(u, axis=0), B.take(p, axis=0))
        return out


class SiteSums(NamedTuple):
    """The Gaussian factors (sites) of g, the preference of each of U people on each of P pairs of items: by how much
    the person prefers the pair's first item to its second.

    `of` is the table of the answers; `t` are precisions, `n` precisions times means. They are dense tables (U x P), 0
    where there is no answer, or, if `of` is sparse, one number for each of R answers and a last 0 for padding, (R +
    1,).
    """

    of: Cells
    t: Array
    n: Array

    def by_user(self, m: Array, v: Array) -> Iterator[Sums]:
        """Yield `Sums` for some people at a time; `m`, `v` (P x D): means and variances of D functions at P pairs."""
        return self._batch_sums(0, self.of.pair, m, v) if self.of.lists else _dense_sums(self.t, self.n, m, v)

    def by_pair(self, m: Array, v: Array) -> Iterator[Sums]:
        """Yield `Sums` for some pairs of items at a time; `m`, `v` (U x D) are means and variances of the weights that
        U people give D functions."""
        return self._batch_sums(1, self.of.user, m, v) if self.of.lists else _dense_sums(self.t.T, self.n.T, m, v)

    def _batch_sums(self, side: int, other: Ints, m: Array, v: Array) -> Iterator[Sums]:
        other = np.append(other, 0)
        for numbers, rows in self.of.lists[side]:
            others = other[rows]
            t = self.t[rows]
            M = m.take(others, axis=0)
            cross = (M * t[:, :, None]).transpose(0, 2, 1) @ M
            yield numbers, cross, (t[:, None] @ v.take(others, axis=0))[:, 0], (self.n[rows][:, None] @ M)[:, 0]

    def score(self, n: int) -> Array:
        """Return for each of U people a score of each of n items (U x n), from the means of the person's sites.

        A site's mean says by how much the person prefers the first item of a pair to the second. The score is the sum
        of these means over the pairs in which the item is first, minus their sum over the pairs in which it is second.
        """
        of = self.of
        u, p, g = self.means()
        winners, losers = (sum_by(u * n + ends[p], g, of.U * n) for ends in (of.first, of.second))
        return (winners - losers).reshape(of.U, n)

    def means(self) -> tuple[Ints, Ints, Array]:
        """Return the number of the person, that of the pair, and the mean of the product of the sites, (c,) each, for
        each of the c combinations of a person and a pair that have an answer."""
        P = self.of.P
        if self.of.lists:
            cell, where = np.unique(self.of.user * P + self.of.pair, return_inverse=True)
            t, n = (sum_by(where, x[:-1], cell.size) for x in (self.t, self.n))
        else:
            cell = self.t.ravel().nonzero()[0]
            t, n = self.t.ravel()[cell], self.n.ravel()[cell]
        return cell // max(P, 1), cell % max(P, 1), n / np.where(t > 0.0, t, np.inf)


def _dense_sums(T: Array, N: Array, m: Array, v: Array) -> Iterator[Sums]:
    """Yield `Sums` of each of A rows of a dense table of sites `T`, `N` (A x B), for D functions `m`, `v` (B x D)."""
    D = m.shape[1]
    size = max(_AT_ONCE // (2 * D), 1)
    squares = (m[:, :, None] * m[:, None, :]).reshape(-1, D * D)
    for lo in range(0, len(T), size):
        part = T[lo : lo + size]
        yield slice(lo, lo + size), (part @ squares).reshape(-1, D, D), part @ v, N[lo : lo + size] @ m


def group_lists(by: Ints, count: int) -> tuple[Lists, ...]:
    """Return the answers of each of `count` people or pairs, in batches of those that have about equally many.

    `by` (R,): for each of R answers, the number of its person or pair. Those without answers are left out.
    """
    order = np.argsort(by, kind="stable")
    have = np.bincount(by, minlength=count)
    starts = np.cumsum(have) - have
    most = np.argsort(-have, kind="stable")
    most = most[: np.count_nonzero(have)]
    out, lo = [], 0
    falling = -have[most]
    while lo < most.size:
        m = int(-falling[lo])
        hi = min(lo + max(_AT_ONCE // m, 1), int(np.searchsorted(falling, -(m // 2), side="right")))
        hi = max(hi, lo + 1)
        numbers = most[lo:hi]
        places = starts[numbers][:, None] + np.arange(m)
        present = np.arange(m) < have[numbers][:, None]
        out.append(Lists(numbers, np.where(present, order[np.minimum(places, by.size - 1)], by.size)))
        lo = hi
    return tuple(out)


def cells(rows: PairRows, users: int, n: int) -> Cells:
    """Return the answers `rows` of `users` people about n items as a sparse table of people by pairs of items.

    Raise ValueError for rankings and best-of-k answers, whose comparisons share noise.
    """
    if (rows.group >= 0).any():
        raise ValueError("rows: expected answers that stand alone, got some of a ranking or a best of several")
    key = rows.pairs.min(axis=1, initial=n) * n + rows.pairs.max(axis=1, initial=0)
    keys, pair = np.unique(key, return_inverse=True)
    dense = users * keys.size <= FULL * max(rows.size, 1)
    lists = () if dense else (group_lists(rows.user, users), group_lists(pair, keys.size))
    sign = np.where(rows.pairs[:, 0] < rows.pairs[:, 1], 1.0, -1.0)
    return Cells(users, keys // n, keys % n, rows.user, pair, sign, rows.times, lists)
