"""Graded data: tables and SVMlight files as arrays; what is wrong is refused with its file, line and field."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import written
from heedful.data.letor import load_letor
from heedful.data.ordinal import OrdinalData, is_svmlight, load_ordinal

TABLE = "title,length,new,rating\nheat,170,1,4\nalien,117,0,5\nbig,104,0,2\n"


def write(folder: Path, text: str | bytes, name: str = "films") -> Path:
    return written.write(folder / name, text)


def same(a: OrdinalData, b: OrdinalData) -> bool:
    return bool((a.X == b.X).all() and (a.ranks == b.ranks).all() and a[2:] == b[2:])


# ---------------------------------------------------------------------------- tables


def test_a_table_by_hand(tmp_path: Path) -> None:
    got = load_ordinal(write(tmp_path, TABLE), "rating")
    np.testing.assert_array_equal(got.X, [[170.0, 1.0], [117.0, 0.0], [104.0, 0.0]])
    assert got.ranks.tolist() == [2, 3, 1]
    assert got.grades == ("2", "4", "5")  # those that occur, in their order
    assert (got.features, got.left_out, got.filled) == (("length", "new"), ("title",), ())
    assert got.X.dtype == np.float64
    assert got.X.flags.c_contiguous


def test_what_is_in_the_file_tells_its_kind(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"title": "heat", "length": 170, "new": True, "rating": 4},
        {"title": "alien", "length": 117.0, "new": False, "rating": 5.0},
        {"title": "big", "length": "104", "new": 0, "rating": "2"},
    ]
    wanted = load_ordinal(write(tmp_path, TABLE), "rating")
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert same(load_ordinal(write(tmp_path, lines, "a.csv"), "rating"), wanted)
    assert same(
        load_ordinal(write(tmp_path, gzip.compress(TABLE.replace(",", ";").encode()), "b.svm"), "rating"), wanted
    )


def test_labels_in_their_order(tmp_path: Path) -> None:
    text = "size,taste\n1,good\n2,bad\n3,good\n"
    got = load_ordinal(write(tmp_path, text), "taste", order=("bad", "ok", "good"))
    assert got.ranks.tolist() == [3, 1, 3]
    assert got.grades == ("bad", "ok", "good")  # also the one that no row has
    numbers = load_ordinal(write(tmp_path, TABLE), "rating", order=("1", "2", "3", "4", "5"))
    assert numbers.ranks.tolist() == [4, 5, 2]
    downwards = load_ordinal(write(tmp_path, TABLE), "rating", order=("5", "4", "3", "2", "1"))
    assert downwards.ranks.tolist() == [2, 1, 4]


def test_columns_left_out_and_the_mean_of_what_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,c,g\n1,,x,1\n2,5,y,2\n3,NaN,z,1\n4,9,w,2\n")
    got = load_ordinal(path, "g", missing="mean")
    np.testing.assert_array_equal(got.X[:, 1], [7.0, 5.0, 7.0, 9.0])
    assert (got.filled, got.left_out) == (("b",), ("c",))
    assert load_ordinal(path, "g", without=("b",)).features == ("a",)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,g\n1,1\n2,1.5\n", "films:3: g: expected a grade, a whole number, got '1.5'"),
        ("a,g\n1,1\n2,\n", "films:3: g: expected a grade, got nothing"),
        ("a,g\n1,1\n2,NaN\n", "films:3: g: expected a grade, got nothing"),
        ("a,g\n1,1\n2,inf\n", "films:3: g: expected a grade, a whole number, got 'inf'"),
        (
            "a,g\n1,1\n2,ok\n",
            "films:3: g: expected a grade, a whole number, got 'ok'; labels need their order: bad,ok,good",
        ),
        ("a,g\n1,1\n2,1\n", "films: g: expected 2 to 100 different grades, got 1 (1)"),
        ("a,g\n1,1\nNaN,2\n3,1\n,2\n", "films:3: a: expected a number, got nothing, as 1 more;"),
        ("a,g\n1,1\n-inf,2\n", "films:3: a: expected a finite number, got '-inf'"),
        ("a,g\nx,1\ny,2\n", "films: columns: expected one of numbers other than g, got a"),
        ("g\n1\n2\n", "films: columns: expected one of numbers other than g, got none"),
        ("a,b\n1,1\n2,2\n", "target: expected a column of films (a, b), got 'g'"),
        ('{"a": 1, "g": 1}\n{"a": 2}\n', "films:2: g: expected a grade, got nothing"),
        ('{"a": 1, "g": true}\n{"a": 2, "g": 2}\n', "films:1: g: expected a grade, a whole number, got 'True'"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ValueError) as error:
        load_ordinal(write(tmp_path, text), "g")
    assert str(error.value).startswith(told)


def test_more_grades_only_where_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, "a,year\n" + "".join(f"{i},{1900 + i}\n" for i in range(120)))
    with pytest.raises(
        ValueError, match=r"films: year: expected 2 to 100 different grades, got 120 \(from 1900 to 2019\)"
    ):
        load_ordinal(path, "year")
    assert load_ordinal(path, "year", most=120).ranks.tolist() == list(range(1, 121))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({}, "target: expected the column of the grades (title, length, new, rating), got none"),
        ({"target": "ratings"}, "target: expected a column of films (title, length, new, rating), got 'ratings'"),
        ({"target": "rating", "without": ("size",)}, "without: expected a column of films"),
        (
            {"target": "rating", "without": ("rating",)},
            "without: expected another column than the target, got 'rating'",
        ),
        ({"target": "rating", "order": ("4",)}, "order: expected at least two labels"),
        ({"target": "rating", "order": ("4", "5", "4")}, "order: expected each label once, got '4' 2 times"),
        ({"target": "rating", "order": ("4", "4.0")}, "order: expected each label once, got '4' 2 times"),
        ({"target": "rating", "order": ("4", "5")}, "films:4: rating: expected one of 4, 5, got '2'"),
        ({"target": "rating", "order": ("4", "5", "2"), "most": 2}, "order: expected at most 2 labels, got 3"),
        ({"target": "rating", "missing": "zero"}, "missing: expected refuse or mean, got 'zero'"),
    ],
)
def test_what_is_wrong_with_what_was_asked(tmp_path: Path, how: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError) as error:
        load_ordinal(write(tmp_path, TABLE), **how)
    assert str(error.value).startswith(told)


# ---------------------------------------------------------------------------- SVMlight


def test_an_svmlight_file_by_hand(tmp_path: Path) -> None:
    text = "# films\n\n-1 2:0.5 4:1e2 # heat\n+1 qid:3 1:7\n3.0\n"
    got = load_ordinal(write(tmp_path, gzip.compress(text.encode())))
    np.testing.assert_array_equal(got.X, [[0, 0.5, 0, 100], [7, 0, 0, 0], [0, 0, 0, 0]])
    assert got.ranks.tolist() == [1, 2, 3]
    assert (got.grades, got.features) == (("-1", "1", "3"), ("1", "2", "3", "4"))


def test_what_looks_like_svmlight(tmp_path: Path) -> None:
    yes = ["1 1:2\n", "# c\n\n3\n2 1:1\n", "\ufeff1 1:2\n", "-2.5 qid:1 1:1\n", "1 1:x\n", "1 a:1\n"]
    no = ["a,b\n1,2\n", "", "1,2\n3,4\n", '{"a": "1 1:2"}\n', "rating 1:2\n", "5\n4\n", "PAR1 1:2\n", "3;a 1:2\n"]
    assert [is_svmlight(write(tmp_path, text)) for text in yes] == [True] * len(yes)
    assert [is_svmlight(write(tmp_path, text)) for text in no] == [False] * len(no)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("1.5 1:1", "grade: expected a grade, a whole number, got '1.5'"),
        ("nan 1:1", "grade: expected a number, got 'nan'"),
        ("ok 1:1", "grade: expected a number, got 'ok'"),
        ("2 1:1e999", "feature value: expected a finite number, got '1e999'"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(ValueError) as error:
        load_ordinal(write(tmp_path, f"1 1:1 3:2\n# c\n{line}\n1 1:1\n"))
    assert str(error.value) == f"films:3: {told}"


def test_an_svmlight_file_has_no_columns_to_name(tmp_path: Path) -> None:
    path = write(tmp_path, "1 1:1\n2 1:2\n")
    with pytest.raises(ValueError, match="target: expected none, as the grade begins each line of films, got 'rating'"):
        load_ordinal(path, "rating")
    with pytest.raises(ValueError, match="without: expected none"):
        load_ordinal(path, without=("1",))
    with pytest.raises(ValueError, match="features: expected at least one INDEX:VALUE, got none"):
        load_ordinal(write(tmp_path, "1 qid:1\n2 qid:1\n"))


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.dictionaries(st.integers(1, 9), st.floats(-1e9, 1e9, width=32), min_size=1)),
        min_size=2,
        max_size=40,
    ).filter(lambda rows: len({grade for grade, _ in rows}) > 1)
)
def test_as_the_reader_of_ranking_files(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, dict[int, float]]]
) -> None:
    """The same features, read by two functions; and the ranks are the places among the grades that occur."""
    lines = [f"{g} qid:1 " + " ".join(f"{i}:{v!r}" for i, v in sorted(x.items())) for g, x in rows]
    path = write(tmp_path_factory.mktemp("files"), "\n".join(lines) + "\n")
    got, wanted = load_ordinal(path), load_letor(path)
    np.testing.assert_array_equal(got.X, wanted.X)
    occur = sorted({g for g, _ in rows})
    assert got.ranks.tolist() == [occur.index(g) + 1 for g, _ in rows]


def test_whole_numbers_are_compared_as_numbers_however_they_are_written(tmp_path: Path) -> None:
    floats = write(tmp_path, "a,g\n1,1.0\n2,3.0\n3,5\n")
    assert load_ordinal(floats, "g", order=("1", "2", "3", "4", "5.0")).ranks.tolist() == [1, 3, 5]
    assert load_ordinal(floats, "g").ranks.tolist() == [1, 2, 3]


def test_grades_that_a_float_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "m.svm"
    file.write_text("9007199254740991 1:1\n1 1:1\n")
    assert load_ordinal(file).grades == ("1", "9007199254740991")
    file.write_text("9007199254740992 1:1\n9007199254740993 1:2\n1 1:1\n")
    with pytest.raises(ValueError, match=r"m\.svm:1: grade: expected a grade, a whole number, got '9007199254740992'"):
        load_ordinal(file)
