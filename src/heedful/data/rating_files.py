"""Loader of any file or folder of ratings: the content, not the name, decides which kind it is."""

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from heedful.data.files import cut_repr, is_number, name_in, open_uncompressed
from heedful.data.ratings import (
    BY_NAME,
    Columns,
    RatingTable,
    Row,
    Twice,
    fields_of,
    finite,
    is_header,
    load_book_crossing,
    load_jester,
    load_ratings,
    movielens_ratings,
    places,
    separator_of,
    tabulate_ratings,
)
from heedful.data.table import read_located_rows

_TABLES = (".csv", ".tsv", ".dat", ".data", ".jsonl", ".ndjson", ".json", ".parquet")


class LoadedRatings(NamedTuple):
    """The ratings that were read from a file (`table`), and a `summary` in words of how it was read."""

    table: RatingTable
    summary: str


def open_ratings(path: str | PathLike[str], columns: Columns = BY_NAME, *, twice: Twice = "refuse") -> LoadedRatings:
    """Load ratings: MovieLens from its folder, or Jester, Book-Crossing or a table from a file, plain or gzip.

    A table is CSV (`load_ratings`), JSON lines or Parquet (`read_table`), whose users and items may be texts or whole
    numbers; if `columns` names a column, the file is read as a table. A folder that is not MovieLens holds ratings.csv,
    or a single file of ratings. Implicit ratings of Book-Crossing are left out. `twice`: what to do with an item that a
    user rates twice, in a table: "refuse" it, take the "last" rating, or their "mean".

    Raise FileNotFoundError if the path does not exist or a folder has no such file. Raise ValueError as the loaders do,
    and if a folder has several files of ratings.
    """
    path = Path(path)
    if path.is_dir():
        if not any((path / name).is_file() for name in _MOVIELENS):
            return open_ratings(_the_one(path), columns, twice=twice)
        if any(columns):
            raise ValueError(
                f"{path.name}: columns: expected none with MovieLens, got {', '.join(filter(None, columns))}"
            )
        return LoadedRatings(movielens_ratings(path), "MovieLens")
    start, line = _beginning(path)
    if start.startswith((b"PAR1", b"{", b"[")):
        placed = read_located_rows(path)
        names = list(dict.fromkeys(name for _, row in placed for name in row))
        at = [names[j] for j in places(path.name, names, columns)]
        return LoadedRatings(tabulate_ratings(path, _of_objects(placed, at), twice), f"columns {', '.join(at)}")
    if not any(columns) and _is_book_crossing(line):
        return LoadedRatings(load_book_crossing(path), "Book-Crossing, implicit ratings (0) left out")
    if not any(columns) and _is_jester(line):
        return LoadedRatings(load_jester(path), "Jester")
    fields = fields_of(path.name, line, separator_of(line))
    table = load_ratings(path, columns, twice=twice)
    header = any(columns) or is_header(fields)
    names = [fields[j] for j in places(path.name, fields, columns)] if header else ["1", "2", "3"]
    return LoadedRatings(table, f"columns {', '.join(names)}")


_MOVIELENS = ("ratings.dat", "ratings.dat.gz", "u.data", "u.data.gz")


def _the_one(folder: Path) -> Path:
    """Return the file of ratings in a folder. Raise FileNotFoundError if there is none, ValueError if there are
    several.
    """
    files = sorted(file for file in folder.iterdir() if file.name.removesuffix(".gz").endswith(_TABLES))
    named = [file for file in files if file.name.removesuffix(".gz") == "ratings.csv"] or files
    if not named:
        expected = "MovieLens (ratings.dat or u.data), ratings.csv, or one file of ratings"
        raise FileNotFoundError(f"{folder}: no ratings in it: expected {expected}; nothing is fetched")
    if len(named) > 1:
        several = ", ".join(file.name for file in named[:4]) + (", ..." if len(named) > 4 else "")
        raise ValueError(f"{folder}: expected one file of ratings, got {len(named)}, name one of them: {several}")
    return named[0]


def _beginning(path: Path) -> tuple[bytes, str]:
    """Return (the first 64 bytes of a file without leading blanks, its first line that is not blank)."""
    with open_uncompressed(path) as file:
        start = file.peek(64)[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
        text = b"" if start.startswith(b"PAR1") else next((line for line in file if line.strip()), b"")
    return start, text.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").strip("\r\n")


def _is_book_crossing(line: str) -> bool:
    """Return True if a first line is Book-Crossing's: a header with ISBN and Book-Rating, or a number, anything and a
    number, quoted.
    """
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
    given = [rating for rating in ratings if rating != 99.0]
    return len(given) == count and all(abs(rating) <= 10.0 for rating in given)


def _of_objects(placed: list[tuple[str, dict[str, Any]]], at: list[str]) -> Iterator[Row]:
    """Yield the ratings in rows of JSON lines or Parquet, given as pairs (place for messages, {column: cell}).

    `at`: the names of the columns of users, items and ratings. Raise ValueError for a user or item that is neither text
    nor a whole number, and for a rating that is not a finite number."""
    for where, row in placed:
        user, item = name_in(where, "user", row.get(at[0])), name_in(where, "item", row.get(at[1]))
        rating = row.get(at[2])
        if isinstance(rating, bool) or not isinstance(rating, int | float | str):
            raise ValueError(f"{where}: rating: expected a finite number in {at[2]}, got {cut_repr(rating)}")
        yield where, user, item, finite(where, str(rating).strip())
