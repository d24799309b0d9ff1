"""Loaders of ratings of items by users as three columns: from a CSV table, Jester, Book-Crossing or MovieLens."""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heedful.data.files import cut_repr, is_number, numbered_lines, open_uncompressed
from heedful.data.frames import is_index
from heedful.data.movielens import load_movielens

Ints = NDArray[np.int64]


class RatingTable(NamedTuple):
    """n ratings in the order of the file, of M items by U users. No user rates an item twice.

    `users`, `items` (n,): indices into `user_names` (U,) and `item_names` (M,); `values` (n,): the ratings.
    """

    users: Ints  # n; places
    items: Ints  # n; places
    values: NDArray[np.float64]  # n
    user_names: NDArray[np.str_]  # U
    item_names: NDArray[np.str_]  # M


class Columns(NamedTuple):
    """Names of the columns of users (`user`), items (`item`) and ratings (`rating`) in a table.

    A column whose name is "" here is found by one of the usual names (`NAMES`) or by its place."""

    user: str = ""
    item: str = ""
    rating: str = ""


BY_NAME = Columns()

Twice = Literal["refuse", "last", "mean"]
"""What to do with an item that a user rates twice, not alike: refuse it, take the last rating in the file, or the mean
of all."""

Row = tuple[str, str, str, float]
"""The place of a rating for messages, its user, its item, and the rating."""


def load_ratings(path: str | PathLike[str], columns: Columns = BY_NAME, *, twice: Twice = "refuse") -> RatingTable:
    """Load a table of users, items and ratings: CSV separated by commas, semicolons, tabs or ::, plain or gzip.

    The first line is taken for a header if its third field is not a number, or if `columns` names a column. Columns
    that are not named are those called user, item and rating or the like (`NAMES`), otherwise the first that remain.
    Users and items are numbered in order of appearance. `twice`: what to do with an item that a user rates twice:
    "refuse" it, take the "last" rating, or their "mean".

    Raise FileNotFoundError if the file does not exist. Raise ValueError, as `NAME:LINE: field: expected ..., got ...`,
    for a malformed line, a column that does not exist, a rating that is not a finite number, and, if `twice` is
    "refuse", an item that a user rates twice."""
    path = Path(path)
    return tabulate_ratings(path, _rows(path, numbered_lines(path), columns), twice)


def load_book_crossing(path: str | PathLike[str], *, implicit: bool = False) -> RatingTable:
    """Load BX-Book-Ratings (Ziegler et al., WWW 2005): users, ISBNs, and ratings from 1 to 10, or 0 for an implicit
    one.

    The file has the original form (";", quoted, Latin-1) or is CSV, plain or gzip. Implicit ratings are left out unless
    `implicit`. Errors are those of `load_ratings`; raise ValueError also for a rating that is not a whole number from 0
    to 10, and if no explicit one is left.
    """
    path = Path(path)

    def rows() -> Iterator[Row]:
        for where, user, item, value in _rows(path, _latin(path), BY_NAME):
            if not 0 <= value <= 10 or value % 1:
                raise ValueError(f"{where}: rating: expected a whole number from 0 to 10, got {value:g}")
            yield where, user, item, value

    table = tabulate_ratings(path, rows())
    explicit = table.values > 0.0
    if not implicit and not explicit.any():
        raise ValueError(f"{path.name}: ratings: expected at least one above 0 (implicit), got none")
    return table if implicit else select_ratings(table, explicit)


def load_jester(path: str | PathLike[str], *, users: int | None = None) -> RatingTable:
    """Load a part of Jester (Goldberg et al., 2001) as CSV, plain or gzip: all users, or the first `users` of them.

    A line is a user: the number of jokes rated, then the rating of each joke, -10 to 10, or 99 if there is none. Users
    are named by their lines and jokes by their columns, from 1. Errors are those of `load_ratings`; raise ValueError
    also if the first number is not that of the ratings, or if lines differ in length.
    """
    path = Path(path)
    if users is not None and (isinstance(users, bool) or not isinstance(users, int) or users < 1):
        raise ValueError(f"users: expected a whole number, 1 or more, got {cut_repr(users)}")
    rows: list[NDArray[np.float64]] = []
    for number, line in numbered_lines(path):
        if users is not None and len(rows) == users:
            break
        fields = line.strip().split(",")
        where = f"{path.name}:{number}"
        if len(fields) < 2 or (rows and len(fields) != rows[0].size + 1):
            expected = f"{rows[0].size + 1} numbers" if rows else "a count and the ratings"
            raise ValueError(f"{where}: line: expected {expected}, apart by commas, got {cut_repr(line.strip())}")
        wrong = next((field for field in fields if not is_number(field)), None)
        if wrong is not None:
            raise ValueError(f"{where}: rating: expected a number, got {cut_repr(wrong)}")
        row = np.array(fields[1:], np.float64)
        strange = np.flatnonzero((np.abs(row) > 10.0) & (row != 99.0))
        if strange.size:
            got = f"{row[strange[0]]:g} for joke {strange[0] + 1}"
            raise ValueError(f"{where}: rating: expected a number from -10 to 10, or 99 for none, got {got}")
        if float(fields[0]) != (counted := int((row != 99.0).sum())):
            raise ValueError(f"{where}: count: expected {counted}, as many as are rated, got {cut_repr(fields[0])}")
        rows.append(row)
    if not rows or all((row == 99.0).all() for row in rows):
        raise ValueError(f"{path.name}: ratings: expected at least one, got none")
    matrix = np.array(rows)
    whose, what = np.nonzero(matrix != 99.0)
    names = [np.array([str(i + 1) for i in range(size)]) for size in matrix.shape]
    return RatingTable(whose, what, matrix[whose, what], names[0], names[1])


def movielens_ratings(folder: str | PathLike[str]) -> RatingTable:
    """Load the ratings of MovieLens 100K or 1M from its folder; movies without ratings are left out.

    Errors are those of `load_movielens`.
    """
    data = load_movielens(folder)
    table = RatingTable(data.users, data.movies, data.values, data.user_ids.astype(str), data.names)
    return select_ratings(table, np.ones(data.values.size, bool))


def select_ratings(table: RatingTable, kept: NDArray[np.bool_]) -> RatingTable:
    """Return the table with only those of its n ratings where the mask `kept` (n,) is True, in order.

    Users and items without ratings are left out, so the others get new numbers. Raise ValueError if no rating is left.
    """
    if not kept.any():
        raise ValueError("ratings: expected at least one that is left, got none")
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
    """Return the ratings that the `users` most active users gave to the `items` most rated items.

    Activity is counted in the whole table; of equals, those with lower numbers are taken. Users or items without any of
    these ratings are left out. Raise ValueError if no rating is left, or a count is not 1 or more.
    """
    for name, count in (("users", users), ("items", items)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"{name}: expected a whole number, 1 or more, got {cut_repr(count)}")
    who = np.argsort(-np.bincount(table.users), kind="stable")[:users]
    which = np.argsort(-np.bincount(table.items), kind="stable")[:items]
    return select_ratings(table, np.isin(table.users, who) & np.isin(table.items, which))


NAMES = {
    "user": ("user", "person", "reader", "customer", "reviewer", "who"),
    "item": ("item", "movie", "film", "book", "isbn", "product", "joke", "song", "what"),
    "rating": ("rating", "score", "stars", "value"),
}
"""Recognised names of columns, apart from case, punctuation, and an "id" at the end: "userId", "User-ID",
"Book-Rating".
"""

_SEPARATORS = ("::", ";", "\t", ",")
_QUOTED = re.compile(r'"([0-9]+)";"(.*)";"([0-9]+)"')


def plain_name(name: str) -> str:
    """Return a column's name in the form of `NAMES`: "user" for "User-ID", "rating" for "Book-Rating"."""
    letters = re.sub("[^a-z]", "", name.lower())
    return "rating" if letters.endswith("rating") else letters.removesuffix("id") or letters


def places(where: str, header: Sequence[str], columns: Columns) -> tuple[int, int, int]:
    """Return the indices of the columns of users, items and ratings in `header`.

    `columns` names the three; one that is "" there is found by its name in the header, or else by its position.
    `where` is the place of the header, for messages. Raise ValueError if a column named in `columns` is not in the
    header, or if the header has fewer than three.
    """
    found: dict[str, int] = {}
    called = [plain_name(name) for name in header]
    for field, name in zip(Columns._fields, columns):
        if name and name not in header:
            raise ValueError(f"{where}: {field}: expected the column {name}, got {cut_repr(', '.join(header))}")
        if name:
            found[field] = header.index(name)
    for field in Columns._fields:
        fit = [j for j, name in enumerate(called) if name in NAMES[field] and j not in found.values()]
        if field not in found and fit:
            found[field] = min(fit, key=lambda j: NAMES[field].index(called[j]))
    for field in Columns._fields:
        left = [j for j in range(len(header)) if j not in found.values()]
        if len(left) > 1 and left[0] == 0 and is_index(header[0]):  # an index that pandas wrote: it numbers the ratings
            left = left[1:]
        if field not in found and not left:
            raise ValueError(f"{where}: {field}: expected a column for it, got {cut_repr(', '.join(header))}")
        found.setdefault(field, left[0] if left else -1)
    if len(set(found.values())) < 3:
        raise ValueError(f"{where}: columns: expected three different ones, got {', '.join(columns)}")
    return found["user"], found["item"], found["rating"]


def _latin(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) of a text in Latin-1, plain or gzip."""
    with open_uncompressed(path) as file:
        for number, line in enumerate(file, 1):
            yield number, line.decode("latin-1")


def fields_of(where: str, text: str, separator: str) -> list[str]:
    """Return the fields of a line `text` that are separated by `separator`; a field may be quoted.

    Raise ValueError, with the place `where`, if quotes do not close.
    """
    try:
        quoted = _QUOTED.fullmatch(text)  # Book-Crossing has quotes within quotes
        if quoted or separator == "::":
            return [field.strip() for field in (quoted.groups() if quoted else text.split("::"))]
        return [field.strip() for field in next(csv.reader([text], delimiter=separator, strict=True))]
    except csv.Error as error:
        raise ValueError(f"{where}: line: expected USER{separator}ITEM{separator}RATING, got {error}") from None


def separator_of(text: str) -> str:
    """Return the mark that separates the fields of a line; a comma if it has none."""
    return next((mark for mark in _SEPARATORS if mark in text), ",")


def is_header(fields: Sequence[str]) -> bool:
    """Return True if a first line, given as fields, is a header: its third field has letters and is not a number."""
    third = fields[2] if len(fields) > 2 else ""
    return bool(re.search("[A-Za-z]", third)) and not is_number(third) and third.lower() not in _NO_NAMES


_NO_NAMES = ("nan", "inf", "-inf", "infinity", "null", "na")


def _rows(path: Path, lines: Iterator[tuple[int, str]], columns: Columns) -> Iterator[Row]:
    """Yield the ratings in numbered lines, skipping blank lines and the header. Raise ValueError for a
    malformed line.
    """
    separator, at = "", (0, 1, 2)
    for number, line in lines:
        text = line.strip("\r\n")
        if not text.strip():
            continue
        where = f"{path.name}:{number}"
        first, separator = not separator, separator or separator_of(text)
        fields = fields_of(where, text, separator)
        if first and (any(columns) or is_header(fields)):
            at = places(where, fields, columns)
            continue
        user, item, rating = (fields[j] if j < len(fields) else "" for j in at)
        if max(at) >= len(fields) or not user or not item:
            expected = "USER, ITEM and RATING, apart by commas, semicolons or tabs"
            raise ValueError(f"{where}: line: expected {expected}, got {cut_repr(text)}")
        yield where, user, item, finite(where, rating)


def finite(where: str, text: str) -> float:
    """Return a text as a rating. Raise ValueError, with the place `where`, if it is not a finite number."""
    if not is_number(text) or not math.isfinite(float(text)) or abs(float(text)) > 1e50:
        raise ValueError(f"{where}: rating: expected a finite number, got {cut_repr(text)}")
    return float(text)


def tabulate_ratings(path: Path, rows: Iterator[Row], twice: Twice = "refuse") -> RatingTable:
    """Return `rows`, one rating each, as a table of ratings; `path` is the file, for messages.

    `twice`: what to do with an item that a user rates twice: "refuse" it, take the "last" rating, or their "mean".
    Raise ValueError as `load_ratings` does."""
    if twice not in ("refuse", "last", "mean"):
        raise ValueError(f"twice: expected refuse, last or mean, got {cut_repr(twice)}")
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    rated: dict[tuple[int, int], float] = {}
    again: dict[tuple[int, int], list[float]] = {}
    for where, user, item, value in rows:
        pair = users.setdefault(user, len(users)), items.setdefault(item, len(items))
        if pair in rated:
            if twice == "refuse" and value == rated[pair]:
                continue  # the same rating, once more
            if twice == "refuse":
                raise ValueError(f"{where}: item: expected each once for user {user}, got {cut_repr(item)} once more")
            several = again.setdefault(pair, [rated[pair]])
            several.append(value)
            value = value if twice == "last" else math.fsum(several) / len(several)
        rated[pair] = value
    if not rated:
        raise ValueError(f"{path.name}: ratings: expected at least one, got none")
    whose, what = np.array(list(rated), np.int64).T
    names = np.array(list(users)), np.array(list(items))
    return RatingTable(whose.copy(), what.copy(), np.array(list(rated.values()), np.float64), *names)
