"""A table of choices as rows; who won against whom; what was never compared; circles, against trying all of them."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from heedful.data.comparisons import Comparison, tabulate
from heedful.inference.comparison_table import (
    ComparisonTable,
    connected_parts,
    pairwise_rows,
    shortest_cycle,
    win_counts,
)
from heedful.inference.pairwise import concatenate, order_rows, pair_rows


def table() -> ComparisonTable:
    return tabulate(
        [
            Comparison("ann", (("a",), ("b",)), 2, "a"),
            Comparison("ann", (("a",), ("b",)), 1, "b"),  # the same answer, the sides the other way round
            Comparison("ann", (("c", "b"),), 1, "c"),
            Comparison("ann", (("b", "c"),), 2),
            Comparison("bob", (("c",), ("a", "b")), 3),
            Comparison("bob", (("d",), ("a",), ("b",))),
            Comparison("bob", (("a", "d"),), 7, "a", judged=False),
        ],
        "abcd",
    )


def test_rows_are_those_of_the_answers() -> None:
    a, b, c, d = range(4)
    want = concatenate(
        [
            pair_rows([(a, b), (b, c)], [3.0, 3.0], [False, True]),
            order_rows([c, [a, b]], 3.0, user=1),
            order_rows([d, a, b], user=1),
        ]
    )
    for got, wanted in zip(pairwise_rows(table()), want):
        assert got.dtype == wanted.dtype
        assert got.tolist() == wanted.tolist()


def test_several_that_are_equally_good_are_one_answer() -> None:
    """Every two of them tie; however they stood, it is the same answer."""
    told = [Comparison("ann", (("a", "b", "c"),), 2), Comparison("ann", (("c", "a", "b"),), 1)]
    choices = tabulate(told, "abcd")
    for got, wanted in zip(pairwise_rows(choices), order_rows([[0, 1, 2]], 3.0, equal=True)):
        assert got.tolist() == wanted.tolist()
    level = [[0, 1.5, 1.5, 0], [1.5, 0, 1.5, 0], [1.5, 1.5, 0, 0], [0, 0, 0, 0]]
    assert win_counts(choices).tolist() == level
    assert not win_counts(choices, tie=0.0).any()


@pytest.mark.parametrize(("tiers", "rows"), [([21, 20], 420), ([29], 406)])
def test_orders_of_wide_ties_are_refused(tiers: list[int], rows: int) -> None:
    wide = tabulate([Comparison("", tuple(tuple(f"{k}, {i}" for i in range(size)) for k, size in enumerate(tiers)))])
    with pytest.raises(ValueError, match=f"answers: expected orders of at most 400 neighbours, got one of {rows}"):
        pairwise_rows(wide)


def test_wins_count_every_pair_of_an_order() -> None:
    # of ann: a over b 3 times, b and c level 3 times; of bob: c over a, b 3 times; d over a, b and a over b
    want = np.array([[0, 4, 0, 0], [0, 0, 1.5, 0], [3, 4.5, 0, 0], [1, 1, 0, 0]])
    assert win_counts(table()).tolist() == want.tolist()
    want[1, 2], want[2, 1] = 0, 3
    assert win_counts(table(), tie=0.0).tolist() == want.tolist()


def test_parts_are_what_comparisons_connect() -> None:
    assert connected_parts(6, np.array([4, 0, 5]), np.array([1, 5, 3])).tolist() == [0, 1, 2, 0, 1, 0]
    assert connected_parts(2, np.zeros(0, int), np.zeros(0, int)).tolist() == [0, 1]


def shortest(beats: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int:
    """The length of the shortest circle, of all orders of all items; 0 where there is none."""
    n = len(beats)
    for size in range(2, n + 1):
        for way in permutations(range(n), size):
            if all(beats[a, b] for a, b in zip(way, [*way[1:], way[0]])):
                return size
    return 0


@pytest.mark.parametrize("share", [0.15, 0.25, 0.5])
def test_circles_are_the_shortest_there_are(share: float) -> None:
    rng = np.random.default_rng(3)
    lengths = []
    for _ in range(60):
        beats = rng.random((6, 6)) < share
        beats &= ~beats.T  # a majority goes one way
        way = shortest_cycle(beats)
        assert len(way) == shortest(beats)
        assert all(beats[a, b] for a, b in zip(way, [*way[1:], *way[:1]]))
        lengths.append(len(way))
    assert 0 in lengths
    assert 3 in lengths
    assert max(lengths) > 3 or share != 0.25
