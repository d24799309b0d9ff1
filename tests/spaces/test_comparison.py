"""The door of choices: pools of pairs, answers, what is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.core.session import Session
from heedful.learners.preference.preference_gp import PreferenceGP
from heedful.spaces.comparison import (
    EQUAL,
    FIRST,
    MOST,
    SECOND,
    UNSURE,
    Choice,
    ComparisonPool,
    check_choice,
    order_of,
)

CHOICE = Choice(5)
X = ComparisonPool(2, np.array([[0, 1], [3, 2]]))


def test_a_pool_is_whole() -> None:
    for pairs in ([[0, 1], [3, 2]], np.array([[0, 1], [3, 2]], np.uint8), ((0, 1), (3, 2))):
        x = CHOICE.check_context((np.int32(2), pairs))
        assert (x.user, x.pairs.tolist(), x.pairs.dtype, type(x.user)) == (2, [[0, 1], [3, 2]], np.int64, int)
    given = np.array([[0, 1]])
    assert not np.shares_memory(CHOICE.check_context((0, given)).pairs, given)


@pytest.mark.parametrize(
    ("x", "named"),
    [
        ((2, []), "x: pairs: expected at least one pair"),
        ((2, [0, 1]), "x: pairs: expected at least one pair"),
        ((2, [[0], [1]]), "x: pairs: expected at least one pair"),
        ((2, [[0.0, 1.0]]), "x: pairs: expected at least one pair"),
        ((2, "ab"), "x: pairs: expected pairs"),
        ((2, [[0, 5]]), "x: pairs: expected items from 0 to 4, got 5"),
        ((2, [[0, 1], [-1, 2]]), "x: pairs: expected items from 0 to 4, got -1"),
        ((2, [[0, 1], [3, 3]]), "x: pairs: expected different items in each, got 3 twice"),
        ((2, [[0, 1, 2], [4, 3, 4]]), "x: pairs: expected different items in each, got 4 twice"),
        ((2, [[0, 1, 2], [4, 3]]), "x: pairs: expected pairs of the numbers of items"),
        ((-1, [[0, 1]]), "x: user: expected a whole number, 0 to 9999999, got -1"),
        ((MOST, [[0, 1]]), "x: user: expected"),
        ((2, [[0, 1]], 3), r"x: expected \(user, pairs\)"),
        (None, "x: expected"),
    ],
)
def test_no_pool(x: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        CHOICE.check_context(x)


def test_answers_in_numbers_and_words() -> None:
    for word, number in (("first", FIRST), ("second", SECOND), ("equal", EQUAL), ("unsure", UNSURE)):
        assert CHOICE.check_object("feedback", X, word) == CHOICE.check_object("feedback", X, np.int8(number)) == number
    told = r"feedback: expected 0 \(first\), 1 \(second\), -2 \(unsure\), or places from the best on, got"
    for wrong in (EQUAL, "equal"):
        with pytest.raises(ValueError, match=told):
            Choice(5, equal=False).check_object("feedback", X, wrong)


THREE = ComparisonPool(2, np.array([[0, 1, 4], [3, 2, 1]]))


def test_answers_about_three() -> None:
    """The place of the best, all equal, cannot judge; an order of some or all places."""
    assert CHOICE.check_context((2, THREE.pairs.tolist())).pairs.tolist() == THREE.pairs.tolist()
    assert [CHOICE.check_object("feedback", THREE, y) for y in (2, 0, "equal", "unsure")] == [2, 0, EQUAL, UNSURE]
    given = np.array([2, 0], np.int32)
    for order in ([2], (2, 0), given, [2, 0, 1]):
        got = CHOICE.check_object("feedback", THREE, order)
        assert isinstance(got, np.ndarray)
        assert (got.tolist(), got.dtype) == (list(order), np.int64)
    whole = np.array([2, 0, 1])
    got = CHOICE.check_object("feedback", THREE, whole)
    assert not np.shares_memory(got, whole)
    assert [order_of(y, 3) for y in (EQUAL, UNSURE)] == [EQUAL, UNSURE]
    assert [order_of(1, 3).tolist(), order_of(whole, 3).tolist()] == [[1], [2, 0, 1]]


@pytest.mark.parametrize("wrong", [3, "first", "second", [3], [0, 0], [], [0, 1, 2, 0], [[0]], [0.0], [True], "best"])
def test_no_answers_about_three(wrong: Any) -> None:
    told = (
        r"feedback: expected the place of the best, 0 to 2, -1 \(equal\), -2 \(unsure\), or places from the "
        r"best on, got"
    )
    with pytest.raises(ValueError, match=told):
        CHOICE.check_object("feedback", THREE, wrong)


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (Choice(-1), "n_items: expected a whole number, 0 to 10000, got -1"),
        (Choice(10_001), "n_items: expected"),
        (Choice(3, equal=1), "equal: expected True or False, got 1"),  # type: ignore[arg-type]
        (Choice(3, True, np.ones((2, 2))), "features: expected 3 rows, one for each item, got 2"),
        (Choice(3, True, np.full((3, 1), np.nan)), "features: expected finite numbers"),
        (Choice(3, True, np.ones(3)), "features: expected shape"),
        ("pairs", "space: expected a choice among items"),
    ],
)
def test_spaces_that_make_no_sense(space: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        check_choice(space)


def test_a_session_takes_words() -> None:
    session = Session(PreferenceGP(CHOICE))
    assert session.propose((7, [[4, 2]])).tolist() == [4, 2]
    session.learn("second")
    posterior = session.learner.posterior(session.state, 7)
    assert posterior.beats(2, 4) > 0.6
    session.propose((7, [[4, 2]]))
    with pytest.raises(ValueError, match="feedback: expected"):
        session.learn("third")
