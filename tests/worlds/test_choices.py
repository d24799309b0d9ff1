"""Simulated people who choose: how utilities are drawn, how they answer, when pairs run out."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pytest

from heedful.core.fold import play, trace
from heedful.jit.kernel import Ints
from heedful.spaces.comparison import EQUAL, UNSURE, ComparisonPool
from heedful.worlds.choices import (
    Choosers,
    answer,
    gaussian_choosers,
    perceived_utilities,
)
from orderers import Orderers, order

RNG = np.random.default_rng(0)


def cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def shares(world: Choosers, user: int, shown: list[int], n: int = 8000) -> dict[int, float]:
    rng = np.random.default_rng(1)
    got = [answer(world, user, np.array(shown), rng) for _ in range(n)]
    return {a: got.count(a) / n for a in set(got)}


def close(share: float, p: float, n: int = 8000) -> bool:
    return abs(share - p) < 4.5 * math.sqrt(max(p * (1.0 - p), 1e-4) / n)


def with_utilities(world: Choosers, rows: list[list[float]]) -> Choosers:
    return world._replace(utilities=np.array(rows))


# ---------------------------------------------------------------------------- utilities


def test_without_features_utilities_are_independent() -> None:
    f = gaussian_choosers(20_000, 4, amplitude=1.5, seed=3).utilities
    np.testing.assert_allclose(np.cov(f.T), 2.25 * np.eye(4), atol=0.08)


def test_with_features_they_are_of_a_gaussian_process() -> None:
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    f = gaussian_choosers(20_000, 4, features=X, length=1.25, amplitude=2.0).utilities
    squares = [[(a - c) ** 2 + (b - d) ** 2 for c, d in X] for a, b in X]
    np.testing.assert_allclose(np.cov(f.T), 4.0 * np.exp(-np.array(squares) / 3.125), atol=0.12)
    np.testing.assert_allclose(f[:, 0], f[:, 3], atol=1e-6)  # items with equal features have equal utilities


@pytest.mark.slow
def test_what_users_share() -> None:
    """A share s of the variance is common to all users, 1 - s is each user's own."""
    for share in (0.0, 0.36, 1.0):
        f = gaussian_choosers(60, 1500, shared=share, amplitude=2.0).utilities
        assert f.var(axis=0, ddof=1).mean() == pytest.approx(4.0 * (1.0 - share), rel=0.05, abs=1e-12)
        assert (f.mean(axis=0) ** 2).mean() == pytest.approx(4.0 * (share + (1.0 - share) / 60.0), rel=0.1)
    assert not np.array_equal(gaussian_choosers(seed=1).utilities, gaussian_choosers(seed=2).utilities)


def test_an_order_is_kept() -> None:
    world = with_utilities(gaussian_choosers(2, 3, noise=0.0), [[1.0, 0.0, 2.0], [0.0, 2.0, 1.0]])
    for user, best_first in enumerate([[2, 0, 1], [1, 2, 0]]):
        for a, b in combinations(best_first, 2):
            assert shares(world, user, [a, b], 20) == {0: 1.0}
            assert shares(world, user, [b, a], 20) == {1: 1.0}
        assert order(world, user, np.array([0, 1, 2]), RNG).tolist() == best_first
        assert order(world, user, np.array([2, 1]), RNG).tolist() == ([0, 1] if user == 0 else [1, 0])


# ---------------------------------------------------------------------------- answers


def test_a_choice_is_a_probit_of_the_difference() -> None:
    """[H12] Eq. 1: P(a beats b) = Phi(f_a - f_b); of other noise, Phi((f_a - f_b) / noise)."""
    for noise in (1.0, 2.5):
        world = with_utilities(gaussian_choosers(2, 3, noise=noise), [[0.0, 0.0, 0.0], [0.2, 1.1, -0.4]])
        for a, b in [(1, 0), (0, 1), (2, 1)]:
            gap = world.utilities[1, a] - world.utilities[1, b]
            assert close(shares(world, 1, [a, b])[0], cdf(gap / noise))


def test_equally_good() -> None:
    """P(tie) = Phi(d - g) - Phi(-d - g)."""
    world = with_utilities(gaussian_choosers(1, 2, tie=0.6), [[0.5, 0.0]])
    got = shares(world, 0, [0, 1])
    assert close(got[EQUAL], cdf(0.6 - 0.5) - cdf(-0.6 - 0.5))
    assert close(got[0], cdf(0.5 - 0.6))


def test_of_several_the_noise_is_shared() -> None:
    """The best of three that are level is each a third of the time; and one ahead by g beats two others less often than
    apart answers would say, as P(e_0 + g > max(e_1, e_2)) > Phi(g)^2."""
    level = with_utilities(gaussian_choosers(1, 3), [[0.0, 0.0, 0.0]])
    assert all(close(share, 1.0 / 3.0) for share in shares(level, 0, [2, 0, 1]).values())
    ahead = with_utilities(level, [[1.0, 0.0, 0.0]])
    z = np.linspace(-8.0, 8.0, 4001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    p = float(np.trapezoid(density * [cdf(x + math.sqrt(2.0)) ** 2 for x in z], z))
    assert p > cdf(1.0) ** 2 + 0.02
    assert close(shares(ahead, 0, [1, 0, 2])[1], p)
    rng = np.random.default_rng(2)
    firsts = [order(ahead, 0, np.array([1, 0, 2]), rng)[0] for _ in range(8000)]
    assert close(firsts.count(1) / 8000, p)
    spread = np.array([perceived_utilities(ahead, 0, np.array([0, 1]), rng) for _ in range(4000)])
    np.testing.assert_allclose(np.cov(spread.T), 0.5 * np.eye(2), atol=0.05)


def test_a_tie_of_several_is_between_the_two_best() -> None:
    world = with_utilities(gaussian_choosers(1, 3, noise=0.0, tie=0.5), [[1.0, 3.0, 2.8]])
    assert shares(world, 0, [0, 1, 2], 5) == {EQUAL: 1.0}
    assert shares(world, 0, [2, 0, 1], 5) == {EQUAL: 1.0}
    assert shares(world, 0, [2, 0], 5) == {0: 1.0}
    assert shares(world._replace(tie=0.1), 0, [0, 2, 1], 5) == {2: 1.0}
    assert shares(world, 0, [1], 5) == {0: 1.0}


def test_lapses_and_people_who_always_press_the_same_key() -> None:
    world = with_utilities(gaussian_choosers(1, 2, lapse=0.4, first=0.9, noise=0.0), [[1.0, 0.0]])
    assert close(shares(world, 0, [1, 0])[0], 0.4 * 0.9)
    assert close(shares(world, 0, [0, 1])[0], 0.6 + 0.4 * 0.9)
    same_key = world._replace(lapses=np.ones(1), firsts=np.ones(1))
    assert shares(same_key, 0, [0, 1], 50) == shares(same_key, 0, [1, 0], 50) == {0: 1.0}
    third = with_utilities(gaussian_choosers(1, 3, lapse=1.0, first=0.2), [[9.0, 0.0, 0.0]])
    got = shares(third, 0, [0, 1, 2])
    assert all(close(got[a], p) for a, p in ((0, 0.2), (1, 0.4), (2, 0.4)))


def test_cannot_judge() -> None:
    """Whether or not they would have lapsed."""
    world = with_utilities(gaussian_choosers(1, 2, unsure=0.3, lapse=0.3, first=1.0, noise=0.0), [[0.0, 1.0]])
    got = shares(world, 0, [0, 1])
    assert close(got[UNSURE], 0.3)
    assert close(got[0], 0.7 * 0.3)


# ---------------------------------------------------------------------------- as a world


class Asked(NamedTuple):
    times: int


class First(NamedTuple):
    """Asks the first pair of the pool, and learns nothing."""

    unused: float = 0.0

    def init(self, rng: Any) -> Asked:
        return Asked(0)

    def propose(self, state: Asked, x: ComparisonPool, rng: Any) -> Ints:
        return x.pairs[0]  # type: ignore[no-any-return]

    def update(self, state: Asked, x: ComparisonPool, y: Ints, feedback: int) -> Asked:
        return Asked(state.times + 1)


@pytest.mark.slow
def test_compiled_it_is_the_same() -> None:
    for world in (gaussian_choosers(3, 4, tie=0.2, lapse=0.1, unsure=0.1), gaussian_choosers(3, 4, repeats=False)):
        compiled = trace(First(), world, 40, 1)
        assert compiled.size == (40 if world.repeats else 18)
        np.testing.assert_array_equal(compiled, trace(First(), world, 40, 1, interpreted=True))


def test_each_pair_is_asked_once_and_the_world_ends() -> None:
    world = gaussian_choosers(3, 4, repeats=False)
    for _ in range(2):  # a world is good for several runs
        asked: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
        for played, _ in play(First(), world, 100, 5):
            pairs = [tuple(p) for p in played.x.pairs.tolist()]
            assert set(pairs) == set(combinations(range(4), 2)) - set(asked[played.x.user])
            asked[played.x.user].append(tuple(played.y.tolist()))
        assert all(sorted(pairs) == list(combinations(range(4), 2)) for pairs in asked.values())


def test_a_pair_shown_the_other_way_round_is_that_pair() -> None:
    world = gaussian_choosers(1, 3, repeats=False)
    state = world.init(RNG)
    state = world.advance(state, world.context(state, 0, RNG), np.array([2, 0]), 0)
    assert world.context(state, 1, RNG).pairs.tolist() in ([[0, 1], [1, 2]],)


def test_with_repeats_every_pair_is_always_there() -> None:
    world = gaussian_choosers(3, 4)
    rounds = [played for played, _ in play(First(), world, 60, 5)]
    assert len(rounds) == 60
    assert {played.x.user for played in rounds} == {0, 1, 2}
    assert all(played.x.pairs.tolist() == [list(p) for p in combinations(range(4), 2)] for played in rounds)


def test_regret_is_the_best_less_the_better_of_those_shown() -> None:
    world = with_utilities(gaussian_choosers(2, 4), [[0.0, 0.0, 0.0, 0.0], [1.0, -1.0, 3.0, 2.5]])
    state = world.init(RNG)
    x = ComparisonPool(1, world.pairs)
    assert world.regret(state, x, np.array([0, 1])) == 2.0
    assert world.regret(state, x, np.array([1, 3])) == 0.5
    assert world.regret(state, x, np.array([1, 2])) == 0.0
    regrets = trace(First(), world, 40, 0, interpreted=True)
    assert set(regrets.tolist()) == {0.0, 2.0}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"n_users": 0}, "n_users"),
        ({"n_items": 1}, "n_items"),
        ({"features": np.zeros((3, 2))}, "features"),
        ({"features": [1.0, 2.0]}, "features"),
        ({"features": np.full((10, 1), np.nan)}, "features"),
        ({"length": 0.0}, "length"),
        ({"amplitude": -1.0}, "amplitude"),
        ({"shared": 1.1}, "shared"),
        ({"noise": -0.1}, "noise"),
        ({"tie": math.nan}, "tie"),
        ({"unsure": 2}, "unsure"),
        ({"lapse": True}, "lapse"),
        ({"first": -1}, "first"),
        ({"repeats": 1}, "repeats"),
        ({"seed": -1}, "seed"),
    ],
)
def test_nonsense_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"^{named}: expected"):
        gaussian_choosers(**change)


# ---------------------------------------------------------------------------- more than two at a time


def test_sets_run_out_as_pairs_do() -> None:
    """Of 4 items 3 at a time: each set once for each user, whichever way round it is shown; then the world is over."""
    world = gaussian_choosers(2, 4, repeats=False, shown=3)
    assert world.pairs.tolist() == [list(one) for one in combinations(range(4), 3)]
    truth = world.init(RNG)
    seen = []
    for t in range(8):
        assert not world.over(truth, t)
        x = world.context(truth, t, RNG)
        shown = x.pairs[-1][::-1].copy()
        seen.append((x.user, tuple(sorted(shown.tolist()))))
        truth = world.advance(truth, x, shown, 0)
    assert world.over(truth, 8)
    assert len(set(seen)) == 8


def test_orderers_put_all_in_order() -> None:
    """The same people: the utilities far apart, they name all places, the best first; regret and sets are the same."""
    world = with_utilities(gaussian_choosers(1, 4, shown=3, noise=0.1), [[0.0, 30.0, 10.0, 20.0]])
    people = Orderers(world)
    truth = people.init(RNG)
    x = people.context(truth, 0, RNG)
    assert people.respond(truth, x, np.array([0, 1, 3]), RNG).tolist() == [1, 2, 0]
    assert people.regret(truth, x, np.array([0, 2, 3])) == 10.0
    assert not people.over(people.advance(truth, x, np.array([0, 1, 3]), np.array([1, 2, 0])), 1)


@pytest.mark.parametrize("shown", [1, 5, 2.0])
def test_as_many_at_a_time_as_there_are(shown: Any) -> None:
    with pytest.raises(ValueError, match="shown: expected"):
        gaussian_choosers(2, 4, shown=shown)
