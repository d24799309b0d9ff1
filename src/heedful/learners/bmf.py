"""Bayesian factors of ratings, ours: a rating is what the item gets of all, what the user gives to all, what their
factors agree on, and what this user thinks of this item alone. A Gaussian for every row, all variances learned."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.doors import describe, is_number, wanted_count
from heedful.gaussians import PULL, Rows, beliefs, entered, of_prior, places_of, row_sums, with_rows
from heedful.kernel import Ints, apart, kernel
from heedful.learners.simple_ratings import best, wanted_pair
from heedful.pairs import Pairs, items_of, longer, no_pairs, place_of, rated, unlinked, unrated, users_of
from heedful.ridge import cholesky, drawn
from heedful.spaces_offers import Offer, Rated, Slate, wanted_slate

Array = npt.NDArray[np.float64]

MEMORY = 0.999
"""How much of its score a preset keeps from one rating to the next."""
CERTAIN = 0.01
"""Of items that may all be as good as the best rating there ever was, the most certain is shown."""
# Of the variance of the ratings, before anything is known; and for how many observations that counts.
NOISE, PAIR, ITEM, USER, FACTOR = 0.1, 0.4, 0.2, 0.2, 0.1
TRUST = 5.0


class Preset(NamedTuple):
    """One of the models that are learned at once; hyper: the variance of noise, of pairs, of items' biases, the mean of
    those, the variances of a user's bias and factors (4 + K,); score: how well it foretold, log likelihood."""

    users: Rows
    items: Rows
    hyper: Array
    score: float


class BMFState(NamedTuple):
    """The ratings; within each pair the squares about its mean (P,); of all ratings how many, mean, squares about it,
    the squares within pairs, how many came again, the first, the highest (7,); the models; what first factors are drawn
    by; rounds learned."""

    pairs: Pairs
    spread: Array
    facts: Array
    plain: Preset
    factored: Preset
    seed: int
    t: int

    @property
    def grows(self) -> bool:
        """Its arrays become longer as users and items arrive."""
        return True


# ---------------------------------------------------------------------------- a model learns


@apart
@kernel
def user_row(pairs: Pairs, model: Preset, user: int, origin: float) -> None:
    """Infer the row of a user from their pairs, in place; without any, it is forgotten."""
    users, items, hyper = model.users, model.items, model.hyper
    K = users.mean.shape[1]
    places = places_of(int(pairs.of_user[user]), pairs.after_user)
    A, h = np.empty((K, K)), np.empty(K)
    row_sums(places, pairs, pairs.item, items.mean, items.cov, hyper, origin, A, h)
    known = 1.0 if A[0, 0] > 0.0 else 0.0
    of_prior(users, user, 1.0 / hyper[4:], np.zeros(K), A, h)
    n = missed = inverse = 0.0
    if known > 0.0:
        rated_items = pairs.item[places]
        mean, var = np.empty(places.size), np.empty(places.size)
        beliefs(items.mean, items.cov, items.adds, rated_items, users.mean[user], users.cov[user], hyper, mean, var)
        for i in range(places.size):
            c = pairs.count[places[i]]
            if c > 0.0:
                e = pairs.total[places[i]] / c - origin - mean[i]
                n += 1.0
                missed += e * e + var[i]
                inverse += 1.0 / c
    entered(users, user, known, n, missed, inverse)


@apart
@kernel
def item_row(pairs: Pairs, model: Preset, item: int, origin: float, seed: int) -> None:
    """Infer the row of an item from its pairs, in place; without any, it is forgotten."""
    users, items, hyper = model.users, model.items, model.hyper
    K = items.mean.shape[1]
    places = places_of(int(pairs.of_item[item]), pairs.after_item)
    A, h = np.empty((K, K)), np.empty(K)
    row_sums(places, pairs, pairs.user, users.mean, users.cov, hyper, origin, A, h)
    known = 1.0 if A[0, 0] > 0.0 else 0.0
    precision, pull = np.full(K, 1.0 / (1.0 - PULL * PULL)), np.empty(K)
    precision[0] = 1.0 / hyper[2]
    pull[0] = precision[0] * hyper[3]
    first = np.empty(K - 1)
    drawn(seed, item, first)
    for a in range(1, K):
        pull[a] = precision[a] * (PULL * first[a - 1])
    of_prior(items, item, precision, pull, A, h)
    entered(items, item, known, float(items.mean[item, 0]), 0.0, 0.0)


@apart
@kernel
def learn_variances(model: Preset, facts: Array) -> None:
    """Empirical Bayes, in place: every variance is the mean of its second moments, TRUST of the first guess added."""
    hyper, K = model.hyper, model.users.mean.shape[1]
    whole = facts[2] / facts[0] if facts[0] > 0.0 and facts[2] > 0.0 else 1.0
    hyper[0] = (facts[3] + NOISE * whole) / (facts[4] + 1.0)
    users, items = model.users.sums, model.items.sums
    n = users[K] + TRUST
    hyper[1] = max((users[K + 2] - hyper[0] * users[K + 3] + TRUST * PAIR * whole) / n, 1e-6 * whole)
    known = items[K + 1]
    m = (items[K] + TRUST * (facts[1] - facts[5])) / (known + TRUST)
    hyper[3] = m
    hyper[2] = max(
        (items[0] - 2.0 * m * items[K] + known * m * m + TRUST * ITEM * whole) / (known + TRUST), 1e-6 * whole
    )
    for a in range(K):
        first = (USER if a == 0 else FACTOR) * whole
        hyper[4 + a] = max((users[a] + TRUST * first) / (users[K + 1] + TRUST), 1e-6 * whole)


@apart
@kernel
def with_space(state: BMFState, user: int, item: int) -> BMFState:
    """The state with rows for this user and this item; owns `state`."""
    a, b = state.plain, state.factored
    a = Preset(with_rows(a.users, user + 1, -1), with_rows(a.items, item + 1, state.seed), a.hyper, a.score)
    b = Preset(with_rows(b.users, user + 1, -1), with_rows(b.items, item + 1, state.seed), b.hyper, b.score)
    return BMFState(state.pairs, state.spread, state.facts, a, b, state.seed, state.t)


@apart
@kernel
def user_gaussian(model: Preset, user: int) -> tuple[Array, Array]:
    """Mean (K,) and covariance (K x K) of a user's row; of somebody unknown, the prior's."""
    K = model.users.mean.shape[1]
    if user < model.users.mean.shape[0] and model.users.adds[user, K + 1] > 0.0:
        return model.users.mean[user].copy(), model.users.cov[user].copy()
    w, S = np.zeros(K), np.zeros((K, K))
    for a in range(K):
        S[a, a] = model.hyper[4 + a]
    return w, S


@apart
@kernel
def foretold(pairs: Pairs, model: Preset, user: int, item: int, origin: float) -> tuple[float, float]:
    """Mean and variance of the next rating of a pair, less `origin`, noise and all."""
    w, S = user_gaussian(model, user)
    one, mean, var = np.full(1, item), np.empty(1), np.empty(1)
    beliefs(model.items.mean, model.items.cov, model.items.adds, one, w, S, model.hyper, mean, var)
    noise, pair = model.hyper[0], model.hyper[1]
    p = place_of(pairs, user, item)
    if p < 0 or pairs.count[p] <= 0.0:
        return float(mean[0]), float(var[0] + pair + noise)
    c = pairs.count[p]
    gain = pair / (pair + noise / c)
    m = mean[0] + gain * (pairs.total[p] / c - origin - mean[0])
    return float(m), float((1.0 - gain) * (1.0 - gain) * var[0] + pair * (1.0 - gain) + noise)


@kernel
def likelihood(y: float, mean: float, var: float) -> float:
    """log N(y; mean, var)"""
    return -0.5 * (math.log(2.0 * math.pi * var) + (y - mean) * (y - mean) / var)


@apart
@kernel
def learn_rows(pairs: Pairs, model: Preset, facts: Array, user: int, item: int, seed: int, t: int) -> None:
    """Infer the rows of this pair and, in turn, of one more user and item, in place; then the variances."""
    model.users.mean[user], model.users.cov[user] = user_gaussian(model, user)
    item_row(pairs, model, item, facts[5], seed)
    user_row(pairs, model, user, facts[5])
    # What the others know has changed, too: everybody's turn comes.
    n, m = min(pairs.of_user.size, model.users.mean.shape[0]), min(pairs.of_item.size, model.items.mean.shape[0])
    if model.users.adds[t % n, model.hyper.size - 3] > 0.0:
        user_row(pairs, model, t % n, facts[5])
    if model.items.adds[t % m, model.hyper.size - 3] > 0.0:
        item_row(pairs, model, t % m, facts[5], seed)
    learn_variances(model, facts)


@apart
@kernel
def taken_in(state: BMFState, user: int, item: int, rating: float) -> BMFState:
    """The state with one rating more in the counts and sums, not in the models; owns `state`."""
    facts, pairs = state.facts, state.pairs
    if facts[0] == 0.0:
        facts[5] = facts[6] = rating
    facts[6] = max(facts[6], rating)
    facts[0] += 1.0
    d = rating - facts[1]
    facts[1] += d / facts[0]
    facts[2] += d * (rating - facts[1])
    p = place_of(pairs, user, item)
    spread = state.spread
    if p >= 0 and pairs.count[p] > 0.0:
        c = pairs.count[p]
        e = rating - pairs.total[p] / c
        spread[p] += e * e * c / (c + 1.0)
        facts[3] += e * e * c / (c + 1.0)
        facts[4] += 1.0
    pairs = rated(pairs, user, item, rating)
    spread = longer(spread, pairs.used, 0.0)
    return BMFState(pairs, spread, facts, state.plain, state.factored, state.seed, state.t)


@apart
@kernel
def taken_out(facts: Array, count: float, total: float, spread: float) -> None:
    """The numbers of all ratings without those of a pair, in place."""
    n = facts[0] - count
    if n <= 0.0:
        facts[:5] = 0.0
        return
    d = total / count - facts[1]
    facts[2] = max(facts[2] - spread - d * d * count * facts[0] / n, 0.0)
    facts[1] -= d * count / n
    facts[0] = n
    facts[3] = max(facts[3] - spread, 0.0)
    facts[4] -= count - 1.0


class BMF(NamedTuple):
    """Bayesian matrix factors: ours, learned online by mean field. Interaction: rating.

    A rating of item j by user i is b_j + b_i + u_i . v_j + g_ij + noise: biases, factors, and what this user thinks of
    this item alone, which comes again where the item does. A Gaussian q for every row [b_i, u_i] and [b_j, v_j]; after
    a rating q_j, then q_i, are inferred anew from the counts and sums of their pairs, the means and covariances of the
    other side; one more user and item in turn. All variances, and the mean of the b_j, are learned (empirical Bayes),
    in units of the ratings so far: once two differ, scaled or shifted ratings change nothing. A model without factors
    is learned beside it, and what foretells the next ratings better (`automatic`; log likelihood, .999 of it kept a
    rating) shows.

    Shows the items of the highest mean + `width` standard deviations, at most the highest rating so far; `sampled`, of
    the highest sample from q, `width` times as wide (Thompson); width 0 is greedy. No bound is known.
    """

    space: Any = Slate()
    n_factors: int = 5
    width: float = 1.25
    """how many standard deviations count"""
    factor_width: float = 3.0
    """the same where factors show and explain more than they leave to single pairs: mean field takes what the two sides
    do not know for independent, so the standard deviation of a product is too small"""
    sampled: bool = False
    """Thompson's samples, `width` times as wide: try width .5, factor_width 1"""
    automatic: bool = True
    """whether the better one shows; else the one with factors"""

    def init(self, rng: np.random.Generator) -> BMFState:
        wanted_slate(self.space)
        wanted_count("n_factors", self.n_factors, most=1000)
        for name, width in (("width", self.width), ("factor_width", self.factor_width)):
            if not is_number(width, int, float) or not 0.0 <= width <= 1e6:
                raise ValueError(f"{name}: wanted a number from 0 to 1e6, got {describe(width)}")
        for name in ("sampled", "automatic"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: wanted True or False, got {describe(getattr(self, name))}")
        seed = int(rng.integers(2**62))
        facts = np.zeros(7)
        plain, factored = no_rows(1, facts), no_rows(1 + self.n_factors, facts)
        state = BMFState(no_pairs(64, 64), np.zeros(64), facts, plain, factored, seed, 0)
        return with_space(state, 63, 63)

    def factors_show(self, state: BMFState) -> bool:
        """Whether the model with factors shows."""
        return not self.automatic or state.factored.score > state.plain.score

    def believed(self, state: BMFState, x: Offer, rng: np.random.Generator) -> tuple[Array, Array, float]:
        """Mean and variance of what the user thinks of each item on offer (c,), noise left out, and the width that
        counts; without a width no variance (0,)."""
        model, width = state.plain, self.width
        if self.factors_show(state):
            model = state.factored
            if total(model.hyper[5:]) > model.hyper[1]:
                width = self.factor_width
        w, S = user_gaussian(model, x.user)
        if self.sampled:  # one taste for all items: then they vary independently
            L = S.copy()
            cholesky(L)
            z = rng.standard_normal(w.size)
            for a in range(w.size):
                for b in range(a + 1):
                    w[a] += width * (L[a, b] * z[b])
            S[:] = 0.0
        items = with_rows(model.items, x.items[-1] + 1, state.seed)
        mean, var = np.empty(x.items.size), np.empty(x.items.size if width > 0.0 else 0)
        beliefs(items.mean, items.cov, items.adds, x.items, w, S, model.hyper, mean, var)
        own(state.pairs, model.hyper, state.facts, x, mean, var)
        return mean + state.facts[5], var, width

    def scores(self, state: BMFState, x: Offer, rng: np.random.Generator) -> Array:
        """What decides: the mean, and as much more as the width says (c,)."""
        mean, var, width = self.believed(state, x, rng)
        if width > 0.0:
            sd = np.sqrt(var)
            mean = mean + width * (sd * rng.standard_normal(var.size) if self.sampled else sd)
            # None is better than the best there ever was.
            mean = np.minimum(mean, state.facts[6] - CERTAIN * sd)
        return mean

    def propose(self, state: BMFState, x: Offer, rng: np.random.Generator) -> Ints:
        return best(self.scores(state, x, rng), x.items, self.space.size)

    def update(self, state: BMFState, x: Offer, y: Ints, feedback: Rated) -> BMFState:
        state = with_space(state, x.user, int(x.items[-1]))
        for r in range(feedback.items.size):
            state = self.learned(state, x.user, int(feedback.items[r]), float(feedback.ratings[r]))
        return BMFState(state.pairs, state.spread, state.facts, state.plain, state.factored, state.seed, state.t + 1)

    def learned(self, state: BMFState, user: int, item: int, rating: float) -> BMFState:
        """The state after one rating; owns `state`."""
        facts, plain, factored = state.facts, state.plain, state.factored
        a, b = plain.score, factored.score
        if self.automatic and facts[0] > 0.0:
            y = rating - facts[5]
            m, v = foretold(state.pairs, plain, user, item, facts[5])
            a = MEMORY * a + float(likelihood(y, m, v))
            m, v = foretold(state.pairs, factored, user, item, facts[5])
            b = MEMORY * b + float(likelihood(y, m, v))
        state = taken_in(state, user, item, rating)
        learn_rows(state.pairs, factored, facts, user, item, state.seed, state.t)
        if self.automatic:
            learn_rows(state.pairs, plain, facts, user, item, state.seed, state.t)
        plain = Preset(plain.users, plain.items, plain.hyper, a)
        factored = Preset(factored.users, factored.items, factored.hyper, b)
        return BMFState(state.pairs, state.spread, facts, plain, factored, state.seed, state.t)

    def without_user(self, state: BMFState, user: int) -> BMFState:
        """The state without a user: counts and sums at once, their row, and the rows of what they rated."""
        return self.forgotten(state, [(user, j) for j in items_of(state.pairs, user).tolist()])

    def without_item(self, state: BMFState, item: int) -> BMFState:
        """The state without an item: counts and sums at once, its row, and the rows of who rated it."""
        return self.forgotten(state, [(i, item) for i in users_of(state.pairs, item).tolist()])

    def without_rating(self, state: BMFState, user: int, item: int, rating: float) -> BMFState:
        """The state without one rating: counts and sums at once, and both rows inferred anew. LookupError where the
        user never rated the item. The highest rating, and in what units variances began, stay: fold the log again for
        *as if never seen*."""
        pairs, facts = state.pairs, state.facts
        p = wanted_pair(pairs, user, item)
        c = pairs.count[p]
        taken_out(facts, 1.0, rating, 0.0)
        if c > 1.0:
            e = rating - (pairs.total[p] - rating) / (c - 1.0)
            less = min(e * e * (c - 1.0) / c, state.spread[p])
            state.spread[p] -= less
            facts[3] = max(facts[3] - less, 0.0)
            facts[4] -= 1.0
        else:
            state.spread[p] = 0.0
        unrated(pairs, user, item, rating)
        self.inferred(state, user, item)
        return state

    def forgotten(self, state: BMFState, those: list[tuple[int, int]]) -> BMFState:
        """The state without these pairs, the rows of their users and items inferred anew."""
        pairs = state.pairs
        for user, item in those:
            p = place_of(pairs, user, item)
            taken_out(state.facts, pairs.count[p], pairs.total[p], state.spread[p])
            state.spread[p] = 0.0
            unlinked(pairs, p)
        for user, item in those:
            self.inferred(state, user, item)
        return state

    def inferred(self, state: BMFState, user: int, item: int) -> None:
        """Infer two rows anew, in place."""
        for model in (state.factored, state.plain) if self.automatic else (state.factored,):
            item_row(state.pairs, model, item, state.facts[5], state.seed)
            user_row(state.pairs, model, user, state.facts[5])
            learn_variances(model, state.facts)


@kernel
def total(values: Array) -> float:
    """The sum of (n,), one after the other."""
    s = 0.0
    for i in range(values.size):
        s += values[i]
    return s


@apart
@kernel
def own(pairs: Pairs, hyper: Array, facts: Array, x: Offer, mean: Array, var: Array) -> None:
    """What the user's own ratings say of single items on offer, into mean (c,) and var (c,), in place."""
    # What is to be learned of a single pair is worth something only where pairs come again.
    again = facts[4] / max(facts[0], 1.0)
    var += again * hyper[1]
    p = pairs.of_user[x.user] if x.user < pairs.of_user.size else -1
    while p >= 0:
        if pairs.count[p] > 0.0:
            j = np.searchsorted(x.items, pairs.item[p])
            if j < x.items.size and x.items[j] == pairs.item[p]:
                gain = hyper[1] / (hyper[1] + hyper[0] / pairs.count[p])
                mean[j] += gain * (pairs.total[p] / pairs.count[p] - facts[5] - mean[j])
                if var.size:
                    rest = var[j] - again * hyper[1]
                    var[j] = (1.0 - gain) * (1.0 - gain) * rest + hyper[1] * (1.0 - gain)
        p = pairs.after_user[p]


def no_rows(K: int, facts: Array) -> Preset:
    """A model of rows of K numbers, of nothing."""
    sides = [Rows(np.empty((0, K)), np.empty((0, K, K)), np.empty((0, K + 4)), np.zeros(K + 4)) for _ in range(2)]
    model = Preset(sides[0], sides[1], np.empty(4 + K), 0.0)
    learn_variances(model, facts)
    return model
