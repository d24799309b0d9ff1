"""The one reader of tables: CSV, JSON or Parquet as rows or columns; the content decides which.

Whatever a table is for (items, choices, ratings, impressions, grades), it is read here. What people's tools write
beside the rows is recognised: further headers, empty rows and columns, separators, numbers and missing numbers as
people write them (`written`). What was seen that is unusual is said in a warning.

The file is long because it is one list of what a file of rows may look like, from its bytes to its columns."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import compress, islice, pairwise, zip_longest
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.core.wording import count
from heedful.data.files import content_start, cut_list, is_number, number_in, numbered_lines, open_uncompressed
from heedful.data.frames import cell, index_of, is_index, warn_index, without_index
from heedful.data.json_records import Located, read_batches, read_json, read_parquet
from heedful.data.written import MARKERS, Reading, decimal_mark, describe_readings, value_kind

_OTHERS = (
    (b"PK\x03\x04", "a spreadsheet or a zip"),
    (b"\xd0\xcf\x11\xe0", "an old spreadsheet"),
)
"""Files that spreadsheets write and that are not CSV: their first bytes, and what they are."""
_WIDE = (b"\xff\xfe", b"\xfe\xff")
"""How a text in UTF-16 begins, which spreadsheets call Unicode text."""
_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
_SURVEY = '{"ImportId"'
"""How the cells of the last of three headers begin that a survey writes."""
_MARKS = (";", "\t", "|", "::", ",")
"""What separates cells; of those that make as many cells the first, as a comma may also be that of a number."""
_UNIT = "\x1f"
"""What takes the place of a separator of two characters, since the csv module knows only those of one."""
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
    """An open table: its `name` for messages, its column names (`header`), and two functions that read it when they
    are called.

    columns(names) returns the columns with these names; located() returns all rows as dictionaries, each with its place
    NAME:LINE for messages. `headed`: False if the file does not name its columns, which then are called 1, 2, ....
    """

    name: str
    header: list[str]
    columns: Callable[[Sequence[str]], list[CodedColumn]]
    """returns the columns with these names"""
    located: Callable[[], list[tuple[str, dict[str, Any]]]]
    """returns (place, row) of each row: the place is "NAME:LINE" or, in a Parquet file, "NAME: row 3", for messages"""
    headed: bool = True


def read_table(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """Read the rows of a table as dictionaries: CSV, JSON or Parquet, plain or gzip; the content tells which.

    CSV: in UTF-8 or UTF-16, separated by comma, semicolon, tab, | or ::, or as its first line says ("sep=;"). Cells are
    text, and an empty one is None. Without a line of names its columns are called 1, 2, .... Lines and columns that are
    empty, a header that stands there again, and the further headers of a survey are left out. JSON: one object a line,
    or a list of objects, or an object with one such list. Parquet: needs pyarrow; dates become text. A column of
    row numbers that pandas wrote as an index is left out.

    In a column of numbers as people write them (1.234,50 or $1,234 or 12 %) these become digits with a point, and a
    mark of missing ones (NA, N/A, -, ?, ...) becomes None. Among texts such a mark is a text. In a column of lists, in
    JSON or as Python prints them, they become lists. What is unusual is said in a warning.

    Raise FileNotFoundError if the path does not exist; ModuleNotFoundError, with the command that installs it, if
    pyarrow is needed and missing. Raise ValueError, as `NAME:LINE: ...` if one line is to blame, for a file that is
    none of the three, has no rows, is damaged, names a column twice, or has NaN or an infinite number in JSON.
    """
    return [row for _, row in open_table(path).located()]


def read_records(path: str | PathLike[str]) -> Iterator[Located]:
    """Yield (place, record) of each record in the file at `path`, in order, with the texts in it as they are.

    JSON lines and Parquet are read in constant memory; a JSON list, an object whose field `data` is a list, and CSV
    as a whole. A line of JSON that is such an object counts as the records in it. The content tells which it is.

    Raise ValueError, which begins with the place, for the first record that cannot be read, and for a file without
    records; ModuleNotFoundError, with the command that installs it, if pyarrow is needed and missing; other errors are
    those of `files.open_uncompressed`."""
    path = Path(path)
    start = content_start(path)
    if start.startswith(b"PAR1"):
        records = read_parquet(path)
    elif start.startswith((b"[", b"{")):
        records = read_json(path, "data")
    elif not start:
        raise ValueError(f"{path.name}: content: expected records, got an empty file")
    else:
        records = iter(open_table(path, texts=True).located())
    empty = True
    for record in records:
        empty = False
        yield record
    if empty:
        raise ValueError(f"{path.name}: content: expected records, got none")


def open_table(path: str | PathLike[str], *, texts: bool = False) -> Table:
    """Open the table at `path` and read its header; the rest is read when columns or rows are asked for.

    With `texts`, cells are what somebody wrote, and stay as they are. The errors are those of `read_table`, raised now
    or then."""
    path = Path(path)
    start = content_start(path)
    if start.startswith(b"PAR1"):
        return _readable(_parquet(path), texts)
    other = next((what for mark, what in _OTHERS if start.startswith(mark)), None)
    if other is not None:
        raise ValueError(f"{path.name}: text: expected CSV in UTF-8, got {other}: save it as CSV UTF-8")
    if start.startswith(_WIDE):
        if start.decode("utf-16", "ignore").lstrip()[:1] in ("[", "{"):
            raise ValueError(f"{path.name}: text: expected CSV in UTF-8, got UTF-16: JSON is UTF-8")
    else:
        if b"\0" in start.partition(b"\n")[0]:
            raise ValueError(
                f"{path.name}:1: text: expected CSV in UTF-8, got a zero byte: is it UTF-16, or no text at all?"
            )
        if start.startswith((b"[", b"{")):
            where, rows = zip(*read_json(path, ""))
            return _readable(table_of(list(zip(where, without_index(path.name, rows))), path.name), texts)
    return _csv(path, texts)


def _readable(table: Table, texts: bool) -> Table:
    """Return a table of JSON values whose texts are read as in a CSV, as numbers or lists where a column has them."""
    if texts:
        return table
    readings: dict[str, Reading] = {}

    def columns(names: Sequence[str]) -> list[CodedColumn]:
        coded = table.columns(names)
        for name, (values, _) in zip(names, coded):
            if name not in readings:
                kinds = {type(value) for value in values if value is not None}
                strings = [value for value in values if type(value) is str] if kinds <= {str, int, float} else []
                mixed = ["0"] if len(kinds) > 1 else []  # texts among numbers
                readings[name] = Reading([*strings, *mixed] if strings else [], typed=True)
        _say(table.name, {name: readings[name] for name in names}, warned)
        return [
            CodedColumn([_read(readings[name], value) for value in c.values], c.codes) for name, c in zip(names, coded)
        ]

    def located() -> list[tuple[str, dict[str, Any]]]:
        columns(table.header)
        odd = {name: reading for name, reading in readings.items() if reading.changes}
        if not odd:
            return table.located()
        return [
            (where, {name: _read(odd[name], value) if name in odd else value for name, value in row.items()})
            for where, row in table.located()
        ]

    warned = set[str]()
    return table._replace(columns=columns, located=located)


def _read(reading: Reading, value: Any) -> Any:
    return reading.changes.get(value, value) if type(value) is str else value


def _say(name: str, readings: Mapping[str, Reading], warned: set[str]) -> None:
    """Warn how columns of the table `name` were read where that is unusual, once of each: `warned` are those before."""
    for what in describe_readings({column: reading for column, reading in readings.items() if column not in warned}):
        warn(f"{name}: {what}", stacklevel=5)
    warned.update(readings)


class _Unhashable:
    """A wrapper of a cell whose type is not in _PLAIN, equal only to itself."""

    def __init__(self, value: object) -> None:
        self.value = value


class _Coder:
    """Builder of a `CodedColumn` (distinct values, and an index for each cell) from cells that arrive in parts, all of
    types that can be compared by ==."""

    def __init__(self) -> None:
        self._index: defaultdict[Any, int] = defaultdict()
        self._index.default_factory = self._index.__len__  # a new value gets the next number
        self._parts: list[npt.NDArray[np.int64]] = []

    def add(self, cells: Sequence[Any]) -> None:
        self._parts.append(np.fromiter(map(self._index.__getitem__, cells), np.int64, len(cells)))

    def column(self) -> CodedColumn:
        return CodedColumn(list(self._index), np.concatenate(self._parts))


def _code(cells: list[Any]) -> CodedColumn:
    coder = _Coder()
    coder.add([cell if type(cell) in _PLAIN else _Unhashable(cell) for cell in cells])
    values, codes = coder.column()
    return CodedColumn([value.value if isinstance(value, _Unhashable) else value for value in values], codes)


def table_of(placed: list[tuple[str, dict[str, Any]]], name: str = "") -> Table:
    """Return rows in memory as a `Table`, which others read from files.

    `placed` are pairs (place, row): the place is a text for error messages, such as "NAME:LINE", and the row is {column
    name: cell}; `name` is that of the table in messages. The header has every column that occurs in any row, in order
    of first appearance; a cell that a row lacks is None."""

    def columns(names: Sequence[str]) -> list[CodedColumn]:
        return [_code([row.get(name) for _, row in placed]) for name in names]

    return Table(name, list(dict.fromkeys(column for _, row in placed for column in row)), columns, lambda: placed)


def take_rows(table: Table, chosen: npt.NDArray[np.bool_]) -> Table:
    """Return the `table` with those of its r rows for which `chosen` (r,) is True, in their places in the file."""

    def columns(names: Sequence[str]) -> list[CodedColumn]:
        coded = []
        for values, codes in table.columns(names):
            present, first, which = np.unique(codes[chosen], return_index=True, return_inverse=True)
            order = first.argsort()  # values in order of appearance
            place = np.empty_like(order)
            place[order] = np.arange(order.size)
            coded.append(CodedColumn([values[k] for k in present[order].tolist()], place[which]))
        return coded

    return table._replace(columns=columns, located=lambda: list(compress(table.located(), chosen.tolist())))


def _parquet(path: Path) -> Table:
    batches = list(read_batches(path))
    import pyarrow

    table = pyarrow.Table.from_batches(batches)

    def cells(name: str) -> list[Any]:
        return [cell(value) for value in table.column(name).to_pylist()]

    names = table.column_names
    left = index_of(names, lambda j: cells(names[j]))
    warn_index(path.name, [names[j] for j in left])
    table = table.select([name for j, name in enumerate(names) if j not in left])

    def columns(names: Sequence[str]) -> list[CodedColumn]:
        try:
            return [_code(cells(name)) for name in names]
        except UnicodeDecodeError:
            located()  # raises an error that says where
            raise

    def located() -> list[tuple[str, dict[str, Any]]]:
        return [(where, {name: cell(row[name]) for name in table.column_names}) for where, row in read_parquet(path)]

    return Table(path.name, table.column_names, columns, located)


# ---------------------------------------------------------------------------- CSV


class _Form(NamedTuple):
    """How a CSV is written: separator (`mark`), lines `before` the header, `header` and the `positions` of its columns
    among so many `cells`, records to `skip`, whether it is `headed`, its `decimal` mark; `left` counts records that
    were left out."""

    mark: str
    before: int
    header: list[str]
    positions: list[int]
    cells: int
    skip: list[list[str]]
    headed: bool
    decimal: str
    left: Counter[str]


def _csv(path: Path, texts: bool) -> Table:
    form, warned = _form(path), set[str]()

    def read(values_of: Mapping[str, Iterable[str]]) -> list[dict[str, Any]]:
        """Return what becomes of the texts of columns, by name, and warn of what is unusual."""
        readings = {name: Reading(values, decimal=form.decimal, texts=texts) for name, values in values_of.items()}
        _say(path.name, readings, warned)
        if max(form.left.values()) > 0 and "rows" not in warned:
            warned.add("rows")
            what = ", ".join(count(n, reason) for reason, n in form.left.items() if n > 0)
            warn(f"{path.name}: {what} left out", stacklevel=5)
        return [reading.changes for reading in readings.values()]

    def columns(names: Sequence[str]) -> list[CodedColumn]:
        at = dict(zip(form.header, form.positions))
        coded = _columns(path, form, [at[name] for name in names])
        changes = read({name: values for name, (values, _) in zip(names, coded)})
        return [
            CodedColumn([change.get(v, v) for v in values], codes) for (values, codes), change in zip(coded, changes)
        ]

    def located() -> list[tuple[str, dict[str, Any]]]:
        lines, rows = _rows(path, form)
        changes = read({name: dict.fromkeys(map(itemgetter(j), rows)) for name, j in zip(form.header, form.positions)})
        odd = [(name, change) for name, change in zip(form.header, changes) if change]
        take = itemgetter(*form.positions) if len(form.positions) > 1 else None
        complete = form.positions == list(range(form.cells))
        located_rows = []
        for line, row in zip(lines, rows):
            cells = dict(zip(form.header, row if complete else take(row) if take else [row[form.positions[0]]]))
            for name, change in odd:
                cells[name] = change.get(cells[name], cells[name])
            located_rows.append((f"{path.name}:{line}", cells))
        return located_rows

    return Table(path.name, form.header, columns, located, form.headed)


@contextmanager
def _text(path: Path) -> Iterator[io.TextIOWrapper]:
    """Open the file at `path`, plain or gzip, as lines of UTF-8 or UTF-16 text."""
    with open_uncompressed(path) as file:
        encoding = "utf-16" if file.peek(2)[:2] in _WIDE else "utf-8-sig"
        with io.TextIOWrapper(file, encoding=encoding, newline="\n") as lines:
            yield lines


def _reader(lines: Iterable[str], mark: str, *, strict: bool = True) -> Any:
    if len(mark) == 1:
        return csv.reader(lines, delimiter=mark, strict=strict)
    return csv.reader((line.replace(mark, _UNIT) for line in lines), delimiter=_UNIT, quoting=csv.QUOTE_NONE)


def _mark(path: Path) -> tuple[str, int]:
    """Return (separator, lines before the header) of a CSV: the mark that gives most cells, unless "sep=;" names it."""
    with _text(path) as lines:
        named = _SEPARATOR.fullmatch(lines.readline())
    if named is not None:
        return named[1], 1
    first: dict[str, int] = {}
    for mark in _MARKS:
        with _text(path) as lines, suppress(csv.Error):  # what is no CSV by any mark is refused where it is read
            first[mark] = len(next(filter(None, _reader(lines, mark, strict=False)), []))
    return max(_MARKS, key=lambda mark: first.get(mark, 0)) if max(first.values(), default=0) > 1 else ",", 0


def _records(path: Path, mark: str, before: int) -> Iterator[tuple[int, list[str]]]:
    """Yield (its first line, cells) of each record of a CSV that is not blank; raise ValueError for what is no CSV."""
    end = before
    with _text(path) as lines:
        for _ in range(before):
            lines.readline()
        reader = _reader(lines, mark)
        try:
            for record in reader:
                if len(record) > 1 or (record and record[0].strip()):
                    yield end + 1, record
                end = before + reader.line_num
        except csv.Error as error:
            raise ValueError(f"{path.name}:{end + 1}: text: expected CSV, got {error}") from None


def _form(path: Path) -> _Form:
    try:
        mark, before = _mark(path)
        records = list(islice(_records(path, mark, before), _AT_ONCE))
    except UnicodeDecodeError:
        raise _no_utf8(path) from None
    if not records:
        raise ValueError(f"{path.name}: header: expected names of columns, got an empty file")
    start, first = records[0]
    if not any(map(str.strip, first)) or (len(records) == 1 and all(number_in(c.strip()) is not None for c in first)):
        raise ValueError(f"{path.name}:{start}: header: expected names of columns, got {describe(first[0])}")
    names_row, below = [cell.strip() for cell in first], [record for _, record in records[1:]]
    headed = not _is_row(names_row, below)
    columns = zip(names_row, map(set, zip_longest(*(record for record in below if record != first))))
    repeated = [name for name, values in columns if name and name in values]
    surveyed = [k for k, record in enumerate(below[:2], 1) if any(cell.startswith(_SURVEY) for cell in record)]
    skip = [record for _, record in records[: surveyed[-1] + 1]] if surveyed else [first][: int(headed)]
    dotted = [cell for record in below[:200] for cell in record if "," in cell or "." in cell]
    decimal = decimal_mark(dotted, "," if mark == ";" and any("," in cell for cell in dotted) else ".")
    every = list(range(len(names_row)))
    names = [name or f"column {j}" for j, name in enumerate(names_row, 1)] if headed else [str(j + 1) for j in every]
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        raise ValueError(f"{path.name}:{start}: header: expected each name once, got {describe(name)} {times} times")
    form = _Form(mark, before, names, every, len(names), skip, headed, decimal, Counter())
    odd = [j for j in every if headed and (not names_row[j] or is_index(names_row[j]))]
    cells = dict(zip(odd, _columns(path, form, odd))) if odd else {}
    empty = [j for j in odd if not names_row[j] and not any(value.strip() for value in cells[j].values)]
    left = index_of(names_row, lambda j: [cells[j].values[k] for k in cells[j].codes.tolist()]) if odd else []
    warn_index(path.name, [names_row[j] for j in left if j not in empty])
    positions = [j for j in every if j not in left and j not in empty]
    notes = [f"{count(surveyed[-1], 'further header')} of a survey left out"] if surveyed else []
    notes += [f"{count(len(empty), 'empty column')} left out"] if empty else []
    if not headed:
        notes.append(f"no line of names: its columns are called {cut_list(names)}")
    elif repeated:
        what = f"its first line is taken for names of columns, though {cut_list(repeated)} stand again below"
        notes.append(f"{what}: if it is a row, write a line of names above it")
    for note in notes:
        warn(f"{path.name}: {note}", stacklevel=4)
    return form._replace(header=[names[j] for j in positions], positions=positions)


def _is_row(first_row: list[str], below: list[list[str]]) -> bool:
    """Return whether the first record is a row: where it has a number or a date, so have all below; a count is none."""
    filled = {j: kind for j, cell in enumerate(first_row) if (kind := value_kind(cell))}
    cells = ((kind, record[j].strip()) for record in below for j, kind in filled.items() if j < len(record))
    if not filled or (not below and len(filled) < len(first_row)):
        return False
    if any(value_kind(cell) != kind and cell.lower() not in MARKERS for kind, cell in cells):
        return False
    if len(filled) == len(first_row) or not all(is_number(first_row[j]) for j in filled):
        return True
    values = [float(first_row[j]) for j in filled]
    counted = len(values) > 2 or values[0] == 0 == len(first_row[0]) or (len(values) > 1 and values[0] in (0, 1))
    follow = counted and all(b - a == 1 for a, b in pairwise(values))
    return not follow and not all(1900 <= value <= 2100 and not value % 1 for value in values)


def _no_utf8(path: Path) -> Exception:
    """Return the error for a text that is not UTF-8, with its line and what to type."""
    try:
        for _ in numbered_lines(path):
            pass
    except ValueError as error:
        new = shlex.quote(f"{path.stem}-utf8{path.suffix}")
        return ValueError(
            f"{error}: if Windows wrote it, iconv -f WINDOWS-1252 -t UTF-8 {shlex.quote(path.name)} > {new}"
        )
    return ValueError(f"{path.name}: text: expected whole UTF-16")


def _rows_only(part: list[list[str]], form: _Form) -> list[list[str]]:
    """Return the rows among the records of a `part`; others count in `form.left`, csv.Error is for a ragged one."""
    rows = []
    for record in part:
        if not any(map(str.strip, record)):
            form.left["empty row"] += len(record) > 1
        elif record in form.skip:
            form.left["header"] += 1
        elif len(record) == form.cells or (len(record) > form.cells and not any(map(str.strip, record[form.cells :]))):
            rows.append(record[: form.cells])
        else:
            raise csv.Error(
                f"expected {form.cells} as in the {'header' if form.headed else 'first line'}, got {len(record)}"
            )
    return rows


def _columns_of(part: list[list[str]], form: _Form) -> list[tuple[str, ...]]:
    """Return the columns of the rows among the records of a `part`; [] if there is none. Errors are as above."""
    try:
        columns = list(zip(*part, strict=True))
    except ValueError:  # records of several lengths
        columns = []
    heads = ("", *(record[0] for record in form.skip))
    if len(columns) == form.cells and not any(head in columns[0] for head in heads):
        return columns  # as nearly always
    return list(zip(*_rows_only(part, form)))


def _columns(path: Path, form: _Form, positions: list[int]) -> list[CodedColumn]:
    """Return the columns of a CSV at these `positions`, cells not stripped, reading a part at a time."""
    coders, has_rows = [_Coder() for _ in positions], False
    form.left.clear()
    form.left["header"] = -len(form.skip)
    try:
        with _text(path) as lines:
            for _ in range(form.before):
                lines.readline()
            reader = _reader(lines, form.mark)
            while part := list(islice(reader, _AT_ONCE)):
                if columns := _columns_of(part, form):
                    has_rows = True
                    for j, coder in zip(positions, coders):
                        coder.add(columns[j])
        if not has_rows:
            raise csv.Error("no rows")
    except (csv.Error, ValueError):
        _rows(path, form)  # raises an error that says where
        raise
    return [coder.column() for coder in coders]


def _rows(path: Path, form: _Form) -> tuple[list[int], list[list[str]]]:
    """Return (first lines, cells) of the rows of a CSV, at least one."""
    form.left.clear()
    form.left["header"] = -len(form.skip)
    lines: list[int] = []
    rows: list[list[str]] = []
    cells, first = form.cells, {"", *(record[0] for record in form.skip)}
    try:
        for line, record in _records(path, form.mark, form.before):
            try:
                rows_of_record = (
                    [record] if len(record) == cells and record[0] not in first else _rows_only([record], form)
                )
            except csv.Error as error:
                raise ValueError(f"{path.name}:{line}: cells: {error}") from None
            if rows_of_record:
                lines.append(line)
                rows += rows_of_record
    except UnicodeDecodeError:
        raise _no_utf8(path) from None
    if not rows:
        raise ValueError(f"{path.name}: rows: expected at least one below the header, got none")
    return lines, rows
