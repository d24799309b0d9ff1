"""Bayesian matrix factorisation, learned online: ours.

A rating is the sum of an item's bias, a user's bias, the inner product of their factors, a pair term, which is the same
in all ratings of this pair of user and item, and noise. Every user and every item has a Gaussian posterior; all
variances are learned. The file is long because what learns a rating, takes it back and predicts shares one layout of
arrays.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.declaration import declare
from heedful.core.validation import check_between, check_count, check_flag, describe, numbers
from heedful.jit.kernel import Ints, kernel, no_refcount, noinline, primitive
from heedful.learners.ratings.baselines import best_items
from heedful.learners.ratings.bmf_model import (
    AGAIN,
    FACTS,
    HIGHEST,
    ITEM,
    MEAN,
    ORIGIN,
    RATINGS,
    SCALE,
    SQUARES,
    WEIGHT,
    WITHIN,
    FactorModel,
    RowPairs,
    add_own_ratings,
    coefficients_by_pair,
    empty_model,
    is_due,
    item_row,
    learn_rows,
    learn_variances,
    log_predictive,
    n_pairs,
    pairs_of,
    total_count,
    user_gaussian,
    user_row,
    with_capacity,
)
from heedful.learners.ratings.interaction_matrix import (
    InteractionMatrix,
    empty_matrix,
    grow,
    items_of,
    place_of,
    remove_pair,
    users_of,
    with_pair,
)
from heedful.learners.ratings.mean_field import Room, predictive_moments, room_for, set_features, with_rows
from heedful.learners.ratings.ridge import cholesky
from heedful.spaces.slate import MOST, Slate, SlateContext, SlateRatings, WeightedRatings, check_slate

Array = npt.NDArray[np.float64]

MEMORY = 0.999
"""the discount of a model's score, its log likelihood, at every rating"""
CERTAIN = 0.01
"""Of the items whose upper bound reaches the highest rating so far, the most certain comes first: the bound is lowered
by this many standard deviations."""
FAINT = 1e-100
"""stored counts and sums are rescaled when the forgetting factor facts[SCALE] falls below this"""


@declare(grows=True)
class BMFState(NamedTuple):
    """The state of `BMF`: the statistics of all ratings, and two models of them, without factors and with factors.

    facts[SCALE] is the factor by which old ratings are discounted; counts and sums in `pairs` and `told` are
    stored divided by it.
    """

    pairs: InteractionMatrix
    """the ratings so far"""
    told: Array
    """Three numbers for each of P pairs of user and item, one after the other (3 P,): the sum of squares about its
    mean, the number of repeated ratings in that sum, and the number of its ratings."""
    facts: Array
    """statistics of all ratings, nine numbers in the order in which `bmf_model` lists them, such as the mean (9,)"""
    plain: FactorModel
    """the posterior of the model with biases, but without factors"""
    factored: FactorModel
    """the posterior of the model with biases and factors"""
    seed: int
    """the seed of the initial item factors"""
    t: int
    """number of rounds learned from"""


@declare(version=1, lesson_cost=12)
class BMF(NamedTuple):
    """Bayesian matrix factors: ours, learned online by mean field. Interaction: rating.

    The model: a rating of item j by user i is b_j + b_i + u_i . v_j + g_ij + noise, with biases b, factors u and v
    (`n_factors` of them), and a term g_ij of this pair alone, which is the same in all ratings of the pair. Each row
    [b_i, u_i] and [b_j, v_j] has a Gaussian posterior q. After a rating, q_j and then q_i are computed from the counts
    and sums of their pairs and the posteriors of the other side (mean field); then the same for one more user and one
    more item, by turns. Of 256 pairs or more that is done now and then, so that 256 are read on average: in between,
    q of a row is what it was, times what the new pair says, and its turn is left out. All variances, and the mean of
    the b_j, are learned (empirical Bayes) in units of the variance of the ratings so far: as soon as two ratings
    differ, scaling or shifting all ratings changes nothing. A model without factors is learned next to it; with
    `automatic`, the one that predicted recent ratings better (log likelihood, discounted by .999 a rating) decides. The
    `ratings` that it predicts of an item without any are of what people choose to rate: there each item counts as often
    as it was rated, since what is rated often is liked better.

    Proposes the items (as many as `space` says) with the highest mean + c standard deviations of the rating. This value
    is cut off at the highest rating so far (once two ratings differ, or if that rating is the highest possible). With
    `sampled`, it proposes the items with the highest draw from q with c times its standard deviations (Thompson
    sampling). c = width + growth log(1 + a n_i), with n_i the number of ratings of this user and a the share of ratings
    that repeat a pair: exploring an item pays only as far as it will be shown again. Bayes-UCB's quantile 1 - 1 / n
    grows about as fast. width = growth = 0 is greedy. No regret bound is known.
    """

    space: Slate = Slate()
    n_factors: int = 5
    width: float = 0.5
    """the number of standard deviations that are added for a user without ratings"""
    growth: float = 0.5
    """how fast that number grows with the log of the expected number of repeated ratings"""
    sampled: bool = False
    """True to draw from the posterior (Thompson sampling), False to use upper bounds"""
    automatic: bool = True
    """True to predict with the model that predicted better so far, False always with the one with factors"""
    gamma: float = 1.0
    """the factor, at most 1, that the weight of each rating is multiplied by in every later round; 1 forgets nothing"""
    n_features: int = 0
    """the number of features of an item, given by `with_item`"""

    def init(self, rng: np.random.Generator) -> BMFState:
        check_slate(self.space)
        check_count("n_features", self.n_features, least=0)
        check_count("n_factors", self.n_factors, most=1000)
        check_between("width", self.width, 0.0, 1e6)
        check_between("growth", self.growth, 0.0, 1e6)
        check_flag("sampled", self.sampled)
        check_flag("automatic", self.automatic)
        check_between("gamma", self.gamma, 0.5, 1.0)
        seed = int(rng.integers(2**62))
        facts = np.zeros(FACTS)
        facts[SCALE] = 1.0
        plain, factored = (empty_model(K, self.n_features, facts) for K in (1, 1 + self.n_factors))
        plain, factored = with_capacity(plain, 64, 64, -1, seed), with_capacity(factored, 64, 64, -1, seed)
        return BMFState(empty_matrix(64, 64), np.zeros(192), facts, plain, factored, seed, 0)

    def scores(self, state: BMFState, x: SlateContext, rng: np.random.Generator) -> Array:
        """Return the number by which `propose` ranks the items of the context `x`, (c,) for c items: the upper bound of
        the rating or, if `sampled`, a draw of it from `rng`."""
        return scores_of(self, state, x, rng)

    def propose(self, state: BMFState, x: SlateContext, rng: np.random.Generator) -> Ints:
        return best_items(scores_of(self, state, x, rng), x.items, self.space.size)

    def update(self, state: BMFState, x: SlateContext, y: Ints, feedback: SlateRatings | WeightedRatings) -> BMFState:
        users, items, t = x.user + 1, x.items[-1] + 1, state.t + 1
        if self.gamma < 1.0:
            discount(state, self.gamma)
        if not has_room(state, users, items):
            state = with_room(state, users, items)
        for r in range(feedback.items.size):
            item, rating, weight = int(feedback.items[r]), float(feedback.ratings[r]), float(feedback.weight(r))
            state = learn_rating(self, state, t, x.user, item, rating, weight)
        return state

    # ------------------------------------------------------------------ predictions

    def ratings(self, state: BMFState, x: SlateContext) -> Array:
        model = active_model(self, state)
        w, S = user_gaussian(model, x.user)
        mean, _ = predict(self, state, x, w, S, coefficients_by_pair(model, state.facts), 0)
        out: Array = mean + state.facts[ORIGIN]
        return out

    def deviations(self, state: BMFState, x: SlateContext) -> Array:
        """Return the posterior standard deviation, without noise, of the rating of each item of `x.items` by the user
        of the context `x`: (c,) for c items."""
        model = active_model(self, state)
        w, S = user_gaussian(model, x.user)
        return np.sqrt(predict(self, state, x, w, S, model.items.coefficients, 1)[1])

    def parts(self, state: BMFState, x: SlateContext) -> tuple[tuple[str | int, Array], ...]:
        """Return the terms whose sum is the predicted `ratings` of the c items of the context `x`, as pairs (name,
        values (c,)).

        In order: the mean of all ratings, what each feature of the items says of their bias (its name is the number of
        the feature), the rest of this bias, the user's bias, the inner product of their factors ("taste"), and the
        correction by the user's own ratings of the item.
        """
        model, facts = active_model(self, state), state.facts
        items = with_rows(model.items, int(x.items[-1]) + 1, state.seed)
        w, _ = user_gaussian(model, x.user)
        K, n = w.size, x.items.size
        rated = items.adds[x.items, K + 1] > 0.0
        expected = items.covariates[x.items] * coefficients_by_pair(model, facts)
        item = np.where(rated, items.mean[x.items, 0] - expected.sum(axis=1), 0.0)
        taste = items.mean[x.items, 1:] @ w[1:]
        level, person = expected[:, 0] + facts[ORIGIN], np.full(n, w[0])
        by_user = np.isin(x.items, items_of(state.pairs, x.user))
        total = level + expected[:, 1:].sum(axis=1) + item + person + taste
        correction = np.where(by_user, self.ratings(state, x) - total, 0.0)
        rest = zip(("this item", "this person", "taste", "their own ratings of it"), (item, person, taste, correction))
        return (("all ratings", level), *enumerate(expected[:, 1:].T), *rest)

    # ------------------------------------------------------------------ items

    def with_item(self, state: BMFState, item: int, features: Array) -> BMFState:
        """Return the state in which the item with the index `item` has these `features` (n_features,), from which its
        bias is expected before it is rated. It may overwrite `state`.

        Raise ValueError, naming the argument, unless `item` is an index below 10^7 and `features` are that many finite
        numbers."""
        check_count("item", item, least=0, most=MOST - 1)
        values = numbers("features", features, "numbers")
        if values.shape != (self.n_features,) or not np.isfinite(values).all():
            raise ValueError(f"features: expected {self.n_features} finite numbers, got {describe(features)}")
        models = []
        for model in (state.plain, state.factored):
            model = with_capacity(model, 0, item + 1, -1, state.seed)
            set_features(model.items, item, values)
            models.append(model)
        return state._replace(plain=models[0], factored=models[1])

    def without_item(self, state: BMFState, item: int) -> BMFState:
        """The posteriors of the item and of the users who rated it are inferred again."""
        pairs, facts = state.pairs, state.facts
        users = users_of(pairs, item).tolist()
        for user in users:
            p = place_of(pairs, user, item)
            sums = state.told[3 * p : 3 * p + 3]
            remove_from_facts(facts, *(facts[SCALE] * each for each in (pairs.count[p], pairs.total[p], sums)))
            sums[:] = 0.0
            remove_pair(pairs, p)
        for user in users:
            for model in (state.factored, state.plain) if self.automatic else (state.factored,):
                rows = pairs_of(pairs, user, item, True, True)
                n = rows.of_user.size
                room = room_for(model.users.mean.shape[1], self.n_features + 1, n)
                item_row(pairs, model, item, rows.of_item, True, facts, state.seed, room)
                user_row(pairs, model, user, rows.of_user, True, facts, room)
                learn_variances(model, facts, room)
        return state


# ---------------------------------------------------------------------------- learning


@noinline
@no_refcount
@kernel
def has_room(state: BMFState, users: int, items: int) -> bool:
    """Return whether both models in `state` have rows for so many `users` and `items`."""
    plain, factored = state.plain, state.factored
    had = min(plain.users.mean.shape[0], factored.users.mean.shape[0])
    return bool(users <= had and items <= min(plain.items.mean.shape[0], factored.items.mean.shape[0]))


@noinline
@no_refcount
@kernel
def discount(state: BMFState, gamma: float) -> None:
    """Multiply the weight of all ratings so far by `gamma`, in place."""
    facts, pairs, pair_sums = state.facts, state.pairs, state.told
    for i in (WEIGHT, SQUARES, WITHIN, AGAIN, RATINGS, SCALE):
        facts[i] *= gamma
    if facts[SCALE] < FAINT:
        for p in range(pairs.used):
            pairs.count[p] *= facts[SCALE]
            pairs.total[p] *= facts[SCALE]
        for i in range(3 * pairs.used):
            pair_sums[i] *= facts[SCALE]
        facts[SCALE] = 1.0


@noinline
@kernel
def with_room(state: BMFState, users: int, items: int) -> BMFState:
    """Return the state with room for so many `users` and `items`."""
    plain = with_capacity(state.plain, users, items, -1, state.seed)
    factored = with_capacity(state.factored, users, items, -1, state.seed)
    return BMFState(state.pairs, state.told, state.facts, plain, factored, state.seed, state.t)


@noinline
@no_refcount
@kernel
def record_rating(
    pairs: InteractionMatrix, pair_sums: Array, facts: Array, p: int, rating: float, weight: float
) -> None:
    """Record one `rating`, which counts `weight` times, of the pair of user and item at the position `p`, in place; the
    posteriors stay as they are.

    `pair_sums` are three sums for each pair (`BMFState.told`), `facts` the statistics of all ratings.
    """
    if facts[RATINGS] == 0.0:
        facts[ORIGIN] = facts[HIGHEST] = rating
    facts[HIGHEST] = max(facts[HIGHEST], rating)
    facts[RATINGS] += 1.0
    facts[WEIGHT] += weight
    d = rating - facts[MEAN]
    facts[MEAN] += d * weight / facts[WEIGHT]
    facts[SQUARES] += weight * (d * (rating - facts[MEAN]))
    scale, square, again = facts[SCALE], 0.0, 0.0
    if pairs.count[p] > 0.0:
        c = scale * pairs.count[p]
        e = rating - pairs.total[p] / pairs.count[p]
        square, again = e * e * c * weight / (c + weight), 1.0
        facts[WITHIN] += square
        facts[AGAIN] += 1.0
    pairs.count[p] += weight / scale
    pairs.total[p] += weight / scale * rating
    pair_sums[3 * p] += square / scale
    pair_sums[3 * p + 1] += again / scale
    pair_sums[3 * p + 2] += 1.0 / scale


def remove_from_facts(facts: Array, count: float, total: float, sums: Array) -> None:
    """Remove the ratings of one pair of user and item from `facts` (9,), the statistics of all ratings, in place.

    `count` is the sum of the weights of these ratings, `total` the sum of the ratings times their weights. `sums` (3,)
    is the sum of squares about their mean, the number of repeated ratings among them, and the number of ratings.
    """
    n = facts[WEIGHT] - count
    for fact, less in zip((WITHIN, AGAIN, RATINGS), sums):
        facts[fact] = max(facts[fact] - less, 0.0)
    if n <= 1e-9 * count:
        facts[[WEIGHT, MEAN, SQUARES, WITHIN, AGAIN, RATINGS]] = 0.0
        return
    d = total / count - facts[MEAN]
    facts[SQUARES] = max(facts[SQUARES] - sums[0] - d * d * count * facts[WEIGHT] / n, 0.0)
    facts[MEAN] -= d * count / n
    facts[WEIGHT] = n


@noinline
@kernel
def learn_rating(learner: BMF, state: BMFState, t: int, user: int, item: int, rating: float, weight: float) -> BMFState:
    """Return the state after one `rating` of `item` by `user` in round `t`, which counts `weight` times. It may
    overwrite the arrays of `state`."""
    pairs, p = state.pairs, place_of(state.pairs, user, item)
    again = p >= 0
    if not again:
        pairs = with_pair(pairs, user, item)
        p = pairs.used - 1
    pair_sums = grow(state.told, 3 * pairs.used, 0.0)
    # What a pair said before cannot be taken out of a posterior, nor can all of it be made to count less.
    fading = learner.gamma < 1.0
    whole = again or fading
    n, m = n_pairs(state.factored, user, item)
    own = pairs_of(pairs, user, item, whole or is_due(n, int(n)), whole or is_due(m, int(m)))
    N = min(pairs.by_user.size.size, state.factored.users.mean.shape[0])
    M = min(pairs.by_item.size.size, state.factored.items.mean.shape[0])
    user, item = (t - 1) % N, (t - 1) % M  # whose turn it is
    n, m = n_pairs(state.factored, user, item)
    turn = pairs_of(pairs, user, item, fading or is_due(n, (t - 1) // N), fading or is_due(m, (t - 1) // M))
    n_places, P = max(own.of_user.size, turn.of_user.size), learner.n_features + 1
    alone, room = room_for(1, P, n_places), room_for(1 + learner.n_factors, P, n_places)
    take_in(learner, state, pairs, pair_sums, p, own, turn, rating, weight, alone, room)
    return BMFState(pairs, pair_sums, state.facts, state.plain, state.factored, state.seed, t)


@noinline
@no_refcount
@kernel
def take_in(
    learner: BMF, state: BMFState, pairs: InteractionMatrix, pair_sums: Array, p: int, own: RowPairs, turn: RowPairs,
    rating: float, weight: float, alone: Room, room: Room,
) -> None:  # fmt: skip
    """Learn one `rating`, which counts `weight` times, of the user and the item of `own`, in place.

    `pairs` and `pair_sums` (`BMFState.told`) have a place for their pair, `p`; `turn` are a user and an item that are
    inferred besides. `alone` and `room` are arrays to work in, for the model without factors and for that with.
    """
    facts, plain, factored = state.facts, state.plain, state.factored
    if learner.automatic and facts[RATINGS] > 0.0:
        y = rating - facts[ORIGIN]
        for model, free in ((plain, alone), (factored, room)):
            found = log_predictive(pairs, p, model, own.user, own.item, facts, y, weight, free)
            model.score[0] = MEMORY * model.score[0] + found
    record_rating(pairs, pair_sums, facts, p, rating, weight)
    learn_rows(pairs, factored, facts, own, turn, state.seed, room)
    if learner.automatic:
        learn_rows(pairs, plain, facts, own, turn, state.seed, alone)


# ---------------------------------------------------------------------------- deciding


@kernel
def active_model(learner: BMF, state: BMFState) -> FactorModel:
    """Return the model that predicts and decides: if `automatic`, the one that predicted recent ratings better, else
    the one with factors."""
    return state.factored if not learner.automatic or state.factored.score[0] > state.plain.score[0] else state.plain


@noinline
@kernel
def predict(
    learner: BMF, state: BMFState, x: SlateContext, w: Array, S: Array, coefficients: Array, uncertain: int
) -> tuple[Array, Array]:
    """Return the posterior mean and variance, (c,) each, of a user's ratings of the c items of the context `x`.

    The mean is less the first rating that was ever learned; the variance is without noise. `w` (K,) and `S` (K x K),
    with K = 1 + the number of factors, are the mean and covariance of the user's bias and factors: a posterior, or a
    draw with covariance 0. The bias of an item without ratings has the mean x . `coefficients` (P,), with x its
    covariates. If `uncertain` is 0 (otherwise 1), no variance is computed, and (0,) is returned for it.
    """
    model = active_model(learner, state)
    items = with_rows(model.items, x.items[-1] + 1, state.seed)
    mean, var = np.empty(x.items.size), np.empty(x.items.size * uncertain)
    predictive_moments(items, x.items, w, S, coefficients, model.hyper[ITEM], mean, var)
    add_own_ratings(state.pairs, model.hyper, state.facts, x, mean, var)
    return mean, var


@kernel
def exploration_width(learner: BMF, facts: Array, count: float) -> float:
    """Return the number of standard deviations that are added to the mean rating of each item for a user with `count`
    ratings: width + growth log(1 + a count), where a is the share of all ratings that repeat a pair of user and item.

    `facts` (9,) are the statistics of all ratings, `width` and `growth` those of the `learner`.
    """
    return learner.width + learner.growth * math.log(1.0 + count * (facts[AGAIN] / max(facts[RATINGS], 1.0)))


@noinline
@kernel
def scores_of(learner: BMF, state: BMFState, x: SlateContext, rng: np.random.Generator) -> Array:
    """Return the upper bound of the rating of each item of the context `x` or, if the learner is `sampled`, a draw of
    it from `rng`: (c,) for c items."""
    width = exploration_width(learner, state.facts, total_count(state.pairs, x.user) * state.facts[SCALE])
    model = active_model(learner, state)
    w, S = user_gaussian(model, x.user)
    z = np.ones(1)
    if learner.sampled:  # one draw of the user's row for all items; given that, items are independent
        L, K = S.copy(), w.size
        cholesky(L)
        z = rng.standard_normal(K)
        for a in range(K):
            for b in range(a + 1):
                w[a] += width * (L[a, b] * z[b])
                S[a, b] = S[b, a] = 0.0
        z = rng.standard_normal(x.items.size if width > 0.0 else 0)
    mean, var = predict(learner, state, x, w, S, model.items.coefficients, 1 if width > 0.0 else 0)
    facts = state.facts
    bounded = facts[SQUARES] > 0.0 or facts[HIGHEST] >= learner.space.high
    return upper_bounds(mean, var, width, z, facts[ORIGIN], facts[HIGHEST] if bounded else math.inf)


def _upper_bounds_loop(mean: Array, var: Array, width: float, z: Array, origin: float, highest: float) -> Array:
    for j in range(mean.size):
        mean[j] += origin
        if width > 0.0:
            sd = math.sqrt(var[j])
            mean[j] = min(mean[j] + width * (z[j if z.size > 1 else 0] * sd), highest - CERTAIN * sd)
    return mean


@noinline
@primitive(_upper_bounds_loop)
def upper_bounds(mean: Array, var: Array, width: float, z: Array, origin: float, highest: float) -> Array:
    """Return the upper confidence bound, or a draw, of the rating of each of c items: `mean` + `origin` + `width` z sd,
    (c,).

    `mean` (c,) is relative to `origin`, the first rating that was ever learned; sd is the root of the variances `var`
    (c,). `z` is a single 1 (1,) for the upper bound, or standard normal numbers (c,) for a draw. A result is at most
    `highest` less 0.01 sd, unless `width` is 0. `mean` may be overwritten.
    """
    mean += origin
    if width > 0.0:
        sd = np.sqrt(var)
        mean = np.minimum(mean + width * (z * sd), highest - CERTAIN * sd)
    return mean
