"""A table of any kind as rows: CSV, JSON lines or Parquet, told apart by what is in the file."""

import csv
import re
from collections import Counter
from os import PathLike
from pathlib import Path
from typing import Any

from heedful.data.files import GZIP_ERRORS, MISSING, number_in, numbered_lines, shown, uncompressed
from heedful.data.frames import cell, index_of, tell_index, without_index
from heedful.data.lines import read_lines

_OTHERS = (
    (b"PK\x03\x04", "a spreadsheet or a zip"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
"""What spreadsheets write that is no CSV, by how it begins."""
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


def read_table(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """Read the rows of a table: CSV, JSON lines or Parquet, plain or gzip; the content tells which, not the name.

    CSV: as `load_catalogue` reads it; cells stay text, and a missing one (empty, NA, NaN, null in any case) is None.
    JSON lines: one object a line, in UTF-8; blank lines are passed over. Parquet: needs pyarrow; dates are texts. A
    first column that numbers the rows from 0 and has no name, as pandas writes an index, is left out with a warning.

    FileNotFoundError for a path that does not exist; ModuleNotFoundError, with the command that installs it, where
    pyarrow is needed and missing. ValueError, as `NAME:LINE: ...` where one line is to blame, for a file that is none
    of the three, has no rows, is damaged, names a column twice, or holds NaN or an infinite number in JSON.
    """
    return [row for _, row in placed_rows(path)]


def placed_rows(path: str | PathLike[str]) -> list[tuple[str, dict[str, Any]]]:
    """The rows of `read_table`, each with where it is from: NAME:LINE, or "NAME: row 3" of a Parquet file."""
    path = Path(path)
    with uncompressed(path) as file:
        try:
            start = file.peek(4096)[:4096]
        except GZIP_ERRORS as error:
            raise ValueError(f"{path.name}: gzip: wanted a whole stream, got {error}") from None
    if start.startswith(b"PAR1"):
        return _without_index(path, _parquet(path))
    other = next((told for mark, told in _OTHERS if start.startswith(mark)), None)
    if other is not None:
        raise ValueError(f"{path.name}: text: wanted CSV in UTF-8, got {other}: save it as CSV UTF-8")
    first = start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if first == b"[":
        raise ValueError(f"{path.name}: text: wanted CSV, Parquet or one JSON object a line, got a JSON array")
    if first == b"{":
        return _without_index(path, _json_lines(path))
    header, rows = csv_table(path)
    return [
        (f"{path.name}:{line}", {name: None if cell.lower() in MISSING else cell for name, cell in zip(header, cells)})
        for line, cells in rows
    ]


def _without_index(path: Path, placed: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    where, rows = zip(*placed)
    return list(zip(where, without_index(path.name, rows)))


def _json_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    rows = []
    for line in read_lines(path):
        if line.record is None:
            raise ValueError(line.error)
        rows.append((f"{path.name}:{line.number}", line.record))
    return rows


def _parquet(path: Path) -> list[tuple[str, dict[str, Any]]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        told = "reading Parquet needs pyarrow, which is not installed: pip install 'heedful[parquet]'"
        raise ModuleNotFoundError(f"{path.name}: {told}", name="pyarrow") from None
    with uncompressed(path) as file:
        try:
            table = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(file.read())).read()
        except (pyarrow.ArrowException, OSError, *GZIP_ERRORS) as error:
            told = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ValueError(f"{path.name}: content: wanted a whole Parquet file, got {told}") from None
    name, times = Counter(table.column_names).most_common(1)[0] if table.column_names else ("", 1)
    if times > 1:
        raise ValueError(f"{path.name}: columns: wanted each name once, got {shown(name)} {times} times")
    if table.num_rows == 0:
        raise ValueError(f"{path.name}: rows: wanted at least one, got none")
    rows = [{key: cell(value) for key, value in row.items()} for row in table.to_pylist()]
    return [(f"{path.name}: row {i}", row) for i, row in enumerate(rows, 1)]


def csv_table(path: Path) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Return (names of the columns, (line on which it starts, its cells) of each row) of a CSV; at least one row.

    A column without a name is "column 2" by its place; an index that pandas wrote is left out with a warning.
    ValueError as in `read_table`.
    """
    (start, header), *rows = _csv_records(path)
    if all(number_in(cell) is not None for cell in header):
        raise ValueError(f"{path.name}:{start}: header: wanted names of columns, got {shown(header[0])}")
    names = [name or f"column {j}" for j, name in enumerate(header, 1)]
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{path.name}:{start}: header: wanted each name once, got {shown(name)} {times} times")
    if not rows:
        raise ValueError(f"{path.name}: rows: wanted at least one item below the header, got none")
    for line, cells in rows:
        if len(cells) != len(header):
            wanted = f"{len(header)} as in the header"
            raise ValueError(f"{path.name}:{line}: cells: wanted {wanted}, got {len(cells)}")
    left = index_of(header, lambda j: [cells[j] for _, cells in rows])
    if not left:
        return names, rows
    tell_index(path.name, [header[j] for j in left])
    kept = [j for j in range(len(header)) if j not in left]
    return [names[j] for j in kept], [(line, [cells[j] for j in kept]) for line, cells in rows]


def _csv_records(path: Path) -> list[tuple[int, list[str]]]:
    """Return (line on which it starts, stripped cells) of every record that is not blank; at least one."""
    lines = [line for _, line in numbered_lines(path)]
    records: list[tuple[int, list[str]]] = []
    said = _SEPARATOR.fullmatch(lines[0]) if lines else None
    end = 0 if said is None else 1
    try:
        # The delimiter is the one that makes most of the header, unless the first line says which, as Excel has it.
        first = {mark: next(filter(None, csv.reader(lines, delimiter=mark)), []) for mark in ",;\t"}
        delimiter = max(first, key=lambda mark: len(first[mark])) if said is None else said[1]
        reader = csv.reader(lines[end:], delimiter=delimiter, strict=True)
        for record in reader:
            cells = [cell.strip() for cell in record]
            if cells not in ([], [""]):
                records.append((end + 1, cells))
            end = reader.line_num + (said is not None)
    except csv.Error as error:
        raise ValueError(f"{path.name}:{end + 1}: text: wanted CSV, got {error}") from None
    if not records:
        raise ValueError(f"{path.name}: header: wanted names of columns, got an empty file")
    return records
