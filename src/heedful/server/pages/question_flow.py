"""The questions of a study for one person: which one is next, their answer to it, and taking an answer back.

The questions of a person are numbered, and the ids of their decisions, answers and undos are made of the number and the
person's name. So a reload, another window or a restart of the server shows the same question, and an answer that is
sent twice counts once. A person is at their first question without an answer (answers that were taken back do not
count). A question about an item that is no longer on offer is skipped: in place of an answer the log has feedback of
the form `none`, which is not counted as an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from threading import Lock
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec
from starlette.responses import Response

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.loop.interactions.forms import CHOICES
from heedful.server.codecs import whole
from heedful.server.loop_worker import LoopWorker
from heedful.server.pages.plates import Plates, plates
from heedful.server.problems import Problem
from heedful.studies.answers import decision_id, event_id, prompt_of
from heedful.studies.arena import outputs_of, request_of
from heedful.studies.study import Study, picture_in, picture_ratio
from heedful.studies.things import Thing, things

REMEMBERED = 10_000
"""The most people of a study whose answers are cached."""
LONGEST = 150
"""The most characters of a person's name, which ids are made of."""
PICTURE = {
    # An SVG may hold anything: opened by itself it runs no script and loads nothing.
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    "referrer-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # The number of a picture is a digest of its bytes, so its content never changes.
    "cache-control": "private, max-age=86400, immutable",
}
"""The headers of a picture."""
HIGHEST = 999_999
"""The highest number of a question, or of an attempt at it, that a form may send."""


class Place(NamedTuple):
    """How far a person is in a study: the number of their next question, and their last answer."""

    number: int
    """the number of the question they are at, from 0; all before it were answered or skipped"""
    attempt: int
    """how many answers to that question they took back"""
    last: str
    """the id of their last answer, which they can take back; "" if there is none"""
    answered: int
    """how many questions they have answered"""


class Question(NamedTuple):
    """A question to one person: which of two items is better."""

    place: Place
    """the number of the question, and how far the person is"""
    things: tuple[Thing, ...]
    """the item on the left, the item on the right"""
    shown: str
    """a mark of the question that the answer sends along, so that an answer from an outdated page is refused; it does
    not reveal which items are shown"""
    plates: Plates | None
    """how pictures are laid out; None if the items have none"""
    prompt: str = ""
    """the prompt that both answer, in an arena of models; "" if there is none, or its text is not known"""


# ---------------------------------------------------------------------------- where a person is


class _Answer(NamedTuple):
    """An answer or skipped question of a person in the log of a study, that was not taken back."""

    id: str
    """the id of its event"""
    seq: int
    """the sequence number of its event in the log"""
    skipped: bool
    """whether it says that the question was skipped"""


_cache: WeakKeyDictionary[Loop, dict[str, tuple[_Answer, ...]]] = WeakKeyDictionary()  # by person, when last read
_cache_lock = Lock()


def place_of(loop: Loop, person: str) -> Place:
    """Return how far `person` is in the study, read from the log; answers that were read before are cached."""
    loop.projection.look()  # another process may have taken an answer back
    log = loop.projection.log
    undone = log.retractions()
    with _cache_lock:
        cached = _cache.setdefault(loop, {})
        answers = list(cached.get(person, ()))
    if answers and log.find("feedback", answers[-1].id) is None:  # the person was forgotten
        answers = []
    answers = answers[: next((i for i, answer in enumerate(answers) if answer.seq in undone), len(answers))]
    while True:
        attempt, event = 0, log.find("feedback", event_id(person, len(answers), 0))
        while event is not None and event.seq in undone:
            attempt += 1
            event = log.find("feedback", event_id(person, len(answers), attempt))
        if event is None:
            break
        answers.append(_Answer(event.id, event.seq, msgspec.json.decode(event.payload)["form"] == "none"))
    with _cache_lock:
        if len(cached) >= REMEMBERED:
            cached.clear()
        cached[person] = tuple(answers)
    answered = [answer.id for answer in answers if not answer.skipped]
    return Place(len(answers), attempt, answered[-1] if answered else "", len(answered))


async def question(worker: LoopWorker, study: Study, person: str) -> Question:
    """Return the next question to `person`, which stays the same until it is answered.

    One about an item that is no longer on offer is skipped. Raise Problem (404) if the person was forgotten."""
    while True:
        place = await worker.read(place_of, worker.loop, person)
        id = decision_id(person, place.number)
        try:
            decision = await worker.decide(await worker.read(_request, worker.loop, study, person, place.number))
        except LookupError as error:  # nobody who was forgotten comes back under the same name
            raise Problem("not-found", "the answers given here were erased, so there are no more questions") from error
        prompt, shown = await worker.read(_compared, worker.loop, study, id, decision.shown)
        if len(shown) == len(decision.shown):
            mark = await worker.read(_mark, worker, id)
            return Question(place, tuple(shown), mark, await worker.read(_plates, worker, shown), prompt)
        event = event_id(person, place.number, place.attempt)
        await worker.feedback({"decision": id, "id": event, "none": True})


def _request(loop: Loop, study: Study, person: str, number: int) -> dict[str, object]:
    """Return the request for the decision that asks a person their question `number`."""
    outputs = outputs_of(loop.path) if study.kind == "answers" else None
    if outputs is None:
        return {"id": decision_id(person, number), "person": person}
    return request_of(loop, outputs, person, number)


def _compared(loop: Loop, study: Study, id: str, names: Sequence[str]) -> tuple[str, list[Thing]]:
    """Return (prompt, what is compared) of the question in the decision `id`; "" if it has no prompt."""
    outputs = outputs_of(loop.path) if study.kind == "answers" else None
    if outputs is None:
        return "", things(loop, study, names)
    decision = loop.projection.find_decision(id)
    prompt = "" if decision is None else prompt_of(decision) or ""
    on_offer = loop.projection.catalogue.current
    texts = [(name, outputs.answers.get(name, {}).get(prompt, "")) for name in names if name in on_offer]
    return outputs.prompts.get(prompt, ""), [Thing(name, "", text, "", ()) for name, text in texts if text]


# ---------------------------------------------------------------------------- answers


async def answer(worker: LoopWorker, person: str, form: Mapping[str, str]) -> str:
    """Log a person's answer from the posted `form`; return what became of it.

    The form has the `number` of the question, the `attempt` (from 0; more if earlier answers to it were undone) and
    what was `shown`. The result is "applied", "duplicate" if the answer was there before, or "other" if the question
    has another answer already. Raise ValueError, naming the field, if one is invalid. Raise Problem if the question was
    not asked yet, or if `shown` says that the answer comes from the page of another question."""
    number, attempt = (whole({name: form.get(name, "")}, name, 0, 0, HIGHEST) for name in ("number", "attempt"))
    choice = form.get("choice", "")
    if choice not in CHOICES:
        raise ValueError(f"choice: expected {', '.join(CHOICES)}, got {describe(choice)}")
    place = await worker.read(place_of, worker.loop, person)
    if number > place.number:
        raise Problem("rejected", "this question was not asked yet: load the page again")
    shown = form.get("shown", "")
    if shown and shown != await worker.read(_mark, worker, decision_id(person, number)):
        raise Problem("rejected", "this answer is to another question than is asked here now: load the page again")
    event = event_id(person, number, attempt)
    before = await worker.read(_status_of, worker, event, choice)
    if before or (number, attempt) != (place.number, place.attempt):
        return before or "other"  # a question has one answer: a second one comes from an older page
    outcome = await worker.feedback({"decision": decision_id(person, number), "id": event, "choice": choice})
    if outcome.status == "rejected":
        before = await worker.read(_status_of, worker, event, choice)  # another window was sooner
        if not before:
            raise Problem("rejected", f"this answer could not be taken: {outcome.reason}")
        return before
    return str(outcome.status)


def _mark(worker: LoopWorker, id: str) -> str:
    """Return a text that identifies the question which the decision `id` asks; "" if there is no such decision.

    The page sends it back with the answer. It does not depend on the names of items. These may be hidden, and otherwise
    a guess could be checked against it."""
    decision = worker.projection.log.find("decision", id)
    return "" if decision is None else sha256(f"{id} {decision.time}".encode()).hexdigest()[:16]


def _status_of(worker: LoopWorker, event: str, choice: str) -> str:
    """Return "duplicate" if the log has the answer `event` with this `choice`, "other" with another, else ""."""
    feedback = worker.projection.log.find("feedback", event)
    if feedback is None:
        return ""
    return "duplicate" if msgspec.json.decode(feedback.payload).get("text") == choice else "other"


async def take_back(worker: LoopWorker, person: str, event: str) -> bool:
    """Undo the answer `event` if it is still the person's last one; return whether it was undone."""
    place = await worker.read(place_of, worker.loop, person)
    if not event or place.last != event:
        return False
    outcome = await worker.run(worker.loop.undo, event)
    return outcome.status != "rejected"


# ---------------------------------------------------------------------------- what is shown


def _plates(worker: LoopWorker, shown: Sequence[Thing]) -> Plates | None:
    """Return how the pictures of these items are laid out side by side; None if one has no picture."""
    if not all(thing.picture for thing in shown):
        return None
    return plates([picture_ratio(worker.loop.path, thing.picture) for thing in shown])


async def image_response(worker: LoopWorker, number: str) -> Response:
    """Return the picture with this `number`, a digest of its bytes; raise Problem (404) if there is none."""
    image = await worker.read(picture_in, worker.loop.path, number)
    if image is None:
        raise Problem("not-found", "there is no such picture")
    return Response(image[0], headers=PICTURE, media_type=image[1])
