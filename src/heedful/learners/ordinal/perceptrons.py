"""The ordinal learners of [P01]: predict the rank that a person gives an instance, get the true rank, update.

An instance x (N,) has N features and a rank from 1 to k. `PRank` projects it on one direction and cuts the line at k -
1 thresholds; the multiclass perceptron has a direction for every rank; Widrow-Hoff predicts a number and rounds it.
Learners with one direction have a method `weights`.

[P01]: Crammer & Singer, *Pranking with Ranking*, NIPS 2001.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_count, check_positive
from heedful.jit.kernel import Floats, Ints, add_scaled, dot, kernel
from heedful.spaces.ordinal import Ranks

Array = npt.NDArray[np.float64]


@kernel
def rank_at(score: float, thresholds: Array) -> int:
    """Return the rank of `score`: the least r with score < b_r, for ascending `thresholds` b_1, ..., b_{k-1} (k-1,) and
    an infinite b_k."""
    rank = 1
    for r in range(thresholds.size):  # all of them, without a branch that the processor would mispredict
        rank += 1 if score - thresholds[r] >= 0.0 else 0
    return rank


class PRankState(NamedTuple):
    """The state of `PRank` for N features and k ranks."""

    w: Array
    """the direction (N,) on which instances are projected"""
    b: Array
    """the thresholds b_1 <= ... <= b_{k-1} (k-1,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=3)
class PRank(NamedTuple):
    """PRank: [P01] Figure 2. Interaction: ordinal.

    Keeps a direction w (N,) and k - 1 thresholds b, for `n_features` = N and `n_ranks` = k. Predicts for an instance x
    the least r with w . x < b_r (b_k infinite). On a mistake only, for the true rank y and each r: y_r = -1 where y <=
    r, else +1; tau_r = y_r where (w . x - b_r) y_r <= 0, else 0; w += (sum tau) x, b_r -= tau_r.

    The thresholds stay in order. Where a rule (w*, b*) of norm 1 ranks every instance right by a margin gamma, and
    |x| <= R, the sum of |predicted - true| is at most (k - 1)(R^2 + 1) / gamma^2. Not invariant to the scale of x:
    the thresholds move by 1.
    """

    n_features: int
    n_ranks: int

    @property
    def space(self) -> Ranks:
        return Ranks(self.n_ranks)

    def init(self, rng: np.random.Generator) -> PRankState:
        check_count("n_features", self.n_features)
        Ranks(self.n_ranks).check()
        return PRankState(np.zeros(self.n_features), np.zeros(self.n_ranks - 1), 0)

    def propose(self, state: PRankState, x: Floats, rng: np.random.Generator) -> int:
        return rank_at(dot(x, state.w), state.b)

    def update(self, state: PRankState, x: Floats, y: int, feedback: int) -> PRankState:
        prank_step(state.w, state.b, x, feedback)
        return PRankState(state.w, state.b, state.t + 1)

    def weights(self, state: PRankState) -> Array:
        """Return the direction w (N,), for N features, on which instances are projected."""
        return state.w

    def thresholds(self, state: PRankState) -> Array:
        """Return the thresholds b (k-1,) of k ranks, ascending: the scores at which the predicted rank changes."""
        return state.b


@kernel
def prank_step(w: Array, b: Array, x: Floats, feedback: int) -> float:
    """Do one PRank update ([P01] Figure 2) in place for an instance `x` (N,), N features, whose true rank is
    `feedback`, from 1 to k.

    `w` (N,) is the direction and `b` (k-1,) the thresholds of k ranks. The score w . x should be above threshold r if
    the true rank is above r, and below it otherwise. Each threshold on whose wrong side it lies moves by -tau_r, where
    tau_r is 1 if the score should be above it and -1 if below, and w moves by (sum tau) x. Return the sum of all tau_r.

    It is 0 if the predicted rank was right. A score equal to a threshold is on the wrong side of it whatever the true
    rank is, so thresholds may move up and others down; then the sum may be 0 although thresholds moved.
    """
    score = dot(x, w)
    if rank_at(score, b) == feedback:
        return 0.0
    total = 0.0
    for r in range(b.size):
        y = -1.0 if feedback <= r + 1 else 1.0
        tau = y if (score - b[r]) * y <= 0.0 else 0.0
        b[r] -= tau
        total += tau
    add_scaled(w, x, total)
    return total


class MulticlassState(NamedTuple):
    """The state of `MulticlassPerceptron` for N features and k ranks."""

    W: Array
    """a direction for each rank, k x N"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=3)
class MulticlassPerceptron(NamedTuple):
    """Multiclass perceptron: Crammer & Singer, as in [P01]. Interaction: ordinal.

    Keeps a direction W_r (N,) for each rank r of k, for `n_features` = N and `n_ranks` = k. Predicts for an instance x
    the rank of the greatest W_r . x, ties to the lowest; on a mistake W_y += x for the true rank y and W_predicted -=
    x. It does not use the order of the ranks, so it learns k N numbers instead of N + k - 1.
    """

    n_features: int
    n_ranks: int

    @property
    def space(self) -> Ranks:
        return Ranks(self.n_ranks)

    def init(self, rng: np.random.Generator) -> MulticlassState:
        PRank(self.n_features, self.n_ranks).init(rng)
        return MulticlassState(np.zeros((self.n_ranks, self.n_features)), 0)

    def propose(self, state: MulticlassState, x: Floats, rng: np.random.Generator) -> int:
        return best_row(state.W, x) + 1

    def update(self, state: MulticlassState, x: Floats, y: int, feedback: int) -> MulticlassState:
        r = best_row(state.W, x)
        if r + 1 != feedback:
            add_scaled(state.W[feedback - 1], x, 1.0)
            add_scaled(state.W[r], x, -1.0)
        return MulticlassState(state.W, state.t + 1)


@kernel
def best_row(W: Array, x: Floats) -> int:
    """Return the index r of the row of `W` (k x N) with the greatest inner product W_r . x with the N features `x` (N,)
    of an instance; of equal products the lowest index."""
    best, most = 0, dot(x, W[0])
    for r in range(1, W.shape[0]):
        s = dot(x, W[r])
        if s > most:
            best, most = r, s
    return best


class WidrowHoffState(NamedTuple):
    """The state of `WidrowHoff` for N features."""

    w: Array
    """the weights of the regression (N,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=3)
class WidrowHoff(NamedTuple):
    """Widrow-Hoff: online regression, as in [P01]. Interaction: ordinal.

    Predicts for an instance x of `n_features` features the number w . x, rounded half up and clipped to 1..k
    (`n_ranks`); after every round w += eta (y - w . x) x for the true rank y. Not invariant to the scale of x: stable
    where eta |x|^2 < 2 in every round. A larger eta can diverge: w grows until it overflows; the prediction is still a
    rank (1 where w . x is NaN), but means nothing.
    """

    n_features: int
    n_ranks: int
    eta: float = 0.01

    @property
    def space(self) -> Ranks:
        return Ranks(self.n_ranks)

    def init(self, rng: np.random.Generator) -> WidrowHoffState:
        PRank(self.n_features, self.n_ranks).init(rng)
        check_positive("eta", self.eta)
        return WidrowHoffState(np.zeros(self.n_features), 0)

    def propose(self, state: WidrowHoffState, x: Floats, rng: np.random.Generator) -> int:
        s = dot(x, state.w)
        if s >= self.n_ranks:
            return self.n_ranks
        return math.floor(s + 0.5) if s > 1.0 else 1

    def update(self, state: WidrowHoffState, x: Floats, y: int, feedback: int) -> WidrowHoffState:
        add_scaled(state.w, x, self.eta * (feedback - dot(x, state.w)))
        return WidrowHoffState(state.w, state.t + 1)

    def weights(self, state: WidrowHoffState) -> Array:
        """Return the weights w (N,) of the linear regression of ranks on N features."""
        return state.w


class ConstantState(NamedTuple):
    """The state of `ConstantRank` for k ranks."""

    counts: Ints
    """how often each rank was the true one (k,)"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=3)
class ConstantRank(NamedTuple):
    """A constant predictor: ours, for comparison. Interaction: ordinal.

    Predicts the median of the true ranks so far (of two, the lower), from 1 to `n_ranks`, whatever the `n_features`
    features of the instance: no other constant would have had a lower sum of |predicted - true|. Before the first round
    it predicts the middle rank.
    """

    n_features: int
    n_ranks: int

    @property
    def space(self) -> Ranks:
        return Ranks(self.n_ranks)

    def init(self, rng: np.random.Generator) -> ConstantState:
        PRank(self.n_features, self.n_ranks).init(rng)
        return ConstantState(np.zeros(self.n_ranks, np.int64), 0)

    def propose(self, state: ConstantState, x: Floats, rng: np.random.Generator) -> int:
        if state.t == 0:
            return (self.n_ranks + 1) // 2
        r, below = 0, state.counts[0]
        while 2 * below < state.t:
            r += 1
            below += state.counts[r]
        return r + 1

    def update(self, state: ConstantState, x: Floats, y: int, feedback: int) -> ConstantState:
        state.counts[feedback - 1] += 1
        return ConstantState(state.counts, state.t + 1)
