"""Worlds of ratings, met otherwise: with ratings that are told before the first round, or judged by a whole list."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from heedful.core.validation import wanted_count
from heedful.jit.kernel import DISCOUNTS, Ints, kernel
from heedful.spaces.slate import SlateContext, SlateRatings
from heedful.worlds.ratings import LowRank, Replay


class WarmStart(NamedTuple):
    """A world of ratings whose first rounds tell what is known beforehand: only items[t] (W,) is on offer to users[t].

    What is told counts as consumed. The regret of these rounds means nothing. Made by `warm_start`.
    """

    world: Any
    users: Ints
    items: Ints

    def init(self, rng: np.random.Generator) -> Any:
        return self.world.init(rng)

    def over(self, state: Any, t: int) -> bool:
        return t >= self.users.size and bool(self.world.over(state, t))

    def context(self, state: Any, t: int, rng: np.random.Generator) -> SlateContext:
        if t < self.users.size:
            return SlateContext(int(self.users[t]), self.items[t : t + 1])
        return self.world.context(state, t, rng)  # type: ignore[no-any-return]

    def respond(self, state: Any, x: SlateContext, shown: Ints, rng: np.random.Generator) -> SlateRatings:
        return self.world.respond(state, x, shown, rng)  # type: ignore[no-any-return]

    def regret(self, state: Any, x: SlateContext, shown: Ints) -> float:
        return self.world.regret(state, x, shown)  # type: ignore[no-any-return]

    def advance(self, state: Any, x: SlateContext, shown: Ints, feedback: SlateRatings) -> Any:
        return self.world.advance(state, x, shown, feedback)

    def value(self, user: int, item: int) -> float:
        """What the item is worth to the user."""
        return self.world.value(user, item)  # type: ignore[no-any-return]


def warm_start(world: LowRank | Replay, count: int, seed: int) -> WarmStart:
    """A world in which `count` ratings, drawn at random by the seed, are told before the first round.

    Of a replay each at most once, of others each of a random user and item. ValueError where there are fewer.
    """
    wanted_count("seed", seed, least=0, most=2**128)
    rng = np.random.default_rng([seed, 1])
    if isinstance(world, LowRank):
        wanted_count("warm", count)
        n, m = world.Y.shape
        return WarmStart(world, rng.integers(n, size=count), rng.integers(m, size=count))
    wanted_count("warm", count, most=max(world.items.size - 1, 1))
    chosen = rng.permutation(world.items.size)[:count]
    users = np.searchsorted(world.starts, chosen, side="right") - 1
    return WarmStart(world, users.astype(np.int64), world.items[chosen])


class RankedList(NamedTuple):
    """A world of ratings for learners that show a list, of which the first `taken` are consumed and rated.

    What stands for the regret of a round is NDCG at `at`: the sum over the first `at` of the list of what each is worth
    to the user, less `floor`, over log2(position + 1), divided by what the best list of those on offer would have; 1
    where nothing on offer is worth more than `floor`.
    """

    world: Any
    taken: int
    at: int
    floor: float

    def init(self, rng: np.random.Generator) -> Any:
        return self.world.init(rng)

    def over(self, state: Any, t: int) -> bool:
        return bool(self.world.over(state, t))

    def context(self, state: Any, t: int, rng: np.random.Generator) -> SlateContext:
        return self.world.context(state, t, rng)  # type: ignore[no-any-return]

    def respond(self, state: Any, x: SlateContext, shown: Ints, rng: np.random.Generator) -> SlateRatings:
        return self.world.respond(state, x, shown[: self.taken], rng)  # type: ignore[no-any-return]

    def regret(self, state: Any, x: SlateContext, shown: Ints) -> float:
        n = x.items.size
        worth = np.empty(n)
        for j in range(n):
            worth[j] = self.world.value(x.user, x.items[j]) - self.floor
        best = discounted_sum(np.sort(worth)[::-1], min(self.at, n))
        if best <= 0.0:
            return 1.0
        here = np.empty(shown.size)
        for r in range(shown.size):
            here[r] = self.world.value(x.user, shown[r]) - self.floor
        return discounted_sum(here, min(self.at, shown.size)) / best

    def advance(self, state: Any, x: SlateContext, shown: Ints, feedback: SlateRatings) -> Any:
        return self.world.advance(state, x, shown[: self.taken], feedback)


@kernel
def discounted_sum(gains: Any, n: int) -> float:
    """The first n gains (m,), each over log2(position + 1)."""
    s = 0.0
    for r in range(n):
        s += gains[r] * DISCOUNTS[r]
    return s
