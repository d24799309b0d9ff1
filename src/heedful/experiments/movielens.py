"""Movie recommendation to people who rated movies: the second experiment of [C12] section 5.2 and [J15] section 6.1.2.

Ratings of one half of the users define features of movies; each person of the other half has the utility that best fits
their own ratings, and is recommended one movie after the other.

>>> house = make_movie_world(load_movielens(folder))
>>> setting = movie_setting(house, Better(), people=100)
>>> runs = [event for event in simulate({"perceptron": setting.learner("perceptron")}, setting, 1500) ...]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.core.validation import check_count, check_positive, describe
from heedful.data.als import (
    DIMENSIONS,
    REGULARISATIONS,
    alternating_least_squares,
    cross_validate,
)
from heedful.data.letor import least_squares
from heedful.data.movielens import Ratings
from heedful.experiments.coactive import items_setting, person_seed
from heedful.experiments.setting import Scene, Setting
from heedful.worlds.items import ItemPool, item_pool
from heedful.worlds.users import ItemUser, check_user

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUNDS = 1500
"""Movies recommended to each person in the papers' experiments."""

CHOSEN = {
    (6040, 3883, 1_000_209): {"plain": (7, 5.0), "weighted": (10, 0.075)},
    (943, 1682, 100_000): {"plain": (2, 2.0), "weighted": (5, 0.15)},
}
"""Dimension and regularisation that five-fold cross-validation chose on the first half (split 0) of MovieLens 1M and
100K, by users, movies and ratings, for each penalty: it takes minutes, so it is not done anew each time."""


class MovieWorld(NamedTuple):
    """Movies with features, and the people to recommend to, whose ratings the features have not seen.

    The ratings of person i (an index into `people`) are values[offsets[i]:offsets[i + 1]], of the movies with these
    `places` in X.
    """

    movies: Ints  # m; places in the Ratings; only movies that somebody of the first half rated have features
    X: Array  # m x N
    people: Ints  # H; places in the Ratings, in random order
    places: Ints
    values: Array
    offsets: Ints  # H + 1
    dimension: int
    regularisation: float
    penalty: str


def make_movie_world(
    ratings: Ratings, *, split: int = 0, dimension: int = 0, regularisation: float = 0.0, penalty: str = "plain"
) -> MovieWorld:
    """Divide the users into two random halves (seed `split`) and make movie features of the ratings of the first.

    `penalty` is that of `alternating_least_squares`: "plain", as the papers have it, or "weighted". Where dimension or
    regularisation is 0, what cross-validation chose is taken: from `CHOSEN` for the data sets there, else it is done
    here, on the first half. Raise ValueError for a number or a penalty that makes no sense, or fewer than two users.
    """
    if penalty not in REGULARISATIONS:
        raise ValueError(f"penalty: expected {' or '.join(REGULARISATIONS)}, got {describe(penalty)}")
    check_count("split", split, least=0)
    check_count("dimension", dimension, least=0, most=1000)
    if regularisation != 0.0:
        check_positive("regularisation", regularisation)
    U, M = ratings.user_ids.size, ratings.movie_ids.size
    if U < 2:
        raise ValueError(f"users: expected at least two, one to learn from and one to recommend to, got {U}")
    order = np.random.default_rng(split).permutation(U)
    first, second = order[: U // 2], order[U // 2 :]
    row = np.full(U, -1)
    row[first] = np.arange(first.size)
    mine = row[ratings.users] >= 0
    theirs = row[ratings.users[mine]], ratings.movies[mine], ratings.values[mine], (first.size, M)
    if not (dimension and regularisation):
        best = CHOSEN.get((U, M, ratings.values.size), {}).get(penalty)
        if best is None or (dimension or best[0], regularisation or best[1]) != best:
            dimensions = (dimension,) if dimension else DIMENSIONS
            regularisations = (regularisation,) if regularisation else REGULARISATIONS[penalty]
            best = cross_validate(*theirs, dimensions, regularisations, penalty=penalty)[0][:2]
        dimension, regularisation = best
    Q = alternating_least_squares(*theirs, dimension, regularisation, penalty=penalty).Q

    movies = np.unique(ratings.movies[mine])
    column = np.full(M, -1)
    column[movies] = np.arange(movies.size)
    row[:] = -1
    row[second] = np.arange(second.size)
    here = np.flatnonzero((row[ratings.users] >= 0) & (column[ratings.movies] >= 0))
    here = here[np.argsort(row[ratings.users[here]], kind="stable")]
    return MovieWorld(
        movies=movies,
        X=np.ascontiguousarray(Q[movies]),
        people=second,
        places=column[ratings.movies[here]],
        values=ratings.values[here],
        offsets=np.searchsorted(row[ratings.users[here]], np.arange(second.size + 1)),
        dimension=dimension,
        regularisation=regularisation,
        penalty=penalty,
    )


def true_utility(house: MovieWorld, person: int) -> tuple[Array, Array]:
    """Return the utility w* (N,) of a person: the shortest least-squares fit of their ratings on the features; and
    their ratings (m,), NaN if there is none.
    """
    mine = slice(house.offsets[person], house.offsets[person + 1])
    w_star = np.asarray(least_squares(house.X[house.places[mine]], house.values[mine]), np.float64)
    known = np.full(house.movies.size, np.nan)
    known[house.places[mine]] = house.values[mine]
    return w_star, known


def movie_setting(
    house: MovieWorld, user: ItemUser, *, people: int = 100, seeds: Sequence[int] = (0,), dtype: str = "float64"
) -> Setting:
    """Make the setting of `people` random people of the second half for each seed; everybody where `people` is 0.

    Each has a pool of all movies and a learner of their own. Raise ValueError for more people than there are.
    """
    check_count("people", people, least=0, most=house.people.size)
    check_user(user, "pick", "picks items")
    X = house.X.astype(dtype, copy=False)
    known: dict[int, tuple[ItemPool, Array]] = {}
    scenes = []
    for seed in seeds:
        for person in np.random.default_rng([seed, 1]).permutation(house.people.size)[: people or None].tolist():
            if person not in known:
                w_star, ratings = true_utility(house, person)
                known[person] = item_pool(X, w_star, user, ratings), w_star
            scenes.append(Scene(seed, person, person_seed(seed, person), *known[person]))
    return items_setting(house.X, user, ROUNDS, scenes)
