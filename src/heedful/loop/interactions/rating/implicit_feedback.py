"""Actions as weighted ratings (implicit feedback): a view says little, a purchase much, hiding an item says no.

`{"view": (1, 0.1), "cart": (3, 1), "buy": (5, 4), "hide": (1, 2)}`: which rating each action stands for, and as how
many ratings it counts. Learners of ratings take the result as `WeightedRatings` feedback."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe, is_number
from heedful.spaces.slate import MOST_WEIGHT, Slate, WeightedRatings


class Action(NamedTuple):
    """The rating that an action stands for: `value`, counted as `weight` ratings."""

    value: float
    weight: float


def check_actions(actions: object, space: Slate) -> dict[str, Action]:
    """Return the table of actions by name, checked; `actions` has a (value, weight) for each, or a value alone, which
    counts as one rating.

    Raise ValueError, naming the action, if a value is not in the range of ratings [space.low, space.high], or a weight
    is not a number from 1 / MOST_WEIGHT to MOST_WEIGHT."""
    if not isinstance(actions, Mapping) or not actions:
        raise ValueError(f"actions: expected (value, weight) by name, such as view: (1, 0.1), got {describe(actions)}")
    table = {}
    for name, given in actions.items():
        if not isinstance(name, str) or not name:
            raise ValueError(f"actions: expected names, got {describe(name)}")
        pair = list(given) if isinstance(given, list | tuple) else [given, 1.0]
        if len(pair) != 2 or not all(is_number(number, int, float) for number in pair):
            raise ValueError(f"actions: {name}: expected (value, weight), such as (1, 0.1), got {describe(given)}")
        value, weight = pair
        if not space.low <= value <= space.high:
            raise ValueError(
                f"actions: {name}: value: expected a number from {space.low:g} to {space.high:g}, got {value!r}"
            )
        if not 1.0 / MOST_WEIGHT <= weight <= MOST_WEIGHT:
            expected = f"a number from {1.0 / MOST_WEIGHT:g} to {MOST_WEIGHT:g}"
            raise ValueError(f"actions: {name}: weight: expected {expected}, got {weight!r}")
        table[name] = Action(float(value), float(weight))
    return table


def weigh_actions(
    actions: Mapping[str, Action], items: npt.ArrayLike, done: Sequence[str | Sequence[str]]
) -> WeightedRatings:
    """Return actions on r items as weighted ratings (r,).

    - `actions`: the rating and weight of each action, by name
    - `items` (r,): the numbers of the items
    - `done`: one action or several for each item

    Several actions on an item become one rating: their mean by weight, with the sum of their weights. Raise ValueError
    for an unknown action, or if `done` has not one entry for each item."""
    numbers = np.atleast_1d(np.array(items, np.int64))
    if isinstance(done, str) or len(done) != numbers.size:
        raise ValueError(
            f"feedback: actions: expected {numbers.size}, one for each item or a list, got {describe(done)}"
        )
    ratings, weights = np.empty(numbers.size), np.empty(numbers.size)
    for r, names in enumerate(done):
        each = [names] if isinstance(names, str) else list(names)
        for name in each:
            if name not in actions:
                close = difflib.get_close_matches(str(name), list(actions), n=1)
                hint = f"; did you mean {close[0]}?" if close else ""
                expected = ", ".join(sorted(actions))
                raise ValueError(f"feedback: actions: expected one of {expected}, got {describe(name)}{hint}")
        if not each:
            raise ValueError(f"feedback: actions: expected at least one for item {numbers[r]}, got none")
        weights[r] = sum(actions[name].weight for name in each)
        ratings[r] = sum(actions[name].weight * actions[name].value for name in each) / weights[r]
    low, high = (pick(actions[name].value for name in actions) for pick in (min, max))
    return WeightedRatings(numbers, np.clip(ratings, low, high), np.clip(weights, 1.0 / MOST_WEIGHT, MOST_WEIGHT))
