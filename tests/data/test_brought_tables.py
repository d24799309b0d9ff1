"""Tables as people's tools write them: what is read of them, and what is said about it."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from heedful.data.table import open_table, read_table
from heedful.features import infer
from written import write


def told_of(path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of a table, and what was said about it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rows = read_table(path)
    return rows, [str(each.message).removeprefix(f"{path.name}: ") for each in said]


def columns_of(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_numbers_as_a_european_spreadsheet_writes_them(tmp_path: Path) -> None:
    text = (
        "id;price;weight;share;big;since;stock\n"
        "A1;1.234,50;0,75;12,5 %;1.234;01.03.2023;WAHR\n"
        "A2;99,90;1,20;7,0 %;2.000;15.11.2022;FALSCH\n"
        "A3;2.000,00;12,05;45,0 %;12;30.06.2024;WAHR\n"
    )
    rows, said = told_of(write(tmp_path / "a.csv", text))
    assert columns_of(rows) == {
        "id": ["A1", "A2", "A3"],
        "price": ["1234.50", "99.90", "2000.00"],
        "weight": ["0.75", "1.20", "12.05"],
        "share": ["12.5", "7.0", "45.0"],
        "big": ["1234", "2000", "12"],
        "since": ["01.03.2023", "15.11.2022", "30.06.2024"],
        "stock": ["WAHR", "FALSCH", "WAHR"],
    }
    assert said == [
        "numbers: price (1.234,50 is 1234.50), weight (0,75 is 0.75), share (12,5 % is 12.5), big (1.234 is 1234)"
    ]


def test_numbers_with_thousands_and_money(tmp_path: Path) -> None:
    text = 'id,price,people,swiss,code,mixed\nA,"$1,234.50","1,200",1\'500.5,ABC123,5 €\nB,$3,7,20,0151 234,$5\n'
    rows, _ = told_of(write(tmp_path / "a.csv", text))
    found = columns_of(rows)
    assert (found["price"], found["people"], found["swiss"]) == (["1234.50", "3"], ["1200", "7"], ["1500.5", "20"])
    assert (found["code"], found["mixed"]) == (["ABC123", "0151 234"], ["5 €", "$5"])  # two currencies are no number
    rows, said = told_of(write(tmp_path / "b.csv", "id;x;y\na;0.25;1.234\nb;0.5;2.345\n"))
    assert columns_of(rows) == {"id": ["a", "b"], "x": ["0.25", "0.5"], "y": ["1.234", "2.345"]}
    assert said == []


def test_a_mark_of_a_missing_number_is_missing_among_numbers_and_a_name_among_names(tmp_path: Path) -> None:
    rows, said = told_of(write(tmp_path / "a.csv", "code,rent,size,n\nNA,600,30,1\nEU,N/A,-,?\n-,620,32,none\n"))
    assert columns_of(rows) == {
        "code": ["NA", "EU", "-"],
        "rent": ["600", None, "620"],
        "size": ["30", None, "32"],
        "n": ["1", None, None],
    }
    assert said == ["missing numbers: rent (N/A), size (-), n (?, none)"]
    lines = '{"id": "NA", "n": 1, "m": "2"}\n{"id": "b", "n": "N/A", "m": "-"}\n'
    rows, said = told_of(write(tmp_path / "a.jsonl", lines))
    assert rows == [{"id": "NA", "n": 1, "m": "2"}, {"id": "b", "n": None, "m": None}]
    assert said == ["missing numbers: n (N/A), m (-)"]
    infer(read_table(write(tmp_path / "r.csv", "code,price\nNA,10\nEU,12\nSA,9\n")))  # NA names an item


def test_empty_rows_and_columns_are_left_out_and_counted(tmp_path: Path) -> None:
    rows, said = told_of(write(tmp_path / "a.csv", "name,price,,\nada,10,,\nbob,12,,\n,,,\n,,,\n"))
    assert rows == [{"name": "ada", "price": "10"}, {"name": "bob", "price": "12"}]
    assert said == ["2 empty columns left out", "2 empty rows left out"]
    rows, said = told_of(write(tmp_path / "b.csv", "name,price\nada,10,,\nname,price\nbob,12\n"))
    assert (columns_of(rows), said) == ({"name": ["ada", "bob"], "price": ["10", "12"]}, ["1 header left out"])


def test_the_headers_of_a_survey(tmp_path: Path) -> None:
    text = (
        'ResponseId,winner,loser\nResponse ID,Preferred,Other\n"{""ImportId"":""_recordId""}","{""ImportId"":""Q1""}",'
        '"{""ImportId"":""Q2""}"\nR_1,Tram,Bus\nR_2,Bike,Bus\n'
    )
    rows, said = told_of(write(tmp_path / "a.csv", text))
    assert columns_of(rows) == {"ResponseId": ["R_1", "R_2"], "winner": ["Tram", "Bike"], "loser": ["Bus", "Bus"]}
    assert said == ["2 further headers of a survey left out"]
    assert [column.values for column in open_table(tmp_path / "a.csv").columns(["loser"])] == [["Bus"]]


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("ann,tea,3\nbob,tea,4\n", ["1", "2", "3"]),  # a number in a header above numbers: it is a row
        ("1,2\n3,4\n", ["1", "2"]),
        ("7,4,1\n7,5,2\n", ["1", "2", "3"]),
        ("ann;3,5\nbob;4,0\n", ["1", "2"]),  # numbers as people write them
        ("ann,$3\nbob,$4\n", ["1", "2"]),
        ("ann,3,4\nbob,1,2\n", ["1", "2", "3"]),  # two ratings that happen to follow each other
        ("2026-03-01,ann\n2026-03-02,bob\n", ["1", "2"]),
        ("name,2026-03-01\nann,4\n", None),
        ("voter,1,2\nann,3,4\n", None),
        ("hour,6,7,8\nann,3,4,5\n", None),
        ("1,2,3\na,b,c\nb,a,c\n", None),  # names of places
        ("country,2019,2020\nA,1,2\n", None),
        ("country,2019\nA,1\n", None),
        ("name,0\na,x\n", None),
    ],
)
def test_a_table_without_a_line_of_names_loses_no_row(tmp_path: Path, text: str, header: list[str] | None) -> None:
    rows, said = told_of(write(tmp_path / "a.csv", text))
    lines = text.splitlines()[0 if header else 1 :]
    mark = ";" if ";" in text else ","
    names = header or text.splitlines()[0].split(mark)
    cells = [line.replace(",", ".") if mark == ";" else line.replace("$", "") for line in lines]
    assert rows == [dict(zip(names, line.split(mark))) for line in cells]
    assert said[:1] == ([f"no line of names: its columns are called {', '.join(names)}"] if header else [])


def test_a_first_line_of_texts_that_stand_again_below_is_asked_about(tmp_path: Path) -> None:
    _, said = told_of(write(tmp_path / "a.csv", "mini,red,small\ngolf,blue,small\npolo,red,large\n"))
    assert said == [
        "its first line is taken for names of columns, though red, small stand again below: if it is a row, write a "
        "line of names above it"
    ]
    assert told_of(write(tmp_path / "a.csv", "name,colour\nmini,red\ngolf,red\n"))[1] == []


def test_the_names_of_a_series_of_a_data_frame_are_no_row(tmp_path: Path) -> None:
    assert read_table(write(tmp_path / "a.csv", ",0\nann,5\nbob,3\n")) == [
        {"column 1": "ann", "0": "5"},
        {"column 1": "bob", "0": "3"},
    ]


@pytest.mark.parametrize("mark", [",", ";", "\t", "|", "::"])
def test_separators(tmp_path: Path, mark: str) -> None:
    text = "".join(mark.join(cells) + "\n" for cells in (["user", "item", "n"], ["ann", "a b", "3"], ["bob", "c", "4"]))
    want = {"user": ["ann", "bob"], "item": ["a b", "c"], "n": ["3", "4"]}
    assert columns_of(read_table(write(tmp_path / "a", text))) == want
    assert columns_of(read_table(write(tmp_path / "a", text.encode("utf-16")))) == want


def test_a_text_that_is_not_utf8_names_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^a b\.csv:2: text: expected UTF-8, got byte 0xe9 .*: if Windows wrote it, "):
        read_table(write(tmp_path / "a b.csv", b"a,b\ncaf\xe9,1\n"))
    with pytest.raises(ValueError, match=r"iconv -f WINDOWS-1252 -t UTF-8 'a b\.csv' > 'a b-utf8\.csv'$"):
        read_table(tmp_path / "a b.csv")


def test_lists_in_cells_and_what_spreadsheets_keep_as_text(tmp_path: Path) -> None:
    text = 'id,v,w,isbn,note\na,"[1, 2]","[\'wifi\', \'bath\']","=""0123""",[sic]\nb,"[3, 4]",[],"=""0456""",x\n'
    rows, said = told_of(write(tmp_path / "a.csv", text))
    assert rows == [
        {"id": "a", "v": [1, 2], "w": ["wifi", "bath"], "isbn": "0123", "note": "[sic]"},
        {"id": "b", "v": [3, 4], "w": [], "isbn": "0456", "note": "x"},
    ]
    assert said == ["lists: v, w"]


def test_ids_that_a_data_frame_made_floats(tmp_path: Path) -> None:
    assert columns_of(read_table(write(tmp_path / "a.csv", "id,n\n1.0,0.5\n2.0,1.0\n"))) == {
        "id": ["1", "2"],
        "n": ["0.5", "1.0"],
    }


@pytest.mark.parametrize("indent", [None, 1])
def test_a_json_list_is_a_table(tmp_path: Path, indent: int | None) -> None:
    rows = [{"name": "a", "hp": 100}, {"name": "b", "hp": 90}]
    assert read_table(write(tmp_path / "a.json", json.dumps(rows, indent=indent))) == rows
    assert read_table(write(tmp_path / "a.json", json.dumps({"made": "x", "rows": rows}, indent=1))) == rows
    with pytest.raises(ValueError, match=r"^a\.json: record 2: expected an object, got 3$"):
        read_table(write(tmp_path / "a.json", '[{"a": 1}, 3]'))
