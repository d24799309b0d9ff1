"""Tables in HTML, for results shown in a notebook.

They contain no script and no link, take over the colours of the page (lines are a grey that shows on light and dark),
and escape every text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

ROWS = 50
"""The most rows that a table shows; the result itself has all."""

_CELL = "padding:2px 10px;border-bottom:1px solid rgba(128,128,128,.35);vertical-align:top"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], notes: Iterable[str] = ()) -> str:
    """Return an HTML table with a title, and sentences (`notes`) below it.

    Numbers are aligned right, floats have three significant figures, None is an empty cell. Of more than ROWS rows only
    the first are shown, with the number of the others.
    """
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


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        text, side = f"{value:.3g}" if isinstance(value, float) else f"{value:,}", "right"
    else:
        text, side = "" if value is None else str(value), "left"
    return f'<td style="{_CELL};text-align:{side}">{escape(text)}</td>'
