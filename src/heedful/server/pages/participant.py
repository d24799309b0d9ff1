"""The pages of participants: people who come by a link and have no key.

A link for answering leads through a consent, questions and thanks; a link that shows the ranking asks nothing. The
token in the path opens one study and nothing else: these routes know no name of a loop and no other person, and those
that ask show no ranking. A participant gets a random identity when they agree. Their browser keeps it in a signed
cookie that is valid for the path of the link only; the log has a name derived from it, from which the cookie cannot be
computed. The token is neither logged nor sent to anyone. As a program may use a link, too, requests by it are
rate-limited, and so is what one person can add to the log."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from math import comb
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heedful.server.context import ServerContext
from heedful.server.links import NOBODY, Link
from heedful.server.loop_worker import LoopWorker
from heedful.server.pages import question_flow, session
from heedful.server.pages.arena import arena_parts
from heedful.server.pages.card_selection import compares_pairs
from heedful.server.pages.page import back, form_of, in_thread, page, problem_page
from heedful.server.pages.standing import MANY, segments, summary
from heedful.server.problems import Problem, as_problem
from heedful.server.rate_limit import Buckets
from heedful.studies.answers import attempt_of
from heedful.studies.arena import outputs_of
from heedful.studies.study import Study, study_of

COOKIE = "heedful-participant"
SHOWN = ("", "/pictures/{number}")
"""The paths below a link that shows the ranking; it has no others."""
FORM = 2**12
"""The most bytes that a form may have."""
OVER = "This link has ended. The answers given with it are kept: thank you."
ENDED = "This link does not work, or no longer: ask the sender for another."
FULL = "This link was made for {} people, and that many have begun: ask the sender for another."
PERSON_RATE, LINK_RATE, BEGIN_RATE, LOOK_RATE = (20.0, 100.0), (100.0, 500.0), (1.0, 50.0), (200.0, 5000.0)
"""Rate limits, (requests per second, requests at once): of one participant; of a link's visitors who have not begun; of
people who begin; of visitors of a ranking, with its pictures."""
OWN_RATE, UNDO_RATE = (0.1, 10.0), (1.0, 20.0)
"""Rate limits for taking answers back, (per second, at once): of one participant, and of all participants of a link.
Undoing is expensive, so one participant alone cannot use up the limit of the link."""
SINCE = 400
"""An answer cannot be taken back after this many later events: the older it is, the more events have to be replayed."""
ANSWERS, TAKEN_BACK = 1000, 100
"""The most answers of a participant (or as many as the study has questions, if that is more), and how often answers to
one question may be taken back."""


class Rates:
    """The rate limiters of the pages for participants: `people` and `person_undo` by participant, the others by
    link."""

    def __init__(self) -> None:
        self.people, self.links, self.begin = Buckets(*PERSON_RATE), Buckets(*LINK_RATE), Buckets(*BEGIN_RATE)
        self.look, self.person_undo, self.link_undo = Buckets(*LOOK_RATE), Buckets(*OWN_RATE), Buckets(*UNDO_RATE)


class ParticipantVisit(NamedTuple):
    """A request of a participant of a study, who came by a valid link and has no key."""

    service: ServerContext
    """what all requests of the server share"""
    request: Request
    """the request as Starlette has it"""
    link: Link
    """the link by which the participant came"""
    worker: LoopWorker
    """the worker of the loop that holds the study"""
    study: Study
    """the study: its question and what participants see"""
    token: str
    """the secret part of the link's URL"""
    person: str | None
    """the participant's name in the log; None if they have not agreed yet"""
    rates: Rates
    """the rate limiters of this server's participants"""

    @property
    def base(self) -> str:
        """The path of the link by which the participant came, "/s/TOKEN"."""
        return f"/s/{self.token}"


Work = Callable[[ParticipantVisit], Awaitable[Response]]


def routes(service: ServerContext) -> list[Route]:
    """Return the Starlette routes of all pages that participants reach by a link to a study."""
    works: tuple[tuple[str, str, Work], ...] = (
        ("GET", "", ask),
        ("POST", "/agree", agree),
        ("POST", "/answer", answer),
        ("POST", "/undo", undo),
        ("GET", "/pictures/{number}", picture),
    )
    rates = Rates()
    return [
        Route(f"/s/{{token}}{path}", _endpoint(service, rates, path, work), methods=[how]) for how, path, work in works
    ]


def _endpoint(service: ServerContext, rates: Rates, path: str, work: Work) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of a path below a link: it checks link and rates, opens the study, and calls `work`."""

    async def endpoint(request: Request) -> Response:
        began, tenant = time.perf_counter(), ""
        try:
            session.same_origin(request)
            token = request.path_params["token"]
            link = service.links.find_cached(token) or await in_thread(service.signing, service.links.at, token)
            if link is None:
                ended = await in_thread(service.signing, service.links.has_ended, token)
                raise Problem("not-found", OVER if ended else ENDED)
            tenant = link.tenant
            if link.shows and path not in SHOWN:
                raise Problem("not-found", ENDED)
            person = None if link.shows else _person_of(request, link)
            if link.shows:
                rates.look.take(link.handle, began)
            elif person is None:  # a limit of their own, so that newcomers do not keep participants out
                rates.links.take(link.handle, began)
                if path == "/agree":
                    rates.begin.take(link.handle, began)
            else:
                rates.people.take(person, began)
            try:
                worker = await service.loops.open(tenant, link.loop)
            except Problem as problem:
                raise (Problem("not-found", ENDED) if problem.kind == "not-found" else problem) from None
            with worker:
                study = await worker.read(_study_of, worker, link)
                response = await work(ParticipantVisit(service, request, link, worker, study, token, person, rates))
        except Exception as error:
            part = "_part" if "hx-request" in request.headers else ""
            response = problem_page(f"participant_problem{part}.html", as_problem(error))
        label = f"{request.method} /s/{{token}}{path}"
        service.metrics.request(tenant, label, response.status_code, time.perf_counter() - began)
        return response

    return endpoint


def _person_of(request: Request, link: Link) -> str | None:
    """Return the participant's name in the log, from the cookie of `request`; None without one that `link` made."""
    person = link.person(request.cookies.get(COOKIE, ""))
    return None if person is None else f"{link.segment or NOBODY}/{person}"


def _study_of(worker: LoopWorker, link: Link) -> Study:
    """Return the study of `link`. Raise Problem (404) if its loop was removed and another one has the same name now."""
    if created_at(worker) != link.founded or not compares_pairs(worker.loop):
        raise Problem("not-found", ENDED)
    return study_of(worker.loop.path)


def created_at(worker: LoopWorker) -> int:
    """Return when the loop of this worker was created, in microseconds since 1970."""
    first = worker.projection.log.at(1)
    return 0 if first is None else first.time


# ---------------------------------------------------------------------------- the pages


async def ask(visit: ParticipantVisit) -> Response:
    """Render the page at the link itself: the next question to the participant. Visitors who have not begun get the
    consent, and a link that shows the ranking gets the ranking."""
    if visit.link.shows:
        return await show(visit)
    if visit.person is not None:
        return await _render_question(visit, visit.person, "participant.html", "more" in visit.request.query_params)
    if visit.link.begun >= visit.link.most:
        raise Problem("rejected", FULL.format(visit.link.most))
    return page("consent.html", study=visit.study, base=visit.base, of=_questions(visit))


async def show(visit: ParticipantVisit) -> Response:
    """Render the page with the present ranking; it does not name anybody who answered."""
    worker, segment = visit.worker, visit.link.segment
    people = (await visit.worker.read(segments, worker.loop)).get(segment, []) if segment else None
    board = await visit.worker.read(arena_parts, worker.loop, people) if visit.study.kind == "answers" else None
    standing, fresh = (None, True) if visit.study.kind == "answers" else await summary(worker, people, segment)
    many = len(worker.projection.catalogue.current) > MANY
    return page(
        "participant_ranking.html", study=visit.study, base=visit.base, standing=standing, fresh=fresh, many=many,
        board=board,
    )  # fmt: skip


async def agree(visit: ParticipantVisit) -> Response:
    """Handle the button by which a visitor agrees to take part: set a cookie with a new identity."""
    response = back(visit.base)
    if visit.person is None:
        if not await in_thread(visit.service.signing, visit.service.links.begin, visit.token):
            raise Problem("rejected", FULL.format(visit.link.most))
        secure = visit.request.headers.get("origin", "").startswith("https:")
        left = max(int(visit.link.ends / 1e6 - time.time()), 1)
        # Lax, not Strict: a participant who opens the link in a message again is known again.
        response.set_cookie(
            COOKIE, visit.link.cookie(), path=visit.base, httponly=True, samesite="lax", secure=secure, max_age=left
        )
    return response


async def answer(visit: ParticipantVisit) -> Response:
    """Handle the form with an answer to a question; show the next question."""
    form = await form_of(visit.request, visit.service, FORM)
    person = _require_person(visit)
    status = await question_flow.answer(visit.worker, person, form)
    visit.service.metrics.events[visit.link.tenant, visit.link.loop, "feedback", status] += 1
    return await _respond(
        visit, person, form, message="That question was answered before." if status == "other" else ""
    )


async def undo(visit: ParticipantVisit) -> Response:
    """Handle "undo": take the participant's last answer back and show its question again."""
    form = await form_of(visit.request, visit.service, FORM)
    person, event = _require_person(visit), form.get("event", "")
    place = await visit.worker.read(question_flow.place_of, visit.worker.loop, person)
    if not event or event != place.last:  # whether any other event exists is not told, and costs no tokens
        return await _respond(visit, person, form, message="")
    attempt = attempt_of(event)
    if attempt is not None and attempt >= TAKEN_BACK - 1:
        raise Problem("rejected", f"this question was answered {TAKEN_BACK} times, and stays as it is now")
    now = time.perf_counter()
    visit.rates.person_undo.take(person, now)
    visit.rates.link_undo.take(visit.link.handle, now)
    if await visit.worker.read(_events_since, visit.worker, event) > SINCE:
        raise Problem("rejected", "that was too long ago to be taken back: many have answered since")
    undone = await question_flow.take_back(visit.worker, person, event)
    return await _respond(visit, person, form, message="Taken back." if undone else "")


async def picture(visit: ParticipantVisit) -> Response:
    """Send the picture of an item; `number` in the path identifies it, a digest of its bytes."""
    if not visit.link.shows:
        _require_person(visit)
    return await question_flow.image_response(visit.worker, visit.request.path_params["number"])


def _events_since(worker: LoopWorker, id: str) -> int:
    """Return the number of events in the log after the answer `id`; 0 if there is no such answer."""
    event = worker.projection.log.find("feedback", id)
    return 0 if event is None else worker.projection.log.last()[0] - event.seq


def _require_person(visit: ParticipantVisit) -> str:
    """Return the participant's name in the log. Raise Problem if they have not agreed yet."""
    if visit.person is None:
        raise Problem("rejected", "this browser has not begun here, or keeps no cookies: load the page again")
    return visit.person


async def _respond(visit: ParticipantVisit, person: str, form: Mapping[str, str], message: str) -> Response:
    """Render the next question to `person` if a script sent the request; otherwise redirect to the page."""
    more = bool(form.get("more"))
    if "hx-request" not in visit.request.headers:
        return back(visit.base, **({"more": "1"} if more else {}))
    return await _render_question(visit, person, "ask_parts.html", more, message)


def _questions(visit: ParticipantVisit) -> int:
    """Return how many questions a participant is asked: at most one for each pair that can be compared."""
    outputs = outputs_of(visit.worker.loop.path) if visit.study.kind == "answers" else None
    pairs = comb(len(visit.worker.projection.catalogue.current), 2) if outputs is None else outputs.questions
    return min(visit.study.questions, pairs)


async def _render_question(
    visit: ParticipantVisit, person: str, template: str, more: bool = False, message: str = ""
) -> Response:
    """Render the participant's next question with this template, or thanks after the last one."""
    place = await visit.worker.read(question_flow.place_of, visit.worker.loop, person)
    of = _questions(visit)
    question = None
    if place.answered < (max(of, ANSWERS) if more else of):
        question = await question_flow.question(visit.worker, visit.study, person)
        place = question.place
    return page(
        template, study=visit.study, base=visit.base, message=message, of=of, more=more, person="",
        on=place.answered < ANSWERS, place=place, question=question,
    )  # fmt: skip
