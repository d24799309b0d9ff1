"""A Gaussian posterior over feature weights, moved by logistic observations: what our own learners have in common.

An answer becomes a few logistic observations sigma(z . w) of one weight vector w, which has a Gaussian posterior; they
move its mean to their joint mode, and its covariance to what Laplace's approximation is there (recursive Laplace:
Spiegelhalter & Lauritzen 1990). The prior follows the spread of the features.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.blas import (
    add_rank_one,
    add_symmetric_product,
    product,
    solve_rows,
    symmetric_times,
    times_symmetric,
)
from heedful.jit.kernel import Floats, Ints, add_rows, dot, kernel, logistic, noinline, primitive, scores

Array = npt.NDArray[np.float64]

MOST_FULL = 300
"""The number of features up to which covariances are kept; beyond it only variances."""
_FEW = 2.0  # the mean square of a feature counts like as many rows in its spread: a single pair tells little of that
_MOST_STEPS = 100  # of Newton's method; three or four are usual
_CLOSE = 1e-8
_BELIEVED = 3.0  # the prior scale that a learner begins with counts like as many weights that are known exactly
_LARGEST = 100.0  # times that scale it becomes at most
_CAREFUL = 0.2  # of the scale of the prior is where lists begin: a list says more of some weights than of others
_PRODUCTS = 0.1  # all products together have this share of the scale of the prior
_RENEWED = 1024  # at lists 1, 2, 4, ... up to this one the prior follows the spread of the features


class PosteriorState(NamedTuple):
    """A Gaussian over D weights: those of N features, and after them the effects that a learner has beside these."""

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
    """the mean features of what was judged by itself (N,)"""
    judged: int
    """number of such judgements"""
    rows: int
    """number of rows of features in all that was learned from"""
    t: int
    """number of rounds learned from"""


def first_state(
    base: Array, precision: Array, variances: Array, effects: Array, effect_variances: Array
) -> PosteriorState:
    """Return the state before the first answer, where each weight is independent of the others.

    The N feature weights have the prior means `base` (N,), which the space adds to those learned, the prior `precision`
    (N,) and at first the variances `variances` (N,); the effects have the means `effects` and `effect_variances`."""
    n = base.size
    diagonal = np.concatenate([variances, effect_variances])
    P = np.diag(diagonal) if n <= MOST_FULL else diagonal.reshape(1, -1)
    zeros = np.zeros(n)
    counts = zeros, zeros.copy(), zeros.copy()
    return PosteriorState(
        np.concatenate([base, effects]), P, base.copy(), precision, base, np.ones(n), *counts, 0, 0, 0
    )


@kernel
def prior_shares(n: int, products: int, lists: bool) -> Array:
    """Return the shares (n,) that n features have of the prior variance: 1, but less for the `products` before the last
    one, each of two others: there are many of them, most of which mean nothing. In `lists`, which begin with a fifth of
    the prior, products begin with all of theirs: with a fifth of a tenth they are found too late."""
    shares = np.ones(n)
    if products > 0:
        shares[n - 1 - products : n - 1] = _PRODUCTS / (_CAREFUL if lists else 1.0) * (n - products) / products
    return shares


@kernel
def list_mean(X: Floats) -> Array:
    """Return the mean of the m rows of `X` (m, N), of N features (N,)."""
    mean = np.zeros(X.shape[1])
    add_rows(mean, X, np.full(X.shape[0], 1.0 / X.shape[0]), 1.0)
    return mean


def _add_squares_loop(squares: Array, sizes: Array, X: Floats, mean: Array) -> None:
    n = mean.size
    around, whole = np.zeros(n), np.zeros(n)
    for i in range(X.shape[0]):
        for j in range(n):
            x = np.float64(X[i, j])
            away = x - mean[j]
            around[j] += 0.0 if abs(away) <= 1e-12 * abs(mean[j]) else away * away
            whole[j] += x * x
    for j in range(n):
        squares[j] += around[j]
        sizes[j] += whole[j]


@primitive(_add_squares_loop)
def add_squares(squares: Array, sizes: Array, X: Floats, mean: Array) -> None:
    """Add the sum of the squared differences of the m rows of `X` (m, N) from their `mean` (N,) to `squares` (N,), and
    that of their squares to `sizes` (N,), in place; a difference of less than 1e-12 of the mean is rounding, and counts
    0."""
    X = X.astype(np.float64, copy=False)
    away = X - mean
    away[np.abs(away) <= 1e-12 * np.abs(mean)] = 0.0
    # Side by side: numpy adds rows one after the other, but a single column pairwise.
    found = np.add.reduce(np.concatenate((away * away, X * X), axis=1), axis=0)
    squares += found[: mean.size]
    sizes += found[mean.size :]


@kernel
def squared_spread(state: PosteriorState, j: int, rows: int) -> float:
    """Return the squared spread of feature j in `rows` rows, by which its prior goes."""
    return float((state.squares[j] + _FEW * state.sizes[j] / rows) / (rows + _FEW))


@noinline
@kernel
def fitted_scale(state: PosteriorState, rows: int, scale: float, shares: Array) -> float:
    """Return the variance that the weights were drawn with as it seems by now, where `scale` was expected, if that is
    more; where answers say little of most weights it would be less, and these are learned too late then.

    It is the sum of their squares, in units of their prior variances for the scale 1, over the number of weights that
    the answers determine, sum of 1 - posterior variance / prior variance (MacKay, Bayesian interpolation, 1992), with
    `_BELIEVED` weights more of what was expected."""
    total, squares, known = 0.0, 0.0, 0.0
    for j in range(shares.size):
        v = state.P[j, j] if state.P.shape[0] > 1 else state.P[0, j]
        new = squared_spread(state, j, rows)
        if state.squares[j] > 0.0 and state.base[j] == 0.0 and v > 0.0 and new < math.inf:
            total += shares[j]
            squares += state.m[j] * state.m[j] * new / shares[j]
            known += max(1.0 - v * state.precision[j], 0.0)
    found = (total * squares + _BELIEVED * scale) / (known + _BELIEVED)
    return min(max(found, scale), scale * _LARGEST)


@noinline
@kernel
def renew_prior(state: PosteriorState, X: Floats, mean: Array, scale: float, shares: Array, fitted: bool) -> int:
    """Take in the spread of the m candidates `X` (m, N) around their `mean` (N,), N features; at lists 1, 2, 4, ...,
    1024 let the prior follow the spread so far: the features that differ within lists divide the prior variance by
    their `shares` (N,), and each has its part of it divided by its squared spread. The variance is `scale` or, if it
    is `fitted` to the weights so far, a fifth of that or more. Return the number of candidates in all lists.

    That is exact: the posterior becomes what the same answers would have made of the other prior. A feature whose
    spread is unknown or not finite keeps its prior."""
    m, P, spread = state.m, state.P, state.spread
    add_squares(state.squares, state.sizes, X, mean)
    rows: int = state.rows + X.shape[0]
    t = state.t + 1
    if t > _RENEWED or t & (t - 1):
        return rows
    unit, v, full, differing = np.zeros(m.size), np.zeros(m.size), P.shape[0] > 1, 0.0
    for j in range(mean.size):
        differing += shares[j] if state.squares[j] > 0.0 and state.base[j] == 0.0 else 0.0
    if fitted:
        scale = fitted_scale(state, rows, _CAREFUL * scale, shares)
    for j in range(mean.size):
        new = squared_spread(state, j, rows)
        if not (0.0 < state.squares[j] and new < math.inf) or (P[j, j] if full else P[0, j]) == 0.0:
            continue
        before, precision = state.precision[j], new if state.base[j] else differing / scale * new / shares[j]
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
def follow_usual(state: PosteriorState, step: Array, first: int) -> None:
    """Move what is usual by the first N of `step` (D,), in place, and with it the intercepts, the weights from index
    `first` on, so that the log-odds of w . (z - usual) + intercept stay the same for all features z."""
    m, P, n = state.m, state.P, state.usual.size
    step[n:] = 0.0
    state.usual[:] += step[:n]
    m[first:] += dot(step, m)
    if P.shape[0] > 1 and first < m.size:
        v = np.zeros(m.size)
        symmetric_times(P, step, v)
        own = dot(step, v)
        for i in range(first, m.size):
            P[i, :first] += v[:first]
            for j in range(first, i + 1):
                P[i, j] += v[i] + v[j] + own


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
    C, M = np.empty((r, r)), np.empty((r, r))
    if P.shape[0] > 1:
        U = np.empty(Z.shape)
        times_symmetric(Z, P, U)
    else:
        U = Z * P[0]
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
        V *= U
        P[0] -= np.sum(V, axis=0)
