"""Simple baselines for ratings: a random item; the mean of the user's own ratings; the mean of all ratings of the item;
and the user's own mean if they rated the item, else the item's. Also the counts and sums of ratings that these share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_between
from heedful.jit.kernel import Floats, Ints, kernel, noinline, primitive, top
from heedful.learners.ratings.interaction_matrix import (
    InteractionMatrix,
    add_rating,
    empty_matrix,
    grow,
    places_of,
    remove_item,
)
from heedful.spaces.slate import Slate, SlateContext, SlateRatings, WeightedRatings, check_slate

Array = npt.NDArray[np.float64]


@kernel
def best_items(scores: Floats, items: Ints, size: int) -> Ints:
    """Return the `size` elements of `items` (n,) with the highest `scores` (n,), best first; all n if there are fewer.
    Of equal scores the first in `items` comes first."""
    return items[top(scores, min(size, items.size))]


def _uniform_loop(seed: int, a: int, b: int) -> float:
    z = np.uint64(seed) + np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(b) * np.uint64(0xD1B54A32D192ED03)
    for _ in range(2):
        z += np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (float(z >> np.uint64(11)) + 0.5) / 9007199254740992.0


@primitive(_uniform_loop)
def uniform(seed: int, a: int, b: int) -> float:
    """Return a pseudo-random number between 0 and 1 that depends only on the integers `seed`, `a` and `b`, by
    SplitMix64."""
    most = 2**64 - 1
    z = (int(seed) + int(a) * 0x9E3779B97F4A7C15 + int(b) * 0xD1B54A32D192ED03) & most
    for _ in range(2):
        z = (z + 0x9E3779B97F4A7C15) & most
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & most
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & most
        z ^= z >> 31
    return (float(z >> 11) + 0.5) / 9007199254740992.0


def _row_scores_loop(rows: Array, items: Ints, w: Array) -> Array:
    out = np.empty(items.size)
    for j in range(items.size):
        row = rows[items[j]]
        s = row[0] * w[0]
        for a in range(1, w.size):
            s += row[a] * w[a]
        out[j] = s
    return out


@noinline
@primitive(_row_scores_loop)
def row_scores(rows: Array, items: Ints, w: Array) -> Array:
    """Return the inner product with `w` (k,) of each of the rows of `rows` (m x k) whose indices are `items` (n,), as
    (n,).

    Products are summed from the first factor on, so that the result does not depend on the machine.
    """
    chosen = rows[items]
    s = chosen[:, 0] * w[0]
    for a in range(1, w.size):
        s = s + chosen[:, a] * w[a]
    return s  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------- counts and sums


@declare(grows=True)
class Tally(NamedTuple):
    """The number and the sum of all ratings so far, each times its weight: of each pair of user and item, of each of M
    items, and of all."""

    pairs: InteractionMatrix
    """number and sum of the ratings of each pair of user and item"""
    counts: Array
    """the number of ratings of each item (M,)"""
    totals: Array
    """the sum of the ratings of each item (M,)"""
    n: float
    """the number of all ratings"""
    sum: float
    """the sum of all ratings"""
    t: int
    """number of rounds learned from"""


@noinline
@kernel
def add_to_tally(tally: Tally, user: int, item: int, rating: float, weight: float) -> Tally:
    """Return the counts and sums of `tally` with one more `rating` of `item` by `user` (indices), which counts `weight`
    times. It may overwrite the arrays of `tally`.
    """
    count, total = grow(tally.counts, item + 1, 0.0), grow(tally.totals, item + 1, 0.0)
    count[item] += weight
    total[item] += weight * rating
    pairs = add_rating(tally.pairs, user, item, rating, weight)
    return Tally(pairs, count, total, tally.n + weight, tally.sum + weight * rating, tally.t)


def tally_without_item(tally: Tally, item: int) -> Tally:
    """Return the tally without the ratings of the item with index `item`. It may overwrite the arrays of `tally`."""
    if item < tally.counts.size:
        count, total = float(tally.counts[item]), float(tally.totals[item])
        tally.counts[item] = tally.totals[item] = 0.0
        n = tally.n - count
        empty = n <= 1e-9 * count  # sums of weights such as .1 have rounding errors
        tally = tally._replace(n=0.0 if empty else n, sum=0.0 if empty else tally.sum - total)
    remove_item(tally.pairs, item)
    return tally


@kernel
def overall(tally: Tally) -> float:
    """Return the mean of all ratings in the tally; 0 if there are none."""
    return tally.sum / tally.n if tally.n > 0.0 else 0.0


def _item_means_loop(count: Array, total: Array, items: Ints, mean: float, prior: float) -> Array:
    out = np.empty(items.size)
    for j in range(items.size):
        i = items[j]
        c = prior + (count[i] if i < count.size else 0.0)
        s = prior * mean + (total[i] if i < count.size else 0.0)
        out[j] = s / c if c > 0.0 else mean
    return out


@noinline
@primitive(_item_means_loop)
def item_means(count: Array, total: Array, items: Ints, mean: float, prior: float) -> Array:
    """Return the mean rating of each of `items` (n,), item indices, with `prior` ratings of the value `mean` added to
    each: (n,).

    `count` and `total` (m,) have the number and the sum of the ratings of each of m items. The result is `mean` for an
    item without ratings, also with a `prior` of 0.
    """
    rated = items < count.size
    index = np.where(rated, items, 0)
    c = prior + np.where(rated, count[index], 0.0)
    s = prior * mean + np.where(rated, total[index], 0.0)
    return np.where(c > 0.0, s / np.where(c > 0.0, c, 1.0), mean)


@noinline
@kernel
def put_own_means(scores: Array, pairs: InteractionMatrix, user: int, items: Ints) -> None:
    """Overwrite the scores of the items that the user with index `user` has rated, in place: each becomes the mean of
    the user's own ratings of the item in `pairs`.

    `scores` (n,) are those of `items` (n,), ascending item indices. Other scores stay as they are.
    """
    for p in places_of(pairs.by_user, user):
        if pairs.count[p] > 0.0:
            j = np.searchsorted(items, pairs.item[p])
            if j < items.size and items[j] == pairs.item[p]:
                scores[j] = pairs.total[p] / pairs.count[p]


# ---------------------------------------------------------------------------- the learners


class RoundCount(NamedTuple):
    """The state of `RandomItem`."""

    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=2)
class RandomItem(NamedTuple):
    """Random item: ours, for comparison, each item on offer is equally likely. Interaction: rating."""

    space: Slate = Slate()

    def init(self, rng: np.random.Generator) -> RoundCount:
        check_slate(self.space)
        return RoundCount(0)

    def propose(self, state: RoundCount, x: SlateContext, rng: np.random.Generator) -> Ints:
        if self.space.size == 1:
            j = rng.integers(0, x.items.size)
            return x.items[j : j + 1].copy()
        return best_items(rng.random(x.items.size), x.items, self.space.size)

    def update(
        self, state: RoundCount, x: SlateContext, y: Ints, feedback: SlateRatings | WeightedRatings
    ) -> RoundCount:
        return RoundCount(state.t + 1)

    def without_item(self, state: RoundCount, item: int) -> RoundCount:
        return state


@declare(version=1, lesson_cost=2)
class UserGreedy(NamedTuple):
    """User greedy: ours, for comparison, each user's own ratings only. Interaction: rating.

    Shows the items, as many as `space` says, with the highest mean of the user's own ratings; items that they never
    rated count as the mean of all ratings.
    """

    space: Slate = Slate()

    def init(self, rng: np.random.Generator) -> Tally:
        check_slate(self.space)
        return empty_tally()

    def ratings(self, state: Tally, x: SlateContext) -> Array:
        out = np.full(x.items.size, overall(state))
        put_own_means(out, state.pairs, x.user, x.items)
        return out

    def propose(self, state: Tally, x: SlateContext, rng: np.random.Generator) -> Ints:
        return best_items(self.ratings(state, x), x.items, self.space.size)

    def update(self, state: Tally, x: SlateContext, y: Ints, feedback: SlateRatings | WeightedRatings) -> Tally:
        return update_tally(state, x, feedback)

    def without_item(self, state: Tally, item: int) -> Tally:
        return tally_without_item(state, item)


@declare(version=1, lesson_cost=2)
class ItemMean(NamedTuple):
    """Item mean: ours, for comparison, the items that people like most. Interaction: rating.

    Shows the items, as many as `space` says, with the highest mean rating of all users; each mean includes `prior`
    ratings of the overall mean.
    """

    space: Slate = Slate()
    prior: float = 1.0

    def init(self, rng: np.random.Generator) -> Tally:
        check_slate(self.space)
        check_between("prior", self.prior, 0.0, 1e50)
        return empty_tally()

    def ratings(self, state: Tally, x: SlateContext) -> Array:
        return item_means(state.counts, state.totals, x.items, overall(state), self.prior)

    def propose(self, state: Tally, x: SlateContext, rng: np.random.Generator) -> Ints:
        return best_items(self.ratings(state, x), x.items, self.space.size)

    def update(self, state: Tally, x: SlateContext, y: Ints, feedback: SlateRatings | WeightedRatings) -> Tally:
        return update_tally(state, x, feedback)

    def without_item(self, state: Tally, item: int) -> Tally:
        return tally_without_item(state, item)


@declare(version=1, lesson_cost=2)
class PairMean(NamedTuple):
    """Pair mean, else item mean: ours, for comparison, a user's own ratings come first. Interaction: rating.

    Shows the items, as many as `space` says, with the highest mean of the user's own ratings; items that they never
    rated count with the mean of all users' ratings of them, which includes `prior` ratings of the overall mean, as in
    `ItemMean`.
    """

    space: Slate = Slate()
    prior: float = 1.0

    def init(self, rng: np.random.Generator) -> Tally:
        check_slate(self.space)
        check_between("prior", self.prior, 0.0, 1e50)
        return empty_tally()

    def ratings(self, state: Tally, x: SlateContext) -> Array:
        out = item_means(state.counts, state.totals, x.items, overall(state), self.prior)
        put_own_means(out, state.pairs, x.user, x.items)
        return out

    def propose(self, state: Tally, x: SlateContext, rng: np.random.Generator) -> Ints:
        return best_items(self.ratings(state, x), x.items, self.space.size)

    def update(self, state: Tally, x: SlateContext, y: Ints, feedback: SlateRatings | WeightedRatings) -> Tally:
        return update_tally(state, x, feedback)

    def without_item(self, state: Tally, item: int) -> Tally:
        return tally_without_item(state, item)


@kernel
def update_tally(tally: Tally, x: SlateContext, feedback: SlateRatings | WeightedRatings) -> Tally:
    """Return the tally after a round: with the ratings `feedback` by the user of the context `x`. It may overwrite the
    arrays of `tally`."""
    for r in range(feedback.items.size):
        rating, weight = float(feedback.ratings[r]), float(feedback.weight(r))
        tally = add_to_tally(tally, x.user, int(feedback.items[r]), rating, weight)
    return Tally(tally.pairs, tally.counts, tally.totals, tally.n, tally.sum, tally.t + 1)


def empty_tally() -> Tally:
    """Return a tally without ratings."""
    return Tally(empty_matrix(64, 64), np.zeros(64), np.zeros(64), 0.0, 0.0, 0)
