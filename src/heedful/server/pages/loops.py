"""The page that lists all loops with their state, and saves snapshots of them.

The list itself opens no loop: a script requests each row when it comes into view, which opens the loop of that row."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from starlette.responses import Response

from heedful.loop import Loop
from heedful.server.api import about
from heedful.server.codecs import whole
from heedful.server.pages.page import Page, Visit, back, render
from heedful.server.problems import as_problem, unavailable
from heedful.server.server_log import log
from heedful.storage import Owned

AT_ONCE = 50
"""The number of loops on a page of the list."""


async def render_list(visit: Visit, status: int, **form: object) -> Response:
    """Render the page that lists the loops of the caller's tenant, with the HTTP `status`. `form` is what the template
    needs for the form that makes a loop, by name."""
    start = whole(visit.query, "start", 0, 0)
    names = await visit.service.loops.list_names(visit.caller.tenant)
    return render(
        visit,
        "loops.html",
        status,
        tab="loops",
        **form,
        names=names[start : start + AT_ONCE],
        start=start,
        total=len(names),
        earlier=max(start - AT_ONCE, 0) if start else None,
        later=start + AT_ONCE if start + AT_ONCE < len(names) else None,
    )


async def row(visit: Visit) -> Response:
    """Render the row of the loop in the path: its state, or why it cannot be opened."""
    name = visit.request.path_params["name"]
    try:
        worker = await visit.service.loops.open(visit.caller.tenant, name)
        with worker:
            state = await worker.read(row_of, worker.loop, name)
    except Exception as error:
        problem = as_problem(error)
        if problem.kind == "not-found":
            raise
        state = {"error": problem.members["detail"]}
    return render(visit, "loops_row.html", name=name, kept=False, **state)


async def snapshot(visit: Visit) -> Response:
    """Handle the button that saves a snapshot of a loop."""
    try:
        await visit.worker.run(visit.loop.snapshot)
    except Owned:
        raise
    except OSError as error:
        log.error("%s: no snapshot could be written: %s", visit.loop.path, error)
        why = "no snapshot could be written; the server's log says why"
        raise unavailable(why, 60) from error
    if not visit.scripted:
        return back("/")
    state = await visit.worker.read(row_of, visit.loop, visit.name)
    return render(visit, "loops_row.html", name=visit.name, kept=True, **state)


def row_of(loop: Loop, name: str) -> dict[str, object]:
    """Return the values that the row of an open loop called `name` needs, by name."""
    log = loop.projection.log
    newest = log.at(log.last()[0])
    return {
        "error": "",
        "about": about(loop, name),
        "badge": loop.projection.interaction.fill(loop.projection.interaction.words.badge),
        "last": newest.time if newest is not None else 0,
        "bytes": sum(_sizes(loop)),
    }


def _sizes(loop: Loop) -> list[int]:
    """Return the sizes in bytes of the files in the loop's folder, if it has one."""
    sizes: list[int] = []
    for path in loop.path.iterdir() if isinstance(loop.path, Path) else ():
        with suppress(FileNotFoundError):  # it was removed meanwhile
            sizes.append(path.stat().st_size)
    return sizes


PAGES = (
    Page("GET", "/loops/{name}/row", ("read",), row),
    Page("POST", "/loops/{loop}/snapshot", ("admin", "read"), snapshot),
)
