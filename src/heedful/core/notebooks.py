"""Results as notebooks show them: a table in HTML that stands alone, in the colours of the page it is put into.

No script, no address, no colour of its own but a grey that shows on light and dark; every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

ROWS = 50
"""Of a table, at most; the result has all."""

_CELL = "padding:2px 10px;border-bottom:1px solid rgba(128,128,128,.35);vertical-align:top"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], notes: Iterable[str] = ()) -> str:
    """A table with a title, and sentences below it. A number stands at the right, a float in three figures; None is
    empty. Of more than ROWS rows the first are shown, and how many there are."""
    rows = list(rows)
    head = "".join(f'<th scope="col" style="{_CELL};text-align:left">{escape(each)}</th>' for each in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:ROWS])
    more = [f"and {len(rows) - ROWS:,} more"] if len(rows) > ROWS else []
    below = "".join(f'<div style="margin-top:4px">{escape(each)}</div>' for each in [*more, *notes] if each)
    caption = f'<caption style="text-align:left;font-weight:bold;padding:4px 0">{escape(title)}</caption>'
    return (
        '<div style="color:inherit;background:transparent;overflow-x:auto">'
        f'<table style="border-collapse:collapse;color:inherit">{caption}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}</div>"
    )


def _cell(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = "" if value is None else f"{value:.3g}" if isinstance(value, float) else f"{value:,}" if number else value
    side = "right" if number else "left"
    return f'<td style="{_CELL};text-align:{side}">{escape(str(text))}</td>'
