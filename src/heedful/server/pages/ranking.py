"""The ranking of a study as files: a table (CSV), and a picture (SVG)."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from textwrap import wrap

from heedful.core.wording import count
from heedful.data.spreadsheet import rows_of, write_rows
from heedful.results.board import BoardRow
from heedful.server.pages.page import fill_template
from heedful.server.pages.standing import Summary

TYPES = {"csv": "text/csv; charset=utf-8", "svg": "image/svg+xml"}
"""ending of the file -> its media type"""
DRAWN = 200
"""The most items of the ranking that the picture shows."""
QUESTION = 62
"""The most characters in a line of the question above the picture."""
LEFT, RIGHT, ROW = 330.0, 770.0, 30.0
"""The left and right end of the scale of utilities, and the height of a row, in the picture's own units."""


def table(summary: Summary) -> bytes:
    """Return the ranking in `summary` as CSV, one row for each item, with the fields of `BoardRow`; `item` is what
    people saw of it, and the last column, `id`, is its name."""
    names = summary.board.items
    columns = summary.board.fields() | {"item": [summary.called[name] for name in names], "id": list(names)}
    out = io.StringIO()
    write_rows(out, list(columns), rows_of(columns))
    return out.getvalue().encode()


def picture(summary: Summary, ask: str) -> bytes:
    """Return the ranking in `summary` as an SVG picture on white, under `ask`, the study's question."""
    board = summary.board
    shown = board.ranking[:DRAWN]
    question = wrap(_printable(ask), QUESTION) or [""]
    top = 40.0 + 28.0 * len(question)
    sentences = [
        _printable(summary.verdict),
        f"From {count(board.answers, 'answer')} by {count(board.people, 'person', 'people')}. "
        "A bar is a 90 % interval.",
    ]
    if len(board.ranking) > len(shown):
        sentences.append(f"And {len(board.ranking) - len(shown):,} more.")
    notes = [line for sentence in sentences for line in wrap(sentence, 100)]
    foot = top + ROW * len(shown) + 26.0
    return fill_template(
        "ranking.svg", question=question, notes=notes, marks=_marks(shown, summary.called, top), left=LEFT, foot=foot,
        height=foot + 20.0 * len(notes) + 10.0,
    ).encode()  # fmt: skip


def _marks(shown: Sequence[BoardRow], called: Mapping[str, str], top: float) -> list[dict[str, object]]:
    """Return where each item's 90 % interval is drawn, and the mark `at` its utility, the first `top` units from
    above."""
    least = min(row.bar[0] for row in shown)
    scale = (RIGHT - LEFT) / max(max(row.bar[2] for row in shown) - least, 1e-9)
    marks = []
    for row in shown:
        low, at, high = (LEFT + scale * (value - least) for value in row.bar)
        place = {"y": top + ROW * (row.place - 1), "place": row.place, "name": _printable(called[row.item])}
        marks.append(place | {"low": round(low, 2), "width": round(high - low, 2), "at": round(at, 2)})
    return marks


def _printable(text: str) -> str:
    """Return a text that XML can hold: blanks in place of characters that do not print."""
    return "".join(mark if mark.isprintable() else " " for mark in text)
