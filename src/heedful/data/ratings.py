"""Loaders of ratings of items by users: any table, Book-Crossing, Jester, MovieLens."""

import math
import re
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from heedful.core.validation import check_count, describe
from heedful.core.wording import count
from heedful.data.cells import NameColumn, refuse, refuse_cells
from heedful.data.files import cell_number, is_number, numbered_lines, open_uncompressed
from heedful.data.movielens import load_movielens
from heedful.data.roles import find_roles, fitting, plain
from heedful.data.set_aside import counted_rows
from heedful.data.table import Table, open_table, table_of

Ints = NDArray[np.int64]


class RatingTable(NamedTuple):
    """n ratings in the order of the file, of M items by U users. No user rates an item twice."""

    users: Ints  # n; indices into user_names
    items: Ints  # n; indices into item_names
    values: NDArray[np.float64]  # n
    user_names: NDArray[np.str_]  # U
    item_names: NDArray[np.str_]  # M


Twice = Literal["refuse", "last", "mean"]
"""What to do with an item that a user rates twice, not alike: refuse it, take the last rating in the file, or the mean
of all."""
Columns = Mapping[str, Sequence[str]]
"""The columns of roles (person, item, rating) whose names differ from the usual ones, such as {"person": ["who"]}."""

ROLES = ("person", "item", "rating")
_COUNTS = ("weight", "plays", "playcount", "listens", "listencount", "views", "purchases", "quantity", "times", "count")
"""Names of columns that hold how often, not how much."""
_KINDS = ("feedbacktype", "eventtype", "event", "action", "interaction", "behavior", "behaviour", "type")
"""Names of columns that hold what somebody did."""
_QUOTED = re.compile(r'"([0-9]+)";"(.*)";"([0-9]+)"')


def read_ratings(
    table: Table,
    columns: Columns | None = None,
    *,
    twice: Twice = "refuse",
    words: Mapping[str, float] | None = None,
    missing: Collection[str] = (),
) -> tuple[RatingTable, list[str]]:
    """Return (ratings, names of the columns of people, items and ratings) of an open table of users, items and ratings,
    or of a matrix with a row for each user.

    `columns`: those whose names differ from the usual ones, such as {"person": ["who"]}. `twice`: what to do with an
    item that a user rates twice: "refuse" it, take the "last" rating, or their "mean". `words`: what kinds of feedback
    are worth, such as {"star": 5}. `missing`: ratings that stand for none, such as "99", or "none" if none does. Rows
    without a rating are left out, with a warning. Users and items are numbered in order of appearance.

    Raise ValueError, as `NAME:LINE: field: expected ..., got ...`, for a malformed line, a role that no column has, a
    rating that is not a finite number or may stand for none, and, if `twice` is "refuse", an item that a user rates
    twice."""
    if twice not in ("refuse", "last", "mean"):
        raise ValueError(f"twice: expected refuse, last or mean, got {describe(twice)}")
    table, roles = _find(*counted_rows(table, columns), words)
    users: dict[str, int] = {}
    items: dict[str, int] = {}
    coded = table.columns([roles[role][0] for role in ROLES])
    user, item = (NameColumn(coded[k], roles[ROLES[k]][0], numbers) for k, numbers in ((0, users), (1, items)))
    worth = [_worth(value, words or {}, missing) for value in coded[2].values]
    values = np.array(worth, np.float64)[coded[2].codes]
    refuse(table, [user.check, item.check])
    refuse_cells(table, np.isinf(values), roles["rating"][0], "a finite number", coded[2])
    present = np.flatnonzero(~np.isnan(values))
    if not present.size:
        raise ValueError(f"{table.name}: ratings: expected at least one, got none")
    if present.size < values.size:
        warn(f"{table.name}: {count(values.size - present.size, 'row')} without a rating left out", stacklevel=3)
    if not missing and (odd := _stands_for_none(values[present])):
        raise ValueError(f"{table.name}: {roles['rating'][0]}: {odd}")
    pair = (user.numbers * len(items) + item.numbers)[present]
    _, first, which = np.unique(pair, return_index=True, return_inverse=True)
    rated = values[present]
    if twice == "refuse" and (repeated := np.flatnonzero(rated != rated[first][which])).size:
        i = int(present[repeated[0]])
        name, what = user.texts[user.codes[i]], item.texts[item.codes[i]]
        expected = f"expected each once for user {name}, got {describe(what)} once more"
        raise ValueError(f"{table.located()[i][0]}: item: {expected}; --twice last or --twice mean takes one of them")
    rating_of = np.empty(first.size)
    rating_of[which] = rated  # of several the last stays
    if twice == "mean":
        rating_of = np.bincount(which, rated) / np.bincount(which)
    order = np.argsort(first)
    first_rows = present[first[order]]
    if first_rows.size > 1 and (rating_of == rating_of[0]).all():
        warn(
            f"{table.name}: all {first_rows.size:,} ratings are the same, {rating_of[0]:g}: "
            "nothing can be learned of them",
            stacklevel=3,
        )
    names = np.array(list(users)), np.array(list(items))
    read = RatingTable(user.numbers[first_rows], item.numbers[first_rows], rating_of[order], *names)
    every = present.size == values.size
    return (read if every else select_ratings(read, np.ones(first_rows.size, bool))), [roles[role][0] for role in ROLES]


def _worth(value: object, words: Mapping[str, float], missing: Collection[str]) -> float:
    """Return a cell as a rating: NaN if there is none, infinite if it is something else."""
    if isinstance(value, str) and value in words:
        return words[value]
    number = cell_number(value)
    if number is None or abs(number) > 1e50:
        return math.inf
    return math.nan if f"{number:g}" in missing else number


def _find(
    table: Table, named: dict[str, list[str]], words: Mapping[str, float] | None
) -> tuple[Table, dict[str, list[str]]]:
    """Return (a table with a row for each rating, its columns by role)."""
    header = table.header
    if words and "rating" not in named and (kinds := _columns_called(header, _KINDS)):
        named["rating"] = kinds
    person = named.get("person") or fitting("person", header)
    if not {"item", "rating"} & set(named) and person and not fitting("item", header) and not fitting("rating", header):
        rest = [name for name in header if name != person[0]]
        numbers = all(_worth(value, {}, ()) != math.inf for column in table.columns(rest) for value in column.values)
        if numbers and len(rest) > 2:  # a row for each user, a column for each item
            cells = [
                (where, {"person": row.get(person[0]), "item": name, "rating": row[name]})
                for where, row in table.located()
                for name in rest
                if row.get(name) is not None
            ]
            warn(f"{table.name}: a matrix: each of {count(len(rest), 'column')} is taken for an item", stacklevel=4)
            return table_of(cells, table.name), {role: [role] for role in ROLES}
    return table, find_roles(table.name, header, ROLES, named, more=_other_than_ratings(table))


def _columns_called(header: Sequence[str], names: Sequence[str]) -> list[str]:
    return [name for name in header if plain(name) in names][:1]


def _other_than_ratings(table: Table) -> str:
    """Return in words what a table has in place of ratings, and what to type."""
    for name in fitting("rating", table.header):
        [(values, codes)] = table.columns([name])
        worth = np.array([_worth(value, {}, ()) for value in values], np.float64)[codes]
        if odd := _stands_for_none(worth[np.isfinite(worth)]):
            return f"; {name}: {odd}"
        return ""
    for name in _columns_called(table.header, _KINDS):
        kinds = [str(value) for value in table.columns([name])[0].values if value is not None]
        typed = " ".join(f"--worth {kind}={i}" for i, kind in enumerate(kinds[:8], 1))
        return f"; {name} has kinds of feedback: say what each is worth, such as {typed}"
    for name in _columns_called(table.header, _COUNTS):
        return f"; {name} has counts, which are no ratings: --column rating={name} takes them for such all the same"
    return ""


def _stands_for_none(values: NDArray[np.float64]) -> str:
    """Return in words which of the ratings `values` (n,) may stand for none; "" if none does."""
    levels = np.unique(values)
    if levels.size < 3:
        return ""
    low, high, inner = levels[0], levels[-1], np.abs(levels[1:-1]).max()
    integral = bool((levels % 1 == 0).all())
    odd: float | None = None
    if (
        (low == 0 and integral and 3 <= high <= 10)
        or (low == -1 and integral)
        or (low in (-99, -999, -9999) and -low > 3 * high)
    ):
        odd, rest = low, levels[1:]
    elif high in (99, 999, 9999) and high > 3 * max(inner, abs(low)):
        odd, rest = high, levels[:-1]
    if odd is None:
        return ""
    counts = (
        f"{odd:g} in {int((values == odd).sum()):,} of {values.size:,}, the others from {rest[0]:g} to {rest[-1]:g}"
    )
    return f"expected ratings, got {counts}: --missing {odd:g} if it stands for none, else --missing none"


def load_book_crossing(path: str | PathLike[str]) -> RatingTable:
    """Load BX-Book-Ratings (Ziegler et al., WWW 2005): users, ISBNs, and ratings from 1 to 10; 0 stands for an implicit
    one, which is left out.

    The file has the original form (";", quoted, Latin-1) or is CSV, plain or gzip. Errors are those of `read_ratings`;
    raise ValueError also for a rating that is not a whole number from 0 to 10, and if no explicit one is left.
    """
    path = Path(path)
    with open_uncompressed(path) as file:
        original = file.peek(1)[:1] == b'"'
        lines = list(file) if original else []
    if original:
        rows: list[tuple[str, dict[str, Any]]] = []
        for number, line in enumerate(lines, 1):
            match = _QUOTED.fullmatch(line.decode("latin-1").strip("\r\n"))  # quotes may stand within quotes
            if match:
                rows.append((f"{path.name}:{number}", dict(zip(ROLES, match.groups()))))
            elif number > 1 and line.strip():
                raise ValueError(f'{path.name}:{number}: line: expected "USER";"ISBN";"RATING", got {describe(line)}')
        table = table_of(rows, path.name)
    else:
        table = open_table(path)
    roles = {} if table.headed else {role: [str(j)] for j, role in enumerate(ROLES, 1)}
    read, names = read_ratings(table, roles, missing=("none",))
    strange = (read.values < 0) | (read.values > 10) | (read.values % 1 != 0)
    if strange.any():
        value = read.values[strange][0]
        where = next(where for where, row in table.located() if float(row[names[2]]) == value)
        raise ValueError(f"{where}: rating: expected a whole number from 0 to 10, got {value:g}")
    explicit = read.values > 0.0
    if not explicit.any():
        raise ValueError(f"{path.name}: ratings: expected at least one above 0 (implicit), got none")
    return select_ratings(read, explicit)


def load_jester(path: str | PathLike[str], *, users: int | None = None) -> RatingTable:
    """Load a part of Jester (Goldberg et al., 2001) as CSV, plain or gzip: all users, or the first `users` of them.

    A line is a user: the number of jokes rated, then the rating of each joke, -10 to 10, or 99 if there is none. Users
    are named by their lines and jokes by their columns, from 1. Errors are those of `read_ratings`; raise ValueError
    also if the first number is not that of the ratings, or if lines differ in length.
    """
    path = Path(path)
    if users is not None:
        check_count("users", users)
    rows: list[NDArray[np.float64]] = []
    for number, line in numbered_lines(path):
        if users is not None and len(rows) == users:
            break
        fields = line.strip().split(",")
        where = f"{path.name}:{number}"
        if len(fields) < 2 or (rows and len(fields) != rows[0].size + 1):
            expected = f"{rows[0].size + 1} numbers" if rows else "a count and the ratings"
            raise ValueError(f"{where}: line: expected {expected}, apart by commas, got {describe(line.strip())}")
        wrong = next((field for field in fields if not is_number(field)), None)
        if wrong is not None:
            raise ValueError(f"{where}: rating: expected a number, got {describe(wrong)}")
        row = np.array(fields[1:], np.float64)
        strange = np.flatnonzero((np.abs(row) > 10.0) & (row != 99.0))
        if strange.size:
            value = f"{row[strange[0]]:g} for joke {strange[0] + 1}"
            raise ValueError(f"{where}: rating: expected a number from -10 to 10, or 99 for none, got {value}")
        if float(fields[0]) != (counted := int((row != 99.0).sum())):
            raise ValueError(f"{where}: count: expected {counted}, as many as are rated, got {describe(fields[0])}")
        rows.append(row)
    if not rows or all((row == 99.0).all() for row in rows):
        raise ValueError(f"{path.name}: ratings: expected at least one, got none")
    matrix = np.array(rows)
    people, jokes = np.nonzero(matrix != 99.0)
    names = [np.array([str(i + 1) for i in range(size)]) for size in matrix.shape]
    return RatingTable(people, jokes, matrix[people, jokes], names[0], names[1])


def movielens_ratings(folder: str | PathLike[str]) -> RatingTable:
    """Load the ratings of MovieLens 100K or 1M from its folder; movies without ratings are left out.

    Errors are those of `load_movielens`.
    """
    data = load_movielens(folder)
    table = RatingTable(data.users, data.movies, data.values, data.user_ids.astype(str), data.names)
    return select_ratings(table, np.ones(data.values.size, bool))


def select_ratings(table: RatingTable, chosen: NDArray[np.bool_]) -> RatingTable:
    """Return the table with only those of its n ratings where the mask `chosen` (n,) is True, in order.

    Users and items without ratings are left out, so the others get new numbers. Raise ValueError if no rating is left.
    """
    if not chosen.any():
        raise ValueError("ratings: expected at least one that is left, got none")
    users, user_numbers = np.unique(table.users[chosen], return_inverse=True)
    items, what = np.unique(table.items[chosen], return_inverse=True)
    return RatingTable(
        user_numbers.astype(np.int64),
        what.astype(np.int64),
        table.values[chosen],
        table.user_names[users],
        table.item_names[items],
    )


def densest(table: RatingTable, users: int, items: int) -> RatingTable:
    """Return the ratings that the `users` most active users gave to the `items` most rated items.

    Activity is counted in the whole table; of equals, those with lower numbers are taken. Users or items without any of
    these ratings are left out. Raise ValueError if no rating is left, or a count is not 1 or more.
    """
    check_count("users", users)
    check_count("items", items)
    raters = np.argsort(-np.bincount(table.users), kind="stable")[:users]
    which = np.argsort(-np.bincount(table.items), kind="stable")[:items]
    return select_ratings(table, np.isin(table.users, raters) & np.isin(table.items, which))
