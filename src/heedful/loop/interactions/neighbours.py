"""Pairs of neighbours in a list that stood in either order at random, with a known probability: what clicks compare.

An answer contradicts what was shown far more often than it confirms it, and people click more at the top. Both effects
cancel in such pairs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heedful.evaluation.answers import Answer
from heedful.evaluation.plackett_luce import pair_weights
from heedful.loop.records import DecisionRecord

MOST_WEIGHT = 4.0
"""The greatest weight of a pair in a list drawn at random; a pair is left out if either of its orders weighs more."""


def random_pairs(record: DecisionRecord) -> list[tuple[int, list[float]]]:
    """Return the random pairs of neighbours in a list that do not overlap: [(position of the first, weight 1 / (2 P) of
    each pair)], once for each way to divide the list into such pairs; [] if there is none.

    P is the probability of the order in which the pair was shown; a weight of 0 says that the pair is none. In a
    drafted list a pair is the two picks of a round in which each learner ranks its own pick above the other's. With the
    other coin the same two would stand in the other order, and nothing else would differ before them or, in its
    distribution, after them. If both learners like the same item best, the coin decides which item comes next to it, so
    the two are no such pair."""
    made, n = record.proposal, len(record.shown)
    if record.arm == "sampled":
        ranks, divisions = np.array(made["ranks"], np.int64), []
        for start in (0, 1):
            weights = pair_weights(ranks, made["candidates"], made["temperature"], start)
            other = 0.5 / (1.0 - 0.5 / weights)
            divisions.append((start, np.where(np.maximum(weights, other) <= MOST_WEIGHT, weights, 0.0).tolist()))
        return divisions
    if record.arm == "interleaved" and n:
        teams, ranks, first = made["teams"], made["ranks"], 0 if made.get("opening") is None else 1
        return [(first, [float(ranks[teams[i + 1]][i + 1] < ranks[teams[i + 1]][i]) for i in range(first, n - 1, 2)])]
    start, swap = made.get("start", -1), made.get("swap", 0.0)
    if record.arm != "learned" or start < 0 or swap == 0.0:
        return []
    swapped = made["swapped"][: max((n - start) // 2, 0)]
    return [(start, [0.5 / (swap if each else 1.0 - swap) for each in swapped])]


def swapped_pairs(record: DecisionRecord, answer: Answer) -> list[tuple[int, bool, float]]:
    """Return the pairs of neighbours in the list of `record` that can be compared: (position, from 1, of the upper item
    of the two; whether `answer` prefers the upper one; weight).

    Such a pair was shown in either order at random, the order shown with a known probability P, and `answer` prefers
    one of the two; its weight is 1 / (2 P)."""
    if not answer.listed or not (divisions := random_pairs(record)):
        return []
    start, weights = divisions[0]
    place: dict[Any, int] = {j: i for i, j in enumerate(answer.listed)}
    pairs, shown = [], record.shown
    for at, weight in zip(range(start, len(shown), 2), weights):
        upper, lower = shown[at], shown[at + 1]
        if answer.picked:
            ahead = (upper in place) - (lower in place)
        else:  # an order: the lower of two neighbours is preferred where it was put first
            ahead = -int(place.get(lower, math.inf) < place.get(upper, math.inf))
        if ahead and weight > 0.0:
            pairs.append((at + 1, ahead > 0, weight))
    return pairs
