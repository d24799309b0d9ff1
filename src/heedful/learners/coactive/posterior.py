"""One Gaussian posterior over feature weights, for every kind of answer: ours, not from the papers.

A click tells of the item and of its place, so the weights (`heedful.learners.logistic`) have effects of the place, of a
click above, and of the list beside those of the features; the score that ranks has none of these. A correction tells
that each chosen candidate beats each one that was looked at and kept back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import RankingSpace
from heedful.core.validation import check_count, check_positive
from heedful.jit.kernel import Floats, Ints, dot, kernel, noinline
from heedful.learners.coactive.swaps import PerturbedRanking, Swaps
from heedful.learners.logistic import (
    PosteriorState,
    first_state,
    follow_usual,
    list_mean,
    observe,
    prior_shares,
    renew_prior,
)
from heedful.spaces.ranking import WithBaseScore

Array = npt.NDArray[np.float64]

PLACES = 10
"""K, the number of places with an effect of their own; further ones share that of the last."""
MOST_LOOKED = 30
"""The number of places from the top that are learned from, and of items that a correction may name: the cost of an
answer does not grow with the length of the list."""
MODEST = 1.2
"""By how much the posterior is wider in what is said of it than by Laplace's approximation: people answer a list as a
whole, and not quite as the model has it. With it what is said is right as often as that (`bench/sure.py`)."""


@declare(version=1, partial=True, lesson_cost=20)
class Posterior(NamedTuple):
    """Posterior: ours, one Gaussian over the weights for all kinds of answers. Interaction: coactive.

    Shows the candidates in order of w . x_j, for the mean w of the posterior and `n_features` features x_j of candidate
    j, with neighbours swapped with probability `swap` (`Swaps`); no swaps are needed to learn. A loop that shows one
    item draws it from the posterior instead, with twice `swap` of its standard deviations. Of A features that differ
    within lists, each weight has the prior variance s / A in units of 1 / the spread of its feature; the spread is
    followed as it becomes known. For what is shown by itself s is `prior`; for lists it is a fifth of that at first,
    and more when answers say so (`fitted_scale`).

    Feedback that names all candidates is a better order, of which the first k count as chosen: each is preferred to
    every candidate that was looked at and not chosen, above it or below, and to those chosen that it overtook. Feedback
    that names fewer are the clicked candidates. Item x at place i is clicked with probability sigma(w . (x - mean of
    the list) + a_i + [something above was clicked] b_i + c + d), with effects a_i and b_i of the place, c of the list,
    and d for all: so clicks at the top count for less. A thumb up has the probability sigma(w . (z - usual) + e), for
    the features z of what was judged and the mean of those judged so far. The prior variances of these effects are 1/4,
    1, 1, 4 and 4. `products` features, those before the last one, are products of two others; together they have s / 10
    for s = `prior`. The first 30 places of a list count, and the first 30 items of a
    correction. Costs D^2 for each, D = N + 23; beyond 300 features only variances are kept, at a cost of D.
    """

    n_features: int
    space: RankingSpace
    swap: float = 0.25
    prior: float = 1.0
    products: int = 0

    def init(self, rng: np.random.Generator) -> PosteriorState:
        check_count("n_features", self.n_features)
        check_positive("prior", self.prior)
        check_count("products", self.products, least=0, most=self.n_features - 1)
        self.swaps().check()
        n, shares = self.n_features, prior_shares(self.n_features, self.products, True)
        base, precision = np.zeros(n), np.sum(shares) / self.prior / shares
        variances = self.prior * shares / np.sum(shares)
        if isinstance(self.space, WithBaseScore):  # a standard deviation of the caller's score is worth about 1
            base[-1], precision[-1], variances[-1] = 1.0, 1.0, 1.0 if self.space.adjusted else 0.0
        effects = np.concatenate([np.full(PLACES, 0.25), np.full(PLACES, 1.0), np.array([1.0, 4.0, 4.0])])
        return first_state(base, precision, variances, np.zeros(effects.size), effects)

    def swaps(self) -> Swaps:
        """Return the random swaps that it makes."""
        return Swaps(self.space, self.swap)

    def propose(self, state: PosteriorState, x: Floats, rng: np.random.Generator) -> PerturbedRanking:
        return self.swaps().propose(self.weights(state), x, rng)

    def update(self, state: PosteriorState, x: Floats, y: PerturbedRanking, feedback: Ints) -> PosteriorState:
        whole = feedback.size >= x.shape[0]
        chosen = feedback[: self.space.positions()] if whole else feedback
        return self.learn(state, x, y.shown, chosen, not whole, 1.0)

    def learn(
        self, state: PosteriorState, x: Floats, shown: Ints, chosen: Ints, clicked: bool, weight: float
    ) -> PosteriorState:
        """Return the state after learning that of the candidates `shown` (best first) those `chosen` were `clicked`, or
        should have come first, in this order. Arrays of `state` are overwritten.

        `x` (m, N) are the N features of the m candidates, of which shown and chosen are indices. The answer counts as
        much as `weight` equal ones."""
        if shown.size == 0:
            return state
        # Of the other candidates a log need not keep anything.
        seen = x[named(x.shape[0], shown, chosen)]
        mean = list_mean(seen)
        rows = renew_prior(state, seen, mean, self.prior, prior_shares(x.shape[1], self.products, True), True)
        if clicked:
            learn_clicks(state, x, mean, shown, chosen, weight)
        else:
            learn_order(state, x, shown, chosen, min(self.space.positions(), shown.size), weight)
        return PosteriorState(
            state.m, state.P, state.prior, state.precision, state.base, state.spread, state.squares, state.sizes,
            state.usual, state.judged, rows, state.t + 1,
        )  # fmt: skip

    def judge(self, state: PosteriorState, z: Array, among: Array, up: float, alone: bool) -> PosteriorState:
        """Return the state after learning that what has the N features `z` (N,) was approved of, as far as `up` says
        (from 0 to 1). Arrays of `state` are overwritten.

        `among` (N,) are the mean features of what was shown, with which the first thumb is compared. What is judged and
        what is usual count as a list of two. With `alone`, where it is shown by itself, the intercept follows what is
        usual exactly, so that the log-odds of a thumb up can be told; in lists, whose order is all that they are for,
        it is that of what is usual at the time, which orders better (`bench/clicks.py --mostly-down`)."""
        if state.judged == 0:
            state.usual[:] = among
        both = np.empty((2, z.size))
        both[0], both[1] = z, state.usual
        shares = prior_shares(z.size, self.products, not alone)
        rows = renew_prior(state, both, list_mean(both), self.prior, shares, not alone)
        Z = np.zeros((1, state.m.size))
        Z[0, : z.size] = z - state.usual
        Z[0, -1] = 1.0
        one = np.zeros(1, np.int64)
        observe(state.m, state.P, Z, one, one - 1, np.full(1, up), 1.0)
        follow_usual(state, Z[0] / (state.judged + 2.0), state.m.size - (1 if alone else 0))
        return PosteriorState(
            state.m, state.P, state.prior, state.precision, state.base, state.spread, state.squares, state.sizes,
            state.usual, state.judged + 1, rows, state.t + 1,
        )  # fmt: skip

    def log_odds(self, state: PosteriorState) -> float:
        """Return the log-odds of a thumb up for what has the features 0; w . z are added for features z (N,)."""
        return float(state.m[-1] - dot(state.usual, state.m[: self.n_features]))

    def covariance(self, state: PosteriorState, x: Floats, level: float) -> Array:
        """Return the posterior covariance (m, m) of w . x_j for m rows of features `x` (m, N); with `level` 1 that of
        the log-odds of a thumb up, with 0 (for differences of features) without the intercept."""
        Z = np.zeros((x.shape[0], state.m.size))
        Z[:, : self.n_features] = x - level * state.usual
        Z[:, -1] = level
        P = state.P
        U = Z @ P + Z @ P.T - Z * P.diagonal() if P.shape[0] > 1 else Z * P[0]
        return np.asarray(U @ Z.T, np.float64)

    def spreads(self, state: PosteriorState) -> Array:
        """Return the posterior standard deviation of each of the N feature weights (N,)."""
        variances = np.diag(state.P) if state.P.shape[0] > 1 else state.P[0]
        return np.asarray(np.sqrt(np.maximum(variances[: self.n_features], 0.0)), np.float64)

    def weights(self, state: PosteriorState) -> Array:
        return state.m[: self.n_features] - state.base

    def depth(self, m: int) -> int:
        return self.swaps().depth(m)

    def chance(self, order: Ints, shown: Ints) -> float:
        return self.swaps().chance(order, shown)

    def order(self, y: PerturbedRanking) -> Ints:
        return self.swaps().order(y)


@kernel
def named(m: int, shown: Ints, chosen: Ints) -> Ints:
    """Return the indices of those of m candidates that were `shown`, then those `chosen` that were not, each once."""
    out, known, size = np.empty(m, np.int64), np.zeros(m, np.bool_), 0
    for group in (shown, chosen):
        for j in group:
            if not known[j]:
                known[j], out[size] = True, j
                size += 1
    return out[:size]


@noinline
@kernel
def learn_clicks(state: PosteriorState, x: Floats, mean: Array, shown: Ints, chosen: Ints, weight: float) -> None:
    """Learn in place that the candidates `chosen` were clicked in the list `shown` (best first) and the others not.

    `x` (m, N) are the N features of the m candidates, and `mean` (N,) those of their list. The answer counts as much as
    `weight` equal ones."""
    m, P, n, r = state.m, state.P, x.shape[1], min(shown.size, MOST_LOOKED)
    size = m.size
    Z, clicked, y, above = np.zeros((r, size)), np.zeros(x.shape[0]), np.zeros(r), False
    for j in chosen:
        clicked[j] = 1.0
    for i in range(r):
        place, y[i] = n + min(i, PLACES - 1), clicked[shown[i]]
        Z[i, :n] = x[shown[i]] - mean
        Z[i, place] = 1.0
        Z[i, place + PLACES] = 1.0 if above else 0.0
        Z[i, size - 3 : size - 1] = 1.0
        above = above or y[i] == 1.0
    observe(m, P, Z, np.arange(r), np.full(r, -1), y, weight)
    of_list = size - 3  # the next list has one of its own
    m[of_list] = 0.0
    if P.shape[0] > 1:
        P[of_list, :of_list] = 0.0
        P[of_list + 1 :, of_list] = 0.0
        P[of_list, of_list] = 1.0
    else:
        P[0, of_list] = 1.0


@noinline
@kernel
def learn_order(state: PosteriorState, x: Floats, shown: Ints, chosen: Ints, k: int, weight: float) -> None:
    """Learn in place that the candidates `chosen` should have come first in the list `shown`, both best first.

    The person is assumed to have looked at the first `k` places, and down to the lowest of those chosen. `x` (m, N) are
    the N features of the m candidates. The answer counts as much as `weight` equal ones."""
    better, worse = preferred(x.shape[0], shown, chosen, k)
    row, size = np.full(x.shape[0], -1), 0
    for pair in range(better.size):
        for j in (better[pair], worse[pair]):
            if row[j] < 0:
                row[j] = size
                size += 1
    Z = np.zeros((size, state.m.size))
    for j in range(row.size):
        if row[j] >= 0:
            Z[row[j], : x.shape[1]] = x[j]
    observe(state.m, state.P, Z, row[better], row[worse], np.ones(better.size), weight)


@kernel
def preferred(m: int, shown: Ints, chosen: Ints, k: int) -> tuple[Ints, Ints]:
    """Return (better, worse) of the pairs of m candidates that a correction implies, as two arrays (p,).

    Of the list `shown`, the candidates `chosen` should have come first; both are in order, best first. The person
    looked at the first `k` places, and down to the lowest of those chosen. Each chosen candidate is preferred to each
    that was looked at and not chosen, and to each chosen one that follows it and was shown above it. `MOST_LOOKED` of
    either count."""
    place, picked = np.full(m, m), np.zeros(m, np.bool_)
    for i in range(shown.size):
        place[shown[i]] = i
    chosen, depth = chosen[:MOST_LOOKED], k
    for a in chosen:
        picked[a] = True
        if place[a] < m:
            depth = max(depth, place[a] + 1)
    depth = min(depth, MOST_LOOKED)
    better = np.empty(chosen.size * (depth + chosen.size), np.int64)
    worse, size = better.copy(), 0
    for i in range(chosen.size):
        a = chosen[i]
        for b in shown[:depth]:
            if not picked[b]:
                better[size], worse[size] = a, b
                size += 1
        for b in chosen[i + 1 :]:
            if place[a] > place[b]:
                better[size], worse[size] = a, b
                size += 1
    return better[:size], worse[:size]
