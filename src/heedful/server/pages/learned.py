"""The page of what a loop learned: weights or predictions, the feedback behind them, whether learning helps, and
events.

While it is open, a script loads the whole page again when an event comes in, and replaces what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from heedful.core.wording import count
from heedful.io.exports import Exporter
from heedful.loop import Loop
from heedful.loop.interactions.findings import Picture, Stroke
from heedful.loop.interactions.protocol import prediction_scale
from heedful.results.history import LessonTold
from heedful.results.report import MeasuredRegret, Report
from heedful.server.codecs import whole
from heedful.server.decisions import answer_fields
from heedful.server.pages.card_feedback import take_back
from heedful.server.pages.card_selection import compares_pairs, lacks_weights
from heedful.server.pages.cards import with_titles
from heedful.server.pages.charts import Axis, score_line
from heedful.server.pages.feature_phrases import STRONGEST, Words, level, phrases_of
from heedful.server.pages.formatting import describe_event, describe_lesson
from heedful.server.pages.forms import person_of
from heedful.server.pages.page import Page, Visit, back, example, render
from heedful.server.pages.prediction_summary import summary

MOST = 40
"""The most weights that the page lists; a loop with a column of texts has thousands."""
LESSONS = 25
"""The number of pieces of feedback on the page."""
EVENTS = 50
"""The number of events that the page lists."""


class LessonQuery(NamedTuple):
    """What the visitor chose to see on the page."""

    person: str | None
    """the person whose feedback and weights are shown; None for everybody"""
    before: int | None
    """the sequence number before which feedback is listed; None for the newest"""

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> LessonQuery:
        """Return the choice in the fields of a query or form; raise ValueError, naming the field, if one is invalid."""
        person = person_of(fields)
        return cls(person, whole(fields, "before", 0, 1) or None)

    def fields(self) -> dict[str, str | int]:
        """Return the visitor's choice as fields for a form or a URL, {name: value}, without those that are None."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def query(self) -> str:
        """Return the query of a URL for this choice, "?person=ann"; "" if all fields are None."""
        return f"?{urlencode(self.fields())}" if self.fields() else ""


async def show(visit: Visit) -> Response:
    """Render the page of what a loop learned: weights or predictions, the feedback behind them, the report, events.

    If people compare pairs in this loop, redirect to the results of its study."""
    if compares_pairs(visit.loop):
        return back(f"{visit.base}/results")
    return await _render(visit, LessonQuery.of(visit.query))


async def undo(visit: Visit) -> Response:
    """Handle the button that undoes the feedback in the field `event` of the form; show the page again."""
    query = LessonQuery.of(visit.form)
    answer_fields(await take_back(visit, visit.form.get("event", "")))
    if not visit.scripted:
        return back(f"{visit.base}/learned{query.query()}#lessons")
    return await _render(visit, query, message="Undone: it counts as if it had never been given.")


async def _render(visit: Visit, query: LessonQuery, message: str = "") -> Response:
    """Render the page of what a loop learned; `message` is on the visitor's last request."""
    report = await visit.analyse(Loop.report)
    context, oldest = await visit.analyse(_context, report, query, visit.service.options.words)
    path = f"{visit.base}/learned"
    return render(
        visit,
        "learned.html",
        tab="learned",
        path=path,
        here=path + query.query(),
        person=query.person,
        kept=list(query.fields().items()),
        newest=path + query._replace(before=None).query() if query.before else "",
        older=path + query._replace(before=oldest).query() if oldest else "",
        message=message,
        strongest=STRONGEST,
        example=example(visit),
        **context,
    )


def _context(loop: Loop, report: Report, query: LessonQuery, words: Words) -> tuple[dict[str, object], int | None]:
    """Return (values for the template by name, where the list of feedback goes on, None if it has no more)."""
    loop.projection.look()  # another process may have written to it
    log, interaction = loop.projection.log, loop.projection.interaction
    head, _ = log.last()
    lessons = with_titles(loop, loop.lessons(LESSONS + 1, before=query.before, person=query.person))
    by_features = interaction.shows_weights
    visited = query.person is not None and log.newest("decision", query.person) > 0
    personal = loop.settings.shrink > 0.0 or not by_features
    state, view = loop.projection.reading(query.person if visited else None)
    bars = (
        []
        if loop.overflown
        else phrases_of(loop, words).bars(loop.weights_of(query.person), loop.spreads_of(query.person))
    )
    predicted = None
    if not by_features and interaction.words.prediction:
        scale = prediction_scale(interaction)
        predicted = summary(loop, Axis(scale.low, scale.high), query.person)
    cuts = interaction.cuts(view)
    counts = interaction.counts(state.shared, len(loop.projection.catalogue.current))
    named = any(lesson.person is not None for lesson in lessons)
    context = {
        "head": head,
        "so_far": f"{counts} {_so_far(loop)}".lstrip(),
        "whose": query.person if visited and personal else None,
        "about": "" if query.person is None else _about(query.person, visited, personal),
        "named": named,
        "people": personal or query.person is not None or named,
        "overflown": loop.overflown,
        "weights": bars[:MOST],
        "level": level(bars[:STRONGEST]),
        "left_out": max(len(bars) - MOST, 0),
        "predicted": predicted,
        "undirected": loop.manifest.learner if lacks_weights(loop) else "",
        "cuts": cuts,
        "regions": [] if cuts is None else score_line(cuts),
        "lessons": lessons[:LESSONS],
        "lesson_text": partial(describe_lesson, loop),
        "explained": _explained(loop, lessons[:LESSONS]),
        "events": _events(loop, head),
        **_report_context(loop, report),
    }
    return context, lessons[LESSONS - 1].seq if len(lessons) > LESSONS else None


def _about(person: str, visited: bool, personal: bool) -> str:
    """Return a sentence on which parts of the page are about one person."""
    if not visited:
        return f"Nobody called {person} has been here. What is below holds for everybody."
    if not personal:
        return f"Only the lessons below are {person}'s alone: this loop was made to learn the same for everybody."
    return f"What it thinks, and the lessons, are {person}'s; all else is everybody's."


def _so_far(loop: Loop) -> str:
    """Return how many answers the loop learned from, as a sentence."""
    counts, undone = loop.projection.log.counts(), len(loop.projection.log.retractions().undone)
    feedback = counts.get("feedback", 0)
    if not feedback:
        return "Nobody has answered yet, so it has learned nothing."
    back = f", {undone:,} of them taken back" if undone else ""
    shown = count(counts.get("decision", 0), loop.projection.interaction.words.shown)
    return f"From {count(feedback, 'answer')} to {shown}{back}."


def _explained(loop: Loop, lessons: Sequence[LessonTold]) -> set[str]:
    """Return the ids of the decisions of `lessons` that showed something that was on offer."""
    decisions = [loop.projection.find_decision(lesson.decision) for lesson in lessons]
    return {decision.id for decision in decisions if decision is not None and decision.record.shown}


def _events(loop: Loop, head: int) -> list[tuple[int, int, str]]:
    """Return the last events up to the sequence number `head`, newest first: (sequence number, when, what happened)."""
    exporter, rows = Exporter(loop, by_name=True), list[tuple[int, int, str]]()
    for event in islice(loop.projection.log.newest_first(head + 1), 2 * EVENTS):
        line = exporter.line(event)
        if line is not None and len(rows) < EVENTS:
            rows.append((event.seq, event.time, describe_event(loop, line)))
    return rows


def _report_context(loop: Loop, report: Report) -> dict[str, object]:
    """Return the values that the template needs to show the `report` of a loop, by name."""
    interaction = loop.projection.interaction
    return {
        "words": interaction.words,
        "findings": interaction.findings(report),
        "feedback": report.feedback,
        "late_after": loop.settings.late_after,
        "truth": report.simulation,
        "regret": None if report.simulation is None else _regret_picture(report.simulation),
    }


def _regret_picture(simulation: MeasuredRegret) -> Picture | None:
    """Return a picture of the mean regret over time, with its bound if one holds; None before two points of it."""
    if simulation.regret is None or len(simulation.curve) < 2:
        return None
    x, regret, limit = zip(
        *[(point.t, point.regret if point.regret > 0.0 else None, point.bound) for point in simulation.curve]
    )
    lines = [Stroke("regret", regret)] + ([Stroke("bound", limit, True)] if simulation.bound is not None else [])
    caption = "Mean regret so far. Lower is better; logarithmic axis."
    text = f"Mean regret over {count(simulation.lists, 'answered list')}, now {simulation.regret:.3g}."
    return Picture(x, "answered lists", "log", tuple(lines), text, caption)


PAGES = (
    Page("GET", "/loops/{loop}/learned", ("read",), show),
    Page("POST", "/loops/{loop}/learned/undo", ("feedback", "read"), undo, "undo"),
)
