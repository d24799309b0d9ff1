"""Bayesian factors of ratings, ours: a rating is what the item gets of all, what the user gives to all, what their
factors agree on, and what this user thinks of this item alone. A Gaussian for every row, all variances learned."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, describe, is_number
from heedful.jit.kernel import Ints, kernel, noinline, primitive
from heedful.learners.ratings.baselines import best_items, check_pair
from heedful.learners.ratings.bmf_model import (
    AGAIN,
    FACTS,
    HIGHEST,
    MEAN,
    ORIGIN,
    RATINGS,
    SCALE,
    SQUARES,
    WEIGHT,
    WITHIN,
    FactorModel,
    add_own_ratings,
    empty_model,
    item_row,
    learn_rows,
    learn_variances,
    log_predictive,
    total_count,
    user_gaussian,
    user_row,
    with_capacity,
)
from heedful.learners.ratings.interaction_matrix import (
    InteractionMatrix,
    add_rating,
    empty_matrix,
    grow,
    items_of,
    place_of,
    remove_pair,
    remove_rating,
    users_of,
)
from heedful.learners.ratings.mean_field import predictive_moments, with_rows
from heedful.learners.ratings.ridge import cholesky
from heedful.spaces.slate import Slate, SlateContext, SlateRatings, WeightedRatings, check_slate

Array = npt.NDArray[np.float64]

MEMORY = 0.999
"""How much of its score a preset keeps from one rating to the next."""
CERTAIN = 0.01
"""Of items that may all be as good as the best rating there ever was, the most certain is shown."""
FAINT = 1e-100
"""Where counts are worth less than this of what is written, they are written anew."""


class BMFState(NamedTuple):
    """The ratings; of each pair the squares about its mean, how many ratings these are of, how many it has (3 P,); of
    all ratings the FACTS; the models; what first factors are drawn by; number of rounds. Counts and sums of pairs and
    `told` are worth facts[SCALE] times what is written."""

    pairs: InteractionMatrix
    told: Array
    facts: Array
    plain: FactorModel
    factored: FactorModel
    seed: int
    t: int

    @property
    def grows(self) -> bool:
        """Whether its arrays become longer: they do, as users and items arrive."""
        return True


class BMF(NamedTuple):
    """Bayesian matrix factors: ours, learned online by mean field. Interaction: rating.

    A rating of item j by user i is b_j + b_i + u_i . v_j + g_ij + noise: biases, factors, and what this user thinks of
    this item alone, which comes again where the item does. A Gaussian q for every row [b_i, u_i] and [b_j, v_j]; after
    a rating q_j, then q_i, are inferred anew from the counts and sums of their pairs, the means and covariances of the
    other side; one more user and item in turn. All variances, and the mean of the b_j, are learned (empirical Bayes),
    in units of the ratings so far: once two differ, scaled or shifted ratings change nothing. A model without factors
    is learned beside it, and what foretells the next ratings better (`automatic`; log likelihood, .999 of it kept a
    rating) shows.

    Shows the items of the highest mean + c standard deviations, at most the highest rating so far (where two differ,
    or it is the highest there is); `sampled`, of the highest sample from q, c times as wide (Thompson). c = width +
    growth log(1 + again n_i), n_i how many ratings of this user count, and `again` the share of ratings that came
    again: to know an item better is worth as much as one will see of it. As in Bayes-UCB, whose quantile 1 - 1 / n
    grows about so. 0 and 0 is greedy. No bound is known.
    """

    space: Any = Slate()
    n_factors: int = 5
    width: float = 0.5
    """how many standard deviations count from the beginning"""
    growth: float = 0.5
    """how many more, as ratings come again"""
    sampled: bool = False
    """Thompson's samples instead"""
    automatic: bool = True
    """whether the better one shows; else the one with factors"""
    gamma: float = 1.0
    """what is left of the weight of a rating after each further round; 1 forgets nothing"""

    @property
    def version(self) -> int:
        """The version of the fold: raised with every change of what it computes."""
        return 1

    def init(self, rng: np.random.Generator) -> BMFState:
        check_slate(self.space)
        check_count("n_factors", self.n_factors, most=1000)
        for name, width in (("width", self.width), ("growth", self.growth)):
            if not is_number(width, int, float) or not 0.0 <= width <= 1e6:
                raise ValueError(f"{name}: expected a number from 0 to 1e6, got {describe(width)}")
        for name in ("sampled", "automatic"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name}: expected True or False, got {describe(getattr(self, name))}")
        if not is_number(self.gamma, int, float) or not 0.5 <= self.gamma <= 1.0:
            raise ValueError(f"gamma: expected a number from 0.5 to 1, got {describe(self.gamma)}")
        seed = int(rng.integers(2**62))
        facts = np.zeros(FACTS)
        facts[SCALE] = 1.0
        plain, factored = empty_model(1, facts), empty_model(1 + self.n_factors, facts)
        plain, factored = with_capacity(plain, 64, 64, -1, seed), with_capacity(factored, 64, 64, -1, seed)
        return BMFState(empty_matrix(64, 64), np.zeros(192), facts, plain, factored, seed, 0)

    def scores(self, state: BMFState, x: SlateContext, rng: np.random.Generator) -> Array:
        """What decides: the mean, and as much more as the width says (c,)."""
        return scores_of(self, state, x, rng)

    def propose(self, state: BMFState, x: SlateContext, rng: np.random.Generator) -> Ints:
        return best_items(scores_of(self, state, x, rng), x.items, self.space.size)

    def update(self, state: BMFState, x: SlateContext, y: Ints, feedback: SlateRatings | WeightedRatings) -> BMFState:
        state = with_room(self, state, x)
        for r in range(feedback.items.size):
            item, rating, weight = int(feedback.items[r]), float(feedback.ratings[r]), float(feedback.weight(r))
            state = learn_rating(self, state, x.user, item, rating, weight)
        return state

    # ------------------------------------------------------------------ what it believes

    def ratings(self, state: BMFState, x: SlateContext) -> Array:
        """The predicted rating of each item on offer (c,)."""
        w, S = user_gaussian(active_model(self, state), x.user)
        out: Array = predict(self, state, x, w, S, 0)[0] + state.facts[ORIGIN]
        return out

    def deviations(self, state: BMFState, x: SlateContext) -> Array:
        """How certain that is: the standard deviation of what the user thinks of each item, noise left out (c,)."""
        w, S = user_gaussian(active_model(self, state), x.user)
        return np.sqrt(predict(self, state, x, w, S, 1)[1])

    def parts(self, state: BMFState, x: SlateContext) -> tuple[tuple[str, Array], ...]:
        """What `ratings` are the sum of, in words, (c,) each."""
        model, facts = active_model(self, state), state.facts
        items = with_rows(model.items, int(x.items[-1]) + 1, state.seed)
        w, _ = user_gaussian(model, x.user)
        K, middle, n = w.size, model.hyper[3], x.items.size
        known = items.adds[x.items, K + 1] > 0.0
        item = np.where(known, items.mean[x.items, 0] - middle, 0.0)
        taste = items.mean[x.items, 1:] @ w[1:]
        level, person = np.full(n, middle + facts[ORIGIN]), np.full(n, w[0])
        theirs = np.isin(x.items, items_of(state.pairs, x.user))
        alone = np.where(theirs, self.ratings(state, x) - level - item - person - taste, 0.0)
        names = ("all ratings", "this item", "this person", "taste", "their own ratings of it")
        return tuple(zip(names, (level, item, person, taste, alone)))

    # ------------------------------------------------------------------ taking ratings out

    def without_item(self, state: BMFState, item: int) -> BMFState:
        """The state without an item: counts and sums at once, its row, and the rows of who rated it."""
        return self.forget_pairs(state, [(i, item) for i in users_of(state.pairs, item).tolist()])

    def without_rating(self, state: BMFState, user: int, item: int, rating: float, weight: float = 1.0) -> BMFState:
        """The state without one rating of this weight (where gamma is below 1: what is left of it): counts and sums at
        once, and both rows inferred anew. LookupError where the user never rated the item. The highest rating, and in
        what units variances began, stay: fold the log again for *as if never seen*."""
        pairs, facts, told = state.pairs, state.facts, state.told
        p = check_pair(pairs, user, item)
        scale = facts[SCALE]
        c, total = scale * pairs.count[p] - weight, scale * pairs.total[p] - weight * rating
        if c <= 1e-9 * weight:
            return self.forget_pairs(state, [(user, item)])
        e = rating - total / c
        # the squares, how many they are of, how many ratings
        less = np.minimum([e * e * c * weight / (c + weight), 1.0, 1.0], scale * told[3 * p : 3 * p + 3])
        told[3 * p : 3 * p + 3] -= less / scale
        remove_from_facts(facts, weight, weight * rating, 0.0, less)
        remove_rating(pairs, user, item, rating, weight / scale)
        self.infer_rows(state, user, item)
        return state

    def forget_pairs(self, state: BMFState, those: list[tuple[int, int]]) -> BMFState:
        """The state without these pairs, the rows of their users and items inferred anew."""
        pairs, scale = state.pairs, state.facts[SCALE]
        for user, item in those:
            p = place_of(pairs, user, item)
            told = state.told[3 * p : 3 * p + 3]
            remove_from_facts(
                state.facts, scale * pairs.count[p], scale * pairs.total[p], scale * told[0], scale * told
            )
            told[:] = 0.0
            remove_pair(pairs, p)
        for user, item in those:
            self.infer_rows(state, user, item)
        return state

    def infer_rows(self, state: BMFState, user: int, item: int) -> None:
        """Infer two rows anew, in place."""
        for model in (state.factored, state.plain) if self.automatic else (state.factored,):
            item_row(state.pairs, model, item, state.facts, state.seed)
            user_row(state.pairs, model, user, state.facts)
            learn_variances(model, state.facts)


# ---------------------------------------------------------------------------- learning


@noinline
@kernel
def with_room(learner: BMF, state: BMFState, x: SlateContext) -> BMFState:
    """The state at the beginning of a further round, with rows for the user and the items; owns `state`."""
    facts, pairs, told, gamma = state.facts, state.pairs, state.told, learner.gamma
    if gamma < 1.0:
        for i in (WEIGHT, SQUARES, WITHIN, AGAIN, RATINGS, SCALE):
            facts[i] *= gamma
        if facts[SCALE] < FAINT:
            for p in range(pairs.used):
                pairs.count[p] *= facts[SCALE]
                pairs.total[p] *= facts[SCALE]
            for i in range(3 * pairs.used):
                told[i] *= facts[SCALE]
            facts[SCALE] = 1.0
    users, items = x.user + 1, x.items[-1] + 1
    plain = with_capacity(state.plain, users, items, -1, state.seed)
    factored = with_capacity(state.factored, users, items, -1, state.seed)
    return BMFState(pairs, told, facts, plain, factored, state.seed, state.t + 1)


@noinline
@kernel
def record_rating(
    state: BMFState, user: int, item: int, rating: float, weight: float
) -> tuple[InteractionMatrix, Array]:
    """The pairs and what was told of them with one rating more, as much in the facts, in place; not in the models."""
    facts, pairs, told = state.facts, state.pairs, state.told
    if facts[RATINGS] == 0.0:
        facts[ORIGIN] = facts[HIGHEST] = rating
    facts[HIGHEST] = max(facts[HIGHEST], rating)
    facts[RATINGS] += 1.0
    facts[WEIGHT] += weight
    d = rating - facts[MEAN]
    facts[MEAN] += d * weight / facts[WEIGHT]
    facts[SQUARES] += weight * (d * (rating - facts[MEAN]))
    p, scale = place_of(pairs, user, item), facts[SCALE]
    square, again = 0.0, 0.0
    if p >= 0 and pairs.count[p] > 0.0:
        c = scale * pairs.count[p]
        e = rating - pairs.total[p] / pairs.count[p]
        square, again = e * e * c * weight / (c + weight), 1.0
        facts[WITHIN] += square
        facts[AGAIN] += 1.0
    pairs = add_rating(pairs, user, item, rating, weight / scale)
    told = grow(told, 3 * pairs.used, 0.0)
    p = place_of(pairs, user, item)
    told[3 * p] += square / scale
    told[3 * p + 1] += again / scale
    told[3 * p + 2] += 1.0 / scale
    return pairs, told


def remove_from_facts(facts: Array, count: float, total: float, squares: float, told: Array) -> None:
    """The facts without so many ratings of a pair, the squares about their mean, and what was told of them (3,), in
    place."""
    n = facts[WEIGHT] - count
    for fact, less in zip((WITHIN, AGAIN, RATINGS), told):
        facts[fact] = max(facts[fact] - less, 0.0)
    if n <= 1e-9 * count:
        facts[[WEIGHT, MEAN, SQUARES, WITHIN, AGAIN, RATINGS]] = 0.0
        return
    d = total / count - facts[MEAN]
    facts[SQUARES] = max(facts[SQUARES] - squares - d * d * count * facts[WEIGHT] / n, 0.0)
    facts[MEAN] -= d * count / n
    facts[WEIGHT] = n


@noinline
@kernel
def learn_rating(learner: BMF, state: BMFState, user: int, item: int, rating: float, weight: float) -> BMFState:
    """The state after one rating, which counts for `weight`; owns `state`."""
    facts, plain, factored, t = state.facts, state.plain, state.factored, state.t - 1
    a, b = plain.score, factored.score
    if learner.automatic and facts[RATINGS] > 0.0:
        y = rating - facts[ORIGIN]
        a = MEMORY * a + log_predictive(state.pairs, plain, user, item, facts, y, weight)
        b = MEMORY * b + log_predictive(state.pairs, factored, user, item, facts, y, weight)
    pairs, told = record_rating(state, user, item, rating, weight)
    learn_rows(pairs, factored, facts, user, item, state.seed, t)
    if learner.automatic:
        learn_rows(pairs, plain, facts, user, item, state.seed, t)
    plain = FactorModel(plain.users, plain.items, plain.hyper, a)
    factored = FactorModel(factored.users, factored.items, factored.hyper, b)
    return BMFState(pairs, told, facts, plain, factored, state.seed, state.t)


# ---------------------------------------------------------------------------- deciding


@kernel
def active_model(learner: BMF, state: BMFState) -> FactorModel:
    """The model that decides."""
    return state.factored if not learner.automatic or state.factored.score > state.plain.score else state.plain


@noinline
@kernel
def predict(learner: BMF, state: BMFState, x: SlateContext, w: Array, S: Array, uncertain: int) -> tuple[Array, Array]:
    """Mean, less the first rating, and variance of what a user (w (K,), S (K x K)) thinks of each item on offer (c,),
    noise left out; no variance (0,) unless `uncertain`."""
    model = active_model(learner, state)
    items = with_rows(model.items, x.items[-1] + 1, state.seed)
    mean, var = np.empty(x.items.size), np.empty(x.items.size * uncertain)
    predictive_moments(items.mean, items.cov, items.adds, x.items, w, S, model.hyper, mean, var)
    add_own_ratings(state.pairs, model.hyper, state.facts, x, mean, var)
    return mean, var


@kernel
def exploration_width(learner: BMF, facts: Array, count: float) -> float:
    """How many standard deviations count for somebody of whom `count` ratings do."""
    return learner.width + learner.growth * math.log(1.0 + count * (facts[AGAIN] / max(facts[RATINGS], 1.0)))


@noinline
@kernel
def scores_of(learner: BMF, state: BMFState, x: SlateContext, rng: np.random.Generator) -> Array:
    """What decides (c,)."""
    width = exploration_width(learner, state.facts, total_count(state.pairs, x.user) * state.facts[SCALE])
    w, S = user_gaussian(active_model(learner, state), x.user)
    z = np.ones(1)
    if learner.sampled:  # one taste for all items: then they vary independently
        L, K = S.copy(), w.size
        cholesky(L)
        z = rng.standard_normal(K)
        for a in range(K):
            for b in range(a + 1):
                w[a] += width * (L[a, b] * z[b])
                S[a, b] = S[b, a] = 0.0
        z = rng.standard_normal(x.items.size if width > 0.0 else 0)
    mean, var = predict(learner, state, x, w, S, 1 if width > 0.0 else 0)
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
    """mean (c,) + origin, raised by width z sd (z (1,) or (c,)): none is better than `highest`."""
    mean += origin
    if width > 0.0:
        sd = np.sqrt(var)
        mean = np.minimum(mean + width * (z * sd), highest - CERTAIN * sd)
    return mean
