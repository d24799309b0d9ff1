"""Lists in which pairs of neighbours were swapped at random, with a known probability.

People click more at the top. Where two neighbours stand in either order with a known probability, that cancels between
them, so such pairs compare learners fairly: FairPairs (Radlinski & Joachims 2006), which 3PR brought to coactive
learning (Raman, Joachims, Shivaswamy & Schnabel 2013).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.space import RankingSpace
from heedful.core.validation import describe, is_number
from heedful.jit.kernel import Floats, Ints, primitive
from heedful.spaces.ranking import check_ranking

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class PerturbedRanking(NamedTuple):
    """A proposal with random swaps: an order in which pairs of neighbours may have changed places.

    `shown` is the order after the swaps: candidate indices, best first. Pair p has the positions start + 2p and start +
    2p + 1, counted from 0, and `swapped` says for each pair if it was swapped, which it was with probability `swap`.
    `start` = -1 means that nothing was swapped at random. `probability` is that of showing this order, given the
    learner's weights.
    """

    shown: Ints
    start: int
    swapped: Bools
    swap: float
    probability: float


class Swaps(NamedTuple):
    """Random swaps of neighbours in the order of a learner: a coin decides whether pairs start at the first or at the
    second position, and each pair is swapped with probability `swap`, down to position 2k, k being the positions that
    `space` counts. No order is less probable than swap^k / 2. With swap = 0, or where one item is shown, nothing is
    swapped."""

    space: RankingSpace
    swap: float

    def check(self) -> None:
        """Raise ValueError unless the space is a ranking and `swap` is 0 or from .001 to .5."""
        swap = is_number(self.swap, int, float, np.integer, np.floating)
        if not (swap and (self.swap == 0.0 or 0.001 <= self.swap <= 0.5)):
            raise ValueError(f"swap: expected 0, or a number from 0.001 to 0.5, got {describe(self.swap)}")
        check_ranking(self.space, "whose neighbours can be swapped")

    def propose(self, w: Array, x: Floats, rng: np.random.Generator) -> PerturbedRanking:
        """Return the order of the m candidates `x` (m, N) by their scores with the N weights `w` (N,), with swaps drawn
        from `rng`."""
        shown = self.space.argmax(w, x)
        depth = self.depth(shown.size)
        start, pairs, probability = -1, 0, 1.0
        if self.swap > 0.0 and depth > 1:
            start = 1 if rng.random() < 0.5 else 0
            pairs = (depth - start) // 2
        swapped = rng.random(pairs) < self.swap
        if start >= 0:
            swap_pairs(shown, start, swapped)
            probability = swap_probability(swapped, start, depth, self.swap)
        return PerturbedRanking(shown, start, swapped, self.swap if start >= 0 else 0.0, probability)

    def depth(self, m: int) -> int:
        """Return how many positions from the top random swaps can reach when there are `m` candidates: at most 2k, k
        being the positions that the space counts.
        """
        most: int = 2 * self.space.positions()
        return min(m, most)

    def chance(self, order: Ints, shown: Ints) -> float:
        """Return the probability that random swaps of `order`, the learner's own order of m candidates (m,), make a
        list that begins with `shown`, which may be shorter. Both are candidate indices, best first."""
        depth, size = self.depth(order.size), shown.size
        ranking, prefix = order[: max(size, depth)].tolist(), shown.tolist()  # lists are faster here
        if self.swap == 0.0 or depth < 2:
            return float(ranking[:size] == prefix)
        total, swap, stay, last = 0.0, self.swap, 1.0 - self.swap, min(depth - 1, size)
        for start in (0, 1):
            p, end = 0.5, start
            if prefix[:start] == ranking[:start]:
                for i in range(start, last, 2):
                    upper, lower, alone = ranking[i], ranking[i + 1], i + 1 == size  # alone: only the first was seen
                    if prefix[i] == lower and (alone or prefix[i + 1] == upper):
                        p *= swap
                    elif prefix[i] == upper and (alone or prefix[i + 1] == lower):
                        p *= stay
                    else:
                        break
                    end = i + 2
                total += p if prefix[end:] == ranking[end:size] else 0.0
        return total

    def order(self, y: PerturbedRanking) -> Ints:
        """Return the proposal `y` with its random swaps undone: the learner's own order, indices of the m candidates,
        best first (m,)."""
        order = y.shown.copy()
        swap_pairs(order, y.start, y.swapped)
        return order


def _swap_pairs_loop(order: Ints, start: int, swapped: Bools) -> None:
    for p in range(swapped.size):
        if swapped[p]:
            i = start + 2 * p
            order[i], order[i + 1] = order[i + 1], order[i]


@primitive(_swap_pairs_loop)
def swap_pairs(order: Ints, start: int, swapped: Bools) -> None:
    """Swap neighbours in `order` in place: for every pair number p with `swapped`[p] True, those at the positions
    `start` + 2p and `start` + 2p + 1, from 0."""
    for p, other in enumerate(swapped.tolist()):
        if other:
            i = start + 2 * p
            order[i], order[i + 1] = order[i + 1], order[i]


def _swap_probability_loop(swapped: Bools, start: int, depth: int, swap: float) -> float:
    this_start, other_start, any_swapped = 0.5, 0.5, False
    for p in range(swapped.size):
        this_start *= swap if swapped[p] else 1.0 - swap
        any_swapped = any_swapped or swapped[p]
    for _ in range((depth - (1 - start)) // 2):
        other_start *= 1.0 - swap
    return this_start if any_swapped else this_start + other_start


@primitive(_swap_probability_loop)
def swap_probability(swapped: Bools, start: int, depth: int, swap: float) -> float:
    """Return the probability of showing an order that was made by swapping pairs of neighbours at random, within the
    first `depth` positions.

    Pairs begin at position 0 or 1 with probability 1/2 each, and each pair is swapped with probability `swap`. In the
    order shown they began at `start`, and `swapped` says which were swapped. If none was, both starts make the same
    order, and their probabilities are added.
    """
    flags, this_start = swapped.tolist(), 0.5
    for flag in flags:
        this_start *= swap if flag else 1.0 - swap
    if True in flags:
        return this_start
    other_start = 0.5
    for _ in range((depth - (1 - start)) // 2):
        other_start *= 1.0 - swap
    return this_start + other_start
