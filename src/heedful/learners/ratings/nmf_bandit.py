"""NMF-Bandit (Sen et al., AISTATS 2017): explore now and then, otherwise follow a non-negative matrix factorisation
(NMF) of the ratings so far.

[A18]: Dadkhahi & Negahban, *Alternating Linear Bandits for Online Matrix-Factorization Recommendation*, 2018.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_between, check_count
from heedful.jit.kernel import Ints, kernel, noinline, primitive, top
from heedful.learners.ratings.baselines import best_items, row_scores, uniform
from heedful.learners.ratings.interaction_matrix import (
    InteractionMatrix,
    add_rating,
    empty_matrix,
    places_of,
    remove_item,
)
from heedful.spaces.slate import Slate, SlateContext, SlateRatings, WeightedRatings, check_slate

Array = npt.NDArray[np.float64]

TINY = 1e-9
"""the least value of a factor: a multiplicative update would never change a 0"""
UNBOUNDED = -1e40  # `Slate.low` is below this where no lowest rating is given


@declare(grows=True)
class NMFState(NamedTuple):
    """The state of `NMFBandit` for n users, m items and k factors: all ratings, and their factorisation U V'."""

    pairs: InteractionMatrix
    """the ratings so far"""
    U: Array
    """the users' factors, n x k"""
    V: Array
    """the items' factors, m x k"""
    low: float
    """the lowest rating possible, or the lowest so far where the space gives none"""
    users: int
    """the number of users with ratings"""
    seed: int
    """the seed of the initial factors and of the exploration sets"""
    t: int
    """number of rounds learned from"""


def _ratios_loop(count: Array, total: Array, low: float, f_index: Ints, g_index: Ints, F: Array, G: Array) -> Array:
    n, k = F.shape
    above, below = np.zeros((n, k)), np.zeros((n, k))
    for p in range(f_index.size):
        if count[p] > 0.0:
            x = total[p] / count[p] - low
            f, g = F[f_index[p]], G[g_index[p]]
            s = f[0] * g[0]
            for a in range(1, k):
                s += f[a] * g[a]
            up, down = above[f_index[p]], below[f_index[p]]
            for a in range(k):
                up[a] += x * g[a]
                down[a] += s * g[a]
    for i in range(n):
        for a in range(k):
            above[i, a] = above[i, a] / below[i, a] if below[i, a] > 0.0 else 1.0
    return above


@noinline
@primitive(_ratios_loop)
def ratios(count: Array, total: Array, low: float, f_index: Ints, g_index: Ints, F: Array, G: Array) -> Array:
    """Return the numbers (n x k) by which one multiplicative update multiplies `F` (n x k), to fit F G' to mean
    ratings.

    `F` and `G` (m x k) are the k non-negative factors of the n users and the m items, or of the n items and the m
    users. For a row f of F the ratios are (sum x g) / (sum (f . g) g), summed over the rated pairs of that user or
    item; g is the row of G of the other side of the pair, and x is the mean rating of the pair less `low`. A row
    without pairs has ratios of 1. `count` and `total` (number and sum of ratings), `f_index` (index of f) and `g_index`
    (index of g) are (P,), with an element for each of P pairs.
    """
    rated = count > 0.0
    f_index, g_index = f_index[rated], g_index[rated]
    x = total[rated] / count[rated] - low
    f, g = F[f_index], G[g_index]
    s = f[:, 0] * g[:, 0]
    for a in range(1, F.shape[1]):
        s = s + f[:, a] * g[:, a]
    above, below = np.zeros(F.shape), np.zeros(F.shape)
    np.add.at(above, f_index, x[:, None] * g)  # one after the other, as the loop does
    np.add.at(below, f_index, s[:, None] * g)
    return np.where(below > 0.0, above / np.where(below > 0.0, below, 1.0), 1.0)


@noinline
@kernel
def scale_factors(F: Array, by: Array) -> None:
    """Multiply `F` by `by` in place, both n x k; entries of F that would fall below 1e-9 (TINY) become 1e-9."""
    for i in range(F.shape[0]):
        for a in range(F.shape[1]):
            F[i, a] = max(F[i, a] * by[i, a], TINY)


@noinline
@kernel
def with_positive(F: Array, rows: int, seed: int, side: int) -> Array:
    """Return non-negative factors of at least `rows` users or items: `F` (n x k) itself if n is enough, else a longer
    copy.

    The new rows are uniform between 0 and 1, and depend only on `seed`, the index of the row and `side`, which is 0 for
    users and 1 for items.
    """
    n, k = F.shape
    if n >= rows:
        return F
    more = np.empty((max(rows, 2 * n), k))
    for i in range(more.shape[0]):
        for a in range(k):
            more[i, a] = F[i, a] if i < n else uniform(seed, i, 2 * a + side)
    return more


@noinline
@kernel
def exploration_set(seed: int, user: int, items: Ints, size: int) -> Ints:
    """Return the exploration set of the user with index `user`: `size` positions in `items` (the available items), at
    random, but the same in every call with the same `seed`."""
    chance = np.empty(items.size)
    for j in range(items.size):
        chance[j] = uniform(seed, -1 - user, items[j])
    return top(chance, min(size, items.size))


@declare(version=1, lesson_cost=5)
class NMFBandit(NamedTuple):
    """NMF-Bandit: Sen et al. 2017, as [A18] compares with it. Interaction: rating.

    In round t, with n users so far, it explores with probability min(1, theta n m' / t), m' = `explored`: with
    probability 1/2 uniformly over the user's own exploration set of m' of the available items, otherwise over all of
    them. If it does not explore, it shows argmax_j U_i . V_j, for the `n_factors` factors U_i of user i and V_j of item
    j; for a slate of more items, as `space` says, those with the highest values. After every `every` rounds, U V' is
    fitted to the mean rating of each pair of user and item, less the lowest rating possible, by `sweeps` multiplicative
    updates of U and of V over the rated pairs.
    """

    space: Slate = Slate()
    n_factors: int = 5
    theta: float = 0.1
    """how much to explore: a factor of the probability of exploring"""
    explored: int = 5
    """m', the number of items in every user's exploration set"""
    every: int = 50
    """the number of rounds from one fit to the next"""
    sweeps: int = 5
    """the number of multiplicative updates of U and of V in a fit"""

    def init(self, rng: np.random.Generator) -> NMFState:
        check_slate(self.space)
        check_count("n_factors", self.n_factors, most=1000)
        check_between("theta", self.theta, 0.0, 1e50)
        for name in ("explored", "every", "sweeps"):
            check_count(name, getattr(self, name))
        seed = int(rng.integers(2**62))
        k = self.n_factors
        U, V = with_positive(np.empty((0, k)), 64, seed, 0), with_positive(np.empty((0, k)), 64, seed, 1)
        low = float(self.space.low) if self.space.low > UNBOUNDED else 0.0
        return NMFState(empty_matrix(64, 64), U, V, low, 0, seed, 0)

    def exploration_probability(self, state: NMFState) -> float:
        """Return the probability, 0 to 1, that the next round explores."""
        return min(1.0, self.theta * max(state.users, 1) * self.explored / (state.t + 1.0))

    def propose(self, state: NMFState, x: SlateContext, rng: np.random.Generator) -> Ints:
        if rng.random() < self.exploration_probability(state):
            from_set = rng.random() < 0.5
            scores = rng.random(x.items.size)
            if from_set:
                for j in exploration_set(state.seed, x.user, x.items, self.explored):
                    scores[j] += 1.0
            return best_items(scores, x.items, self.space.size)
        return best_items(self.scores(state, x), x.items, self.space.size)

    def scores(self, state: NMFState, x: SlateContext) -> Array:
        """Return the predicted rating of each of the c items of the context `x` by its user, less `state.low`: (c,).

        `state.low` is the lowest possible rating or, if the space gives none, the lowest so far.
        """
        U = with_positive(state.U, x.user + 1, state.seed, 0)
        V = with_positive(state.V, x.items[-1] + 1, state.seed, 1)
        return row_scores(V, x.items, U[x.user])

    def ratings(self, state: NMFState, x: SlateContext) -> Array:
        return self.scores(state, x) + state.low

    def update(self, state: NMFState, x: SlateContext, y: Ints, feedback: SlateRatings | WeightedRatings) -> NMFState:
        U = with_positive(state.U, x.user + 1, state.seed, 0)
        V = with_positive(state.V, x.items[-1] + 1, state.seed, 1)
        pairs, low, users = state.pairs, state.low, state.users
        if places_of(pairs.by_user, x.user).size == 0:
            users += 1
        bounded = self.space.low > UNBOUNDED
        for r in range(feedback.items.size):
            rating = float(feedback.ratings[r])
            if not bounded:
                low = rating if pairs.used == 0 else min(low, rating)
            pairs = add_rating(pairs, x.user, int(feedback.items[r]), rating, float(feedback.weight(r)))
        if (state.t + 1) % self.every == 0:
            self.fit(pairs, low, U, V)
        return NMFState(pairs, U, V, low, users, state.seed, state.t + 1)

    def fit(self, pairs: InteractionMatrix, low: float, U: Array, V: Array) -> None:
        """Fit the k factors of n users, `U` (n x k), and of m items, `V` (m x k), by multiplicative updates, in place.

        U V' is fitted to the mean rating of each rated pair of user and item in `pairs`, less the rating `low`. There
        are `sweeps` updates of U and of V, by turns.
        """
        n = pairs.used
        count, total, user, item = pairs.count[:n], pairs.total[:n], pairs.user[:n], pairs.item[:n]
        for _ in range(self.sweeps):
            scale_factors(U, ratios(count, total, low, user, item, U, V))
            scale_factors(V, ratios(count, total, low, item, user, V, U))

    def without_item(self, state: NMFState, item: int) -> NMFState:
        """The item's factors are the initial ones again."""
        remove_item(state.pairs, item)
        if item < state.V.shape[0]:
            for a in range(self.n_factors):
                state.V[item, a] = uniform(state.seed, item, 2 * a + 1)
        return state._replace(users=int((state.pairs.by_user.size > 0).sum()))
