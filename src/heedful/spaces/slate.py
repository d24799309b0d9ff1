"""The space of slates: a learner shows a user a few of the available items, and the user rates them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_between, check_count, describe, indices, numbers
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

MOST = 10**7
"""The bound of user and item indices, which are from 0 to MOST - 1: learners keep arrays as long as the greatest
index."""
MOST_WEIGHT = 1e6
"""The greatest weight of a rating; the least is 1 / MOST_WEIGHT."""


class SlateContext(NamedTuple):
    """The context in which a user is shown some of c available items to rate."""

    user: int
    """the index of the user"""
    items: Ints
    """the indices of the available items, ascending (c,)"""


class SlateRatings(NamedTuple):
    """The ratings that a user gave to items of a slate.

    - `items` (r,): the indices of the r rated items.
    - `ratings` (r,): the rating of each.
    """

    items: Ints
    ratings: Array

    def weight(self, r: int) -> float:
        """Return how many ratings the one at index `r` of `ratings` counts for: always 1."""
        return 1.0


class WeightedRatings(NamedTuple):
    """The ratings that a user gave to items of a slate, each with a weight.

    - `items` (r,): the indices of the r rated items.
    - `ratings` (r,): the rating of each.
    - `weights` (r,): how many ratings each one counts for, above 0.

    The noise of a rating of weight w has a variance w times smaller. Ratings derived from implicit feedback (a view, a
    cart, a purchase) have such weights.
    """

    items: Ints
    ratings: Array
    weights: Array

    def weight(self, r: int) -> float:
        """Return how many ratings the one at index `r` of `ratings` counts for: its weight."""
        return self.weights[r]  # type: ignore[no-any-return]


class Slate(NamedTuple):
    """The space of slates: a learner shows a user a few of the available items (their indices, best first), and the
    user rates them.

    - `size`: how many items are shown at most.
    - `low`, `high`: the least and the greatest possible rating.
    """

    size: int = 1
    low: float = -1e50
    high: float = 1e50

    def check(self) -> None:
        """Raise ValueError unless size is a positive whole number and -1e50 <= low < high <= 1e50."""
        check_count("size", self.size)
        check_between("low", self.low, -1e50, 1e50)
        check_between("high", self.high, -1e50, 1e50)
        if not self.low < self.high:
            raise ValueError(f"high: expected more than low = {self.low:g}, got {self.high:g}")

    def check_context(self, x: object, n_features: int = 0) -> SlateContext:
        """Return the context `x` = (user, items) as a SlateContext with the items in ascending order; `n_features` is
        ignored.

        `x` has the index of the user and the indices of the available items. Raise ValueError, naming the part, unless
        the user is an index below MOST (10^7) and items are one or more different indices below MOST.
        """
        if not isinstance(x, tuple | list) or len(x) != 2:
            raise ValueError(f"x: expected (user, items), got {describe(x)}")
        check_count("x: user", x[0], least=0, most=MOST - 1)
        if numbers("x: items", x[1], "the numbers of the items on offer").size == 0:
            raise ValueError("x: items: expected at least one on offer, got none")
        return SlateContext(int(x[0]), np.sort(indices("x: items", x[1], MOST, "the numbers of the items on offer")))

    def check_object(self, name: str, x: SlateContext, y: object) -> SlateRatings | WeightedRatings:
        """Return the caller's feedback `y` = (items, ratings) or (items, ratings, weights) in the context `x` in its
        standard form.

        Each part has a number for each rated item; for one item they may be plain numbers. Raise ValueError, beginning
        with `name`, if an item is not in x.items or occurs twice, a rating is not from low to high, a weight is not
        from 1e-6 to 1e6, or the lengths differ.
        """
        if not isinstance(y, tuple | list) or len(y) not in (2, 3):
            raise ValueError(f"{name}: expected (items, ratings) or (items, ratings, weights), got {describe(y)}")
        items = indices(f"{name}: items", y[0], MOST, "the numbers of items that were shown")
        strange = np.setdiff1d(items, x.items)
        if strange.size:
            raise ValueError(f"{name}: items: expected some of those on offer, got {strange[0]}")
        ratings = np.atleast_1d(numbers(f"{name}: ratings", y[1], "numbers")).astype(np.float64)
        if ratings.shape != items.shape:
            raise ValueError(f"{name}: ratings: expected {items.size}, one for each item, got {describe(y[1])}")
        wrong = ratings[~((ratings >= self.low) & (ratings <= self.high))]
        if wrong.size:
            raise ValueError(f"{name}: ratings: expected numbers from {self.low:g} to {self.high:g}, got {wrong[0]:g}")
        if len(y) == 2:
            return SlateRatings(items, ratings)
        weights = np.atleast_1d(numbers(f"{name}: weights", y[2], "numbers")).astype(np.float64)
        if weights.shape != items.shape:
            raise ValueError(f"{name}: weights: expected {items.size}, one for each item, got {describe(y[2])}")
        wrong = weights[~((weights >= 1.0 / MOST_WEIGHT) & (weights <= MOST_WEIGHT))]
        if wrong.size:
            least = 1.0 / MOST_WEIGHT
            raise ValueError(f"{name}: weights: expected numbers from {least:g} to {MOST_WEIGHT:g}, got {wrong[0]:g}")
        return WeightedRatings(items, ratings, weights)

    def another_context(self, x: SlateContext) -> SlateContext:
        return SlateContext(x.user + 1, x.items[-1:])

    def invalid_contexts(self, x: SlateContext) -> list[object]:
        user, items = x
        numbers = [np.append(items, items[0]), np.append(items, -1), np.append(items, MOST), items[:0], items + 0.5]
        spoiled: list[object] = [(user, wrong) for wrong in [*numbers, items[None], "text", None, [0, "a"]]]
        strange = [-1, MOST, 0.5, np.nan, True, "text", None, [user]]
        return [*spoiled, *[(wrong, items) for wrong in strange], user, items, (user, items, items), "text", None]

    def invalid_objects(self, x: SlateContext, y: Ints) -> list[object]:
        ratings = np.full(y.size, min(max(0.0, self.low), self.high))
        wrong = [np.nan, np.inf, -np.inf, np.nextafter(self.high, np.inf), np.nextafter(self.low, -np.inf)]
        spoiled: list[object] = [(y, np.append(ratings[1:], number)) for number in wrong]
        other = [np.append(y, y[0]), y - MOST, y + x.items[-1] + 1, y[:0], y + 0.5, "text", None]
        spoiled += [(items, np.resize(ratings, np.size(items))) for items in other]
        spoiled += [(y, strange) for strange in (np.append(ratings, ratings[0]), ratings[:0], "text", None, [[1.0]])]
        strange_weights = [np.zeros(y.size), np.full(y.size, np.nan), np.full(y.size, np.inf), -np.ones(y.size), "text"]
        spoiled += [(y, ratings, weights) for weights in [*strange_weights, np.ones(y.size + 1), np.ones(0), None]]
        return [*spoiled, y, ratings, (y, ratings, ratings, ratings), "text", None]


def check_slate(space: object) -> None:
    """Raise ValueError unless `space` is a `Slate`, the space of items to rate, with valid parameters."""
    if not isinstance(space, Slate):
        raise ValueError(f"space: expected a slate, such as Slate(5), got {describe(space)}")
    space.check()
