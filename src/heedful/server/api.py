"""All other routes, through FastAPI: what is asked now and then, and the description of everything (OpenAPI)."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse
from starlette.routing import Match

from heedful import __version__
from heedful.doors import describe
from heedful.loop import Loop
from heedful.loop.log import Closed, Damaged
from heedful.loop.loop import Unerased
from heedful.loop.settings import wanted_learner
from heedful.loop.wire import plain
from heedful.naming import is_packaged
from heedful.server import bodies, schema
from heedful.server.bodies import fields, listed
from heedful.server.description import openapi
from heedful.server.desk import Desk
from heedful.server.events import stream
from heedful.server.fast import SCOPES, accepted, outcome
from heedful.server.founding import found, naming
from heedful.server.gate import Caller, source
from heedful.server.loops import MAIN, loop_name
from heedful.server.meters import ELSEWHERE
from heedful.server.problems import Problem
from heedful.server.service import LARGE, Service, as_problem


class Asked(NamedTuple):
    """One request, past the gate."""

    service: Service
    caller: Caller
    headers: bodies.Headers
    query: Mapping[str, str]
    path: Mapping[str, str]
    given: Any
    """the body, decoded; None without one"""
    desk: Any
    """of the loop that the path names; None where it names none"""

    @property
    def loop(self) -> Loop:
        """The loop that the path names."""
        desk: Desk = self.desk
        return desk.loop

    def note(self, kind: str, result: str, n: int = 1) -> None:
        """So many more events of a kind."""
        self.service.meters.events[self.caller.tenant, self.path["loop"], kind, result] += n


class Route(NamedTuple):
    """One route as data."""

    method: str
    path: str
    scope: str | None
    work: Callable[[Asked], Awaitable[Any]]
    takes: bool = False
    """whether it has a body"""
    bulk: bool = False
    """whether JSON may be as large as any body"""
    status: int = 200
    query: tuple[str, ...] = ()
    missing: str = "bad-input"
    """what is said where something that is named is not there"""


# ---------------------------------------------------------------------------- loops


async def loops(asked: Asked) -> Any:
    return {"loops": asked.service.loops.names(asked.caller.tenant)}


async def new_loop(asked: Asked) -> Any:
    given = fields(asked.given, schema.NEW_LOOP)
    name = loop_name("name", given.get("name"))
    if given.get("learner") is not None:
        with about_learner():
            wanted_learner(packaged(given["learner"]))
    make = found({key: value for key, value in given.items() if key != "name"})
    desk = await asked.service.loops.create(asked.caller.tenant, name, make)
    with desk:
        return await desk.run(partial(about, desk.loop, name))


async def one_loop(asked: Asked) -> Any:
    return await asked.desk.run(partial(about, asked.loop, asked.path["loop"]))


def about(loop: Loop, name: str) -> dict[str, Any]:
    """What there is to know of a loop."""
    loop.ledger.look()  # another process may have taught it
    founding = loop.founding
    return {
        "name": name,
        "learner": founding.learner,
        "identifier": founding.encoding.identifier or "id",
        "version": loop.version,
        "features": founding.encoding.size,
        "names": founding.names,
        "items": len(loop.ledger.shelf.current),
        "events": loop.ledger.log.counts(),
        "settings": founding.settings,
        "caveats": loop.caveats,
        "notes": [note.replace(f"{loop.path}/", "") for note in loop.notes],
        "unknown": dict(loop.unknown),
        **({} if founding.query is None else {"query_features": list(founding.query.places)}),
        **({} if loop.grades is None else {"grades": loop.grades}),
        **({} if loop.ratings is None else {"ratings": loop.ratings}),
        **({} if loop.choices is None else {"choices": loop.choices}),
    }


async def weights(asked: Asked) -> Any:
    await asked.desk.read(asked.loop.ledger.look)  # another process may have taught it
    return {"version": asked.loop.version, "weights": plain(asked.loop.weights_of(asked.query.get("person")))}


# ---------------------------------------------------------------------------- items


async def put_items(asked: Asked) -> Any:
    rows = listed(asked.given, asked.service.limits.batch * 10)
    with naming("items"):
        return {"put": await asked.desk.run(partial(asked.loop.put_items, rows))}


async def items(asked: Asked) -> Any:
    start, limit = whole(asked.query, "start", 0, 0), whole(asked.query, "limit", 1000, 1, 10_000)
    await asked.desk.read(asked.loop.ledger.look)  # another process may have put some
    names = asked.loop.items
    return {"items": names[start : start + limit], "total": len(names)}


async def withdraw(asked: Asked) -> Any:
    return {"withdrawn": await asked.desk.run(partial(asked.loop.withdraw, asked.path["item"]))}


# ---------------------------------------------------------------------------- decisions and what came of them


async def record(asked: Asked) -> Any:
    given = bodies.with_key(fields(asked.given, schema.RECORD), bodies.key(asked.headers))
    wanted(given, "candidates", "shown", "id")
    decision, again = await asked.desk.once(partial(asked.loop.record, **given), given["id"])
    asked.note("decision", "duplicate" if again else decision.arm)
    if decision.unknown and not again:
        asked.note("candidate", "unknown", len(decision.unknown))
    return decision.plain()


def wanted(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """given, with none of these fields missing. ValueError where one is."""
    for name in names:
        if given.get(name) is None:
            raise ValueError(f"{name}: wanted, got none")
    return given


async def rank(asked: Asked) -> Any:
    given = fields(asked.given, schema.RANK)

    def ranked() -> Any:
        asked.loop.ledger.look()  # another process may have taught it
        return plain(asked.loop.ranking(**given))

    return await asked.desk.read(ranked)


async def activate(asked: Asked) -> Any:
    given = wanted(fields(asked.given, schema.ACTIVATE), "decision")
    answer = await asked.desk.run(partial(asked.loop.activate, given["decision"], time=given.get("time")))
    asked.note("activate", outcome(answer))
    return accepted(answer)


async def undo(asked: Asked) -> Any:
    given = bodies.with_key(wanted(fields(asked.given, schema.UNDO), "event"), bodies.key(asked.headers))
    answer = await asked.desk.run(partial(asked.loop.undo, given["event"], id=given.get("id")))
    asked.note("undo", outcome(answer))
    return accepted(answer)


async def forget(asked: Asked) -> Any:
    try:
        gone = await asked.desk.run(partial(asked.loop.forget, asked.path["person"]))
    except Unerased as error:  # somebody else is reading: it is tried again until nobody is
        gone = error.forgotten
        asked.desk.unerased = time.monotonic()
    asked.note("forget", "applied")
    return plain(gone)


async def explanation(asked: Asked) -> Any:
    return plain(await asked.desk.run(partial(asked.loop.explain, asked.path["id"])))


async def report(asked: Asked) -> Any:
    last = whole(asked.query, "last", 10_000, 1, 1_000_000)
    return plain(await asked.desk.read(partial(asked.loop.report, last)))


async def standing(asked: Asked) -> Any:
    return plain(await asked.desk.read(partial(asked.loop.standing, asked.query.get("person"))))


async def replay(asked: Asked) -> Any:
    given = fields(asked.given, schema.REPLAY)
    learner = packaged(given.get("learner"))
    with about_learner():
        return plain(await asked.desk.run(partial(asked.loop.replay, learner)))


@contextmanager
def about_learner() -> Iterator[None]:
    """What is refused inside, "second-order: epsilon: wanted ...", is refused of the field `learner`."""
    try:
        yield
    except (Closed, Damaged):
        raise
    except ValueError as error:
        told = str(error)
        raise ValueError(told if told.startswith("learner") else f"learner: {told}") from None


def packaged(learner: Any) -> str:
    """learner as the name of one of the package's: nobody names code to be run over the network. ValueError."""
    if not isinstance(learner, str) or len(learner) > 500 or not is_packaged(learner.partition(":")[0]):
        raise ValueError(f"learner: wanted one of heedful's, such as fair-pairs, got {describe(learner)}")
    return learner


# ---------------------------------------------------------------------------- the server


TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""What Prometheus reads."""


async def metrics(asked: Asked) -> Any:
    caller = asked.caller
    everything = caller.tenant == MAIN and "admin" in caller.scopes
    text = await asked.service.metrics.text(None if everything else caller.tenant)
    return Response(text, headers={"cache-control": "no-store"}, media_type=TEXT)


async def events(asked: Asked) -> Any:
    return stream(asked.service, asked.caller, asked.desk, asked.query, asked.headers)


ROUTES = (
    Route("GET", "/v1/loops", "read", loops),
    Route("POST", "/v1/loops", "admin", new_loop, takes=True, bulk=True, status=201),
    Route("GET", "/v1/loops/{loop}", "read", one_loop),
    Route("PUT", "/v1/loops/{loop}/items", "admin", put_items, takes=True, bulk=True),
    Route("GET", "/v1/loops/{loop}/items", "read", items, query=("start", "limit")),
    Route("DELETE", "/v1/loops/{loop}/items/{item:path}", "admin", withdraw),
    Route("POST", "/v1/loops/{loop}/records", "decide", record, takes=True),
    Route("POST", "/v1/loops/{loop}/rank", "read", rank, takes=True),
    Route("POST", "/v1/loops/{loop}/activate", "feedback", activate, takes=True),
    Route("POST", "/v1/loops/{loop}/undo", "feedback", undo, takes=True),
    Route("POST", "/v1/loops/{loop}/replays", "read", replay, takes=True),
    Route("GET", "/v1/loops/{loop}/weights", "read", weights, query=("person",)),
    Route("GET", "/v1/loops/{loop}/standing", "read", standing, query=("person",)),
    Route("GET", "/v1/loops/{loop}/report", "read", report, query=("last",)),
    Route("GET", "/v1/loops/{loop}/decisions/{id:path}/explanation", "read", explanation, missing="not-found"),
    Route("GET", "/v1/loops/{loop}/events", "read", events, query=("after", "kinds", "follow")),
    Route("DELETE", "/v1/loops/{loop}/people/{person:path}", "admin", forget),
    Route("GET", "/metrics", "read", metrics),
)


def build(service: Service) -> FastAPI:
    """The application of these routes."""
    api = FastAPI(
        title="heedful",
        version=__version__,
        description="Loops over HTTP: show something, take the reaction, do better next time.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    for route in ROUTES:
        api.add_route(route.path, _endpoint(service, route), methods=[route.method], include_in_schema=False)
    description = openapi(__version__)

    async def healthz(request: Request) -> Response:
        return Response(b'{"status":"ok"}', media_type="application/json")

    async def described(request: Request) -> Response:
        return Response(description, media_type="application/json")

    async def elsewhere(request: Request) -> Response:
        raise HTTPException(404)

    for what in SCOPES:  # what is posted there never comes here: it is so that other methods are told what is allowed
        api.add_route(f"/v1/loops/{{loop}}/{what}", elsewhere, methods=["POST"])
    api.add_route("/healthz", healthz, methods=["GET"])
    api.add_route("/openapi.json", described, methods=["GET"])

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        began, tenant = time.perf_counter(), ""
        headers: dict[bytes, bytes] = dict(request.scope["headers"])
        try:  # also for what is not there it takes a key
            authorization, host, origin = headers.get(b"authorization"), headers.get(b"host"), source(headers)
            tenant = service.gate.admit(authorization, host, origin, None).tenant
            problem = not_here(request, error)
        except Problem as refusal:
            problem = as_problem(refusal)
        service.meters.request(tenant, ELSEWHERE, problem.status, time.perf_counter() - began)
        return _problem(problem)

    def not_here(request: Request, error: HTTPException) -> Problem:
        if error.status_code == 405:
            matching = [route for route in api.routes if route.matches(request.scope)[0] != Match.NONE]
            methods = {method for route in matching for method in getattr(route, "methods", None) or ()}
            allowed = {"Allow": ", ".join(sorted(methods))}
            return Problem("not-allowed", f"{request.method} is not for this path", headers=allowed)
        return Problem("not-found", "there is nothing at this path; /openapi.json says what there is")

    api.add_exception_handler(HTTPException, refused)
    return api


def _endpoint(service: Service, route: Route) -> Callable[[Request], Awaitable[Response]]:
    label = f"{route.method} {route.path.replace(':path', '')}"

    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        headers: dict[bytes, bytes] = dict(request.scope["headers"])
        tenant = ""
        try:
            authorization, host, origin = headers.get(b"authorization"), headers.get(b"host"), source(headers)
            caller = service.gate.admit(authorization, host, origin, route.scope)
            tenant = caller.tenant
            response = await _answered(service, route, request, headers, caller)
        except Exception as error:
            response = _problem(as_problem(error, route.missing))
        service.meters.request(tenant, label, response.status_code, time.perf_counter() - began)
        return response

    return endpoint


async def _answered(
    service: Service, route: Route, request: Request, headers: dict[bytes, bytes], caller: Caller
) -> Response:
    path, query = request.path_params, _query(request, route.query)
    desk = None
    if "loop" in path:
        desk = service.loops.at(caller.tenant, path["loop"]) or await service.loops.open(caller.tenant, path["loop"])
        desk.users += 1
    try:
        asked = Asked(service, caller, headers, query, path, None, desk)
        kind, body = bodies.form(headers) if route.takes else b"", b""
        if route.takes:
            body = await bodies.read(headers, request.receive, service.limits, b"" if route.bulk else kind)
        if len(body) > LARGE:
            async with service.turn(caller.tenant):
                given = await service.read(partial(bodies.decode, body, kind))
                value = await route.work(asked._replace(given=given))
        else:
            value = await route.work(asked._replace(given=bodies.decode(body, kind)) if route.takes else asked)
    finally:
        if desk is not None:
            desk.__exit__()
    if isinstance(value, StreamingResponse) and request.method == "HEAD":
        return Response(media_type=value.media_type)
    if isinstance(value, Response):
        return value
    kind = bodies.answer_form(headers)
    return Response(bodies.encode(value, kind), route.status, {"cache-control": "no-store"}, kind.decode())


def _query(request: Request, allowed: tuple[str, ...]) -> dict[str, str]:
    query: dict[str, str] = {}
    for name, text in request.query_params.multi_items():
        if name not in allowed:
            wanted = ", ".join(allowed) or "none"
            raise ValueError(f"query: wanted {wanted}, got {describe(name)}")
        if name in query:
            raise ValueError(f"{name}: wanted it once, got it twice")
        query[name] = text
    return query


def whole(query: Mapping[str, str], name: str, default: int, least: int, most: int = 2**62) -> int:
    """A whole number of the query. ValueError where it is none."""
    text = query.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdecimal() or len(text) > 19 or not least <= int(text) <= most:
        raise ValueError(f"{name}: wanted a whole number from {least} to {most}, got {describe(text)}")
    return int(text)


def _problem(problem: Problem) -> Response:
    return Response(
        problem.body, problem.status, problem.headers | {"cache-control": "no-store"}, bodies.PROBLEM.decode()
    )
