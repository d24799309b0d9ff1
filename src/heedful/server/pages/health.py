"""The page on the health of feedback: alarms with what to do next, what was compared, and shares over time.

It is rendered on the server and has no script. It replays the whole log of the loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from starlette.responses import Response

from heedful.loop import Loop
from heedful.loop.interactions import telling
from heedful.loop.interactions.telling import Line, Part, Table
from heedful.results.health import Health
from heedful.server.pages.page import Page, Visit, render


class Section(NamedTuple):
    """A part of the page: a heading, tables and sentences."""

    id: str
    """its id in the HTML: "compared\""""
    title: str
    """the heading"""
    tables: tuple[Table, ...]
    """its tables, those without rows left out"""
    lines: tuple[str, ...]
    """sentences below the tables"""


async def show(visit: Visit) -> Response:
    """Render whether a loop's feedback is sound and its model still predicts it."""
    found = await visit.read(_health, visit.loop)
    return render(
        visit,
        "health.html",
        tab="learned",
        base=visit.base,
        alarms=found.alarms,
        sound=telling.sound(found).text,
        sections=[
            _section("compared", "What may have changed", telling.health_compared(found)),
            _section("windows", "Over time", telling.health_over_time(found)),
            _section("calibration", "How predictions came out", telling.there([telling.calibration(found)])),
        ],
    )


def _health(loop: Loop) -> Health:
    return loop.health()


def _section(id: str, title: str, parts: Sequence[Part]) -> Section:
    tables = tuple([part for part in parts if isinstance(part, Table) and part.rows])
    return Section(id, title, tables, tuple([part.text for part in parts if isinstance(part, Line)]))


PAGES = (Page("GET", "/loops/{loop}/health", ("read",), show),)
