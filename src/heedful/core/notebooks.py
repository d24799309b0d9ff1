"""HTML tables that show results in a notebook.

They contain no script and no link, take over the colours of the page (lines are a grey that shows on light and dark),
and escape every text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

ROWS = 50
"""the greatest number of rows that `table` shows"""

_CELL = "padding:2px 10px;border-bottom:1px solid rgba(128,128,128,.35);vertical-align:top"


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], notes: Iterable[str] = ()) -> str:
    """Return an HTML table with the caption `title`, the heads of its `columns`, and one row for each of `rows`.

    Each row has one value per column: numbers are aligned right, floats have three significant figures, None is an
    empty cell. The first ROWS (50) rows are shown, and below them how many more there are; then the sentences in
    `notes`, empty ones left out. All texts are escaped.
    """
    rows = list(rows)
    head = "".join(f'<th scope="col" style="{_CELL};text-align:left">{escape(heading)}</th>' for heading in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:ROWS])
    more = [f"and {len(rows) - ROWS:,} more"] if len(rows) > ROWS else []
    below = "".join(f'<div style="margin-top:4px">{escape(note)}</div>' for note in [*more, *notes] if note)
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
