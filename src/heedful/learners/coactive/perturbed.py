"""3PR, the perturbed preference perceptron for ranking: coactive learning from biased clicks, as published.

Raman, Joachims, Shivaswamy & Schnabel, *Stable Coactive Learning via Perturbation*, ICML 2013. `FairPairs` goes further
from the same swaps: logistic steps, and clicks on the upper of a pair count too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe, is_number, wanted_count
from heedful.jit.kernel import Ints
from heedful.learners.coactive.fair_pairs import FairPairs, PerturbedRanking
from heedful.spaces.protocol import RankingSpace
from heedful.spaces.ranking import difference, wanted_ranking

Array = npt.NDArray[np.float64]


class PerturbedState(NamedTuple):
    """w (N,), rounds learned."""

    w: Array
    t: int


class PerturbedPerceptron(NamedTuple):
    """3PR: Raman, Joachims, Shivaswamy & Schnabel, ICML 2013. Interaction: coactive.

    Shows its order with neighbours swapped: pairs from the first or from the second position on, by a coin, each
    swapped with probability `swap`. In ybar the two of a pair change places where the lower was clicked and the upper
    was not; w += phi(x, ybar) - phi(x, y), y the order as shown. Whoever clicks by relevance and position clicks the
    lower alone less often than it deserves, but of two equally relevant neighbours either stands below as often, at
    swap = 1/2: so they move w neither way on average, and the more relevant of two moves w its way.

    The order is perturbed down to position 2k, as that of `FairPairs`. The first k of the feedback are the clicked,
    perhaps fewer or none. A proposal with start = -1, also one that a caller changed so, takes the feedback for a
    correction: on top, and the rest as shown.
    """

    n_features: int
    space: RankingSpace
    swap: float = 0.5

    @property
    def version(self) -> int:
        """Of what it folds: a change of that raises it."""
        return 1

    @property
    def simulation_only(self) -> str:
        """Why it is there for simulations alone, and no loop takes it."""
        return "fair-pairs makes the same swaps and learns more from them"

    @property
    def partial(self) -> bool:
        """Whether what was clicked is an answer: it need not be a whole order."""
        return True

    def init(self, rng: np.random.Generator) -> PerturbedState:
        wanted_count("n_features", self.n_features)
        if not (is_number(self.swap, int, float, np.integer, np.floating) and 0.001 <= self.swap <= 0.5):
            raise ValueError(f"swap: wanted a number from 0.001 to 0.5, got {describe(self.swap)}")
        wanted_ranking(self.space, "whose neighbours can be swapped")
        return PerturbedState(np.zeros(self.n_features), 0)

    def pairs(self) -> FairPairs:
        """Who shows orders with the same swaps."""
        return FairPairs(self.n_features, self.space, 0.1, self.swap, 0.0)

    def propose(self, state: PerturbedState, x: Any, rng: np.random.Generator) -> PerturbedRanking:
        return self.pairs().propose(state, x, rng)  # type: ignore[arg-type]  # of a state it reads w alone

    def update(self, state: PerturbedState, x: Any, y: PerturbedRanking, feedback: Ints) -> PerturbedState:
        self.space.add_difference(state.w, x, self.correction(x, y, feedback), y.shown, 1.0)
        return PerturbedState(state.w, state.t + 1)

    def correction(self, x: Any, y: PerturbedRanking, feedback: Ints) -> Ints:
        """ybar: what was shown, the two of each pair changed whose lower alone was clicked."""
        clicked = np.zeros(x.shape[0], np.bool_)
        if y.start < 0:
            out = np.empty(feedback.size + y.shown.size, np.int64)
            out[: feedback.size] = feedback
            size = feedback.size
            for j in feedback:
                clicked[j] = True
            for j in y.shown:
                if not clicked[j]:
                    out[size] = j
                    size += 1
            return out[:size]
        for i in range(min(self.space.positions(), feedback.size)):
            clicked[feedback[i]] = True
        out = y.shown.copy()
        for p in range(y.swapped.size):
            i = y.start + 2 * p
            if clicked[out[i + 1]] and not clicked[out[i]]:
                out[i], out[i + 1] = out[i + 1], out[i]
        return out

    def direction(self, state: PerturbedState, x: Any, y: PerturbedRanking, feedback: Ints) -> Array:
        """D = phi(x, ybar) - phi(x, y), N."""
        return difference(self.space, self.n_features, x, self.correction(x, y, feedback), y.shown)

    def step(self, state: PerturbedState, D: Array) -> PerturbedState:
        """The state after a lesson of direction D (N,); owns `state`, as update does."""
        state.w[:] += D
        return PerturbedState(state.w, state.t + 1)

    def weights(self, state: PerturbedState) -> Array:
        return state.w

    def plain(self, shown: Ints) -> PerturbedRanking:
        """A proposal of which nothing was left to chance: feedback on it is an explicit correction."""
        return self.pairs().plain(shown)

    def truncate(self, y: PerturbedRanking, size: int) -> PerturbedRanking:
        """The proposal as far as the person saw it, the first `size`: pairs that stand in there whole."""
        return self.pairs().truncate(y, size)

    def chance(self, order: Ints, shown: Ints) -> float:
        """The probability that `shown` is what a person sees first, of the learner's own `order` (m,)."""
        return self.pairs().chance(order, shown)

    def order(self, y: PerturbedRanking) -> Ints:
        """The learner's own order (m,) of a proposal: its swaps taken back."""
        return self.pairs().order(y)
