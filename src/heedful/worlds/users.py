"""Simulated people, [J15] section 6.1.

A user is a NamedTuple with one method for each kind of object: `rank` (an order for an order), `pick` (an item
for an item), `prefer` (the better of two items), `rearrange` (an assignment for an assignment). Utilities and
labels belong to the candidates at hand (m,).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import is_number, wanted_count
from heedful.kernel import DISCOUNTS, Ints, kernel, top

Array = npt.NDArray[np.float64]


@kernel
def utility(values: Array, order: Ints, k: int) -> float:
    """U of an order: sum_{i<=k} values[order_i] / log2(i+1)."""
    u = 0.0
    for i in range(min(k, order.size)):
        u += DISCOUNTS[i] * values[order[i]]
    return u


@kernel
def insert(chosen: Ints, size: int, k: int, values: Array, j: int) -> int:
    """Put j into chosen[:size], which falls in value, ties in order of arrival, and keeps k; the new size.

    chosen has k + 1 places.
    """
    i = size
    while i > 0 and values[chosen[i - 1]] < values[j]:
        chosen[i] = chosen[i - 1]
        i -= 1
    chosen[i] = j
    return min(size + 1, k)


@kernel
def promoted(chosen: Ints, size: int, shown: Ints, m: int) -> Ints:
    """chosen[:size] on top, then the rest of what was shown of m candidates, in the order shown."""
    picked = np.zeros(m, np.int64)
    out = np.empty(shown.size + 1, np.int64)  # one place more: what is picked is written and overwritten
    for i in range(size):
        out[i] = chosen[i]
        picked[chosen[i]] = 1
    at = size
    for i in range(shown.size):
        out[at] = shown[i]
        at += 1 - picked[shown[i]]
    return out[: shown.size]


@kernel
def nth(values: Array, wanted: float, n: int) -> int:
    """The index of the n-th (from 0) of the entries of `values` that equal `wanted`."""
    for j in range(values.size):
        if values[j] == wanted:
            if n == 0:
                return j
            n -= 1
    return -1


class StrictAlpha(NamedTuple):
    """Strictly alpha-informative feedback ([J15] Eq. 5): gain >= alpha r, and no more than needed. 0 < alpha <= 1."""

    alpha: float = 0.5

    def check(self) -> None:
        """ValueError where alpha makes no sense."""
        if not is_number(self.alpha, int, float, np.integer, np.floating) or not 0.0 < self.alpha <= 1.0:
            raise ValueError(f"alpha: wanted a number above 0, at most 1, got {self.alpha!r}")

    def rank(self, k: int, utilities: Array, labels: Array, best: float, shown: Ints, rng: np.random.Generator) -> Ints:
        """Of the first d shown, the k of greatest utility on top, for the least d >= min(k, n) that gains enough.

        At alpha = 1 rounding can refuse every d: then y*, all candidates by utility.
        """
        n = shown.size
        size = min(k, n)
        u = utility(utilities, shown, k)
        chosen = np.empty(size + 1, np.int64)
        kept = 0
        for d in range(n):
            kept = insert(chosen, kept, size, utilities, shown[d])
            if d >= size - 1 and utility(utilities, chosen[:size], k) - u >= self.alpha * (best - u):
                return promoted(chosen, size, shown, utilities.size)
        return top(utilities, utilities.size)

    def pick(self, utilities: Array, ratings: Array, y: int, rng: np.random.Generator) -> int:
        """y if it is already best; else the item of least utility that gains enough, ties to the lowest index."""
        best = utilities.max()
        found = y
        if utilities[y] < best:
            needed = self.alpha * (best - utilities[y])
            least = np.inf
            for j in range(utilities.size):
                if utilities[j] - utilities[y] >= needed and utilities[j] < least:
                    found, least = j, utilities[j]
        return found

    def prefer(self, utilities: Array, ratings: Array, a: int, b: int) -> float:
        """How much better a is than b."""
        return utilities[a] - utilities[b]  # type: ignore[no-any-return]

    def rearrange(self, utilities: Array, best: Ints, y: Ints) -> Ints:
        """y with slots set as in y* (best), from the first on, until it gains enough. utilities: people x slots."""
        top_utility, u = 0.0, 0.0
        for s in range(y.size):
            top_utility += utilities[best[s], s]
            u += utilities[y[s], s]
        out = y.copy()
        for s in range(y.size):
            gained = 0.0
            for i in range(y.size):
                gained += utilities[out[i], i]
            if gained - u >= self.alpha * (top_utility - u):
                break
            for i in range(y.size):
                if out[i] == best[s]:  # held another slot: the two swap
                    out[i] = out[s]
            out[s] = best[s]
        return out


class Noisy(NamedTuple):
    """Noisy feedback at a depth: the k best-labelled of the first `depth` shown go on top, ties in shown order."""

    depth: int = 10

    def check(self) -> None:
        """ValueError where the depth makes no sense."""
        wanted_count("depth", self.depth)

    def rank(self, k: int, utilities: Array, labels: Array, best: float, shown: Ints, rng: np.random.Generator) -> Ints:
        """Labels fall from the top; the rest stays in the order shown."""
        n = min(self.depth, shown.size)
        chosen = np.empty(min(k, n) + 1, np.int64)
        size = 0
        for i in range(n):
            size = insert(chosen, size, min(k, n), labels, shown[i])
        return promoted(chosen, size, shown, labels.size)


class Better(NamedTuple):
    """An item rated better: [J15] the smallest rating strictly above y's; `exact` ([C12]) exactly one above.

    Ties at random; y itself if there is none.
    """

    exact: bool = False

    def check(self) -> None:
        """ValueError where `exact` is neither yes nor no."""
        if not isinstance(self.exact, bool):
            raise ValueError(f"exact: wanted True or False, got {self.exact!r}")

    def pick(self, utilities: Array, ratings: Array, y: int, rng: np.random.Generator) -> int:
        wanted = np.inf
        for j in range(ratings.size):
            if ratings[y] < ratings[j] < wanted:
                wanted = ratings[j]
        if self.exact:
            wanted = ratings[y] + 1.0
        ties = np.sum(ratings == wanted)
        return nth(ratings, wanted, rng.integers(0, ties)) if ties > 0 else y

    def prefer(self, utilities: Array, ratings: Array, a: int, b: int) -> float:
        """How much better a is rated than b."""
        return ratings[a] - ratings[b]  # type: ignore[no-any-return]


class Best(NamedTuple):
    """The best rated item ([J15] section 6.1.2): y itself if none is rated higher, else a random one of the top."""

    def check(self) -> None:
        """There is nothing to check."""

    def pick(self, utilities: Array, ratings: Array, y: int, rng: np.random.Generator) -> int:
        wanted = ratings.max()
        if ratings[y] == wanted:
            return y
        return nth(ratings, wanted, rng.integers(0, np.sum(ratings == wanted)))

    def prefer(self, utilities: Array, ratings: Array, a: int, b: int) -> float:
        """How much better a is rated than b."""
        return ratings[a] - ratings[b]  # type: ignore[no-any-return]


def wanted_user(user: Any, answer: str, meaning: str) -> None:
    """ValueError unless user answers in this way (`rank`, `pick`, `rearrange`), with parameters that make sense."""
    if isinstance(user, type) or not hasattr(user, answer):
        raise ValueError(f"user: wanted one who {meaning}, got {user!r}")
    if hasattr(user, "check"):
        user.check()


def rounded_ratings(utilities: Array) -> Array:
    """Ratings where none is known: the utility rounded half up and clipped to 1..5 ([J15] section 6.1.2)."""
    rounded: Array = np.clip(np.array([math.floor(u + 0.5) for u in utilities.tolist()]), 1.0, 5.0)
    return rounded
