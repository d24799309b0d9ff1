"""NDCG of people who rate: a world where a round shows a ranking, of which the first is rated, and learners that rank
by what they expect, not by what they show by. [A18] Figure 3."""

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
    """A learner of one item that shows it and, behind it, the DEPTH items of the highest `ratings(state, x)`."""

    learner: Any

    def init(self, rng: np.random.Generator) -> Any:
        return self.learner.init(rng)

    def propose(self, state: Any, x: SlateContext, rng: np.random.Generator) -> Ints:
        ratings = self.learner.ratings(state, x)
        best = x.items[top(ratings, min(DEPTH, ratings.size))]
        return np.concatenate((self.learner.propose(state, x, rng), best))

    def update(self, state: Any, x: SlateContext, y: Ints, feedback: SlateRatings) -> Any:
        return self.learner.update(state, x, y[:1], feedback)


class NdcgWorld(NamedTuple):
    """People who rate the first of what is shown and nothing else; regret: 1 - NDCG@DEPTH of what is shown from place
    `begin` on, among all on offer, of the ratings less `low`; 0 where all of these are 0."""

    world: Replay
    low: float
    begin: int

    def init(self, rng: np.random.Generator) -> ReplayState:
        return self.world.init(rng)

    def over(self, state: ReplayState, t: int) -> bool:
        return self.world.over(state, t)

    def context(self, state: ReplayState, t: int, rng: np.random.Generator) -> SlateContext:
        return self.world.context(state, t, rng)

    def respond(self, state: ReplayState, x: SlateContext, shown: Ints, rng: np.random.Generator) -> SlateRatings:
        return self.world.respond(state, x, shown[:1], rng)

    def regret(self, state: ReplayState, x: SlateContext, shown: Ints) -> float:
        gains = np.empty(x.items.size)
        p = self.world.starts[x.user]
        for j in range(x.items.size):
            while self.world.items[p] < x.items[j]:
                p += 1
            gains[j] = self.world.values[p] - self.low
        best = 0.0
        for i, j in enumerate(top(gains, min(DEPTH, gains.size))):
            best += gains[j] * DISCOUNTS[i]
        if best <= 0.0:
            return 0.0
        return 1.0 - dcg(self.world, x.user, shown[self.begin :], self.low) / best

    def advance(self, state: ReplayState, x: SlateContext, shown: Ints, feedback: SlateRatings) -> ReplayState:
        return self.world.advance(state, x, shown[:1], feedback)


@kernel
def dcg(world: Replay, user: int, ranking: Ints, low: float) -> float:
    """DCG@DEPTH of items that the user rated: the sum of (rating - low) / log2(place + 1)."""
    sum = 0.0
    for i in range(min(DEPTH, ranking.size)):
        sum += (rating_of(world, user, ranking[i]) - low) * DISCOUNTS[i]
    return sum
