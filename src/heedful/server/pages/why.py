"""The page that explains the score of an item in a decision: what its features contribute, and which feedback moved it.

It is rendered on the server and has no script. For each explanation a part of the log is replayed."""

from __future__ import annotations

from starlette.responses import Response

from heedful.loop import Loop
from heedful.loop.interactions import telling
from heedful.loop.packing import LoggedDecision
from heedful.loop.records import check_id
from heedful.loop.why import find_decision
from heedful.results.explanation import Why
from heedful.server.pages.cards import cards
from heedful.server.pages.page import Page, Visit, render
from heedful.server.pages.prediction_summary import lesson_text

FEATURES = 20
"""The most features that the page lists."""
EVENTS = 10
"""The most pieces of feedback that the page lists."""
LINKS = 50
"""The most items of a decision that the page links to."""


async def show(visit: Visit) -> Response:
    """Render the explanation of an item's score; `decision` (an id) and `item` (a name) in the query say which.

    Without an item it is the first one shown. Without a decision the page has only the form that asks for one. Raise
    LookupError, which becomes a page with the status 404, if either is unknown."""
    decision, item = (visit.query.get(name, "").strip() for name in ("decision", "item"))
    context: dict[str, object] = {}
    if decision:
        logged = await visit.worker.read(_find, visit.loop, check_id("decision", decision))
        names = [logged.names[j] for j in logged.record.shown]
        why = await visit.analyse(Loop.why, decision, item or None, EVENTS)
        context = {"logged": logged, **await visit.worker.read(_in_words, visit.loop, names, why)}
    return render(
        visit, "why.html", tab="learned", path=f"{visit.base}/why", decision=decision, item=item, links=LINKS, **context
    )


def _find(loop: Loop, id: str) -> LoggedDecision:
    loop.projection.look()  # another process may have written to it
    return find_decision(loop.projection, id)


def _in_words(loop: Loop, names: list[str], why: Why) -> dict[str, object]:
    """Return `why`, the explanation of one of the items `names`, for the template: with titles and feedback in
    words."""
    others = [name for name in (why.item, why.next) if name is not None]
    titles = {card.name: card.title for card in cards(loop, list(dict.fromkeys([*names[:LINKS], *others])))}
    named = why._replace(
        item=titles.get(why.item, why.item),
        next=titles.get(why.next or "", why.next),
        events=tuple([event._replace(event=lesson_text(loop, event.seq)) for event in why.events]),
    )
    return {"names": names, "titles": titles, "why": why, "parts": telling.why(named, FEATURES)}


PAGES = (Page("GET", "/loops/{loop}/why", ("read",), show),)
