"""Rows that say of themselves that they do not count: cancelled, skipped, discarded, drafts, control questions.

One rule for every format of answers: a column says so by its name and a truth value, or by a status. Such rows are left
out, and counted with the reason; the role `aside` names another column that says so, or none. In a table of items it is
the last row that may be none: the sum of the others."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from warnings import warn

import numpy as np

from heedful.core.wording import count
from heedful.data.cells import FALSE, TRUE
from heedful.data.files import cell_number, number_in
from heedful.data.roles import plain
from heedful.data.table import Table, take_rows

ASIDE = "aside"
"""The role of a column that says which rows do not count; "none" for no column."""
_NOT = (
    *("cancelled", "canceled", "skipped", "discarded", "deleted", "removed", "draft", "invalid", "excluded", "ignored"),
    *("spam", "controlquestion", "attentioncheck", "honeypot", "gold", "goldquestion"),
)
"""Names of columns that are true where a row does not count, perhaps after "is" or "was"."""
_ONLY = ("anony", "anonymous", "valid", "finished", "complete", "completed", "submitted", "counts")
"""Names of columns that are false where a row does not count."""
_STATUS = ("status", "state", "responsestatus", "annotationstatus", "recordstatus")
_STATES = (*_NOT, "rejected", "inprogress", "incomplete", "unfinished", "void")
_SUMS = ("total", "totals", "sum", "sums", "grandtotal", "gesamt", "summe", "somme", "suma")
"""What a spreadsheet calls a row of sums."""


def says_aside(name: str, value: object, named: Sequence[str] | None = None) -> bool:
    """Return whether a row with this `value` in the column `name` does not count.

    `named`: the columns that say so, where the caller names them: by a truth value, or by anything else that is not
    empty, no and the like."""
    text = plain(str(value)).removesuffix(".0")
    if named is not None:
        return name in named and value is not None and text not in ("", *FALSE)
    word = plain(name).removeprefix("is").removeprefix("was")
    if word in _NOT:
        return text in TRUE
    return text in (FALSE if word in _ONLY else _STATES if word in _STATUS else ())


def why_aside(record: Mapping[str, object], named: Sequence[str] | None = None) -> str | None:
    """Return why a record does not count, such as "was_cancelled: true", and how it would; None if it does.

    `named`: the fields that say so, where the caller names them; ["none"] for none."""
    for name, value in record.items():
        if not isinstance(value, list | dict) and says_aside(name, value, named):
            return f"{name}: {str(value).lower()}; --column {ASIDE}=none counts it"
    return None


def counted_rows(table: Table, columns: Mapping[str, Sequence[str]] | None) -> tuple[Table, dict[str, list[str]]]:
    """Return (the rows of `table` that count, `columns` without the role `aside`), and warn of the others.

    Raise ValueError if a column is not there, or if no row counts."""
    named = {role: list(names) for role, names in (columns or {}).items()}
    aside = named.pop(ASIDE, None)
    if aside == ["none"] and "none" not in table.header:
        return table, named
    if aside is not None and (missing := [name for name in aside if name not in table.header]):
        raise ValueError(f"{table.name}: {ASIDE}: expected one of its columns, or none, got {missing[0]!r}")
    used = {name for names in named.values() for name in names}
    counted, why = None, []
    for name in table.header:
        if name in used or not (aside is None or name in aside):
            continue
        if aside is None and not any(says_aside(name, value) for value in (*TRUE, *FALSE, *_STATES)):
            continue
        [(values, codes)] = table.columns([name])
        off = np.array([says_aside(name, value, aside) for value in values], bool)
        if off.any():
            rows = off[codes]
            counted = ~rows if counted is None else counted & ~rows
            marks = ", ".join(dict.fromkeys(str(value).lower() for value, match in zip(values, off) if match))
            why.append(f"{name} is {marks} in {int(rows.sum()):,}")
    if counted is None:
        return table, named
    note = f"{count(int((~counted).sum()), 'row')} left out, as {', '.join(why)}; --column {ASIDE}=none counts them"
    if not counted.any():
        raise ValueError(f"{table.name}: rows: expected at least one that counts, got none: {note}")
    warn(f"{table.name}: {note}", stacklevel=5)
    return take_rows(table, counted), named


def item_rows(table: Table) -> list[dict[str, Any]]:
    """Return the rows of a table of items, each a mapping from column to cell.

    Raise ValueError, with what to type, if the last one is called a total and is the sum of the others; warn if it is
    one of the two."""
    placed = table.located()
    rows = [row for _, row in placed]
    where, last = placed[-1]
    name = next((str(cell) for cell in last.values() if isinstance(cell, str) and number_in(cell) is None), "")
    is_named = plain(name) in _SUMS
    if len(rows) > 2 and (is_named or name) and _is_sum(rows):
        if is_named:
            path = Path(table.name)
            typed = f"head -n -1 {shlex.quote(path.name)} > {shlex.quote(f'{path.stem}-items{path.suffix}')}"
            problem = (
                f"{where}: expected an item, got {name}, the sum of the rows above it: leave it out, such as by {typed}"
            )
            raise ValueError(problem)
        warn(f"{table.name}: the last row, {name}, has the sum of the rows above it in each column", stacklevel=3)
    elif is_named:
        warn(f"{table.name}: the last row, {name}, is taken for an item", stacklevel=3)
    return rows


def _is_sum(rows: Sequence[Mapping[str, object]]) -> bool:
    """Return whether the last of these rows has the sum of the others in each of at least two columns of numbers."""
    sums = 0
    for name in rows[-1]:
        values = np.array([cell_number(row.get(name)) for row in rows], np.float64)  # None becomes NaN
        if np.isnan(values).any():
            if not np.isnan(values[-1]):
                return False  # a number where others have none
            continue
        if not math.isclose(values[-1], math.fsum(values[:-1]), rel_tol=1e-9) or not values.any():
            return False
        sums += 1
    return sums > 1
