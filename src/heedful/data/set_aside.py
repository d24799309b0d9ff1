"""Rows that say of themselves that they do not count: cancelled, skipped, discarded, drafts, control questions.

One rule for every format: a column says so by its name and a truth value, or by a status. Such rows are left out, and
counted with the reason; the role `aside` names another column that says so, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from warnings import warn

import numpy as np

from heedful.core.wording import count
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
_TRUE, _FALSE = ("true", "1", "yes", "y", "t"), ("false", "0", "no", "n", "f")


def says_aside(name: str, value: object, named: Sequence[str] | None = None) -> bool:
    """Return whether a row with this `value` in the column `name` does not count.

    `named`: the columns that say so, where the caller names them: by a truth value, or by anything else that is not
    empty, no and the like."""
    said = plain(str(value)).removesuffix(".0")
    if named is not None:
        return name in named and value is not None and said not in ("", *_FALSE)
    called = plain(name).removeprefix("is").removeprefix("was")
    if called in _NOT:
        return said in _TRUE
    return said in (_FALSE if called in _ONLY else _STATES if called in _STATUS else ())


def why_aside(record: Mapping[str, object], named: Sequence[str] | None = None) -> str | None:
    """Return why a record does not count, such as "was_cancelled: true"; None if it does."""
    for name, value in record.items():
        if not isinstance(value, list | dict) and says_aside(name, value, named):
            return f"{name}: {str(value).lower()}"
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
    kept, why = None, []
    for name in table.header:
        if name in used or not (aside is None or name in aside):
            continue
        if aside is None and not any(says_aside(name, value) for value in (*_TRUE, *_FALSE, *_STATES)):
            continue
        [(values, codes)] = table.columns([name])
        off = np.array([says_aside(name, value, aside) for value in values], bool)
        if off.any():
            rows = off[codes]
            kept = ~rows if kept is None else kept & ~rows
            said = ", ".join(dict.fromkeys(str(value).lower() for value, each in zip(values, off) if each))
            why.append(f"{name} is {said} in {int(rows.sum()):,}")
    if kept is None:
        return table, named
    told = f"{count(int((~kept).sum()), 'row')} left out, as {', '.join(why)}; --column {ASIDE}=none counts them"
    if not kept.any():
        raise ValueError(f"{table.name}: rows: expected at least one that counts, got none: {told}")
    warn(f"{table.name}: {told}", stacklevel=5)
    return take_rows(table, kept), named
