"""Which cards are shown: those that a browser has, as they lie now, or others, dealt for a person."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial

from heedful.loop import Loop
from heedful.loop.interactions.card import Card, Widget
from heedful.server.pages import scale_widget
from heedful.server.pages.card_feedback import count_event, hand_as_dealt
from heedful.server.pages.card_order import Hand, Placement, parse_placement
from heedful.server.pages.forms import MOST, on_offer
from heedful.server.pages.page import Visit

HAND = 8
"""How many items are shown at a time."""
SLATE = 12
"""The same, at most, where the loop selects them."""
POOL = 100
"""Of so many, drawn, a loop that is answered by fields selects what it shows."""
TEACH = ("feedback", "decide", "read")
"""What takes to be allowed, to teach here: what is corrected is noted as shown, and what was learned is told."""


def widget_of(loop: Loop) -> Widget:
    """How a page takes answers to the cards of a loop."""
    return loop.projection.interaction.describe().widget


def undirected(loop: Loop, card: Card) -> bool:
    """Whether what was learned would be told as weights, and the learner has none."""
    return card.weights and not hasattr(loop.learner, "weights")


async def hand_of(visit: Visit, given: Mapping[str, str], person: str | None) -> Hand:
    """The cards of a `hand` that are still on offer, otherwise others: of those that were dealt, a decision is
    logged."""
    assert visit.worker is not None
    await visit.worker.read(partial(look, visit))
    widget = widget_of(visit.loop)
    if given.get("hand") and (names := on_offer(visit.loop, given["hand"])):
        if widget.name != "order":
            return await visit.worker.read(partial(_as_dealt, visit, names, given.get("decision", ""), person))
        own = parse_placement(given["placed"], MOST) if given.get("placed") else None
        return await visit.worker.read(partial(rank_cards, visit, names, person, own))
    if widget.scale is not None and widget.scale.selects:
        return await _select(visit, given, person)
    names = list(visit.loop.projection.catalogue.current)
    if not names:
        return Hand((), ())
    names = random.sample(names, min(POOL if widget.name == "fields" else HAND, len(names)))
    if not visit.may(*TEACH) or not _is_by_person(visit):
        return await visit.worker.read(partial(rank_cards, visit, names[:HAND], person))
    decision = await visit.worker.decide({"candidates": names, "person": person})
    count_event(visit, "decision", decision.arm)
    if widget.name == "fields":
        return Hand(decision.shown, decision.shown, decision.id, decision.arm)
    shown = set(decision.shown)  # of k = 1 a single one
    order = *decision.shown, *[name for name in names if name not in shown]
    return Hand(order, order, decision.id, decision.arm)


async def _select(visit: Visit, given: Mapping[str, str], person: str | None) -> Hand:
    """What the loop would show this person now, of all items on offer; other items than those in `past`, if there are
    any. Nothing where the person did not say who they are."""
    assert visit.worker is not None
    past = on_offer(visit.loop, given["past"], "past") if given.get("past") else []
    names = await visit.worker.read(partial(scale_widget.candidates, visit.loop, person, past))
    teaching = visit.may(*TEACH)
    if not names or (teaching and person is None):
        return Hand((), ())
    show = min(visit.loop.settings.k, SLATE, len(names))
    if not teaching or not _is_by_person(visit):
        best = (await visit.worker.read(partial(rank_cards, visit, names, person))).ranked[:show]
        return Hand(best, best)
    among = {"candidates": names} if past else {}
    decision = await visit.worker.decide({**among, "person": person, "show": show})
    count_event(visit, "decision", decision.arm)
    return Hand(decision.shown, decision.shown, decision.id, decision.arm)


def rank_cards(visit: Visit, dealt: Sequence[str], person: str | None, own: Placement | None = None) -> Hand:
    """Cards as the model ranks them, around what the person has put in `own` places."""
    loop = visit.loop
    version, order = loop.version, loop.rank(dealt, person=person)
    if own is None or _is_retracted(loop, own.event):  # taken back in another window
        return Hand(order, tuple(dealt), ranked=order)
    return Hand(own.around(order, version), tuple(dealt), ranked=order, placed=own)


def _is_retracted(loop: Loop, event: str) -> bool:
    given = loop.projection.log.find("feedback", event)
    return given is None or given.seq in loop.projection.log.retractions()


def _as_dealt(visit: Visit, names: Sequence[str], decision: str, person: str | None) -> Hand:
    """Cards that are scored as they were dealt; in the model's order where it is not known how."""
    return hand_as_dealt(visit.loop, names, decision, person) or rank_cards(visit, names, person)


def look(visit: Visit) -> None:
    """Take in what another process taught, and read what is on offer: of many items that takes a while, once."""
    visit.loop.projection.look()
    _ = visit.loop.projection.catalogue.current


def _is_by_person(visit: Visit) -> bool:
    """Whether a list counts as shown: not where a page of somebody else asks for it, where a browser fetches it before
    anybody wants to see it, or as a picture."""
    headers = visit.request.headers
    ours = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    page = headers.get("sec-fetch-dest", "document") in ("document", "empty")
    ahead = "prefetch" in headers.get("sec-purpose", "") + headers.get("purpose", "")
    return visit.request.method != "HEAD" and ours and page and not ahead
