"""Parsers of the cells of a table of comparisons: names, counts, numbers, and answers in words."""

from collections.abc import Mapping

from heedful.core.validation import describe
from heedful.data.files import cell_number, is_number
from heedful.data.roles import plain
from heedful.data.spreadsheet import text_of

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


def name_in(where: str, field: str, cell: object) -> str:
    """Return a cell as a name: a text, without the apostrophe that keeps spreadsheets from reading it as a formula, or
    a whole number as text (3.0 as "3").

    `where`: the place of the row, `field`: the name of the column, for messages. Raise ValueError for any other cell.
    """
    if cell is None or cell == "":
        raise ValueError(f"{where}: {field}: expected a name, got nothing")
    if isinstance(cell, float) and cell.is_integer():
        return f"{cell:.0f}"
    if isinstance(cell, bool) or not isinstance(cell, int | str) or not str(cell).strip():
        raise ValueError(f"{where}: {field}: expected a text or a whole number, got {describe(cell)}")
    return text_of(str(cell).strip())


def person_in(where: str, row: Mapping[str, object], roles: Mapping[str, list[str]]) -> str:
    """Return the name of the person who answered in this `row`, {column: cell}; "" if the table has no column of
    persons.

    `roles`: names of the columns by role (person, times, ...), from `find_columns`; `where`: the place of the row, for
    messages. Raise ValueError as `name_in` does."""
    return name_in(where, "person", row.get(roles["person"][0])) if "person" in roles else ""


def times_in(where: str, row: Mapping[str, object], roles: Mapping[str, list[str]]) -> int:
    """Return how often the answer of this `row`, {column: cell}, was given; 1 if the table has no column of counts.

    `roles`: names of the columns by role (person, times, ...), from `find_columns`; `where`: the place of the row, for
    messages. Raise ValueError unless it is a whole number from 0 to MOST_TIMES."""
    if "times" not in roles:
        return 1
    return times(where, row.get(roles["times"][0]))


def times(where: str, cell: object) -> int:
    """Return a cell as a count of answers, 0 to MOST_TIMES. Raise ValueError, with the place `where`, for anything
    else.
    """
    value = number_of(where, "times", cell)
    if value is None or value < 0 or value % 1 or value > MOST_TIMES:
        shown = describe(cell)
        others = "; weights that are no counts are not supported, --column times=none counts each row once"
        more = others if value is not None and value % 1 else ""
        raise ValueError(f"{where}: times: expected a whole number, 0 to {MOST_TIMES:,}, got {shown}{more}")
    return int(value)


def number_of(where: str, field: str, cell: object) -> float | None:
    """Return a cell as a number; None if it is empty. Raise ValueError, with the place `where` and the column `field`,
    for any other cell.
    """
    if cell is None:
        return None
    value = cell_number(cell)
    if value is None or not abs(value) < 1e15:
        raise ValueError(f"{where}: {field}: expected a number, got {describe(cell)}")
    return value
