"""Three views of a comparison table for inference: rows of pairwise comparisons, a matrix of wins, a graph of items."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from heedful.data.comparisons import Comparison, ComparisonTable, Tiers
from heedful.inference.pairwise import PairRows, concatenate, order_rows, pair_rows
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

MOST_ROWS = 400
"""The greatest number of pairwise comparisons (rows) that one answer may imply: 20 items above 20 others are 400 rows,
28 items that all tie are 378.
"""


def pairwise_rows(choices: ComparisonTable) -> PairRows:
    """Return the judged answers of a table `choices` as rows of pairwise comparisons; "cannot judge" gives no row.

    An answer about two items is one independent row (group -1); identical ones of a person are merged into one row,
    whose `times` is their number, whichever item was shown first. A ranking, best-of-k answer or tie of more than two
    items gives several rows with a group number of their own: each item of a tier beats each of the next tier; a single
    tier ties all its items. Raise ValueError if one answer would have more than MOST_ROWS (400) rows.
    """
    (whose, pairs, equal, counts, _), rest = _of_two(choices)
    alone = pair_rows(np.empty((0, 2)))
    if whose.size:
        pairs[equal] = np.sort(pairs[equal], axis=1)
        n = len(choices.items)
        of_pair = np.unique(pairs[:, 0] * n + pairs[:, 1], return_inverse=True)[1]
        key = (whose * (int(of_pair.max()) + 1) + of_pair) * 2 + equal
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        order = first.argsort()
        at = first[order]
        alone = pair_rows(pairs[at], np.bincount(which, counts)[order], equal[at], whose[at])
    times: dict[tuple[int, Tiers], int] = defaultdict(int)
    for each in rest:
        tiers = each.tiers
        times[each.person, (tuple(sorted(tiers[0])),) if len(tiers) == 1 else tiers] += each.times
    parts: list[PairRows] = []
    for (person, tiers), count in times.items():
        level = len(tiers) == 1
        n = len(tiers[0])
        rows = n * (n - 1) // 2 if level else sum(len(up) * len(down) for up, down in pairwise(tiers))
        if rows > MOST_ROWS:
            raise ValueError(f"answers: expected orders of at most {MOST_ROWS} neighbours, got one of {rows} (ties)")
        parts.append(order_rows(tiers, float(count), person, equal=level))
    return concatenate([alone, *parts])


def _of_two(choices: ComparisonTable) -> tuple[PairRows, list[Comparison[int]]]:
    """Return the judged answers about two items as rows of pairwise comparisons, one for each comparison of the table,
    and the comparisons of more items.
    """
    rows, rest = [], []
    for each in choices.comparisons:
        if each.judged:
            tiers = each.tiers
            if len(tiers) == 2 and len(tiers[0]) == len(tiers[1]) == 1:
                rows.append((each.person, tiers[0][0], tiers[1][0], 0, each.times))
            elif len(tiers) == 1 and len(tiers[0]) == 2:
                rows.append((each.person, *tiers[0], 1, each.times))
            else:
                rest.append(each)
    table = np.array(rows, np.int64).reshape(-1, 5)
    return pair_rows(table[:, 1:3], table[:, 4], table[:, 3], table[:, 0]), rest


def win_counts(choices: ComparisonTable, tie: float = 0.5) -> Array:
    """Return how often each item was placed above each other in a table `choices` of n items, as a matrix (n, n): row i
    and column j have the count for item i above item j.

    Answers "cannot judge" are left out. In a ranking each item wins against all items of all later tiers. An answer
    that all its items are equally good adds `tie` to both directions of each pair; items that merely share a tier of a
    longer ranking add nothing.
    """
    n = len(choices.items)
    (_, pairs, equal, times, _), rest = _of_two(choices)
    better, worse = pairs.T
    share = np.where(equal, tie, 1.0) * times
    out = np.zeros((n, n))
    np.add.at(out, (better, worse), share)
    np.add.at(out, (worse, better), share * equal)
    for each in rest:
        order = np.array([item for tier in each.tiers for item in tier])
        if len(each.tiers) == 1:
            out[np.ix_(order, order)] += tie * each.times * ~np.eye(order.size, dtype=bool)
            continue
        tier = np.repeat(np.arange(len(each.tiers)), [len(t) for t in each.tiers])
        above = tier[:, None] < tier[None, :]
        out[np.ix_(order, order)] += each.times * above
    return out


def answer_counts(choices: ComparisonTable) -> Array:
    """Return for each of the n items of a table `choices` how many judged answers it occurs in (n,), counting repeated
    answers.
    """
    n = len(choices.items)
    (_, pairs, _, times, _), rest = _of_two(choices)
    better, worse = pairs.T
    out: Array = np.zeros(n)
    np.add.at(out, better, times)
    np.add.at(out, worse, times)
    for each in rest:
        out[[item for tier in each.tiers for item in tier]] += each.times
    return out


def connected_parts(n: int, first: Ints, second: Ints) -> Ints:
    """Return the number of the connected component of each of n items (n,), in the graph that has an edge for each
    compared pair `first`, `second` of items.

    Components are numbered from 0 in the order of their first item. No chain of comparisons links items of different
    components.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    labels = connected_components(coo_matrix((np.ones(len(first)), (first, second)), (n, n)), directed=False)[1]
    _, seen = np.unique(labels, return_index=True)
    place = np.empty(seen.size, np.int64)
    place[labels[np.sort(seen)]] = np.arange(seen.size)
    return place[labels]  # type: ignore[no-any-return]


def shortest_cycle(beats: npt.NDArray[np.bool_]) -> list[int]:
    """Return numbers of items that form a shortest cycle, in which each beats the next and the last beats the first.

    `beats` (n, n): whether, of n items, that of the row beats that of the column. Return [] if there is no cycle.
    """
    from scipy.sparse.csgraph import connected_components

    labels = connected_components(beats, directed=True, connection="strong")[1]
    round_about = np.flatnonzero(np.bincount(labels)[labels] > 1).tolist()
    after = {a: [b for b in np.flatnonzero(beats[a]).tolist() if labels[a] == labels[b]] for a in round_about}
    best: list[int] = []
    for start in round_about:
        before, level, length = {start: start}, [start], 1
        while level and (not best or length < len(best)):
            closing = next((item for item in level if beats[item, start]), None)
            if closing is not None:
                best = [closing]
                while best[0] != start:
                    best.insert(0, before[best[0]])
                break
            reached = []
            for a in level:
                for b in after[a]:
                    if b not in before:
                        before[b] = a
                        reached.append(b)
            level, length = reached, length + 1
        if len(best) == 3:
            break
    return best
