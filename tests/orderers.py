"""A world of people who put what they are shown in order: for learners that take orders."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from heedful.jit.kernel import Ints, kernel
from heedful.spaces.comparison import ComparisonPool
from heedful.worlds.choices import Choosers, ChooserState, perceived_utilities


class Orderers(NamedTuple):
    """The same people, who put what they are shown in order instead: all places, the best first."""

    choosers: Choosers

    def init(self, rng: np.random.Generator) -> ChooserState:
        return self.choosers.init(rng)

    def over(self, state: ChooserState, t: int) -> bool:
        return self.choosers.over(state, t)

    def context(self, state: ChooserState, t: int, rng: np.random.Generator) -> ComparisonPool:
        return self.choosers.context(state, t, rng)

    def respond(self, state: ChooserState, x: ComparisonPool, shown: Ints, rng: np.random.Generator) -> Ints:
        return order(self.choosers, x.user, shown, rng)

    def regret(self, state: ChooserState, x: ComparisonPool, shown: Ints) -> float:
        return self.choosers.regret(state, x, shown)

    def advance(self, state: ChooserState, x: ComparisonPool, shown: Ints, feedback: Ints) -> ChooserState:
        return self.choosers.advance(state, x, shown, 0)


@kernel
def order(world: Choosers, user: int, shown: Ints, rng: np.random.Generator) -> Ints:
    """The places in `shown` (k,) as the user orders them this time, the best first: not k (k - 1) / 2 choices apart."""
    return np.argsort(-perceived_utilities(world, user, shown, rng))
