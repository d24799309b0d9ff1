"""What a participant sees, who comes by a link and has no key: a consent line, questions, and thanks; or, by a link
that was made for that, the ranking, and nothing to answer.

The token in the path opens one study and nothing else: these routes know no name of a loop, no other person, and those
that ask no ranking. Who a participant is, is drawn when they agree, and kept by their browser, in a cookie of that path
alone, and signed; the log has a name made of it, from which it is not to be had. The token is not logged, and sent to
nobody. Who has a link may be a program: what comes by it has a rate, and what one person may leave in the log an end.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from math import comb
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heedful.server.context import Service, as_problem
from heedful.server.links import NOBODY, Link
from heedful.server.loop_worker import LoopWorker
from heedful.server.pages import question_flow, session
from heedful.server.pages.card_selection import widget_of
from heedful.server.pages.images import image_response
from heedful.server.pages.page import back, form_of, page
from heedful.server.pages.standing import MANY, segments, summary
from heedful.server.problems import Problem
from heedful.server.rate_limit import Buckets
from heedful.studies.answers import attempt_of
from heedful.studies.study import Study, study_of

T = TypeVar("T")
COOKIE = "heedful-participant"
SHOWN = ("", "/pictures/{number}")
"""What there is by a link that shows the ranking."""
FORM = 2**12
"""Bytes of a form, at most."""
OVER = "This link has ended. The answers given with it are kept: thank you."
ENDED = "This link does not work, or no longer: ask the sender for another."
FULL = "This link was made for {} people, and that many have begun: ask the sender for another."
PERSON_RATE, LINK_RATE, BEGIN_RATE, LOOK_RATE = (20.0, 100.0), (100.0, 500.0), (1.0, 50.0), (200.0, 5000.0)
"""(requests a second, requests at once): of one participant; by one link, of visitors who have not begun; of those who
begin there; of visitors who look at a ranking, with its pictures."""
OWN_RATE, UNDO_RATE = (0.1, 10.0), (1.0, 20.0)
"""The same for answers that are taken back: by one participant, and by all of one link. To take back an old answer
costs more, so one participant leaves some for the others."""
SINCE = 400
"""Events that may have come to the log after what is taken back."""
ANSWERS, TAKEN_BACK = 1000, 100
"""Answers that somebody may give, or as many as they are asked for; and how often they may take one back."""


class Rates(NamedTuple):
    """How much comes by each link, and from each participant."""

    people: Buckets
    links: Buckets
    begin: Buckets
    look: Buckets
    own: Buckets
    undo: Buckets


class ParticipantVisit(NamedTuple):
    """One request of a participant, past the link."""

    service: Service
    request: Request
    link: Link
    worker: LoopWorker
    study: Study
    token: str
    who: str | None
    """their name in the log; None where they have not agreed yet"""
    rates: Rates

    @property
    def base(self) -> str:
        """Where this study is, for them."""
        return f"/s/{self.token}"


Work = Callable[[ParticipantVisit], Awaitable[Response]]


def routes(service: Service) -> list[Route]:
    """The routes of participants."""
    made: tuple[tuple[str, str, Work], ...] = (
        ("GET", "", ask),
        ("POST", "/agree", agree),
        ("POST", "/answer", answer),
        ("POST", "/undo", undo),
        ("GET", "/pictures/{number}", picture),
    )
    rates = Rates(*[Buckets(*rate) for rate in (PERSON_RATE, LINK_RATE, BEGIN_RATE, LOOK_RATE, OWN_RATE, UNDO_RATE)])
    return [
        Route(f"/s/{{token}}{path}", _endpoint(service, rates, path, work), methods=[how]) for how, path, work in made
    ]


def _endpoint(service: Service, rates: Rates, path: str, work: Work) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        began, tenant = time.perf_counter(), ""
        try:
            session.same_origin(request)
            token = request.path_params["token"]
            link = service.links.remembered(token) or await _in_thread(service, partial(service.links.at, token))
            if link is None:
                ended = await _in_thread(service, partial(service.links.ended, token))
                raise Problem("not-found", OVER if ended else ENDED)
            tenant = link.tenant
            if link.shows and path not in SHOWN:
                raise Problem("not-found", ENDED)
            who = None if link.shows else _who(request, link)
            if link.shows:
                rates.look.take(link.handle, began)
            elif who is None:  # so many of these do not keep out who is in
                rates.links.take(link.handle, began)
                if path == "/agree":
                    rates.begin.take(link.handle, began)
            else:
                rates.people.take(who, began)
            try:
                worker = service.loops.at(tenant, link.loop) or await service.loops.open(tenant, link.loop)
            except Problem as problem:
                raise (Problem("not-found", ENDED) if problem.kind == "not-found" else problem) from None
            with worker:
                study = await worker.read(partial(_study, worker, link))
                response = await work(ParticipantVisit(service, request, link, worker, study, token, who, rates))
        except Exception as error:
            response = _problem(request, as_problem(error))
        label = f"{request.method} /s/{{token}}{path}"
        service.metrics.request(tenant, label, response.status_code, time.perf_counter() - began)
        return response

    return endpoint


def _who(request: Request, link: Link) -> str | None:
    person = link.person(request.cookies.get(COOKIE, ""))
    return None if person is None else f"{link.segment or NOBODY}/{person}"


def _study(worker: LoopWorker, link: Link) -> Study:
    """The study of a link. Problem where another loop of its name is there now."""
    if created_at(worker) != link.founded or widget_of(worker.loop).name != "pairs":
        raise Problem("not-found", ENDED)
    return study_of(worker.loop.path)


def created_at(worker: LoopWorker) -> int:
    """When a loop was made, in microseconds since 1970."""
    first = worker.projection.log.at(1)
    return 0 if first is None else first.time


def _problem(request: Request, problem: Problem) -> Response:
    scripted = "hx-request" in request.headers
    shown = page("taking_problem_part.html" if scripted else "taking_problem.html", problem.status, problem=problem)
    shown.headers.update(problem.headers)
    return shown


# ---------------------------------------------------------------------------- the pages


async def ask(taking: ParticipantVisit) -> Response:
    """The question they are at; before the first, what they agree to. By a link that shows it, the ranking."""
    who = taking.who
    if taking.link.shows:
        return await show(taking)
    if who is None and taking.link.begun >= taking.link.most:
        raise Problem("rejected", FULL.format(taking.link.most))
    if who is None:
        return page("consent.html", study=taking.study, base=taking.base, of=_questions(taking))
    return await _render_question(taking, who, "taking.html", more="more" in taking.request.query_params)


async def show(taking: ParticipantVisit) -> Response:
    """The ranking, as it stands: who answered what, and who they are, is nobody's business who looks."""
    worker, segment = taking.worker, taking.link.segment
    people = (await worker.read(partial(segments, worker.loop))).get(segment, []) if segment else None
    told, fresh = await summary(worker, people, segment)
    many = len(worker.projection.catalogue.current) > MANY
    known: dict[str, Any] = {"study": taking.study, "base": taking.base, "standing": told, "fresh": fresh, "many": many}
    return page("shown.html", **known)


async def agree(taking: ParticipantVisit) -> Response:
    """Begin: from now on the browser knows who they are."""
    response = back(taking.base)
    if taking.who is None:
        if not await _in_thread(taking.service, partial(taking.service.links.begin, taking.token)):
            raise Problem("rejected", FULL.format(taking.link.most))
        secure = taking.request.headers.get("origin", "").startswith("https:")
        left = max(int(taking.link.ends / 1e6 - time.time()), 1)
        # Lax, not Strict: who comes again by the link in a message is who they were.
        response.set_cookie(
            COOKIE, taking.link.cookie(), path=taking.base, httponly=True, samesite="lax", secure=secure, max_age=left
        )
    return response


async def answer(taking: ParticipantVisit) -> Response:
    """One answer; then the next question."""
    form = await form_of(taking.request, taking.service, FORM)
    who = _require_person(taking)
    status = await question_flow.answer(taking.worker, who, form)
    taking.service.metrics.events[taking.link.tenant, taking.link.loop, "feedback", status] += 1
    return await _respond(taking, who, form, told="That question was answered before." if status == "other" else "")


async def undo(taking: ParticipantVisit) -> Response:
    """Their last answer taken back; then its question again."""
    form = await form_of(taking.request, taking.service, FORM)
    who, event = _require_person(taking), form.get("event", "")
    place = await taking.worker.read(partial(question_flow.place_of, taking.worker.loop, who))
    if not event or event != place.last:  # of no other event is anything told, and it costs nobody anything
        return await _respond(taking, who, form, told="")
    attempt = attempt_of(event)
    if attempt is not None and attempt >= TAKEN_BACK - 1:
        raise Problem("rejected", f"this question was answered {TAKEN_BACK} times, and stays as it is now")
    now = time.perf_counter()
    taking.rates.own.take(who, now)
    taking.rates.undo.take(taking.link.handle, now)
    if await taking.worker.read(partial(_since, taking.worker, event)) > SINCE:
        raise Problem("rejected", "that was too long ago to be taken back: many have answered since")
    gone = await question_flow.take_back(taking.worker, who, event)
    return await _respond(taking, who, form, told="Taken back." if gone else "")


async def picture(taking: ParticipantVisit) -> Response:
    """A picture of this study."""
    if not taking.link.shows:
        _require_person(taking)
    return await image_response(taking.worker, taking.request.path_params["number"])


def _since(worker: LoopWorker, id: str) -> int:
    """How many events came to the log after an answer."""
    event = worker.projection.log.find("feedback", id)
    return 0 if event is None else worker.projection.log.last()[0] - event.seq


def _require_person(taking: ParticipantVisit) -> str:
    if taking.who is None:
        raise Problem("rejected", "this browser has not begun here, or keeps no cookies: load the page again")
    return taking.who


async def _respond(taking: ParticipantVisit, who: str, form: Mapping[str, str], told: str) -> Response:
    more = bool(form.get("more"))
    if "hx-request" not in taking.request.headers:
        return back(taking.base, **({"more": "1"} if more else {}))
    return await _render_question(taking, who, "ask_parts.html", more, told)


def _questions(taking: ParticipantVisit) -> int:
    return min(taking.study.questions, comb(len(taking.worker.projection.catalogue.current), 2))


async def _render_question(
    taking: ParticipantVisit, who: str, template: str, more: bool = False, told: str = ""
) -> Response:
    worker, study = taking.worker, taking.study
    place = await worker.read(partial(question_flow.place_of, worker.loop, who))
    of = _questions(taking)
    known: dict[str, Any] = {"study": study, "base": taking.base, "told": told, "of": of, "more": more}
    known |= {"owner": False, "person": "", "on": place.answered < ANSWERS}
    if place.answered >= (max(of, ANSWERS) if more else of):
        return page(template, place=place, question=None, **known)
    asked = await question_flow.question(worker, study, who)
    return page(template, place=asked.place, question=asked, **known)


async def _in_thread(service: Service, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(service.signing, work)
