"""The neighbours in a list that a coin put in order: drafted by two learners, or drawn at random."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from coins import Coins
from heedful.evaluation.answers import Answer
from heedful.evaluation.plackett_luce import probability
from heedful.loop.interactions.neighbours import MOST_WEIGHT, random_pairs, swapped_pairs
from heedful.loop.interactions.protocol import Pairing
from heedful.loop.records import DecisionRecord


def drafted(a: tuple[int, ...], b: tuple[int, ...], coins: tuple[int, ...], size: int, **page: Any) -> DecisionRecord:
    """The record of a list that the rankings draft with these coins."""
    rng: Any = Coins(coins)
    shown, kept = Pairing("e", np.array(a), np.array(b), rng, **page).draft(size)
    return DecisionRecord(shown=tuple(shown.tolist()), arm="interleaved", proposal=kept)


def pairs(record: DecisionRecord) -> list[tuple[int, int]]:
    """The pairs of random order, the upper item first."""
    shown = record.shown
    return [
        (shown[at], shown[at + 1])
        for start, weights in random_pairs(record)
        for at, weight in zip(range(start, len(shown) - 1, 2), weights)
        if weight > 0.0
    ]


def test_pairs_by_hand() -> None:
    """Both rounds of disagreement are pairs, in the order of the coin; a round of one mind is none, nor is half a
    round."""
    a, b = (0, 1, 2, 3, 4, 5), (1, 0, 2, 5, 4, 3)
    assert pairs(drafted(a, b, (0, 0, 0), 6)) == [(0, 1), (3, 4)]  # 2 and 5 between them: both like 2
    assert pairs(drafted(a, b, (1, 1, 0), 6)) == [(1, 0), (4, 5)]  # 2 and 3 between them
    assert pairs(drafted(a, b, (1, 1, 0), 5)) == [(1, 0)]
    assert pairs(drafted(a, b, (0,), 1)) == []
    assert pairs(drafted((2, 3, 4, 5), (2, 5, 4, 3), (0, 0), 3, opening=1)) == [(3, 5)]
    assert pairs(DecisionRecord(shown=(), arm="interleaved")) == []


def test_an_evaluation_compares_the_same_pairs() -> None:
    """Each with the weight 1, for whichever of the two was clicked; also on a page that begins within a round."""
    for b in itertools.permutations((2, 3, 4, 5, 6)):
        for coins, page in ((0, 1, 0), {}), ((1, 1), {"opening": 0}), ((0, 1), {"opening": 1}):
            record = drafted((2, 3, 4, 5, 6), b, coins, 5, **page)
            for at, item in enumerate(record.shown):
                found = swapped_pairs(record, Answer(best=(item,), picked=True))
                mine = [pair for pair in pairs(record) if item in pair]
                assert found == [(record.shown.index(upper) + 1, upper == item, 1.0) for upper, _ in mine], (at, b)


def test_a_pair_of_a_list_drawn_at_random_weighs_by_how_likely_its_order_was() -> None:
    """1 / (2 P), of two that changed places alone; none where either order weighs more than 4."""
    rng, weighed = np.random.default_rng(0), set()
    for _ in range(50):
        ranks = rng.permutation(8)[:6]
        drawn = {"ranks": ranks.tolist(), "candidates": 8, "temperature": 0.5}
        record = DecisionRecord(shown=(0, 1, 2, 3, 4, 5), arm="sampled", proposal=drawn)
        found = {at - 1: weight for at, _, weight in swapped_pairs(record, Answer(best=(0, 2, 4), picked=True))}
        for at in (0, 2, 4):
            other = ranks.copy()
            other[[at, at + 1]] = ranks[[at + 1, at]]
            chances = [probability(each, 8, 0.5) for each in (ranks, other)]
            weights = [0.5 * sum(chances) / chance for chance in chances]
            assert (at in found) == (max(weights) <= MOST_WEIGHT)
            weighed.add(at in found)
            if at in found:
                assert found[at] == pytest.approx(weights[0])
    assert weighed == {True, False}


@pytest.mark.parametrize("m", [2, 3, 4, 5])
def test_a_pair_stands_in_either_order_equally_often(m: int) -> None:
    """By enumeration of all coins, after the same beginning of the list; and what follows has one distribution."""
    for b in itertools.permutations(range(m)):
        seen, rests = Counter[Any](), dict[Any, Counter[Any]]()
        for coins in itertools.product((0, 1), repeat=(m + 1) // 2):
            record = drafted(tuple(range(m)), b, coins, m)
            for upper, lower in pairs(record):
                at = record.shown.index(upper)
                seen[record.shown[:at], upper, lower] += 1
                rests.setdefault((record.shown[:at], upper, lower), Counter())[record.shown[at + 2 :]] += 1
        for (before, upper, lower), n in seen.items():
            assert seen[before, lower, upper] == n
            assert rests[before, lower, upper] == rests[before, upper, lower]
