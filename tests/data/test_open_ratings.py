"""Any file of ratings: which it is taken for, which columns count, what becomes of a pair that comes twice."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.data.rating_files import open_ratings
from heedful.data.ratings import Columns, RatingTable, load_ratings

WANTED = [("ann", "tea", 3.0), ("Jürgen", "tea", -1.5), ("ann", "soup, hot", 20.0)]


def told(table: RatingTable) -> list[tuple[str, str, float]]:
    names = table.user_names[table.users].tolist(), table.item_names[table.items].tolist()
    return list(zip(*names, table.values.tolist()))


def written(folder: Path, text: str, name: str = "mine.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("text", "columns", "found"),
    [
        ('user,item,rating\nann,tea,3\nJürgen,tea,-1.5\nann,"soup, hot",20\n', Columns(), "user, item, rating"),
        ('ann,tea,3\nJürgen,tea,-1.5\nann,"soup, hot",20\n', Columns(), "1, 2, 3"),
        ("ann::tea::3::99\nJürgen::tea::-1.5::99\nann::soup, hot::20::99\n", Columns(), "1, 2, 3"),
        (
            'movieId;Rating;userId\ntea;3;ann\ntea;-1.5;Jürgen\n"soup, hot";20;ann\n',
            Columns(),
            "userId, movieId, Rating",
        ),
        (
            "row\tUser-ID\tISBN\tstars\n1\tann\ttea\t3\n2\tJürgen\ttea\t-1.5\n3\tann\tsoup, hot\t20\n",
            Columns(),
            "User-ID, ISBN, stars",
        ),
        (
            'Größe;Gericht;Mensch;rating\n3;tea;ann;9\n-1.5;tea;Jürgen;9\n20;"soup, hot";ann;9\n',
            Columns("Mensch", "Gericht", "Größe"),
            "Mensch, Gericht, Größe",
        ),
        # What is neither named nor known by its name: the first that are left.
        ('diner,stars,dish\nann,3,tea\nJürgen,-1.5,tea\nann,20,"soup, hot"\n', Columns(), "diner, dish, stars"),
        ('7,4,1\nann,tea,3\nJürgen,tea,-1.5\nann,"soup, hot",20\n', Columns("7", "4", "1"), "7, 4, 1"),
    ],
)
def test_columns_of_any_name_in_any_order(tmp_path: Path, text: str, columns: Columns, found: str) -> None:
    opened = open_ratings(written(tmp_path, text), columns)
    assert (told(opened.table), opened.summary) == (WANTED, f"columns {found}")


def test_json_lines_and_parquet(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"at": 5, "rating": 3, "item_id": 7.0, "user": "ann"},
        {"rating": "4.5", "item_id": 8, "user": "Jürgen", "at": None},
    ]
    wanted = [("ann", "7", 3.0), ("Jürgen", "8", 4.5)]
    opened = open_ratings(written(tmp_path, "\n".join(map(json.dumps, rows)), "mine.jsonl"))
    assert (told(opened.table), opened.summary) == (wanted, "columns user, item_id, rating")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"who": ["ann", "Jürgen"], "what": [7, 8], "x": [3.0, 4.5], "rating": [9, 9]}
    pq.write_table(pa.table(columns), tmp_path / "mine.parquet")
    opened = open_ratings(tmp_path / "mine.parquet", Columns(rating="x"))
    assert (told(opened.table), opened.summary) == (wanted, "columns who, what, x")


def test_whose_file_it_is(tmp_path: Path) -> None:
    jester = "3,-7.82,99,9.5,0,99,99,99,99,99,99\n1,99,99,10,99,99,99,99,99,99,99\n"
    opened = open_ratings(written(tmp_path, jester, "x"))
    assert (opened.summary, told(opened.table)[0]) == ("Jester", ("1", "1", -7.82))
    (tmp_path / "packed").write_bytes(gzip.compress(jester.encode()))
    assert open_ratings(tmp_path / "packed").summary == "Jester"
    for text in ('"7";"034X";"0"\n"7";"0451";"10"\n', "User-ID,ISBN,Book-Rating\n7,034X,0\n7,0451,10\n"):
        opened = open_ratings(written(tmp_path, text, "x"))
        assert opened.summary == "Book-Crossing, implicit ratings (0) left out"
        assert told(opened.table) == [("7", "0451", 10.0)]
    named = open_ratings(written(tmp_path, "User-ID,ISBN,Book-Rating\n7,034X,0\n"), Columns(rating="Book-Rating"))
    assert (named.summary, told(named.table)) == ("columns User-ID, ISBN, Book-Rating", [("7", "034X", 0.0)])
    wide = "1,2,3,4,5,6,7,8,9,10,9\n"  # eleven numbers, but no count of them
    assert open_ratings(written(tmp_path, wide, "x")).summary == "columns 1, 2, 3"


def test_folders(tmp_path: Path) -> None:
    folder = tmp_path / "some"
    folder.mkdir()
    (folder / "README.md").write_text("nothing")
    with pytest.raises(FileNotFoundError, match=r"some: no ratings in it: expected MovieLens"):
        open_ratings(folder)
    written(folder, "user,item,rating\na,b,1\n", "x.csv")
    assert told(open_ratings(folder).table) == [("a", "b", 1.0)]
    written(folder, "user,item,tag\na,b,fine\n", "y.csv.gz")
    with pytest.raises(
        ValueError, match=r"some: expected one file of ratings, got 2, name one of them: x.csv, y.csv.gz"
    ):
        open_ratings(folder)
    written(folder, "userId,movieId,rating\nc,d,2\n", "ratings.csv")
    assert told(open_ratings(folder).table) == [("c", "d", 2.0)]
    (folder / "u.data").write_text("1\t2\t3\t4\n")
    with pytest.raises(FileNotFoundError, match=r"u\.genre: no such file"):
        open_ratings(folder)
    with pytest.raises(ValueError, match=r"^some: columns: expected none with MovieLens, got who"):
        open_ratings(folder, Columns(user="who"))
    with pytest.raises(FileNotFoundError, match="nothing is fetched"):
        open_ratings(tmp_path / "none")


def test_a_pair_that_comes_twice(tmp_path: Path) -> None:
    file = written(tmp_path, "a,b,1\na,c,5\na,b,2\na,b,6\n")
    with pytest.raises(ValueError, match=r"^mine.csv:3: item: expected each once for user a, got 'b' once more"):
        open_ratings(file)
    assert told(open_ratings(file, twice="last").table) == [("a", "b", 6.0), ("a", "c", 5.0)]
    assert told(open_ratings(file, twice="mean").table) == [("a", "b", 3.0), ("a", "c", 5.0)]
    wrong: Any = "first"
    with pytest.raises(ValueError, match=r"^twice: expected refuse, last or mean, got 'first'"):
        load_ratings(file, twice=wrong)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("", Columns(), "mine.csv: ratings: expected at least one, got none"),
        ("\n\n", Columns(), "mine.csv: ratings: expected at least one, got none"),
        ("user,item,rating\n", Columns(), "mine.csv: ratings: expected at least one, got none"),
        ("user,item\na,b\n", Columns(), "mine.csv:1: line: expected USER, ITEM and RATING"),
        ("user,item\na,b\n", Columns(rating="item"), "mine.csv:1: item: expected a column for it, got 'user, item'"),
        ("user,item,rating\na,b,\n", Columns(), "mine.csv:2: rating: expected a finite number, got ''"),
        ("user,item,rating\na,b,NaN\n", Columns(), "mine.csv:2: rating: expected a finite number, got 'NaN'"),
        ("user,item,rating\na,b,4\na,,3\n", Columns(), "mine.csv:3: line: expected USER, ITEM and RATING"),
        ("user,item,rating\na,b,3\n", Columns("who"), "mine.csv:1: user: expected the column who, got 'user, item,"),
        ("user,item,rating\n", Columns("user", "user"), "mine.csv:1: columns: expected three different ones"),
        ('user,item,rating\na,"b,3\n', Columns(), "mine.csv:2: line: expected USER,ITEM,RATING"),
        ('{"user": "a", "item": "b"}\n', Columns(), "mine.csv: rating: expected a column for it, got 'user, item'"),
        ('{"user": "a", "item": 1.5, "rating": 3}\n', Columns(), "mine.csv:1: item: expected a text or a whole number"),
        ('{"user": true, "item": 1, "rating": 3}\n', Columns(), "mine.csv:1: user: expected a text or a whole number"),
        (
            '{"user": "a", "item": 1, "rating": null}\n',
            Columns(),
            "mine.csv:1: rating: expected a finite number in rating",
        ),
        (
            '{"user": "a", "item": 1, "rating": "x"}\n',
            Columns(),
            "mine.csv:1: rating: expected a finite number, got 'x'",
        ),
        ("[1]", Columns(), "mine.csv: text: expected CSV, Parquet or one JSON object a line, got a JSON array"),
    ],
)
def test_what_is_no_ratings(tmp_path: Path, text: str, columns: Columns, message: str) -> None:
    with pytest.raises(ValueError) as error:
        open_ratings(written(tmp_path, text), columns)
    assert str(error.value).startswith(message)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "words", "size"),
    [
        (("movielens-100k",), "MovieLens", (100_000, 943, 1682)),
        (("movielens-100k", "u.data"), "columns 1, 2, 3", (100_000, 943, 1682)),
        (("movielens-1m",), "MovieLens", (1_000_209, 6040, 3706)),
        (("movielens-1m", "ratings.dat.gz"), "columns 1, 2, 3", (1_000_209, 6040, 3706)),
        (("jester-1",), "Jester", (1_810_455, 24_983, 100)),
        (
            ("book-crossing-subset", "BX-Book-Ratings.subset.csv.gz"),
            "Book-Crossing, implicit ratings (0) left out",
            (35_522, 4777, 22_222),
        ),
        (
            ("book-crossing-subset", "BX-Book-Ratings.excerpt-users-43842-55178.csv.gz"),
            "Book-Crossing, implicit ratings (0) left out",
            (15_111, 3149, 12_580),
        ),
    ],
)
def test_the_real_files(data_folder: Path, place: tuple[str, ...], words: str, size: tuple[int, int, int]) -> None:
    path = data_folder.joinpath(*place)
    if not path.exists():
        pytest.skip(f"{'/'.join(place)} is not here: put it into {data_folder}")
    table, told_of_it = open_ratings(path)
    assert told_of_it == words
    assert (table.values.size, table.user_names.size, table.item_names.size) == size
    assert np.isfinite(table.values).all()
