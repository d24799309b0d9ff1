"""Actions as ratings that weigh: the table, what was done, what is refused by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.core.session import Session
from heedful.learners.ratings.bmf import BMF
from heedful.loop.interactions.rating.implicit_feedback import Action, check_actions, weigh_actions
from heedful.spaces.slate import Slate

SPACE = Slate(3, 1.0, 5.0)
SHOP = {"view": (1, 0.1), "cart": [3, 1.0], "buy": (5, 4), "hide": (1, 2), "like": 4}


def test_a_table_by_name() -> None:
    table = check_actions(SHOP, SPACE)
    assert table["view"] == Action(1.0, 0.1)
    assert table["buy"] == Action(5.0, 4.0)
    assert table["like"] == Action(4.0, 1.0)
    assert all(type(number) is float for action in table.values() for number in action)


def test_one_action_is_a_rating_that_weighs_and_several_are_one() -> None:
    table = check_actions(SHOP, SPACE)
    given = weigh_actions(table, [7, 2, 9], ["buy", ["view", "view", "cart"], ("hide",)])
    assert given.items.tolist() == [7, 2, 9]
    np.testing.assert_allclose(given.ratings, [5.0, 3.2 / 1.2, 1.0])
    np.testing.assert_allclose(given.weights, [4.0, 1.2, 2.0])
    assert given.weight(2) == 2.0


def test_a_mean_of_equal_ratings_stays_in_the_range() -> None:
    """A mean by weight may be off in the last bit, and then no door would let it in."""
    for weight in (0.1, 0.3, 0.7):
        table = check_actions({"a": (5, weight), "b": (5, 3 * weight)}, SPACE)
        given = weigh_actions(table, [1], [["a", "a", "b"]])
        assert SPACE.check_object("feedback", SPACE.check_context((0, [1])), tuple(given)).ratings[0] == 5.0


def test_a_session_learns_from_them() -> None:
    table = check_actions(SHOP, SPACE)
    session = Session(BMF(SPACE), 0)
    for _ in range(30):
        shown = session.propose((4, [1, 2, 3, 5]))
        session.learn(weigh_actions(table, shown, ["buy" if item == 5 else "view" for item in shown]))
    assert session.propose((4, [1, 2, 3, 5]))[0] == 5


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ({}, r"^actions: expected \(value, weight\) by name"),
        ([("view", 1)], r"^actions: expected \(value, weight\) by name"),
        ({"": 1}, "^actions: expected names, got ''$"),
        ({"view": (1, 2, 3)}, r"^actions: view: expected \(value, weight\), such as \(1, 0.1\), got \(1, 2, 3\)$"),
        ({"view": "1"}, r"^actions: view: expected \(value, weight\)"),
        ({"view": (1, True)}, r"^actions: view: expected \(value, weight\)"),
        ({"view": (0, 1)}, "^actions: view: value: expected a number from 1 to 5, got 0$"),
        ({"view": (float("nan"), 1)}, "^actions: view: value: expected a number from 1 to 5, got nan$"),
        ({"view": (1, 0)}, r"^actions: view: weight: expected a number from 1e-06 to 1e\+06, got 0$"),
        ({"view": (1, float("inf"))}, "^actions: view: weight: expected .* got inf$"),
    ],
)
def test_no_table(actions: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_actions(actions, SPACE)


@pytest.mark.parametrize(
    ("items", "done", "message"),
    [
        (
            [1],
            ["veiw"],
            "^feedback: actions: expected one of buy, cart, hide, like, view, got 'veiw'; did you mean view",
        ),
        ([1], [["view", 3]], "^feedback: actions: expected one of .* got 3$"),
        ([1, 2], ["view"], "^feedback: actions: expected 2, one for each item or a list"),
        ([1, 2, 3, 4], "view", "^feedback: actions: expected 4"),
        ([1], [[]], "^feedback: actions: expected at least one for item 1, got none$"),
    ],
)
def test_nothing_that_was_done(items: Any, done: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weigh_actions(check_actions(SHOP, SPACE), items, done)
