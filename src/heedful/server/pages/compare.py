"""The page of a study that its owner uses: two items side by side, and how far the study is.

Visitors who have a key, or are on this machine, answer here. Participants who come by a link have a page of their own
(`heedful.server.pages.participant`).
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from heedful.loop import records
from heedful.server.pages import question_flow
from heedful.server.pages.card_selection import TEACH
from heedful.server.pages.images import image_response
from heedful.server.pages.page import Page, Visit, back, render
from heedful.server.pages.standing import study_in, summary
from heedful.studies.answers import OWN


async def compare(visit: Visit) -> Response:
    """Render the page with the question that a person is at: the `person` in the query, by default OWN."""
    return await _render_question(visit, "compare.html", _person_of(visit.query))


async def answer(visit: Visit) -> Response:
    """Handle the form with an answer to a question, then show the next question."""
    await study_in(visit)
    person = _person_of(visit.form)
    status = await question_flow.answer(visit.worker, person, visit.form)
    visit.note("feedback", status)
    return await _respond(visit, person, "That question was answered before." if status == "other" else "")


async def undo(visit: Visit) -> Response:
    """Handle "undo": take back the person's last answer, then show its question again.

    Nothing is undone if that answer is no longer the person's last one.
    """
    await study_in(visit)
    person = _person_of(visit.form)
    undone = await question_flow.take_back(visit.worker, person, visit.form.get("event", ""))
    return await _respond(visit, person, "Taken back." if undone else "")


async def picture(visit: Visit) -> Response:
    """Send a picture of the study."""
    return await image_response(visit.worker, visit.request.path_params["number"])


async def so_far(visit: Visit) -> Response:
    """Render the side panel of the comparison page: how far the study is, from everybody's answers."""
    await study_in(visit)
    standing, fresh = await summary(visit.worker, None)
    return render(visit, "so_far.html", base=_base(visit), standing=standing, fresh=fresh)


async def _render_question(visit: Visit, template: str, person: str, told: str = "") -> Response:
    """Render the question that a person is at; `told` says what became of their last request."""
    study = await study_in(visit)
    question = await question_flow.question(visit.worker, study, person)
    return render(
        visit, template, tab="compare", study=study, base=_base(visit), question=question, place=question.place,
        told=told, of=0, more=False, person="" if person == OWN else person,
    )  # fmt: skip


async def _respond(visit: Visit, person: str, told: str) -> Response:
    """Render the next question for a script; redirect a browser without one to the page."""
    if not visit.scripted:
        return back(_base(visit), **({} if person == OWN else {"person": person}))
    return await _render_question(visit, "ask_parts.html", person, told)


def _base(visit: Visit) -> str:
    """Return the path of the pages for comparing."""
    return f"{visit.base}/compare"


def _person_of(given: Mapping[str, str]) -> str:
    """Return the person that a form or a query names, OWN without one. Raise ValueError if the name is not valid."""
    person = given.get("person", "").strip()
    if not person:
        return OWN
    if len(records.check_id("person", person)) > question_flow.LONGEST:
        raise ValueError(f"person: expected at most {question_flow.LONGEST} characters, got {len(person)}")
    return person


PAGES = (
    Page("GET", "/loops/{loop}/compare", TEACH, compare),
    Page("GET", "/loops/{loop}/compare/so-far", ("read",), so_far),
    Page("GET", "/loops/{loop}/compare/pictures/{number}", ("read",), picture),
    Page("POST", "/loops/{loop}/compare/answer", TEACH, answer),
    Page("POST", "/loops/{loop}/compare/undo", TEACH, undo),
)
