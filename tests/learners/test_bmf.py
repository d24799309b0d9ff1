"""BMF against a slow version that keeps every rating, and what it must not depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ratings_streams import offers, played

import naive_ratings as naive
from heedful.learners.bmf import BMF
from heedful.spaces_offers import Offer, Rated, Slate


def seed_of(seed: int) -> int:
    return int(np.random.default_rng(seed).integers(2**62))


@pytest.mark.parametrize(
    ("options", "size", "late"),
    [
        ({"width": 1.5}, 1, 0),
        ({"width": 0.0, "factor_width": 0.0}, 1, 30),
        ({"factor_width": 0.7, "automatic": False}, 3, 0),
        ({"width": 0.5, "factor_width": 1.0, "sampled": True}, 2, 20),
    ],
    ids=["ucb", "greedy, late comers", "factors alone, slates", "thompson, slates, late comers"],
)
def test_it_is_its_readable_version_round_for_round(options: dict[str, Any], size: int, late: int) -> None:
    learner = BMF(Slate(size), n_factors=2, **options)
    slow = naive.BMF(seed_of(4), 2, learner.width, learner.factor_width, learner.sampled, learner.automatic)
    state = played(
        learner,
        lambda user, items, rng: slow.propose(user, items, size, rng),
        lambda x, f: slow.update(x.user, x.items.tolist(), list(zip(f.items.tolist(), f.ratings.tolist()))),
        rounds=60,
        seed=4,
        late=late,
    )
    for model, wanted in ((state.factored, slow.factored), (state.plain, slow.plain))[: 1 + learner.automatic]:
        for rows, by in ((model.users, wanted.users), (model.items, wanted.items)):
            for at, (mean, cov) in by.items():
                np.testing.assert_allclose(rows.mean[at], mean, rtol=1e-9, atol=1e-9)
                np.testing.assert_allclose(rows.cov[at], cov, rtol=1e-9, atol=1e-9)
        hyper = [wanted.noise, wanted.pair, wanted.item_bias, wanted.middle, *wanted.taste]
        np.testing.assert_allclose(model.hyper, hyper, rtol=1e-9, atol=1e-9)
        assert model.score == pytest.approx(wanted.score, rel=1e-9)


def history(learner: BMF, rounds: int) -> Any:
    rng = np.random.default_rng(0)
    state = learner.init(rng)
    for x, answer in offers(rounds, 3):
        y = learner.propose(state, x, rng)
        state = learner.update(state, x, y, answer(y))
    return state


@pytest.mark.parametrize("sampled", [False, True])
def test_scaled_and_shifted_ratings_show_the_same(sampled: bool) -> None:
    """All is in units of the ratings so far; before two differ there is no unit, and what that did fades."""
    learner = BMF(sampled=sampled, n_factors=2)
    states = []
    for scale, shift in ((1.0, 0.0), (8.0, 1024.0)):
        state = learner.init(np.random.default_rng(0))
        for x, answer in offers(200, 3):
            feedback = answer(x.items[:1])
            state = learner.update(state, x, x.items[:1], Rated(feedback.items, scale * feedback.ratings + shift))
        states.append(state)
    np.testing.assert_allclose(states[1].factored.hyper[3], 8.0 * states[0].factored.hyper[3], rtol=1e-3)
    x = Offer(2, np.arange(12))
    a = learner.scores(states[0], x, np.random.default_rng(1))
    b = learner.scores(states[1], x, np.random.default_rng(1))
    np.testing.assert_allclose((b - 1024.0) / 8.0, a, atol=1e-3)


def test_what_is_taken_out_is_out_of_counts_sums_and_squares_at_once() -> None:
    learner = BMF(n_factors=2)
    full = history(learner, 80)
    pairs = full.pairs
    user, item = int(pairs.user[0]), int(pairs.item[pairs.used - 1])
    for taken, gone in (
        (lambda s: learner.without_user(s, user), lambda i, j: i == user),
        (lambda s: learner.without_item(s, item), lambda i, j: j == item),
    ):
        places = [p for p in range(pairs.used) if pairs.count[p]]
        kept = [p for p in places if not gone(pairs.user[p], pairs.item[p])]
        assert len(kept) < len(places)
        state = taken(full)
        assert [p for p in range(pairs.used) if pairs.count[p]] == kept
        facts = state.facts
        assert facts[0] == sum(pairs.count)
        assert facts[1] == pytest.approx(sum(pairs.total) / facts[0])
        assert facts[3] == pytest.approx(sum(state.spread[p] for p in kept), abs=1e-9)
        assert facts[4] == sum(pairs.count[p] - 1 for p in kept)
        for model in (state.plain, state.factored):
            for rows in (model.users, model.items):
                np.testing.assert_allclose(rows.sums, rows.adds.sum(axis=0), atol=1e-9)
    for model in (full.plain, full.factored):
        assert (model.users.adds[user] == 0.0).all()
        assert (model.items.adds[item] == 0.0).all()
        np.testing.assert_allclose(model.users.mean[user], 0.0, atol=1e-12)


def test_one_rating_taken_out_leaves_the_numbers_that_were_there_before() -> None:
    learner = BMF(n_factors=2)
    state = history(learner, 50)
    p = int(np.argmax(state.pairs.count))
    for user, item in ((int(state.pairs.user[p]), int(state.pairs.item[p])), (40, 3)):
        facts, spread = state.facts.copy(), state.spread.copy()
        state = learner.learned(state, user, item, 4.5)
        assert state.facts[2] > facts[2]
        state = learner.without_rating(state, user, item, 4.5)
        np.testing.assert_allclose(state.facts[:6], facts[:6], atol=1e-9)
        np.testing.assert_allclose(state.spread, spread, atol=1e-9)
    with pytest.raises(LookupError, match=r"^item: wanted one that user 40 rated, got 3$"):
        learner.without_rating(state, 40, 3, 4.5)


def test_factors_show_where_there_are_some_and_not_where_there_are_none() -> None:
    """The preset that foretells better shows: ratings of rank 3, and ratings of items that all users agree on."""
    rng = np.random.default_rng(2)
    agree = np.broadcast_to(rng.standard_normal(20), (15, 20))
    for Y, factors in ((rng.standard_normal((15, 3)) @ rng.standard_normal((3, 20)), True), (agree, False)):
        learner = BMF(n_factors=3)
        state = learner.init(np.random.default_rng(0))
        for _ in range(1200):
            user, item = int(rng.integers(15)), rng.integers(20, size=1)
            rating = Y[user, item] + 0.5 * rng.standard_normal(1)
            state = learner.update(state, Offer(user, np.arange(20)), item, Rated(item, rating))
        assert learner.factors_show(state) is factors


def test_how_wide_depends_on_what_factors_explain() -> None:
    """The greater width where the variances of the factors, without the bias, sum up to more than that of a pair."""
    learner, rng = BMF(n_factors=2, width=0.5, factor_width=4.0, automatic=False), np.random.default_rng(0)
    state = learner.init(rng)
    hyper = state.factored.hyper
    hyper[1], hyper[4] = 1.0, 9.0
    for each, wanted in ((0.4, 0.5), (0.6, 4.0)):
        hyper[5:] = each
        mean, var, width = learner.believed(state, Offer(0, np.arange(5)), rng)
        assert width == wanted
        shown = learner.scores(state, Offer(0, np.arange(5)), rng)
        assert shown.tolist() == np.minimum(mean + wanted * np.sqrt(var), -0.01 * np.sqrt(var)).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_factors": 0}, r"^n_factors: wanted a whole number, 1 to 1000, got 0$"),
        ({"width": -1.0}, r"^width: wanted a number from 0 to 1e6, got -1.0$"),
        ({"factor_width": float("nan")}, r"^factor_width: wanted a number from 0 to 1e6, got nan$"),
        ({"sampled": 1}, r"^sampled: wanted True or False, got 1$"),
        ({"automatic": 0.5}, r"^automatic: wanted True or False, got 0.5$"),
        ({"space": 3}, r"^space: wanted a slate, such as Slate\(5\), got 3$"),
    ],
)
def test_nonsense_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BMF(**options).init(np.random.default_rng(0))
