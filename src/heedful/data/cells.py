"""Parsers of the cells of a table: names, counts, numbers, and answers in words. Whole columns are read by their
distinct values, which is fast because a million rows have few."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.core.validation import describe
from heedful.data.files import cell_number, is_number
from heedful.data.roles import plain
from heedful.data.spreadsheet import text_of
from heedful.data.table import CodedColumn, Table

T = TypeVar("T")
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Check = tuple[Bools, Callable[[str, int], object]]
"""A mask of the rows (r,) that are wrong, and a function that raises the error for one: of its place, and its index."""

BAD = ("both bad", "tie (both bad)")
"""Answers that two items tie and both are bad. They count as ties: a ranking only says which of two items is better."""
WORDS = {
    "first": ("first", "left", "a", "model a", "1"),
    "second": ("second", "right", "b", "model b", "2"),
    "equal": ("equal", "equally good", "tie", "tied", "draw", "both", "both good", "same", "=", *BAD),
    "unsure": ("unsure", "cannot judge", "can't judge", "skip", "skipped", "don't know"),
}
"""The words for each answer, apart from case and punctuation. Besides, an empty cell means unsure, and the name of an
item that this item was chosen.
"""
TRUE, FALSE = ("true", "1", "yes", "y", "t", "wahr"), ("false", "0", "no", "n", "f", "falsch")
"""The words for truth values, apart from case."""
MOST_TIMES = 1_000_000_000
"""The greatest count of one answer that a table may have."""


def word(text: str) -> str:
    """Return `text` in the form in which answers are compared: lower case, without blanks and punctuation; a number
    unchanged, a whole one without decimals."""
    text = text.strip()
    return text.removesuffix(".0") if is_number(text) else plain(text)


# In each of the next functions `where` is the place of the row, with which the message of a ValueError begins.


def name_in(where: str, field: str, cell: object) -> str:
    """Return a cell of the column `field` as a name: a text, without the apostrophe that keeps spreadsheets from
    reading it as a formula, or a whole number as text (3.0 as "3"). Raise ValueError for any other cell."""
    if cell is None or cell == "":
        raise ValueError(f"{where}: {field}: expected a name, got nothing")
    if isinstance(cell, float) and cell.is_integer():
        return f"{cell:.0f}"
    if isinstance(cell, bool) or not isinstance(cell, int | str) or not str(cell).strip():
        raise ValueError(f"{where}: {field}: expected a text or a whole number, got {describe(cell)}")
    return text_of(str(cell).strip())


def person_in(where: str, row: Mapping[str, object], roles: Mapping[str, list[str]]) -> str:
    """Return the person of a `row`, by the `roles` of its columns; "" without such a column."""
    return name_in(where, "person", row.get(roles["person"][0])) if "person" in roles else ""


def times_in(where: str, row: Mapping[str, object], roles: Mapping[str, list[str]]) -> int:
    """Return how often the answer of a `row` was given, by the `roles` of its columns; 1 without such a column."""
    return times(where, row.get(roles["times"][0])) if "times" in roles else 1


def times(where: str, cell: object) -> int:
    """Return a cell as a count of answers, 0 to MOST_TIMES. Raise ValueError for anything else."""
    value = number_of(where, "times", cell)
    if value is None or value < 0 or value % 1 or value > MOST_TIMES:
        shown = describe(cell)
        others = "; weights that are no counts are not supported, --column times=none counts each row once"
        more = others if value is not None and value % 1 else ""
        raise ValueError(f"{where}: times: expected a whole number, 0 to {MOST_TIMES:,}, got {shown}{more}")
    return int(value)


def number_of(where: str, field: str, cell: object) -> float | None:
    """Return a cell of the column `field` as a number; None if it is empty. Raise ValueError for anything else."""
    if cell is None:
        return None
    value = cell_number(cell)
    if value is None or not abs(value) < 1e15:
        raise ValueError(f"{where}: {field}: expected a number, got {describe(cell)}")
    return value


# ---------------------------------------------------------------------------- columns


def read_cells(coded: CodedColumn, read: Callable[[str, Any], T | None]) -> tuple[list[T | None], Check]:
    """Return what `read` makes of each distinct value of a column, None where it refuses one, and a check of the rows.

    `read` takes a place for messages and the value of a cell, and raises ValueError for one that makes no sense."""
    read_values: list[T | None] = []
    wrong = np.zeros(len(coded.values), bool)
    for k, value in enumerate(coded.values):
        try:
            read_values.append(read("", value))
        except ValueError:
            wrong[k] = True
            read_values.append(None)
    return read_values, (wrong[coded.codes], lambda where, i: read(where, coded.values[coded.codes[i]]))


class NameColumn:
    """A column of r names, which are numbered: `numbers` (r,) has the number of each row's name, `check` finds the rows
    whose cell is invalid."""

    def __init__(self, coded: CodedColumn, field: str, numbers: dict[str, int], empty: str | None = None) -> None:
        """Number the names in the column `coded`, adding new ones to `numbers`, which columns may share.

        `field`: its name for messages; `empty`: the name that an empty cell stands for; None if cells may not be empty.
        """

        def name(where: str, value: Any) -> str:
            if empty is not None and (value is None or isinstance(value, bool)):
                return empty if value is None else str(value).lower()
            return name_in(where, field, value)

        texts, self.check = read_cells(coded, name)
        self.field, self.codes, self.texts = field, coded.codes, [text or "" for text in texts]
        codes_of_texts = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in texts]
        self.numbers: Ints = np.array(codes_of_texts, np.int64)[self.codes]


def number_columns(table: Table, names: Sequence[str]) -> dict[str, npt.NDArray[np.float64]]:
    """Return those of the columns `names` in which each of the r cells is a number, a truth value or missing, as arrays
    (r,) with NaN for what is missing; not one that is empty. Raise ValueError for an infinite number."""
    numeric = {}
    for name, coded in zip(names, table.columns(names)):
        numbers = [float(value) if isinstance(value, bool) else cell_number(value) for value in coded.values]
        column = np.array(numbers, np.float64)[coded.codes]  # None becomes NaN
        if None not in numbers and not np.isnan(column).all():
            refuse_cells(table, np.isinf(column), name, "a finite number", coded)
            numeric[name] = column
    return numeric


def refuse_cells(table: Table, wrong: Bools, field: str, expected: str, coded: CodedColumn) -> None:
    """Raise ValueError, which says what was `expected` of the column `field`, which is `coded`, for the first of the r
    rows where `wrong` (r,) is True."""

    def fail(where: str, i: int) -> None:
        raise ValueError(f"{where}: {field}: expected {expected}, got {describe(coded.values[coded.codes[i]])}")

    refuse(table, [(wrong, fail)])


def refuse(table: Table, checks: Sequence[Check]) -> None:
    """Raise ValueError for the first row of `table` that fails one of `checks`; if it fails several, for the first of
    these."""
    failed = [(int(wrong.argmax()), k) for k, (wrong, _) in enumerate(checks) if wrong.any()]
    if failed:
        i, k = min(failed)
        checks[k][1](table.located()[i][0], i)
