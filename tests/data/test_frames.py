"""Tables in memory, read as those of files are; an index that pandas wrote; rows as data frames."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from heedful import Loop, infer
from heedful.data.frames import frame_of, rows_in
from heedful.data.table import open_table, read_table

COLUMNS = {"name": ["a", "b", "c"], "price": [1.5, float("nan"), 3.0], "year": [1960, 1970, 1980]}
ROWS = [
    {"name": "a", "price": 1.5, "year": 1960},
    {"name": "b", "price": None, "year": 1970},
    {"name": "c", "price": 3.0, "year": 1980},
]
FRAME = pd.DataFrame(COLUMNS)


class Streams:
    """What can do nothing but give an Arrow stream, as DuckDB's results and others do."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


class Frame:
    """A frame as polars has it, to whoever asks no more of it than we do: where polars is not installed."""

    def __init__(self, columns: dict[str, list[Any]]) -> None:
        self.columns, self._columns = list(columns), columns

    def to_dicts(self) -> list[dict[str, Any]]:
        return [dict(zip(self._columns, row)) for row in zip(*self._columns.values())]


def polars_frame(columns: dict[str, list[Any]]) -> Any:
    if importlib.util.find_spec("polars") is None:
        return Frame(columns)
    return importlib.import_module("polars").DataFrame(columns)


TABLES = [FRAME, polars_frame(COLUMNS), pyarrow.table(COLUMNS), Streams(pyarrow.table(COLUMNS))]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{type(table).__module__}.{type(table).__name__}")
def test_every_frame_is_read_as_the_rows_that_it_has(table: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows_in("rows", table) == ROWS
        assert infer(table) == infer(ROWS)


def test_what_is_no_table_is_left_as_it_is() -> None:
    for given in (ROWS, tuple(ROWS), "rows", None, {"name": ["a"]}, iter(ROWS)):
        assert rows_in("rows", given) is given


def test_cells_are_what_json_would_hold() -> None:
    frame = pd.DataFrame(
        {
            "id": pd.array([1, None], dtype="Int64"),
            "kind": pd.Categorical(["x", None]),
            "day": pd.to_datetime(["2026-01-31", None]),
            "exact": [Decimal("1.25"), None],
            "vector": [np.array([1.0, 2.0]), np.array([3.0, 4.0])],
            "good": [True, False],
        }
    )
    first, second = rows_in("rows", frame)
    assert first == {
        "id": 1, "kind": "x", "day": "2026-01-31T00:00:00", "exact": 1.25, "vector": [1.0, 2.0], "good": True,
    }  # fmt: skip
    assert second == {"id": None, "kind": None, "day": None, "exact": None, "vector": [3.0, 4.0], "good": False}
    assert type(first["exact"]) is float
    assert type(first["vector"]) is list


def test_an_index_with_a_name_is_a_column_and_another_is_left_out() -> None:
    assert rows_in("rows", FRAME.set_index("name")) == ROWS
    assert rows_in("rows", FRAME.set_index(["name", "year"])) == [
        {"name": row["name"], "year": row["year"], "price": row["price"]} for row in ROWS
    ]
    assert rows_in("rows", FRAME[FRAME.year > 1960]) == ROWS[1:]
    with pytest.warns(UserWarning, match="items: the index has no name and is left out; reset_index"):
        assert rows_in("items", FRAME.set_axis(["x", "y", "z"])) == ROWS
    with pytest.raises(ValueError, match=r"items: index: expected names that no column has, got \['year'\]"):
        rows_in("items", FRAME.set_axis(pd.Index([1, 2, 3], name="year")))


def test_a_column_that_is_there_twice_is_refused() -> None:
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(ValueError, match="items: columns: expected each name once, got 'a' 2 times"):
        rows_in("items", twice)


def test_what_only_arrow_can_read_needs_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match="items: reading Streams needs pyarrow, which is not installed"):
        rows_in("items", Streams(TABLES[2]))


# ---------------------------------------------------------------------------- an index that pandas wrote


def written(tmp_path: Path, kind: str) -> Path:
    """A table as pandas writes it with its index: once, or read back and written again."""
    path = tmp_path / f"cars.{'parquet' if kind == 'parquet' else 'jsonl' if kind == 'lines' else 'csv'}"
    if kind == "parquet":
        pyarrow.parquet.write_table(pyarrow.table({**COLUMNS, "__index_level_0__": [0, 1, 2]}), path)
    elif kind == "lines":
        FRAME.to_csv(path)
        pd.read_csv(path).to_json(path, orient="records", lines=True)
    else:
        FRAME.to_csv(path)
        if kind == "twice":
            pd.read_csv(path).to_csv(path)
    return path


@pytest.mark.parametrize("kind", ["once", "twice", "parquet", "lines"])
def test_an_index_that_pandas_wrote_is_left_out_and_told(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    with pytest.warns(
        UserWarning, match=rf"{path.name}: the column .* numbers the rows, as pandas writes an index"
    ) as got:
        rows = read_table(path)
    assert [list(row) for row in rows] == [["name", "price", "year"]] * 3
    assert [row["name"] for row in rows] == ["a", "b", "c"]
    assert len(got) == (2 if kind == "twice" else 1)
    with pytest.warns(UserWarning, match="as pandas writes an index"):
        assert open_table(path).located()[0][0] in (f"{path.name}:2", f"{path.name}: row 1", f"{path.name}:1")


def test_a_frame_that_was_read_from_such_a_file_has_no_index_either(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="items: the column 'Unnamed: 0' numbers the rows"):
        assert rows_in("items", pd.read_csv(written(tmp_path, "once"))) == ROWS


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (",price\n0,1\n2,3\n", ["column 1", "price"]),  # not the numbers of the rows
        (",price\n1,1\n2,3\n", ["column 1", "price"]),
        ("n,price\n0,1\n1,3\n", ["n", "price"]),  # has a name
        ("price,\n1,0\n3,1\n", ["price", "column 2"]),  # not the first
        ('"",""\n0,0\n1,1\n', None),  # nothing else; no names at all
        ("Unnamed: 0\n0\n1\n", ["Unnamed: 0"]),
    ],
)
def test_what_is_no_index_stays(tmp_path: Path, text: str, columns: list[str] | None) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    if columns is None:
        with pytest.raises(ValueError, match="header: expected names of columns"):
            read_table(path)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(read_table(path)[0]) == columns


# ---------------------------------------------------------------------------- in a loop, and out again


def test_a_loop_takes_frames_where_it_takes_items(tmp_path: Path) -> None:
    with Loop.create(tmp_path / "a.heedful", encoding=infer(FRAME), items=FRAME) as loop:
        assert loop.items == ["a", "b", "c"]
        assert loop.put_items(FRAME).put == 0
        assert loop.put_items(polars_frame({"name": ["d"], "price": [4.0], "year": [1990]})).put == 1
        for wrong in (FRAME["name"].to_dict(), np.array("d"), 3):
            with pytest.raises(ValueError, match=r"items: expected a list of objects, got"):
                loop.put_items(wrong)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match=r"events: expected a list of objects, got"):
                loop.feedback_many(wrong)  # type: ignore[arg-type]


def test_rows_become_the_frame_that_is_named() -> None:
    columns = {"item": ["a", "b"], "value": [1.0, None]}
    made = frame_of(columns)
    assert isinstance(made, pd.DataFrame)
    assert made["item"].tolist() == ["a", "b"]
    assert np.isnan(made["value"][1])
    assert frame_of(columns, "pyarrow").to_pydict() == columns
    if importlib.util.find_spec("polars") is not None:
        assert rows_in("rows", frame_of(columns, "polars")) == [
            {"item": "a", "value": 1.0},
            {"item": "b", "value": None},
        ]
    with pytest.raises(ValueError, match="package: expected pandas, polars, pyarrow, got 'numpy'"):
        frame_of(columns, "numpy")


def test_a_frame_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ModuleNotFoundError, match="to_frame needs polars, which is not installed: pip install polars"):
        frame_of({"a": [1]}, "polars")


def test_dates_of_parquet_are_texts(tmp_path: Path) -> None:
    table = pyarrow.table({"day": [date(2026, 1, 31)], "at": [datetime(2026, 1, 31, 12)], "n": [1]})
    pyarrow.parquet.write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet") == [{"day": "2026-01-31", "at": "2026-01-31T12:00:00", "n": 1}]
