"""Particle Thompson sampling for matrix factorisation (Kawale et al., NIPS 2015).

Several particles, each a sample of all factors, are weighted by how well they predicted the ratings; each proposal is
made by one particle, drawn by weight.

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_between, check_count, check_positive
from heedful.jit.kernel import Ints, kernel, noinline
from heedful.learners.ratings.baselines import best_items, row_scores, uniform
from heedful.learners.ratings.interaction_matrix import (
    InteractionMatrix,
    add_rating,
    empty_matrix,
    places_of,
    remove_item,
)
from heedful.learners.ratings.ridge import cholesky, normals_of, ridge, solve_cholesky
from heedful.spaces.slate import Slate, SlateContext, SlateRatings, WeightedRatings, check_slate

Array = npt.NDArray[np.float64]


@declare(grows=True)
class PTSState(NamedTuple):
    """The state of `PTS` for D particles, n users, m items and k factors: all ratings, and the particles, samples of
    the factors of all users and items."""

    pairs: InteractionMatrix
    """the ratings so far"""
    U: Array
    """the users' factors in each particle, D x n x k"""
    V: Array
    """the items' factors in each particle, D x m x k"""
    log_weights: Array
    """the log of each particle's weight, up to a constant (D,)"""
    seed: int
    """the seed of the draws in `update`"""
    learned: int
    """number of ratings learned from"""
    t: int
    """number of rounds learned from"""


@noinline
@kernel
def posterior(
    pairs: InteractionMatrix, places: Ints, other: Ints, rows: Array, penalty: float, L: Array, mu: Array
) -> None:
    """Write the Gaussian conditional distribution N(mu, Lambda^-1) of the k factors of one user (or item), given the
    other side.

    mu is written into `mu` (k,), and the Cholesky factor L of sigma^2 Lambda = L L' into `L` (k x k, lower triangle);
    Lambda is the precision matrix, sigma the standard deviation of the noise of a rating. `places` (n,) are those of
    the user's (or item's) pairs among all `pairs`. `rows` (m x k) are the factors of the m items (or users) of the
    other side, and `other` has the index of the row for each pair. `penalty` is sigma^2 / spread^2, with the prior
    standard deviation spread of factors.
    """
    ridge(pairs, places, other, rows, penalty, L, mu)
    cholesky(L)
    solve_cholesky(L, mu)


@kernel
def copy_into(G: Array, h: Array, to_G: Array, to_h: Array) -> None:
    """Copy the lower triangle of `G` (k x k) into that of `to_G`, and `h` (k,) into `to_h`."""
    for a in range(h.size):
        to_h[a] = h[a]
        for b in range(a + 1):
            to_G[a, b] = G[a, b]


@noinline
@kernel
def draw_gaussian(mu: Array, L: Array, sigma: float, z: Array, out: Array) -> None:
    """Write a draw of k factors from N(mu, Lambda^-1) into `out` (k,): mu + sigma L'^-1 z.

    `z` (k,) are standard normal numbers, `mu` (k,) is the mean, and `L` (k x k, lower triangle) is the Cholesky factor
    of sigma^2 times the precision matrix: sigma^2 Lambda = L L'.
    """
    k = mu.size
    for a in range(k - 1, -1, -1):
        v = z[a]
        for b in range(a + 1, k):
            v -= L[b, a] * out[b]
        out[a] = v / L[a, a]
    for a in range(k):
        out[a] = mu[a] + sigma * out[a]


@noinline
@kernel
def with_factors(F: Array, rows: int, seed: int, scale: float) -> Array:
    """Return factors of at least `rows` users or items in each of D particles: `F` (D x n x k) itself if n is enough,
    else a longer copy.

    The factors in new rows are normal with mean 0 and standard deviation `scale`, and depend only on `seed`, the
    particle and the index of the row.
    """
    D, n, k = F.shape
    if n >= rows:
        return F
    more = np.empty((D, max(rows, 2 * n), k))
    factors = np.empty(k)
    for d in range(D):
        for i in range(more.shape[1]):
            if i < n:
                more[d, i] = F[d, i]
            else:
                normals_of(seed, i * D + d, factors)
                for a in range(k):
                    more[d, i, a] = scale * factors[a]
    return more


@noinline
@kernel
def systematic_resampling(log_weights: Array, start: float) -> Ints:
    """Return how many copies of each of D particles systematic resampling makes, (D,), from their `log_weights` (D,).

    The particles share the interval from 0 to 1 by weight, in order. The result is the number of the points (start + i)
    / D, i = 0..D-1, in the part of each; 0 <= `start` < 1 is a random number.
    """
    D = log_weights.size
    most, total = log_weights.max(), 0.0
    for d in range(D):
        total += math.exp(log_weights[d] - most)
    out = np.zeros(D, np.int64)
    i, so_far = 0, 0.0
    for d in range(D):
        so_far += math.exp(log_weights[d] - most) / total
        while i < D and ((start + i) / D < so_far or d == D - 1):
            out[d] += 1
            i += 1
    return out


@noinline
@kernel
def effective_sample_size(log_weights: Array) -> float:
    """Return the effective sample size of D particles, (sum w)^2 / sum w^2 for their weights w, from `log_weights`
    (D,)."""
    most, total, squares = log_weights.max(), 0.0, 0.0
    for d in range(log_weights.size):
        w = math.exp(log_weights[d] - most)
        total += w
        squares += w * w
    return total * total / squares


@declare(version=1, lesson_cost=60)
class PTS(NamedTuple):
    """Particle Thompson sampling: Kawale et al. 2015, as [A18] compares with it. Interaction: rating.

    A particle is a sample of the `n_factors` factors of all users and items; there are `n_particles`. Given a
    particle's item factors V, a user's factors are N(mu, Lambda^-1) with Lambda = I / spread^2 + sum c v v' / sigma^2
    and mu = Lambda^-1 sum s v / sigma^2, over the items with factors v that the user rated c times with sum s. To
    propose, it draws a particle by weight and u from this Gaussian, and shows argmax_j u . v_j; for a slate of more
    items, as `space` says, those with the highest values.

    After a rating of an item with factors v, each particle's weight is multiplied by N(rating; mu . v, sigma^2 + v'
    Lambda^-1 v). The particles are then resampled (systematic resampling): in every step, or (ours) only where the
    effective sample size is below `resample` times their number. Last, each particle draws the user's factors, and the
    item's factors given those of all its raters, from their conditionals (a Gibbs move). The regret bound of the paper
    holds only for rank 1.
    """

    space: Slate = Slate()
    n_factors: int = 5
    n_particles: int = 30
    sigma: float = 0.5
    """the standard deviation of the noise of a rating"""
    spread: float = 1.0
    """the prior standard deviation of the factors, the same for users and items"""
    resample: float = 1.0
    """resample where the effective sample size is below this share of the particles; 1, as in the paper: every step"""

    def init(self, rng: np.random.Generator) -> PTSState:
        check_slate(self.space)
        check_count("n_factors", self.n_factors, most=1000)
        check_count("n_particles", self.n_particles, most=100_000)
        check_positive("sigma", self.sigma)
        check_positive("spread", self.spread)
        check_between("resample", self.resample, 0.0, 1.0)
        seed = int(rng.integers(2**62))
        empty = np.empty((self.n_particles, 0, self.n_factors))
        U, V = with_factors(empty, 64, seed, 0.0), with_factors(empty, 64, seed, self.spread)
        return PTSState(empty_matrix(64, 64), U, V, np.zeros(self.n_particles), seed, 0, 0)

    def penalty(self) -> float:
        """Return sigma^2 / spread^2, the ridge penalty in the conditional distributions of factors."""
        return self.sigma * self.sigma / (self.spread * self.spread)

    def propose(self, state: PTSState, x: SlateContext, rng: np.random.Generator) -> Ints:
        return best_items(self.scores(state, x, rng), x.items, self.space.size)

    def scores(self, state: PTSState, x: SlateContext, rng: np.random.Generator) -> Array:
        """Return the score by which `propose` ranks each of the c items of the context `x`: (c,).

        A particle is drawn by weight, and then the user's factors given this particle, both with `rng`. The score of an
        item is the inner product of the drawn user factors and the item's factors in the particle.
        """
        k, D = self.n_factors, self.n_particles
        weights = state.log_weights
        most, total = weights.max(), 0.0
        for i in range(D):
            total += math.exp(weights[i] - most)
        remaining, d = rng.random() * total, 0
        while d < D - 1:
            remaining -= math.exp(weights[d] - most)
            if remaining < 0.0:
                break
            d += 1
        V = with_factors(state.V, x.items[-1] + 1, state.seed, self.spread)[d]
        pairs = state.pairs
        L, mu, u = np.empty((k, k)), np.empty(k), np.empty(k)
        posterior(pairs, places_of(pairs.by_user, x.user), pairs.item, V, self.penalty(), L, mu)
        draw_gaussian(mu, L, self.sigma, rng.standard_normal(k), u)
        return row_scores(V, x.items, u)

    def ratings(self, state: PTSState, x: SlateContext) -> Array:
        """It is the weighted mean over the particles of the inner product of the user's and the item's factors; 0 for a
        user without ratings."""
        V = with_factors(state.V, x.items[-1] + 1, state.seed, self.spread)
        U = with_factors(state.U, x.user + 1, state.seed, 0.0)
        weights = np.exp(state.log_weights - state.log_weights.max())
        out, total = np.zeros(x.items.size), 0.0
        for d in range(self.n_particles):
            out += weights[d] * row_scores(V[d], x.items, U[d, x.user])
            total += weights[d]
        return out / total

    def update(self, state: PTSState, x: SlateContext, y: Ints, feedback: SlateRatings | WeightedRatings) -> PTSState:
        V = with_factors(state.V, x.items[-1] + 1, state.seed, self.spread)
        U = with_factors(state.U, x.user + 1, state.seed, 0.0)
        state = PTSState(state.pairs, U, V, state.log_weights, state.seed, state.learned, state.t + 1)
        for r in range(feedback.items.size):
            rating, weight = float(feedback.ratings[r]), float(feedback.weight(r))
            state = self.learn_rating(state, x.user, int(feedback.items[r]), rating, weight)
        return state

    def learn_rating(self, state: PTSState, user: int, item: int, rating: float, weight: float) -> PTSState:
        """Return the state after one `rating` of `item` by `user`, which counts `weight` times. It may overwrite the
        arrays of `state`."""
        pairs, U, V, weights = state.pairs, state.U, state.V, state.log_weights
        k, D = self.n_factors, self.n_particles
        L, mu, z = np.empty((k, k)), np.empty(k), np.empty(2 * k)
        v = np.empty(k)
        rated = places_of(pairs.by_user, user)
        G, h = np.empty((D, k, k)), np.empty((D, k))  # sigma^2 Lambda, and the right-hand side sum s v
        for d in range(D):
            ridge(pairs, rated, pairs.item, V[d], self.penalty(), G[d], h[d])
            copy_into(G[d], h[d], L, mu)
            cholesky(L)
            solve_cholesky(L, mu)
            mean, q = 0.0, 0.0
            for a in range(k):  # v = L^-1 V_j, q = |v|^2
                w = V[d, item, a]
                mean += mu[a] * w
                for b in range(a):
                    w -= L[a, b] * v[b]
                v[a] = w / L[a, a]
                q += v[a] * v[a]
            var = self.sigma * self.sigma * (1.0 / weight + q)
            weights[d] += -0.5 * (math.log(var) + (rating - mean) * (rating - mean) / var)
        weights -= weights.max()
        pairs = add_rating(pairs, user, item, rating, weight)
        if effective_sample_size(weights) < self.resample * D:
            self.resample_particles(U, V, G, h, weights, uniform(state.seed, state.learned, 1))
        for d in range(D):
            # Keys from 2^40 on: those below belong to first factors
            normals_of(state.seed, 2**40 + state.learned * D + d, z)
            for a in range(k):  # the user's with this rating: one row more
                h[d, a] += weight * rating * V[d, item, a]
                for b in range(a + 1):
                    G[d, a, b] += weight * V[d, item, a] * V[d, item, b]
            cholesky(G[d])
            solve_cholesky(G[d], h[d])
            draw_gaussian(h[d], G[d], self.sigma, z[:k], U[d, user])
            posterior(pairs, places_of(pairs.by_item, item), pairs.user, U[d], self.penalty(), L, mu)
            draw_gaussian(mu, L, self.sigma, z[k:], V[d, item])
        return PTSState(pairs, U, V, weights, state.seed, state.learned + 1, state.t)

    def resample_particles(self, U: Array, V: Array, G: Array, h: Array, weights: Array, start: float) -> None:
        """Resample the D particles by weight, in place: particles that are drawn more than once overwrite those that
        are not drawn, and all weights become equal.

        The particles are the users' k factors `U`, the items' `V` and the user's regression sums `G` (D x k x k) and
        `h` (D x k); `weights` (D,) are log weights, and `start`, 0 to 1, is the offset of systematic resampling.
        """
        times = systematic_resampling(weights, start)
        weights[:] = 0.0
        d = 0
        for place in range(times.size):
            if times[place] == 0:
                while times[d] < 2:
                    d += 1
                times[d] -= 1
                U[place] = U[d]
                V[place] = V[d]
                copy_into(G[d], h[d], G[place], h[place])

    def without_item(self, state: PTSState, item: int) -> PTSState:
        """The item's factors are the initial ones again."""
        remove_item(state.pairs, item)
        if item < state.V.shape[1]:
            factors, D = np.empty(self.n_factors), self.n_particles
            for d in range(D):
                normals_of(state.seed, item * D + d, factors)
                for a in range(self.n_factors):
                    state.V[d, item, a] = self.spread * factors[a]
        return state
