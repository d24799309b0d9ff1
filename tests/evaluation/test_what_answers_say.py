"""What an answer says: of itself, of what was predicted, and against another answer."""

from __future__ import annotations

import pytest

from heedful.evaluation.answers import Answer, Scale, claims, credit, first_wanted, outcomes, reciprocal_rank

STARS = Scale(1.0, 5.0, differ=2.0)


def key(j: int) -> str:
    return "abcdef"[j]


def test_a_better_order_claims_what_it_turns_round_and_nothing_else() -> None:
    """[d, b] over a b c d: d now stands before a, b and c, and b before a; b stood before c already."""
    answer = Answer(best=(3, 1))
    expected = {("a", "d"): 0.0, ("b", "d"): 0.0, ("c", "d"): 0.0, ("a", "b"): 0.0}
    assert claims((0, 1, 2, 3), answer, None, key) == expected


def test_clicks_claim_over_what_was_passed_over() -> None:
    assert claims((0, 1, 2, 3), Answer(best=(2,), picked=True), None, key) == {("a", "c"): 0.0, ("b", "c"): 0.0}
    later = Answer(best=(1, -1), picked=True)  # one was clicked on a later page: all of this one was looked at
    assert claims((0, 1, 2), later, None, key) == {("a", "b"): 0.0, ("b", "c"): 1.0}


@pytest.mark.parametrize(("shown", "named", "expected"), [
    ((2,), (), {"c": 0.5}),  # on a list of one item the name makes no difference
    ((2,), (2,), {"c": 0.5}),
    ((1, 2), (2,), {"c": 0.5}),
    ((1, 2), (), {}),
])  # fmt: skip
def test_a_thumb_claims_that_one_item_is_good(
    shown: tuple[int, ...], named: tuple[int, ...], expected: dict[str, float]
) -> None:
    assert claims(shown, Answer(verdict=(named, 1.0)), None, key) == expected


def test_numbers_claim_by_the_scale_and_are_credited_from_its_middle() -> None:
    answer = Answer({0: 5.0, 2: 2.0})
    assert claims((0, 1), answer, STARS, key) == {"a": 2.5, "c": 1.0}
    assert claims((0, 1), answer, Scale(1.0, 5.0), key) == {}
    assert credit((0, 1), answer, STARS) == {0: 2.0}
    assert credit((0, 2), answer, None) == {0: 1.5, 2: -1.5}


def test_what_was_read_from_actions_is_credited_but_judges_no_prediction() -> None:
    """Two purchases of weight 3, worth five stars each."""
    bought = Answer({0: 5.0}, {0: 3.0}, stated=False)
    assert credit((0, 1), bought, STARS) == {0: 6.0}
    assert outcomes((0, 1), (4.0, 3.0), bought, STARS) == []
    assert claims((0, 1), bought, STARS, key) == {}
    assert first_wanted((0, 1), bought) is None


def test_outcomes_are_numbers_on_a_scale_and_who_came_first_without_one() -> None:
    assert outcomes((0, 1), (4.0, 3.0), Answer({1: 2.0, 5: 1.0}), STARS) == [(3.0, 2.0)]
    assert outcomes((0, 1), (0.7, 0.3), Answer(best=(1,)), None) == [(0.7, 0.0), (0.3, 1.0)]
    assert outcomes((0, 1), (0.7, 0.3), Answer(best=()), None) == []


def test_the_first_answer_that_prefers_something_scores_a_list() -> None:
    silent, none, second = Answer(), Answer(best=()), Answer(best=(1,))
    assert reciprocal_rank((0, 1), [silent]) is None
    assert reciprocal_rank((0, 1), [none, silent]) == 0.0
    assert reciprocal_rank((0, 1), [none, second, Answer(best=(0,))]) == 0.5
    assert reciprocal_rank((0, "new"), [Answer(best=("new",))]) == 0.5
    assert reciprocal_rank((0, 1), [Answer({0: 1.0, 1: 3.0, 4: 3.0})]) == 0.5  # of equal numbers the one shown
