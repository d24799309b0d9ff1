"""Simulated environments in which users rate items, with some ratings before the first round."""

from __future__ import annotations

from typing import Generic, NamedTuple

import numpy as np

from heedful.core.fold import W, World
from heedful.core.validation import check_count
from heedful.jit.kernel import Ints
from heedful.spaces.slate import SlateContext, SlateRatings
from heedful.worlds.ratings import LowRank, LowRankState, Replay, ReplayState


class WarmStart(NamedTuple, Generic[W]):
    """A simulated rating environment that begins with W given ratings, so that every learner starts with the same ones.

    - `world`: the environment that gives the ratings, and goes on after them.
    - `users`, `items` (W,): in round t < W the user with index users[t] comes, and only the item items[t] can be shown.

    The items of the first W rounds count as consumed; the regret of these rounds means nothing. Made by `warm_start`.
    """

    world: World[SlateContext, Ints, SlateRatings, W]
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
