"""Parses cells of a table of comparisons: names, counts, numbers, and answers in words."""

from collections.abc import Mapping
from typing import Any

from heedful.data.choice_columns import plain
from heedful.data.files import cut_repr, is_number, number_in
from heedful.data.spreadsheet import text_of

BAD = ("both bad", "tie (both bad)")
"""A tie of two that are called bad; how good two are apart from each other is no part of a ranking."""
WORDS = {
    "first": ("first", "left", "a", "model a", "1"),
    "second": ("second", "right", "b", "model b", "2"),
    "equal": ("equal", "equally good", "tie", "tied", "draw", "both", "both good", "same", "=", *BAD),
    "unsure": ("unsure", "cannot judge", "can't judge", "skip", "skipped", "don't know"),
}
"""What an answer says, apart from case and marks; nothing is as unsure. So does the name of one of the two."""
MOST_TIMES = 1_000_000_000
"""How often an answer of a table may have been given."""


def word(text: str) -> str:
    """A word without case, blanks and marks, for comparison; a number as it is, so that -1 is not 1."""
    text = text.strip()
    return text if is_number(text) else plain(text)


def name_in(where: str, field: str, cell: Any) -> str:
    """A cell as a name: text, without the apostrophe that guards a formula; or a whole number, 3.0 as 3. ValueError,
    naming the row and field, for anything else.
    """
    if isinstance(cell, float) and cell.is_integer():
        return f"{cell:.0f}"
    if cell is None or cell == "":
        raise ValueError(f"{where}: {field}: expected a name, got nothing")
    if isinstance(cell, bool) or not isinstance(cell, int | str) or not str(cell).strip():
        raise ValueError(f"{where}: {field}: expected a text or a whole number, got {cut_repr(cell)}")
    return text_of(str(cell).strip())


def person_in(where: str, row: Mapping[str, Any], at: Mapping[str, list[str]]) -> str:
    """The name of who answered in this row; "" without such a column. ValueError as `name_in`."""
    return name_in(where, "person", row.get(at["person"][0])) if "person" in at else ""


def times_in(where: str, row: Mapping[str, Any], at: Mapping[str, list[str]]) -> int:
    """How often the answer of this row was given; 1 without such a column. ValueError as `times`."""
    if "times" not in at:
        return 1
    return times(where, row.get(at["times"][0]))


def times(where: str, cell: Any) -> int:
    """A cell as a count of answers. ValueError, naming the row, for anything but a whole number in range."""
    value = number_of(where, "times", cell)
    if value is None or value < 0 or value % 1 or value > MOST_TIMES:
        got = cut_repr(cell)
        raise ValueError(f"{where}: times: expected a whole number, 0 to {MOST_TIMES:,}, got {got}")
    return int(value)


def number_of(where: str, field: str, cell: Any) -> float | None:
    """A cell as a number; None where it is empty. ValueError, naming the row and field, for anything else."""
    if cell is None:
        return None
    value = number_in(cell.strip()) if isinstance(cell, str) else cell
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise ValueError(f"{where}: {field}: expected a number, got {cut_repr(cell)}")
    return float(value)
