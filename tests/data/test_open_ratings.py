"""Any file of ratings: which it is taken for, which columns count, what becomes of a pair that comes twice."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.data.rating_files import open_ratings
from heedful.data.ratings import RatingTable

WANTED = [("ann", "tea", 3.0), ("Jürgen", "tea", -1.5), ("ann", "soup, hot", 20.0)]


def told(table: RatingTable) -> list[tuple[str, str, float]]:
    names = table.user_names[table.users].tolist(), table.item_names[table.items].tolist()
    return list(zip(*names, table.values.tolist()))


def written(folder: Path, text: str, name: str = "mine.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


FIRST = {"person": ["1"], "item": ["2"], "rating": ["3"]}


@pytest.mark.parametrize(
    ("text", "columns", "found"),
    [
        ('user,item,rating\nann,tea,3\nJürgen,tea,-1.5\nann,"soup, hot",20\n', {}, "user, item, rating"),
        ('ann,tea,3\nJürgen,tea,-1.5\nann,"soup, hot",20\n', FIRST, "1, 2, 3"),
        ("ann::tea::3::99\nJürgen::tea::-1.5::99\nann::soup, hot::20::99\n", FIRST, "1, 2, 3"),
        ('movieId;Rating;userId\ntea;3;ann\ntea;-1.5;Jürgen\n"soup, hot";20;ann\n', {}, "userId, movieId, Rating"),
        (
            "row\tUser-ID\tISBN\tstars\n1\tann\ttea\t3\n2\tJürgen\ttea\t-1.5\n3\tann\tsoup, hot\t20\n",
            {},
            "User-ID, ISBN, stars",
        ),
        (
            'Größe;Gericht;Mensch;rating\n3;tea;ann;9\n-1.5;tea;Jürgen;9\n20;"soup, hot";ann;9\n',
            {"person": ["Mensch"], "item": ["Gericht"], "rating": ["Größe"]},
            "Mensch, Gericht, Größe",
        ),
        (
            'title,my_rating,average_rating,asin,user\nx,3,1,tea,ann\ny,"-1,5",1,tea,Jürgen\nz,20,1,"soup, hot",ann\n',
            {},
            "user, asin, my_rating",
        ),
    ],
)
def test_columns_of_any_name_in_any_order(tmp_path: Path, text: str, columns: dict[str, list[str]], found: str) -> None:
    opened = open_ratings(written(tmp_path, text), columns)
    assert (told(opened.table), opened.summary) == (WANTED, f"columns {found}")


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
    named = open_ratings(
        written(tmp_path, "User-ID,ISBN,Book-Rating\n7,034X,0\n"), {"rating": ["Book-Rating"]}, missing=["none"]
    )
    assert (named.summary, told(named.table)) == ("columns User-ID, ISBN, Book-Rating", [("7", "034X", 0.0)])
    wide = "1,2,3,4,5,6,7,8,9,10,9\n" * 2  # eleven numbers, but no count of them
    with pytest.raises(ValueError, match=r"^x: person: expected a column of person "):
        open_ratings(written(tmp_path, wide, "x"))
    lens = open_ratings(written(tmp_path, "1\t7\t3\t881250949\n1\t8\t4\t881250950\n", "x"))
    assert (lens.summary, told(lens.table)) == ("MovieLens", [("1", "7", 3.0), ("1", "8", 4.0)])


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
    with pytest.raises(ValueError, match=r"^some: columns: expected none with MovieLens, got person"):
        open_ratings(folder, {"person": ["who"]})
    with pytest.raises(FileNotFoundError, match="nothing is fetched"):
        open_ratings(tmp_path / "none")


def test_a_pair_that_comes_twice(tmp_path: Path) -> None:
    file = written(tmp_path, "user,item,rating\na,b,1\na,c,5\na,b,2\na,b,6\n")
    with pytest.raises(ValueError, match=r"^mine.csv:4: item: expected each once for user a, got 'b' once more"):
        open_ratings(file)
    assert told(open_ratings(file, twice="last").table) == [("a", "b", 6.0), ("a", "c", 5.0)]
    assert told(open_ratings(file, twice="mean").table) == [("a", "b", 3.0), ("a", "c", 5.0)]
    wrong: Any = "first"
    with pytest.raises(ValueError, match=r"^twice: expected refuse, last or mean, got 'first'"):
        open_ratings(file, twice=wrong)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("", {}, "mine.csv: header: expected names of columns, got an empty file"),
        ("user,item\na,b\n", {}, "mine.csv: rating: expected a column of rating (called rating, stars, "),
        ("user,item\na,b\n", {"rating": ["item"]}, "mine.csv: item: expected a column of item "),
        ("user,item,rating\na,b,\n", {}, "mine.csv: ratings: expected at least one, got none"),
        ("user,item,rating\na,b,NaN\na,c,x\n", {}, "mine.csv:3: rating: expected a finite number, got 'x'"),
        ("user,item,rating\na,b,inf\n", {}, "mine.csv:2: rating: expected a finite number, got 'inf'"),
        ("user,item,rating\na,b,1e999\n", {}, "mine.csv:2: rating: expected a finite number, got '1e999'"),
        ("user,item,rating\na,b,4\n,c,3\n", {}, "mine.csv:3: user: expected a name, got nothing"),
        ("user,item,rating\na,b,4\na,,3\n", {}, "mine.csv:3: item: expected a name, got nothing"),
        ("user,item,rating\na,b,3\n", {"person": ["who"]}, "mine.csv: person: expected one of the columns user, item,"),
        ("user,item,rating\na,b,3\n", {"user": ["who"]}, "columns: expected one of person, item, rating, got 'user'"),
        ("user,item,rating\na,b,3\n", {"person": ["user"], "item": ["user"]}, "columns: expected each column once"),
        ('{"user": "a", "item": 1.5, "rating": 3}\n', {}, "mine.csv:1: item: expected a text or a whole number"),
        ('{"user": true, "item": 1, "rating": 3}\n', {}, "mine.csv:1: user: expected a text or a whole number"),
        ('{"user": "a", "item": 1, "rating": null}\n', {}, "mine.csv: ratings: expected at least one, got none"),
        ('{"user": "a", "item": 1, "rating": "x"}\n', {}, "mine.csv:1: rating: expected a finite number, got 'x'"),
        ('{"user": "a", "item": 1, "rating": true}\n', {}, "mine.csv:1: rating: expected a finite number, got True"),
        (
            "Book Id,My Rating,Average Rating\nx,0,3.5\ny,4,3\nz,2,4\nu,5,4\n",
            {},
            "mine.csv: person: expected a column of person (called person, user, who, voter, participant, ...), or "
            "--column person=COLUMN, got Book Id, My Rating, Average Rating; My Rating: expected ratings, got 0 in 1 "
            "of 4, the others from 2 to 5: --missing 0 if it stands for none, else --missing none",
        ),
        ("user,item,rating\na,b,0\na,c,3\nb,c,5\n", {}, "mine.csv: rating: expected ratings, got 0 in 1 of 3, the oth"),
        (
            "userID,artistID,weight\n1,2,300\n",
            {},
            "mine.csv: rating: expected a column of rating (called rating, stars",
        ),
    ],
)
def test_what_is_no_ratings(tmp_path: Path, text: str, columns: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ValueError) as error:
        open_ratings(written(tmp_path, text), columns)
    assert str(error.value).startswith(message)


def test_counts_and_kinds_of_feedback_are_not_taken_for_ratings(tmp_path: Path) -> None:
    plays = written(tmp_path, "userID\tartistID\tweight\n1\t20\t5037\n1\t10\t36\n2\t20\t7\n", "plays.dat")
    with pytest.raises(
        ValueError, match=r"; weight has counts, .*: --column rating=weight takes them for such all the s"
    ):
        open_ratings(plays)
    assert open_ratings(plays, {"rating": ["weight"]}).table.values.tolist() == [5037.0, 36.0, 7.0]
    kinds = written(tmp_path, "feedback_type,user_id,item_id,at\nstar,u0,i0,9\nread,u1,i1,9\nread,u0,i1,9\n", "k.csv")
    with pytest.raises(ValueError, match=r"feedback_type has kinds .*, such as --worth star=1 --worth read=2$"):
        open_ratings(kinds)
    opened = open_ratings(kinds, words={"star": 5, "read": 2})
    assert (opened.summary, told(opened.table)[0]) == ("columns user_id, item_id, feedback_type", ("u0", "i0", 5.0))


def test_a_matrix_has_a_row_for_each_user(tmp_path: Path) -> None:
    file = written(tmp_path, "user,joke0,joke1,joke2\nu0,99,7.74,-4.05\nu1,0.72,,99\n")
    with pytest.raises(
        ValueError, match=r"rating: expected ratings, got 99 in 2 of 5, the others from -4\.05 to 7\.74: "
    ):
        open_ratings(file)
    with pytest.warns(UserWarning, match="a matrix: each of 3 columns is taken for an item"):
        table = open_ratings(file, missing=["99"]).table
    assert told(table) == [("u0", "joke1", 7.74), ("u0", "joke2", -4.05), ("u1", "joke0", 0.72)]


def test_ratings_that_are_all_the_same_are_said(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="all 2 ratings are the same, 1: nothing can be learned"):
        open_ratings(written(tmp_path, "user,item,rating\na,b,1\na,c,1\n"))
    with pytest.warns(UserWarning, match="1 row without a rating left out"):
        table = open_ratings(written(tmp_path, "user,item,rating\na,b,1\nb,b,2\nz,d,NA\n")).table
    assert (told(table), table.user_names.tolist()) == ([("a", "b", 1.0), ("b", "b", 2.0)], ["a", "b"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "words", "size"),
    [
        (("movielens-100k",), "MovieLens", (100_000, 943, 1682)),
        (("movielens-100k", "u.data"), "MovieLens", (100_000, 943, 1682)),
        (("movielens-1m",), "MovieLens", (1_000_209, 6040, 3706)),
        (("movielens-1m", "ratings.dat.gz"), "MovieLens", (1_000_209, 6040, 3706)),
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
