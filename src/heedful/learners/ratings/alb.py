"""Alternating linear bandits ([A18]): learn user and item factors online, with a linear bandit for every user.

The actions of a user's bandit are the item factors; the item factors are ridge regressions on the user factors. The two
are updated in turn, and need no factors to begin with.

[A18] is Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018; [A11]
Abbasi-Yadkori, Pal & Szepesvari, *Improved Algorithms for Linear Stochastic Bandits*, 2011, whose bandit OFUL, in its
rarely switching version, is an option.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_between, check_count, check_positive, describe, is_number
from heedful.jit.kernel import Ints, kernel, no_refcount, noinline, top
from heedful.learners.ratings.interaction_matrix import (
    InteractionMatrix,
    add_rating,
    empty_matrix,
    places_of,
    remove_item,
    users_of,
)
from heedful.learners.ratings.rarely_switching import column_scores, grow_by_user, inverse_from_root, rank_one_update
from heedful.learners.ratings.ridge import (
    cholesky,
    invert_triangle,
    most_optimistic,
    normals_of,
    optimistic,
    ridge,
    solve_cholesky,
    with_items,
    with_users,
)
from heedful.spaces.slate import MOST, Slate, SlateContext, SlateRatings, check_slate

Array = npt.NDArray[np.float64]


@declare(grows=True)
class ALBState(NamedTuple):
    """The state of `ALB` for n users, m items and k factors; k is at least 4, padded with columns of 0."""

    pairs: InteractionMatrix
    """the ratings so far"""
    A: Array
    """the users' optimistic factors A_i, n x k"""
    B: Array
    """the items' factors B_j, m x k"""
    columns: Array
    """B transposed, k x m: faster to score all items with"""
    inverse: Array
    """For each user V^-1, the inverse of V = lambda I + sum of B_j B_j' over their ratings, updated with every rating
    since A_i was last computed, n x k x k; 0 x k x k if factors are computed at every rating (`ALB.switching` = 0)."""
    growth: Array
    """For each user (n,) the log of the factor by which det V (see `inverse`) grew since their factors A_i were last
    computed; infinite if these must be computed at the next rating. (0,) if factors are computed at every rating
    (`ALB.switching` = 0)."""
    seed: int
    """the seed of the initial item factors"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=5)
class ALB(NamedTuple):
    """Alternating linear bandits: [A18] Algorithm 1. Interaction: rating.

    `space` says how many items a slate shows, and `n_factors` is the number of factors. For user i, with item factors
    B_j, V = lambda I + sum c_ij B_j B_j' and mu = V^-1 sum s_ij B_j, summed over the items j that i rated; c_ij is the
    number of these ratings, s_ij their sum, and lambda is `penalty`. The history that lines 16 and 18 of the algorithm
    rewrite enters only through c and s, so the cost of a step does not grow with the number of rounds.

    Proposes argmax_j mu . B_j + c |V^-1/2 B_j| (Eq. 6), with the radius c of the confidence ellipsoid; for a slate of
    k, the k items with the highest such values. After a rating of item j it stores the user's optimistic factors A_i =
    mu + c V^-1 B_j / |V^-1/2 B_j| (Eq. 7), then sets B_j to the ridge regression of all ratings of j on the A of its
    users (Eq. 8). Line 16 of the algorithm must also write the row of the present round, and must write the optimistic
    vector: with mu instead, or without that row, the model collapses to 0. Several ratings of one slate are learned one
    after the other.

    With `switching` C > 0, A_i is computed by Eq. 6 and 7 only after det V has grown by a factor of more than 1 + C
    since the last time. Until then A_i is kept, and argmax_j A_i . B_j is shown ([A11] section 5.1, rarely switching
    OFUL). det V is then updated with B_j as it was when rated; later changes of B_j count at the next switch.

    Adding a constant to all ratings changes the proposals. No regret bound is known.
    """

    space: Slate = Slate()
    n_factors: int = 5
    penalty: float = 1.0
    """lambda, the ridge penalty, the same for users and items"""
    sigma: float = 0.4
    """the standard deviation of the noise of a rating"""
    delta: float = 0.01
    """the probability that the confidence set does not contain the true factors"""
    s: float = 1.0
    """an upper bound of the length of a user's true factors"""
    spread: float = 1.0
    """sigma_2, the standard deviation of the initial item factors"""
    switching: float = 0.0
    """C: the determinant of a user's matrix V must grow by a factor of more than 1 + C before the user's factors are
    computed again; 0: at every rating"""
    n_users: int = 64
    """the number of users that the initial arrays have room for; the arrays grow"""
    n_items: int = 64
    """the number of items that the initial arrays have room for; the arrays grow"""

    def init(self, rng: np.random.Generator) -> ALBState:
        check_slate(self.space)
        check_count("n_factors", self.n_factors, most=1000)
        check_count("n_users", self.n_users, most=MOST)
        check_count("n_items", self.n_items, most=MOST)
        for name in ("penalty", "sigma", "spread"):
            check_positive(name, getattr(self, name))
        if not is_number(self.delta, float) or not 1e-300 <= self.delta < 1.0:
            raise ValueError(f"delta: expected a number between 0 and 1, got {describe(self.delta)}")
        check_between("s", self.s, 0.0, 1e50)
        check_between("switching", self.switching, 0.0, 1e50)
        seed = int(rng.integers(2**62))
        k = max(self.n_factors, 4)
        columns = with_items(np.zeros((k, 0)), seed, self.spread, self.n_factors, self.n_items)
        A = np.zeros((self.n_users, k))
        rarely = self.n_users if self.switching > 0 else 0
        inverse, growth = np.zeros((rarely, k, k)), np.full(rarely, np.inf)
        return ALBState(
            empty_matrix(self.n_users, self.n_items), A, columns.T.copy(), columns, inverse, growth, seed, 0
        )

    def propose(self, state: ALBState, x: SlateContext, rng: np.random.Generator) -> Ints:
        return best_slate(self, state, x)

    def update(self, state: ALBState, x: SlateContext, y: Ints, feedback: SlateRatings) -> ALBState:
        return learn_slate(self, state, x, feedback)

    def scores(self, state: ALBState, x: SlateContext) -> Array:
        """Return the number by which `propose` ranks each of the c items of the context `x`: (c,).

        It is the upper confidence bound of the rating (Eq. 6). With `switching`, while the user's factors A_i are kept,
        it is the inner product A_i . B_j with the factors B_j of item j.
        """
        if not is_due(self, state, x.user):
            return column_scores(catalogue(self, state, x), x.items, state.A[x.user])
        mu, inverse, c = ellipsoid(self, state, x.user)
        return optimistic(catalogue(self, state, x), x.items, mu, inverse, c)

    def ratings(self, state: ALBState, x: SlateContext) -> Array:
        """It is the inner product of the user's factors and the item's; 0 for a user without ratings."""
        A = with_users(state.A, x.user + 1)
        ratings: Array = np.dot(A[x.user], catalogue(self, state, x)[:, x.items])
        return ratings

    def without_item(self, state: ALBState, item: int) -> ALBState:
        """The item's factors are the initial ones again."""
        users = users_of(state.pairs, item)
        state.growth[users[users < state.growth.size]] = np.inf  # their factors are due
        remove_item(state.pairs, item)
        if item < len(state.B):
            first = np.zeros(self.n_factors)
            normals_of(state.seed, item, first)
            state.B[item, : first.size] = state.columns[: first.size, item] = self.spread * first
        return state


@noinline
@no_refcount
@kernel
def fit_ellipsoid(learner: ALB, state: ALBState, rated: Ints, L: Array, mu: Array) -> float:
    """Compute the confidence ellipsoid of the k factors of a user, whose pairs are at the positions `rated` (n,), and
    return its radius c (Eq. 3, 4).

    Its centre is written into `mu` (k,), and the Cholesky factor L of its matrix V = L L' into `L` (k x k, lower
    triangle); V is `penalty` times the identity plus the sum of B_j B_j' over the user's ratings, B_j being the factors
    of the rated item.
    """
    ridge(state.pairs, rated, state.pairs.item, state.B, learner.penalty, L, mu)
    cholesky(L)
    solve_cholesky(L, mu)
    growth = 0.0  # log (det V / det lambda I) / 2
    for a in range(mu.size):
        growth += math.log(L[a, a] / math.sqrt(learner.penalty))
    c = learner.sigma * math.sqrt(2.0 * max(growth - math.log(learner.delta), 0.0))
    return c + math.sqrt(learner.penalty) * learner.s


@kernel
def ellipsoid(learner: ALB, state: ALBState, user: int) -> tuple[Array, Array, float]:
    """Return the confidence ellipsoid of the k factors of the user with index `user`: (centre (k,), L^-1 (k x k),
    radius).

    L is the lower Cholesky factor of the ellipsoid's matrix V = L L' (see `fit_ellipsoid`).
    """
    k = state.A.shape[1]
    L, mu, inverse = np.zeros((k, k)), np.zeros(k), np.zeros((k, k))
    c = fit_ellipsoid(learner, state, places_of(state.pairs.by_user, user), L, mu)
    invert_triangle(L, inverse)
    return mu, inverse, c


@kernel
def is_due(learner: ALB, state: ALBState, user: int) -> bool:
    """Return True if the factors of the user with index `user` must be computed again.

    They always must if the learner's `switching` is 0. Otherwise they must for a new user, or when the determinant of
    the matrix V (`ALBState.inverse`) has grown by a factor of more than 1 + `switching` since they were last computed.
    """
    if learner.switching <= 0.0 or user >= state.growth.size:
        return True
    return bool(state.growth[user] > math.log1p(learner.switching))


@kernel
def catalogue(learner: ALB, state: ALBState, x: SlateContext) -> Array:
    """Return the k factors of all m items as columns (k x m), with initial factors for the items of the context `x`
    that are new."""
    return with_items(state.columns, state.seed, learner.spread, learner.n_factors, x.items[-1] + 1)


@noinline
@kernel
def best_slate(learner: ALB, state: ALBState, x: SlateContext) -> Ints:
    """Return the indices of the items of the context `x` with the highest upper confidence bounds, best first: as many
    as the learner's slate has, or all if there are fewer."""
    columns = catalogue(learner, state, x)
    if not is_due(learner, state, x.user):
        scores = column_scores(columns, x.items, state.A[x.user])
        return x.items[top(scores, min(learner.space.size, scores.size))]
    mu, inverse, c = ellipsoid(learner, state, x.user)
    if learner.space.size == 1:
        best = most_optimistic(columns, x.items, mu, inverse, c)
        return x.items[best : best + 1].copy()
    scores = optimistic(columns, x.items, mu, inverse, c)
    return x.items[top(scores, min(learner.space.size, scores.size))]


@noinline
@kernel
def learn_slate(learner: ALB, state: ALBState, x: SlateContext, feedback: SlateRatings) -> ALBState:
    """Return the state after the ratings `feedback` of one round in the context `x`. It may overwrite the arrays of
    `state`."""
    k = state.A.shape[1]
    columns = catalogue(learner, state, x)
    B = state.B
    if B.shape[0] < columns.shape[1]:
        B = np.empty((columns.shape[1], k))
        for j in range(B.shape[0]):
            for a in range(k):
                B[j, a] = columns[a, j]
    inverse, growth = state.inverse, state.growth
    if learner.switching > 0.0 and growth.size <= x.user:
        inverse, growth = grow_by_user(inverse, growth, x.user + 1)
    A = with_users(state.A, x.user + 1)
    state = ALBState(state.pairs, A, B, columns, inverse, growth, state.seed, state.t + 1)
    for r in range(feedback.items.size):
        pairs = learn_rating(learner, state, x.user, feedback.items[r], feedback.ratings[r], feedback.weight(r))
        state = ALBState(pairs, A, B, columns, inverse, growth, state.seed, state.t)
    return state


@noinline
@kernel
def learn_rating(
    learner: ALB, state: ALBState, user: int, item: int, rating: float, weight: float
) -> InteractionMatrix:
    """Learn one `rating` of `item` by `user` (indices), which counts `weight` times, and return the matrix of ratings
    with it.

    The user's factors in `state.A` and the item's in `state.B` and `state.columns` are updated in place.
    """
    A, B = state.A, state.B
    k = A.shape[1]
    if is_due(learner, state, user):
        L, mu = np.zeros((k, k)), np.zeros(k)
        c = fit_ellipsoid(learner, state, places_of(state.pairs.by_user, user), L, mu)
        v = B[item].copy()
        solve_cholesky(L, v)  # V^-1 B_j
        norm = 0.0
        for a in range(k):
            norm += v[a] * B[item, a]
        norm = math.sqrt(max(norm, 0.0))  # |V^-1/2 B_j|
        for a in range(k):
            A[user, a] = mu[a] + (c * v[a] / norm if norm > 0.0 else 0.0)  # Eq. 7, lines 11 and 16
        if learner.switching > 0.0:
            state.growth[user] = 0.0
            inverse_from_root(L, state.inverse[user])
    if learner.switching > 0.0:
        state.growth[user] += math.log(rank_one_update(state.inverse[user], math.sqrt(weight) * B[item]))
    pairs = add_rating(state.pairs, user, item, rating, weight)
    fit_item(learner, pairs, A, B, state.columns, item)
    return pairs


@noinline
@kernel
def fit_item(learner: ALB, pairs: InteractionMatrix, A: Array, B: Array, columns: Array, item: int) -> None:
    """Set the k factors B_j of the item j = `item` to the ridge regression of its ratings in `pairs` on its users'
    factors `A` (Eq. 8, lines 17 and 18), in place in `B` (m x k; m items) and `columns` (k x m)."""
    k = A.shape[1]
    V, v = np.zeros((k, k)), np.zeros(k)
    ridge(pairs, places_of(pairs.by_item, item), pairs.user, A, learner.penalty, V, v)
    cholesky(V)
    solve_cholesky(V, v)
    for a in range(k):
        B[item, a] = columns[a, item] = v[a]
