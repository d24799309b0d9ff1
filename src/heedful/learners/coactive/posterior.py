"""One Gaussian posterior over feature weights, for every kind of answer: ours, not from the papers.

An answer becomes a few logistic observations sigma(z . w) of one weight vector w, which has a Gaussian posterior; they
move its mean to their joint mode, and its covariance to what Laplace's approximation is there (recursive Laplace:
Spiegelhalter & Lauritzen 1990). A click tells of the item and of its place, so w has effects of the place, of a click
above, and of the list beside the N feature weights; the score that ranks has none of these. A correction tells that
each chosen candidate beats each one that was looked at and kept back. The file is long because one learner takes every
answer.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.space import RankingSpace
from heedful.core.validation import check_count, check_positive
from heedful.jit.blas import (
    add_rank_one,
    add_symmetric_product,
    product,
    solve_rows,
    symmetric_times,
    times_symmetric,
)
from heedful.jit.kernel import Floats, Ints, add_rows, dot, kernel, logistic, noinline, primitive, scores
from heedful.learners.coactive.swaps import PerturbedRanking, Swaps
from heedful.spaces.ranking import WithBaseScore

Array = npt.NDArray[np.float64]

PLACES = 10
"""K, the number of places with an effect of their own; further ones share that of the last."""
MOST_LOOKED = 30
"""The number of places from the top that are learned from, and of items that a correction may name: the cost of an
answer does not grow with the length of the list."""
MOST_FULL = 300
"""The number of features up to which covariances are kept; beyond it only variances."""
MODEST = 1.2
"""By how much the posterior is wider in what is said of it than by Laplace's approximation: people answer a list as a
whole, and not quite as the model has it. With it what is said is right as often as that (`bench/sure.py`)."""
_FEW = 2.0  # the mean square of a feature counts like as many rows in its spread: a single pair tells little of that
_MOST_STEPS = 100  # of Newton's method; three or four are usual
_CLOSE = 1e-8
_RENEWED = 1024  # at lists 1, 2, 4, ... up to this one the prior follows the spread of the features


class PosteriorState(NamedTuple):
    """The state of `Posterior` for N features: a Gaussian over D = N + 2 K + 3 weights.

    They are the N feature weights, K effects of the place, K effects of the place after a click above it, the effect of
    the list (thrown away after each list), and the intercepts of clicks and of thumbs."""

    m: Array
    """the mean (D,)"""
    P: Array
    """the covariance (D x D), its lower triangle alone, 0 above; for many features the variances (1 x D)"""
    prior: Array
    """the prior mean of the feature weights (N,), times the spread of their features"""
    precision: Array
    """the prior precision of the feature weights (N,)"""
    base: Array
    """the weights (N,) that the space adds to those learned: 1 for the caller's score if it adds that, otherwise 0"""
    spread: Array
    """the squared spread (N,) by which the prior goes: the variance of each feature within a list and, as long as that
    is of few rows, its mean square"""
    squares: Array
    """the sum of squared differences of each feature from its mean in the list (N,)"""
    sizes: Array
    """the sum of squares of each feature (N,)"""
    usual: Array
    """the mean features of what thumbs judged (N,)"""
    judged: int
    """number of thumbs"""
    rows: int
    """number of candidates in all lists learned from"""
    t: int
    """number of rounds learned from"""


@declare(version=1, partial=True, lesson_cost=20)
class Posterior(NamedTuple):
    """Posterior: ours, one Gaussian over the weights for all kinds of answers. Interaction: coactive.

    Shows the candidates in order of w . x_j, for the mean w of the posterior and `n_features` features x_j of candidate
    j, with neighbours swapped with probability `swap` (`Swaps`); no swaps are needed to learn. A loop that shows one
    item draws it from the posterior instead, with twice `swap` of its standard deviations. Of A features that differ
    within lists, each weight has the prior variance `prior` / A in units of 1 / the spread of its feature, which is
    followed as it becomes known.

    Feedback that names all candidates is a better order, of which the first k count as chosen: each is preferred to
    every candidate that was looked at and not chosen, above it or below, and to those chosen that it overtook. Feedback
    that names fewer are the clicked candidates. Item x at place i is clicked with probability sigma(w . (x - mean of
    the list) + a_i + [something above was clicked] b_i + c + d), with effects a_i and b_i of the place, c of the list,
    and d for all: so clicks at the top count for less. A thumb up has the probability sigma(w . (z - usual) + e), for
    the features z of what was judged and the mean of those judged so far. The prior variances of these effects are 4,
    1, 1, 4 and 4. The first 30 places of a list count, and the first 30 items of a correction. Costs D^2 for each, D =
    N + 23; beyond 300 features only variances are kept, at a cost of D.
    """

    n_features: int
    space: RankingSpace
    swap: float = 0.25
    prior: float = 1.0

    def init(self, rng: np.random.Generator) -> PosteriorState:
        check_count("n_features", self.n_features)
        check_positive("prior", self.prior)
        self.swaps().check()
        n = self.n_features
        variances = np.concatenate(
            [np.full(n, self.prior / n), np.full(PLACES, 4.0), np.full(PLACES, 1.0), np.array([1.0, 4.0, 4.0])]
        )
        base, precision = np.zeros(n), np.full(n, n / self.prior)
        if isinstance(self.space, WithBaseScore):  # a standard deviation of the caller's score is worth about 1
            base[-1], precision[-1], variances[n - 1] = 1.0, 1.0, 1.0 if self.space.adjusted else 0.0
        m = np.zeros(variances.size)
        m[:n] = base
        P = np.diag(variances) if n <= MOST_FULL else variances.reshape(1, -1)
        zeros = np.zeros(n)
        counts = zeros, zeros.copy(), zeros.copy()
        return PosteriorState(m, P, base.copy(), precision, base, np.ones(n), *counts, 0, 0, 0)

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
        X = x.astype(np.float64)
        seen = X[named(X.shape[0], shown, chosen)]  # of the other candidates a log need not keep anything
        mean = list_mean(seen)
        rows = renew_prior(state, seen, mean, self.prior)
        if clicked:
            learn_clicks(state, X - mean, shown, chosen, weight)
        else:
            learn_order(state, X, shown, chosen, min(self.space.positions(), shown.size), weight)
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
        rows = renew_prior(state, both, list_mean(both), self.prior)
        Z = np.zeros((1, state.m.size))
        Z[0, : z.size] = z - state.usual
        Z[0, -1] = 1.0
        one = np.zeros(1, np.int64)
        observe(state.m, state.P, Z, one, one - 1, np.full(1, up), 1.0)
        follow_usual(state, Z[0] / (state.judged + 2.0), alone)
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


@kernel
def list_mean(X: Array) -> Array:
    """Return the mean of the m rows of `X` (m, N), of N features (N,)."""
    mean = np.zeros(X.shape[1])
    add_rows(mean, X, np.full(X.shape[0], 1.0 / X.shape[0]), 1.0)
    return mean


def _add_squares_loop(total: Array, X: Array, mean: Array) -> None:
    for j in range(mean.size):
        found, least = 0.0, 1e-12 * abs(mean[j])
        for i in range(X.shape[0]):
            away = X[i, j] - mean[j]
            if abs(away) > least:
                found += away * away
        total[j] += found


@primitive(_add_squares_loop)
def add_squares(total: Array, X: Array, mean: Array) -> None:
    """Add the sum of the squared differences of the m rows of `X` (m, N) from their `mean` (N,) to `total` (N,), in
    place; what is less than 1e-12 of the mean is rounding, and counts 0."""
    away = X - mean
    away[np.abs(away) <= 1e-12 * np.abs(mean)] = 0.0
    total += np.add.reduce(away * away, axis=0)


@noinline
@kernel
def renew_prior(state: PosteriorState, X: Array, mean: Array, scale: float) -> int:
    """Take in the spread of the m candidates `X` (m, N) around their `mean` (N,), N features; at lists 1, 2, 4, ...,
    1024 let the prior follow the spread so far: of A features that differ within lists, each has the prior variance
    `scale` / A divided by its squared spread. Return the number of candidates in all lists.

    That is exact: the posterior becomes what the same answers would have made of the other prior. A feature whose
    spread is unknown or not finite keeps its prior."""
    m, P, spread = state.m, state.P, state.spread
    add_squares(state.squares, X, mean)
    add_squares(state.sizes, X, np.zeros(mean.size))
    rows: int = state.rows + X.shape[0]
    t = state.t + 1
    if t > _RENEWED or t & (t - 1):
        return rows
    unit, v, full, differing = np.zeros(m.size), np.zeros(m.size), P.shape[0] > 1, 0
    for j in range(mean.size):
        differing += 1 if state.squares[j] > 0.0 and state.base[j] == 0.0 else 0
    for j in range(mean.size):
        new = (state.squares[j] + _FEW * state.sizes[j] / rows) / (rows + _FEW)
        if not (0.0 < state.squares[j] and new < math.inf) or (P[j, j] if full else P[0, j]) == 0.0:
            continue
        before, precision = state.precision[j], new if state.base[j] else differing / scale * new
        more = precision - before  # precision; the next is that times the mean
        pull = state.prior[j] * (precision / math.sqrt(new) - before / math.sqrt(spread[j]))
        if full:
            unit[j] = 1.0
            symmetric_times(P, unit, v)
            unit[j] = 0.0
        else:
            v[j] = P[0, j]
        gain = 1.0 / max(1.0 + more * v[j], 1e-12)
        if t == 1:  # nothing was learned yet, and rounding is kept out
            gain = before / precision
        own, step = gain * (m[j] + v[j] * pull), gain * (pull - more * m[j])
        spread[j], state.precision[j] = new, precision
        if full:
            m[:] += v * step
            add_rank_one(P, v, -more * gain)
            P[j, :j], P[j:, j] = gain * v[:j], gain * v[j:]  # without the difference of large numbers
        else:
            P[0, j] = gain * v[j]
        m[j] = own
    return rows


@noinline
@kernel
def follow_usual(state: PosteriorState, step: Array, exact: bool) -> None:
    """Move what is usual among the thumbs by the first N of `step` (D,), in place; if `exact`, the intercept with it,
    so that the log-odds of a thumb up stay the same, whatever is judged."""
    m, P, n, last = state.m, state.P, state.usual.size, step.size - 1
    step[n:] = 0.0
    state.usual[:] += step[:n]
    if not exact:
        return
    m[last] += dot(step, m)
    if P.shape[0] > 1:
        v = np.zeros(m.size)
        symmetric_times(P, step, v)
        P[last, :last] += v[:last]
        P[last, last] += 2.0 * v[last] + dot(step, v)


@noinline
@kernel
def learn_clicks(state: PosteriorState, X: Array, shown: Ints, chosen: Ints, weight: float) -> None:
    """Learn in place that the candidates `chosen` were clicked in the list `shown` (best first) and the others not.

    `X` (m, N) are the N features of the m candidates, centred in their list. The answer counts as much as `weight`
    equal ones."""
    m, P, n, r = state.m, state.P, X.shape[1], min(shown.size, MOST_LOOKED)
    size = m.size
    Z, clicked, y, above = np.zeros((r, size)), np.zeros(X.shape[0]), np.zeros(r), False
    for j in chosen:
        clicked[j] = 1.0
    for i in range(r):
        place, y[i] = n + min(i, PLACES - 1), clicked[shown[i]]
        Z[i, :n] = X[shown[i]]
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
def learn_order(state: PosteriorState, X: Array, shown: Ints, chosen: Ints, k: int, weight: float) -> None:
    """Learn in place that the candidates `chosen` should have come first in the list `shown`, both best first.

    The person is assumed to have looked at the first `k` places, and down to the lowest of those chosen. `X` (m, N) are
    the N features of the m candidates. The answer counts as much as `weight` equal ones."""
    better, worse = preferred(X.shape[0], shown, chosen, k)
    row, size = np.full(X.shape[0], -1), 0
    for pair in range(better.size):
        for j in (better[pair], worse[pair]):
            if row[j] < 0:
                row[j] = size
                size += 1
    Z = np.zeros((size, state.m.size))
    for j in range(row.size):
        if row[j] >= 0:
            Z[row[j], : X.shape[1]] = X[j]
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


def _logistic_pull_loop(f: Array, plus: Ints, minus: Ints, y: Array, weight: float) -> tuple[Array, Array]:
    r = f.size
    E, W = np.zeros((r + 1, r + 1)), np.zeros((r + 1, r + 1))
    for i in range(plus.size):
        a, b = plus[i], minus[i] % (r + 1)
        p = logistic(f[a] - (f[b] if b < r else 0.0))
        E[a, b] = weight * (y[i] - p)
        W[a, b] = -weight * p * (1.0 - p)
    pull, curvature = np.zeros(r), np.empty((r, r))
    for j in range(r):
        total = 0.0
        for i in range(r + 1):
            pull[j] += E[j, i] - E[i, j]
            total += W[i, j] + W[j, i]
            if i < r:
                curvature[i, j] = W[i, j] + W[j, i]
        curvature[j, j] = -total
    return pull, curvature


@primitive(_logistic_pull_loop)
def logistic_pull(f: Array, plus: Ints, minus: Ints, y: Array, weight: float) -> tuple[Array, Array]:
    """Return the gradient (r,) of the log-likelihood of p logistic observations at the r scores `f` (r,), and the
    negative of its Hessian (r x r); the observations are as in `observe`, no two of the same pair."""
    at = np.zeros(f.size + 1)  # the last is the score of what is not there
    at[:-1] = f
    p = np.array([logistic(z) for z in (at[plus] - at[minus]).tolist()])
    E, W = np.zeros((2, at.size, at.size))
    E[plus, minus] = weight * (y - p)
    W[plus, minus] = -weight * p * (1.0 - p)
    # In C order, in which numpy adds up one row after the other.
    pull, curvature = np.add.reduce(np.subtract(E.T, E, order="C"), axis=0), np.add(W, W.T, order="C")
    np.fill_diagonal(curvature, -np.add.reduce(curvature, axis=0))
    return pull[:-1], curvature[:-1, :-1].copy()


@noinline
@kernel
def observe(m: Array, P: Array, Z: Array, plus: Ints, minus: Ints, y: Array, weight: float) -> None:
    """Take in, in place, the p logistic observations of an answer about the weights w ~ Normal(`m`, `P`).

    Observation i has the target `y`[i], from 0 to 1, and the log-odds z . w, where z is the row `plus`[i] of `Z` (r, D)
    less the row `minus`[i], none if that is -1; each counts as much as `weight` equal ones. `P` is as in
    `PosteriorState`. The mean becomes the mode, the covariance that of Laplace's approximation there.

    The scores f = Z w of the r rows are jointly Gaussian with the mean s and the covariance C, so all is computed for
    them, at a cost of r D^2 and a few r^3: the mode is f = s + C g(f) for the gradient g of the log-likelihood, and P
    becomes P - U' G U for U = Z P and G = (1 + W C)^-1 W, W the negative of its Hessian."""
    r = Z.shape[0]
    if r == 0:
        return
    U, C, M = np.empty(Z.shape), np.empty((r, r)), np.empty((r, r))
    if P.shape[0] > 1:
        times_symmetric(Z, P, U)
    else:
        U[:] = Z * P[0]
    product(U, Z.T.copy(), C)
    s = scores(Z, m)
    size = 0.0
    for i in range(r):
        size += C[i, i] + abs(s[i])
    if not 0.0 < size < math.inf:  # nothing to be learned, or nothing finite
        return
    f, pull = s, np.zeros(r)
    g, W = logistic_pull(f, plus, minus, y, weight)
    for _ in range(_MOST_STEPS):  # Newton's method for f = s + C pull, pull = g(f)
        product(C, W, M)
        for i in range(r):
            M[i, i] += 1.0
        step = g + scores(W, f - s)
        solve_rows(M, step.reshape(1, -1))
        step -= pull
        change = scores(C, step)
        slope = dot(pull - g, change)  # less the square of the distance from the mode, in standard deviations
        last = slope > -_CLOSE
        for _ in range(_MOST_STEPS):
            after = s + scores(C, pull + step)
            g, W = logistic_pull(after, plus, minus, y, weight)
            if dot(pull + step - g, change) <= _CLOSE - 0.5 * slope:
                break  # otherwise the step went too far beyond the mode, as where the likelihood is flat
            step, change, slope = 0.5 * step, 0.5 * change, 0.5 * slope
        f, pull = after, pull + step
        if last:  # a step squares the distance
            break
    product(C, W, M)
    for i in range(r):
        M[i, i] += 1.0
    G, V = W, np.empty(U.shape)
    solve_rows(M, G)
    product(G, U, V)
    add_rows(m, U, g, 1.0)
    if P.shape[0] > 1:
        add_symmetric_product(P, U, V, -0.5)
    else:
        P[0] -= np.sum(U * V, axis=0)
