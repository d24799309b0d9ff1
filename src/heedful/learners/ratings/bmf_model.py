"""The Bayesian factor model inside `BMF`: mean-field inference of rows, empirical Bayes for variances, predictions.

The model of a rating of item j by user i:

    rating = origin + b_i + b_j + u_i . v_j + g_ij + noise

`origin` is the first rating that was ever learned, b_i and b_j are biases, u_i and v_j are factors, and g_ij is a pair
term, which is the same in all ratings of this pair of user and item. Every user has a row [b_i, u_i] and every item a
row [b_j, v_j] with a Gaussian posterior. All of it is computed from the number and the sum of the ratings of each pair.
The file is long because what infers rows, their variances and what they predict share one layout of arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.jit.kernel import Ints, kernel, no_refcount, noinline
from heedful.learners.ratings.interaction_matrix import InteractionMatrix, places_of
from heedful.learners.ratings.mean_field import (
    PULL,
    GaussianRows,
    Room,
    add_posterior,
    expected_bias,
    predictive_moments,
    room_for,
    row_posterior,
    row_sums,
    update_sums,
    with_rows,
)
from heedful.learners.ratings.ridge import cholesky, normals_of, solve_cholesky
from heedful.spaces.slate import SlateContext

Array = npt.NDArray[np.float64]

# Statistics of all ratings, by index in an array of FACTS numbers: total weight, mean, sum of squares about the mean;
# sum of squares about the means of pairs, and the number of repeated ratings that it is of; number of ratings; the
# first rating; the highest rating; the factor from a stored count or sum of a pair to its present value (forgetting).
WEIGHT, MEAN, SQUARES, WITHIN, AGAIN, RATINGS, ORIGIN, HIGHEST, SCALE, FACTS = range(10)
# Hyperparameters, by index in `hyper`: variances of the noise, of a pair's own term and of the items' biases around
# their prior means; from USER on the variances of a user's bias and factors.
NOISE, PAIR, ITEM, USER = range(4)
# The prior guess of each variance as a share of the variance of the ratings, and the number of observations that it
# counts for.
FIRST_NOISE, FIRST_PAIR, FIRST_ITEM, FIRST_USER, FIRST_FACTOR = 0.1, 0.4, 0.2, 0.2, 0.1
TRUST = 5.0
MOST = 256
"""Fewer pairs than that of a user or an item are read, on average, to infer its row again."""


class FactorModel(NamedTuple):
    """The posterior of the model rating = origin + user bias + item bias + user factors . item factors + pair term +
    noise.

    `users` and `items` have a row of K numbers for each user and item: a bias and K - 1 factors.
    """

    users: GaussianRows
    items: GaussianRows
    hyper: Array
    """Hyperparameters (3 + K,): the variances of the noise, of the term of a single pair and of item biases; the prior
    variances of a user's bias and factors."""
    score: Array
    """the discounted log likelihood of the model's predictions so far (1,)"""


def empty_model(K: int, n_features: int, facts: Array) -> FactorModel:
    """Return a `FactorModel` without users and items, `K` numbers a row (a bias and K - 1 factors) and `n_features` an
    item, with a score of 0.

    `facts` (9,) are the statistics of all ratings (`BMFState.facts`), from which the hyperparameters are set.
    """
    sides = [
        GaussianRows(
            np.empty((0, K)), np.empty((0, K, K)), np.empty((0, K + 4)), np.zeros(K + 4),
            np.empty((0, P)), np.zeros((P, P)), np.zeros(P), np.zeros(P), np.zeros((P, P)), np.zeros(P),
        )
        for P in (0, 1 + n_features)
    ]  # fmt: skip
    model = FactorModel(sides[0], sides[1], np.ones(3 + K), np.zeros(1))
    learn_variances(model, facts, room_for(K, 1 + n_features, 0))
    return model


@noinline
@kernel
def with_capacity(model: FactorModel, users: int, items: int, nobody: int, seed: int) -> FactorModel:
    """Return the model with room for at least `users` users and `items` items.

    The initial mean factors of new items are drawn with `seed`, those of new users with `nobody`; a seed of -1 makes
    them 0.
    """
    return FactorModel(
        with_rows(model.users, users, nobody), with_rows(model.items, items, seed), model.hyper, model.score
    )


@noinline
@no_refcount
@kernel
def user_row(
    pairs: InteractionMatrix, model: FactorModel, user: int, places: Ints, whole: bool, facts: Array, room: Room
) -> None:
    """Infer the posterior of the bias and factors of the user with index `user`, and write it into `model.users`, with
    their statistics: from all their ratings if it is `whole` (without any it is the prior), else from the posterior so
    far and one more pair.

    `pairs` are all ratings, those to infer it from at `places` (n,); `facts` (9,) their statistics (`BMFState.facts`);
    `room` are arrays to work in, for n pairs.
    """
    users, items, hyper, scale = model.users, model.items, model.hyper, facts[SCALE]
    noise, origin, size = hyper[NOISE] / scale, facts[ORIGIN], places.size
    row_sums(places, pairs, pairs.item, items.mean, items.cov, noise, hyper[PAIR], origin, room.A, room.h)
    rated = 1.0 if room.A[0, 0] > 0.0 else 0.0
    n = missed = inverse = 0.0
    if whole:
        for a in range(room.h.size):
            room.precision[a], room.pull[a] = 1.0 / hyper[USER + a], 0.0
    else:
        add_posterior(users, user, room)
        K = room.h.size
        n, missed, inverse = users.adds[user, K], users.adds[user, K + 2], users.adds[user, K + 3]
    row_posterior(users, user, room)
    if rated > 0.0:
        mean, var = room.mean[:size], room.var[:size]
        for i in range(size):
            room.items[i] = pairs.item[places[i]]
        w, S, rated_items = users.mean[user], users.cov[user], room.items[:size]
        predictive_moments(items, rated_items, w, S, items.coefficients, hyper[ITEM], mean, var)
        for i in range(size):
            c = pairs.count[places[i]]
            if c > 0.0:
                e = pairs.total[places[i]] / c - origin - mean[i]
                c = scale * c
                part = min(c * c, 1.0)  # less than one rating says little about the variance of a pair
                n += part
                missed += part * (e * e + var[i])
                inverse += part / c
    update_sums(users, user, rated, n, missed, inverse)


@noinline
@no_refcount
@kernel
def item_row(
    pairs: InteractionMatrix,
    model: FactorModel,
    item: int,
    places: Ints,
    whole: bool,
    facts: Array,
    seed: int,
    room: Room,
) -> None:
    """Infer the posterior of the bias and factors of the item with index `item`, and write it into `model.items`, with
    its statistics: from all its ratings if it is `whole` (without any it is the prior), else from the posterior so far
    and one more pair.

    `pairs` are all ratings, those to infer it from at `places` (n,); `facts` (9,) their statistics (`BMFState.facts`).
    The prior means of the factors are drawn with `seed`. `room` are arrays to work in.
    """
    users, items, hyper = model.users, model.items, model.hyper
    noise, size = hyper[NOISE] / facts[SCALE], float(places.size)
    row_sums(places, pairs, pairs.user, users.mean, users.cov, noise, hyper[PAIR], facts[ORIGIN], room.A, room.h)
    rated = 1.0 if room.A[0, 0] > 0.0 else 0.0
    if whole:
        room.precision[0] = 1.0 / hyper[ITEM]
        room.pull[0] = room.precision[0] * expected_bias(items, item, items.coefficients)
        normals_of(seed, item, room.first)
        for a in range(1, room.h.size):
            room.precision[a] = 1.0 / (1.0 - PULL * PULL)
            room.pull[a] = room.precision[a] * (PULL * room.first[a - 1])
    else:
        add_posterior(items, item, room)
        size += items.adds[item, room.h.size + 2]
    row_posterior(items, item, room)
    update_sums(items, item, rated, float(items.mean[item, 0]), size, 0.0)


@noinline
@no_refcount
@kernel
def write_coefficients(gram: Array, moments: Array, middle: float, share: float, S: Array, out: Array) -> None:
    """Write the coefficients of the items' biases by ridge regression of their posterior means into `out` (P,), from
    the sums `gram` (P x P) and `moments` (P,) of `GaussianRows`. `S` (P x P) is overwritten.

    A prior guess of the intercept, `middle`, counts as five items. The other P - 1 have a normal prior by which all
    features together vary as much as a bias was guessed to vary; `share` is the variance that features leave
    unexplained, by the present estimate, over that guess.
    """
    P = moments.size
    for a in range(P):
        out[a] = moments[a]
        for b in range(a + 1):
            S[a, b] = gram[a, b]
        S[a, a] += TRUST if a == 0 else share * (P - 1.0)
    out[0] += TRUST * middle
    cholesky(S)
    solve_cholesky(S, out)


def coefficients_by_pair(model: FactorModel, facts: Array) -> Array:
    """Return the coefficients (P,) by which the bias of an item without ratings is predicted where people chose
    themselves what to rate: in the regression each item counts as often as it was rated.

    What is rated often is liked better than an item drawn at random (ratings are not missing at random)."""
    items, middle = model.items, facts[MEAN] - facts[ORIGIN]
    share, out = model.hyper[ITEM] / (FIRST_ITEM * variance_of(facts)), np.empty(items.coefficients.size)
    write_coefficients(items.gram_by_pair, items.moments_by_pair, middle, share, np.empty((out.size, out.size)), out)
    return out


@noinline
@no_refcount
@kernel
def spread_of(items: GaussianRows) -> float:
    """Return the sum of squares of the prior means of the items with ratings, less twice their products with the
    posterior means: what is to be added to the sum of squared biases for that of their deviations."""
    w, total = items.coefficients, 0.0
    for a in range(w.size):
        total += w[a] * (items.gram[a, a] * w[a] - 2.0 * items.moments[a])
        for b in range(a):
            total += 2.0 * (w[a] * (items.gram[a, b] * w[b]))
    return total


@kernel
def variance_of(facts: Array) -> float:
    """Return the variance of all ratings, from their statistics `facts` (9,); 1 as long as they do not differ."""
    return facts[SQUARES] / facts[WEIGHT] if facts[WEIGHT] > 0.0 and facts[SQUARES] > 0.0 else 1.0


@noinline
@no_refcount
@kernel
def learn_variances(model: FactorModel, facts: Array, room: Room) -> None:
    """Estimate the variances in `model.hyper` and the coefficients of the item biases by empirical Bayes, in place.

    Each variance becomes the mean of the expected squares of what it is the variance of, with a prior guess added that
    counts as five observations (as one for the variance of the noise). The guesses are shares of the variance of all
    ratings, from their statistics `facts` (9,) (`BMFState.facts`). `room` are arrays to work in.
    """
    hyper, K = model.hyper, model.users.mean.shape[1]
    variance = variance_of(facts)
    least = 1e-6 * variance
    hyper[NOISE] = (facts[WITHIN] + FIRST_NOISE * variance) / (facts[AGAIN] + 1.0)
    users, items = model.users.sums, model.items.sums
    n = users[K] + TRUST
    hyper[PAIR] = max((users[K + 2] - hyper[NOISE] * users[K + 3] + TRUST * FIRST_PAIR * variance) / n, least)
    rows, middle = model.items, facts[MEAN] - facts[ORIGIN]
    share = hyper[ITEM] / (FIRST_ITEM * variance)
    write_coefficients(rows.gram, rows.moments, middle, share, room.gram, rows.coefficients)
    squares = items[0] + spread_of(model.items)
    hyper[ITEM] = max((squares + TRUST * FIRST_ITEM * variance) / (items[K + 1] + TRUST), least)
    n = users[K + 1] + TRUST
    for a in range(K):
        first = (FIRST_USER if a == 0 else FIRST_FACTOR) * variance
        hyper[USER + a] = max((users[a] + TRUST * first) / n, least)


class RowPairs(NamedTuple):
    """A user and an item whose rows are to be inferred, and where their pairs are."""

    user: int
    item: int
    of_user: Ints
    """the positions of the user's pairs, the newest first (n,); where the row is not whole, of the newest alone"""
    of_item: Ints
    """the positions of the item's pairs, the newest first (m,); where the row is not whole, of the newest alone"""
    whole_user: bool
    """whether all of the user's pairs are there"""
    whole_item: bool
    """whether all of the item's pairs are there"""


@kernel
def n_pairs(model: FactorModel, user: int, item: int) -> tuple[float, float]:
    """Return of how many pairs the rows of a `user` and an `item` (indices) are made in `model`, a pair that weighs
    less than one rating counted as less."""
    K = model.users.mean.shape[1]
    return model.users.adds[user, K], model.items.adds[item, K + 2]


@kernel
def is_due(n: float, count: int) -> bool:
    """Return whether a row of `n` pairs is inferred from all of them at this `count`: one of fewer than MOST
    pairs always, one of k MOST pairs every (k + 1)th time, so that fewer than MOST are read each time on average."""
    return count % (int(n) // MOST + 1) == 0


@noinline
@kernel
def pairs_of(pairs: InteractionMatrix, user: int, item: int, whole_user: bool, whole_item: bool) -> RowPairs:
    """Return where in `pairs` those of a `user` and of an `item` are: all of them where the row is to be `whole`."""
    of_user, of_item = places_of(pairs.by_user, user), places_of(pairs.by_item, item)
    n, m = of_user.size if whole_user else 1, of_item.size if whole_item else 1
    return RowPairs(user, item, of_user[:n], of_item[:m], whole_user, whole_item)


@noinline
@no_refcount
@kernel
def learn_rows(
    pairs: InteractionMatrix, model: FactorModel, facts: Array, own: RowPairs, turn: RowPairs, seed: int, room: Room
) -> None:
    """Update `model` in place after a new rating: the posteriors of its item and its user, `own`, are inferred, then
    those of the user and the item whose `turn` it is, then the variances.

    `pairs` are all ratings with the new one, `facts` (9,) their statistics (`BMFState.facts`). `seed` is that of the
    prior means of item factors, `room` are arrays to work in.
    """
    users, items, K = model.users, model.items, model.users.mean.shape[1]
    if users.adds[own.user, K + 1] <= 0.0:  # a new user starts from the prior
        for a in range(K):
            users.mean[own.user, a] = 0.0
            for b in range(K):
                users.cov[own.user, a, b] = model.hyper[USER + a] if a == b else 0.0
    item_row(pairs, model, own.item, own.of_item, own.whole_item, facts, seed, room)
    user_row(pairs, model, own.user, own.of_user, own.whole_user, facts, room)
    # The rows of the others depend on these two, so in every round one more of each is updated.
    if turn.whole_user and users.adds[turn.user, K + 1] > 0.0:
        user_row(pairs, model, turn.user, turn.of_user, True, facts, room)
    if turn.whole_item and items.adds[turn.item, K + 1] > 0.0:
        item_row(pairs, model, turn.item, turn.of_item, True, facts, seed, room)
    learn_variances(model, facts, room)


# ---------------------------------------------------------------------------- predictions


@noinline
@kernel
def user_gaussian(model: FactorModel, user: int) -> tuple[Array, Array]:
    """Return the posterior (mean (K,), covariance (K x K)) of the row of the user with index `user`: a bias and K - 1
    factors.

    For a user without ratings it is the prior of `model`.
    """
    K = model.users.mean.shape[1]
    w, S = np.empty(K), np.empty((K, K))
    write_user_gaussian(model, user, w, S)
    return w, S


@noinline
@no_refcount
@kernel
def write_user_gaussian(model: FactorModel, user: int, w: Array, S: Array) -> None:
    """Write what `user_gaussian` returns into `w` (K,) and `S` (K x K)."""
    users, K = model.users, w.size
    known = user < users.mean.shape[0] and users.adds[user, K + 1] > 0.0
    for a in range(K):
        w[a] = users.mean[user, a] if known else 0.0
        for b in range(K):
            S[a, b] = users.cov[user, a, b] if known else model.hyper[USER + a] if a == b else 0.0


@noinline
@no_refcount
@kernel
def log_predictive(
    pairs: InteractionMatrix,
    p: int,
    model: FactorModel,
    user: int,
    item: int,
    facts: Array,
    y: float,
    weight: float,
    room: Room,
) -> float:
    """Return the log density that `model` predicts for a next rating of item `item` by user `user` (indices), in nats.

    `p` is the position of their pair, -1 without any. `y` is this rating less the first rating that was ever learned;
    it counts `weight` times, which divides the variance of its noise. `pairs` are the ratings so far, `facts` (9,)
    their statistics (`BMFState.facts`). `room` are arrays to work in, for a pair or more.
    """
    w, S, mean, var, indices = room.h, room.A, room.mean[:1], room.var[:1], room.items[:1]
    write_user_gaussian(model, user, w, S)
    indices[0] = item
    predictive_moments(model.items, indices, w, S, model.items.coefficients, model.hyper[ITEM], mean, var)
    noise, pair = model.hyper[NOISE], model.hyper[PAIR]
    m, v = mean[0], var[0] + pair
    if p >= 0 and pairs.count[p] > 0.0:
        gain = pair / (pair + noise / (facts[SCALE] * pairs.count[p]))
        m += gain * (pairs.total[p] / pairs.count[p] - facts[ORIGIN] - m)
        v = (1.0 - gain) * (1.0 - gain) * var[0] + pair * (1.0 - gain)
    v += noise / weight
    return float(-0.5 * (math.log(2.0 * math.pi * v) + (y - m) * (y - m) / v))


@noinline
@kernel
def add_own_ratings(
    pairs: InteractionMatrix, hyper: Array, facts: Array, x: SlateContext, mean: Array, var: Array
) -> None:
    """Condition the predictive `mean` and `var` of one user's ratings of c items on the user's own earlier ratings, in
    place.

    Own ratings of an item tell about the pair term, which is the same in all ratings of this pair of user and item. `x`
    is the context (the user and the c items), `pairs` are all ratings, `facts` (9,) their statistics
    (`BMFState.facts`), `hyper` the hyperparameters of the model (`FactorModel.hyper`). `mean` is (c,); `var` is (c,),
    or (0,) to leave it out. For items that the user never rated, `var` grows by the variance of the pair term times the
    share of all ratings that repeat a pair: knowing this term is worth something only where pairs are rated repeatedly.
    """
    # Knowing a single pair better is worth something only where pairs are rated repeatedly.
    again = facts[AGAIN] / max(facts[RATINGS], 1.0)
    var += again * hyper[PAIR]
    for p in places_of(pairs.by_user, x.user):
        if pairs.count[p] > 0.0:
            c = facts[SCALE] * pairs.count[p]
            j = np.searchsorted(x.items, pairs.item[p])
            if j < x.items.size and x.items[j] == pairs.item[p]:
                gain = hyper[PAIR] / (hyper[PAIR] + hyper[NOISE] / c)
                mean[j] += gain * (pairs.total[p] / pairs.count[p] - facts[ORIGIN] - mean[j])
                if var.size:
                    rest = var[j] - again * hyper[PAIR]
                    var[j] = (1.0 - gain) * (1.0 - gain) * rest + hyper[PAIR] * (1.0 - gain)


@kernel
def total_count(pairs: InteractionMatrix, user: int) -> float:
    """Return the number of ratings in `pairs` of the user with index `user`, each counted by its weight."""
    count = 0.0
    for p in places_of(pairs.by_user, user):
        count += pairs.count[p]
    return count
