"""What the texts in a column of a table mean: numbers as people write them, missing values, lists, or just texts.

A column is read as a whole, since one cell alone does not tell: 1.234 is a number and 1,234 may be one of two, - is a
missing number among numbers, and NA a name among names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from heedful.data.files import MISSING, cut_list, is_number, number_in

MARKERS = frozenset(
    ("", "na", "n/a", "n.a.", "#n/a", "nan", "<na>", "null", "none", "nil", "k.a.", "-", "--", "–", "—", "?", ".")
)
"""What stands in a column of numbers where there is none, in lower case. Among texts these are texts."""

_PRINTED = frozenset(("nan", "<na>"))
"""What data frames print where there is nothing, which is no name either, in lower case."""
_UNITS = r"[$€£¥₹]|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|BRL|CAD|AUD|kr\.?|zł|Kč|Ft|%"
_GROUPS = "[1-9]\\d{0,2}(?:{0}\\d{3})+"
_SPACES = "[ \u00a0\u202f'’]"


def _pattern(mark: str, thousands: str) -> re.Pattern[str]:
    integer = "|".join([_GROUPS.replace("{0}", thousands), _GROUPS.replace("{0}", _SPACES), r"\d+"])
    number = rf"(?:{integer})(?:{mark}\d+)?|{mark}\d+"
    return re.compile(rf"(?P<sign>[+\-−]?)(?P<unit>{_UNITS})?\s?(?P<number>{number})\s?(?P<after>{_UNITS})?", re.ASCII)


_WRITTEN = {".": _pattern(r"\.", ","), ",": _pattern(",", r"\.")}
"""Numbers with units as people write them, by their decimal mark."""
_SURE = {
    ".": re.compile(r"\d*\.(?:\d{1,2}|\d{4,})|(?:\d{1,3},)+\d{3}\.\d+|\d{1,3}(?:,\d{3}){2,}|0\.\d+"),
    ",": re.compile(r"\d*,(?:\d{1,2}|\d{4,})|(?:\d{1,3}\.)+\d{3},\d+|\d{1,3}(?:\.\d{3}){2,}|0,\d+"),
}
"""Numbers without units that have one decimal mark for certain."""
_FORMULA = re.compile(r'="(.*)"')
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:$|[T ]\d)|\d\d?[./]\d\d?[./]\d{4}(?:$| \d)")
_FIRST = 50
"""So many of the texts of a column are looked at to find out that it is one of texts."""
_WHOLE = re.compile(r"([+-]?\d+)\.0+")


def decimal_mark(cells: Iterable[str], fallback: str = ".") -> str:
    """Return the decimal mark of a file, "." or ",", by some of its `cells`; `fallback` if they do not tell."""
    marks = dict.fromkeys(_SURE, 0)
    for cell in cells:
        for mark in _SURE:
            match = _WRITTEN[mark].fullmatch(cell.strip())
            marks[mark] += match is not None and _SURE[mark].fullmatch(match["number"]) is not None
    return fallback if marks["."] == marks[","] else max(marks, key=lambda mark: marks[mark])


class Reading:
    """How the texts of one column are read: `changes` has what becomes of a text that is not kept as it is.

    In words: `numbers`, an example of an unusual number and what it became; `missing`, the marks of missing numbers;
    `lists`, whether the texts are lists."""

    def __init__(self, values: Iterable[str], *, decimal: str = ".", texts: bool = False, typed: bool = False) -> None:
        """Read the different `values` of a column.

        `decimal`: the decimal mark of the file, for numbers that do not tell; `texts`: whether these are texts that
        somebody wrote, neither numbers nor lists; `typed`: whether a missing value is written otherwise than as an
        empty text."""
        self.changes: dict[str, Any] = {}
        self.numbers = ""
        self.missing: tuple[str, ...] = ()
        self.lists = False
        bare = list(dict.fromkeys(values))
        if not texts and not any(map(_is_text, bare[:_FIRST])):
            cells = {text: _bare(text) for text in bare}
            present = {text: cell for text, cell in cells.items() if cell.lower() not in MARKERS}
            if present and (read := _numbers(list(present.values()), decimal)) is not None:
                self.changes = {text: None for text in cells if text not in present}
                unusual = [cell for text, cell in cells.items() if text not in present and cell.lower() not in MISSING]
                self.missing = tuple(dict.fromkeys(unusual))
                self.changes |= {text: v for text, cell in present.items() if (v := read.get(cell, cell)) != text}
                odd = next((cell for cell in read if _WHOLE.fullmatch(cell) is None), None)
                self.numbers = "" if odd is None else f"{odd} is {read[odd]}"
                return
            filled = [cell for cell in cells.values() if cell]
            if filled and all(cell[0] == "[" for cell in filled) and (parsed := _lists(filled)) is not None:
                self.lists = True
                self.changes = {text: parsed.get(cell) for text, cell in cells.items()}
                return
        if not typed:
            for text in bare:
                cell = text.strip() if texts else _bare(text)
                if not cell or (len(cell) < 5 and not texts and cell.lower() in _PRINTED):
                    self.changes[text] = None
                elif cell != text:
                    self.changes[text] = cell


def _is_text(text: str) -> bool:
    """Return whether a text that stands in a column makes it one of texts."""
    cell = _bare(text)
    number = value_kind(cell) == "number" or cell.lower() in MARKERS or _INFINITE.fullmatch(cell)
    return not (number or cell[:1] == "[")


def value_kind(cell: str) -> str:
    """Return "number" or "date" if a cell is one as people write it; "" otherwise, also if it is a missing one."""
    if is_number(cell) or any(pattern.fullmatch(cell) for pattern in _WRITTEN.values()):
        return "number"
    return "date" if _DATE.match(cell) else ""


def _bare(text: str) -> str:
    """Return a text without blanks around it, and without the ="..." by which a spreadsheet keeps it a text."""
    text = text.strip()
    match = _FORMULA.fullmatch(text) if text.startswith('="') else None
    return text if match is None else match[1].strip()


def _numbers(cells: list[str], decimal: str) -> dict[str, str] | None:
    """Return what becomes of `cells` not written in digits with a point; None if one is no number."""
    if all(number_in(cell) is not None for cell in cells):
        grouped = decimal == "," and any("." in cell for cell in cells)
        if not (grouped and all(_WRITTEN[","].fullmatch(cell) for cell in cells)):
            if all(_WHOLE.fullmatch(cell) for cell in cells):  # whole numbers that a data frame made floats
                return {cell: cell.partition(".")[0] for cell in cells}
            return {}
    marks = [mark for mark in _WRITTEN if all(map(_WRITTEN[mark].fullmatch, cells))]
    if not marks:
        return None
    mark = marks[0] if len(marks) == 1 else decimal_mark(cells, decimal)
    matches = {cell: match for cell in cells if (match := _WRITTEN[mark].fullmatch(cell))}
    units = {match["unit"] or match["after"] or "" for match in matches.values()}
    if len(units) > (1 if "%" in units else 2) or (len(units) == 2 and "" not in units):
        return None
    digits = {cell: _digits(match, mark) for cell, match in matches.items()}
    return {cell: number for cell, number in digits.items() if number != cell}


def _digits(match: re.Match[str], mark: str) -> str:
    integer, _, rest = match["number"].partition(mark)
    sign = "-" if match["sign"] in ("-", "−") else ""
    return sign + re.sub(r"\D", "", integer) + (f".{rest}" if rest else "")


def _lists(cells: list[str]) -> dict[str, Any] | None:
    """Return the lists that these `cells` are, in JSON or as Python prints them; None if one is none."""
    lists: dict[str, Any] = {}
    for cell in cells:
        try:
            lists[cell] = msgspec.json.decode(cell)
        except ValueError:
            try:
                lists[cell] = ast.literal_eval(cell)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                return None
        if not isinstance(lists[cell], list):
            return None
    return lists


def describe_readings(readings: Mapping[str, Reading]) -> list[str]:
    """Return in words how the columns of a table were read where that is not as their texts stand there."""
    numbers = [f"{name} ({reading.numbers})" for name, reading in readings.items() if reading.numbers]
    missing = [f"{name} ({', '.join(reading.missing[:4])})" for name, reading in readings.items() if reading.missing]
    lists = [name for name, reading in readings.items() if reading.lists]
    notes = (("numbers", numbers), ("missing numbers", missing), ("lists", lists))
    return [f"{what}: {cut_list(names)}" for what, names in notes if names]
