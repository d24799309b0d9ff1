"""What can be shown where people choose: a pair of items, of a pool of pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import describe, finite_array, is_number, numbers, wanted_count
from heedful.kernel import Ints

Array = npt.NDArray[np.float64]

MOST = 10**7
"""Users are numbers below this."""

MOST_ITEMS = 10_000
"""What is believed of n items is a matrix of n x n."""

FIRST, SECOND, EQUAL, UNSURE = 0, 1, -1, -2
"""Answers to a pair: the place of what was chosen; equally good; cannot judge."""

NONE: Array = np.empty((0, 0))
"""The features of items that have none."""

WORDS = {"first": FIRST, "second": SECOND, "equal": EQUAL, "unsure": UNSURE}


class Pool(NamedTuple):
    """Who is there to be asked, and the pairs of items (p x 2) that may be shown to them, the left one first."""

    user: int
    pairs: Ints


class Choice(NamedTuple):
    """One pair of a pool, of items from 0 to n_items - 1; the answer is the place of what was chosen, 0 or 1, EQUAL
    (-1) where `equal`, or UNSURE (-2); in words "first", "second", "equal", "unsure"."""

    n_items: int
    equal: bool = True
    """whether "equally good" is an answer on offer"""
    features: Array = NONE
    """of the items (n_items x d), where they have some"""

    def check(self) -> None:
        """ValueError where there are too few items for a pair, or too many, or the features are not theirs."""
        wanted_count("n_items", self.n_items, least=2, most=MOST_ITEMS)
        if not isinstance(self.equal, bool):
            raise ValueError(f"equal: wanted True or False, got {describe(self.equal)}")
        X = numbers("features", self.features, "2-dimensional numbers")
        if X.size:
            finite_array("features", X, 2, X.shape[1] if X.ndim == 2 else 0)
            if len(X) != self.n_items:
                raise ValueError(f"features: wanted {self.n_items} rows, one for each item, got {len(X)}")

    def check_context(self, x: Any, n_features: int = 0) -> Pool:
        """x as a pool, (user, pairs). ValueError where it is none, or there is nothing to ask."""
        if not isinstance(x, tuple | list) or len(x) != 2:
            raise ValueError(f"x: wanted (user, pairs), got {describe(x)}")
        wanted_count("x: user", x[0], least=0, most=MOST - 1)
        pairs = numbers("x: pairs", x[1], "pairs of the numbers of items")
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or pairs.dtype.kind not in "iu":
            raise ValueError(f"x: pairs: wanted at least one pair of the numbers of items, got {describe(x[1])}")
        wrong = pairs[(pairs < 0) | (pairs >= self.n_items)]
        if wrong.size:
            raise ValueError(f"x: pairs: wanted items from 0 to {self.n_items - 1}, got {wrong[0]}")
        same = pairs[pairs[:, 0] == pairs[:, 1]]
        if len(same):
            raise ValueError(f"x: pairs: wanted two items in each, got {same[0, 0]} twice")
        return Pool(int(x[0]), np.ascontiguousarray(pairs.astype(np.int64)))

    def check_object(self, name: str, x: Pool, y: Any) -> int:
        """y as an answer. ValueError where it is none."""
        words = [word for word in WORDS if self.equal or word != "equal"]
        if isinstance(y, str) and y in words:
            return WORDS[y]
        if not is_number(y, int, np.integer) or y not in [WORDS[word] for word in words]:
            wanted = ", ".join(f"{WORDS[word]} ({word})" for word in words)
            raise ValueError(f"{name}: wanted {wanted}, got {describe(y)}")
        return int(y)

    def another_context(self, x: Pool) -> Pool:
        """Another pool than x, such as nobody answers: for another user, of the last pair alone."""
        return Pool(x.user + 1, x.pairs[-1:])

    def spoiled_contexts(self, x: Pool) -> list[Any]:
        """Contexts made of a pool x that no door may let in."""
        user, pairs = x
        last = pairs[-1:]
        wrong: list[Any] = [pairs[:0], pairs[0], pairs[:, :1], pairs + 0.5, pairs[None], "text", None, [[0], [0, 1]]]
        wrong += [np.vstack([pairs, w]) for w in (last * 0, last * 0 - 1, last * 0 + [[0, self.n_items]])]
        strange = [-1, MOST, 0.5, np.nan, True, "text", None, [user]]
        spoiled: list[Any] = [(user, w) for w in wrong] + [(w, pairs) for w in strange]
        return [*spoiled, user, pairs, (user, pairs, pairs), "text", None]

    def spoiled_objects(self, x: Pool, y: Ints) -> list[Any]:
        """Feedback made of a shown pair y that no door may let in."""
        wrong = [2, -3, 0.5, np.nan, True, "left", "", None, [0], np.array([0]), y, 1j, 10**400]
        return wrong if self.equal else [*wrong, EQUAL, "equal"]


def wanted_choice(space: Any) -> None:
    """ValueError unless space is a choice, with hyperparameters that make sense."""
    if not isinstance(space, Choice):
        raise ValueError(f"space: wanted a choice among items, such as Choice(10), got {describe(space)}")
    space.check()
