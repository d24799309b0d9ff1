"""The ranking of a study as files: a table (CSV), and a picture (SVG)."""

from __future__ import annotations

import io
from collections.abc import Mapping
from decimal import Decimal
from textwrap import wrap
from typing import NamedTuple

from heedful.core.wording import count
from heedful.data.spreadsheet import as_cells, write_rows
from heedful.results.standing import Standing
from heedful.server.pages.page import fill_template
from heedful.server.pages.standing import Summary

TYPES = {"csv": "text/csv; charset=utf-8", "svg": "image/svg+xml"}
"""ending of the file -> its media type"""
COLUMNS = ("place", "item", "utility", "sd", "best", "place_low", "place_high", "asked", "told_apart", "id")
DRAWN = 200
"""The most items of the ranking that the picture shows."""
QUESTION = 62
"""The most characters in a line of the question above the picture."""
LEFT, RIGHT, ROW = 330.0, 770.0, 30.0
"""The left and right end of the scale of utilities, and the height of a row, in the picture's own units."""


class Mark(NamedTuple):
    """One item in the picture of a ranking: a bar, the 90 % interval of its utility, and a mark at the
    utility. Positions and lengths are in the picture's own units."""

    y: float
    """the upper edge of its row"""
    place: int
    """its position in the ranking, from 1"""
    name: str
    """what people saw of the item, in a line"""
    low: float
    """the left end of the bar"""
    width: float
    """the length of the bar"""
    at: float
    """where the utility is"""


def table(summary: Summary) -> bytes:
    """Return the ranking in `summary` as CSV, one row for each item.

    `utility` and `sd` (standard deviation) are in units of the noise of one choice; `best` is the probability that the
    item is the best; with 90 % probability its position is `place_low` to `place_high`; `asked` is the number of pairs
    it was in; `told_apart` says whether it is better than the next item with 90 % probability or more. `item` is what
    people saw of it, `id` is its name."""
    rows = []
    for place, each in enumerate(summary.ranking, 1):
        numbers = [Decimal(f"{value:.4f}") for value in (each.utility, each.sd, each.best)]  # with all four decimals
        rest = (each.place_low, each.place_high, each.asked, each.told_apart, each.item)
        rows.append(as_cells([place, summary.called[each.item], *numbers, *rest]))
    out = io.StringIO()
    write_rows(out, COLUMNS, rows)
    return out.getvalue().encode()


def picture(summary: Summary, ask: str) -> bytes:
    """Return the ranking in `summary` as an SVG picture on white, under `ask`, the study's question."""
    shown = summary.ranking[:DRAWN]
    question = wrap(_printable(ask), QUESTION) or [""]
    top = 40.0 + 28.0 * len(question)
    sentences = [
        _printable(f"{summary.verdict} {summary.left.capitalize() + '.' if summary.left else ''}").strip(),
        f"From {count(summary.answers, 'answer')} by {count(summary.people, 'person', 'people')}. "
        "A bar is a 90 % interval.",
    ]
    if len(summary.ranking) > len(shown):
        sentences.append(f"And {len(summary.ranking) - len(shown):,} more.")
    notes = [line for each in sentences for line in wrap(each, 100)]
    foot = top + ROW * len(shown) + 26.0
    return fill_template(
        "ranking.svg", question=question, notes=notes, marks=_marks(shown, summary.called, top), left=LEFT, foot=foot,
        height=foot + 20.0 * len(notes) + 10.0,
    ).encode()  # fmt: skip


def _marks(shown: tuple[Standing, ...], called: Mapping[str, str], top: float) -> list[Mark]:
    """Return the marks of the items `shown`, best first, one to a row; the first row is `top` units below the upper
    edge of the picture. `called` has what people saw of each, by name."""
    low = min(each.interval[0] for each in shown)
    scale = (RIGHT - LEFT) / max(max(each.interval[1] for each in shown) - low, 1e-9)

    def at(utility: float) -> float:
        return round(LEFT + scale * (utility - low), 2)

    return [
        Mark(
            top + ROW * (place - 1), place, _printable(called[each.item]), at(each.interval[0]),
            round((each.interval[1] - each.interval[0]) * scale, 2), at(each.utility),
        )
        for place, each in enumerate(shown, 1)
    ]  # fmt: skip


def _printable(text: str) -> str:
    """Return a text that XML can hold: blanks in place of characters that do not print."""
    return "".join(mark if mark.isprintable() else " " for mark in text)
