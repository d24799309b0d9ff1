"""BMF against a slow version that keeps every rating, and what it must not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ratings_streams import offers, played, weighed

import naive_ratings as naive
from heedful.core.conformance import identical
from heedful.core.fold import copy_arrays
from heedful.learners.ratings import bmf_model
from heedful.learners.ratings.bmf import BMF, active_model, learn_rating
from heedful.learners.ratings.bmf_model import AGAIN, MEAN, RATINGS, SCALE, SQUARES, WEIGHT, WITHIN
from heedful.learners.ratings.interaction_matrix import items_of, places_of, users_of
from heedful.spaces.slate import Slate, SlateContext, SlateRatings, WeightedRatings


def seed_of(seed: int) -> int:
    return int(np.random.default_rng(seed).integers(2**62))


FEATURES = {item: np.random.default_rng(item).standard_normal(2) for item in range(0, 140, 2)}
"""features of every other item of a stream"""


class Featured(BMF):
    """BMF that knows the features of items from the beginning."""

    def init(self, rng: np.random.Generator) -> Any:
        state = BMF.init(self, rng)
        for item, features in FEATURES.items() if self.n_features else ():
            state = self.with_item(state, item, features)
        return state


@pytest.mark.parametrize(
    ("options", "size", "late", "weigh", "most"),
    [
        ({"width": 1.0}, 1, 0, False, 256),
        ({"width": 0.0, "growth": 0.0}, 1, 30, False, 256),
        ({"growth": 0.7, "automatic": False}, 3, 0, False, 256),
        ({"width": 0.5, "growth": 1.0, "sampled": True}, 2, 20, False, 256),
        ({}, 2, 0, True, 256),
        ({"gamma": 0.9}, 1, 20, False, 2),
        ({"gamma": 0.8, "sampled": True}, 3, 0, True, 256),
        ({"n_features": 2}, 2, 20, False, 256),
        ({"n_features": 2}, 2, 0, False, 3),
        ({}, 3, 20, True, 2),
    ],
    ids=[
        "ucb",
        "greedy, late comers",
        "factors alone, slates",
        "thompson, slates, late comers",
        "weights",
        "forgetting, late comers",
        "forgetting, weights, thompson",
        "features, late comers",
        "features, few pairs read",
        "weights, late comers, few pairs read",
    ],
)
def test_it_is_its_readable_version_round_for_round(
    options: dict[str, Any], size: int, late: int, weigh: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bmf_model, "MOST", most)
    learner = Featured(Slate(size), n_factors=2, **options)
    fields = learner.width, learner.growth, learner.sampled, learner.automatic, learner.gamma, learner.n_features
    slow = naive.BMF(seed_of(4), 2, *fields, FEATURES if learner.n_features else None, most)
    state = played(
        learner,
        lambda user, items, rng: slow.propose(user, items, size, rng),
        lambda x, f: slow.update(
            x.user,
            x.items.tolist(),
            [(int(f.items[r]), float(f.ratings[r]), f.weight(r)) for r in range(f.items.size)],
        ),
        rounds=60,
        seed=4,
        late=late,
        weigh=weigh,
    )
    for model, wanted in ((state.factored, slow.factored), (state.plain, slow.plain))[: 1 + learner.automatic]:
        for rows, by in ((model.users, wanted.users), (model.items, wanted.items)):
            for at, (mean, cov) in by.items():
                np.testing.assert_allclose(rows.mean[at], mean, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(rows.cov[at], cov, rtol=1e-9, atol=1e-9)
        hyper = [wanted.noise, wanted.pair, wanted.item_bias, *wanted.taste]
        np.testing.assert_allclose(model.hyper, hyper, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(model.items.coefficients, wanted.coefficients, rtol=1e-9, atol=1e-9)
        assert model.score[0] == pytest.approx(wanted.score, rel=1e-9)


def history(learner: BMF, rounds: int, weigh: bool = False) -> Any:
    rng = np.random.default_rng(0)
    state = learner.init(rng)
    for x, answer in offers(rounds, 3):
        y = learner.propose(state, x, rng)
        feedback = answer(y)
        state = learner.update(state, x, y, weighed(feedback, len(x.items)) if weigh else feedback)
    return state


@pytest.mark.parametrize(("rating", "more"), [(1.0, True), (3.0, True), (5.0, False)])
def test_who_rates_all_alike_is_shown_more_than_the_first(rating: float, more: bool) -> None:
    """There may be better; unless it was the highest there is."""
    learner = BMF(Slate(3, 1.0, 5.0))
    rng = np.random.default_rng(0)
    state, x, shown = learner.init(rng), SlateContext(0, np.arange(12)), set()
    for _ in range(10):
        y = learner.propose(state, x, rng)
        shown |= set(y.tolist())
        state = learner.update(state, x, y, SlateRatings(np.sort(y), np.full(3, rating)))
    assert (len(shown) > 3) == more


@pytest.mark.parametrize("sampled", [False, True])
def test_scaled_and_shifted_ratings_show_the_same(sampled: bool) -> None:
    """All is in units of the ratings so far; before two differ there is no unit, and what that did fades."""
    learner = BMF(sampled=sampled, n_factors=2)
    states = []
    for scale, shift in ((1.0, 0.0), (8.0, 1024.0)):
        state = learner.init(np.random.default_rng(0))
        for x, answer in offers(200, 3):
            feedback = answer(x.items[:1])
            state = learner.update(
                state, x, x.items[:1], SlateRatings(feedback.items, scale * feedback.ratings + shift)
            )
        states.append(state)
    np.testing.assert_allclose(
        states[1].factored.items.coefficients, 8.0 * states[0].factored.items.coefficients, rtol=1e-3
    )
    x = SlateContext(2, np.arange(12))
    a = learner.scores(states[0], x, np.random.default_rng(1))
    b = learner.scores(states[1], x, np.random.default_rng(1))
    np.testing.assert_allclose((b - 1024.0) / 8.0, a, atol=1e-3)


@pytest.mark.parametrize("gamma", [1.0, 0.95])
def test_what_is_taken_out_is_out_of_counts_sums_and_squares_at_once(gamma: float) -> None:
    learner = BMF(n_factors=2, gamma=gamma)
    full = history(learner, 80, weigh=True)
    pairs, scale = full.pairs, full.facts[SCALE]
    assert scale == pytest.approx(gamma**80)
    for item in (int(pairs.item[0]), int(pairs.item[pairs.used - 1])):
        places = [p for p in range(pairs.used) if pairs.count[p]]
        kept = [p for p in places if pairs.item[p] != item]
        assert len(kept) < len(places)
        state = learner.without_item(full, item)
        assert [p for p in range(pairs.used) if pairs.count[p]] == kept
        facts, told = state.facts, state.told.reshape(-1, 3)
        assert facts[WEIGHT] == pytest.approx(scale * sum(pairs.count))
        assert facts[MEAN] == pytest.approx(sum(pairs.total) / sum(pairs.count))
        means = pairs.total[kept] / pairs.count[kept]
        among = scale * np.sum(pairs.count[kept] * (means - facts[MEAN]) ** 2)
        within = scale * told[kept, 0].sum()
        if gamma == 1.0:
            assert facts[SQUARES] == pytest.approx(within + among)
        np.testing.assert_allclose(facts[[WITHIN, AGAIN, RATINGS]], scale * told[kept].sum(axis=0), atol=1e-9)
        for model in (state.plain, state.factored):
            for rows in (model.users, model.items):
                np.testing.assert_allclose(rows.sums, rows.adds.sum(axis=0), atol=1e-9)
        for model in (full.plain, full.factored):
            assert (model.items.adds[item] == 0.0).all()


def test_the_last_rating_taken_out_leaves_nothing() -> None:
    learner = BMF(n_factors=2)
    state = learn_rating(learner, learner.init(np.random.default_rng(0)), 1, 1, 2, 4.5, 0.1)
    state = learner.without_item(state, 2)
    assert not state.facts[[WEIGHT, MEAN, SQUARES, WITHIN, AGAIN, RATINGS]].any()
    assert not state.pairs.count.any()


def test_counts_that_have_become_faint_are_rescaled() -> None:
    """The scale would vanish, .5 to the power of some 1,000; what was written with it is worth the same after."""
    learner = BMF(n_factors=2, gamma=0.5)
    state, x = learner.init(np.random.default_rng(0)), SlateContext(1, np.arange(4))
    low = 1.0
    for t in range(400):
        state = learner.update(state, x, x.items[:1], SlateRatings(x.items[:1], np.full(1, float(t % 2))))
        low = min(low, state.facts[SCALE])
        count = state.facts[SCALE] * state.pairs.count[0]
        assert count == pytest.approx(2.0 - 0.5**t)
        assert state.facts[WEIGHT] == pytest.approx(count)
    assert 1e-101 < low < 1e-99


@pytest.mark.slow
def test_what_is_forgotten_gives_way_to_what_is_new() -> None:
    """An item that all users liked and then none does: with gamma below 1 its predicted rating follows."""
    expected = []
    for gamma in (1.0, 0.98):
        learner = BMF(n_factors=2, gamma=gamma)
        state, x = learner.init(np.random.default_rng(0)), SlateContext(3, np.arange(6))
        for t in range(600):
            rating = 5.0 if t < 300 else 1.0
            state = learner.update(
                state, x._replace(user=t % 5), x.items[:1], SlateRatings(x.items[:1], np.full(1, rating))
            )
        expected.append(learner.ratings(state, x)[0])
    assert expected[0] > 2.5
    assert expected[1] < 1.1


def test_a_weight_counts_as_so_many_ratings() -> None:
    """In the counts and sums, in the facts but for how many there were, and in what is expected, to little."""
    learner, states = BMF(n_factors=2), []
    x = SlateContext(0, np.arange(6))
    for once in (True, False):
        state = learner.init(np.random.default_rng(0))
        for user, item, rating, times in ((0, 1, 4.0, 3), (1, 1, 2.0, 1), (0, 2, 1.0, 2), (2, 3, 5.0, 4)):
            one = np.array([item])
            given = WeightedRatings(one, np.full(1, rating), np.full(1, float(times)))
            for feedback in [given] if once else [SlateRatings(one, given.ratings)] * times:
                state = learner.update(state, x._replace(user=user), one, feedback)
        states.append(state)
    assert identical(states[0].pairs, states[1].pairs)
    np.testing.assert_allclose(states[0].facts[[WEIGHT, MEAN, SQUARES]], states[1].facts[[WEIGHT, MEAN, SQUARES]])


def test_what_is_expected_is_the_sum_of_its_parts() -> None:
    learner = Featured(n_factors=2, automatic=False, n_features=2)
    state = history(learner, 120)
    before = copy_arrays(state)
    for x in (SlateContext(2, np.arange(12)), SlateContext(99, np.array([0, 3, 500]))):
        ratings, parts = learner.ratings(state, x), learner.parts(state, x)
        assert [name for name, _ in parts] == [
            "all ratings", 0, 1, "this item", "this person", "taste", "their own ratings of it",
        ]  # fmt: skip
        np.testing.assert_allclose(sum(part for _, part in parts), ratings)
        assert (learner.deviations(state, x) > 0.0).all()
    # The user and the last item have no ratings: the prediction is the mean of all, and first factors add nothing.
    assert parts[3][1][2] == parts[4][1][0] == parts[5][1][2] == parts[6][1][0] == 0.0
    assert parts[1][1][0] != 0.0
    known = learner.deviations(state, SlateContext(2, np.arange(12)))
    assert known.max() < learner.deviations(state, x)[2]
    assert identical(before, state)
    x, places = SlateContext(2, np.arange(12)), places_of(state.pairs.by_user, 2)
    own = learner.parts(state, x)[6][1]
    rated = state.pairs.item[places][0]
    assert own[rated] != 0.0
    never = np.setdiff1d(x.items, items_of(state.pairs, 2))
    np.testing.assert_allclose(own[never], 0.0, atol=1e-12)


def test_features_say_what_a_new_item_is_worth() -> None:
    """Ratings are 3 + 1.5 times the first feature, whoever rates: an item that nobody rated is expected by it, and a
    learner without features expects the mean."""
    rng = np.random.default_rng(5)
    features = rng.standard_normal((60, 3))
    found = {}
    for n_features in (0, 3):
        learner = BMF(n_features=n_features)
        state = learner.init(np.random.default_rng(0))
        for item, row in enumerate(features):
            state = learner.with_item(state, item, row[:n_features])
        for t in range(300):
            user, item = t % 7, int(rng.integers(40))
            given = SlateRatings(np.array([item]), 3.0 + 1.5 * features[[item], 0] + 0.1 * rng.standard_normal(1))
            state = learner.update(state, SlateContext(user, given.items), given.items, given)
        found[n_features] = learner.ratings(state, SlateContext(3, np.arange(40, 60)))
    error = np.abs(found[3] - (3.0 + 1.5 * features[40:, 0]))
    assert error.max() < 0.25
    assert np.ptp(found[0]) < 0.1


def test_an_item_that_nobody_rated_is_expected_to_be_like_what_is_rated() -> None:
    """Of two kinds of items one is liked and rated nine times as often: a new one is expected by the mean of all
    ratings, and shown by the mean of all items."""
    rng, learner = np.random.default_rng(6), BMF(automatic=False, width=0.0, growth=0.0)
    state = learner.init(rng)
    for t in range(600):
        liked = t % 10 > 0
        item = int(rng.integers(20)) + (0 if liked else 20)
        given = SlateRatings(np.array([item]), np.array([5.0 if liked else 1.0]) + 0.1 * rng.standard_normal(1))
        state = learner.update(state, SlateContext(t % 30, given.items), given.items, given)
    new = SlateContext(99, np.array([50]))
    assert learner.ratings(state, new)[0] == pytest.approx(4.6, abs=0.1)
    assert learner.scores(state, new, rng)[0] < 4.3


@pytest.mark.parametrize(
    ("item", "features", "told"),
    [
        (0, [1.0, 2.0, 3.0], "features: expected 2 finite numbers, got"),
        (0, [1.0], "features: expected 2 finite numbers, got"),
        (0, [[1.0, 2.0]], "features: expected 2 finite numbers, got"),
        (0, [np.nan, 1.0], "features: expected 2 finite numbers, got"),
        (0, "red", "features: expected"),
        (-1, [1.0, 2.0], "item: expected"),
        (10**7, [1.0, 2.0], "item: expected"),
    ],
)
def test_features_that_make_no_sense_are_refused_and_nothing_is_changed(item: int, features: Any, told: str) -> None:
    learner = BMF(n_features=2)
    state = history(learner, 5)
    before = copy_arrays(state)
    with pytest.raises(ValueError, match=told):
        learner.with_item(state, item, np.array(features))
    assert identical(before, state)


def test_features_that_change_and_items_that_go_leave_the_sums_right() -> None:
    """The sums over items with ratings, from which coefficients are learned, are those of what is there now."""
    learner = Featured(n_factors=2, n_features=2)
    state = history(learner, 60)
    state = learner.with_item(state, 3, np.array([0.5, -2.0]))
    state = learner.without_item(state, 4)
    for model in (state.plain, state.factored):
        K, items = model.items.mean.shape[1], model.items
        rated = np.flatnonzero(items.adds[:, K + 1])
        assert 3 in rated
        assert 4 not in rated
        X = items.covariates[rated]
        n = np.array([users_of(state.pairs, item).size for item in rated.tolist()])
        assert n.max() > 1
        for gram, moments, times in (
            (items.gram, items.moments, np.ones(n.size)),
            (items.gram_by_pair, items.moments_by_pair, n),
        ):
            np.testing.assert_allclose(np.tril(gram), np.tril(X.T @ (times[:, None] * X)), atol=1e-11)
            np.testing.assert_allclose(moments, X.T @ (times * items.mean[rated, 0]), atol=1e-11)


@pytest.mark.slow
def test_factors_show_where_there_are_some_and_not_where_there_are_none() -> None:
    """The model that predicts better decides: ratings of rank 3, and ratings of items that all users agree on."""
    rng = np.random.default_rng(2)
    agree = np.broadcast_to(rng.standard_normal(20), (15, 20))
    for Y, factors in ((rng.standard_normal((15, 3)) @ rng.standard_normal((3, 20)), True), (agree, False)):
        learner = BMF(n_factors=3)
        state = learner.init(np.random.default_rng(0))
        for _ in range(1200):
            user, item = int(rng.integers(15)), rng.integers(20, size=1)
            rating = Y[user, item] + 0.5 * rng.standard_normal(1)
            state = learner.update(state, SlateContext(user, np.arange(20)), item, SlateRatings(item, rating))
        assert (active_model(learner, state).items.mean.shape[1] > 1) is factors


def test_how_wide_depends_on_how_often_ratings_come_again() -> None:
    """width + growth log(1 + again n), n the ratings of this user that count: worked by hand."""
    learner, rng = BMF(n_factors=2, width=0.5, growth=2.0), np.random.default_rng(0)
    state, x = learner.init(rng), SlateContext(0, np.arange(5))
    for user, item in ((0, 1), (0, 2), (1, 1), (0, 1)):  # one of four came again; three are this user's
        one = np.array([item])
        state = learner.update(state, x._replace(user=user), one, SlateRatings(one, np.array([float(item + user)])))
    for user, wanted in ((0, 0.5 + 2.0 * np.log(1.75)), (1, 0.5 + 2.0 * np.log(1.25)), (2, 0.5)):
        offer = x._replace(user=user)
        mean, sd = learner.ratings(state, offer), learner.deviations(state, offer)
        scores = learner.scores(state, offer, rng)
        rated = [1, 2]  # of the others, what is said of ratings is not what they are shown by
        np.testing.assert_allclose(scores[rated], np.minimum(mean + wanted * sd, 2.0 - 0.01 * sd)[rated])
