"""Write texts into a CSV so that no spreadsheet takes one for a formula, and read them back."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TextIO

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""The beginning of a cell that a spreadsheet runs as a formula, possibly after apostrophes that `plain_cell` added."""


def plain_cell(value: object) -> object:
    """Return a value as a cell that a spreadsheet takes for what it is: a text that looks like a formula with an
    apostrophe in front, any other value unchanged.

    A text that already begins with apostrophes and a formula gets another one. `text_of` is the inverse.
    """
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def rows_of(columns: Mapping[str, Sequence[object]]) -> Iterator[list[object]]:
    """Yield the rows of a table of `columns`, as they stand in a file: booleans as "yes" and "no", None as ""."""
    for row in zip(*columns.values()):
        yield ["" if value is None else ("no", "yes")[value] if isinstance(value, bool) else value for value in row]


def write_rows(file: TextIO, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write `columns` as a header and `rows` below it to an open file as CSV; texts are protected by `plain_cell`."""
    writer = csv.writer(file)
    writer.writerow(columns)
    writer.writerows(map(plain_cell, row) for row in rows)


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write `columns` as a header and `rows` below it to a CSV file at `path`, replacing it; texts are protected by
    `plain_cell`.

    Raise OSError if it cannot be written.
    """
    with path.open("w", newline="", encoding="utf-8") as file:
        write_rows(file, columns, rows)


def text_of(cell: str) -> str:
    """Return the text that `plain_cell` turned into `cell`: without the apostrophe in front of a formula."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
