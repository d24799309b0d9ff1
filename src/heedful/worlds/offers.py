"""Variants of simulated environments in which users rate items: with some ratings before the first round, or with the
NDCG of a ranked list in place of regret.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from heedful.core.fold import W, World
from heedful.core.validation import check_count
from heedful.jit.kernel import DISCOUNTS, Ints, kernel
from heedful.spaces.slate import SlateContext, SlateRatings
from heedful.worlds.ratings import LowRank, LowRankState, Replay, ReplayState

Array = npt.NDArray[np.float64]


class RatingWorld(World[SlateContext, Ints, SlateRatings, W], Protocol[W]):
    """A simulated environment whose users rate the items that they are shown, and which knows the true value of every
    item to every user.
    """

    def value(self, user: int, item: int, /) -> float:
        """Return the true value of the item to the user (indices), in units of ratings."""


class WarmStart(NamedTuple, Generic[W]):
    """A simulated rating environment that begins with W given ratings, so that every learner starts with the same ones.

    - `world`: the environment that gives the ratings, and goes on after them.
    - `users`, `items` (W,): in round t < W the user with index users[t] comes, and only the item items[t] can be shown.

    The items of the first W rounds count as consumed; the regret of these rounds means nothing. Made by `warm_start`.
    """

    world: RatingWorld[W]
    users: Ints
    items: Ints

    def init(self, rng: np.random.Generator) -> W:
        return self.world.init(rng)

    def over(self, state: W, t: int) -> bool:
        return t >= self.users.size and bool(self.world.over(state, t))

    def context(self, state: W, t: int, rng: np.random.Generator) -> SlateContext:
        if t < self.users.size:
            return SlateContext(int(self.users[t]), self.items[t : t + 1])
        return self.world.context(state, t, rng)

    def respond(self, state: W, x: SlateContext, shown: Ints, rng: np.random.Generator) -> SlateRatings:
        return self.world.respond(state, x, shown, rng)

    def regret(self, state: W, x: SlateContext, shown: Ints) -> float:
        return self.world.regret(state, x, shown)

    def advance(self, state: W, x: SlateContext, shown: Ints, feedback: SlateRatings) -> W:
        return self.world.advance(state, x, shown, feedback)

    def value(self, user: int, item: int) -> float:
        return self.world.value(user, item)


def warm_start(world: LowRank | Replay, count: int, seed: int) -> WarmStart[LowRankState] | WarmStart[ReplayState]:
    """Return a simulated environment like `world` that begins with `count` random ratings, drawn from `seed`, so that
    every learner starts with the same ones. Each is one round in which only one item can be shown.

    From a `Replay` they are different known ratings; in a `LowRank` environment, ratings of random users and items.
    Raise ValueError if a replay has too few.
    """
    check_count("seed", seed, least=0, most=2**128)
    rng = np.random.default_rng([seed, 1])
    if isinstance(world, LowRank):
        check_count("warm", count)
        n, m = world.Y.shape
        return WarmStart(world, rng.integers(n, size=count), rng.integers(m, size=count))
    check_count("warm", count, most=max(world.items.size - 1, 1))
    chosen = rng.permutation(world.items.size)[:count]
    users = np.searchsorted(world.starts, chosen, side="right") - 1
    return WarmStart(world, users.astype(np.int64), world.items[chosen])


class RankedList(NamedTuple, Generic[W]):
    """A simulated rating environment for learners that show a ranked list; it measures the list's NDCG in place of
    regret.

    - `world`: the environment that gives the ratings.
    - `consumed`: the user consumes and rates so many items from the top of the list.
    - `depth`: the NDCG is that of so many items from the top.
    - `floor`: the value of an item, in units of ratings, that counts as no gain.

    The method `regret` returns the NDCG (`ndcg`).
    """

    world: RatingWorld[W]
    consumed: int
    depth: int
    floor: float

    def init(self, rng: np.random.Generator) -> W:
        return self.world.init(rng)

    def over(self, state: W, t: int) -> bool:
        return bool(self.world.over(state, t))

    def context(self, state: W, t: int, rng: np.random.Generator) -> SlateContext:
        return self.world.context(state, t, rng)

    def respond(self, state: W, x: SlateContext, shown: Ints, rng: np.random.Generator) -> SlateRatings:
        return self.world.respond(state, x, shown[: self.consumed], rng)

    def regret(self, state: W, x: SlateContext, shown: Ints) -> float:
        return ndcg(self.world, x, shown, self.depth, self.floor)

    def advance(self, state: W, x: SlateContext, shown: Ints, feedback: SlateRatings) -> W:
        return self.world.advance(state, x, shown[: self.consumed], feedback)


@kernel
def ndcg(world: RatingWorld[W], x: SlateContext, ranking: Ints, depth: int, floor: float) -> float:
    """Return the NDCG of a `ranking` of items available in `x`: the sum over the first `depth` of (true value to the
    user in `world` - `floor`) / log2(position + 1), divided by that sum for the best list; 1 where no available item
    has a value above `floor`."""
    available, ranked = np.empty(x.items.size), np.empty(ranking.size)
    for j in range(x.items.size):
        available[j] = world.value(x.user, x.items[j]) - floor
    best = discounted_sum(np.sort(available)[::-1], min(depth, available.size))
    if best <= 0.0:
        return 1.0
    for r in range(ranking.size):
        ranked[r] = world.value(x.user, ranking[r]) - floor
    return discounted_sum(ranked, min(depth, ranked.size)) / best


@kernel
def discounted_sum(gains: Array, n: int) -> float:
    """Return the DCG of a list: the sum of the first `n` of `gains` (m,), each divided by log2(position + 1)."""
    s = 0.0
    for r in range(n):
        s += gains[r] * DISCOUNTS[r]
    return s
