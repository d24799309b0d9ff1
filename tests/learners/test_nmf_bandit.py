"""NMF-Bandit against a slow version that keeps every rating."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ratings_streams import played

import naive_ratings as naive
from heedful.learners.ratings.nmf_bandit import NMFBandit, exploration_set
from heedful.spaces.slate import Slate, SlateContext, SlateRatings


@pytest.mark.parametrize(
    ("options", "size", "late"),
    [
        ({"theta": 0.5}, 1, 0),
        ({"theta": 0.2, "sweeps": 1}, 3, 80),
        ({"theta": 0.0, "n_factors": 1}, 2, 0),
    ],
    ids=["explores", "slates, late comers", "never explores, one factor"],
)
def test_it_is_its_readable_version_round_for_round(options: dict[str, Any], size: int, late: int) -> None:
    learner = NMFBandit(Slate(size), **{"n_factors": 3, "explored": 4, "every": 20, "sweeps": 3, **options})
    seed = int(np.random.default_rng(6).integers(2**62))
    slow = naive.NMFBandit(seed, learner.n_factors, learner.theta, learner.explored, learner.every, learner.sweeps)
    state = played(
        learner,
        lambda user, items, rng: slow.propose(user, items, size, rng),
        lambda x, f: slow.update(x.user, list(zip(f.items.tolist(), f.ratings.tolist()))),
        rounds=200,
        seed=6,
        late=late,
    )
    for factors, by in ((state.U, slow.U), (state.V, slow.V)):
        for at, wanted in by.items():
            np.testing.assert_allclose(factors[at], wanted, rtol=1e-9)


def fitted(learner: NMFBandit, Y: Any, seen: Any, rounds: int = 1) -> Any:
    """The state after every pair of `seen` was rated, and `rounds` fits more."""
    state = learner.init(np.random.default_rng(0))
    for i, j in zip(*np.nonzero(seen)):
        x, y = SlateContext(int(i), np.arange(Y.shape[1])), np.array([j])
        state = learner.update(state, x, y, SlateRatings(y, Y[i, y]))
    for _ in range(rounds):
        learner.fit(state.pairs, state.low, state.U, state.V)
    return state


@pytest.mark.slow
def test_a_non_negative_matrix_comes_back_from_part_of_it() -> None:
    """Rank 2, two thirds of the entries rated: the others are predicted, and no fit increases the error."""
    rng = np.random.default_rng(1)
    Y = rng.random((30, 2)) @ rng.random((2, 25))
    seen = rng.random(Y.shape) < 0.67
    learner = NMFBandit(Slate(1, low=0.0, high=5.0), n_factors=2, every=10**6, sweeps=1)
    state = fitted(learner, Y, seen, 0)
    last = np.inf
    for _ in range(3000):
        learner.fit(state.pairs, state.low, state.U, state.V)
        off = ((state.U[:30] @ state.V[:25].T - Y)[seen] ** 2).sum()
        assert off <= last + 1e-12
        last = off
    assert np.abs(state.U[:30] @ state.V[:25].T - Y).max() < 0.05


def test_ratings_below_zero_are_shifted() -> None:
    """With a lowest rating known, by that; else by the lowest seen: ratings 10 lower change nothing."""
    rng = np.random.default_rng(1)
    Y = np.round(4 * rng.random((6, 5)))
    Y[0, 0] = 0.0
    seen = np.ones(Y.shape, bool)
    bounded = fitted(NMFBandit(Slate(1, low=0.0, high=4.0), n_factors=2), Y, seen)
    lower = fitted(NMFBandit(n_factors=2), Y - 10.0, seen)
    assert (bounded.low, lower.low) == (0.0, -10.0)
    np.testing.assert_allclose(bounded.U, lower.U, rtol=1e-12)


def test_how_often_it_explores_and_what() -> None:
    """With probability theta n m' / t; half the time in a set of m' that stays the user's."""
    learner = NMFBandit(theta=0.3, explored=4)
    state = learner.init(np.random.default_rng(0))._replace(t=99, users=10)
    assert learner.exploration_probability(state) == 0.3 * 10 * 4 / 100
    assert learner.exploration_probability(state._replace(t=3)) == 1.0
    items = np.arange(0, 60, 2)
    own = {tuple(sorted(exploration_set(state.seed, user, items, 4).tolist())) for user in range(8)}
    assert len(own) > 6
    x, rng, state = SlateContext(5, items), np.random.default_rng(0), state._replace(t=0)
    mine = set(items[exploration_set(state.seed, 5, items, 4)].tolist())
    among = [int(learner.propose(state, x, rng)[0]) in mine for _ in range(3000)]
    assert abs(sum(among) / 3000 - (0.5 + 0.5 * 4 / 30)) < 4 * (0.25 / 3000) ** 0.5


def test_what_is_expected_is_above_the_lowest_rating() -> None:
    learner = NMFBandit(Slate(1, -10.0, 10.0))
    state = learner.init(np.random.default_rng(0))
    x = SlateContext(1, np.array([0, 3]))
    np.testing.assert_allclose(learner.ratings(state, x), state.V[[0, 3]] @ state.U[1] - 10.0)
