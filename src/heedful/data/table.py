"""Reader of tables as rows or columns: CSV, JSON lines or Parquet; the content decides which."""

import csv
import io
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import compress, islice
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.files import MISSING, cut_repr, number_in, numbered_lines, open_uncompressed
from heedful.data.frames import cell, index_of, warn_index, without_index
from heedful.data.jsonl import read_lines

_OTHERS = (
    (b"PK\x03\x04", "a spreadsheet or a zip"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
"""Files that spreadsheets write and that are not CSV: their first bytes, and what they are."""
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_AT_ONCE = 1_024
"""The number of records of a CSV that are held as text at a time: so few that they stay in the processor's cache."""
_PLAIN = {str, int, float, type(None)}
"""Types of cells that can be compared by ==. Others are not: to Python, True equals 1."""


class CodedColumn(NamedTuple):
    """A column of r cells as its distinct `values`, in order of appearance, and for each cell the index of its value,
    `codes` (r,).

    Values that cannot be compared safely, such as lists, may occur more than once."""

    values: list[Any]
    codes: npt.NDArray[np.int64]


class Table(NamedTuple):
    """An open table: its column names (`header`), and two functions that read it when they are called.

    columns(names) returns the columns with these names; located() returns all rows as dictionaries, each with its place
    NAME:LINE for messages.
    """

    header: list[str]
    columns: Callable[[Sequence[str]], list[CodedColumn]]
    """returns the columns with these names"""
    located: Callable[[], list[tuple[str, dict[str, Any]]]]
    """returns (place for messages, row) of each row, as `read_located_rows` does"""


def read_table(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """Read the rows of a table as dictionaries: CSV, JSON lines or Parquet, plain or gzip; the content tells which.

    CSV: separated by comma, semicolon or tab, with a header; cells are text, and a missing one (empty, NA, NaN, null in
    any case) is None. JSON lines: one object a line, in UTF-8; blank lines are skipped. Parquet: needs pyarrow; dates
    become text. A column of row numbers that pandas wrote as an index is left out, with a warning.

    Raise FileNotFoundError if the path does not exist; ModuleNotFoundError, with the command that installs it, if
    pyarrow is needed and missing. Raise ValueError, as `NAME:LINE: ...` if one line is to blame, for a file that is
    none of the three, has no rows, is damaged, names a column twice, or has NaN or an infinite number in JSON.
    """
    return [row for _, row in open_table(path).located()]


def read_located_rows(path: str | PathLike[str]) -> list[tuple[str, dict[str, Any]]]:
    """Read the rows of a table as `read_table` does; return (place, {column: cell}) of each, where the place is
    "NAME:LINE" or, in a Parquet file, "NAME: row 3"."""
    return open_table(path).located()


def open_table(path: str | PathLike[str]) -> Table:
    """Open the table at `path` and read its header; the rest is read when columns or rows are asked for.

    The errors are those of `read_table`, raised now or then."""
    path = Path(path)
    with open_uncompressed(path) as file:
        start = file.peek(4096)[:4096]
    if start.startswith(b"PAR1"):
        return _parquet(path)
    other = next((told for mark, told in _OTHERS if start.startswith(mark)), None)
    if other is not None:
        raise ValueError(f"{path.name}: text: expected CSV in UTF-8, got {other}: save it as CSV UTF-8")
    if b"\0" in start.partition(b"\n")[0]:
        raise ValueError(
            f"{path.name}:1: text: expected CSV in UTF-8, got a zero byte: is it UTF-16, or no text at all?"
        )
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first == b"[":
        raise ValueError(f"{path.name}: text: expected CSV, Parquet or one JSON object a line, got a JSON array")
    if first == b"{":
        return _json_lines(path)
    return _csv(path)


class _Unhashable:
    """A wrapper of a cell whose type is not in _PLAIN, equal only to itself."""

    def __init__(self, value: object) -> None:
        self.value = value


class _Coder:
    """Builder of a `CodedColumn` (distinct values, and an index for each cell) from cells that arrive in parts."""

    def __init__(self) -> None:
        self._index: defaultdict[Any, int] = defaultdict()
        self._index.default_factory = self._index.__len__  # a new value gets the next number
        self._parts: list[npt.NDArray[np.int64]] = []

    def add(self, cells: list[Any]) -> None:
        if not set(map(type, cells)) <= _PLAIN:
            cells = [cell if type(cell) in _PLAIN else _Unhashable(cell) for cell in cells]
        self._parts.append(np.fromiter(map(self._index.__getitem__, cells), np.int64, len(cells)))

    def column(self) -> CodedColumn:
        values = [value.value if isinstance(value, _Unhashable) else value for value in self._index]
        return CodedColumn(values, np.concatenate(self._parts))


def _code(cells: list[Any]) -> CodedColumn:
    coder = _Coder()
    coder.add(cells)
    return coder.column()


def _json_lines(path: Path) -> Table:
    rows = []
    for line in read_lines(path):
        if line.record is None:
            raise ValueError(line.error)
        rows.append((f"{path.name}:{line.number}", line.record))
    where, records = zip(*rows)
    return table_of(list(zip(where, without_index(path.name, records))))


def table_of(placed: list[tuple[str, dict[str, Any]]]) -> Table:
    """Return rows in memory as a `Table`, which others read from files.

    `placed` are pairs (place, row): the place is a text for error messages, such as "NAME:LINE", and the row is {column
    name: cell}. The header has every column that occurs in any row, in order of first appearance; a cell that a row
    lacks is None."""

    def columns(names: Sequence[str]) -> list[CodedColumn]:
        return [_code([row.get(name) for _, row in placed]) for name in names]

    return Table(list(dict.fromkeys(name for _, row in placed for name in row)), columns, lambda: placed)


def take_rows(table: Table, kept: npt.NDArray[np.bool_]) -> Table:
    """Return the `table` with those of its r rows for which `kept` (r,) is True, in their places in the file."""

    def columns(names: Sequence[str]) -> list[CodedColumn]:
        found = []
        for values, codes in table.columns(names):
            there, first, which = np.unique(codes[kept], return_index=True, return_inverse=True)
            order = first.argsort()  # values in order of appearance
            place = np.empty_like(order)
            place[order] = np.arange(order.size)
            found.append(CodedColumn([values[k] for k in there[order].tolist()], place[which]))
        return found

    return Table(table.header, columns, lambda: list(compress(table.located(), kept.tolist())))


def _parquet(path: Path) -> Table:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        told = "reading Parquet needs pyarrow, which is not installed: pip install 'heedful[parquet]'"
        raise ModuleNotFoundError(f"{path.name}: {told}", name="pyarrow") from None
    with open_uncompressed(path) as file:
        try:
            table = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(file.read())).read()
        except (pyarrow.ArrowException, OSError, EOFError, zlib.error) as error:
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"{path.name}: content: expected a whole Parquet file, got {told}") from None
    name, times = Counter(table.column_names).most_common(1)[0] if table.column_names else ("", 1)
    if times > 1:
        raise ValueError(f"{path.name}: columns: expected each name once, got {cut_repr(name)} {times} times")
    if table.num_rows == 0:
        raise ValueError(f"{path.name}: rows: expected at least one, got none")

    def cells(name: str) -> list[Any]:
        return [cell(value) for value in table.column(name).to_pylist()]

    names = table.column_names
    left = index_of(names, lambda j: cells(names[j]))
    warn_index(path.name, [names[j] for j in left])
    table = table.select([name for j, name in enumerate(names) if j not in left])

    def columns(names: Sequence[str]) -> list[CodedColumn]:
        return [_code(cells(name)) for name in names]

    def read_rows() -> list[tuple[str, dict[str, Any]]]:
        rows = [{key: cell(value) for key, value in row.items()} for row in table.to_pylist()]
        return [(f"{path.name}: row {i}", row) for i, row in enumerate(rows, 1)]

    return Table(table.column_names, columns, read_rows)


# ---------------------------------------------------------------------------- CSV


def _csv(path: Path) -> Table:
    @cache
    def read_rows() -> list[tuple[str, dict[str, Any]]]:
        header, rows, _ = _csv_rows(path)
        return [(f"{path.name}:{line}", dict(zip(header, map(_text_cell, cells)))) for line, cells in rows]

    def cells(j: int) -> list[str]:
        [(values, codes)] = _csv_columns(path, [j], len(called))
        return [values[k] for k in codes.tolist()]

    try:
        with _text(path) as lines:
            called = _strip(next(_records(lines, *_delimiter(path)), []))
        names = _header(path, 1, called)
        left = index_of(called, cells)
    except (csv.Error, ValueError):
        _csv_rows(path)  # raises an error that says where
        raise
    warn_index(path.name, [called[j] for j in left])

    def columns(expected: Sequence[str]) -> list[CodedColumn]:
        try:
            found = _csv_columns(path, [names.index(name) for name in expected], len(names))
        except (csv.Error, ValueError):
            read_rows()  # raises an error that says where
            raise
        return [CodedColumn([_text_cell(cell.strip()) for cell in values], codes) for values, codes in found]

    return Table([name for j, name in enumerate(names) if j not in left], columns, read_rows)


def _strip(record: list[str]) -> list[str]:
    return [cell.strip() for cell in record]


def _text_cell(cell: str) -> str | None:
    return None if cell.lower() in MISSING else cell


@contextmanager
def _text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open the file at `path`, plain or gzip, as lines of UTF-8 text; a context manager.

    While it is read, raise UnicodeDecodeError for bytes that are not UTF-8, ValueError for damaged gzip data."""
    with open_uncompressed(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n") as lines:
        yield lines


def _delimiter(path: Path) -> tuple[str, int]:
    """Return (separator of cells, number of lines before the header) of the CSV at `path`.

    The separator is the mark that gives the header the most cells, unless the first line names it ("sep=;"), as Excel
    writes."""
    with _text(path) as lines:
        said = _SEPARATOR.fullmatch(lines.readline())
    if said is not None:
        return said[1], 1
    first: dict[str, list[str]] = {}
    for mark in ",;\t":
        with _text(path) as lines:
            first[mark] = next(filter(None, csv.reader(lines, delimiter=mark)), [])
    return max(first, key=lambda mark: len(first[mark])), 0


def _records(lines: io.TextIOWrapper, delimiter: str, before: int) -> Iterator[list[str]]:
    """Return an iterator over the records of a CSV, lists of cells, from its open `lines`; blank ones and the first
    `before` lines are skipped. `delimiter` separates cells."""
    for _ in range(before):
        lines.readline()
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    return (record for record in reader if len(record) > 1 or (record and record[0].strip()))


def _csv_columns(path: Path, at: list[int], cells: int) -> list[CodedColumn]:
    """Return the columns of a CSV at the positions `at`, cells not stripped, reading a part at a time.

    `cells`: number of cells of the header. If the file is damaged, raise the error that says why, without its place.
    Raise csv.Error if a row has another number of cells than the header, or if there is no row."""
    coders = [_Coder() for _ in at]
    with _text(path) as lines:
        records = _records(lines, *_delimiter(path))
        next(records)
        part = list(islice(records, _AT_ONCE))
        if not part:
            raise csv.Error("no rows")
        while part:
            if set(map(len, part)) != {cells}:
                raise csv.Error("other cells than the header")
            for j, coder in zip(at, coders):
                coder.add([record[j] for record in part])
            part = list(islice(records, _AT_ONCE))
    return [coder.column() for coder in coders]


def csv_table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return (column names, rows) of the CSV at `path`; each row is (line on which it starts, its cells), and there is
    at least one.

    A column without a name is called "column 2" by its place; an index that pandas wrote is left out, with a warning.
    Raise ValueError as `read_table` does."""
    names, rows, left = _csv_rows(path)
    warn_index(path.name, left)
    return names, rows


def _csv_rows(path: Path) -> tuple[list[str], list[tuple[int, list[str]]], list[str]]:
    """Return (column names, rows, names of columns left out) of the CSV at `path`; the first two are those of
    `csv_table`."""
    (start, called), *rows = _csv_records(path)
    names = _header(path, start, called)
    if not rows:
        raise ValueError(f"{path.name}: rows: expected at least one below the header, got none")
    for line, cells in rows:
        if len(cells) != len(names):
            expected = f"{len(names)} as in the header"
            raise ValueError(f"{path.name}:{line}: cells: expected {expected}, got {len(cells)}")
    left = index_of(called, lambda j: [cells[j] for _, cells in rows])
    kept = [j for j in range(len(names)) if j not in left]
    if left:
        rows = [(line, [cells[j] for j in kept]) for line, cells in rows]
    return [names[j] for j in kept], rows, [called[j] for j in left]


def _header(path: Path, start: int, cells: list[str]) -> list[str]:
    if all(number_in(cell) is not None for cell in cells):
        raise ValueError(
            f"{path.name}:{start}: header: expected names of columns, got {cut_repr(cells[0] if cells else '')}"
        )
    header = [name or f"column {j}" for j, name in enumerate(cells, 1)]
    name, times = Counter(header).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{path.name}:{start}: header: expected each name once, got {cut_repr(name)} {times} times")
    return header


def _csv_records(path: Path) -> list[tuple[int, list[str]]]:
    """Return (line on which it starts, stripped cells) of each record of a CSV that is not blank, at least one."""
    lines = [line for _, line in numbered_lines(path)]
    records: list[tuple[int, list[str]]] = []
    end = before = 0
    try:
        delimiter, end = _delimiter(path)
        before = end
        reader = csv.reader(lines[end:], delimiter=delimiter, strict=True)
        for record in reader:
            cells = _strip(record)
            if cells not in ([], [""]):
                records.append((end + 1, cells))
            end = reader.line_num + before
    except csv.Error as error:
        raise ValueError(f"{path.name}:{end + 1}: text: expected CSV, got {error}") from None
    if not records:
        raise ValueError(f"{path.name}: header: expected names of columns, got an empty file")
    return records
