"""The page that explains the score of an item in a decision: what its features contribute, and which feedback moved it.

It is rendered on the server and has no script. For each explanation a part of the log is replayed."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from heedful.loop import Loop
from heedful.loop.interactions.telling import Line, Table
from heedful.loop.interactions.telling import why as tell_why
from heedful.loop.records import check_id
from heedful.loop.why import find_decision
from heedful.server.pages.cards import cards
from heedful.server.pages.formatting import Moment, moment
from heedful.server.pages.page import Page, Visit, render
from heedful.server.pages.prediction_summary import lesson_text

FEATURES = 20
"""The most features that the page lists."""
EVENTS = 10
"""The most pieces of feedback that the page lists."""
LINKS = 50
"""The most items of a decision that the page links to."""


class Candidate(NamedTuple):
    """A link to the explanation of one item that the decision showed."""

    title: str
    """the title of the item, or its name"""
    href: str
    """the path of the page that explains it"""
    current: bool
    """whether the page explains this item"""


class ItemExplanation(NamedTuple):
    """The explanation of one item's score in a decision, with links to those of the other items shown."""

    title: str
    """the title of the item, or its name"""
    at: Moment
    """when the decision was made"""
    person: str | None
    """whom the decision was for; None for nobody in particular"""
    shown: tuple[Candidate, ...]
    """the items that the decision showed, best first, with links: at most `LINKS`"""
    more: int
    """how many more items were shown, to which the page has no links"""
    lines: tuple[str, ...]
    """sentences of the explanation"""
    tables: tuple[Table, ...]
    """the contributions of features and the feedback that moved the score most"""


async def show(visit: Visit) -> Response:
    """Render the explanation of an item's score; `decision` (an id) and `item` (a name) in the query say which.

    Without an item it is the first one shown. Without a decision the page has only the form that asks for one. Raise
    LookupError, which becomes a page with the status 404, if either is unknown."""
    decision, item = (visit.query.get(name, "").strip() for name in ("decision", "item"))
    path = f"{visit.base}/why"
    found = None
    if decision:
        found = await visit.read(_explain_item, visit.loop, path, check_id("decision", decision), item)
    return render(visit, "why.html", tab="learned", path=path, decision=decision, item=item, found=found)


def _explain_item(loop: Loop, path: str, id: str, item: str) -> ItemExplanation:
    """Return the explanation of the score of `item` in the decision `id`; if `item` is "", of the first item shown.

    `path` is the path of the page, for links. Raise LookupError if the decision is not in the log, showed nothing, or
    had no candidate called `item`."""
    loop.projection.look()  # another process may have written to it
    known = find_decision(loop.projection, id)
    names = [known.names[j] for j in known.record.shown]
    if not item and not names:
        raise LookupError(f"decision {id} showed nothing that was on offer: there is nothing to explain")
    told = loop.why(id, item or names[0], EVENTS)
    titles = {card.name: card.title for card in cards(loop, list(dict.fromkeys([*names[:LINKS], told.item])))}
    if told.next is not None:
        titles |= {card.name: card.title for card in cards(loop, [told.next])}
    named = told._replace(item=titles.get(told.item, told.item), next=titles.get(told.next or "", told.next))
    texts = {each.event: lesson_text(loop, each.seq) for each in told.events}
    lines, tables = list[str](), list[Table]()
    for part in tell_why(named, FEATURES):
        if isinstance(part, Line):
            lines.append(part.text)
        else:
            of_events = part.columns[0] == "feedback"
            rows = [(texts.get(row[0], row[0]) if of_events else row[0], *row[1:]) for row in part.rows]
            tables.append(part._replace(rows=tuple(rows)))
    shown = [
        Candidate(titles.get(name, name), f"{path}?{urlencode({'decision': id, 'item': name})}", name == told.item)
        for name in names[:LINKS]
    ]
    rest = max(len(names) - LINKS, 0)
    return ItemExplanation(
        named.item, moment(known.since), known.person, tuple(shown), rest, tuple(lines), tuple(tables)
    )


PAGES = (Page("GET", "/loops/{loop}/why", ("read",), show),)
