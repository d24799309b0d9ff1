"""Asking: where somebody is in a study, what they are asked next, what they answer, and taking that back.

The questions of a person have numbers, and their decisions, answers and undos ids made of these: so a reload, another
window, a server that starts again find everybody where they were, and an answer that is sent twice counts once. The
question that somebody is at is the first without an answer that stands. One that can be asked no more is passed over:
the log has `none` where its answer would be, which is nobody's answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.loop.interactions.forms import CHOICES
from heedful.server.loop_worker import LoopWorker
from heedful.server.pages.cards import Fact, value
from heedful.server.pages.feature_phrases import label, short
from heedful.server.pages.plates import Plates, plates
from heedful.server.problems import Problem
from heedful.studies.answers import decision_id, event_id
from heedful.studies.study import Study, picture_ratio

REMEMBERED = 10_000
"""People whose places are remembered, of one study."""
LONGEST = 150
"""Characters of a person's name: ids are made of it."""


class Place(NamedTuple):
    """Where somebody is in a study."""

    number: int
    """of the question they are at, from 0; so many have they answered, or were passed over"""
    attempt: int
    """how often that question was answered, and the answer taken back"""
    last: str
    """their last answer, that can be taken back; "" where there is none"""
    answered: int
    """how many they have answered"""


class Thing(NamedTuple):
    """One of the two that are compared, as people see it."""

    name: str
    title: str
    text: str
    picture: str
    """its number; "" where it is none"""
    facts: tuple[Fact, ...]


class Question(NamedTuple):
    """What somebody is asked."""

    place: Place
    things: tuple[Thing, ...]
    """the left one, the right one"""
    shown: str
    """what its page is known by, for nobody else's answer to count as one to it; it says nothing of what is seen"""
    plates: Plates | None
    """how pictures are shown; None where there are none"""


# ---------------------------------------------------------------------------- where somebody is


class _Answers(NamedTuple):
    """The answers of one person that stood when they were last looked at: (id, place in the log, whether it is that
    the question was passed over)."""

    events: tuple[tuple[str, int, bool], ...]


_known: WeakKeyDictionary[Loop, dict[str, _Answers]] = WeakKeyDictionary()
_looking = Lock()


def place_of(loop: Loop, who: str) -> Place:
    """Where somebody is, read from the log: what is remembered is where to go on reading."""
    loop.projection.look()  # somebody else may have taken something back
    log = loop.projection.log
    undone = log.retractions()
    with _looking:
        known = _known.setdefault(loop, {})
        before = known.get(who, _Answers(()))
    events = list(before.events)
    if events and log.find("feedback", events[-1][0]) is None:  # somebody was forgotten
        events = []
    events = events[: next((i for i, (_, seq, _) in enumerate(events) if seq in undone), len(events))]
    while True:
        attempt, event = 0, log.find("feedback", event_id(who, len(events), 0))
        while event is not None and event.seq in undone:
            attempt += 1
            event = log.find("feedback", event_id(who, len(events), attempt))
        if event is None:
            break
        events.append((event.id, event.seq, msgspec.json.decode(event.payload)["form"] == "none"))
    with _looking:
        if len(known) >= REMEMBERED:
            known.clear()
        known[who] = _Answers(tuple(events))
    own = [id for id, _, passed in events if not passed]
    return Place(len(events), attempt, own[-1] if own else "", len(own))


async def question(worker: LoopWorker, study: Study, who: str) -> Question:
    """What somebody is asked now: the same until it is answered. One about something that was taken off offer is
    passed over; it is no answer of theirs, and stays passed over."""
    while True:
        place = await worker.read(partial(place_of, worker.loop, who))
        id = decision_id(who, place.number)
        try:
            decision = await worker.decide({"id": id, "person": who})
        except LookupError as error:  # a person who was forgotten stays so
            raise Problem("not-found", "the answers given here were erased, so there are no more questions") from error
        shown = await worker.read(partial(things, worker.loop, study, decision.shown))
        if len(shown) == len(decision.shown):
            mark = await worker.read(partial(_mark, worker, id))
            return Question(place, tuple(shown), mark, await worker.read(partial(_plates, worker, shown)))
        event = event_id(who, place.number, place.attempt)
        await worker.feedback({"decision": id, "id": event, "none": True})


# ---------------------------------------------------------------------------- what is said


async def answer(worker: LoopWorker, who: str, form: Mapping[str, str]) -> str:
    """Take an answer to the question `number` at the attempt `attempt`: "applied", "duplicate" where it was there, or
    "other" where another answer to that question was. Problem, by name, where it is none, or comes from the page of
    another question of that number, as `shown` says: somebody else's, or one of a study that was there before."""
    number, attempt = (_count(name, form.get(name, "")) for name in ("number", "attempt"))
    choice = form.get("choice", "")
    if choice not in CHOICES:
        raise ValueError(f"choice: expected {', '.join(CHOICES)}, got {describe(choice)}")
    place = await worker.read(partial(place_of, worker.loop, who))
    if number > place.number:
        raise Problem("rejected", "this question was not asked yet: load the page again")
    shown = form.get("shown", "")
    if shown and shown != await worker.read(partial(_mark, worker, decision_id(who, number))):
        raise Problem("rejected", "this answer is to another question than is asked here now: load the page again")
    event = event_id(who, number, attempt)
    before = await worker.read(partial(_status_of, worker, event, choice))
    if before or (number, attempt) != (place.number, place.attempt):
        return before or "other"  # a question has one answer: a second one comes from an older page
    given = await worker.feedback({"decision": decision_id(who, number), "id": event, "choice": choice})
    if given.status == "rejected":
        before = await worker.read(partial(_status_of, worker, event, choice))  # another window was sooner
        if not before:
            raise Problem("rejected", f"this answer could not be taken: {given.reason}")
        return before
    return str(given.status)


def _mark(worker: LoopWorker, id: str) -> str:
    """What the page of a decision is known by: another than that of every other one, in whatever study; "" where there
    is none. Made of no name, since names may be hidden, and who guesses one could see whether it is right."""
    decision = worker.projection.log.find("decision", id)
    return "" if decision is None else sha256(f"{id} {decision.time}".encode()).hexdigest()[:16]


def _status_of(worker: LoopWorker, event: str, choice: str) -> str:
    """Whether an answer of that id is there: "duplicate" where it says the same, "other" where it does not; or ""."""
    there = worker.projection.log.find("feedback", event)
    if there is None:
        return ""
    return "duplicate" if msgspec.json.decode(there.payload).get("text") == choice else "other"


async def take_back(worker: LoopWorker, who: str, event: str) -> bool:
    """Take somebody's last answer back, if that is still `event`; whether it was."""
    place = await worker.read(partial(place_of, worker.loop, who))
    if not event or place.last != event:
        return False
    given = await worker.run(partial(worker.loop.undo, event))
    return given.status != "rejected"


def _count(name: str, given: str) -> int:
    if not given.isascii() or not given.isdecimal() or len(given) > 6:
        raise ValueError(f"{name}: expected a whole number, got {describe(given)}")
    return int(given)


# ---------------------------------------------------------------------------- what is seen


def things(loop: Loop, study: Study, names: Sequence[str]) -> list[Thing]:
    """Items on offer as people see them; those that no longer are, left out."""
    current = loop.projection.catalogue.current
    versions = {name: current[name] for name in names if name in current}
    rows = {
        event.seq: msgspec.json.decode(event.payload) for event in loop.projection.log.many(list(versions.values()))
    }
    return [_thing(loop, study, name, rows.get(version, {})) for name, version in versions.items()]


def _thing(loop: Loop, study: Study, name: str, row: Mapping[str, Any]) -> Thing:
    if study.kind == "pictures":
        return Thing(name, "", "", str(row.get("picture", "")), ())
    if study.kind == "texts":
        return Thing(name, "", str(row.get("text", "")), "", ())
    identifier = loop.manifest.encoding.identifier
    keys = study.show or tuple(key for key in row if key != identifier)
    hidden = bool(study.show) and identifier not in study.show
    seen = [
        (key, told) for key in keys if key != identifier and (told := _text_of(key, row.get(key))) not in (None, "–")
    ]
    title = "" if hidden or (identifier == "row" and seen) else name
    if not title and len(seen) == 1:  # a column of texts
        return Thing(name, "", seen[0][1] or "", "", ())
    return Thing(name, title, "", "", tuple([Fact(short(label(key)), told) for key, told in seen if told]))


def _plates(worker: LoopWorker, shown: Sequence[Thing]) -> Plates | None:
    """How the pictures of these things are shown side by side."""
    if not all(thing.picture for thing in shown):
        return None
    return plates([picture_ratio(worker.loop.path, thing.picture) for thing in shown])


def _text_of(key: str, given: Any) -> str | None:
    """An attribute as people read it: texts in full."""
    return given if isinstance(given, str) and given.strip() else value(key, given)
