"""Tables as rows: which format, what becomes of cells, what is refused and where."""

import builtins
import datetime
import gzip
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.data.table import open_table, read_table
from heedful.features import infer
from written import write

CARS = 'name,horsepower,"full, name"\nAda,50,NA\n Bug , 1.5,"x ""y""\nz"\n\nCub,nan,null\n'
ROWS = [
    {"name": "Ada", "horsepower": "50", "full, name": "NA"},
    {"name": "Bug", "horsepower": "1.5", "full, name": 'x "y"\nz'},
    {"name": "Cub", "horsepower": None, "full, name": "null"},
]
LINES = '{"id": "a", "n": 1.5, "v": [1, 2], "none": null}\n\n  \t\n{"id": "ü", "b": true}\r\n'
RECORDS: list[dict[str, Any]] = [{"id": "a", "n": 1.5, "v": [1, 2], "none": None}, {"id": "ü", "b": True}]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet", "a"])
def test_the_content_tells_the_format_and_not_the_name(tmp_path: Path, name: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / name
    for bom in ("", "\ufeff"):
        for pack in (bytes, gzip.compress):
            assert read_table(write(path, pack((bom + CARS).encode()))) == ROWS
            assert read_table(write(path, pack((bom + "\n " + LINES).encode()))) == RECORDS
    parquet.write_table(pyarrow.table({"id": ["a", "b"], "n": [1.5, None]}), path)
    rows = [{"id": "a", "n": 1.5}, {"id": "b", "n": None}]
    assert read_table(path) == rows
    assert read_table(str(write(path, gzip.compress(path.read_bytes())))) == rows


@pytest.mark.parametrize("line", ["sep=;\r\n", '"sep=;"\n', "\ufeffSep=;\n"])
def test_a_first_line_that_says_the_separator(tmp_path: Path, line: str) -> None:
    text = f"{line}name, short;n\nAda;1\n"
    assert read_table(write(tmp_path / "a.csv", text)) == [{"name, short": "Ada", "n": "1"}]
    assert open_table(tmp_path / "a.csv").located()[0][0] == "a.csv:3"


def test_what_parquet_may_hold(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    day = datetime.date(2020, 1, 31)
    table = pyarrow.table(
        {
            "n": [1, 2**60, None],
            "x": [0.5, math.nan, -1e308],
            "b": [True, False, None],
            "t": ["ü", "", None],
            "v": [[1.0, 2.0], [], None],
            "day": [day, day, None],
            "levels": pyarrow.array(["a", "b", "a"]).dictionary_encode(),
            "exact": pyarrow.array([1, 2, None], pyarrow.decimal128(10, 2)),
        }
    )
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path)
    assert read_table(path) == [
        {"n": 1, "x": 0.5, "b": True, "t": "ü", "v": [1, 2], "day": day.isoformat(), "levels": "a", "exact": 1.0},
        {"n": 2**60, "x": None, "b": False, "t": "", "v": [], "day": day.isoformat(), "levels": "b", "exact": 2.0},
        {"n": None, "x": -1e308, "b": None, "t": None, "v": None, "day": None, "levels": "a", "exact": None},
    ]
    assert type(read_table(path)[0]["exact"]) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a: header: expected names of columns, got an empty file"),
        ("\n \n", "a: header: expected names of columns, got an empty file"),
        ("a,b\n", "a: rows: expected at least one below the header, got none"),
        ("a,b,a\n1,2,3\n", "a:1: header: expected each name once, got 'a' 2 times"),
        ("a,b\n1,2\n\n3,4,5\n", "a:4: cells: expected 2 as in the header, got 3"),
        ('a,b\n"x\ny",2\n3\n', "a:4: cells: expected 2 as in the header, got 1"),
        ('a,b\n1,2\n3,"4"5\n', "a:3: text: expected CSV, got ',' expected after '\"'"),
        ('a,b\n1,"2\n', "a:2: text: expected CSV, got unexpected end of data"),
        ("a" * 200_000, "a:1: text: expected CSV, got field larger than field limit (131072)"),
        (b"a,b\n1,\xe9\n", "a:2: text: expected UTF-8, got byte 0xe9"),
        (gzip.compress(CARS.encode(), mtime=0)[:-1], "a: gzip: expected a whole stream"),
        (gzip.compress(LINES.encode(), mtime=0)[:-1], "a: gzip: expected a whole stream"),
        (b"\x1f\x8bnothing", "a: gzip: expected a whole stream"),
        ('{"a": 1}\n[1]\n', "a:2: line: expected one JSON object, got [1]"),
        (b"PK\x03\x04\x14\0", "a: text: expected CSV in UTF-8, got a spreadsheet or a zip: save it as CSV UTF-8"),
        ("a,b\n1,2\n".encode("utf-16-be"), "a:1: text: expected CSV in UTF-8, got a zero byte"),
        ("sep=;\na;b\n1;2;3\n", "a:3: cells: expected 2 as in the header, got 3"),
        ("sep=;\n", "a: header: expected names of columns, got an empty file"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(ValueError) as error:
        read_table(write(tmp_path / "a", text))
    assert str(error.value).startswith(message)


def test_parquet_that_is_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"a": [1, 2]}), path)
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:20], b"PAR1", whole[:4] + bytes(len(whole) - 12) + whole[-8:]):
        with pytest.raises(ValueError, match=r"^a\.parquet: content: expected a whole Parquet file, got "):
            read_table(write(path, damaged))
    with pytest.raises(ValueError, match=r"^a\.parquet: gzip: expected a whole stream, got "):
        read_table(write(path, gzip.compress(whole)[:-1]))
    parquet.write_table(pyarrow.table({"a": pyarrow.array([], pyarrow.int64())}), path)
    with pytest.raises(ValueError, match=r"^a\.parquet: rows: expected at least one, got none$"):
        read_table(path)
    parquet.write_table(pyarrow.Table.from_arrays([pyarrow.array([1])] * 2, ["a", "a"]), path)
    with pytest.raises(ValueError, match=r"^a\.parquet: columns: expected each name once, got 'a' 2 times$"):
        read_table(path)
    latin = pyarrow.array([b"a", b"\xff"]).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"a": latin}), path)
    for read in (read_table, lambda path: open_table(path).columns(["a"])):
        with pytest.raises(ValueError, match=r"^a\.parquet: row 2: a: expected a text in UTF-8, got byte 0xff$"):
            read(path)


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return find(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    for name in [name for name in sys.modules if name.startswith("pyarrow")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r"^a: .* not installed: pip install '\.\[parquet\]'$"):
        read_table(write(tmp_path / "a", b"PAR1"))
    assert read_table(write(tmp_path / "a", CARS)) == ROWS


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.csv: no such file; nothing is fetched"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(IsADirectoryError, match="expected a file, got a folder"):
        read_table(tmp_path)


def test_real_films_become_features(data_folder: Path, tmp_path: Path) -> None:
    path = data_folder / "movielens-1m" / "movies.dat"
    if not path.is_file():
        pytest.skip(f"MovieLens 1M is not here: put movies.dat into {path.parent}")
    lines = path.read_text("latin-1").replace('"', "'").replace("\t", " ").replace("::", "\t")
    rows = read_table(write(tmp_path / "films.csv", "film\ttitle\tgenres\n" + lines))
    assert len(rows) == 3883
    encoding = infer(rows, kinds={"title": "text"})
    assert encoding.identifier == "film"  # the first column, whole numbers, is more of a name than a title
    assert {c.name: c.kind for c in encoding.columns} == {"film": "ignored", "title": "text", "genres": "tags"}
    genres = [name for name in encoding.names if name.startswith("genres=")]
    assert len(genres) == 18
    assert {"genres=Comedy", "genres=Romance"} < set(genres)
    assert "title~the" in encoding.names  # the most frequent word is the first of its bucket for certain
    X = encoding.encode_many(rows)
    np.testing.assert_allclose((X[:, :64].astype(float) ** 2).sum(axis=1), 1, atol=1e-6)
    assert X[:, 64:].sum(axis=1).tolist() == [row["genres"].count("|") + 1 for row in rows]
