"""A table of choices by name as numbers: the rows that inference takes, and who won against whom how often."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.orders import Choices as Choices
from heedful.data.orders import Given as Given
from heedful.data.orders import Tiers
from heedful.inference.comparisons import Answers, answers, ranked, together
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

MOST_ROWS = 400
"""Rows of one answer: what a tier of 20 over another of 20 says, or that 28 are equally good."""


def rows_of(choices: Choices) -> Answers:
    """The answers as rows; the same one of a person, whichever item stood first, is a row with its times.

    ValueError where an answer has more than MOST_ROWS rows.
    """
    (whose, better, worse, equal, counts), rest = _twos(choices)
    alone = answers(np.empty((0, 2)))
    if whose.size:
        pairs = np.column_stack([better, worse])
        pairs[equal] = np.sort(pairs[equal], axis=1)
        n = len(choices.items)
        of_pair = np.unique(pairs[:, 0] * n + pairs[:, 1], return_inverse=True)[1]
        key = (whose * (int(of_pair.max()) + 1) + of_pair) * 2 + equal
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        order = first.argsort()
        at = first[order]
        alone = answers(pairs[at], np.bincount(which, counts)[order], equal[at], whose[at])
    times: dict[tuple[int, Tiers], int] = defaultdict(int)
    for given in rest:
        tiers = given.tiers
        times[given.person, (tuple(sorted(tiers[0])),) if len(tiers) == 1 else tiers] += given.times
    parts: list[Answers] = []
    for (person, tiers), count in times.items():
        level = len(tiers) == 1
        n = len(tiers[0])
        rows = n * (n - 1) // 2 if level else sum(len(up) * len(down) for up, down in pairwise(tiers))
        if rows > MOST_ROWS:
            raise ValueError(f"answers: wanted orders of at most {MOST_ROWS} neighbours, got one of {rows} (ties)")
        parts.append(ranked(tiers, float(count), person, equal=level))
    return together([alone, *parts])


class Twos(NamedTuple):
    """Answers about two items as columns (p,)."""

    person: Ints
    better: Ints
    worse: Ints
    equal: npt.NDArray[np.bool_]
    times: Array


def _twos(choices: Choices) -> tuple[Twos, list[Given]]:
    """Who could judge two items, and the answers about more."""
    told, rest = [], []
    for given in choices.given:
        if given.judged:
            tiers = given.tiers
            if len(tiers) == 2 and len(tiers[0]) == len(tiers[1]) == 1:
                told.append((given.person, tiers[0][0], tiers[1][0], 0, given.times))
            elif len(tiers) == 1 and len(tiers[0]) == 2:
                told.append((given.person, *tiers[0], 1, given.times))
            else:
                rest.append(given)
    person, better, worse, equal, times = np.array(told, np.int64).reshape(-1, 5).T
    return Twos(person, better, worse, equal.astype(bool), times.astype(np.float64)), rest


def wins(choices: Choices, tie: float = 0.5) -> Array:
    """How often each item was placed above each other (n x n); where several are called equally good, `tie` for
    each of two."""
    n = len(choices.items)
    (_, better, worse, equal, times), rest = _twos(choices)
    share = np.where(equal, tie, 1.0) * times
    out = np.zeros((n, n))
    np.add.at(out, (better, worse), share)
    np.add.at(out, (worse, better), share * equal)
    for given in rest:
        order = np.array([item for tier in given.tiers for item in tier])
        if len(given.tiers) == 1:
            out[np.ix_(order, order)] += tie * given.times * ~np.eye(order.size, dtype=bool)
            continue
        tier = np.repeat(np.arange(len(given.tiers)), [len(t) for t in given.tiers])
        above = tier[:, None] < tier[None, :]
        out[np.ix_(order, order)] += given.times * above
    return out


def votes(choices: Choices) -> Array:
    """How many answers judged each item (n,)."""
    n = len(choices.items)
    (_, better, worse, _, times), rest = _twos(choices)
    out: Array = np.zeros(n)
    np.add.at(out, better, times)
    np.add.at(out, worse, times)
    for given in rest:
        out[[item for tier in given.tiers for item in tier]] += given.times
    return out


def parts(compared: npt.NDArray[np.bool_]) -> Ints:
    """To which part each item belongs (n,): parts are what comparisons (n x n) connect, numbered by their first item.

    What is in different parts was never compared, not even by way of others.
    """
    from scipy.sparse.csgraph import connected_components

    labels = connected_components(compared, directed=False)[1]
    _, first = np.unique(labels, return_index=True)
    place = np.empty(first.size, np.int64)
    place[labels[np.sort(first)]] = np.arange(first.size)
    return place[labels]  # type: ignore[no-any-return]


def circle(beats: npt.NDArray[np.bool_]) -> list[int]:
    """A shortest circle of items, each of which beats (n x n) the next, the last the first; empty where none is."""
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
