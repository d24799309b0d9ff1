"""Ratings in files: anybody's table, Book-Crossing, Jester, MovieLens; what is refused, and where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.data.ratings import (
    RatingTable,
    densest,
    load_book_crossing,
    load_jester,
    movielens_ratings,
    select_ratings,
)

TABLE = "user,item,rating\nann,tea,3\nbob,tea,-1.5\nann,soup,2e1\n"


def told(table: RatingTable) -> list[tuple[str, str, float]]:
    names = table.user_names[table.users].tolist(), table.item_names[table.items].tolist()
    return list(zip(*names, table.values.tolist()))


# ---------------------------------------------------------------------------- Book-Crossing


def test_book_crossing_leaves_implicit_ratings_out(tmp_path: Path) -> None:
    (tmp_path / "csv").write_text("User-ID,ISBN,Book-Rating\n7,034X,0\n7,0451,10\n8,034X,5\n9,1,0\n")
    assert told(load_book_crossing(tmp_path / "csv")) == [("7", "0451", 10.0), ("8", "034X", 5.0)]
    (tmp_path / "csv").write_text("User-ID,ISBN,Book-Rating\n7,034X,0\n")
    with pytest.raises(ValueError, match=r"^csv: ratings: expected at least one above 0 \(implicit\), got none"):
        load_book_crossing(tmp_path / "csv")


def test_book_crossing_as_it_was_published(tmp_path: Path) -> None:
    """Quotes within quotes, Latin-1."""
    (tmp_path / "bx").write_bytes(b'"User-ID";"ISBN";"Book-Rating"\r\n"7";"\\"88\\"";"3"\r\n"7";"\xdf";"4"\r\n')
    assert told(load_book_crossing(tmp_path / "bx")) == [("7", '\\"88\\"', 3.0), ("7", "\xdf", 4.0)]


@pytest.mark.parametrize("rating", ["11", "-1", "2.5"])
def test_a_rating_that_book_crossing_has_not(tmp_path: Path, rating: str) -> None:
    (tmp_path / "bx").write_text(f"7,a,3\n7,b,{rating}\n")
    with pytest.raises(ValueError, match=r"^bx:2: rating: expected a whole number from 0 to 10"):
        load_book_crossing(tmp_path / "bx")


def test_the_densest_part() -> None:
    """Users 0 and 2 rated most, items 1 and 0 were rated most often; ties go to the first."""
    users, items = np.array([0, 0, 0, 1, 2, 2, 3]), np.array([0, 1, 2, 1, 0, 1, 3])
    table = RatingTable(users, items, np.arange(7.0), np.array(list("abcd")), np.array(list("wxyz")))
    assert told(densest(table, 2, 2)) == [("a", "w", 0.0), ("a", "x", 1.0), ("c", "w", 4.0), ("c", "x", 5.0)]
    assert told(densest(table, 9, 9)) == told(table)
    assert told(select_ratings(table, table.values > 4.5)) == [("c", "x", 5.0), ("d", "z", 6.0)]
    for name in ("users", "items"):
        with pytest.raises(ValueError, match=f"^{name}: expected a whole number, 1 or more, got 0"):
            densest(table, **{"users": 1, "items": 1, name: 0})
    strangers = table._replace(users=np.array([0, 0, 0, 1, 1, 2, 3]), items=np.array([0, 1, 2, 3, 4, 3, 3]))
    with pytest.raises(ValueError, match=r"^ratings: expected at least one that is left, got none"):
        densest(strangers._replace(item_names=np.array(list("vwxyz"))), 1, 1)


# ---------------------------------------------------------------------------- Jester


def test_jester(tmp_path: Path) -> None:
    (tmp_path / "j").write_text("2,-7.82,99,9.5\n3,0,1,-10\n1,99,99,10\n")
    table = load_jester(tmp_path / "j")
    assert told(table)[:3] == [("1", "1", -7.82), ("1", "3", 9.5), ("2", "1", 0.0)]
    assert told(table)[-1] == ("3", "3", 10.0)
    assert told(load_jester(tmp_path / "j", users=1)) == told(table)[:2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2,1,99,9\n1,5,99\n", "j:2: line: expected 4 numbers"),
        ("5\n", "j:1: line: expected a count and the ratings"),
        ("2,1,99,x\n", "j:1: rating: expected a number, got 'x'"),
        ("2,1,99,11\n", "j:1: rating: expected a number from -10 to 10, or 99 for none, got 11 for joke 3"),
        ("1,1,99,9\n", "j:1: count: expected 2, as many as are rated, got '1'"),
        ("0,99,99\n", "j: ratings: expected at least one, got none"),
        ("", "j: ratings: expected at least one, got none"),
    ],
)
def test_no_jester(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "j").write_text(text)
    with pytest.raises(ValueError, match=f"^{message}"):
        load_jester(tmp_path / "j")


@pytest.mark.parametrize("users", [0, True, 2.0])
def test_so_many_users(tmp_path: Path, users: Any) -> None:
    with pytest.raises(ValueError, match=r"^users: expected a whole number, 1 or more"):
        load_jester(tmp_path / "j", users=users)


# ---------------------------------------------------------------------------- the real files


def there(folder: Path, *parts: str) -> Path:
    path = folder.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{'/'.join(parts)} is not here: put it into {folder}")
    return path


@pytest.mark.slow
def test_the_subset_of_book_crossing(data_folder: Path) -> None:
    """2000 x 2000 of it are as dense as [A18] says, .002; which they are of those that tie is not said there."""
    path = there(data_folder, "book-crossing-subset", "BX-Book-Ratings.subset.csv.gz")
    table = load_book_crossing(path)
    assert table.values.size == 35_522
    dense = densest(table, 2000, 2000)
    assert round(dense.values.size / 2000 / 2000, 3) == 0.002
    assert set(dense.values.tolist()) <= {float(r) for r in range(1, 11)}


def test_the_first_part_of_jester(data_folder: Path) -> None:
    table = load_jester(there(data_folder, "jester-1", "jester-data-1.csv.gz"), users=5000)
    assert (table.values.size, table.user_names.size, table.item_names.size) == (359_379, 5000, 100)
    assert -10.0 <= table.values.min() < table.values.max() <= 10.0


def test_movielens(data_folder: Path) -> None:
    table = movielens_ratings(there(data_folder, "movielens-100k"))
    assert (table.values.size, table.user_names.size, table.item_names.size) == (100_000, 943, 1682)
    assert told(table)[0] == ("196", "Kolya (1996)", 3.0)
