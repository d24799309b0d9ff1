"""Pairwise comparisons as arrays, the input of inference: from choices, ties, best-of-k answers and rankings."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]
Index = int | npt.NDArray[np.int64]
"""The number of a person or an item, or an array of such numbers."""
Selection = npt.NDArray[np.int64] | npt.NDArray[np.bool_] | slice
"""A choice of rows: an array of indices, a boolean mask, or a slice."""


class PairRows(NamedTuple):
    """A table of p pairwise comparisons as columns, the input of inference. An answer "cannot judge" has no row.

    Rows with the same `group` number (from 0) are parts of one answer, such as a ranking. The person perceived the
    utility of each item once for the whole answer, with Gaussian noise of variance 1/2 an item, so the rows of a group
    share this noise. A row of group -1 is an answer of its own, with independent noise.
    """

    user: Ints
    """(p,) the number of the person who answered, from 0"""
    pairs: Ints
    """(p, 2) the numbers of the items compared: winner, loser; in any order if they are equally good"""
    equal: npt.NDArray[np.bool_]
    """(p,) whether the answer is a tie"""
    times: Array
    """(p,) how often the answer was given; the same in all rows of a group"""
    group: Ints

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.user.size


def pair_rows(
    pairs: npt.ArrayLike, times: npt.ArrayLike | None = None, equal: npt.ArrayLike = False, user: npt.ArrayLike = 0
) -> PairRows:
    """Return a table of p independent comparisons from `pairs` (p, 2) of item numbers, winner first.

    `times` (how often each answer was given, by default once), `equal` (whether it is a tie) and `user` (the number of
    the person) are (p,), or one value for all rows. The group number of each is -1: it is an answer of its own. The
    columns are copies. Raise ValueError if an item is compared with itself.
    """
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    p, same = len(pairs), pairs[:, 0] == pairs[:, 1]
    if same.any():
        raise ValueError(f"pairs: expected two items each, got {pairs[same][0, 0]} compared with itself")

    def each(value: Any, kind: Any) -> Any:
        return np.broadcast_to(np.asarray(value, kind), (p,)).copy()

    return PairRows(
        each(user, np.int64), pairs, each(equal, bool), each(1.0 if times is None else times, float), np.full(p, -1)
    )


def order_rows(
    tiers: Sequence[int | Sequence[int]], times: float = 1.0, user: int = 0, *, equal: bool = False
) -> PairRows:
    """Return the rows of one ranking in tiers, best first: each item of a tier beats each item of the next tier. They
    share the group number 0, but a single row is a plain choice.

    A tier is an item number or a sequence of them. Items of one tier are not compared with each other or, with `equal`,
    tie. `times`: how often the answer was given; `user`: the number of the person. order_rows([3, 1, 2]) is a full
    ranking, order_rows([3, [1, 2]]) says that 3 is the best of three, order_rows([[3, 1], [2]]) that 2 is the worst.
    """
    each = [[t] if isinstance(t, int | np.integer) else list(t) for t in tiers]
    apart = [(a, b) for up, down in pairwise(each) for a in up for b in down]
    alike = [pair for tier in each for pair in combinations(tier, 2)] if equal else []
    rows = pair_rows(apart + alike, times, [False] * len(apart) + [True] * len(alike), user)
    return rows if rows.size < 2 else rows._replace(group=np.zeros(rows.size, np.int64))


def concatenate(parts: Sequence[PairRows]) -> PairRows:
    """Return several tables `parts` as one, in the given order.

    Group numbers, which mark the rows of one answer, are changed so that those of different tables differ.
    """
    groups, free = [], 0
    for part in parts:
        groups.append(np.where(part.group >= 0, part.group + free, -1))
        free = max(free, int(groups[-1].max(initial=-1)) + 1)
    if not parts:
        return pair_rows(np.empty((0, 2)))
    user, pairs, equal, times, _ = (np.concatenate(column) for column in zip(*parts))
    return PairRows(user, pairs, equal, times, np.concatenate(groups))


def take_rows(rows: PairRows, at: Selection) -> PairRows:
    """Return the rows selected by `at` (an array of indices, a boolean mask, or a slice), in that order.

    Group numbers, which mark the rows of one answer, stay as they are.
    """
    user, pairs, equal, times, group = rows
    return PairRows(user[at], pairs[at], equal[at], times[at], group[at])


def merge_equal(rows: PairRows) -> PairRows:
    """Return the table with identical rows of a person merged into one row, whose `times` is their sum.

    Only a row that is a whole answer (one comparison of two items, `group` -1) is merged. Rows that came together out
    of one answer about more than two items, such as a ranking, follow the merged ones unchanged. The two items of a tie
    are put in the order of their numbers first, so that a ~ b and b ~ a are identical. Merged rows are sorted by person
    and items.
    """
    alone = rows.group < 0
    pairs = np.where(rows.equal[:, None], np.sort(rows.pairs, axis=1), rows.pairs)[alone]
    n = int(rows.pairs.max(initial=0)) + 1
    key = ((rows.user[alone] * n + pairs[:, 0]) * n + pairs[:, 1]) * 2 + rows.equal[alone]
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    times: Array = np.bincount(which, rows.times[alone], first.size).astype(np.float64)
    each = PairRows(
        rows.user[alone][first], pairs[first], rows.equal[alone][first], times, np.full(first.size, -1, np.int64)
    )
    if alone.all():
        return each
    columns: Any = (np.concatenate(both) for both in zip(each, take_rows(rows, ~alone)))
    return PairRows(*columns)
