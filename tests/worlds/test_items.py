"""Pools of items, [J15] section 6.1.2: what leaves, who is left, what it costs, when it is over."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from heedful.core.fold import must_interpret, play, trace
from heedful.learners.coactive.dueling import DuelingBandit
from heedful.learners.coactive.perceptron import PreferencePerceptron
from heedful.spaces.ranking import Ranking
from heedful.worlds.items import close_ranks, item_pool, taste
from heedful.worlds.users import Best, Better, Noisy, StrictAlpha

SEEDS = st.integers(0, 2**32 - 1)
USERS = st.sampled_from([StrictAlpha(0.5), StrictAlpha(1.0), Better(), Better(exact=True), Best()])
N = 3
W_STAR = np.array([0.0, 0.0, 1.0])


def items(m: int, seed: int = 0) -> np.ndarray:
    """Rows that tell which item they are: x = (item, noise, utility under W_STAR)."""
    rng = np.random.default_rng(seed)
    return np.column_stack([np.arange(m), rng.standard_normal(m), 3.0 + 1.5 * rng.standard_normal(m)])


def allowed(user: Any, u: Any, ratings: Any, y: int) -> list[int]:
    if isinstance(user, StrictAlpha):
        return [naive.strict_alpha_item(u, y, user.alpha)]
    return naive.best_items(ratings, y) if isinstance(user, Best) else naive.better_items(ratings, y, user.exact)


@given(SEEDS, USERS, st.integers(1, 15))
def test_pool(seed: int, user: Any, m: int) -> None:
    """Round for round until nothing is left: items shown at random, one or two at a time."""
    rng = np.random.default_rng(seed)
    X = items(m, seed)
    known = np.where(rng.random(m) < 0.5, rng.integers(1, 6, m), np.nan)
    world, plain = item_pool(X, W_STAR, user, known), naive.ItemPool(X[:, 2])
    kept = [part.copy() for part in world[:3]]
    ratings = [r if r == r else min(5.0, max(1.0, np.floor(u + 0.5))) for r, u in zip(known, X[:, 2])]
    assert world.ratings.tolist() == ratings
    state, t = world.init(rng), 0
    while not world.over(state, t):
        x = world.context(state, t, rng)
        assert x[:, 0].tolist() == plain.left
        shown = rng.permutation(len(x))[: rng.integers(1, 3)]
        assert world.regret(state, x, shown) == pytest.approx(plain.regret(shown.tolist()), abs=1e-12)
        u, r = X[plain.left, 2], [ratings[j] for j in plain.left]
        y_bar = world.respond(state, x, shown, rng)
        if len(shown) == 1:
            assert len(y_bar) == 1
            assert int(y_bar[0]) in allowed(user, u.tolist(), r, int(shown[0]))
        else:
            worth = u if isinstance(user, StrictAlpha) else r
            ahead = worth[shown[0]] - worth[shown[1]]
            assert y_bar.tolist() == (shown if ahead == 0 else shown[:1] if ahead > 0 else shown[1:]).tolist()
        plain.leave(shown.tolist(), y_bar.tolist())
        state, t = world.advance(state, x, shown, y_bar), t + 1
        assert state.remaining == len(plain.left)
    assert plain.left == []
    assert all((part == before).all() for part, before in zip(world[:3], kept))


def test_pool_by_hand() -> None:
    """Utilities 1 5 3 5 2, alpha 1/2. Shown 0: from 1 half way to 5 is 3, item 2. Left 1 3 4; shown the last, of 2:
    the least that gains 1.5 is a 5, the lower index, item 1. Left 3, already the best. Regrets 4, 3, 0."""
    X = np.column_stack([np.arange(5), np.zeros(5), [1.0, 5.0, 3.0, 5.0, 2.0]])
    world = item_pool(X, W_STAR, StrictAlpha(0.5))
    rng = np.random.default_rng(0)
    state = world.init(rng)
    for place, came_back, regret, left in [(0, 2, 4.0, [1, 3, 4]), (2, 0, 3.0, [3]), (0, 0, 0.0, [])]:
        x = world.context(state, 0, rng)
        assert world.regret(state, x, np.array([place])) == regret
        y_bar = world.respond(state, x, np.array([place]), rng)
        assert y_bar.tolist() == [came_back]
        state = world.advance(state, x, np.array([place]), y_bar)
        assert state.rows[: state.remaining, 0].tolist() == left
    assert world.over(state, 3)


def test_a_duel_costs_its_mean() -> None:
    """Utilities 1 and 3 shown, 4 the best left: 4 - 2."""
    X = np.column_stack([np.arange(3), np.zeros(3), [1.0, 3.0, 4.0]])
    world = item_pool(X, W_STAR, StrictAlpha())
    state = world.init(np.random.default_rng(0))
    assert world.regret(state, X, np.array([0, 1])) == 2.0
    assert world.regret(state, X, np.array([2])) == 0.0
    assert world.respond(state, X, np.array([0, 1]), np.random.default_rng(0)).tolist() == [1]
    gone = world.advance(state, X, np.array([0, 1]), np.array([1]))
    assert gone.remaining == 1
    assert gone.rows[0].tolist() == X[2].tolist()
    assert (gone.utilities[0], gone.ratings[0]) == (4.0, 4.0)


def test_an_item_that_both_rankers_choose_leaves_alone() -> None:
    """[J15] 6.2.6: the person says which of two movies is better. Where both are the same, the answer is that one."""
    twice = 0
    for seed in range(10):
        world = item_pool(items(60, seed), W_STAR, StrictAlpha(0.5))
        for played, _ in play(DuelingBandit(N, Ranking(1), delta=1.0), world, 1000, seed):
            chosen = set(played.y.shown.tolist())
            assert set(played.feedback.tolist()) <= chosen
            assert len(set(played.feedback.tolist())) == len(played.feedback)
            twice += len(chosen) == 1
            assert len(played.y.shown) == 2
    assert twice >= 20  # the last of each pool alone are ten at most


@pytest.mark.parametrize("learner", [PreferencePerceptron(N, Ranking(1)), DuelingBandit(N, Ranking(1))])
@pytest.mark.parametrize("user", [StrictAlpha(), Better()])
def test_a_run_ends_with_the_pool(learner: Any, user: Any) -> None:
    """`trace` is then shorter than asked for; the pool is whole again for the next run; no item is shown twice."""
    m = 21
    world = item_pool(items(m), W_STAR, user)
    regrets = trace(learner, world, 1000, seed=0, interpreted=True)
    assert (m + 1) // 2 <= regrets.size <= m
    assert trace(learner, world, 1000, seed=0, interpreted=True).tolist() == regrets.tolist()
    assert trace(learner, world, 5, seed=0, interpreted=True).tolist() == regrets[:5].tolist()
    met: list[float] = []
    for played, _ in play(learner, world, 1000, seed=0):
        left = played.x[:, 0].tolist()
        assert left == [j for j in range(m) if j not in met]
        shown = played.y.shown if isinstance(learner, DuelingBandit) else played.y
        met += [left[j] for j in {*shown.tolist(), *played.feedback.tolist()}]
    assert sorted(met) == list(range(m))


def test_ratings_where_none_is_known() -> None:
    X = np.column_stack([np.zeros(4), np.zeros(4), [0.2, 2.5, 4.4, 7.0]])
    assert item_pool(X, W_STAR, Better()).ratings.tolist() == [1.0, 3.0, 4.0, 5.0]
    assert item_pool(X, W_STAR, Better(), [np.nan, 1.0, np.nan, 2.0]).ratings.tolist() == [1.0, 1.0, 4.0, 2.0]
    assert item_pool(X.astype(np.float32), W_STAR.tolist(), Better()).X.dtype == np.float32
    assert item_pool(np.asfortranarray(X), W_STAR, Better()).X.flags.c_contiguous


def test_people_who_rank_documents_do_not_pick_items() -> None:
    with pytest.raises(
        ValueError, match=r"^user: expected one who picks items \(strict, better, best, expected\), got Noisy"
    ):
        item_pool(items(3), W_STAR, Noisy())


def test_taste() -> None:
    """Length 1, another for every seed; ratings 1..5 with mean about 3 and deviation about 1, in utility's order."""
    X = np.random.default_rng(0).standard_normal((500, 6))
    w_star, ratings = taste(X, 3)
    assert np.linalg.norm(w_star) == pytest.approx(1.0)
    assert w_star.tolist() == taste(X, 3)[0].tolist()
    assert w_star.tolist() != taste(X, 4)[0].tolist()
    u = X @ w_star
    assert ratings.tolist() == np.clip(np.floor(3.5 + (u - u.mean()) / u.std()), 1, 5).tolist()
    assert set(ratings.tolist()) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert taste(np.ones((4, 2)), 0)[1].tolist() == [3.0] * 4  # all alike: no deviation to divide by


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w_star": np.ones(1)}, r"w_star: expected shape \(2,\), got \(1,\)"),
        ({"w_star": [np.nan, 1.0]}, "w_star: expected finite numbers"),
        ({"X": [[1.0, np.inf], [0.0, 0.0]]}, "X: expected finite numbers"),
        ({"X": [1.0, 2.0]}, "X: expected shape"),
        ({"ratings": 3.0}, "ratings: expected 2 of them"),
        ({"ratings": np.ones((2, 2))}, "ratings: expected 2 of them"),
        ({"ratings": [np.inf, 1.0]}, "ratings: expected 2 of them"),
        ({"ratings": "55"}, "ratings: expected a number for every item"),
        ({"user": StrictAlpha(0.0)}, "alpha: expected a number above 0, at most 1, got 0.0"),
        ({"user": Better("yes")}, "exact: expected True or False, got 'yes'"),
    ],
)
def test_data_that_do_not_fit_together_are_refused(change: dict[str, Any], message: str) -> None:
    whole = {"X": np.eye(2), "w_star": np.ones(2), "user": Best(), "ratings": [1.0, np.nan]}
    item_pool(**whole)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"^{message}"):
        item_pool(**{**whole, **change})  # type: ignore[arg-type]


@pytest.mark.slow
def test_who_picks_the_best_compiles() -> None:
    pool = item_pool(items(30), W_STAR, Best())
    learner = PreferencePerceptron(n_features=N, space=Ranking(1))
    assert not must_interpret(pool)
    assert np.array_equal(trace(learner, pool, 15, 3), trace(learner, pool, 15, 3, interpreted=True))
    assert (
        item_pool(items(30), W_STAR, Best(ties=False)).user.pick(np.zeros(3), np.array([1.0, 5.0, 5.0]), 0, None) == 1
    )


@given(SEEDS, st.integers(0, 12))
def test_who_stays_closes_ranks_in_order_in_both_bodies(seed: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    gone = rng.random(m) < 0.3
    whole = rng.standard_normal((m, 2)), rng.standard_normal(m), rng.standard_normal(m)
    for body in (close_ranks, close_ranks.__kernel__):
        moved = tuple(values.copy() for values in whole)
        left = body(*moved, gone)
        assert left == (~gone).sum()
        for after, before in zip(moved, whole):
            assert np.array_equal(after[:left], before[~gone])
