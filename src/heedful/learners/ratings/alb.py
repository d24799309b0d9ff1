"""Alternating linear bandits, [A18]: a linear bandit for every user, whose actions are the items' factors, and a ridge
regression for every item on the users' factors; each feeds the other, from nothing.

[A18] is Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018; [A11]
Abbasi-Yadkori, Pal & Szepesvari, *Improved Algorithms for Linear Stochastic Bandits*, 2011, whose rarely switching OFUL
is an option.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, check_positive, describe, is_number
from heedful.jit.kernel import Ints, kernel, no_refcount, noinline, top
from heedful.learners.ratings.interaction_matrix import (
    InteractionMatrix,
    add_rating,
    empty_matrix,
    place_of,
    remove_item,
    remove_rating,
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


class ALBState(NamedTuple):
    """The ratings; the users' optimistic factors and the items' factors, the latter also transposed, for the scores of
    all; what the first factors are drawn by; how many rounds were learned from. With fewer than four factors, columns
    of 0 make up four.

    Of a learner that switches rarely also, of every user, V^-1 as it was when A_i was found, with what was rated since,
    and the log of how much det V grew meanwhile, infinite where A_i is to be found anew; else there are none of them.
    """

    pairs: InteractionMatrix
    A: Array  # n x k
    B: Array  # m x k
    columns: Array  # k x m
    inverse: Array  # n x k x k
    growth: Array  # n
    seed: int
    t: int

    @property
    def grows(self) -> bool:
        """Whether its arrays become longer: they do, as users and items arrive."""
        return True


class ALB(NamedTuple):
    """Alternating linear bandits: [A18] Algorithm 1. Interaction: rating.

    For user i, V = lambda I + sum c_ij B_j B_j', mu = V^-1 sum s_ij B_j over the items j that i rated c_ij times with
    sum s_ij: the history that lines 16 and 18 rewrite is no more than these two numbers, so a step does not grow with
    t. Shows argmax mu . B_j + c |V^-1/2 B_j| (Eq. 6), on a slate the best few; stores the optimistic
    A_i = mu + c V^-1 B_j / |V^-1/2 B_j| (Eq. 7) for the item rated, and then B_j = the ridge regression of the ratings
    of j on its users' A (Eq. 8). Line 16 must write the row of the present round, too, and the optimistic vector: with
    mu, or without that row, the model collapses to 0. The several ratings of a slate are learned one after the other.

    With `switching` C above 0 a user's A_i is found by Eq. 6 and 7 only where det V grew by more than 1 + C since it
    last was; until then it stays as it is, and argmax A_i . B_j is shown ([A11] section 5.1, rarely switching OFUL).
    det V then grows by the rows B_j as they were when rated: what others change of them counts at the next switch.

    Not invariant to a shift of the ratings. No bound is known.
    """

    space: Any = Slate()
    n_factors: int = 5
    penalty: float = 1.0
    """lambda, of users and items alike"""
    sigma: float = 0.4
    """how noisy ratings are"""
    delta: float = 0.01
    """the probability that the confidence set misses"""
    s: float = 1.0
    """a bound of |A_i|"""
    spread: float = 1.0
    """sigma_2, the standard deviation of the first factors of items"""
    switching: float = 0.0
    """C: how much det V grows before a user's factors are found anew; 0: they are in every round"""
    n_users: int = 64
    """room to begin with, as of items: both grow"""
    n_items: int = 64

    @property
    def version(self) -> int:
        """The version of the fold: raised with every change of what it computes."""
        return 1

    def init(self, rng: np.random.Generator) -> ALBState:
        check_slate(self.space)
        check_count("n_factors", self.n_factors, most=1000)
        check_count("n_users", self.n_users, most=MOST)
        check_count("n_items", self.n_items, most=MOST)
        for name in ("penalty", "sigma", "spread"):
            check_positive(name, getattr(self, name))
        if not is_number(self.delta, float) or not 1e-300 <= self.delta < 1.0:
            raise ValueError(f"delta: expected a number between 0 and 1, got {describe(self.delta)}")
        if not is_number(self.s, int, float) or not 0.0 <= self.s <= 1e50:
            raise ValueError(f"s: expected a number from 0 to 1e50, got {describe(self.s)}")
        if not is_number(self.switching, int, float) or not 0.0 <= self.switching <= 1e50:
            raise ValueError(f"switching: expected a number from 0 to 1e50, got {describe(self.switching)}")
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
        """What it shows by: how optimistic one may be of each item on offer (c,); A_i . B_j until it switches."""
        if not is_due(self, state, x.user):
            return column_scores(catalogue(self, state, x), x.items, state.A[x.user])
        mu, inverse, c = ellipsoid(self, state, x.user)
        return optimistic(catalogue(self, state, x), x.items, mu, inverse, c)

    def ratings(self, state: ALBState, x: SlateContext) -> Array:
        """A_i . B_j for each item on offer (c,): 0 for a user that nothing is known of."""
        A = with_users(state.A, x.user + 1)
        ratings: Array = np.dot(A[x.user], catalogue(self, state, x)[:, x.items])
        return ratings

    def without_rating(self, state: ALBState, user: int, item: int, rating: float, weight: float = 1.0) -> ALBState:
        """The state without one rating; owns `state`. LookupError where the user never rated the item.

        Counts and sums are then what they were without it, and the factors of the item are fitted afresh. Other factors
        were learned after it: *as if never seen* is to fold the log again.
        """
        if place_of(state.pairs, user, item) < 0:
            raise LookupError(f"item: expected one that user {user} rated, got {item}")
        remove_rating(state.pairs, user, item, rating, weight)
        _mark_due(state, [user])
        return _refit(self, state, [item])

    def without_item(self, state: ALBState, item: int) -> ALBState:
        """The state without an item: all its ratings; its factors are the first again."""
        _mark_due(state, users_of(state.pairs, item).tolist())
        remove_item(state.pairs, item)
        return _refit(self, state, [item])


@noinline
@no_refcount
@kernel
def fit_ellipsoid(learner: ALB, state: ALBState, user: int, L: Array, mu: Array) -> float:
    """The ellipsoid of a user's factors: V = L L' into L (k x k, lower), mu (k,); its radius c (Eq. 3, 4)."""
    pairs = state.pairs
    first = pairs.of_user[user] if user < pairs.of_user.size else -1
    ridge(pairs, first, pairs.after_user, pairs.item, state.B, learner.penalty, L, mu)
    cholesky(L)
    solve_cholesky(L, mu)
    growth = 0.0  # log (det V / det lambda I) / 2
    for a in range(mu.size):
        growth += math.log(L[a, a] / math.sqrt(learner.penalty))
    c = learner.sigma * math.sqrt(2.0 * max(growth - math.log(learner.delta), 0.0))
    return c + math.sqrt(learner.penalty) * learner.s


@kernel
def ellipsoid(learner: ALB, state: ALBState, user: int) -> tuple[Array, Array, float]:
    """mu (k,), L^-1 (k x k) and c of `fit_ellipsoid`: what the scores of a catalogue need."""
    k = state.A.shape[1]
    L, mu, inverse = np.zeros((k, k)), np.zeros(k), np.zeros((k, k))
    c = fit_ellipsoid(learner, state, user, L, mu)
    invert_triangle(L, inverse)
    return mu, inverse, c


@kernel
def is_due(learner: ALB, state: ALBState, user: int) -> bool:
    """Whether a user's factors are to be found anew."""
    if learner.switching <= 0.0 or user >= state.growth.size:
        return True
    return bool(state.growth[user] > math.log1p(learner.switching))


@kernel
def catalogue(learner: ALB, state: ALBState, x: SlateContext) -> Array:
    """Factors of all items on offer, k x m, also of those that nothing was learned of."""
    return with_items(state.columns, state.seed, learner.spread, learner.n_factors, x.items[-1] + 1)


@noinline
@kernel
def best_slate(learner: ALB, state: ALBState, x: SlateContext) -> Ints:
    """The numbers of the best items on offer, best first."""
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
    """The state after the ratings of one round; owns `state`."""
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
    """The pairs with one rating more, which counts for `weight`; A_i and B_j learn from it, in place."""
    A, B = state.A, state.B
    k = A.shape[1]
    if is_due(learner, state, user):
        L, mu = np.zeros((k, k)), np.zeros(k)
        c = fit_ellipsoid(learner, state, user, L, mu)
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
    """B_j = the ridge regression of the ratings of j on its users' A (Eq. 8, lines 17 and 18), in place."""
    k = A.shape[1]
    V, v = np.zeros((k, k)), np.zeros(k)
    ridge(pairs, pairs.of_item[item], pairs.after_item, pairs.user, A, learner.penalty, V, v)
    cholesky(V)
    solve_cholesky(V, v)
    for a in range(k):
        B[item, a] = columns[a, item] = v[a]


def _mark_due(state: ALBState, users: list[int]) -> None:
    """Find the factors of these users anew when they come again."""
    state.growth[[user for user in users if user < state.growth.size]] = np.inf


def _refit(learner: ALB, state: ALBState, items: list[int]) -> ALBState:
    """The state with the factors of these items fitted to what is left of their ratings; else drawn, as at first."""
    for item in items:
        if users_of(state.pairs, item).size:
            fit_item(learner, state.pairs, state.A, state.B, state.columns, item)
        elif item < len(state.B):
            first = np.zeros(learner.n_factors)
            normals_of(state.seed, item, first)
            state.B[item, : first.size] = state.columns[: first.size, item] = learner.spread * first
    return state
