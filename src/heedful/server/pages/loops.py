"""The page of loops: which there are, how they are, and snapshots of them.

None is opened for the list: what there is to know of each is asked for when its row comes into view.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, NamedTuple

from starlette.responses import Response

from heedful.loop import Loop
from heedful.server.api import about, whole
from heedful.server.context import as_problem
from heedful.server.pages.formatting import Moment, moment, size
from heedful.server.pages.page import Page, Visit, back, render
from heedful.server.problems import Problem

AT_ONCE = 50
"""Loops on a page."""

log = logging.getLogger("heedful.server")


class Row(NamedTuple):
    """A loop in the list."""

    name: str
    error: str = ""
    """why it cannot be opened; nothing else is known then"""
    learner: str = ""
    badge: str = ""
    """what tells it from loops of another kind; "" where nothing does"""
    version: int = 0
    items: int = 0
    feedback: int = 0
    events: int = 0
    last: Moment = Moment("", "")
    notes: tuple[str, ...] = ()
    """what somebody should look at"""
    caveats: tuple[str, ...] = ()
    """what cannot be proved with its settings"""
    size: str = ""
    kept: bool = False
    """whether a snapshot was kept just now"""


async def list_loops(visit: Visit) -> Response:
    """The list."""
    start = whole(visit.query, "start", 0, 0)
    names = visit.service.loops.names(visit.caller.tenant)
    return render(
        visit,
        "loops.html",
        tab="loops",
        names=names[start : start + AT_ONCE],
        start=start,
        total=len(names),
        earlier=max(start - AT_ONCE, 0) if start else None,
        later=start + AT_ONCE if start + AT_ONCE < len(names) else None,
    )


async def row(visit: Visit) -> Response:
    """One loop of the list; of one that cannot be opened, why."""
    name = visit.request.path_params["name"]
    try:
        worker = await visit.service.loops.open(visit.caller.tenant, name)
        with worker:
            told = await worker.read(partial(row_of, worker.loop, name))
    except Exception as error:
        problem = as_problem(error)
        if problem.kind == "not-found":
            raise
        told = Row(name, problem.members["detail"])
    return render(visit, "loops_row.html", row=told)


async def snapshot(visit: Visit) -> Response:
    """Keep a snapshot of a loop."""
    assert visit.worker is not None
    try:
        await visit.worker.run(visit.loop.snapshot)
    except OSError as error:
        log.error("%s: no snapshot could be written: %s", visit.loop.path, error)
        why = "no snapshot could be written; the server's log says why"
        raise Problem("unavailable", why, headers={"Retry-After": "60"}) from error
    if not visit.scripted:
        return back("/")
    told = await visit.worker.read(partial(row_of, visit.loop, visit.name))
    return render(visit, "loops_row.html", row=told._replace(kept=True))


def row_of(loop: Loop, name: str) -> Row:
    """Make the row of an open loop for the page that lists all loops: learner, counts, last event, notes, size on
    disk."""
    known: dict[str, Any] = about(loop, name)
    log = loop.projection.log
    newest = log.at(log.last()[0])
    return Row(
        name,
        learner=known["learner"],
        badge=loop.projection.interaction.describe().badge,
        version=known["version"],
        items=known["items"],
        feedback=known["events"].get("feedback", 0),
        events=sum(known["events"].values()),
        last=moment(newest.time if newest is not None else 0),
        notes=tuple(known["notes"]),
        caveats=tuple(known["caveats"]),
        size=size(sum(_sizes(loop))),
    )


def _sizes(loop: Loop) -> list[int]:
    """Of the files in the loop's folder; one may go while it is looked at."""
    found = []
    for path in loop.path.iterdir():
        try:
            found.append(path.stat().st_size)
        except FileNotFoundError:
            continue
    return found


PAGES = (
    Page("GET", "/", ("read",), list_loops),
    Page("GET", "/loops/{name}/row", ("read",), row),
    Page("POST", "/loops/{loop}/snapshot", ("admin", "read"), snapshot),
)
