"""Rating worlds with a warm start: compared with definitions written out here."""

from __future__ import annotations

import numpy as np
import pytest

from heedful.core.fold import play, trace
from heedful.learners.ratings.baselines import ItemMean, PairMean
from heedful.worlds.offers import warm_start
from heedful.worlds.ratings import Replay, gaussian_ratings, rating_of, replay_ratings


def few(repeats: bool) -> Replay:
    """Six users who rated some of nine items, 1 to 5."""
    rng = np.random.default_rng(2)
    users, items = np.nonzero(rng.random((6, 9)) < 0.6)
    return replay_ratings(users, items, rng.integers(1, 6, users.size), repeats=repeats)


def test_what_is_told_before_comes_first_once_and_is_consumed() -> None:
    plain = few(False)
    n = plain.items.size
    world = warm_start(plain, 7, seed=3)
    rounds = [played for played, _ in play(ItemMean(), world, 1000, 3)]
    assert len(rounds) == n  # all, each once
    told = [(played.x.user, *played.x.items.tolist()) for played in rounds[:7]]
    assert told == list(zip(world.users.tolist(), world.items.tolist()))
    assert len(set(told)) == 7
    rated = [(played.x.user, int(played.feedback.items[0])) for played in rounds]
    assert len(set(rated)) == n
    for played in rounds:
        assert played.feedback.ratings[0] == rating_of(plain, played.x.user, int(played.feedback.items[0]))
    for played in rounds[7:]:
        assert not {(played.x.user, j) for j in played.x.items.tolist()} & set(told)
    assert [played.x.user for played in rounds] != [played.x.user for played, _ in play(ItemMean(), plain, n, 3)]


def test_which_are_told_depends_on_the_seed_alone_and_each_may_be() -> None:
    plain = few(True)
    drawn = [warm_start(plain, 5, seed) for seed in range(60)]
    again = warm_start(plain, 5, 0)
    assert np.array_equal(drawn[0].users, again.users)
    assert np.array_equal(drawn[0].items, again.items)
    pairs = {pair for world in drawn for pair in zip(world.users.tolist(), world.items.tolist())}
    users = np.repeat(np.arange(6), np.diff(plain.starts))
    assert pairs == set(zip(users.tolist(), plain.items.tolist()))


def test_what_is_told_of_a_world_that_is_drawn() -> None:
    drawn = gaussian_ratings(3, 4, 2, noise=0.0)
    world = warm_start(drawn, 50, seed=1)
    rounds = [played for played, _ in play(PairMean(), world, 60, 1)]
    assert {played.x.user for played in rounds[:50]} == {0, 1, 2}
    assert {len(played.x.items) for played in rounds[:50]} == {1}
    assert {len(played.x.items) for played in rounds[50:]} == {4}
    played = rounds[0]
    assert played.feedback.ratings[0] == drawn.Y[played.x.user, played.x.items[0]]


@pytest.mark.parametrize("count", [0, -1, 99, 2.0])
def test_as_many_as_there_are_less_one(count: int) -> None:
    with pytest.raises(ValueError, match=r"^warm: expected a whole number, 1 to"):
        warm_start(few(True), count, 0)


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [False, True])
def test_compiled_is_interpreted(repeats: bool) -> None:
    world = warm_start(few(repeats), 4, 1)
    compiled, interpreted = (trace(ItemMean(), world, 60, 0, interpreted=how) for how in (False, True))
    assert np.array_equal(compiled, interpreted)
    assert compiled.size == (60 if repeats else few(False).items.size)
