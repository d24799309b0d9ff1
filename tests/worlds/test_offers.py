"""Rating worlds with a warm start, or measured by a ranked list: compared with definitions written out here."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.core.fold import generators, play, trace
from heedful.learners.ratings.baselines import ItemMean, PairMean
from heedful.spaces.slate import Slate, SlateContext
from heedful.worlds.offers import RankedList, warm_start
from heedful.worlds.ratings import Replay, gaussian_ratings, replay_ratings


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
        assert played.feedback.ratings[0] == plain.value(played.x.user, int(played.feedback.items[0]))
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
    world = warm_start(gaussian_ratings(3, 4, 2, noise=0.0), 50, seed=1)
    rounds = [played for played, _ in play(PairMean(), world, 60, 1)]
    assert {played.x.user for played in rounds[:50]} == {0, 1, 2}
    assert {len(played.x.items) for played in rounds[:50]} == {1}
    assert {len(played.x.items) for played in rounds[50:]} == {4}
    played = rounds[0]
    assert played.feedback.ratings[0] == world.value(played.x.user, int(played.x.items[0]))


@pytest.mark.parametrize("count", [0, -1, 99, 2.0])
def test_as_many_as_there_are_less_one(count: int) -> None:
    with pytest.raises(ValueError, match=r"^warm: expected a whole number, 1 to"):
        warm_start(few(True), count, 0)


def test_a_list_is_judged_by_ndcg_and_its_first_are_rated() -> None:
    """Worth 5, 1, 3 above a floor of 0: the list (2, 1) is judged 3 + 1 / log2 3 over the best, 5 + 3 / log2 3."""
    world = RankedList(replay_ratings([0, 0, 0], [0, 1, 2], [5.0, 1.0, 3.0]), 1, 2, 0.0)
    asked, answered, _ = generators(0)
    state = world.init(asked)
    x, shown = SlateContext(0, np.arange(3)), np.array([2, 1])
    wanted = (3.0 + 1.0 / math.log2(3)) / (5.0 + 3.0 / math.log2(3))
    assert world.regret(state, x, shown) == pytest.approx(wanted, rel=1e-12)
    assert world.regret(state, x, np.array([0, 2, 1])) == 1.0  # what comes after the second does not count
    assert world.regret(state, x, np.array([2, 1, 0])) == pytest.approx(wanted, rel=1e-12)
    low = world._replace(floor=1.0)
    assert low.regret(state, x, shown) == pytest.approx(2.0 / (4.0 + 2.0 / math.log2(3)), rel=1e-12)
    assert world._replace(floor=5.0).regret(state, x, shown) == 1.0  # nothing is worth more
    feedback = world.respond(state, x, shown, answered)
    assert (feedback.items.tolist(), feedback.ratings.tolist()) == ([2], [3.0])


def test_only_what_is_taken_of_a_list_is_consumed() -> None:
    """A learner that orders by scores then takes the path that it takes with one item at a time."""
    plain = few(False)
    one = [played for played, _ in play(ItemMean(), plain, 99, 4)]
    several = [played for played, _ in play(ItemMean(Slate(5)), RankedList(plain, 1, 5, 0.0), 99, 4)]
    assert [played.y[0] for played in one] == [played.y[0] for played in several]
    assert [played.x.items.tolist() for played in one] == [played.x.items.tolist() for played in several]
    assert max(played.y.size for played in several) == 5


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [False, True])
def test_compiled_is_interpreted(repeats: bool) -> None:
    world = RankedList(warm_start(few(repeats), 4, 1), 1, 5, 0.0)
    compiled, interpreted = (
        trace(ItemMean(Slate(5)), world, 60, 0),
        trace(ItemMean(Slate(5)), world, 60, 0, interpreted=True),
    )
    assert np.array_equal(compiled, interpreted)
    assert compiled.size == (60 if repeats else few(False).items.size)
    assert 0.0 < compiled.min() < compiled.max() == 1.0
