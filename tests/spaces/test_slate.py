"""The door of ratings: offers, slates, what is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.core.conformance import identical
from heedful.core.session import Session
from heedful.learners.ratings.alb import ALB
from heedful.spaces.slate import MOST, Slate, SlateContext, WeightedRatings, check_slate

X = SlateContext(2, np.array([1, 4, 6]))
SLATE = Slate(2, -1.0, 5.0)


def test_an_offer_is_sorted_and_whole() -> None:
    for items in ([6, 1, 4], (6, 1, 4), np.array([6, 1, 4], np.int32), np.array([6, 1, 4], np.uint8)):
        x = SLATE.check_context((2, items))
        assert (x.user, x.items.tolist(), x.items.dtype) == (2, [1, 4, 6], np.int64)
    assert SLATE.check_context((np.int32(2), 5)).items.tolist() == [5]
    assert type(SLATE.check_context((np.int32(2), 5)).user) is int


def test_a_door_keeps_nothing_of_what_it_is_given() -> None:
    items, rated, ratings = np.array([1, 2]), np.array([1]), np.array([3.0])
    x = SLATE.check_context((0, items))
    y = SLATE.check_object("feedback", x, (rated, ratings))
    assert not any(np.shares_memory(a, b) for a, b in ((items, x.items), (rated, y.items), (ratings, y.ratings)))


@pytest.mark.parametrize(
    ("x", "named"),
    [
        ((2, []), "x: items: expected at least one on offer, got none"),
        ((2, [1, 1]), "x: items: .* none twice, got 1 2 times"),
        ((2, [-1]), "x: items: .* each from 0 to 9999999, got -1"),
        ((2, [MOST]), "x: items: .* got 10000000"),
        ((2, [0.5]), "x: items: expected the numbers of the items on offer"),
        ((2, "ab"), "x: items: expected"),
        ((-1, [1]), "x: user: expected a whole number, 0 to 9999999, got -1"),
        ((MOST, [1]), "x: user: expected"),
        ((True, [1]), "x: user: expected"),
        ((2.0, [1]), "x: user: expected"),
        ((2, [1], 3), r"x: expected \(user, items\)"),
        ([1], "x: expected"),
        (None, "x: expected"),
    ],
)
def test_no_offer(x: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        SLATE.check_context(x)


def test_feedback_is_ratings_of_some_on_offer() -> None:
    y = SLATE.check_object("feedback", X, ([6, 1], [5, -1]))
    assert (y.items.tolist(), y.ratings.tolist()) == ([6, 1], [5.0, -1.0])
    y = SLATE.check_object("feedback", X, (4, True))
    assert (y.items.tolist(), y.ratings.tolist(), y.ratings.dtype) == ([4], [1.0], np.float64)


def test_feedback_may_have_weights() -> None:
    y = SLATE.check_object("feedback", X, ([6, 1], [5, -1], (2, 0.5)))
    assert isinstance(y, WeightedRatings)
    assert (y.weights.tolist(), y.weights.dtype, y.weight(1)) == ([2.0, 0.5], np.float64, 0.5)
    assert SLATE.check_object("feedback", X, ([6], [5])).weight(0) == 1.0


@pytest.mark.parametrize(
    ("y", "named"),
    [
        (([1], [np.nan]), "feedback: ratings: expected numbers from -1 to 5, got nan"),
        (([1], [5.01]), "feedback: ratings: expected numbers from -1 to 5, got 5.01"),
        (([1], [-np.inf]), "feedback: ratings: expected numbers from -1 to 5, got -inf"),
        (([1], ["5"]), "feedback: ratings: expected numbers"),
        (([1, 4], [5]), "feedback: ratings: expected 2, one for each item"),
        (([2], [5]), "feedback: items: expected some of those on offer, got 2"),
        (([1, 1], [5, 5]), "feedback: items: .* none twice"),
        (([], []), "feedback: items: expected"),
        (([1, 4], [5, 4], [1]), "feedback: weights: expected 2, one for each item"),
        (([1], [5], [0]), r"feedback: weights: expected numbers from 1e-06 to 1e\+06, got 0"),
        (([1], [5], [np.nan]), "feedback: weights: expected numbers from .* got nan"),
        (([1], [5], ["1"]), "feedback: weights: expected numbers"),
        (([1], [5], [1], [1]), "feedback: expected"),
        (5.0, r"feedback: expected \(items, ratings\)"),
        (None, "feedback: expected"),
    ],
)
def test_no_ratings(y: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        SLATE.check_object("feedback", X, y)


def test_a_refusal_changes_nothing() -> None:
    session = Session(ALB(space=Slate(1, 0.0, 5.0)), 0)
    [shown] = session.propose((0, [3, 8]))
    before = session.state
    for wrong in (np.nan, 6.0, -0.1):
        with pytest.raises(ValueError, match=r"^feedback: ratings: expected numbers from 0 to 5"):
            session.learn((shown, wrong))
    with pytest.raises(ValueError, match="got 9"):
        session.learn((9, 1.0))
    assert identical(before.pairs, session.state.pairs)
    assert np.array_equal(before.B, session.state.B)
    session.learn((shown, 5.0))
    assert session.state.pairs.used == 1


@pytest.mark.parametrize(
    ("space", "named"),
    [
        (Slate(0), "size"),
        (Slate(1.5), "size"),  # type: ignore[arg-type]
        (Slate(1, np.nan), "low"),
        (Slate(1, 0.0, np.inf), "high"),
        (Slate(1, 2.0, 2.0), "high"),
        (Slate(1, "0"), "low"),  # type: ignore[arg-type]
        (Slate, "space"),
        (5, "space"),
    ],
)
def test_no_slate(space: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: expected"):
        check_slate(space)


def test_spoiled_contexts_and_objects_are_all_refused() -> None:
    """What the conformance checks offer; with the widest and the narrowest range of ratings."""
    for slate in (Slate(), Slate(2, 0.0, 1.0), Slate(1, 3.0, 4.0)):
        for x in slate.invalid_contexts(X):
            with pytest.raises(ValueError, match=r"^x: "):
                slate.check_context(x)
        for y in slate.invalid_objects(X, X.items[:2]):
            with pytest.raises(ValueError, match=r"^feedback: "):
                slate.check_object("feedback", X, y)
    assert SLATE.check_context(SLATE.another_context(X)).items.tolist() == [6]
