"""Texts in a CSV that people open in a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
"""What a spreadsheet takes for the beginning of a formula, which it runs; and what `plain_cell` makes of it."""


def plain_cell(text: str) -> str:
    """A text as a cell that stays a text: behind an apostrophe where it begins as a formula does. `text_of` takes the
    apostrophe off again; so that it can, a text that begins as such a cell gets one more."""
    return f"'{text}" if _FORMULA.match(text) else text


def plain_row(values: Iterable[Any]) -> list[Any]:
    """Values as the cells of a row: numbers as they are, texts as `plain_cell` has them."""
    return [plain_cell(value) if isinstance(value, str) else value for value in values]


def text_of(cell: str) -> str:
    """The text of which `plain_cell` made a cell."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
