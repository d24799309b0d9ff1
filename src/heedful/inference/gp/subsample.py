"""Subsamples of comparisons, for estimating what all of them have in common.

They are selected by person and by item, never by outcome, so that wins and losses stay in proportion.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from heedful.inference.pairwise import PairRows, take_rows

NEAR = 150
"""The greatest number of items in a subsample of one person's comparisons."""


def sample_people(rows: PairRows, users: int, most: int) -> tuple[PairRows, int]:
    """Return all rows of randomly chosen people, at most `most` rows but at least one person, and the number of these
    people.

    `rows`: comparisons of `users` people. The chosen people are renumbered from 0; the draw is always the same. If
    there are no more than `most` rows, all are returned.
    """
    if rows.size <= most:
        return rows, users
    mixed = np.random.default_rng(0).permutation(users)
    size = np.bincount(rows.user, minlength=users)
    chosen = mixed[np.cumsum(size[mixed]) <= most]
    rows = take_rows(rows, np.isin(rows.user, chosen if size[chosen].any() else mixed[:1]))
    people, user = np.unique(rows.user, return_inverse=True)
    return rows._replace(user=user), people.size


def sample_items(rows: PairRows) -> PairRows:
    """Return the comparisons of `rows` among at most 150 items (NEAR) that are well connected by them; all of `rows`,
    if there are no more items.

    The most compared item comes first, then the items that are linked to it by comparisons, breadth first. Rankings and
    best-of-k answers are kept only if all their items are.
    """
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
