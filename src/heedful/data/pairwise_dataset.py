"""Data sets in the form of [H12], each with its loader: the preference of each person on each pair of a few items,
derived from votes, ratings, measurements or rankings.
"""

from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.core.validation import describe
from heedful.data.files import existing_or_gz, is_number, numbered_lines
from heedful.data.movielens import Ratings, load_movielens
from heedful.data.sushi import check_labels, load_sushi

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

NEAREST = 10
METALS = ("Cd", "Cu", "Pb", "Co", "Cr", "Ni", "Zn")
PLACES = (72, 316, 243, 21, 84, 313, 43, 254, 324, 264, 294, 245, 183, 167, 349, 0, 73, 259, 5, 197)
"""The 20 places that [H12] drew, as rows of the file from 0; the measurements there are the features of the metals."""
PARTIES = ("BNP", "Conservative", "Green", "Independent", "Labour", "Liberal Democrat", "SNP", "UKIP")
STOOD = 6
"""The least number of parties that stood in a seat, for it to be used."""
SEATS = (261, 358, 64, 355, 107, 194, 285, 541, 49, 473, 74, 557, 160, 467, 264, 458, 535, 482, 313, 504)
"""The 20 seats that [H12] drew, by their numbers in the file; their votes are the features of the parties."""
FILMS = (2762, 1617, 296, 3175, 593, 2791, 780, 1240, 2716, 1196)
"""The ten films that [H12] drew, in that order, by their numbers in movies.dat."""
RATED = 7
"""Of how many of the ten films somebody rated at least, to be used."""
PEOPLE_COLUMNS = (1, 2, 7, 8, 9)
"""The columns of sushi3.udata that [H12] uses: gender, age, and the prefecture, region and half of Japan where the
person lives.
"""


class PairwiseDataset(NamedTuple):
    """Preferences of U people over all P = I (I - 1) / 2 pairs of the same I items, and features of both.

    - `names` (I,): of the items.
    - `features` (I, d): d features of each item; `people` (U, q): q features of each person.
    - `first` (U, P): whether the person prefers the first item of the pair, in the order of `all_pairs`."""

    names: NDArray[np.str_]
    features: Array
    people: Array
    first: NDArray[np.bool_]

    @property
    def pairs(self) -> Ints:
        """(P, 2): indices of the two items of each pair, the lower one first"""
        return all_pairs(len(self.names))


def all_pairs(items: int) -> Ints:
    """Return all P pairs of `items` items (P x 2), in the order (0, 1), (0, 2), ..., (1, 2), ...."""
    return np.column_stack(np.triu_indices(items, 1)).astype(np.int64)


def prefers_first(values: Array, labels: str = "right") -> NDArray[np.bool_]:
    """Return for each of U people whether they prefer the first item of each of P pairs (U x P), by their values of the
    I items.

    `values` (U x I) are distinct within a row; pairs are in the order of `all_pairs`. With `labels` "right" the item
    with the higher value is preferred. "published" reproduces the labels in the experiments of [H12], which read an
    argsort as ranks: item j is preferred to k if the item with the j-th lowest value has a lower number than the one
    with the k-th lowest."""
    a, b = all_pairs(values.shape[1]).T
    if check_labels(labels) == "right":
        return values[:, a] > values[:, b]
    order = values.argsort(axis=1, kind="stable")
    return order[:, a] < order[:, b]


def impute(X: Array, nearest: int = NEAREST) -> Array:
    """Return a copy of n rows of m values X (n x m) with each NaN replaced by the mean of the `nearest` rows that have
    a value there; if none of these does, by the mean of the column.

    The distance of two rows is the mean squared difference over the columns that both have (Troyanskaya et al., Missing
    value estimation methods for DNA microarrays, 2001, as in the R package impute).
    """
    out, present = X.copy(), ~np.isnan(X)
    filled = np.where(present, X, 0.0)
    means = filled.sum(axis=0) / np.maximum(present.sum(axis=0), 1)
    for i in np.flatnonzero(~present.all(axis=1)):
        both = present & present[i]
        apart = (np.square(filled - filled[i]) * both).sum(axis=1)
        far = np.where(both.any(axis=1), apart / np.maximum(both.sum(axis=1), 1), np.inf)
        far[i] = np.inf
        near = far.argsort(kind="stable")[:nearest]
        votes = present[near].sum(axis=0)
        mean = np.where(votes > 0, filled[near].sum(axis=0) / np.maximum(votes, 1), means)
        out[i, ~present[i]] = mean[~present[i]]
    return out


def break_ties(X: Array, rng: np.random.Generator) -> Array:
    """Return X plus normal noise of standard deviation 1e-5, drawn with `rng`: ties get a random order, other orders do
    not change.
    """
    noisy: Array = X + 1e-5 * rng.standard_normal(X.shape)
    return noisy


def one_hot(column: NDArray[np.generic]) -> Array:
    """Return the one-hot coding (n x c) of a `column` of n values (n,) in c categories, categories in rising order.

    Two categories give a single column: whether the category is that of the first row.
    """
    kinds = np.unique(column)
    hot = column[:, None] == (column[:1] if kinds.size == 2 else kinds)[None, :]
    numbers: Array = hot.astype(np.float64)
    return numbers


def numbers_of(path: Path, columns: int = 0) -> Array:
    """Read a text file of numbers separated by blanks, the same number in each line (n x columns).

    `columns`: how many; 0: as many as in the first line. Raise ValueError, as NAME:LINE: numbers: expected ..., got
    ..., for a malformed line, and for a file without numbers.
    """
    rows: list[list[float]] = []
    for number, line in numbered_lines(path):
        fields = line.split()
        if not fields:
            continue
        columns = columns or len(fields)
        if len(fields) != columns or not all(map(is_number, fields)):
            raise ValueError(
                f"{path.name}:{number}: numbers: expected {columns}, apart by blanks, got {describe(line.strip())}"
            )
        rows.append([float(field) for field in fields])
    if not rows:
        raise ValueError(f"{path.name}: lines: expected at least one, got none")
    return np.array(rows)


def load_jura(folder: str | PathLike[str], labels: str) -> PairwiseDataset:
    """Load heavy metals in the soil of the Swiss Jura (Goovaerts 1997) from jura.dat in a folder: places are people,
    metals are items, and a place prefers the metal with the higher standardised concentration.

    Measurements in 20 places are the features of the metals, which leaves 339 people, described by their two
    coordinates, the rock and the land use. `labels`: "right", or "published" for the labels in the experiments of
    [H12], some of which are inverted.

    Raise FileNotFoundError if the file is missing; ValueError, as `NAME:LINE: numbers: expected ..., got ...`, for a
    malformed line.
    """
    path = existing_or_gz(Path(folder) / "jura.dat")
    table = numbers_of(path, 11)
    if len(table) <= max(PLACES):
        raise ValueError(f"{path.name}: places: expected at least {max(PLACES) + 1}, got {len(table)}")
    spread = table[:, 4:].std(axis=0)
    if not spread.all():
        raise ValueError(
            f"{path.name}: metals: expected different amounts of each, got the same of {METALS[int(spread.argmin())]}"
        )
    measured = (table[:, 4:] - table[:, 4:].mean(axis=0)) / spread
    rest = np.setdiff1d(np.arange(len(table)), PLACES)
    people = np.column_stack([table[:, :2], one_hot(table[:, 2]), one_hot(table[:, 3])])
    return PairwiseDataset(
        np.array(METALS), measured[list(PLACES)].T, people[rest], prefers_first(measured[rest], labels)
    )


def load_election(folder: str | PathLike[str], labels: str) -> PairwiseDataset:
    """Load the 2010 general election in the United Kingdom from all_polling_data.dat in a folder: seats of parliament
    are people, parties are items, and a seat prefers the party with more votes.

    Only seats where at least STOOD of the 8 parties stood are used. Missing votes are imputed from the 10 nearest seats
    (a party that stood in none of these gets its overall mean: the SNP, 8,153 votes in England). The votes in 20 seats
    are the features of the parties, which leaves 264 people with the latitude and longitude of their seat. `labels` is
    that of `load_jura`.

    Raise FileNotFoundError if the file is missing; ValueError, as `NAME:LINE: field: expected ..., got ...`, for a
    malformed line.
    """
    path = existing_or_gz(Path(folder) / "all_polling_data.dat")
    rows = []
    for number, line in numbered_lines(path):
        fields = line.rstrip("\r\n").split("\t")
        if len(fields) != 11 or not all(map(is_number, fields[:3])) or not all(not f or is_number(f) for f in fields):
            expected = "a number, a latitude, a longitude and 8 votes or nothing, apart by tabs"
            raise ValueError(f"{path.name}:{number}: seat: expected {expected}, got {describe(line.rstrip())}")
        rows.append([float(field or "nan") for field in fields])
    if len(rows) < 22:
        raise ValueError(f"{path.name}: seats: expected at least 22, got {len(rows)}")
    table = np.array(rows)
    table = table[(~np.isnan(table[:, 3:])).sum(axis=1) >= STOOD]
    votes = break_ties(impute(table[:, 3:]), np.random.default_rng([0, 20]))
    row_of = {int(number): i for i, number in enumerate(table[:, 0])}
    drawn = [row_of[seat] for seat in SEATS if seat in row_of]
    rest = np.setdiff1d(np.arange(len(table)), drawn)
    if len(drawn) < 20 or not rest.size:
        expected = f"the 20 that [H12] drew and others, where at least {STOOD} parties stood"
        raise ValueError(f"{path.name}: seats: expected {expected}, got {len(drawn)} and {rest.size}")
    return PairwiseDataset(np.array(PARTIES), votes[drawn].T, table[rest, 1:3], prefers_first(votes[rest], labels))


def load_collaborative(folder: str | PathLike[str]) -> PairwiseDataset:
    """Load the synthetic data set of [H12] from itemFeatures.txt, userFeatures.txt and dataset.txt, plain or gzip, in a
    folder: 1,000 people, whose preferences derive from five utility functions that they share, gave a noisy answer on
    every pair of 10 items.

    A row of dataset.txt has the features of two items, the number of a person from 1, and 1 if the first item is
    preferred, else -1. Raise FileNotFoundError if a file is missing; ValueError, as `NAME:LINE: numbers: expected ...,
    got ...`, for a malformed line, or if not every person answered every pair once.
    """
    folder = Path(folder)
    features, people = (numbers_of(existing_or_gz(folder / name)) for name in ("itemFeatures.txt", "userFeatures.txt"))
    (n, d), U = features.shape, len(people)
    path = existing_or_gz(folder / "dataset.txt")
    table = numbers_of(path, 2 * d + 2)
    pairs = all_pairs(n)
    a, b = _items(features, table[:, :d]), _items(features, table[:, d : 2 * d])
    user, label = table[:, -2].astype(np.int64) - 1, table[:, -1]
    place = np.full((n, n), -1)
    place[pairs[:, 0], pairs[:, 1]] = np.arange(len(pairs))
    good = (a >= 0) & (b >= 0) & (user >= 0) & (user < U) & np.isin(label, (-1.0, 1.0))
    good[good] &= place[a[good], b[good]] >= 0
    if not good.all():
        expected = f"two of the {n} items, the first listed first, a person from 1 to {U}, and 1 or -1"
        raise ValueError(f"{path.name}: row {int((~good).argmax()) + 1}: expected {expected}, got others")
    where = user * len(pairs) + place[a, b]
    if np.unique(where).size != where.size or where.size != U * len(pairs):
        raise ValueError(
            f"{path.name}: rows: expected each of {len(pairs)} pairs once of each of {U} people, got others"
        )
    first = np.zeros(U * len(pairs), bool)
    first[where] = label > 0.0
    names = np.array([str(i) for i in range(1, n + 1)])
    return PairwiseDataset(names, features, people, first.reshape(U, len(pairs)))


def _items(features: Array, rows: Array) -> Ints:
    """Return for each of n `rows` (n x d) the index (n,) of the item with these `features` (items x d); -1 for none."""
    same = (rows[:, None, :] == features[None, :, :]).all(axis=2)
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def load_movie_choices(folder: str | PathLike[str], ratings: Ratings | None, labels: str) -> PairwiseDataset:
    """Load MovieLens 1M from a folder as choices among ten films, by the people who rated at least 7 of them: each
    prefers the film that they rated higher.

    Missing ratings are imputed from the 10 nearest people; ties are broken at random. The features of films are their
    genres, those of people are gender, age and occupation (users.dat). `ratings`: the result of `load_movielens` for
    this folder, if it is at hand. `labels`: "right", or "published" for the labels in the experiments of [H12], some of
    which are inverted; there the genres of the films are in another order, too. Errors are those of `load_movielens`.
    """
    ratings = load_movielens(folder) if ratings is None else ratings
    row_of = {int(number): i for i, number in enumerate(ratings.movie_ids)}
    missing = [number for number in FILMS if number not in row_of]
    if missing:
        raise ValueError(f"movies.dat: films: expected those that [H12] drew, got none with the number {missing[0]}")
    films = np.array([row_of[number] for number in FILMS], np.int64)
    column = np.full(ratings.movie_ids.size, -1)
    column[films] = np.arange(films.size)
    of_films = column[ratings.movies] >= 0
    table = np.full((ratings.user_ids.size, films.size), np.nan)
    table[ratings.users[of_films], column[ratings.movies[of_films]]] = ratings.values[of_films]
    [raters] = ((~np.isnan(table)).sum(axis=1) >= RATED).nonzero()
    if not raters.size:
        raise ValueError(f"ratings: expected somebody who rated {RATED} of the {films.size} films, got nobody")
    values = break_ties(impute(table[raters]), np.random.default_rng([0, 22]))
    if labels == "published":
        # [H12] numbered the columns by the sorted film numbers instead of by the films' places in the draw
        values = values[:, films.argsort().argsort()]
    attributes = _people(existing_or_gz(Path(folder) / "users.dat"))
    rows = [attributes[int(user)] for user in ratings.user_ids[raters]]
    people = np.column_stack([one_hot(np.array(column)) for column in zip(*rows)])
    features = ratings.genres[films].astype(np.float64)
    return PairwiseDataset(ratings.names[films], features, people, prefers_first(values, labels))


def _people(path: Path) -> dict[int, tuple[str, str, str]]:
    """Return (gender, age, occupation) by user number, from users.dat."""
    people = {}
    for number, line in numbered_lines(path):
        fields = line.strip().split("::")
        if len(fields) != 5 or not fields[0].isdecimal():
            expected = "USER::GENDER::AGE::OCCUPATION::ZIP"
            raise ValueError(f"{path.name}:{number}: line: expected {expected}, got {describe(line.strip())}")
        people[int(fields[0])] = fields[1], fields[2], fields[3]
    return people


def load_sushi_choices(folder: str | PathLike[str], labels: str) -> PairwiseDataset:
    """Load the rankings of the same 10 sushi by 5,000 people as pairwise preferences, with features of items and
    people.

    Categorical features (style, major and minor group of items; all of people) are one-hot. `labels="published"` gives
    salmon roe the features of salmon, as the experiments of [H12] did; the answers are the same. Errors are those of
    `load_sushi`.
    """
    orders, names, attributes = load_sushi(folder, labels=labels)
    path = existing_or_gz(Path(folder) / "sushi3.udata")
    answers = numbers_of(path, 11)
    if len(answers) != len(orders):
        raise ValueError(f"{path.name}: people: expected {len(orders)}, as there are orders, got {len(answers)}")
    place = orders.argsort(axis=1)
    a, b = all_pairs(names.size).T
    style, major, minor = attributes[:, :3].T
    features = np.column_stack(
        [style == 1, style != 1, major == 1, major != 1, one_hot(minor), attributes[:, 3:]]
    ).astype(np.float64)
    people = np.column_stack([one_hot(answers[:, j]) for j in PEOPLE_COLUMNS])
    return PairwiseDataset(names, features, people, place[:, a] < place[:, b])
