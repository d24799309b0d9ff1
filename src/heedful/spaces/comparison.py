"""The space of comparisons: a learner shows two or more items, and the person answers which is best, or in which order
they are.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, check_flag, describe, finite_table, is_number, numbers
from heedful.jit.kernel import Ints

Array = npt.NDArray[np.float64]

MOST = 10**7
"""the bound of user indices, which are from 0 to MOST - 1"""

MOST_ITEMS = 10_000
"""The greatest number of items: a posterior over n items has a covariance of n x n numbers."""

FIRST, SECOND, EQUAL, UNSURE = 0, 1, -1, -2
"""answers to a question about two items: the position of the better one; both equally good; cannot judge"""

NONE: Array = np.empty((0, 0))
"""the `features` of a `Choice` among items without features"""

WORDS = {"first": FIRST, "second": SECOND, "equal": EQUAL, "unsure": UNSURE}
"""answers to a question about two items: the word that a caller may give for each"""

Answer: TypeAlias = int | Ints
"""The answer to a question about k items: the position of the best item, 0 to k - 1; EQUAL or UNSURE; or an array of 1
to k positions, best first."""


class ComparisonPool(NamedTuple):
    """The context of a comparison: a user, and p candidate questions of k items each (k = 2 for pairs)."""

    user: int
    """the index of the user"""
    pairs: Ints
    """item indices, p x 2 for p pairs (p x k for p sets of k items); the first of a row is shown on the left"""


class Choice(NamedTuple):
    """The space of comparisons: a learner picks one question, a row of a `ComparisonPool`, and the k items in it are
    shown.

    A proposal is the indices (k,) of the items shown. The answer is one of: the position of the best item, 0 to k - 1;
    EQUAL (-1), equally good; UNSURE (-2), cannot judge; or an array of positions, best first, where positions left out
    are worse than these, in no order. Callers may also give words: "equal", "unsure" and, for a pair, "first" and
    "second".
    """

    n_items: int
    equal: bool = True
    """whether "equally good" is a possible answer"""
    features: Array = NONE
    """features of the items (n_items x d); (0, 0) where they have none"""

    def check(self) -> None:
        """Raise ValueError, naming the field, if `n_items` is above 10,000, `equal` is not a bool, or `features` is not
        finite numbers with a row for each item."""
        check_count("n_items", self.n_items, least=0, most=MOST_ITEMS)
        check_flag("equal", self.equal)
        X = numbers("features", self.features, "2-dimensional numbers")
        if X.size:
            finite_table("features", X)
            if len(X) != self.n_items:
                raise ValueError(f"features: expected {self.n_items} rows, one for each item, got {len(X)}")

    def check_context(self, x: object, n_features: int = 0) -> ComparisonPool:
        """Return the context `x` = (user, pairs) as a ComparisonPool; `n_features` is ignored.

        `x` has the index of the user and the p candidate questions (p x k), each the indices of k items. Raise
        ValueError, naming the part, unless the user is an index below MOST (10^7) and there is at least one question,
        each with two or more different items from 0 to n_items - 1.
        """
        if not isinstance(x, tuple | list) or len(x) != 2:
            raise ValueError(f"x: expected (user, pairs), got {describe(x)}")
        check_count("x: user", x[0], least=0, most=MOST - 1)
        pairs = numbers("x: pairs", x[1], "pairs of the numbers of items")
        if pairs.ndim != 2 or pairs.shape[1] < 2 or not len(pairs) or pairs.dtype.kind not in "iu":
            expected = "at least one pair of the numbers of items, or set of more"
            raise ValueError(f"x: pairs: expected {expected}, got {describe(x[1])}")
        wrong = pairs[(pairs < 0) | (pairs >= self.n_items)]
        if wrong.size:
            raise ValueError(f"x: pairs: expected items from 0 to {self.n_items - 1}, got {wrong[0]}")
        ordered = np.sort(pairs, axis=1)
        same = ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]]
        if same.size:
            raise ValueError(f"x: pairs: expected different items in each, got {same[0]} twice")
        return ComparisonPool(int(x[0]), np.ascontiguousarray(pairs.astype(np.int64)))

    def check_object(self, name: str, x: ComparisonPool, y: object) -> Answer:
        """Return the caller's answer `y` to a question about k items of the pool `x` in its standard form.

        That is an int: the position of the best item, 0 to k - 1, EQUAL (-1) or UNSURE (-2, cannot judge); or an int64
        array of 1 to k different positions, best first. `y` may be one of these, a list of positions, or a word:
        "equal", "unsure" and, for a pair, "first" or "second". Raise ValueError, beginning with `name`, for anything
        else, and for "equal" if the space does not allow it.
        """
        k = x.pairs.shape[1]
        allowed = {word: place for word, place in WORDS.items() if place < 0 and (self.equal or place != EQUAL)}
        if k == 2:
            allowed = {word: place for word, place in WORDS.items() if self.equal or place != EQUAL}
        if isinstance(y, str) and y in allowed:
            return allowed[y]
        if is_number(y, int, np.integer) and (0 <= y < k or y in allowed.values()):
            return int(y)
        order = _order(y, k)
        if order is not None:
            return order
        expected = ", ".join(f"{place} ({word})" for word, place in allowed.items())
        places = "" if k == 2 else f"the place of the best, 0 to {k - 1}, "
        raise ValueError(f"{name}: expected {places}{expected}, or places from the best on, got {describe(y)}")

    def another_context(self, x: ComparisonPool) -> ComparisonPool:
        """The next user, with only the last candidate question."""
        return ComparisonPool(x.user + 1, x.pairs[-1:])

    def invalid_contexts(self, x: ComparisonPool) -> list[object]:
        user, pairs = x
        last = pairs[-1:]
        wrong: list[object] = [pairs[:0], pairs[0], pairs[:, :1], pairs + 0.5, pairs[None], "text", None, [[0], [0, 1]]]
        wrong += [
            np.vstack([pairs, w]) for w in (last * 0, last * 0 - 1, last * 0 + np.arange(last.size) * self.n_items)
        ]
        strange = [-1, MOST, 0.5, np.nan, True, "text", None, [user]]
        spoiled: list[object] = [(user, w) for w in wrong] + [(w, pairs) for w in strange]
        return [*spoiled, user, pairs, (user, pairs, pairs), "text", None]

    def invalid_objects(self, x: ComparisonPool, y: Ints) -> list[object]:
        k = y.size
        wrong: list[object] = [k, -3, 0.5, np.nan, True, "left", "", None, 1j, 10**400, np.array(0)]
        wrong += [[k], [-1], [0, 0], [0.0], [[0, 1]], np.arange(k + 1), np.empty(0, np.int64), [True, False]]
        return wrong if self.equal else [*wrong, EQUAL, "equal"]


def _order(y: object, k: int) -> Ints | None:
    """Return `y` as an int64 array of 1 to k different positions from 0 to k - 1, or None if it is not a list, tuple or
    array of such positions."""
    if isinstance(y, np.ndarray) and y.ndim == 0:  # it cannot be iterated over
        return None
    if not isinstance(y, list | tuple | np.ndarray) or any(isinstance(place, bool | np.bool_) for place in y):
        return None
    try:
        order = np.asarray(y)
    except (ValueError, TypeError):
        return None
    if order.ndim != 1 or order.dtype.kind not in "iu" or not 0 < order.size <= k or ((order < 0) | (order >= k)).any():
        return None
    return order.astype(np.int64, copy=True) if np.unique(order).size == order.size else None


def order_of(feedback: Answer, k: int) -> Answer:
    """Return the answer `feedback` to a question about `k` items as an order: a position of the best item becomes an
    array of this one position. Arrays of positions, EQUAL (equally good) and UNSURE (cannot judge) are returned
    unchanged.
    """
    if isinstance(feedback, np.ndarray):
        return feedback
    return feedback if feedback in (EQUAL, UNSURE) else np.array([feedback], np.int64)


def check_choice(space: object) -> None:
    """Raise ValueError unless `space` is a `Choice`, the space of comparisons, with valid parameters."""
    if not isinstance(space, Choice):
        raise ValueError(f"space: expected a choice among items, such as Choice(10), got {describe(space)}")
    space.check()
