"""Samples of many answers, to learn what they have in common. Selected by person and by item, never by outcome, so that
winners and losers stay together.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.inference.pairwise import PairRows, take_rows

NEAR = 150
"""The greatest number of one person's items."""


def sample_people(rows: PairRows, users: int, most: int) -> tuple[PairRows, int]:
    """Sample people at random with all their rows, up to `most` rows but at least one person; return their rows,
    and how many people.

    People are renumbered. If there are no more than `most` rows, all are returned.
    """
    if rows.size <= most:
        return rows, users
    mixed = np.random.default_rng(0).permutation(users)
    size = np.bincount(rows.user, minlength=users)
    kept = mixed[np.cumsum(size[mixed]) <= most]
    rows = take_rows(rows, np.isin(rows.user, kept if size[kept].any() else mixed[:1]))
    people, user = np.unique(rows.user, return_inverse=True)
    return rows._replace(user=user), people.size


def sample_items(rows: PairRows) -> PairRows:
    """Return the answers about NEAR items that were often compared with one another; all if there are no more items."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import breadth_first_order

    n = int(rows.pairs.max()) + 1
    if n <= NEAR:
        return rows
    a, b = rows.pairs.T
    graph = coo_array((rows.times, (a, b)), shape=(n, n)).tocsr()
    chosen = np.zeros(n, bool)
    for start in np.argsort(-np.bincount(rows.pairs.ravel(), np.repeat(rows.times, 2), n), kind="stable"):
        left = NEAR - int(chosen.sum())
        if left > 0 and not chosen[start]:
            chosen[breadth_first_order(graph, start, directed=False, return_predecessors=False)[:left]] = True
    inside: npt.NDArray[np.bool_] = chosen[a] & chosen[b]
    broken = np.unique(rows.group[~inside & (rows.group >= 0)])
    inside &= ~np.isin(rows.group, broken) | (rows.group < 0)
    return take_rows(rows, inside) if inside.any() else rows
