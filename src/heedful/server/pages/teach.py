"""The page on which people teach a loop: cards with items, the controls for answering, and what an answer changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from starlette.responses import Response

from heedful.core.validation import describe
from heedful.loop import records
from heedful.loop.interactions.telling import unordered
from heedful.loop.interactions.words import Words
from heedful.results.answers import Answer
from heedful.server.decisions import answer_fields
from heedful.server.events import stream
from heedful.server.pages import fields_widget, scale_widget, session
from heedful.server.pages.card_feedback import earlier_answers, take_back, write_answer
from heedful.server.pages.card_order import Hand, Placement
from heedful.server.pages.card_selection import (
    TEACH,
    compares_pairs,
    hand_of,
    lacks_weights,
    look,
    rank_cards,
    widget_of,
)
from heedful.server.pages.cards import cards, with_titles
from heedful.server.pages.feature_phrases import STRONGEST, level, phrases_of
from heedful.server.pages.formatting import describe_lesson
from heedful.server.pages.forms import items_on_offer, names_of, person_of, wants_actions
from heedful.server.pages.page import Page, Visit, back, example, render
from heedful.server.pages.scale_widget import Scale, ScaleWidget
from heedful.server.parameters import AFTER
from heedful.server.problems import Problem

LESSONS = 6
"""The number of pieces of feedback that the page lists."""
LONGEST_EVENT = 180
"""The most characters in the id of an answer: the id of its decision may be made from it."""


class Reply(NamedTuple):
    """The message that the page shows after the visitor's last request."""

    text: str = ""
    """the message; "" for none"""
    event: str = ""
    """the id of the feedback that it is about, which can be undone; "" if there is nothing to undo"""


NOTHING = Reply()


# ---------------------------------------------------------------------------- what is shown


async def teach(visit: Visit) -> Response:
    """Render the page on which people teach a loop, with the cards (items) of the `hand` in the query, or new ones.

    Redirect to the page of a study if people compare pairs in this loop."""
    if compares_pairs(visit.loop):
        return back(f"{visit.base}/{'compare' if visit.may(*TEACH) else 'results'}")
    person = person_of(visit.query)
    return await _render(visit, "teach.html", await hand_of(visit, visit.query, person), person)


async def hand(visit: Visit) -> Response:
    """Render the cards (items) of the page on which people teach a loop, for the page's script.

    If the query has `hand`, a JSON list of names, these items are shown. Where people put cards in order, they are
    ranked again, but cards that the person moved keep their positions (`placed` in the query). Without `hand` the loop
    chooses other items."""
    person = person_of(visit.query)
    return await _render(visit, "teach_parts.html", await hand_of(visit, visit.query, person), person)


async def live(visit: Visit) -> Response:
    """Stream the events of the loop (server-sent events), from which the page's script updates it."""
    after = AFTER.read(visit.query.get("after", "0"))
    headers: dict[bytes, bytes] = dict(visit.request.scope["headers"])
    holds = partial(session.holds, visit.service, visit.request) if visit.caller.prefix else None
    return await stream(visit.service, visit.caller, visit.worker, headers, holds, after, visit.query.get("kinds"))


async def _render(visit: Visit, template: str, hand: Hand, person: str | None, reply: Reply = NOTHING) -> Response:
    """Render the page, or the parts of it that change, with these cards; `reply` is a message on the last request."""
    return render(visit, template, tab="teach", **await visit.worker.read(_context, visit, hand, person, reply))


def _context(visit: Visit, hand: Hand, person: str | None, reply: Reply) -> dict[str, object]:
    """Return the names and values that the templates of this page use."""
    loop = visit.loop
    control, interaction = loop.settings.control, loop.projection.interaction
    seq, _ = loop.projection.log.last()  # read first: a script gets the events that come meanwhile
    board = _board(visit, hand, person)
    bars = [] if loop.overflown else phrases_of(loop, visit.service.options.words).bars(loop.weights_of(person))
    return {
        "hand": hand,
        "cards": cards(loop, hand.names),
        "total": len(loop.projection.catalogue.current),
        "words": interaction.words,
        "by_features": interaction.shows_weights,
        "query": [] if loop.manifest.query is None else list(loop.manifest.query.places),
        "widget": interaction.words.widget,
        "board": board,
        "unordered": _unordered(interaction.words, hand, board),
        "acting": wants_actions(visit),
        "selects": isinstance(board, ScaleWidget) and board.scale.selects,
        "repeats": loop.settings.repeats,
        "undirected": lacks_weights(loop),
        "overflown": loop.overflown,
        "bars": bars,
        "level": level(bars[:STRONGEST]),
        "strongest": STRONGEST,
        "example": example(visit),
        "lessons": with_titles(loop, loop.lessons(limit=LESSONS, person=person)),
        "lesson_text": partial(describe_lesson, loop),
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
        "reply": reply,
        "seq": seq,
        "base": visit.base,
    }


def _board(visit: Visit, hand: Hand, person: str | None) -> ScaleWidget | fields_widget.FieldsWidget | None:
    """Return the controls on the cards of `hand`; None if people answer by ordering the cards."""
    if (scale := scale_widget.scale_of(visit.loop)) is not None:
        return scale_widget.board(visit.loop, scale, hand, person, wants_actions(visit))
    return fields_widget.board(visit.loop) if widget_of(visit.loop) == "fields" else None


def _unordered(words: Words, hand: Hand, board: object) -> str:
    """Return why the predictions on the cards do not fall from top to bottom, in a sentence; "" if they do."""
    if not isinstance(board, ScaleWidget):
        return ""
    marks = [board.marks[name] for name in hand.names if name in board.marks]
    reason = unordered(words, hand.arm, [board.shown(mark) for mark in marks])
    if reason and (not hand.decision or any(mark.answer is not None or mark.done for mark in marks)):
        return "Cards stay where they are, while every answer changes the predictions."
    return reason


# ---------------------------------------------------------------------------- what is said


async def take_answer(visit: Visit) -> Response:
    """Handle the form with a person's answer to the cards (items) of the page: an order, a number, or other fields.

    It is logged as feedback under the id in the field `event`; then the page is shown with what changed. Raise
    ValueError, naming the field, if one is invalid."""
    person, event = person_of(visit.form), records.check_id("event", visit.form.get("event", ""))
    if len(event) > LONGEST_EVENT:
        raise ValueError(f"event: expected a text of at most {LONGEST_EVENT} characters, got {len(event)}")
    await visit.worker.read(look, visit)
    names = items_on_offer(visit.loop, visit.form.get("hand", ""))
    if (scale := scale_widget.scale_of(visit.loop)) is not None:
        return await _take_number(visit, scale, names, event, person)
    return await (_take_order if widget_of(visit.loop) == "order" else _take_fields)(visit, names, event, person)


async def _take_order(visit: Visit, names: Sequence[str], event: str, person: str | None) -> Response:
    """Log a person's correction of the order of the cards, and show the cards again."""
    form, kind = visit.form, visit.form.get("kind", "pick")
    dealt = items_on_offer(visit.loop, form["dealt"], "dealt") if form.get("dealt") else names
    better = _parse_order(kind, form)
    moved = names_of("moved", form.get("moved") or "[]", 0) if kind == "order" else better
    before = visit.loop.weights_of(person)
    if not form.get("decision"):  # the page itself had put the cards in order
        _check_cards(better, names)
    fields = {"none": True} if kind == "none" else {"better": better}
    shown = names[: 1 if visit.loop.settings.k == 1 else None]
    _, answer = await write_answer(visit, fields, names, shown, event, person)
    if kind == "none":
        text = "None of these: noted, but there is no lesson in it. Here are others."
        return await _respond(visit, {}, person, Reply(text, event))
    placement = Placement(tuple(better), tuple(moved), kind, event, 0)
    hand, reply = await visit.worker.read(_rank_after, visit, dealt, person, before, answer, placement)
    return await _respond(visit, hand, person, reply)


async def _take_number(visit: Visit, scale: Scale, names: Sequence[str], event: str, person: str | None) -> Response:
    """Log a number or an action for one card, and show the cards again; a number replaces the card's earlier one."""
    loop = visit.loop
    item, fields = scale_widget.parse(scale, visit.form)
    before = await visit.worker.read(scale_widget.prediction_of, loop, item, person)
    if not visit.form.get("decision"):  # these cards were not logged as a list
        _check_cards([item], names)
    decision, answer = await write_answer(visit, fields, names, names, event, person)
    for earlier in await visit.worker.read(earlier_answers, loop, decision, item, event):
        await take_back(visit, earlier)
    after = await visit.worker.read(scale_widget.prediction_of, loop, item, person)
    again = answer.status == "duplicate"
    text = await visit.worker.read(scale_widget.reply, loop, scale, item, fields, before, after, again)
    hand = await hand_of(visit, {**visit.form, "decision": decision}, person)
    if scale.selects and await visit.worker.read(scale_widget.is_finished, loop, scale, hand):
        hand = await hand_of(visit, {}, person)
        text += " That was the last of these; here are the next." if hand.names else " That was the last of all."
    return await _respond(visit, hand, person, Reply(text, event))


async def _take_fields(visit: Visit, names: Sequence[str], event: str, person: str | None) -> Response:
    """Log feedback with the fields of a form under the id `event`, and show new cards."""
    fields = fields_widget.parse(visit.loop, names, visit.form)
    if not visit.form.get("decision"):  # these cards were not logged as a list
        _check_cards(fields_widget.items_of(visit.loop, fields), names)
    before = visit.loop.weights_of(person)
    _, answer = await write_answer(visit, fields, names, names, event, person)
    text = await visit.worker.read(_describe_effect, visit, before, answer, person)
    return await _respond(visit, await hand_of(visit, {}, person), person, Reply(text, event))


def _check_cards(items: Sequence[str], names: Sequence[str]) -> None:
    """Raise Problem (409) if one of these `items` is not among the cards `names`."""
    if missing := [name for name in items if name not in names]:
        raise Problem("rejected", f"{describe(missing[0])} is not among the cards, or no longer on offer")


async def undo(visit: Visit) -> Response:
    """Handle the button that undoes the feedback in the field `back` or `event`; show the cards again."""
    form, person = visit.form, person_of(visit.form)
    event = records.check_id("event", form.get("back") or form.get("event", ""))  # an action's button has `back`
    answer_fields(await take_back(visit, event))
    hand = await hand_of(visit, visit.form, person)
    lesson = await visit.worker.read(_lesson, visit, event)
    return await _respond(visit, hand, person, Reply(f"Taken back: “{lesson}”."))


def _parse_order(kind: str, form: Mapping[str, str]) -> list[str]:
    """Return the names of the items that a posted form puts before all others, best first; [] for none."""
    if kind == "pick":
        return [records.check_id("item", form.get("item", ""))]
    if kind == "order":
        return names_of("order", form.get("order", ""))
    if kind == "none":
        return []
    raise ValueError(f"kind: expected pick, order or none, got {describe(kind)}")


async def _respond(visit: Visit, hand: Hand | Mapping[str, str], person: str | None, reply: Reply) -> Response:
    """Show the cards: to a script the parts of the page that change; otherwise redirect to the page."""
    if not visit.scripted:
        query: dict[str, str] = {}
        if isinstance(hand, Hand):
            query |= {"hand": msgspec.json.encode(hand.dealt).decode()} if hand.dealt else {}
            query |= {"placed": msgspec.json.encode(hand.placed).decode()} if hand.placed else {}
            query |= {"decision": hand.decision} if hand.decision and widget_of(visit.loop) != "order" else {}
        query |= {"actions": "1"} if wants_actions(visit) else {}
        return back(visit.base, **query, **({"person": person} if person else {}))
    shown = hand if isinstance(hand, Hand) else await hand_of(visit, hand, person)
    return await _render(visit, "teach_parts.html", shown, person, reply)


def _rank_after(
    visit: Visit,
    dealt: Sequence[str],
    person: str | None,
    before: Mapping[str, float],
    answer: Answer,
    placement: Placement,
) -> tuple[Hand, Reply]:
    """Return (the cards `dealt` after the correction `placement` of `person`, a message on what it changed)."""
    version, hand = visit.loop.version, rank_cards(visit, dealt, person)
    first = [name for name in placement.order if name in hand.ranked]
    order = (*first, *[name for name in hand.ranked if name not in first])
    hand = hand._replace(names=order, placed=msgspec.structs.replace(placement, order=order, version=version))
    text = _describe_effect(visit, before, answer, person)
    if answer.status == "applied" and not answer.learned:
        return hand, Reply(text, placement.event)
    last = cards(visit.loop, [name for name in placement.cards[-1:] if name in hand.ranked])
    return hand, Reply(" ".join([text, *[hand.agreement(card.name, card.title) for card in last]]), placement.event)


def _describe_effect(visit: Visit, before: Mapping[str, float], answer: Answer, person: str | None) -> str:
    """Return in words what a piece of feedback changed: the features whose weights for `person` changed most."""
    if answer.status == "applied" and not answer.learned:
        return f"Noted, but there was no lesson in it{f': {answer.reason}' if answer.reason else ''}."
    phrases = phrases_of(visit.loop, visit.service.options.words)
    moved = phrases.describe_changes(before, visit.loop.weights_of(person))
    return f"Moved towards: {', '.join(moved)}." if moved else "Learned."


def _lesson(visit: Visit, event: str) -> str:
    """Return what was said in the feedback with the id `event`, in words; "" if there is none."""
    feedback = visit.loop.projection.log.find("feedback", event)
    lessons = visit.loop.lessons(limit=1, before=feedback.seq + 1) if feedback else ()
    return "".join(describe_lesson(visit.loop, lesson) for lesson in with_titles(visit.loop, lessons))


PAGES = (
    Page("GET", "/loops/{loop}", ("read",), teach),
    Page("GET", "/loops/{loop}/hand", ("read",), hand),
    Page("GET", "/loops/{loop}/live", ("read",), live),
    Page("POST", "/loops/{loop}/teach", TEACH, take_answer),
    Page("POST", "/loops/{loop}/undo", ("feedback", "read"), undo, "undo"),
)
