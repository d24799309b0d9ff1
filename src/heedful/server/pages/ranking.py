"""The ranking of a study as files: a table for a spreadsheet, and a picture for a slide, which needs nothing else."""

from __future__ import annotations

import csv
import io
from textwrap import wrap
from typing import NamedTuple

from heedful.data.spreadsheet import plain_cell
from heedful.loop.interactions.comparison.standing import Standing
from heedful.server.pages.formatting import count
from heedful.server.pages.page import fill_template
from heedful.server.pages.standing import Summary

TYPES = {"csv": "text/csv; charset=utf-8", "svg": "image/svg+xml"}
COLUMNS = ("place", "item", "utility", "sd", "best", "low", "high", "asked", "level")
DRAWN = 200
"""Places of the ranking that are drawn."""
NAME, QUESTION = 38, 62
"""Characters of a name, and of a line of the question, that there is room for."""
LEFT, RIGHT, ROW = 330.0, 770.0, 30.0
"""Where the drawing begins and ends, and how high a place is, in its own units."""


class Mark(NamedTuple):
    """One place of the ranking, as it is drawn."""

    y: float
    place: int
    name: str
    low: float
    width: float
    """of the utility, one standard deviation either way"""
    at: float


def table(summary: Summary) -> bytes:
    """As CSV: `utility` and `sd` in units of the noise of one choice, `best` the probability that it is the best, from
    `low` to `high` the places where it stands with 90 % probability, `asked` in how many pairs it was, `level` whether
    it cannot be told from the next."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for place, each in enumerate(summary.ranking, 1):
        numbers = [f"{value:.4f}" for value in (each.utility, each.sd, each.best)]
        level = "yes" if each.level else "no"
        writer.writerow([place, plain_cell(each.item), *numbers, each.low, each.high, each.asked, level])
    return out.getvalue().encode()


def picture(summary: Summary, ask: str) -> bytes:
    """As SVG, on white whatever it is shown on."""
    shown = summary.ranking[:DRAWN]
    question = wrap(_drawable(ask), QUESTION) or [""]
    top = 40.0 + 28.0 * len(question)
    told = [
        _drawable(f"{summary.verdict} {summary.left.capitalize() + '.' if summary.left else ''}").strip(),
        f"From {count(summary.answers, 'answer')} by {count(summary.people, 'person', 'people')}. "
        "A bar is the utility ± one standard deviation.",
    ]
    if len(summary.ranking) > len(shown):
        told.append(f"And {len(summary.ranking) - len(shown):,} more.")
    notes = [line for each in told for line in wrap(each, 100)]
    foot = top + ROW * len(shown) + 26.0
    drawn = fill_template(
        "ranking.svg", question=question, notes=notes, marks=_marks(shown, top), left=LEFT, foot=foot,
        height=foot + 20.0 * len(notes) + 10.0,
    )  # fmt: skip
    return drawn.encode()


def _marks(shown: tuple[Standing, ...], top: float) -> list[Mark]:
    low = min(each.utility - each.sd for each in shown)
    span = max(max(each.utility + each.sd for each in shown) - low, 1e-9)

    def at(utility: float) -> float:
        return round(LEFT + (RIGHT - LEFT) * (utility - low) / span, 2)

    return [
        Mark(
            top + ROW * (place - 1),
            place,
            _drawable(each.item),
            at(each.utility - each.sd),
            round(2.0 * each.sd * (RIGHT - LEFT) / span, 2),
            at(each.utility),
        )
        for place, each in enumerate(shown, 1)
    ]


def _drawable(text: str) -> str:
    """A text that XML can hold."""
    return "".join(mark if mark.isprintable() else " " for mark in text)
