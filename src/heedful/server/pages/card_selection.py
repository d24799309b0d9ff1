"""Which cards (items) a page shows: those that the browser already has, or new ones for a person."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from heedful.loop import Loop
from heedful.server.pages import scale_widget
from heedful.server.pages.card_feedback import logged_hand
from heedful.server.pages.card_order import Hand, Placement, parse_placement
from heedful.server.pages.forms import items_on_offer
from heedful.server.pages.page import Visit

HAND = 8
"""The number of cards on a page."""
SLATE = 12
"""The most cards on a page where the model selects them."""
POOL = 100
"""The number of items, drawn at random, from which the model selects cards if people answer with a general form."""
TEACH = ("feedback", "decide", "read")
"""The scopes needed to teach on a page: what is shown is logged as a decision, and what was learned is shown."""


def widget_of(loop: Loop) -> str:
    """Return the input with which a page takes answers in this loop (`Words.widget`)."""
    widget: str = loop.projection.interaction.words.widget
    return widget


def compares_pairs(loop: Loop) -> bool:
    """Return whether people compare two items at a time in this loop, on the pages of a study."""
    return widget_of(loop) == "pairs"


def lacks_weights(loop: Loop) -> bool:
    """Return whether pages should show weights of features for this kind of loop, but the learner has none."""
    return loop.projection.interaction.shows_weights and not hasattr(loop.learner, "weights")


async def hand_of(visit: Visit, fields: Mapping[str, str], person: str | None) -> Hand:
    """Return the cards (items) that a page shows to `person`, None for nobody in particular, with their order.

    `visit` is the request of the page. If the fields `fields` of its query or form have a `hand`, a JSON list of names,
    then these items are shown, if they are still on offer. Otherwise the loop chooses new ones and logs a decision. A
    loop with query features, of which only a search knows the values, has no cards."""
    await visit.worker.read(look, visit)
    if visit.loop.manifest.query is not None:  # of each item a search has something to say, a page has not
        return Hand((), ())
    widget = widget_of(visit.loop)
    if fields.get("hand") and (names := items_on_offer(visit.loop, fields["hand"])):
        if widget == "order":
            placement = parse_placement(fields["placed"]) if fields.get("placed") else None
            return await visit.worker.read(rank_cards, visit, names, person, placement)
        logged = await visit.worker.read(logged_hand, visit.loop, names, fields.get("decision", ""), person)
        return await visit.worker.read(rank_cards, visit, names, person) if logged is None else logged
    if (scale := scale_widget.scale_of(visit.loop)) is not None and scale.selects:
        return await _select(visit, fields, person)
    names = list(visit.loop.projection.catalogue.current)
    if not names:
        return Hand((), ())
    names = random.sample(names, min(POOL if widget == "fields" else HAND, len(names)))
    if not visit.may(*TEACH) or not _is_shown(visit):
        return await visit.worker.read(rank_cards, visit, names[:HAND], person)
    hand = await _decide(visit, candidates=names, person=person)
    if widget == "fields":
        return hand
    shown = set(hand.names)  # with k = 1 a single card; the others follow it
    order = *hand.names, *[name for name in names if name not in shown]
    return hand._replace(names=order, dealt=order)


async def _select(visit: Visit, fields: Mapping[str, str], person: str | None) -> Hand:
    """Return the cards that the model selects for `person` from all items on offer, and log the decision."""
    past = items_on_offer(visit.loop, fields["past"], "past") if fields.get("past") else []
    names = await visit.worker.read(scale_widget.candidates, visit.loop, person, past)
    teaching = visit.may(*TEACH)
    if not names or (teaching and person is None):
        return Hand((), ())
    show = min(visit.loop.settings.k, SLATE, len(names))
    if not teaching or not _is_shown(visit):
        best = (await visit.worker.read(rank_cards, visit, names, person)).ranked[:show]
        return Hand(best, best)
    among = {"candidates": names} if past else {}
    return await _decide(visit, **among, person=person, show=show)


async def _decide(visit: Visit, **request: object) -> Hand:
    """Let the loop of the page decide which items to show, which logs a decision; return them as cards with its id."""
    decision = await visit.worker.decide(request)
    visit.note("decision", decision.arm)
    return Hand(decision.shown, decision.shown, decision.id, decision.arm)


def rank_cards(visit: Visit, dealt: Sequence[str], person: str | None, placement: Placement | None = None) -> Hand:
    """Return the cards called `dealt` in the model's order for `person` (None: nobody in particular).

    `placement` is the person's correction of the order: the cards that they moved keep their positions, unless it was
    undone."""
    loop = visit.loop
    version, order = loop.version, loop.rank(dealt, person=person)
    if placement is None or _is_retracted(loop, placement.event):  # taken back in another window
        return Hand(order, tuple(dealt), ranked=order)
    return Hand(placement.around(order, version), tuple(dealt), ranked=order, placed=placement)


def _is_retracted(loop: Loop, event: str) -> bool:
    """Return whether the feedback with the id `event` was undone, or is not in the log."""
    feedback = loop.projection.log.find("feedback", event)
    return feedback is None or feedback.seq in loop.projection.log.retractions()


def look(visit: Visit) -> None:
    """Read what other processes wrote to the loop of the page `visit`, and which items are on offer.

    With many items this takes a while, so it is done in another thread, once per request."""
    visit.loop.projection.look()
    _ = visit.loop.projection.catalogue.current


def _is_shown(visit: Visit) -> bool:
    """Return whether a person will see the page."""
    headers = visit.request.headers
    ours = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
    page = headers.get("sec-fetch-dest", "document") in ("document", "empty")
    ahead = "prefetch" in headers.get("sec-purpose", "") + headers.get("purpose", "")
    return visit.request.method != "HEAD" and ours and page and not ahead
