"""Loader of any file or folder of ratings: the content, not the name, decides which kind it is."""

import re
from collections.abc import Collection, Mapping
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from heedful.core.paths import path_kind
from heedful.data.files import content_start, first_lines, is_number
from heedful.data.ratings import (
    Columns,
    RatingTable,
    Twice,
    load_book_crossing,
    load_jester,
    movielens_ratings,
    read_ratings,
)
from heedful.data.table import open_table

_TABLES = (".csv", ".tsv", ".dat", ".data", ".jsonl", ".ndjson", ".json", ".parquet")
_MOVIELENS_LINE = re.compile(r"\d+(?P<mark>::|\t)\d+(?P=mark)[0-5](?:\.5)?(?P=mark)\d{8,10}")
"""A line of MovieLens, which does not name its columns: user, movie, rating, time."""


class LoadedRatings(NamedTuple):
    """The ratings that were read from a file (`table`), and a `summary` in words of how it was read."""

    table: RatingTable
    summary: str


def open_ratings(
    path: str | PathLike[str],
    columns: Columns | None = None,
    *,
    twice: Twice = "refuse",
    words: Mapping[str, float] | None = None,
    missing: Collection[str] = (),
) -> LoadedRatings:
    """Load ratings: MovieLens from its folder or its file of ratings, or Jester, Book-Crossing or a table from a file,
    plain or gzip.

    A folder that is not MovieLens holds ratings.csv, or a single file of ratings. Implicit ratings of Book-Crossing are
    left out. The options, and what a table is, are those of `read_ratings`; if one is given, the file is a table.

    Raise FileNotFoundError if the path does not exist or a folder has no such file. Raise ValueError as the loaders do,
    and if a folder has several files of ratings.
    """
    path = Path(path)
    if path_kind(path) == "folder":
        if not any(path_kind(path / name) == "file" for name in _MOVIELENS):
            return open_ratings(_the_one(path), columns, twice=twice, words=words, missing=missing)
        if columns:
            raise ValueError(f"{path.name}: columns: expected none with MovieLens, got {', '.join(columns)}")
        return LoadedRatings(movielens_ratings(path), "MovieLens")
    line = "" if content_start(path).startswith(b"PAR1") else next(first_lines(path), "")
    if not (columns or words or missing):
        if _is_book_crossing(line):
            return LoadedRatings(load_book_crossing(path), "Book-Crossing, implicit ratings (0) left out")
        if _is_jester(line):
            return LoadedRatings(load_jester(path), "Jester")
    roles, kind = columns, ""
    if not columns and _MOVIELENS_LINE.fullmatch(line):
        roles, kind = {"person": ["1"], "item": ["2"], "rating": ["3"]}, "MovieLens"
    table, names = read_ratings(open_table(path), roles, twice=twice, words=words, missing=missing)
    return LoadedRatings(table, kind or f"columns {', '.join(names)}")


_MOVIELENS = ("ratings.dat", "ratings.dat.gz", "u.data", "u.data.gz")


def _the_one(folder: Path) -> Path:
    """Return the file of ratings in a folder; raise FileNotFoundError for none, ValueError for several."""
    files = sorted(file for file in folder.iterdir() if file.name.removesuffix(".gz").endswith(_TABLES))
    named = [file for file in files if file.name.removesuffix(".gz") == "ratings.csv"] or files
    if not named:
        expected = "MovieLens (ratings.dat or u.data), ratings.csv, or one file of ratings"
        raise FileNotFoundError(f"{folder}: no ratings in it: expected {expected}; nothing is fetched")
    if len(named) > 1:
        several = ", ".join(file.name for file in named[:4]) + (", ..." if len(named) > 4 else "")
        raise ValueError(f"{folder}: expected one file of ratings, got {len(named)}, name one of them: {several}")
    return named[0]


def _is_book_crossing(line: str) -> bool:
    """Return whether a first line is Book-Crossing's: its header, or a number, anything and a number, quoted."""
    lower = line.lower()
    if "isbn" in lower and "book-rating" in lower:
        return True
    return line.startswith('"') and line.endswith('"') and line.count('";"') == 2 and is_number(line.split('"')[1])


def _is_jester(line: str) -> bool:
    """Return True if a first line is Jester's: a count, then as many numbers from -10 to 10 among values 99."""
    fields = line.strip().split(",")
    if len(fields) < 10 or not all(map(is_number, fields)):
        return False
    count, *ratings = map(float, fields)
    ratings = [rating for rating in ratings if rating != 99.0]
    return len(ratings) == count and all(abs(rating) <= 10.0 for rating in ratings)
