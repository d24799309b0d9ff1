"""What an answer says next to what a model expects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.evaluation.answers import Answer, Scale
from heedful.evaluation.expected import (
    Expected,
    absolute_error,
    best_expected,
    contradicts,
    corrected,
    gains,
    list_gain,
    numbers_expected,
    picked_error,
    value_order,
)
from heedful.spaces.ranking import Ranking, difference

STARS = Scale(1.0, 5.0, apart=1.0)


def by(*u: float) -> Expected:
    """A model with these utilities of its candidates; the last one belongs to an object that was none."""
    return Expected(utilities=lambda items: np.array(u)[list(items)])


@pytest.mark.parametrize(("answer", "before", "after"), [
    (Answer(best=(2,)), [0, 1, 2], [2, 0, 1]),  # an order, of which the rest follows
    (Answer(best=(2, 0), picked=True), [0, 1, 2], [2, 0, 1]),
    (Answer(best=(-1,)), [0, 1, 2], [-1, 0, 1, 2]),  # a text that was none of them
    (Answer(best=()), [0, 1, 2], [0, 1, 2]),  # nothing was wanted
    (Answer(tied=True), [0, 1, 2], [0, 1, 2]),
    (Answer(weights={1: -2.0}, stated=False), [0, 1, 2], [0, 2, 1]),  # it was hidden
    (Answer(best=(1,), pairs=((1, 0),)), [0, 1, 2], [1, 0, 2]),  # a choice
    (Answer(pairs=((-1, 0),)), [0, -1], [-1, 0]),  # an edit
    (Answer({2: 5.0, 0: 1.0, 3: 5.0}), [0, 2, 3], [2, 3, 0]),  # numbers; 3 was not shown
])  # fmt: skip
def test_the_list_that_an_answer_asks_for(answer: Answer, before: list[int], after: list[int]) -> None:
    assert corrected((0, 1, 2), answer) == (before, after)


@given(st.data())
def test_a_gain_is_the_step_in_feature_space_by_the_weights(data: st.DataObject) -> None:
    """w . (phi(x, ybar) - phi(x, y)), as Algorithm 1 of Shivaswamy & Joachims (JAIR 2015) updates w."""
    m, k = data.draw(st.integers(2, 7)), data.draw(st.integers(1, 8))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x, w = rng.normal(size=(m, 3)), rng.normal(size=3)
    shown = rng.permutation(m)[: data.draw(st.integers(1, m))]
    best = rng.permutation(m)[: data.draw(st.integers(0, m))].tolist()
    ybar = np.array([*best, *(j for j in shown.tolist() if j not in best)])
    gain = list_gain(shown.tolist(), Answer(best=tuple(best)), lambda items: x[list(items)] @ w, k)
    assert gain == pytest.approx(float(difference(Ranking(k), 3, x, ybar, shown) @ w), abs=1e-9)


def test_a_correction_gains_a_share_of_what_the_best_list_would() -> None:
    """Shown 0, 1 of utility 1 and 2; asked for 1 first; the best list of two has 2, of utility 4, first."""
    second = 1.0 / math.log2(3.0)
    found = gains((0, 1), Answer(best=(1,)), by(1.0, 2.0, 4.0), 3, 2)
    assert found == pytest.approx(((2.0 + second) - (1.0 + 2.0 * second), (4.0 + 2.0 * second) - (1.0 + 2.0 * second)))


@pytest.mark.parametrize("answer", [
    Answer(best=()), Answer(best=(1,), pairs=((1, 0),)), Answer(best=(1,), weights={1: 1.0}, stated=False),
    Answer({0: 3.0}), Answer(best=(1, -1), picked=True), Answer(verdict=((), 1.0)),
])  # fmt: skip
def test_what_corrects_no_list_has_no_gain(answer: Answer) -> None:
    assert gains((0, 1), answer, by(1.0, 2.0), 2, 2) is None


def test_a_better_order_contradicts_a_model_that_likes_it_less() -> None:
    assert contradicts((0, 1), Answer(best=(1,)), by(2.0, 1.0), None, 2)
    assert not contradicts((0, 1), Answer(best=(1,)), by(1.0, 2.0), None, 2)
    assert not contradicts((0, 1), Answer(best=(1,)), by(0.1 + 0.2, 0.3), None, 2), "what rounding leaves"
    assert not contradicts((0, 1), Answer(best=(1,)), Expected(), None, 2)


def test_a_pair_contradicts_a_model_that_has_it_the_other_way_round_wherever_it_stood() -> None:
    """Whoever chooses the first of two says no less than who chooses the second."""
    first, second = Answer(best=(0,), pairs=((0, 1),)), Answer(best=(1,), pairs=((1, 0),))
    for u in ((1.0, 2.0), (2.0, 1.0)):
        assert contradicts((0, 1), first, by(*u), None, 1) is (u[0] < u[1])
        assert contradicts((0, 1), second, by(*u), None, 1) is (u[1] < u[0])
    assert not contradicts((0, 1), first, by(0.3, 0.1 + 0.2), None, 1), "what rounding leaves"


@pytest.mark.parametrize(("number", "opposite"), [(4.0, False), (4.01, True), (2.0, False), (1.9, True)])
def test_a_number_contradicts_a_prediction_far_from_it(number: float, opposite: bool) -> None:
    expected = Expected(values=lambda items: np.full(len(items), 3.0))
    assert contradicts((0, 1), Answer({0: 3.0, 1: number}), expected, STARS, 2) is opposite
    assert not contradicts((0, 1), Answer({1: number}), Expected(values=lambda items: None), STARS, 2)


@pytest.mark.parametrize(("chance", "opposite"), [(0.9, True), (0.89, False)])
def test_a_choice_contradicts_a_model_that_is_sure_of_another(chance: float, opposite: bool) -> None:
    def better(items: Sequence[int], other: int) -> Any:
        assert (list(items), other) == ([0, 2], 1)
        return np.array([0.1, chance])

    expected = Expected(better=better)
    assert contradicts((0, 1, 2), Answer(best=(1,)), expected, None, 3) is opposite
    assert not contradicts((0, 1, 2), Answer(tied=True), expected, None, 3)


@pytest.mark.parametrize(("sign", "above", "opposite"), [(1.0, -0.5, True), (1.0, 0.5, False), (-1.0, 0.5, True),
                                                          (-1.0, -0.5, False), (1.0, 0.0, False)])  # fmt: skip
def test_a_thumb_contradicts_what_is_usual(sign: float, above: float, opposite: bool) -> None:
    judged = []
    expected = Expected(verdict=lambda items: judged.append(tuple(items)) or above)  # type: ignore[func-returns-value]
    assert contradicts((0, 1), Answer(verdict=((), sign)), expected, None, 2) is opposite
    assert contradicts((0, 1), Answer(verdict=((1,), sign)), expected, None, 2) is opposite
    assert judged == [(0, 1), (1,)]


def test_errors_count_pairs_in_the_wrong_order() -> None:
    """1 and 2 were picked: 0 is above both by the model, 3 below 1 and equal to 2."""
    picked = Answer(best=(1, 2, -1), picked=True)
    assert picked_error((0, 1, 2, 3), picked, by(9.0, 5.0, 4.0, 4.0, 0.0)) == (1.0 + 1.0 + 0.0 + 0.5) / 4
    assert picked_error((0, 1), Answer(best=(0, 1), picked=True), by(1.0, 2.0)) is None
    assert picked_error((0, 1), Answer(best=(1,), pairs=((1, 0),)), by(1.0, 2.0)) is None


def test_numbers_are_compared_with_what_each_model_expects() -> None:
    """Two models: one says 3 of each item, one 5, 1 and 4 of items 0, 1 and 2; 0 got 4 stars, 2 got 2."""
    models = [
        Expected(values=lambda items: np.full(len(items), 3.0)),
        Expected(values=lambda items: np.array([5.0, 1.0, 4.0])[list(items)]),
        Expected(values=lambda items: None),
    ]
    found = numbers_expected((2, 0, 1), Answer({0: 4.0, 2: 2.0}), models)
    assert found is not None
    np.testing.assert_array_equal(found[0], [2.0, 4.0])  # in the order shown
    np.testing.assert_array_equal(found[1], [[3.0, 3.0], [4.0, 5.0], [np.nan, np.nan]])
    errors, most, order = absolute_error(found), absolute_error(found, 1.5), value_order(found)
    assert errors is not None
    assert most is not None
    assert order is not None
    np.testing.assert_array_equal(errors.values, [[1.0, 1.0], [2.0, 1.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(most.values, [[1.0, 1.0], [1.5, 1.0], [np.nan, np.nan]])
    np.testing.assert_array_equal(order.values, [[0.5], [1.0], [np.nan]])
    assert numbers_expected((0,), Answer({0: 4.0}, stated=False), models) is None


def test_the_best_is_compared_with_all_others() -> None:
    compared = best_expected((0, 1, 2), Answer(best=(1,)), [by(2.0, 2.0, 1.0), by(1.0, 0.0, 3.0)])
    assert compared is not None
    assert compared.values.tolist() == [[0.5, 1.0], [0.0, 0.0]]
    assert best_expected((0, 1, 2), Answer(tied=True), [by(1.0, 2.0, 3.0)]) is None
