"""Worlds of ratings: how they are generated, what they answer, regret, and the end of a replay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from heedful.core.fold import play, trace
from heedful.jit.kernel import Ints
from heedful.learners.ratings.alb import ALB
from heedful.spaces.slate import Slate, SlateContext
from heedful.worlds.ratings import (
    LowRank,
    Replay,
    bernoulli_ratings,
    gaussian_ratings,
    replay_ratings,
    uniform_ratings,
)

RNG = np.random.default_rng(0)


def answers(world: LowRank, user: int, item: int, n: int = 4000) -> Any:
    x = SlateContext(user, world.items)
    rng = np.random.default_rng(1)
    return world.respond(world.init(rng), x, np.full(n, item), rng).ratings


@pytest.mark.parametrize("made", [gaussian_ratings, uniform_ratings, bernoulli_ratings])
def test_ratings_are_a_matrix_of_rank_five_and_noise_around_it(made: Any) -> None:
    world = made()
    assert world.Y.shape == (200, 200)
    assert np.linalg.matrix_rank(world.Y) == 5
    np.testing.assert_array_equal(world.best, world.Y.max(axis=1))
    ratings = answers(world, 3, 8)
    assert abs(ratings.mean() - world.Y[3, 8]) < 4.0 * ratings.std() / np.sqrt(ratings.size)
    np.testing.assert_array_equal(made(seed=4).Y, made(seed=4).Y)
    assert not np.array_equal(made(seed=4).Y, made(seed=5).Y)


def test_gaussian() -> None:
    """[A18] section 4: factors N(0, 1), so Y has mean 0 and variance 5; noise of sd .5."""
    world = gaussian_ratings()
    assert abs(world.Y.std() - np.sqrt(5.0)) < 0.3
    assert answers(world, 0, 0).std() == pytest.approx(0.5, rel=0.05)
    assert answers(gaussian_ratings(noise=0.0), 0, 0).std() == pytest.approx(0.0, abs=1e-12)


def test_uniform() -> None:
    """Rows on the simplex and items in [0, 1]: Y in [0, 1] with mean 1/2; ratings within a quarter of it."""
    world = uniform_ratings()
    assert abs(world.Y.mean() - 0.5) < 0.05
    assert 0.0 <= world.Y.min() <= world.Y.max() <= 1.0
    off = answers(world, 1, 2) - world.Y[1, 2]
    assert -0.25 <= off.min() < -0.24
    assert 0.24 < off.max() <= 0.25
    assert off.std() == pytest.approx(0.5 / np.sqrt(12.0), rel=0.05)


def test_rows_are_uniform_on_the_simplex() -> None:
    """A coordinate of a point uniform on the simplex of two is uniform on [0, 1]: so is Y, between two items."""
    world = uniform_ratings(4000, 2, 2)
    lo, hi = np.sort(world.Y[:, 0])[[0, -1]]
    share = np.sort((world.Y[:, 0] - lo) / (hi - lo))
    assert np.abs(share - np.linspace(0.0, 1.0, 4000)).max() < 0.03


def test_bernoulli() -> None:
    assert set(answers(bernoulli_ratings(), 1, 2).tolist()) == {0.0, 1.0}


def test_regret_is_the_best_of_the_row_less_what_is_expected() -> None:
    world = gaussian_ratings(3, 4, 2)
    state, x = world.init(RNG), SlateContext(1, world.items)
    order = np.argsort(-world.Y[1])
    assert world.regret(state, x, order[:1]) == 0.0
    assert world.regret(state, x, order[2:3]) == pytest.approx(world.Y[1].max() - world.Y[1, order[2]])
    assert world.regret(state, x, order[:2]) == pytest.approx((world.Y[1].max() - world.Y[1, order[1]]) / 2.0)
    rounds = [r for r, _ in play(ALB(), world, 300, 0)]
    wanted = [world.best[r.x.user] - world.Y[r.x.user, r.y[0]] for r in rounds]
    np.testing.assert_allclose(trace(ALB(), world, 300, 0, interpreted=True), wanted)
    assert {r.x.user for r in rounds} == {0, 1, 2}


@pytest.mark.parametrize(
    ("made", "change", "named"),
    [
        (gaussian_ratings, {"n_users": 0}, "n_users"),
        (gaussian_ratings, {"n_items": -1}, "n_items"),
        (uniform_ratings, {"n_factors": 2.0}, "n_factors"),
        (bernoulli_ratings, {"seed": -1}, "seed"),
        (gaussian_ratings, {"noise": -0.1}, "noise"),
        (gaussian_ratings, {"noise": np.nan}, "noise"),
        (uniform_ratings, {"width": np.inf}, "width"),
        (uniform_ratings, {"width": True}, "width"),
    ],
)
def test_nonsense_is_refused_by_name(made: Any, change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: expected"):
        made(**change)


# ---------------------------------------------------------------------------- replay

USERS = np.array([4, 0, 0, 4, 2, 0])
ITEMS = np.array([1, 9, 3, 0, 7, 5])
VALUES = np.array([2.0, 4.0, 1.0, 5.0, 3.0, 4.5])


def known(world: Replay) -> dict[int, dict[int, float]]:
    there: dict[int, dict[int, float]] = {}
    for i, j, value in zip(USERS.tolist(), ITEMS.tolist(), VALUES.tolist()):
        there.setdefault(i, {})[j] = value
    return there


def test_with_repeats_everything_a_user_rated_is_always_on_offer() -> None:
    world = replay_ratings(USERS, ITEMS, VALUES)
    there, met = known(world), []
    for played, _ in play(ALB(), world, 200, 0):
        x, [shown] = played.x, played.y
        assert x.items.tolist() == sorted(there[x.user])
        assert played.feedback.items.tolist() == [shown]
        assert played.feedback.ratings.tolist() == [there[x.user][shown]]
        met.append(x.user)
    assert {i: met.count(i) > 40 for i in (0, 2, 4)} == {0: True, 2: True, 4: True}
    assert len(met) == 200


@pytest.mark.parametrize("size", [1, 2, 5])
def test_without_repeats_each_is_shown_once_and_the_world_ends(size: int) -> None:
    """Regret is against the best that is left; users who ran dry do not come again."""
    world = replay_ratings(USERS, ITEMS, VALUES, repeats=False)
    for seed in range(20):
        there = known(world)
        learner = ALB(Slate(size))
        rounds = [played for played, _ in play(learner, world, 100, seed)]
        regrets = trace(learner, world, 100, seed, interpreted=True)
        assert len(rounds) == regrets.size
        for played, regret in zip(rounds, regrets):
            left = there[played.x.user]
            assert played.x.items.tolist() == sorted(left)
            mean = np.mean([left[j] for j in played.y.tolist()])
            assert regret == pytest.approx(max(left.values()) - mean)
            assert played.feedback.ratings.tolist() == [left.pop(j) for j in played.y.tolist()]
        assert not any(there.values())


def test_a_run_leaves_the_world_as_it_was() -> None:
    world = replay_ratings(USERS, ITEMS, VALUES, repeats=False)
    a = trace(ALB(), world, 100, 3, interpreted=True)
    np.testing.assert_array_equal(a, trace(ALB(), world, 100, 3, interpreted=True))
    assert a.size == 6


def test_the_order_of_a_file_does_not_matter() -> None:
    order = RNG.permutation(6)
    a, b = replay_ratings(USERS, ITEMS, VALUES), replay_ratings(USERS[order], ITEMS[order], VALUES[order])
    for p, q in zip(a, b):
        np.testing.assert_array_equal(p, q)


def test_the_world_keeps_a_copy() -> None:
    values = VALUES.copy()
    world = replay_ratings(USERS, ITEMS, values)
    values[:] = 0.0
    assert world.values.sum() == VALUES.sum()


@pytest.mark.parametrize(
    ("users", "items", "values", "named"),
    [
        ([], [], [], "users: expected"),
        ([0.5], [1], [1.0], "users: expected"),
        ([-1], [1], [1.0], r"users: expected whole numbers, 0 to 9999999, got -1 at \[0\]"),
        ([0], [10**7], [1.0], "items: expected"),
        ([0, 1], [1], [1.0, 2.0], "items: expected 2"),
        ([0, 1], [1, 1], [1.0], "values: expected 2"),
        ([0, 1], [1, 1], [1.0, np.nan], r"values: expected finite numbers, got nan at \[1\]"),
        ([0], [1], ["a"], "values: expected"),
        ([0, 0], [1, 1], [1.0, 2.0], "items: expected each once for user 0, got 1 twice"),
    ],
)
def test_ratings_that_do_not_fit_are_refused(users: Any, items: Any, values: Any, named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}"):
        replay_ratings(users, items, values)
    with pytest.raises(ValueError, match=r"^repeats: expected True or False"):
        replay_ratings(USERS, ITEMS, VALUES, repeats=1)  # type: ignore[arg-type]


def test_shown_is_an_array_of_item_numbers() -> None:
    shown: Ints = np.array([3])
    world = replay_ratings(USERS, ITEMS, VALUES)
    assert world.respond(world.init(RNG), SlateContext(0, np.array([3, 5, 9])), shown, RNG).ratings.tolist() == [1.0]
