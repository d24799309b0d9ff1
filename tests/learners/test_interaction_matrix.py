"""Counts and sums of pairs against a dictionary of all ratings, as they come and go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budget import examples
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.learners.ratings.interaction_matrix import (
    InteractionMatrix,
    add_rating,
    empty_matrix,
    grow,
    items_of,
    place_of,
    places_of,
    remove_item,
    remove_pair,
    users_of,
)
from kernels import compile_kernel

Log = list[tuple[int, int, float]]


def listed(pairs: InteractionMatrix, whose: int, by_user: bool) -> list[tuple[int, float, float]]:
    """(the other side, count, sum) along one list."""
    there = []
    for p in places_of(pairs.by_user if by_user else pairs.by_item, whose):
        assert pairs.user[p] == whose if by_user else pairs.item[p] == whose
        other = pairs.item[p] if by_user else pairs.user[p]
        there.append((int(other), float(pairs.count[p]), float(pairs.total[p])))
    return there


def agree(pairs: InteractionMatrix, log: Log) -> None:
    """Both lists of everybody hold what the log says, each pair once."""
    there: dict[tuple[int, int], tuple[float, float]] = {}
    for user, item, rating in log:
        count, total = there.get((user, item), (0.0, 0.0))
        there[user, item] = count + 1.0, total + rating
    for user in range(pairs.by_user.size.size):
        wanted = sorted((j, *there[i, j]) for i, j in there if i == user)
        assert sorted(listed(pairs, user, True)) == wanted
        assert sorted(items_of(pairs, user).tolist()) == [j for j, _, _ in wanted]
    for item in range(pairs.by_item.size.size):
        wanted = sorted((i, *there[i, j]) for i, j in there if j == item)
        assert sorted(listed(pairs, item, False)) == wanted
        assert sorted(users_of(pairs, item).tolist()) == [i for i, _, _ in wanted]
    for user, item in there:
        p = place_of(pairs, user, item)
        assert (pairs.user[p], pairs.item[p]) == (user, item)


def gathered(log: Log) -> InteractionMatrix:
    pairs = empty_matrix(1, 1)
    for user, item, rating in log:
        pairs = add_rating(pairs, user, item, rating)
    return pairs


LOGS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(-5, 5).map(float)), max_size=120)


@examples(60)
@given(LOGS)
def test_counts_and_sums_are_those_of_the_ratings(log: Log) -> None:
    agree(gathered(log), log)


@examples(100)
@given(LOGS, st.data())
def test_what_is_taken_out_leaves_what_is_left(log: Log, data: st.DataObject) -> None:
    """Of pairs and items in any order, with ratings that come in between."""
    pairs = gathered(log)
    for _ in range(data.draw(st.integers(1, 6))):
        what = data.draw(st.sampled_from(["pair", "item", "more"]))
        if what == "pair" and log:
            user, item, _ = data.draw(st.sampled_from(log))
            remove_pair(pairs, place_of(pairs, user, item))
            log = [e for e in log if e[:2] != (user, item)]
        elif what == "item":
            item = data.draw(st.integers(0, 12))
            remove_item(pairs, item)
            log = [e for e in log if e[1] != item]
        else:
            more = data.draw(LOGS)
            for user, item, rating in more:
                pairs = add_rating(pairs, user, item, rating)
            log = log + more
        agree(pairs, log)


def test_lists_are_the_newest_first_and_stay_so() -> None:
    pairs = gathered([(0, j, 1.0) for j in (4, 2, 7, 2)] + [(1, 2, 3.0)])
    assert items_of(pairs, 0).tolist() == [7, 2, 4]
    assert users_of(pairs, 2).tolist() == [1, 0]
    remove_pair(pairs, place_of(pairs, 0, 2))
    assert items_of(pairs, 0).tolist() == [7, 4]
    assert users_of(pairs, 2).tolist() == [1]


def test_nothing_tells_of_a_pair_that_was_taken_out() -> None:
    pairs = gathered([(3, 5, 2.0), (1, 5, 4.0)])
    remove_pair(pairs, 0)
    for column in (pairs.user, pairs.item, pairs.count, pairs.total):
        assert column[0] == 0
    assert place_of(pairs, 3, 5) == -1
    assert places_of(pairs.by_user, 3).size == 0
    assert places_of(pairs.by_item, 5).tolist() == [1]


def test_a_pair_that_is_not_there_changes_nothing() -> None:
    pairs = gathered([(0, 1, 2.0)])
    before = copy_arrays(pairs)
    remove_item(pairs, 99)
    assert identical(pairs, before)
    assert place_of(pairs, 99, 1) == -1


def test_room_grows_by_a_quarter() -> None:
    """Growth is no copy a rating: 10,000 pairs are 25 or so copies."""
    pairs, copies = empty_matrix(1, 1), 0
    for n in range(10_000):
        more = add_rating(pairs, n, n % 7, 1.0)
        copies += more.user is not pairs.user
        pairs = more
    assert 10 < copies <= 25
    assert pairs.used == 10_000


@pytest.mark.parametrize("fill", [-1, 0])
def test_longer(fill: int) -> None:
    a = np.arange(3)
    assert grow(a, 3, fill) is a
    assert grow(a, 4, fill).tolist() == [0, 1, 2, *[fill] * 2]
    assert grow(a, 4, fill, 1.0).tolist() == [0, 1, 2, *[fill] * 5]


@pytest.mark.slow
def test_compiled_equals_interpreted() -> None:
    fast = compile_kernel(add_rating)
    a, b = empty_matrix(1, 1), empty_matrix(1, 1)
    for user, item, rating in zip(*(np.random.default_rng(0).integers(0, n, 300).tolist() for n in (6, 90, 5))):
        a, b = add_rating(a, user, item, float(rating)), fast(b, user, item, float(rating))
    assert identical(a, b)
