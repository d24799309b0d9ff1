"""NDCG of rating learners, [A18] Figure 3: a simulated environment in which a ranking is shown and its first item
rated, and a wrapper for learners that ranks by predicted rating rather than by the scores with which they choose.

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import DISCOUNTS, Ints, kernel, top
from heedful.spaces.slate import SlateContext, SlateRatings
from heedful.worlds.ratings import Replay, ReplayState, rating_of

Array = npt.NDArray[np.float64]

DEPTH = 5


class RankByPrediction(NamedTuple):
    """A learner that proposes six items: first the one that another learner chooses, then the five with the highest
    predicted ratings, best first. Only the rating of the first is learned.
    """

    learner: Any
    """the learner, with a method `ratings(state, x)` that predicts the ratings of the available items"""

    def init(self, rng: np.random.Generator) -> Any:
        return self.learner.init(rng)

    def propose(self, state: Any, x: SlateContext, rng: np.random.Generator) -> Ints:
        ratings = self.learner.ratings(state, x)
        best = x.items[top(ratings, min(DEPTH, ratings.size))]
        return np.concatenate((self.learner.propose(state, x, rng), best))

    def update(self, state: Any, x: SlateContext, y: Ints, feedback: SlateRatings) -> Any:
        return self.learner.update(state, x, y[:1], feedback)


class NdcgWorld(NamedTuple):
    """A variant of a simulated environment in which only the first item shown is rated and consumed, and regret is 1 -
    NDCG@5 of the ranking shown.

    Regret is 0 if no available item is rated above `low`.
    """

    world: Replay
    """the environment whose ratings are used"""
    low: float
    """the rating whose gain is 0"""
    begin: int
    """how many items at the top of what is shown do not belong to the ranking that is judged"""

    def init(self, rng: np.random.Generator) -> ReplayState:
        return self.world.init(rng)

    def over(self, state: ReplayState, t: int) -> bool:
        return self.world.over(state, t)

    def context(self, state: ReplayState, t: int, rng: np.random.Generator) -> SlateContext:
        return self.world.context(state, t, rng)

    def respond(self, state: ReplayState, x: SlateContext, shown: Ints, rng: np.random.Generator) -> SlateRatings:
        return self.world.respond(state, x, shown[:1], rng)

    def regret(self, state: ReplayState, x: SlateContext, shown: Ints) -> float:
        return 1.0 - ndcg(self.world, x, shown[self.begin :], DEPTH, self.low)

    def advance(self, state: ReplayState, x: SlateContext, shown: Ints, feedback: SlateRatings) -> ReplayState:
        return self.world.advance(state, x, shown[:1], feedback)


@kernel
def ndcg(world: Replay, x: SlateContext, ranking: Ints, depth: int, floor: float) -> float:
    """Return the NDCG of a `ranking` of items available in `x`: the sum over the first `depth` of (rating by the
    user in `world` - `floor`) / log2(position + 1), divided by that sum for the best list; 1 where no available item
    is rated above `floor`."""
    available, ranked = np.empty(x.items.size), np.empty(ranking.size)
    for j in range(x.items.size):
        available[j] = rating_of(world, x.user, x.items[j]) - floor
    best = discounted_sum(np.sort(available)[::-1], min(depth, available.size))
    if best <= 0.0:
        return 1.0
    for r in range(ranking.size):
        ranked[r] = rating_of(world, x.user, ranking[r]) - floor
    return discounted_sum(ranked, min(depth, ranked.size)) / best


@kernel
def discounted_sum(gains: Array, n: int) -> float:
    """Return the DCG of a list: the sum of the first `n` of `gains` (m,), each divided by log2(position + 1)."""
    s = 0.0
    for r in range(n):
        s += gains[r] * DISCOUNTS[r]
    return s
