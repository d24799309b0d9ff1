"""Learning from clicks under position bias: swap neighbours at random, and compare the two by which one is clicked.

People click more at the top, so clicks taken at face value confirm the order shown. Where two neighbours are swapped
with a known probability, the position bias cancels between them: FairPairs (Radlinski & Joachims 2006), which 3PR
brought to coactive learning (Raman, Joachims, Shivaswamy & Schnabel 2013). Ours: a logistic step in place of the
perceptron's; a click on only the upper one of two neighbours counts too; weights correct for swap probabilities other
than one half; and the other pairs that the clicks imply count a little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import RankingSpace
from heedful.core.validation import check_between, check_count, check_positive, describe, is_number
from heedful.jit.kernel import Floats, Ints, primitive
from heedful.learners.coactive.pairwise_logistic import adagrad_step
from heedful.spaces.ranking import check_ranking

Array = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class PerturbedRanking(NamedTuple):
    """A proposal of `FairPairs`: an order in which pairs of neighbours may have been swapped at random.

    `shown` is the order after the swaps: candidate indices, best first. Pair p has the positions start + 2p and start +
    2p + 1, counted from 0, and `swapped` says for each pair if it was swapped, which it was with probability `swap`.
    `start` = -1 means that nothing was swapped at random; feedback is then a correction, taken at face value.
    `probability` is that of showing this order, given the learner's weights.
    """

    shown: Ints
    start: int
    swapped: Bools
    swap: float
    probability: float


class FairPairsState(NamedTuple):
    """The state of `FairPairs` for N features."""

    w: Array
    """the utility weights (N,)"""
    g: Array
    """a buffer for the gradient (N,), overwritten in every update"""
    total: Array
    """the sum of the squared gradients (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, partial=True, lesson_cost=2)
class FairPairs(NamedTuple):
    """Fair pairs: ours, after 3PR (Raman et al., ICML 2013), with logistic steps. Interaction: coactive.

    Shows the candidates in order of w . x_j, for weights w and `n_features` features x_j of candidate j, with
    neighbours swapped: a coin decides whether pairs start at the first or at the second position, and each pair is
    swapped with probability `swap`, down to position 2k, k being the positions that `space` counts. No order is less
    probable than swap^k / 2. The first k of the feedback are the clicked candidates; they may be fewer or none. Where
    one of a pair is clicked and the other is not, it beats the other with weight .5 / P(the pair was shown in this
    order). This is fair where clicks depend on relevance and position (position bias, cascade): equally relevant
    neighbours win equally often.

    That is unbiased, but compares neighbours only. The pairs that clicks imply at face value
    (`Ranking.add_pair_gradient`) are added with weight `implied`: they compare more candidates and learn faster, but
    they are biased. implied = 0 leaves them out; swap = 0 shows the order itself and takes clicks at face value, as
    `PairwiseLogistic`. Swaps have a cost: the shown order is worse than the learned one (bench/clicks.py; swap = 0.5,
    as in 3PR, costs most and learns best).

    Each update is one AdaGrad step with the learning rate `rate` up the gradient of the weighted sum of log sigma(w .
    (x_a - x_b)), over the pairs in which candidate a, with features x_a, beats b; sigma is the logistic function. Where
    a proposal has start = -1 (a caller may set it), the feedback is an explicit correction. Where one item is shown (k
    = 1), there is nothing to swap. Lists that two rankers draft in turns have such pairs, too (`drafted`).
    """

    n_features: int
    space: RankingSpace
    rate: float = 0.1
    swap: float = 0.25
    implied: float = 0.3

    def init(self, rng: np.random.Generator) -> FairPairsState:
        check_count("n_features", self.n_features)
        check_positive("rate", self.rate)
        swap = is_number(self.swap, int, float, np.integer, np.floating)
        if not (swap and (self.swap == 0.0 or 0.001 <= self.swap <= 0.5)):
            raise ValueError(f"swap: expected 0, or a number from 0.001 to 0.5, got {describe(self.swap)}")
        check_between("implied", self.implied, 0.0, 1.0)
        check_ranking(self.space, "whose neighbours can be swapped")
        n = self.n_features
        return FairPairsState(np.zeros(n), np.zeros(n), np.zeros(n), 0)

    def propose(self, state: FairPairsState, x: Floats, rng: np.random.Generator) -> PerturbedRanking:
        shown = self.space.argmax(state.w, x)
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

    def update(self, state: FairPairsState, x: Floats, y: PerturbedRanking, feedback: Ints) -> FairPairsState:
        self.gradient(state.g, state.w, x, y, feedback)
        return self.step(state, state.g)

    def direction(self, state: FairPairsState, x: Floats, y: PerturbedRanking, feedback: Ints) -> Array:
        """Return the gradient (N,) in the N weights, at the weights of `state`, that `update` would take a step along
        after `feedback` (clicked or preferred candidates) on the proposal `y` for the m candidates `x` (m x N)."""
        D = np.zeros(self.n_features)
        self.gradient(D, state.w, x, y, feedback)
        return D

    def step(self, state: FairPairsState, D: Array) -> FairPairsState:
        adagrad_step(state.w, state.total, D, self.rate)
        return FairPairsState(state.w, state.g, state.total, state.t + 1)

    def gradient(self, out: Array, w: Array, x: Floats, y: PerturbedRanking, feedback: Ints) -> None:
        """Write into `out` (N,) the gradient in the N weights `w` (N,) of the weighted log-likelihood of `feedback`
        (clicked or preferred candidates) on the proposal `y` for the m candidates `x` (m x N)."""
        out[:] = 0.0
        s = self.space.scores(w, x)
        self.space.add_implied(out, s, x, feedback, y.shown)
        if y.start >= 0:
            out *= self.implied
            clicked = np.zeros(x.shape[0], np.bool_)
            clicked[feedback[: self.space.positions()]] = True
            better, worse, weights = fair_pairs(y.shown, y.start, y.swapped, clicked, y.swap)
            if better.size:
                self.space.add_pairs(out, s, x, better, worse, weights)

    def draft_direction(self, state: FairPairsState, x: Floats, pairs: Ints, feedback: Ints) -> Array:
        """Return the gradient (N,), for N features, of `feedback` (clicked candidates) on a list in which something
        other than this learner put pairs of neighbours in either order with probability 1/2, such as two rankers that
        pick in turns (team draft).

        `x` (m x N) are the m candidates, and `pairs` (p, 2) the candidates of p such pairs, the upper one first. A pair
        counts with weight 1 if exactly one of its two candidates was clicked, else 0. The other pairs that the clicks
        imply are left out, whatever `implied` is, as most of the list was not drawn at random.
        """
        clicked = np.zeros(x.shape[0], np.bool_)
        clicked[feedback[: self.space.positions()]] = True
        better, worse, weights = fair_pairs(pairs.reshape(-1), 0, np.zeros(len(pairs), np.bool_), clicked, 0.5)
        D = np.zeros(self.n_features)
        self.space.add_pairs(D, self.space.scores(state.w, x), x, better, worse, weights)
        return D

    def weights(self, state: FairPairsState) -> Array:
        return state.w

    def plain(self, shown: Ints) -> PerturbedRanking:
        """Return the proposal that shows the order `shown` (candidate indices) without random swaps: feedback on it
        counts as an explicit correction."""
        return PerturbedRanking(shown, -1, np.zeros(0, np.bool_), 0.0, 1.0)

    def truncate(self, y: PerturbedRanking, size: int) -> PerturbedRanking:
        """Return the proposal `y` cut to its first `size` entries, which the person saw, with only the pairs that lie
        completely in them."""
        pairs = min(y.swapped.size, max(size - max(y.start, 0), 0) // 2)
        return PerturbedRanking(y.shown[:size], y.start, y.swapped[:pairs], y.swap, y.probability)

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


def _fair_pairs_loop(shown: Ints, start: int, swapped: Bools, clicked: Bools, swap: float) -> tuple[Ints, Ints, Array]:
    better, worse = np.empty(swapped.size, np.int64), np.empty(swapped.size, np.int64)
    weights = np.empty(swapped.size)
    size = 0
    for p in range(swapped.size):
        upper, lower = shown[start + 2 * p], shown[start + 2 * p + 1]
        if clicked[upper] != clicked[lower]:
            better[size], worse[size] = (upper, lower) if clicked[upper] else (lower, upper)
            weights[size] = 0.5 / (swap if swapped[p] else 1.0 - swap)
            size += 1
    return better[:size], worse[:size], weights[:size]


@primitive(_fair_pairs_loop)
def fair_pairs(shown: Ints, start: int, swapped: Bools, clicked: Bools, swap: float) -> tuple[Ints, Ints, Array]:
    """Return (winners, losers, weights), (p,) each, for the p pairs of neighbours of which exactly one candidate was
    clicked: the clicked candidate, the other one, and the weight of the pair.

    `shown` (n,) is the order shown, candidate indices after the swaps; its pairs are at positions `start` and `start` +
    1, `start` + 2 and `start` + 3, ... `swapped` says which of them were swapped, each with probability `swap`, and
    `clicked` (m,) which of m candidates were clicked. The weight is .5 / P, where P is the probability that the two
    candidates were shown in this order.
    """
    order, hit = shown.tolist(), clicked.tolist()
    better, worse, weights = [], [], []
    for p, other in enumerate(swapped.tolist()):
        upper, lower = order[start + 2 * p], order[start + 2 * p + 1]
        if hit[upper] != hit[lower]:
            better.append(upper if hit[upper] else lower)
            worse.append(lower if hit[upper] else upper)
            weights.append(0.5 / (swap if other else 1.0 - swap))
    return np.array(better, np.int64), np.array(worse, np.int64), np.array(weights, np.float64)


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
