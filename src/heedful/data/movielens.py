"""Loader of MovieLens 100K and 1M (Harper & Konstan, *The MovieLens Datasets*, 2015): ratings, users and movies."""

import re
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.core.paths import path_kind
from heedful.core.validation import describe
from heedful.data.files import existing_or_gz, open_uncompressed

Ints = NDArray[np.int64]


class Ratings(NamedTuple):
    """n ratings of M movies by U users, as columns, with what the files say of the movies.

    Movies without ratings are included. No user rates a movie twice."""

    users: Ints  # n; indices into user_ids, in the order of the file
    movies: Ints  # n; indices into movie_ids
    values: NDArray[np.float64]  # n; 1 to 5
    times: Ints  # n; seconds since 1970, 0 where unknown
    user_ids: Ints  # U; as in the files, rising
    movie_ids: Ints  # M; the same
    names: NDArray[np.str_]  # M; "Toy Story (1995)"
    genres: NDArray[np.bool_]  # M x G; whether the movie has the genre
    genre_names: NDArray[np.str_]  # G


class _Format(NamedTuple):
    """File names and line format of one of the two data sets."""

    ratings: str
    films: str
    separator: str
    rating: str  # a line of ratings as a pattern: user, movie, value, time


_ID, _TIME = "[0-9]{1,9}", "[0-9]{1,12}"
_FORMATS = (
    _Format("ratings.dat", "movies.dat", "::", f"{_ID}::{_ID}::[1-5]::{_TIME}"),
    _Format("u.data", "u.item", "|", f"{_ID}\t{_ID}\t[1-5]\t{_TIME}"),
)


def load_movielens(folder: str | PathLike[str]) -> Ratings:
    """Load MovieLens 1M (ratings.dat, movies.dat) or 100K (u.data, u.item, u.genre) from its folder.

    The files are as GroupLens made them, Latin-1, plain or gzip, with or without .gz at the end of the name.

    Raise FileNotFoundError if the folder or one of its files does not exist. Raise ValueError, as `NAME:LINE: field:
    expected ..., got ...`, for a malformed line, a rating of a movie that is not in the list of movies, and a movie
    rated twice by a user.
    """
    folder = Path(folder)
    if path_kind(folder) != "folder":
        raise FileNotFoundError(f"{folder}: no such folder; nothing is fetched: name the one that holds MovieLens")
    format = next((form for form in _FORMATS if path_kind(existing_or_gz(folder / form.ratings)) == "file"), None)
    if format is None:
        expected = "expected ratings.dat and movies.dat (1M) or u.data, u.item and u.genre (100K), plain or .gz"
        raise FileNotFoundError(f"{folder}: no MovieLens in it: {expected}; nothing is fetched")
    movie_ids, names, genres, genre_names = _films(folder, format)
    path = existing_or_gz(folder / format.ratings)
    columns = _columns(path, format.rating)
    users, raw, values, times = columns.T
    user_ids, places = np.unique(users, return_inverse=True)
    movies = np.minimum(np.searchsorted(movie_ids, raw), movie_ids.size - 1)
    if (strange := movie_ids[movies] != raw).any():
        i = int(strange.argmax())
        raise ValueError(f"{path.name}:{i + 1}: movie: expected one of {format.films}, got {raw[i]}")
    pairs = places.astype(np.int64) * movie_ids.size + movies
    _, first = np.unique(pairs, return_index=True)
    if first.size < pairs.size:
        i = int(np.setdiff1d(np.arange(pairs.size), first)[0])
        raise ValueError(f"{path.name}:{i + 1}: movie: expected each once for user {users[i]}, got {raw[i]} once more")
    return Ratings(
        users=places.astype(np.int64),
        movies=movies.astype(np.int64),
        values=values.astype(np.float64),
        times=np.ascontiguousarray(times),
        user_ids=user_ids,
        movie_ids=movie_ids,
        names=np.array(names),
        genres=genres,
        genre_names=genre_names,
    )


def _content(path: Path) -> bytes:
    with open_uncompressed(path) as file:
        return file.read()


def _columns(path: Path, line: str) -> Ints:
    """Return the numbers in a file of ratings (n x 4); lines are matched first, as the number parser is lenient."""
    text = _content(path)
    if not re.fullmatch(rf"(?:{line}\r?\n)*+(?:{line})?+".encode(), text) or not text.strip():
        lines = (entry.removesuffix("\r") for entry in text.decode("latin-1").split("\n"))
        number, malformed = next((i, entry) for i, entry in enumerate(lines, 1) if not re.fullmatch(line, entry))
        example = "USER::MOVIE::RATING::TIME" if "::" in line else "USER, MOVIE, RATING and TIME apart by tabs"
        raise ValueError(f"{path.name}:{number}: line: expected {example}, RATING 1 to 5, got {describe(malformed)}")
    return np.fromstring(text.replace(b"::", b" "), np.int64, sep=" ").reshape(-1, 4)


def _films(folder: Path, format: _Format) -> tuple[Ints, list[str], NDArray[np.bool_], NDArray[np.str_]]:
    """Return (ids (M,) rising, M names, whether a movie has each genre (M x G), G names of genres) in `folder`."""
    path = existing_or_gz(folder / format.films)
    rows: dict[int, tuple[str, set[str]]] = {}
    listed_genres = _genres(folder) if format.separator == "|" else []
    for number, text in enumerate(_content(path).decode("latin-1").split("\n"), 1):
        if not text.strip():
            continue
        fields = text.rstrip("\r").split(format.separator)
        where = f"{path.name}:{number}"
        flags = fields[5:]
        if listed_genres and (len(flags) != len(listed_genres) or not set(flags) <= {"0", "1"}):
            raise ValueError(
                f"{where}: genres: expected {len(listed_genres)} of 0 or 1, the last of the line, got {describe(flags)}"
            )
        if not listed_genres and len(fields) != 3:
            raise ValueError(f"{where}: line: expected MOVIE::TITLE::GENRE|GENRE..., got {describe(text)}")
        if not re.fullmatch(_ID, fields[0]) or int(fields[0]) in rows:
            raise ValueError(f"{where}: movie: expected a number that none before it has, got {describe(fields[0])}")
        chosen = (
            {name for name, flag in zip(listed_genres, flags) if flag == "1"}
            if listed_genres
            else set(fields[2].split("|"))
        )
        rows[int(fields[0])] = fields[1].strip(), chosen
    if not rows:
        raise ValueError(f"{path.name}: movies: expected at least one, got none")
    ids = sorted(rows)
    genre_names = listed_genres or sorted(set().union(*(rows[i][1] for i in ids)))
    genres = np.array([[name in rows[i][1] for name in genre_names] for i in ids])
    return np.array(ids, np.int64), [rows[i][0] for i in ids], genres, np.array(genre_names)


def _genres(folder: Path) -> list[str]:
    """Return the names of genres in u.genre, in the order of their numbers; its lines are `Action|1` and so on."""
    path = existing_or_gz(folder / "u.genre")
    names: list[str] = []
    for number, text in enumerate(_content(path).decode("latin-1").splitlines(), 1):
        name, _, index = text.strip().partition("|")
        if text.strip() and index != str(len(names)):
            raise ValueError(f"{path.name}:{number}: genre: expected NAME|{len(names)}, got {describe(text)}")
        names += [name] if text.strip() else []
    return names
