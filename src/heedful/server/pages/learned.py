"""The page of what a loop learned: weights and the lessons that made them, whether learning helps, what happens now.

There is one page and no parts: while it is open it is asked for again when something happens, and what changed on it
is put in place of what was there.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from starlette.responses import Response

from heedful.io.exports import Exporter
from heedful.loop import Loop, records
from heedful.loop.history import LessonTold
from heedful.loop.interactions.card import Card
from heedful.server.api import whole
from heedful.server.decisions import accepted, outcome
from heedful.server.pages.card_selection import undirected, widget_of
from heedful.server.pages.cards import with_titles
from heedful.server.pages.feature_phrases import STRONGEST, level, phrases_of
from heedful.server.pages.formatting import Moment, count, describe_event, describe_lesson, moment
from heedful.server.pages.page import Page, Visit, back, example, render
from heedful.server.pages.prediction_summary import summary
from heedful.server.pages.report_view import report_context
from heedful.server.pages.score_line import score_line

MOST = 40
"""Weights that are told when asked for; a long text has thousands."""
LESSONS = 25
"""On a page."""
EVENTS = 50


class Lesson(NamedTuple):
    """A row of the table of lessons."""

    event: str
    seq: int
    said: str
    person: str | None
    at: Moment
    undone: bool
    marks: tuple[str, ...]


class EventLine(NamedTuple):
    """A line of the list of events."""

    seq: int
    at: Moment
    told: str


class LessonQuery(NamedTuple):
    """Which part of the lessons is looked at."""

    person: str | None
    before: int | None
    why: int | None = None
    """1 where it shall be told why something was shown to that person: it folds the log again"""

    @classmethod
    def of(cls, given: Any) -> LessonQuery:
        """Of a query or a form. ValueError, by field, where it is none."""
        person = given.get("person", "").strip()
        before = whole(given, "before", 0, 1) or None
        why = 1 if person and given.get("why") else None
        return cls(records.check_id("person", person) if person else None, before, why)

    def query(self, **instead: Any) -> str:
        """As a query, "?person=ann"; "" for everything."""
        kept = {name: value for name, value in (self._asdict() | instead).items() if value is not None}
        return f"?{urlencode(kept)}" if kept else ""


async def show(visit: Visit) -> Response:
    """The page; where people compare pairs, the results of the study."""
    if widget_of(visit.loop).name == "pairs":
        return back(f"/loops/{quote(visit.name)}/results")
    return await _render(visit, LessonQuery.of(visit.query))


async def undo(visit: Visit) -> Response:
    """Take a lesson back."""
    assert visit.worker is not None
    asked = LessonQuery.of(visit.form)
    answer = await visit.worker.run(partial(visit.loop.undo, visit.form.get("event", "")))
    visit.service.metrics.events[visit.caller.tenant, visit.name, "undo", outcome(answer)] += 1
    accepted(answer)
    if not visit.scripted:
        return back(f"{_path(visit)}{asked.query()}#lessons")
    return await _render(visit, asked, said="Undone: it counts as if it had never been given.")


def _path(visit: Visit) -> str:
    return f"/loops/{quote(visit.name)}/learned"


async def _render(visit: Visit, asked: LessonQuery, said: str = "") -> Response:
    assert visit.worker is not None
    told = await visit.worker.read(partial(_context, visit.loop, asked, visit.service.options.words))
    path = _path(visit)
    return render(
        visit,
        "learned.html",
        tab="learned",
        path=path,
        here=path + asked.query(),
        person=asked.person,
        kept=[(name, value) for name, value in asked._asdict().items() if value is not None],
        newest=path + asked.query(before=None) if asked.before else "",
        older=path + asked.query(before=told["lessons"][-1].seq) if told.pop("more") else "",
        said=said,
        ask_why=path + asked.query(why=1),
        strongest=STRONGEST,
        example=example(visit),
        **told,
    )


def _context(loop: Loop, asked: LessonQuery, words: Any) -> dict[str, Any]:
    """All that the page tells; in a thread, as it reads much."""
    loop.projection.look()  # another process may have taught it
    log = loop.projection.log
    head, _ = log.last()
    lessons = with_titles(loop, loop.lessons(LESSONS + 1, before=asked.before, person=asked.person))
    known = asked.person is not None and log.newest("decision", asked.person) > 0
    overflown, interaction, report = loop.overflown, loop.projection.interaction, report_context(loop)
    state, person_state = loop.projection.reading(asked.person)
    card: Card = report["card"]
    own = loop.settings.shrink > 0.0 or not card.weights
    bars = [] if overflown else phrases_of(loop, words).bars(loop.weights_of(asked.person))
    low, high = (card.prediction.low, card.prediction.high) if card.prediction is not None else (None, None)
    predicted = None
    if not card.weights and low is not None and high is not None:
        predicted = summary(loop, low, high, asked.person, asked.why is not None)
    so_far = _so_far(log.counts(), len(log.retractions().undone))
    counts = interaction.counts(state.shared, len(loop.projection.catalogue.current))
    return {
        "head": head,
        "so_far": f"{counts} {so_far}" if counts else so_far,
        "whose": asked.person if known and own else None,
        "about": "" if asked.person is None else _about(asked.person, known, own),
        "named": any(each.person is not None for each in lessons),
        "people": own or asked.person is not None or any(each.person is not None for each in lessons),
        "overflown": overflown,
        "weights": bars[:MOST],
        "level": level(bars[:STRONGEST]),
        "left_out": max(len(bars) - MOST, 0),
        "predicted": predicted,
        "undirected": loop.manifest.learner if undirected(loop, card) else "",
        "line": score_line(interaction.cuts(loop.projection.model, state.shared, person_state if known else None)),
        "lessons": [_lesson(loop, each) for each in lessons[:LESSONS]],
        "more": len(lessons) > LESSONS,
        "events": _events(loop, head),
        **report,
    }


def _about(person: str, known: bool, own: bool) -> str:
    """What of the page is about one person; `own`: whether the loop learns of each what differs from the others."""
    if not known:
        return f"Nobody called {person} has been here. What is below holds for everybody."
    if not own:
        return f"Only the lessons below are {person}'s alone: this loop was made to learn the same for everybody."
    return f"What it thinks, and the lessons, are {person}'s; all else is everybody's."


def _so_far(counts: dict[str, int], undone: int) -> str:
    feedback = counts.get("feedback", 0)
    if not feedback:
        return "Nobody has answered yet, so it has learned nothing."
    back = f", {undone:,} of them taken back" if undone else ""
    return f"From {count(feedback, 'answer')} to {count(counts.get('decision', 0), 'list')}{back}."


def _lesson(loop: Loop, told: LessonTold) -> Lesson:
    marks = {"undone": told.undone, "late": told.late, "taught nothing": not told.learned and not told.undone}
    return Lesson(
        told.event,
        told.seq,
        describe_lesson(loop, told),
        told.person,
        moment(told.time),
        told.undone,
        tuple(mark for mark, on in marks.items() if on),
    )


def _events(loop: Loop, head: int) -> list[EventLine]:
    """The last events, the newest first."""
    exporter, found = Exporter(loop, by_name=True), list[EventLine]()
    for event in islice(loop.projection.log.newest_first(head + 1), 2 * EVENTS):
        line = exporter.line(event)
        if line is not None and len(found) < EVENTS:
            found.append(EventLine(event.seq, moment(event.time), describe_event(loop, line)))
    return found


PAGES = (
    Page("GET", "/loops/{loop}/learned", ("read",), show),
    Page("POST", "/loops/{loop}/learned/undo", ("feedback", "read"), undo),
)
