"""The page on the health of feedback: alarms with what to do next, what was compared, and shares over time.

It is rendered on the server and has no script. It replays the whole log of the loop."""

from __future__ import annotations

from starlette.responses import Response

from heedful.loop import Loop
from heedful.loop.interactions import telling
from heedful.server.pages.page import Page, Visit, render


async def show(visit: Visit) -> Response:
    """Render whether a loop's feedback is sound and its model still predicts it."""
    health = await visit.analyse(Loop.health)
    return render(
        visit,
        "health.html",
        tab="learned",
        health=health,
        sound=telling.sound(health).text,
        sections=[
            ("compared", "What may have changed", telling.health_compared(health)),
            ("windows", "Over time", telling.health_over_time(health)),
            ("calibration", "How predictions came out", telling.there([telling.calibration(health)])),
        ],
    )


PAGES = (Page("GET", "/loops/{loop}/health", ("read",), show),)
