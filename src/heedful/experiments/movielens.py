"""Movies recommended to people who rated some of them, with movie features made of other people's ratings.

This is the second experiment of Shivaswamy & Joachims 2012 ([C12]) section 5.2 and 2015 ([J15]) section 6.1.2. The
ratings of one half of the users give the movies their features. Each person of the other half has the utility that best
fits their own ratings, and is shown one movie after the other.

>>> world = make_movie_world(load_movielens(folder))
>>> setting = movie_setting(world, Better(), people=100)
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
"""(dimension, regularisation) that five-fold cross-validation chose on the first half (split 0) of MovieLens 1M and
100K, by penalty. The keys are the numbers of users, movies and ratings."""


class MovieWorld(NamedTuple):
    """m movies with N features, and H people to recommend them to, whose own ratings did not go into the features.

    - `movies` (m,): the movies, as indices into the data set: those that somebody of the first half of the users rated.
    - `X` (m, N): their features.
    - `people` (H,): the people, as indices into the data set, in random order.
    - `places`: the movie of each rating, as a row of X, one person after the other; `values`: each rating.
    - `offsets` (H + 1,): person i, from 0, has the ratings offsets[i]:offsets[i + 1] of `places` and `values`.
    - `dimension` (N), `regularisation`, `penalty`: the parameters of the matrix factorisation that made the features
      (see `make_movie_world`).
    """

    movies: Ints
    X: Array
    people: Ints
    places: Ints
    values: Array
    offsets: Ints
    dimension: int
    regularisation: float
    penalty: str


def make_movie_world(
    ratings: Ratings, *, split: int = 0, dimension: int = 0, regularisation: float = 0.0, penalty: str = "plain"
) -> MovieWorld:
    """Divide the users of `ratings` into two random halves, and make movie features from the ratings of the first half.

    `split` is the random seed of the division. Features come from matrix factorisation (`alternating_least_squares`),
    with `dimension` features for each movie. `regularisation` is the strength of the penalty on their squares: the same
    for every movie and user with the `penalty` "plain" (that of the papers), multiplied by its number of ratings with
    "weighted".

    A dimension or regularisation of 0 means the value that cross-validation chooses on the first half; for the data
    sets in `CHOSEN` it is looked up there, as it takes minutes. Raise ValueError for a number or penalty that makes no
    sense, or fewer than two users.
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
    selected = row[ratings.users] >= 0
    training = row[ratings.users[selected]], ratings.movies[selected], ratings.values[selected], (first.size, M)
    if not (dimension and regularisation):
        best = CHOSEN.get((U, M, ratings.values.size), {}).get(penalty)
        if best is None or (dimension or best[0], regularisation or best[1]) != best:
            dimensions = (dimension,) if dimension else DIMENSIONS
            regularisations = (regularisation,) if regularisation else REGULARISATIONS[penalty]
            best = cross_validate(*training, dimensions, regularisations, penalty=penalty)[0][:2]
        dimension, regularisation = best
    Q = alternating_least_squares(*training, dimension, regularisation, penalty=penalty).Q

    movies = np.unique(ratings.movies[selected])
    column = np.full(M, -1)
    column[movies] = np.arange(movies.size)
    row[:] = -1
    row[second] = np.arange(second.size)
    rated = np.flatnonzero((row[ratings.users] >= 0) & (column[ratings.movies] >= 0))
    rated = rated[np.argsort(row[ratings.users[rated]], kind="stable")]
    return MovieWorld(
        movies=movies,
        X=np.ascontiguousarray(Q[movies]),
        people=second,
        places=column[ratings.movies[rated]],
        values=ratings.values[rated],
        offsets=np.searchsorted(row[ratings.users[rated]], np.arange(second.size + 1)),
        dimension=dimension,
        regularisation=regularisation,
        penalty=penalty,
    )


def true_utility(world: MovieWorld, person: int) -> tuple[Array, Array]:
    """Return the utility weights w* (N,) of a person and their ratings (m,), NaN for movies that they did not rate.

    `world` has the m movies with N features and the people; `person` is a number from 0 in `world.people`. w* is the
    shortest least-squares fit of the person's ratings on the features of the movies that they rated.
    """
    rows = slice(world.offsets[person], world.offsets[person + 1])
    w_star = np.asarray(least_squares(world.X[world.places[rows]], world.values[rows]), np.float64)
    ratings = np.full(world.movies.size, np.nan)
    ratings[world.places[rows]] = world.values[rows]
    return w_star, ratings


def movie_setting(world: MovieWorld, user: ItemUser, *, people: int = 100, seeds: Sequence[int] = (0,)) -> Setting:
    """Return the experiment in which the movies of `world` are recommended, one at a time, to some of its people.

    For each of `seeds`, `people` people are drawn at random; with 0, all take part. Each person has a learner of their
    own and a pool of all movies; `user` says how they answer. Raise ValueError for more people than there are, or a
    user that cannot pick items.
    """
    check_count("people", people, least=0, most=world.people.size)
    check_user(user, "pick", "picks items")
    pools: dict[int, tuple[ItemPool, Array]] = {}
    scenes = []
    for seed in seeds:
        for person in np.random.default_rng([seed, 1]).permutation(world.people.size)[: people or None].tolist():
            if person not in pools:
                w_star, ratings = true_utility(world, person)
                pools[person] = item_pool(world.X, w_star, user, ratings), w_star
            scenes.append(Scene(seed, person, person_seed(seed, person), *pools[person]))
    return items_setting(world.X, user, ROUNDS, scenes)
