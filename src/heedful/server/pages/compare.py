"""The study's own page: two things side by side, for who has a key, or is on this machine; and what is known so far."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from urllib.parse import quote

from starlette.responses import Response

from heedful.loop import records
from heedful.server.pages import question_flow
from heedful.server.pages.card_selection import TEACH, widget_of
from heedful.server.pages.images import image_response
from heedful.server.pages.page import Page, Visit, back, render
from heedful.server.pages.standing import summary
from heedful.server.problems import Problem
from heedful.studies.answers import OWN
from heedful.studies.study import Study, study_of


async def compare(visit: Visit) -> Response:
    """The question that somebody is at: `person`, or the person at this machine."""
    return await _render_question(visit, "compare.html", _who(visit.query))


async def answer(visit: Visit) -> Response:
    """One answer; then the next question."""
    assert visit.worker is not None
    await _study(visit)
    who = _who(visit.form)
    status = await question_flow.answer(visit.worker, who, visit.form)
    visit.service.metrics.events[visit.caller.tenant, visit.name, "feedback", status] += 1
    return await _respond(visit, who, "That question was answered before." if status == "other" else "")


async def undo(visit: Visit) -> Response:
    """Handle "undo": take back the person's last answer, then show its question again.

    Nothing is undone if that answer is no longer the person's last one.
    """
    assert visit.worker is not None
    await _study(visit)
    who = _who(visit.form)
    gone = await question_flow.take_back(visit.worker, who, visit.form.get("event", ""))
    return await _respond(visit, who, "Taken back." if gone else "")


async def picture(visit: Visit) -> Response:
    """A picture of the study."""
    assert visit.worker is not None
    return await image_response(visit.worker, visit.request.path_params["number"])


async def so_far(visit: Visit) -> Response:
    """Render the side panel of the comparison page: the standing of the items so far, from everybody's answers."""
    assert visit.worker is not None
    await _study(visit)
    standing, fresh = await summary(visit.worker, None)
    return render(visit, "so_far.html", base=base_of(visit), standing=standing, fresh=fresh)


async def _render_question(visit: Visit, template: str, who: str, told: str = "") -> Response:
    assert visit.worker is not None
    study = await _study(visit)
    asked = await question_flow.question(visit.worker, study, who)
    person = "" if who == OWN else who
    return render(
        visit, template, tab="compare", study=study, base=base_of(visit), question=asked, place=asked.place,
        told=told, of=0, more=False, owner=True, person=person,
    )  # fmt: skip


async def _respond(visit: Visit, who: str, told: str) -> Response:
    if not visit.scripted:
        return back(base_of(visit), **({} if who == OWN else {"person": who}))
    return await _render_question(visit, "ask_parts.html", who, told)


async def _study(visit: Visit) -> Study:
    """The study of a visit. Problem where people compare no pairs in this loop."""
    if widget_of(visit.loop).name != "pairs":
        raise Problem("not-found", "in this loop people do not compare pairs")
    assert visit.worker is not None
    return await visit.worker.read(partial(study_of, visit.loop.path))


def base_of(visit: Visit) -> str:
    """Where the study is."""
    return f"/loops/{quote(visit.name)}/compare"


def _who(given: Mapping[str, str]) -> str:
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
