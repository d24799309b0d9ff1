"""Teach it: a few items in the order that was learned, what a person would rather have, and what that moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from heedful.core.validation import describe
from heedful.loop import records
from heedful.loop.interactions.card import Card, Scale
from heedful.loop.records import Answer
from heedful.server.decisions import accepted
from heedful.server.events import always, stream
from heedful.server.pages import fields_widget, scale_widget, session
from heedful.server.pages.card_feedback import earlier_answers, take_back, write_answer
from heedful.server.pages.card_order import Hand, Placement
from heedful.server.pages.card_selection import TEACH, hand_of, look, rank_cards, undirected, widget_of
from heedful.server.pages.cards import cards, with_titles
from heedful.server.pages.feature_phrases import STRONGEST, level, phrases_of
from heedful.server.pages.formatting import describe_lesson
from heedful.server.pages.forms import acting, names_of, on_offer, person_of
from heedful.server.pages.page import Page, Visit, back, example, render
from heedful.server.problems import Problem

LESSONS = 6
LONGEST_EVENT = 180
"""Characters of the id of a correction: the list that it is to may be named after it."""


class Reply(NamedTuple):
    """What the page tells of what was just done."""

    text: str = ""
    event: str = ""
    """the correction, where it tells of one that can be taken back"""


NOTHING = Reply()


# ---------------------------------------------------------------------------- what is shown


async def teach(visit: Visit) -> Response:
    """The page; with `hand`, of these items, otherwise of others. Pairs are compared on a page of their own."""
    if widget_of(visit.loop).name == "pairs":
        return back(f"/loops/{quote(visit.name)}/{'compare' if visit.may(*TEACH) else 'results'}")
    person = person_of(visit.query)
    return await _render(visit, "teach.html", await hand_of(visit, visit.query, person), person)


async def hand(visit: Visit) -> Response:
    """Handle a script's request for new cards: render only the parts of the teaching page that change.

    With `hand` in the query, the same items are shown; where cards are put in order, they are ranked again around
    those that the person has `placed`. Without it (`deal=new`), other items are chosen.
    """
    person = person_of(visit.query)
    return await _render(visit, "teach_parts.html", await hand_of(visit, visit.query, person), person)


async def live(visit: Visit) -> Response:
    """What happens, as server-sent events."""
    assert visit.worker is not None
    query = {name: text for name, text in visit.query.items() if name in ("after", "kinds")}
    headers: dict[bytes, bytes] = dict(visit.request.scope["headers"])
    holds = partial(session.holds, visit.service, visit.request) if visit.caller.prefix else always
    return stream(visit.service, visit.caller, visit.worker, query, headers, holds)


async def _render(visit: Visit, template: str, hand: Hand, person: str | None, said: Reply = NOTHING) -> Response:
    assert visit.worker is not None
    return render(visit, template, tab="teach", **await visit.worker.read(partial(_context, visit, hand, person, said)))


def _context(visit: Visit, hand: Hand, person: str | None, said: Reply) -> dict[str, Any]:
    """What the templates of this page tell."""
    loop = visit.loop
    control, kind = loop.settings.control, loop.projection.interaction.describe()
    seq, _ = loop.projection.log.last()  # before anything is read: what comes meanwhile is told again
    bars = [] if loop.overflown else phrases_of(loop, visit.service.options.words).bars(loop.weights_of(person))
    return {
        "hand": hand,
        "cards": cards(loop, hand.names),
        "total": len(loop.projection.catalogue.current),
        "kind": kind,
        "widget": kind.widget.name,
        "board": _board(visit, kind, hand, person),
        "acting": acting(visit),
        "selects": kind.widget.scale is not None and kind.widget.scale.selects,
        "repeats": loop.settings.repeats,
        "undirected": undirected(loop, kind),
        "overflown": loop.overflown,
        "bars": bars,
        "level": level(bars[:STRONGEST]),
        "strongest": STRONGEST,
        "example": example(visit),
        "lessons": with_titles(loop, loop.lessons(limit=LESSONS, person=person)),
        "lesson": partial(describe_lesson, loop),
        "version": loop.version,
        "one_in": round(1 / control) if control > 0.0 else 0,
        "single": loop.settings.k == 1,
        "teaching": visit.may(*TEACH),
        "undoing": visit.may("feedback"),
        "person": person or "",
        "people": loop.settings.shrink > 0.0,
        "event": records.new_id(),
        "new_id": records.new_id,
        "listed": msgspec.json.encode(hand.names).decode(),
        "dealt": msgspec.json.encode(hand.dealt).decode() if hand.dealt else "",
        "placed": msgspec.json.encode(hand.placed).decode() if hand.placed else "",
        "said": said,
        "seq": seq,
        "base": f"/loops/{quote(visit.name)}",
    }


def _board(visit: Visit, kind: Card, hand: Hand, person: str | None) -> Any:
    """What the widget tells of the cards; None where their order says it."""
    if kind.widget.scale is not None:
        return scale_widget.board(visit.loop, kind.widget.scale, hand, person, acting(visit))
    return fields_widget.board(visit.loop) if kind.widget.name == "fields" else None


# ---------------------------------------------------------------------------- what is said


async def take_answer(visit: Visit) -> Response:
    """One answer, as the widget of this loop posts it."""
    assert visit.worker is not None
    person, event = person_of(visit.form), records.check_id("event", visit.form.get("event", ""))
    if len(event) > LONGEST_EVENT:
        raise ValueError(f"event: expected a text of at most {LONGEST_EVENT} characters, got {len(event)}")
    await visit.worker.read(partial(look, visit))
    names, widget = on_offer(visit.loop, visit.form.get("hand", "")), widget_of(visit.loop)
    if widget.scale is not None:
        return await _take_number(visit, widget.scale, names, event, person)
    return await (_take_order if widget.name == "order" else _take_fields)(visit, names, event, person)


async def _take_order(visit: Visit, names: Sequence[str], event: str, person: str | None) -> Response:
    """What the person would rather have (`item`), an `order`, or none of these."""
    assert visit.worker is not None
    given, kind = visit.form, visit.form.get("kind", "pick")
    dealt = on_offer(visit.loop, given["dealt"], "dealt") if given.get("dealt") else names
    form = _order(kind, given)
    moved = names_of("moved", given.get("moved") or "[]", 0) if kind == "order" else form.get("better", ())
    before = visit.loop.weights_of(person)
    if not given.get("decision"):  # what was seen is the page's own order: that is what the answer is to
        _check_there(form.get("better", ()), names)
    _, answer = await write_answer(
        visit, form, names, names[: 1 if visit.loop.settings.k == 1 else None], event, person
    )
    if kind == "none":
        told = "None of these: noted, but there is no lesson in it. Here are others."
        return await _respond(visit, {}, person, Reply(told, event))
    own = Placement(tuple(form["better"]), tuple(moved), kind, event, 0)
    lie, said = await visit.worker.read(partial(_rank_after, visit, dealt, person, before, answer, own))
    return await _respond(visit, lie, person, said)


async def _take_number(visit: Visit, scale: Scale, names: Sequence[str], event: str, person: str | None) -> Response:
    """A number for one card, or an action: a lesson, in place of the one that this card was given before. Where the
    loop selects the cards, the last of a list brings the next."""
    assert visit.worker is not None
    loop, worker = visit.loop, visit.worker
    item, form = scale_widget.parse(scale, visit.form)
    before = await worker.read(partial(scale_widget.prediction_of, loop, item, person))
    if not visit.form.get("decision"):  # the list of these cards was not logged
        _check_there([item], names)
    decision, answer = await write_answer(visit, form, names, names, event, person)
    for earlier in await worker.read(partial(earlier_answers, loop, decision, item, event)):
        await take_back(visit, earlier)
    after = await worker.read(partial(scale_widget.prediction_of, loop, item, person))
    again = answer.status == "duplicate"
    said = await worker.read(partial(scale_widget.reply, loop, scale, item, form, before, after, again))
    hand = await hand_of(visit, {**visit.form, "decision": decision}, person)
    if scale.selects and await worker.read(partial(scale_widget.is_finished, loop, scale, hand)):
        hand = await hand_of(visit, {}, person)
        said += " That was the last of these; here are the next." if hand.names else " That was the last of all."
    return await _respond(visit, hand, person, Reply(said, event))


async def _take_fields(visit: Visit, names: Sequence[str], event: str, person: str | None) -> Response:
    """The fields of a form; then other cards."""
    assert visit.worker is not None
    form = fields_widget.parse(visit.loop, names, visit.form)
    before = visit.loop.weights_of(person)
    _, answer = await write_answer(visit, form, names, names, event, person)
    told = await visit.worker.read(partial(_describe_effect, visit, before, answer, person))
    return await _respond(visit, await hand_of(visit, {}, person), person, Reply(told, event))


def _check_there(items: Sequence[str], names: Sequence[str]) -> None:
    """Problem where one of these is not among the cards."""
    if missing := [name for name in items if name not in names]:
        raise Problem("rejected", f"{describe(missing[0])} is not among the cards, or no longer on offer")


async def undo(visit: Visit) -> Response:
    """One correction taken back."""
    assert visit.worker is not None
    given, person = visit.form, person_of(visit.form)
    event = records.check_id("event", given.get("back") or given.get("event", ""))  # back: of an action's own button
    accepted(await take_back(visit, event))
    hand = await hand_of(visit, visit.form, person)
    told = await visit.worker.read(partial(_lesson, visit, event))
    return await _respond(visit, hand, person, Reply(f"Taken back: “{told}”."))


def _order(kind: str, given: Mapping[str, str]) -> dict[str, Any]:
    """A correction as feedback."""
    if kind == "pick":  # how the others stand among themselves, nobody said
        return {"better": [records.check_id("item", given.get("item", ""))]}
    if kind == "order":
        return {"better": names_of("order", given.get("order", ""))}
    if kind == "none":
        return {"none": True}
    raise ValueError(f"kind: expected pick, order or none, got {describe(kind)}")


async def _respond(visit: Visit, hand: Hand | Mapping[str, str], person: str | None, said: Reply) -> Response:
    """What is shown after a correction: to a script the parts that change, to a browser the whole page."""
    if not visit.scripted:
        query: dict[str, str] = {}
        if isinstance(hand, Hand):
            query |= {"hand": msgspec.json.encode(hand.dealt).decode()} if hand.dealt else {}
            query |= {"placed": msgspec.json.encode(hand.placed).decode()} if hand.placed else {}
            query |= {"decision": hand.decision} if hand.decision and widget_of(visit.loop).name != "order" else {}
        query |= {"actions": "1"} if acting(visit) else {}
        return back(f"/loops/{quote(visit.name)}", **query, **({"person": person} if person else {}))
    shown = hand if isinstance(hand, Hand) else await hand_of(visit, hand, person)
    return await _render(visit, "teach_parts.html", shown, person, said)


def _rank_after(
    visit: Visit, dealt: Sequence[str], person: str | None, before: Mapping[str, float], answer: Answer, own: Placement
) -> tuple[Hand, Reply]:
    """The cards as they lie after a correction, and what it did, in a sentence."""
    version, hand = visit.loop.version, rank_cards(visit, dealt, person)
    first = [name for name in own.order if name in hand.ranked]
    order = (*first, *[name for name in hand.ranked if name not in first])
    hand = hand._replace(names=order, placed=msgspec.structs.replace(own, order=order, version=version))
    told = _describe_effect(visit, before, answer, person)
    if answer.status == "applied" and not answer.learned:
        return hand, Reply(told, own.event)
    last = cards(visit.loop, [name for name in own.cards[-1:] if name in hand.ranked])
    return hand, Reply(" ".join([told, *[hand.follows(card.name, card.title) for card in last]]), own.event)


def _describe_effect(visit: Visit, before: Mapping[str, float], answer: Answer, person: str | None) -> str:
    """What an answer did, in a sentence."""
    if answer.status == "applied" and not answer.learned:
        return "Noted, but there was no lesson in it."
    phrases = phrases_of(visit.loop, visit.service.options.words)
    moved = phrases.describe_changes(before, visit.loop.weights_of(person))
    return f"Moved towards: {', '.join(moved)}." if moved else "Learned."


def _lesson(visit: Visit, event: str) -> str:
    """What was said in a correction."""
    there = visit.loop.projection.log.find("feedback", event)
    told = visit.loop.lessons(limit=1, before=there.seq + 1) if there else ()
    return "".join(describe_lesson(visit.loop, each) for each in with_titles(visit.loop, told))


PAGES = (
    Page("GET", "/loops/{loop}", ("read",), teach),
    Page("GET", "/loops/{loop}/hand", ("read",), hand),
    Page("GET", "/loops/{loop}/live", ("read",), live),
    Page("POST", "/loops/{loop}/teach", TEACH, take_answer),
    Page("POST", "/loops/{loop}/undo", ("feedback", "read"), undo),
)
