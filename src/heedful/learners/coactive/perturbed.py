"""3PR, the perturbed preference perceptron for rankings: coactive learning from clicks with position bias.

Raman, Joachims, Shivaswamy & Schnabel, *Stable Coactive Learning via Perturbation*, ICML 2013.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import RankingSpace
from heedful.core.validation import check_between, check_count
from heedful.jit.kernel import Floats, Ints
from heedful.learners.coactive.swaps import PerturbedRanking, Swaps
from heedful.spaces.ranking import check_ranking

Array = npt.NDArray[np.float64]


class PerturbedState(NamedTuple):
    """The state of `PerturbedPerceptron` for N features."""

    w: Array
    """the utility weights (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, simulation_only="posterior makes the same swaps and learns more from clicks", partial=True)
class PerturbedPerceptron(NamedTuple):
    """3PR: Raman, Joachims, Shivaswamy & Schnabel, ICML 2013. Interaction: coactive.

    Shows the candidates in order of w . x_j, for weights w and `n_features` features x_j of candidate j, with
    neighbours swapped: a coin decides whether pairs start at the first or at the second position, and each pair is
    swapped with probability `swap`. ybar is the shown order y, but where the lower of a pair was clicked and the upper
    was not, the two change places; w += phi(x, ybar) - phi(x, y). Under position bias people click the lower one too
    rarely; but with swap = 1/2 each of two equally relevant neighbours is the lower one equally often, so on average
    they do not change w, and the more relevant of two neighbours moves w towards itself.

    The order is perturbed down to position 2k, k being the positions that `space` counts, as in `Swaps`. The first
    k of the feedback are the clicked candidates; they may be fewer or none. Where a proposal has start = -1 (a caller
    may set it), the feedback is a correction: it goes on top, and the rest follows as shown.
    """

    n_features: int
    space: RankingSpace
    swap: float = 0.5

    @property
    def additive(self) -> bool:
        """True: feedback on a round adds the same vector to the weights whatever they are, so that the order of rounds
        does not matter."""
        return True

    def init(self, rng: np.random.Generator) -> PerturbedState:
        check_count("n_features", self.n_features)
        check_between("swap", self.swap, 0.001, 0.5)
        check_ranking(self.space, "whose neighbours can be swapped")
        return PerturbedState(np.zeros(self.n_features), 0)

    def swaps(self) -> Swaps:
        """Return the random swaps that it makes."""
        return Swaps(self.space, self.swap)

    def propose(self, state: PerturbedState, x: Floats, rng: np.random.Generator) -> PerturbedRanking:
        return self.swaps().propose(state.w, x, rng)

    def update(self, state: PerturbedState, x: Floats, y: PerturbedRanking, feedback: Ints) -> PerturbedState:
        self.space.add_difference(state.w, x, self.correction(x, y, feedback), y.shown, 1.0)
        return PerturbedState(state.w, state.t + 1)

    def correction(self, x: Floats, y: PerturbedRanking, feedback: Ints) -> Ints:
        """Return the order that `feedback` (clicked or preferred candidates) stands for: the order shown by `y`, in
        which the two of a swapped or unswapped pair of neighbours change places if only the lower one was clicked.

        If `y` has no such pairs (start = -1), it is the feedback, followed by the other candidates as shown. Entries
        are row indices of the candidates `x` (m x N), best first.
        """
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

    def weights(self, state: PerturbedState) -> Array:
        return state.w

    def chance(self, order: Ints, shown: Ints) -> float:
        return self.swaps().chance(order, shown)

    def order(self, y: PerturbedRanking) -> Ints:
        return self.swaps().order(y)
