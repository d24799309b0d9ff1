"""The page on which the owner of a study answers its questions: two items side by side, and how far the study is.

It is for visitors who have a key, or are on this machine. Participants who come by a link have a page of their own
(`heedful.server.pages.participant`)."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response

from heedful.server.pages import question_flow
from heedful.server.pages.card_selection import TEACH
from heedful.server.pages.forms import person_of
from heedful.server.pages.page import Page, Visit, back, render
from heedful.server.pages.standing import study_in, summary
from heedful.studies.answers import OWN


async def compare(visit: Visit) -> Response:
    """Render the page that asks which of two items is better, with the next question of a person.

    That is the `person` in the query, by default the owner of the study (OWN)."""
    return await _render_question(visit, "compare.html", _person_of(visit.query))


async def answer(visit: Visit) -> Response:
    """Handle the form with an answer to the question which of two items is better; show the next question."""
    await study_in(visit)
    person = _person_of(visit.form)
    status = await question_flow.answer(visit.worker, person, visit.form)
    visit.note("feedback", status)
    return await _respond(visit, person, "That question was answered before." if status == "other" else "")


async def undo(visit: Visit) -> Response:
    """Handle "undo": take back the person's last answer and show its question again.

    If the form names another answer than the last one, nothing is undone."""
    await study_in(visit)
    person = _person_of(visit.form)
    undone = await question_flow.take_back(visit.worker, person, visit.form.get("event", ""))
    return await _respond(visit, person, "Taken back." if undone else "")


async def picture(visit: Visit) -> Response:
    """Send the picture of an item; `number` in the path identifies it, a digest of its bytes."""
    return await question_flow.image_response(visit.worker, visit.request.path_params["number"])


async def so_far(visit: Visit) -> Response:
    """Render the side panel of the page that asks questions: the ranking of items so far, from everybody's answers."""
    await study_in(visit)
    standing, fresh = await summary(visit.worker, None)
    return render(visit, "so_far.html", base=_base(visit), standing=standing, fresh=fresh)


async def _render_question(visit: Visit, template: str, person: str, message: str = "") -> Response:
    """Render the next question of a person with this template; `message` is a message on their last request."""
    study = await study_in(visit)
    question = await question_flow.question(visit.worker, study, person)
    return render(
        visit, template, tab="compare", study=study, base=_base(visit), question=question, place=question.place,
        message=message, of=0, more=False, person="" if person == OWN else person,
    )  # fmt: skip


async def _respond(visit: Visit, person: str, message: str) -> Response:
    """Render the next question if a script sent the request; otherwise redirect to the page. `message` is a message."""
    if not visit.scripted:
        return back(_base(visit), **({} if person == OWN else {"person": person}))
    return await _render_question(visit, "ask_parts.html", person, message)


def _base(visit: Visit) -> str:
    """Return the path of this page and those below it."""
    return f"{visit.base}/compare"


def _person_of(fields: Mapping[str, str]) -> str:
    """Return the person named in a form or a query, OWN if none is. Raise ValueError if the name is not valid."""
    person = person_of(fields) or OWN
    if len(person) > question_flow.LONGEST:
        raise ValueError(f"person: expected at most {question_flow.LONGEST} characters, got {len(person)}")
    return person


PAGES = (
    Page("GET", "/loops/{loop}/compare", TEACH, compare),
    Page("GET", "/loops/{loop}/compare/so-far", ("read",), so_far),
    Page("GET", "/loops/{loop}/compare/pictures/{number}", ("read",), picture),
    Page("POST", "/loops/{loop}/compare/answer", TEACH, answer),
    Page("POST", "/loops/{loop}/compare/undo", TEACH, undo, "undo"),
)
