"""Loader of comparisons of ten films from MovieLens 1M, as in [H12]: each person prefers the film that they rated
higher.
"""

from os import PathLike
from pathlib import Path

import numpy as np

from heedful.data.files import cut_repr, existing_or_gz, numbered_lines
from heedful.data.movielens import Ratings, load_movielens
from heedful.data.pairwise_dataset import (
    Ints,
    PairwiseDataset,
    all_pairs,
    break_ties,
    check_labels,
    impute,
    one_hot,
    prefers_first,
)

FILMS = (2762, 1617, 296, 3175, 593, 2791, 780, 1240, 2716, 1196)
"""The ten films that [H12] drew, in that order, by their numbers in movies.dat."""
MOST_RATED, RATED = 50, 7


def load_movie_choices(
    folder: str | PathLike[str], ratings: Ratings | None = None, *, labels: str = "right", draw: int | None = None
) -> PairwiseDataset:
    """Load MovieLens 1M from a folder as choices among ten films, by the people who rated at least 7 of them.

    Missing ratings are imputed from the 10 nearest people; ties are broken at random. The features of films are their
    genres, those of people are gender, age and occupation (users.dat). `draw`: a seed for ten of the 50 most rated
    films in place of those of [H12]. `ratings`: the result of `load_movielens` for this folder, if it is at hand.
    `labels`: "right", or "published" for the labels in the experiments of [H12], some of which are inverted; there the
    genres of the films are in another order, too. Errors are those of `load_movielens`.
    """
    check_labels(labels)
    ratings = load_movielens(folder) if ratings is None else ratings
    rng = np.random.default_rng([draw or 0, 22])
    films = _films(ratings, draw, rng)
    column = np.full(ratings.movie_ids.size, -1)
    column[films] = np.arange(films.size)
    of_films = column[ratings.movies] >= 0
    table = np.full((ratings.user_ids.size, films.size), np.nan)
    table[ratings.users[of_films], column[ratings.movies[of_films]]] = ratings.values[of_films]
    [raters] = ((~np.isnan(table)).sum(axis=1) >= RATED).nonzero()
    if not raters.size:
        raise ValueError(f"ratings: expected somebody who rated {RATED} of the {films.size} films, got nobody")
    values = break_ties(impute(table[raters]), rng)
    if labels == "published":
        # [H12] numbered the columns by the sorted film numbers instead of by the films' places in the draw
        values = values[:, films.argsort().argsort()]
    attributes = _people(existing_or_gz(Path(folder) / "users.dat"))
    rows = [attributes[int(user)] for user in ratings.user_ids[raters]]
    people = np.column_stack([one_hot(np.array(column)) for column in zip(*rows)])
    features = ratings.genres[films].astype(np.float64)
    return PairwiseDataset(ratings.names[films], features, people, all_pairs(films.size), prefers_first(values, labels))


def _films(ratings: Ratings, draw: int | None, rng: np.random.Generator) -> Ints:
    """Return the indices of the ten films: those of [H12] or, with a seed, ten of the 50 most rated."""
    if draw is not None:
        counts = np.bincount(ratings.movies, minlength=ratings.movie_ids.size)
        most = (-counts).argsort(kind="stable")[:MOST_RATED]
        return rng.permutation(most)[: len(FILMS)].astype(np.int64)
    row_of = {int(number): i for i, number in enumerate(ratings.movie_ids)}
    missing = [number for number in FILMS if number not in row_of]
    if missing:
        raise ValueError(f"movies.dat: films: expected those that [H12] drew, got none with the number {missing[0]}")
    return np.array([row_of[number] for number in FILMS], np.int64)


def _people(path: Path) -> dict[int, tuple[str, str, str]]:
    """Return (gender, age, occupation) by user number, from users.dat."""
    people = {}
    for number, line in numbered_lines(path):
        fields = line.strip().split("::")
        if len(fields) != 5 or not fields[0].isdecimal():
            expected = "USER::GENDER::AGE::OCCUPATION::ZIP"
            raise ValueError(f"{path.name}:{number}: line: expected {expected}, got {cut_repr(line.strip())}")
        people[int(fields[0])] = fields[1], fields[2], fields[3]
    return people
