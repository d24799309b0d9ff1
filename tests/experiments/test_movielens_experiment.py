"""Movies for people who rated some: who is in which half, what a person wants, and the runs, against loops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import naive
from films import ratings_of, shared, write_1m, write_100k
from heedful.core.fold import trace
from heedful.data.als import DIMENSIONS, REGULARISATIONS, Trial, alternating_least_squares, cross_validate
from heedful.data.movielens import Ratings, load_movielens
from heedful.experiments import movielens
from heedful.experiments.movielens import CHOSEN, MovieWorld, make_movie_world, movie_setting, true_utility
from heedful.experiments.run import Run, curve, simulate
from heedful.worlds.users import Best, Better, Noisy, StrictAlpha


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Ratings:
    """24 people, 30 movies; movie 8 is rated by the second half (split 0) alone."""
    first = np.random.default_rng(0).permutation(24)[:12] + 1
    some = {key: r for key, r in ratings_of(share=0.4).items() if key[1] != 8 or key[0] not in first}
    return load_movielens(write_1m(tmp_path_factory.mktemp("films") / "ml", some))


@pytest.fixture(scope="module")
def house(ratings: Ratings) -> MovieWorld:
    return make_movie_world(ratings, dimension=3, regularisation=0.1)


def of(ratings: Ratings, user: int) -> dict[int, float]:
    """{movie: value}, by place."""
    mine = ratings.users == user
    return dict(zip(ratings.movies[mine].tolist(), ratings.values[mine].tolist()))


# ---------------------------------------------------------------------------- halves and features


def test_features_are_of_one_half_and_people_of_the_other(ratings: Ratings, house: MovieWorld) -> None:
    first = [u for u in range(24) if u not in house.people]
    assert len(first) == len(set(house.people.tolist())) == 12
    of_first = {(first.index(u), j): r for u in first for j, r in of(ratings, u).items()}
    assert house.movies.tolist() == sorted({j for _, j in of_first})
    pairs = np.array(list(of_first))
    Q = alternating_least_squares(pairs[:, 0], pairs[:, 1], np.array(list(of_first.values())), (12, 30), 3, 0.1).Q
    np.testing.assert_allclose(house.X @ house.X.T, Q[house.movies] @ Q[house.movies].T, rtol=1e-6, atol=1e-8)
    others = np.isin(ratings.users, house.people)
    weighted = alternating_least_squares(
        pairs[:, 0], pairs[:, 1], np.array(list(of_first.values())), (12, 30), 3, 0.1, penalty="weighted"
    ).Q
    other = make_movie_world(ratings, dimension=3, regularisation=0.1, penalty="weighted")
    assert (house.penalty, other.penalty) == ("plain", "weighted")  # the papers' unless another is asked for
    np.testing.assert_allclose(
        other.X @ other.X.T, weighted[house.movies] @ weighted[house.movies].T, rtol=1e-6, atol=1e-8
    )
    changed = make_movie_world(
        ratings._replace(values=np.where(others, 1.0, ratings.values)), dimension=3, regularisation=0.1
    )
    assert changed.X.tobytes() == house.X.tobytes()
    assert set(changed.values.tolist()) == {1.0}


def test_people_keep_their_ratings_of_movies_that_have_features(ratings: Ratings, house: MovieWorld) -> None:
    assert house.movies.size == 29
    assert any(7 in of(ratings, u) for u in house.people.tolist())
    for i, user in enumerate(house.people.tolist()):
        mine = slice(house.offsets[i], house.offsets[i + 1])
        got = dict(zip(house.movies[house.places[mine]].tolist(), house.values[mine].tolist()))
        assert got == {j: r for j, r in of(ratings, user).items() if j in house.movies}


def test_another_split_is_another_half(ratings: Ratings, house: MovieWorld) -> None:
    again, other = (make_movie_world(ratings, split=split, dimension=3, regularisation=0.1) for split in (0, 1))
    assert again.people.tolist() == house.people.tolist()
    assert set(other.people.tolist()) != set(house.people.tolist())


def test_what_is_not_given_is_cross_validated(ratings: Ratings, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def validated(users: Any, films: Any, values: Any, shape: Any, *tried: Any, penalty: str) -> list[Trial]:
        asked.append((values.size, shape, *tried, penalty))
        return [Trial(2, 0.3, 0.9), Trial(1, 0.1, 1.0)]

    monkeypatch.setattr(movielens, "cross_validate", validated)
    n = int((~np.isin(ratings.users, make_movie_world(ratings, dimension=1, regularisation=1.0).people)).sum())
    assert asked == []
    both = make_movie_world(ratings)
    assert (both.dimension, both.regularisation, both.X.shape[1]) == (2, 0.3, 2)
    make_movie_world(ratings, dimension=4)
    make_movie_world(ratings, regularisation=0.5)
    make_movie_world(ratings, penalty="weighted")
    assert asked == [
        (n, (12, 30), DIMENSIONS, REGULARISATIONS["plain"], "plain"),
        (n, (12, 30), (4,), REGULARISATIONS["plain"], "plain"),
        (n, (12, 30), DIMENSIONS, (0.5,), "plain"),
        (n, (12, 30), DIMENSIONS, REGULARISATIONS["weighted"], "weighted"),
    ]
    asked.clear()
    monkeypatch.setattr(movielens, "CHOSEN", {(24, 30, ratings.values.size): {"plain": (3, 0.2)}})
    known = (
        make_movie_world(ratings),
        make_movie_world(ratings, dimension=3),
        make_movie_world(ratings, regularisation=0.2),
    )
    assert [(one.dimension, one.regularisation) for one in known] == [(3, 0.2)] * 3
    assert asked == []
    make_movie_world(ratings, dimension=2)  # chosen with another
    make_movie_world(ratings, penalty="weighted")  # chosen for the other penalty
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"split": -1}, "split: expected a whole number, 0 or more, got -1"),
        ({"dimension": 1001}, "dimension: expected a whole number, 0 to 1000, got 1001"),
        ({"regularisation": -0.1}, "regularisation: expected a finite number above 0"),
        ({"regularisation": math.nan}, "regularisation: expected a finite number above 0"),
        ({"penalty": "heavy"}, "penalty: expected plain or weighted, got 'heavy'"),
    ],
)
def test_numbers_that_make_no_sense(ratings: Ratings, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_movie_world(ratings, **wrong)


def test_one_user_is_no_half(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"users: expected at least two, .*, got 1"):
        make_movie_world(load_movielens(write_100k(tmp_path, {(5, 1): 3, (5, 2): 4})))


# ---------------------------------------------------------------------------- a person


def test_a_persons_utility_fits_her_ratings_best(house: MovieWorld) -> None:
    """The gradient of the squared error is 0, and w* is in the span of her movies: no shorter one fits as well."""
    for i in range(house.people.size):
        w_star, known = true_utility(house, i)
        rated = ~np.isnan(known)
        X, r = house.X[rated], known[rated]
        assert 0 < rated.sum() < house.movies.size
        np.testing.assert_allclose(X.T @ (X @ w_star - r), 0, atol=1e-9)
        outside = np.linalg.svd(X)[2][np.linalg.matrix_rank(X) :]
        np.testing.assert_allclose(outside @ w_star, 0, atol=1e-9)


def test_few_ratings_are_fitted_by_the_shortest(ratings: Ratings) -> None:
    house = make_movie_world(ratings, dimension=20, regularisation=0.01)
    fewest = int(np.diff(house.offsets).argmin())
    w_star, known = true_utility(house, fewest)
    rated = ~np.isnan(known)
    assert rated.sum() < 20
    X = house.X[rated]
    np.testing.assert_allclose(w_star, X.T @ np.linalg.solve(X @ X.T, known[rated]), rtol=1e-6)


def test_ratings_are_hers_where_known_else_the_utility_rounded(house: MovieWorld) -> None:
    setting = movie_setting(house, Better(), people=0)
    for scene in setting.scenes:
        w_star, known = true_utility(house, scene.person)
        np.testing.assert_array_equal(scene.w_star, w_star)
        np.testing.assert_allclose(scene.world.utilities, house.X @ w_star, atol=1e-12)
        for u, r, rating in zip(scene.world.utilities, known, scene.world.ratings):
            assert rating == (min(5, max(1, math.floor(u + 0.5))) if math.isnan(r) else r)


# ---------------------------------------------------------------------------- settings and runs


def test_who_comes_depends_on_the_seed_alone(house: MovieWorld) -> None:
    setting = movie_setting(house, StrictAlpha(0.4), people=5, seeds=(3, 4))
    other = movie_setting(house, Best(), people=7, seeds=(4,))
    met = {seed: [s.person for s in setting.scenes if s.seed == seed] for seed in (3, 4)}
    assert len(set(met[3])) == len(set(met[4])) == 5
    assert set(met[3]) != set(met[4])
    assert [s.person for s in other.scenes][:5] == met[4]
    assert [s.draw for s in other.scenes][:5] == [s.draw for s in setting.scenes if s.seed == 4]
    assert len({s.draw for s in setting.scenes}) == 10
    assert (setting.n_features, setting.space.k, setting.rounds, setting.alpha) == (3, 1, 1500, 0.4)
    assert math.isnan(other.alpha)
    assert setting.R == pytest.approx(max(math.hypot(*x) for x in house.X))
    assert setting.S == np.abs(house.X).max()
    everybody = movie_setting(house, Best(), people=0)
    assert sorted(s.person for s in everybody.scenes) == list(range(12))


def test_who_is_not_there_cannot_come(house: MovieWorld) -> None:
    with pytest.raises(ValueError, match="people: expected a whole number, 0 to 12, got 13"):
        movie_setting(house, Best(), people=13)
    with pytest.raises(ValueError, match="user: expected one who picks items"):
        movie_setting(house, Noisy(5), people=2)


@pytest.mark.parametrize("jobs", [1, 3])
def test_regrets_are_those_of_loops(house: MovieWorld, jobs: int) -> None:
    """[J15] Algorithm 1 with strict feedback: nothing is drawn, so lists do for all of it."""
    setting = movie_setting(house, StrictAlpha(0.5), people=4)
    events = simulate({"p": setting.learner("perceptron")}, setting, 50, jobs=jobs, interpreted=True)
    runs = {event.person: event.regrets for event in events if isinstance(event, Run)}
    assert len(runs) == 4
    for scene in setting.scenes:
        u, pool = (house.X @ scene.w_star).tolist(), naive.ItemPool(house.X @ scene.w_star)
        w, wanted = np.zeros(3), []
        while pool.left:
            x = house.X[pool.left]
            [y] = naive.Rankings(1).argmax(w, x)
            wanted.append(pool.regret([y]))
            y_bar = naive.strict_alpha_item([u[j] for j in pool.left], y, 0.5)
            w += x[y_bar] - x[y]
            pool.leave([y], [y_bar])
        np.testing.assert_allclose(runs[scene.person], wanted, rtol=1e-9, atol=1e-12)
        assert max(wanted) > 0.1


@pytest.mark.slow
def test_compiled_is_interpreted(house: MovieWorld) -> None:
    setting = movie_setting(house, Better(), people=2)
    learner = setting.learner("perceptron")
    for scene in setting.scenes:
        plain = trace(learner, scene.world, 40, scene.draw, interpreted=True)
        assert trace(learner, scene.world, 40, scene.draw).tobytes() == plain.tobytes()


@pytest.mark.slow
def test_people_of_movielens_100k_find_better_movies(record_property: Any) -> None:
    """Each finds better movies than at random, and than at first: what every figure of the papers shows."""
    house = make_movie_world(load_movielens(shared("movielens-100k")))
    assert (house.dimension, house.regularisation) == CHOSEN[943, 1682, 100_000]["plain"]
    assert house.people.size == 472
    for user in (StrictAlpha(1.0), Better()):
        setting = movie_setting(house, user, people=20)
        runs = [e for e in simulate({"p": setting.learner("perceptron")}, setting, 300) if isinstance(e, Run)]
        mean = curve(runs).mean
        at_random = np.mean([(s.world.utilities.max() - s.world.utilities).mean() for s in setting.scenes])
        record_property("told", f"{user}: regret {mean[0]:.2f} in round 1, {mean[-1]:.2f} over 300")
        assert mean[-1] < 0.5 * mean[0]
        assert mean[-1] < 0.5 * at_random


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "penalty", "dimensions", "regularisations"),
    [
        ("movielens-100k", "plain", (2, 5), (1.0, 2.0, 5.0)),
        ("movielens-100k", "weighted", (2, 5, 7), (0.1, 0.15, 0.2)),
        ("movielens-1m", "plain", (5, 7, 10), (2.0, 5.0, 7.5)),
        ("movielens-1m", "weighted", (7, 10, 15), (0.05, 0.075, 0.1)),
    ],
)
def test_cross_validation_chooses_what_is_on_record(
    name: str, penalty: str, dimensions: tuple[int, ...], regularisations: tuple[float, ...]
) -> None:
    """Beside the neighbours in the grid alone, in the half that the features are made of."""
    ratings = load_movielens(shared(name))
    U, M = ratings.user_ids.size, ratings.movie_ids.size
    first = np.random.default_rng(0).permutation(U)[: U // 2]
    mine = np.isin(ratings.users, first)
    users = np.unique(ratings.users[mine], return_inverse=True)[1]
    given = users, ratings.movies[mine], ratings.values[mine], (U // 2, M)
    tried = cross_validate(*given, dimensions, regularisations, penalty=penalty, folds=5)
    assert tried[0][:2] == CHOSEN[U, M, ratings.values.size][penalty]
