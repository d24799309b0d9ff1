"""Ratings of items by users, three columns of numbers: a table of anybody's, Jester, Book-Crossing, MovieLens."""

import csv
import math
import re
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.files import GZIP_ERRORS, is_number, numbered_lines, shown, uncompressed
from heedful.data.movielens import load_movielens

Ints = NDArray[np.int64]


class RatingTable(NamedTuple):
    """Ratings in the order of the file; a user or item is its place in the names. Nobody rates an item twice."""

    users: Ints  # n; places
    items: Ints  # n; places
    values: NDArray[np.float64]  # n
    user_names: NDArray[np.str_]  # U
    item_names: NDArray[np.str_]  # M


def load_ratings(path: str | PathLike[str]) -> RatingTable:
    """Load a table of users, items and ratings, CSV with commas, semicolons or tabs, plain or gzip.

    The first three columns count, whatever the header calls them; a first line whose third field is no number is taken
    for the header. Users and items are numbered as they first come.

    FileNotFoundError where the file is not there. ValueError, as `NAME:LINE: field: wanted ..., got ...`, for a
    malformed line, a rating that is no finite number, and an item that a user rates twice.
    """
    path = Path(path)
    return _gathered(path, _rows(path, numbered_lines(path)))


def load_book_crossing(path: str | PathLike[str], *, implicit: bool = False) -> RatingTable:
    """Load BX-Book-Ratings (Ziegler et al., WWW 2005): users, ISBNs, ratings from 1 to 10; 0 for an implicit one.

    In the original form (";", quoted, Latin-1) or as CSV, plain or gzip. Implicit ratings are left out unless wanted.
    Errors as `load_ratings`; ValueError, too, for a rating that is no whole number from 0 to 10.
    """
    path = Path(path)

    def rows() -> Iterator[tuple[int, str, str, float]]:
        for number, user, item, value in _rows(path, _latin(path)):
            if not 0 <= value <= 10 or value % 1:
                raise ValueError(f"{path.name}:{number}: rating: wanted a whole number from 0 to 10, got {value:g}")
            yield number, user, item, value

    table = _gathered(path, rows())
    return table if implicit else chosen(table, table.values > 0.0)


def load_jester(path: str | PathLike[str], *, users: int | None = None) -> RatingTable:
    """Load a part of Jester (Goldberg et al., 2001) as CSV, plain or gzip: the first `users`, or all.

    A line is a user: how many jokes were rated, then the rating of each, -10 to 10, 99 where there is none. Users are
    named by their lines, jokes by their columns, from 1. Errors as `load_ratings`; ValueError, too, where the first
    number is not the count of the ratings, or a line is not as long as the first.
    """
    path = Path(path)
    if users is not None and (isinstance(users, bool) or not isinstance(users, int) or users < 1):
        raise ValueError(f"users: wanted a whole number, 1 or more, got {shown(users)}")
    rows: list[NDArray[np.float64]] = []
    for number, line in numbered_lines(path):
        if users is not None and len(rows) == users:
            break
        fields = line.strip().split(",")
        where = f"{path.name}:{number}"
        if len(fields) < 2 or (rows and len(fields) != rows[0].size + 1):
            wanted = f"{rows[0].size + 1} numbers" if rows else "a count and the ratings"
            raise ValueError(f"{where}: line: wanted {wanted}, apart by commas, got {shown(line.strip())}")
        wrong = next((field for field in fields if not is_number(field)), None)
        if wrong is not None:
            raise ValueError(f"{where}: rating: wanted a number, got {shown(wrong)}")
        row = np.array(fields[1:], np.float64)
        strange = np.flatnonzero((np.abs(row) > 10.0) & (row != 99.0))
        if strange.size:
            got = f"{row[strange[0]]:g} for joke {strange[0] + 1}"
            raise ValueError(f"{where}: rating: wanted a number from -10 to 10, or 99 for none, got {got}")
        if float(fields[0]) != (counted := int((row != 99.0).sum())):
            raise ValueError(f"{where}: count: wanted {counted}, as many as are rated, got {shown(fields[0])}")
        rows.append(row)
    if not rows or all((row == 99.0).all() for row in rows):
        raise ValueError(f"{path.name}: ratings: wanted at least one, got none")
    matrix = np.array(rows)
    whose, what = np.nonzero(matrix != 99.0)
    names = [np.array([str(i + 1) for i in range(size)]) for size in matrix.shape]
    return RatingTable(whose, what, matrix[whose, what], names[0], names[1])


def movielens_ratings(folder: str | PathLike[str]) -> RatingTable:
    """The ratings of MovieLens 100K or 1M in a folder, movies that nobody rated left out; as `load_movielens`."""
    data = load_movielens(folder)
    table = RatingTable(data.users, data.movies, data.values, data.user_ids.astype(str), data.names)
    return chosen(table, np.ones(data.values.size, bool))


def chosen(table: RatingTable, kept: NDArray[np.bool_]) -> RatingTable:
    """The ratings that are `kept` (n,), and the users and items that they are of, in their order."""
    users, whose = np.unique(table.users[kept], return_inverse=True)
    items, what = np.unique(table.items[kept], return_inverse=True)
    return RatingTable(
        whose.astype(np.int64),
        what.astype(np.int64),
        table.values[kept],
        table.user_names[users],
        table.item_names[items],
    )


def densest(table: RatingTable, users: int, items: int) -> RatingTable:
    """The ratings of the `users` who rated most and the `items` rated most often, ties to the first; counted in the
    whole table. Fewer than these are left where some have no rating of the others."""
    for name, count in (("users", users), ("items", items)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"{name}: wanted a whole number, 1 or more, got {shown(count)}")
    who = np.argsort(-np.bincount(table.users), kind="stable")[:users]
    which = np.argsort(-np.bincount(table.items), kind="stable")[:items]
    return chosen(table, np.isin(table.users, who) & np.isin(table.items, which))


_SEPARATORS = (";", "\t", ",")
_QUOTED = re.compile(r'"([0-9]+)";"(.*)";"([0-9]+)"')


def _latin(path: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text in Latin-1, plain or gzip."""
    with uncompressed(path) as file:
        try:
            for number, line in enumerate(file, 1):
                yield number, line.decode("latin-1")
        except GZIP_ERRORS as error:
            raise ValueError(f"{path.name}: gzip: wanted a whole stream, got {error}") from None


def _rows(path: Path, lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str, str, float]]:
    """(line, user, item, rating) of each line but blank ones and the header."""
    separator = ""
    for number, line in lines:
        text = line.strip("\r\n")
        if not text.strip():
            continue
        where = f"{path.name}:{number}"
        first = not separator
        separator = separator or next((mark for mark in _SEPARATORS if mark in text), ",")
        try:
            quoted = _QUOTED.fullmatch(text)  # Book-Crossing has quotes within quotes
            fields = list(quoted.groups()) if quoted else next(csv.reader([text], delimiter=separator, strict=True))
        except csv.Error as error:
            raise ValueError(f"{where}: line: wanted USER{separator}ITEM{separator}RATING, got {error}") from None
        fields = [field.strip() for field in fields]
        if len(fields) < 3 or not fields[0] or not fields[1]:
            wanted = "USER, ITEM and RATING, apart by commas, semicolons or tabs"
            raise ValueError(f"{where}: line: wanted {wanted}, got {shown(text)}")
        if not is_number(fields[2]) or not math.isfinite(float(fields[2])) or abs(float(fields[2])) > 1e50:
            if first and re.search("[A-Za-z]", fields[2]) and fields[2].lower() not in ("nan", "inf", "infinity"):
                continue
            raise ValueError(f"{where}: rating: wanted a finite number, got {shown(fields[2])}")
        yield number, fields[0], fields[1], float(fields[2])


def _gathered(path: Path, rows: Iterator[tuple[int, str, str, float]]) -> RatingTable:
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()
    columns: list[tuple[int, int, float]] = []
    for number, user, item, value in rows:
        pair = users.setdefault(user, len(users)), items.setdefault(item, len(items))
        if pair in seen:
            raise ValueError(
                f"{path.name}:{number}: item: wanted each once for user {user}, got {shown(item)} once more"
            )
        seen.add(pair)
        columns.append((*pair, value))
    if not columns:
        raise ValueError(f"{path.name}: ratings: wanted at least one, got none")
    whose, what, values = zip(*columns)
    names = np.array(list(users)), np.array(list(items))
    return RatingTable(np.array(whose, np.int64), np.array(what, np.int64), np.array(values, np.float64), *names)
