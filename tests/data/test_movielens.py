"""MovieLens: what the loader makes of the files, and what it refuses."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from films import GENRES, ratings_of, shared, write_1m, write_100k
from heedful.data.movielens import load_movielens


@pytest.mark.parametrize("write", [write_1m, write_100k])
@pytest.mark.parametrize("packed", [False, True])
def test_both_forms_plain_and_packed(tmp_path: Path, write: Callable[..., Path], packed: bool) -> None:
    ratings = {key: r for key, r in ratings_of().items() if key[1] != 7}  # a movie that nobody rated
    folder = write(tmp_path / "ml", ratings)
    if packed:
        for file in list(folder.iterdir()):
            (folder / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
    got = load_movielens(folder)
    users, movies = got.user_ids[got.users].tolist(), got.movie_ids[got.movies].tolist()
    assert list(zip(users, movies, got.values.tolist())) == [(*key, float(r)) for key, r in ratings.items()]
    assert got.times.tolist() == [1000 + u for u in users]
    assert got.movie_ids.tolist() == list(range(1, 31))
    assert got.names[[0, 29]].tolist() == ["Film 1 (1951)", "Am\xe9lie (1984) (2001)"]
    assert got.genre_names.tolist() == sorted(GENRES)
    assert [got.genre_names[row].tolist() for row in got.genres[:3]] == [
        ["Action", "Comedy"],
        ["Action", "Film-Noir"],
        ["Action"],
    ]


def test_a_last_line_without_its_end_and_lines_of_windows(tmp_path: Path) -> None:
    folder = write_1m(tmp_path, {(1, 1): 5, (9, 2): 1})
    for text in ("1::1::5::1001\r\n9::2::1::1009\r\n", "1::1::5::1001\n9::2::1::1009"):
        (folder / "ratings.dat").write_text(text, newline="")
        got = load_movielens(folder)
        assert (got.user_ids.tolist(), got.users.tolist(), got.values.tolist()) == ([1, 9], [0, 1], [5.0, 1.0])


GOOD = "1::1::5::1001\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"ratings.dat:1: line: expected USER::MOVIE::RATING::TIME, RATING 1 to 5, got ''"),
        (GOOD + "1::2::6::1\n", r"ratings.dat:2: line: expected .*, got '1::2::6::1'"),
        (GOOD + "1::2::0::1\n", r"ratings.dat:2: "),
        (GOOD + "1::2::4.5::1\n", r"ratings.dat:2: "),
        (GOOD + "\n" + GOOD, r"ratings.dat:2: .*got ''"),
        (GOOD + "1::2::4\n", r"ratings.dat:2: "),
        (GOOD + "-1::2::4::1\n", r"ratings.dat:2: "),
        (GOOD + "1::2::4::1 \n", r"ratings.dat:2: "),
        (GOOD + "1::2::4::1\r1::3::4::1\n", r"ratings.dat:2: "),
        (GOOD + "1\t2\t4\t1\n", r"ratings.dat:2: "),
        (GOOD + "1::\xb2::4::1\n", r"ratings.dat:2: "),
        (GOOD + "1::31::4::1\n", r"ratings.dat:2: movie: expected one of movies.dat, got 31"),
        (
            GOOD + "2::1::4::1\n" + "1::1::4::1\n",
            r"ratings.dat:3: movie: expected each once for user 1, got 1 once more",
        ),
    ],
)
def test_wrong_ratings_are_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    folder = write_1m(tmp_path, {(1, 1): 5})
    (folder / "ratings.dat").write_text(text, encoding="latin-1", newline="")
    with pytest.raises(ValueError, match=message):
        load_movielens(folder)


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("u.item", "", r"u.item: movies: expected at least one, got none"),
        ("u.item", "1|A|||x|1|0\n", r"u.item:1: genres: expected 3 of 0 or 1, the last of the line, got \['1', '0'\]"),
        ("u.item", "1|A|||x|1|0|2\n", r"u.item:1: genres: "),
        ("u.item", "one|A|||x|1|0|1\n", r"u.item:1: movie: expected a number that none before it has, got 'one'"),
        ("u.item", "1|A|||x|1|0|1\n\n1|B|||x|1|0|1\n", r"u.item:3: movie: .* got '1'"),
        ("u.genre", "Action|1\n", r"u.genre:1: genre: expected NAME\|0, got 'Action\|1'"),
    ],
)
def test_wrong_films_are_refused_by_line(tmp_path: Path, file: str, text: str, message: str) -> None:
    folder = write_100k(tmp_path, {(1, 1): 5})
    (folder / file).write_text(text)
    with pytest.raises(ValueError, match=message):
        load_movielens(folder)


def test_a_title_with_colons_is_refused_by_line(tmp_path: Path) -> None:
    folder = write_1m(tmp_path, {(1, 1): 5})
    (folder / "movies.dat").write_text("1::A::B::Action\n")
    with pytest.raises(ValueError, match=r"movies.dat:1: line: expected MOVIE::TITLE::GENRE\|GENRE..., got"):
        load_movielens(folder)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none: no such folder; nothing is fetched"):
        load_movielens(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match=r"no MovieLens in it: expected ratings.dat and movies.dat"):
        load_movielens(tmp_path)
    folder = write_1m(tmp_path / "half", {(1, 1): 5})
    (folder / "movies.dat").unlink()
    with pytest.raises(FileNotFoundError, match=r"movies.dat: no such file"):
        load_movielens(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "users", "movies", "rated", "histogram"),
    [
        ("movielens-1m", 6040, 3883, 3706, [56174, 107557, 261197, 348971, 226310]),
        ("movielens-100k", 943, 1682, 1682, [6110, 11370, 27145, 34174, 21201]),
    ],
)
def test_the_real_ones(name: str, users: int, movies: int, rated: int, histogram: list[int]) -> None:
    """Counts as published; everybody has rated at least 20."""
    got = load_movielens(shared(name))
    assert (got.user_ids.size, got.movie_ids.size, np.unique(got.movies).size) == (users, movies, rated)
    assert np.bincount(got.values.astype(int))[1:].tolist() == histogram
    assert np.bincount(got.users).min() == 20
    assert got.names[0] == "Toy Story (1995)"
    assert set(got.genre_names[got.genres[0]]) == {"Animation", "Children's", "Comedy"}
