"""Choices of every pair, made of votes, ratings, measurements and orders as [H12] made them, right and as published."""

from __future__ import annotations

import gzip
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from films import ratings_of, shared, write_1m
from heedful.data.files import existing_or_gz
from heedful.data.pairwise_dataset import (
    FILMS,
    METALS,
    PARTIES,
    PLACES,
    SEATS,
    PairwiseDataset,
    all_pairs,
    break_ties,
    impute,
    load_collaborative,
    load_election,
    load_jura,
    load_movie_choices,
    load_sushi_choices,
    numbers_of,
    one_hot,
    prefers_first,
)


def test_the_pairs_and_who_is_preferred() -> None:
    assert all_pairs(4).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert prefers_first(np.array([[3.0, 9.0, 5.0]])).tolist() == [[False, False, True]]


def test_published_labels_read_ranks_as_an_order() -> None:
    """Ranks of (3, 9, 5) are 1, 3, 2: item 1 stands first, item 2 third, item 3 second, where ranks are an order."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((20, 6))
    got = prefers_first(values, "published")
    for row, labels in zip(values.tolist(), got.tolist()):
        ranks = [sorted(row).index(value) + 1 for value in row]
        wanted = [ranks.index(j) < ranks.index(k) for j, k in combinations(range(1, 7), 2)]
        assert labels == wanted
    assert prefers_first(np.array([[3.0, 9.0, 5.0]]), "published").tolist() == [[True, True, False]]
    with pytest.raises(ValueError, match=r"^labels: expected right or published, got 'wrong'$"):
        prefers_first(values, "wrong")


def test_what_is_missing_comes_from_the_nearest_that_have_it() -> None:
    nan = np.nan
    X = np.array([[1.0, 2.0, nan], [1.0, 2.0, nan], [1.5, 2.0, 10.0], [1.0, 2.5, 20.0], [9.0, 9.0, 90.0]])
    got = impute(X, nearest=3)
    assert got[:2, 2].tolist() == [15.0, 15.0]  # of the three nearest one has none
    np.testing.assert_array_equal(got[2:], X[2:])
    assert impute(X, nearest=1)[0, 2] == 40.0  # the nearest has none: the mean of the column
    assert np.isnan(X[0, 2])  # what came is as it was
    rows = np.array([[0.0, 0.0, nan], [0.15, nan, 1.0], [0.12, 0.12, 2.0]])
    assert impute(rows, nearest=1)[0, 2] == 2.0  # by the mean square over what both have, not by its sum


def test_ties_are_broken_and_nothing_else_is() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(1, 6, (200, 8)).astype(float)
    noisy = break_ties(values, rng)
    assert all(len(set(row)) == 8 for row in noisy.tolist())
    higher = values[:, :1] > values[:, 1:]
    assert (noisy[:, :1] > noisy[:, 1:])[higher].all()
    tied = values[:, :1] == values[:, 1:]
    assert 0.3 < (noisy[:, :1] > noisy[:, 1:])[tied].mean() < 0.7


def test_kinds_are_a_column_each_two_kinds_are_one() -> None:
    assert one_hot(np.array([3, 1, 7, 1])).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert one_hot(np.array(["F", "M", "F"])).tolist() == [[1], [0], [1]]


def test_texts_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("1 -2.5\n\n 3\t4e1 \n")
    assert numbers_of(path).tolist() == [[1.0, -2.5], [3.0, 40.0]]
    with pytest.raises(ValueError, match=r"^numbers.txt:1: numbers: expected 3, apart by blanks, got '1 -2.5'$"):
        numbers_of(path, 3)
    path.write_text("1 2\n1 nan\n")
    with pytest.raises(ValueError, match=r"numbers.txt:2: numbers: expected 2, apart by blanks, got '1 nan'"):
        numbers_of(path)
    path.write_text("\n")
    with pytest.raises(ValueError, match=r"numbers.txt: lines: expected at least one, got none"):
        numbers_of(path)


# ---------------------------------------------------------------------------- election


def seats(count: int = 40, seed: int = 0) -> list[list[str]]:
    """Seats numbered as those that [H12] drew, and others; not everybody stands everywhere."""
    rng = np.random.default_rng(seed)
    numbers = [*SEATS, *range(1001, 1001 + count - len(SEATS))]
    rows = []
    for number in numbers:
        votes = [str(v) for v in rng.integers(100, 20_000, 8)]
        votes[number % 8] = ""
        rows.append([str(number), f"{50 + number / 999:.3f}", "-3.5", *votes])
    return rows


def write_election(folder: Path, rows: list[list[str]]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "all_polling_data.dat").write_text("".join("\t".join(row) + "\n" for row in rows))
    return folder


def test_seats_are_people_and_parties_the_items(tmp_path: Path) -> None:
    rows = seats()
    rows[30][3:7] = ["", "", "", ""]  # too few stood
    got = load_election(write_election(tmp_path, rows), "right")
    assert tuple(got.names) == PARTIES
    assert (got.features.shape, got.people.shape, got.first.shape) == ((8, 20), (19, 2), (19, 28))
    others = [row for row in rows[20:] if row is not rows[30]]
    np.testing.assert_allclose(got.people[:, 0], [float(row[1]) for row in others])
    for row, first in zip(others, got.first):
        for (a, b), won in zip(all_pairs(8), first):
            if row[3 + a] and row[3 + b]:
                assert won == (float(row[3 + a]) > float(row[3 + b]))
    existing_or_gz = [(j, k) for j, row in enumerate(rows[:20]) for k in range(8) if row[3 + k]]
    np.testing.assert_allclose(
        [got.features[k, j] for j, k in existing_or_gz], [float(rows[j][3 + k]) for j, k in existing_or_gz], atol=1e-3
    )


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (["1", "50", "0", *"1234567"], r"dat:3: seat: expected a number, a latitude, .*got '1\\t50"),
        (["1", "50", "", *"12345678"], r"dat:3: seat"),
        (["1", "50", "0", *"1234567", "x"], r"dat:3: seat"),
    ],
)
def test_a_malformed_seat_is_told_with_its_line(tmp_path: Path, row: list[str], told: str) -> None:
    rows = seats()
    with pytest.raises(ValueError, match=told):
        load_election(write_election(tmp_path, [*rows[:2], row, *rows[3:]]), "right")


def test_too_few_seats(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"all_polling_data.dat: seats: expected at least 22, got 20"):
        load_election(write_election(tmp_path, seats(20)), "right")
    with pytest.raises(ValueError, match=r"seats: expected the 20 that \[H12\] drew and others, .*, got 19 and 20"):
        load_election(write_election(tmp_path, seats()[1:]), "right")


def test_the_election_itself() -> None:
    """The numbers of the features that were released with [H12]: what was imputed is the same, to its noise of 1e-5."""
    folder = shared("uk-election-2010")
    right, published = (load_election(folder, labels) for labels in ("right", "published"))
    assert right.first.shape == (264, 28)
    np.testing.assert_array_equal(right.features, published.features)
    told = {
        (0, 0): 1149,
        (1, 9): 29461,
        (2, 10): 809.888889,
        (3, 0): 265.666667,
        (3, 6): 377.428571,
        (7, 8): 833.777778,
    }
    for (party, seat), votes in {**told, (6, 0): 8153.136364, (6, 6): 10456.25}.items():
        assert right.features[party, seat] == pytest.approx(votes, abs=2e-4)
    assert majority(right) == pytest.approx(0.107, abs=0.001)
    assert majority(published) == pytest.approx(0.355, abs=0.001)


def majority(data: PairwiseDataset) -> float:
    """The error of foretelling of everybody what most prefer."""
    share = data.first.mean(axis=0)
    return float(np.minimum(share, 1.0 - share).mean())


# ---------------------------------------------------------------------------- jura


def write_jura(folder: Path, places: int = 360) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rng = np.random.default_rng(3)
    table = np.column_stack([rng.random((places, 2)), rng.integers(1, 6, places), rng.integers(1, 5, places)])
    table = np.column_stack([table, rng.gamma(2.0, [1, 2, 3, 4, 5, 6, 7], (places, 7))])
    (folder / "jura.dat").write_text("\n".join(" ".join(f"{v:.6g}" for v in row) for row in table))
    return np.loadtxt(folder / "jura.dat")


def test_places_are_people_and_metals_the_items(tmp_path: Path) -> None:
    table = write_jura(tmp_path)
    got = load_jura(tmp_path, "right")
    assert (tuple(got.names), got.features.shape, got.people.shape) == (METALS, (7, 20), (340, 11))
    measured = (table[:, 4:] - table[:, 4:].mean(axis=0)) / table[:, 4:].std(axis=0)
    np.testing.assert_allclose(got.features, measured[list(PLACES)].T)
    rest = [i for i in range(360) if i not in PLACES]
    for row, first in zip(measured[rest], got.first):
        assert [row[a] > row[b] for a, b in all_pairs(7)] == first.tolist()
    np.testing.assert_array_equal(got.people[:, :2], table[rest, :2])
    assert set(got.people[:, 2:].ravel()) == {0.0, 1.0}
    np.testing.assert_array_equal(got.people[:, 2:].sum(axis=1), 2.0)


def test_what_is_wrong_with_jura(tmp_path: Path) -> None:
    (tmp_path / "jura.dat").write_text("1 2 3\n")
    with pytest.raises(ValueError, match=r"jura.dat:1: numbers: expected 11, apart by blanks, got '1 2 3'"):
        load_jura(tmp_path, "right")
    write_jura(tmp_path, 100)
    with pytest.raises(ValueError, match=r"jura.dat: places: expected at least 350, got 100"):
        load_jura(tmp_path, "right")
    (tmp_path / "jura.dat").write_text("1 2 1 1 1 1 1 1 1 1 1\n" * 350)
    with pytest.raises(ValueError, match=r"jura.dat: metals: expected different amounts of each, got the same of Cd"):
        load_jura(tmp_path, "right")
    with pytest.raises(FileNotFoundError, match=r"jura.dat: no such file"):
        load_jura(tmp_path / "nowhere", "right")


def test_jura_itself() -> None:
    """The mean and deviation of the first feature are those released with [H12], whose deviation divides by n - 1."""
    folder = shared("jura")
    right, published = (load_jura(folder, labels) for labels in ("right", "published"))
    assert right.first.shape == (339, 21)
    unbiased = np.sqrt(358 / 359)
    np.testing.assert_allclose(right.features[0, :2] * unbiased, [3.42599790109286, 1.063601528215], rtol=1e-9)
    np.testing.assert_allclose(right.features[6, 19] * unbiased, 0.912372493774168, rtol=1e-9)
    assert majority(right) == pytest.approx(0.469, abs=0.001)
    assert majority(published) == pytest.approx(0.441, abs=0.001)


# ---------------------------------------------------------------------------- synthetic


def write_collaborative(folder: Path, users: int = 3, items: int = 4) -> list[tuple[int, int, int, int]]:
    """(user, first, second, label) of every pair of everybody, in the order of the file."""
    rng = np.random.default_rng(4)
    X, Z = rng.standard_normal((items, 2)), rng.standard_normal((users, 3))
    rows = [(u, i, j, int(rng.choice([-1, 1]))) for u in range(users) for i, j in combinations(range(items), 2)]
    rows = [rows[i] for i in rng.permutation(len(rows))]
    np.savetxt(folder / "itemFeatures.txt", X, fmt="%.17g")
    np.savetxt(folder / "userFeatures.txt", Z)
    lines = [" ".join([*(f"{v:.17g}" for v in (*X[i], *X[j])), f"{u + 1} {y}"]) for u, i, j, y in rows]
    (folder / "dataset.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return rows


def test_the_synthetic_set_is_read_by_features(tmp_path: Path) -> None:
    rows = write_collaborative(tmp_path)
    got = load_collaborative(tmp_path)
    assert (got.features.shape, got.people.shape, got.first.shape) == ((4, 2), (3, 3), (3, 6))
    place = {pair: p for p, pair in enumerate(combinations(range(4), 2))}
    for u, i, j, y in rows:
        assert got.first[u, place[i, j]] == (y == 1)


def test_what_is_wrong_with_the_synthetic_set(tmp_path: Path) -> None:
    write_collaborative(tmp_path)
    lines = gzip.decompress((tmp_path / "dataset.txt.gz").read_bytes()).decode().splitlines()
    (tmp_path / "dataset.txt.gz").unlink()
    fields = lines[3].split()
    for bad in (
        [*fields[:4], "9", "1"],
        [*fields[:5], "0"],
        [*fields[2:4], *fields[:2], *fields[4:]],
        ["7", *fields[1:]],
    ):
        (tmp_path / "dataset.txt").write_text("\n".join([*lines[:3], " ".join(bad), *lines[4:]]))
        with pytest.raises(
            ValueError, match=r"dataset.txt: row 4: expected two of the 4 items, the first listed first"
        ):
            load_collaborative(tmp_path)
    for some in (lines[:-1], [*lines, lines[0]]):
        (tmp_path / "dataset.txt").write_text("\n".join(some))
        with pytest.raises(ValueError, match=r"dataset.txt: rows: expected each of 6 pairs once of each of 3 people"):
            load_collaborative(tmp_path)


def test_the_synthetic_set_itself() -> None:
    """The true functions err, too: the answers have noise of variance 1."""
    folder = shared("cgp-synthetic")
    W, H = (numbers_of(existing_or_gz(folder / name)) for name in ("w.txt", "h.txt"))
    got, g = load_collaborative(folder), W @ H
    assert (got.features.shape, got.people.shape, got.first.shape) == ((10, 2), (1000, 2), (1000, 45))
    assert float(np.mean((g > 0.0) != got.first)) == pytest.approx(0.126, abs=0.0005)
    from scipy.special import ndtr

    assert ndtr(-np.abs(g)).mean() == pytest.approx(0.126, abs=0.002)


# ---------------------------------------------------------------------------- movies, sushi


def write_movies(folder: Path) -> dict[tuple[int, int], int]:
    """Thirty films, of which ten have the numbers that [H12] drew."""
    made = ratings_of(users=40, movies=30, share=0.8)
    number = {j: FILMS[j - 1] if j <= 10 else 4000 + j for j in range(1, 31)}
    write_1m(folder, made)
    films = [line.split("::") for line in (folder / "movies.dat").read_text("latin-1").splitlines()]
    (folder / "movies.dat").write_text(
        "".join("::".join([str(number[int(f[0])]), *f[1:]]) + "\n" for f in films), "latin-1"
    )
    ratings = {(u, number[j]): r for (u, j), r in made.items()}
    (folder / "ratings.dat").write_text("".join(f"{u}::{j}::{r}::1\n" for (u, j), r in ratings.items()))
    people = [f"{u}::{'MF'[u % 2]}::{(1, 18, 25)[u % 3]}::{u % 4}::12345\n" for u in range(1, 41)]
    (folder / "users.dat").write_text("".join(people))
    return ratings


def test_ten_films_and_who_rated_seven_of_them(tmp_path: Path) -> None:
    ratings = write_movies(tmp_path)
    got = load_movie_choices(tmp_path, None, "right")
    kept = [u for u in range(1, 41) if sum((u, film) in ratings for film in FILMS) >= 7]
    assert 5 < len(kept) < 40
    assert got.first.shape == (len(kept), 45)
    assert got.people.shape == (len(kept), 1 + 3 + 4)
    assert got.names[0] == "Film 1 (1951)"
    for u, first in zip(kept, got.first):
        for (a, b), won in zip(all_pairs(10), first):
            one, other = ratings.get((u, FILMS[a])), ratings.get((u, FILMS[b]))
            if one and other and one != other:
                assert won == (one > other)


def test_published_films_have_the_features_of_others_too(tmp_path: Path) -> None:
    """Column c held the film whose place in rising order of numbers is that of the c-th drawn."""
    ratings = write_movies(tmp_path)
    full = {(u, film): 1 + (u * (k + 3) + k * k) % 5 for u in range(1, 41) for k, film in enumerate(FILMS)}
    (tmp_path / "ratings.dat").write_text("".join(f"{u}::{j}::{r}::1\n" for (u, j), r in (ratings | full).items()))
    got = load_movie_choices(tmp_path, None, "published")
    columns = [FILMS[sorted(FILMS).index(film)] for film in FILMS]
    for u, first in zip(range(1, 41), got.first):
        values = [full[u, film] for film in columns]
        for p, (j, k) in enumerate(combinations(range(10), 2)):
            low, high = sorted(values)[j], sorted(values)[k]
            holders = [[i for i, v in enumerate(values) if v == value] for value in (low, high)]
            if low != high and max(holders[0]) < min(holders[1]):
                assert first[p]
            elif low != high and min(holders[0]) > max(holders[1]):
                assert not first[p]


def test_what_is_wrong_with_films(tmp_path: Path) -> None:
    write_movies(tmp_path)
    (tmp_path / "users.dat").write_text("1::F::1\n")
    with pytest.raises(
        ValueError, match=r"users.dat:1: line: expected USER::GENDER::AGE::OCCUPATION::ZIP, got '1::F::1'"
    ):
        load_movie_choices(tmp_path, None, "right")
    write_1m(tmp_path, ratings_of())
    with pytest.raises(
        ValueError, match=r"movies.dat: films: expected those that \[H12\] drew, got none with the number 2762"
    ):
        load_movie_choices(tmp_path, None, "right")


@pytest.mark.slow
def test_the_films_themselves() -> None:
    """The genres of the ten films are those released with [H12]: of the 50 most rated, drawn by seed 1 of R."""
    got = load_movie_choices(shared("movielens-1m"), None, "right")
    assert got.first.shape == (1084, 45)
    assert " ".join(got.names[[0, 4, 9]]) == (
        "Sixth Sense, The (1999) Silence of the Lambs, The (1991) Star Wars: Episode V - The Empire Strikes Back (1980)"
    )
    assert ["".join(map(str, row.astype(int))) for row in got.features[[1, 3, 6]]] == [
        "000001000100100100",
        "010010000000001000",
        "100000000000001010",
    ]


def test_sushi_with_features_of_both() -> None:
    folder = shared("sushi")
    right, published = (load_sushi_choices(folder, labels) for labels in ("right", "published"))
    assert (right.first.shape, right.people.shape) == ((5000, 45), (5000, 66))
    assert (right.features.shape, published.features.shape) == ((10, 16), (10, 15))
    np.testing.assert_array_equal(right.first, published.first)
    assert (right.names[5], published.names[5]) == ("ikura", "samon")
    # the first person put 5 first and 2 last: header, then "0 10 5 0 3 4 6 9 8 1 7 2"
    place = {item: i for i, item in enumerate([5, 0, 3, 4, 6, 9, 8, 1, 7, 2])}
    assert right.first[0].tolist() == [place[a] < place[b] for a, b in combinations(range(10), 2)]
