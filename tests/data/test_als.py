"""Alternating least squares against loops over ratings, and what cross-validation says about it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import naive
from films import ratings_of
from heedful.data.als import alternating_least_squares, cross_validate


def columns(ratings: dict[tuple[int, int], int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pairs = np.array(list(ratings))
    return pairs[:, 0], pairs[:, 1], np.array(list(ratings.values()), np.float64)


def start(ratings: dict[tuple[int, int], int], M: int, k: int, seed: int) -> dict[int, np.ndarray]:
    noise = 0.1 * np.random.default_rng(seed).standard_normal((M, k))
    Q = {}
    for j in range(M):
        mine = [r for (_, i), r in ratings.items() if i == j]
        Q[j] = np.array([sum(mine) / len(mine) if mine else 0.0, *noise[j, 1:]])
    return Q


PENALTIES = ("plain", "weighted")


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize(("dimension", "regularisation", "sweeps"), [(1, 0.1, 1), (3, 0.1, 1), (3, 0.02, 4)])
def test_sweeps_are_those_of_loops(dimension: int, regularisation: float, sweeps: int, penalty: str) -> None:
    ratings = ratings_of(users=9, movies=12)
    shape = 11, 14  # place 0 has no ratings, nor has the last
    got = alternating_least_squares(
        *columns(ratings), shape, dimension, regularisation, penalty=penalty, seed=3, tolerance=-1.0, sweeps=sweeps
    )
    P, Q = naive.alternating_least_squares(ratings, start(ratings, 14, dimension, 3), regularisation, sweeps, penalty)
    for u, p in P.items():
        np.testing.assert_allclose(got.P[u], p, rtol=1e-7, atol=1e-9)
    for j, q in Q.items():
        np.testing.assert_allclose(got.Q[j], q, rtol=1e-7, atol=1e-9)
    assert not got.P[[0, 10]].any()
    assert not got.Q[[0, 13]].any()


@pytest.mark.parametrize(("penalty", "regularisation"), [("plain", 0.3), ("weighted", 0.05)])
def test_it_goes_down_and_stops_where_it_hardly_does(penalty: str, regularisation: float) -> None:
    ratings = ratings_of(users=9, movies=12)
    given = *columns(ratings), (10, 13), 2, regularisation
    losses = []
    for sweeps in range(1, 40):
        P, Q = alternating_least_squares(*given, penalty=penalty, tolerance=-1.0, sweeps=sweeps)
        losses.append(naive.factor_loss(ratings, P, Q, regularisation, penalty))
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(losses))
    falls = [(before - after) / after for before, after in pairwise(losses)]
    last = next(i for i, fall in enumerate(falls) if fall <= 4e-3) + 1  # the sweep, from 0, that hardly helped
    assert 2 < last < 38
    P, Q = alternating_least_squares(*given, penalty=penalty, tolerance=4e-3)
    assert naive.factor_loss(ratings, P, Q, regularisation, penalty) == pytest.approx(losses[last], rel=1e-12)


def test_the_plain_penalty_is_that_of_the_papers() -> None:
    """[J15] 6.1.2 names Eq. 15 of Bell & Koren, with one penalty for a row however many ratings it has."""
    given = *columns(ratings_of(users=9, movies=12)), (10, 13), 2, 0.3
    said, plain, weighted = (
        alternating_least_squares(*given, **more).Q for more in ({}, {"penalty": "plain"}, {"penalty": "weighted"})
    )
    assert said.tobytes() == plain.tobytes()
    assert np.abs(plain - weighted).max() > 0.1


@pytest.mark.parametrize("penalty", PENALTIES)
def test_cross_validation_leaves_every_rating_out_once(penalty: str) -> None:
    """One factor, no noise to speak of: the error is that of fits written out here, best first."""
    ratings = ratings_of(users=9, movies=12)
    users, movies, values = columns(ratings)
    tried = cross_validate(users, movies, values, (10, 13), (1, 2), (0.1, 100.0), penalty=penalty, folds=3, seed=5)
    assert sorted((one.dimension, one.regularisation) for one in tried) == [(1, 0.1), (1, 100.0), (2, 0.1), (2, 100.0)]
    assert [one.rmse for one in tried] == sorted(one.rmse for one in tried)
    assert tried[0].regularisation == 0.1
    fold = np.random.default_rng([5, 1]).permutation(values.size) % 3
    squares = []
    for out in range(3):
        kept = fold != out
        P, Q = alternating_least_squares(
            users[kept], movies[kept], values[kept], (10, 13), 2, 0.1, penalty=penalty, seed=5
        )
        squares += [(r - P[u] @ Q[j]) ** 2 for u, j, r in zip(users[~kept], movies[~kept], values[~kept])]
    assert len(squares) == values.size
    [two] = [one for one in tried if one[:2] == (2, 0.1)]
    assert two.rmse == pytest.approx(np.sqrt(np.mean(squares)))


def test_it_predicts_better_than_the_mean_of_a_movie() -> None:
    users, movies, values = columns(ratings_of(users=60, movies=40))
    best = cross_validate(users, movies, values, (61, 41), (2,), (0.5, 1.0, 2.0))[0]
    means = np.bincount(movies, values, 41) / np.maximum(np.bincount(movies, minlength=41), 1)
    assert best.rmse < 0.8 * np.sqrt(np.mean((values - means[movies]) ** 2))
