"""Answers as a sparse table of people by pairs of items, with sums over its rows and columns."""

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
"""A table with at most this many cells for each row is stored dense, cells without an answer included: BLAS is faster
on it."""

_AT_ONCE = 1 << 13  # rows that are dealt with at a time: what is made of them stays in the cache

Sums = tuple[Ints | slice, Array, Array, Array]
"""Some things (g,), people or pairs, and their sums over rows: of t m m' (g x D x D), of t v and of n m (g x D)."""


class Lists(NamedTuple):
    """The rows of things (people or pairs) that have about equally many: padded to the longest."""

    who: Ints
    """(g,)"""
    rows: Ints
    """(g x m) numbers of rows; where there is none, as many as there are rows"""


class Cells(NamedTuple):
    """The R answers of U people about P pairs of items; a pair (a, b) has a < b, and its latent value is f_a - f_b."""

    U: int
    first: Ints
    """(P,) the item a of each pair"""
    second: Ints
    """(P,)"""
    user: Ints
    """(R,)"""
    pair: Ints
    """(R,)"""
    sign: Array
    """(R,) 1 where the winner is the first of its pair, -1 where it is the second"""
    times: Array
    """(R,) how often the answer was given"""
    lists: tuple[tuple[Lists, ...], ...]
    """of the people, and of the pairs; empty where the table is kept whole"""

    @property
    def P(self) -> int:
        """Number of pairs."""
        return self.first.size

    def site_sums(self, t: Array, n: Array) -> SiteSums:
        """Return the natural parameters t and n (R,) of the rows, each times how often the answer was given, ready
        to be summed.
        """
        t, n = self.times * t, self.times * n
        if self.lists:
            return SiteSums(self, np.append(t, 0.0), np.append(n, 0.0))
        where, size = self.user * self.P + self.pair, self.U * self.P
        return SiteSums(self, sum_by(where, t, size).reshape(self.U, -1), sum_by(where, n, size).reshape(self.U, -1))

    def at_rows(self, *products: tuple[Array, Array]) -> Array:
        """Return the sum of products (U x D)(D x P), evaluated at the rows (R,)."""
        if not self.lists:
            whole = products[0][0] @ products[0][1]
            for A, B in products[1:]:
                whole += A @ B
            return whole.ravel().take(self.user * self.P + self.pair)
        out = np.zeros(self.user.size)
        turned = [(A, np.ascontiguousarray(B.T)) for A, B in products]
        for lo in range(0, out.size, _AT_ONCE):
            part = slice(lo, lo + _AT_ONCE)
            u, p = self.user[part], self.pair[part]
            for A, B in turned:
                out[part] += np.einsum("rd,rd->r", A.take(u, axis=0), B.take(p, axis=0))
        return out


class SiteSums(NamedTuple):
    """The precisions of g, and precisions times means, as tables (U x P), or as rows (R + 1,) whose last is 0."""

    of: Cells
    t: Array
    n: Array

    def by_user(self, m: Array, v: Array) -> Iterator[Sums]:
        """Yield sums over the rows of each person, for means m and variances v (P x D) of the pairs' values."""
        return self._batch_sums(0, self.of.pair, m, v) if self.of.lists else _whole(self.t, self.n, m, v)

    def by_pair(self, m: Array, v: Array) -> Iterator[Sums]:
        """Yield sums over the rows of each pair, for means m and variances v (U x D) of the people's weights."""
        return self._batch_sums(1, self.of.user, m, v) if self.of.lists else _whole(self.t.T, self.n.T, m, v)

    def _batch_sums(self, side: int, other: Ints, m: Array, v: Array) -> Iterator[Sums]:
        other = np.append(other, 0)
        for who, rows in self.of.lists[side]:
            at = other[rows]
            t = self.t[rows]
            M = m.take(at, axis=0)
            cross = (M * t[:, :, None]).transpose(0, 2, 1) @ M
            yield who, cross, (t[:, None] @ v.take(at, axis=0))[:, 0], (self.n[rows][:, None] @ M)[:, 0]

    def score(self, n: int) -> Array:
        """Return for each person and item the sum of the means of g, n over t, of pairs whose first item it is,
        less that of pairs whose second item it is (U x n).
        """
        of = self.of
        u, p, g = self.means()
        won, lost = (sum_by(u * n + ends[p], g, of.U * n) for ends in (of.first, of.second))
        return (won - lost).reshape(of.U, n)

    def means(self) -> tuple[Ints, Ints, Array]:
        """Return the cells that have rows: their people, their pairs, and the means of g, n over t."""
        P = self.of.P
        if self.of.lists:
            cell, where = np.unique(self.of.user * P + self.of.pair, return_inverse=True)
            t, n = (sum_by(where, x[:-1], cell.size) for x in (self.t, self.n))
        else:
            cell = self.t.ravel().nonzero()[0]
            t, n = self.t.ravel()[cell], self.n.ravel()[cell]
        return cell // max(P, 1), cell % max(P, 1), n / np.where(t > 0.0, t, np.inf)


def _whole(T: Array, N: Array, m: Array, v: Array) -> Iterator[Sums]:
    """Yield sums over the rows of a table (A x B), some rows at a time, for m and v (B x D)."""
    D = m.shape[1]
    size = max(_AT_ONCE // (2 * D), 1)
    squares = (m[:, :, None] * m[:, None, :]).reshape(-1, D * D)
    for lo in range(0, len(T), size):
        part = T[lo : lo + size]
        yield slice(lo, lo + size), (part @ squares).reshape(-1, D, D), part @ v, N[lo : lo + size] @ m


def group_lists(by: Ints, count: int) -> tuple[Lists, ...]:
    """Return the rows of each of `count` things (people or pairs), things with about as many rows together.

    `by` (R,): the thing of each row.
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
        who = most[lo:hi]
        at = starts[who][:, None] + np.arange(m)
        there = np.arange(m) < have[who][:, None]
        out.append(Lists(who, np.where(there, order[np.minimum(at, by.size - 1)], by.size)))
        lo = hi
    return tuple(out)


def cells(rows: PairRows, users: int, n: int, pairs: tuple[Ints, Ints] | None = None) -> Cells:
    """Return the table of the answers of `users` people about n items.

    `pairs`: first and second items of pairs that come first, in this order, whether or not they are answered. Raise
    ValueError if rows share noise.
    """
    if (rows.group >= 0).any():
        raise ValueError("rows: expected answers that stand alone, got some of a ranking or a best of several")
    low, high = rows.pairs.min(axis=1, initial=n), rows.pairs.max(axis=1, initial=0)
    key = low * n + high
    if pairs is None:
        known, pair = np.unique(key, return_inverse=True)
    else:
        before = pairs[0] * n + pairs[1]
        known = np.concatenate([before, np.setdiff1d(key, before)])
        order = np.argsort(known)
        pair = order[np.searchsorted(known, key, sorter=order)]
    whole = users * known.size <= FULL * max(rows.size, 1)
    lists = () if whole else (group_lists(rows.user, users), group_lists(pair, known.size))
    sign = np.where(rows.pairs[:, 0] == low, 1.0, -1.0)
    return Cells(users, known // n, known % n, rows.user, pair, sign, rows.times, lists)
