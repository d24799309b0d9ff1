"""The routes: one table. Starlette's routes and the OpenAPI document are made from it."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import cache, partial
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match
from starlette.routing import Route as Routed

from heedful import __version__
from heedful.loop.interactions.schemas import Standings
from heedful.server import api, codecs, schema
from heedful.server.api import Asked
from heedful.server.auth import Caller, source
from heedful.server.context import LARGE, Service, as_problem
from heedful.server.description import EVENTS, TEXT, openapi
from heedful.server.fast import DECISIONS, FEEDBACK, PARAMETERS, SCOPES
from heedful.server.metrics import ELSEWHERE
from heedful.server.problems import Problem


class Route(NamedTuple):
    """One route as data."""

    method: str
    path: str
    """as Starlette writes it: `{name}` is one segment, `{name:path}` as many as there are"""
    scope: str | None
    """that a key needs; None where nobody is asked for one"""
    summary: str
    work: Callable[[Any], Awaitable[Any]] | None
    """takes Asked and gives the answer as a value or a Response; without a scope Starlette's endpoint. None where
    `heedful.server.fast` answers before anything is looked up here"""
    takes: Any = None
    """the type of its body; None where it has none"""
    gives: Any = None
    """the type of its answer, or its media type and schema (Text); None for any JSON"""
    query: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    """that mean something here alone"""
    numbers: bool = False
    """whether its body may be raw numbers, with the query for the other fields, or be left out"""
    bulk: bool = False
    """whether JSON may be as large as any body"""
    status: int = 200
    missing: str = "bad-input"
    """the kind of problem where something that is named is not there"""

    @property
    def template(self) -> str:
        """The path as OpenAPI writes it: `{name}` however many segments that is."""
        return self.path.replace(":path}", "}")

    def given(self, body: Any, headers: codecs.Headers) -> Any:
        """A body, decoded, with the fields that it may have, and its key as its id. ValueError, by name, otherwise."""
        if isinstance(self.takes, type):
            body = codecs.fields(body, schema.names(self.takes))
        return codecs.with_key(body, codecs.key(headers)) if self.headers == _KEY else body


@cache
def description() -> bytes:
    """The OpenAPI document of all routes, as JSON."""
    return openapi(ROUTES, __version__)


async def healthz(request: Request) -> Response:
    return Response(b'{"status":"ok"}', media_type="application/json")


async def described(request: Request) -> Response:
    return Response(description(), media_type="application/json")


_KEY = ("Idempotency-Key",)
_ALL = "/v1/loops"
_ONE = f"{_ALL}/{{loop}}"

ROUTES = (
    Route("GET", _ALL, "read", "The loops there are", api.loops, gives=schema.Loops),
    Route("POST", _ALL, "admin", "Make a loop", api.new_loop, schema.NewLoop, schema.Loop, bulk=True, status=201),
    Route("GET", _ONE, "read", "What there is to know of a loop", api.one_loop, gives=schema.Loop),
    Route("PUT", f"{_ONE}/items", "admin", "Put items on offer, new or changed", api.put_items,
          list[schema.Object], schema.Put, bulk=True),
    Route("GET", f"{_ONE}/items", "read", "The items on offer", api.items,
          gives=schema.Items, query=("start", "limit")),
    Route("DELETE", f"{_ONE}/items/{{item:path}}", "admin", "Take an item off offer", api.withdraw,
          gives=schema.Withdrawn),
    Route("POST", f"{_ONE}/{DECISIONS}", SCOPES[DECISIONS], "Decide what to show", None,
          schema.Decide, schema.Decision, query=PARAMETERS, headers=_KEY, numbers=True),
    Route("POST", f"{_ONE}/rank", "read", "The model's order of candidates; nothing is logged", api.rank,
          schema.Rank, schema.Ranking),
    Route("POST", f"{_ONE}/records", "decide", "Tell what somebody else decided", api.record,
          schema.Record, schema.Decision, headers=_KEY),
    Route("POST", f"{_ONE}/{FEEDBACK}", SCOPES[FEEDBACK], "Tell what people answered, one or many", None,
          schema.Feedback | list[schema.Feedback], schema.Answer | list[schema.Answer], headers=_KEY),
    Route("POST", f"{_ONE}/activate", "feedback", "Say that a deferred decision was shown", api.activate,
          schema.Activate, schema.Answer),
    Route("POST", f"{_ONE}/undo", "feedback", "Take one piece of feedback back", api.undo,
          schema.Undo, schema.Answer, headers=_KEY),
    Route("POST", f"{_ONE}/replays", "read", "What another learner makes of the log", api.replay,
          schema.Replay, schema.Replayed),
    Route("GET", f"{_ONE}/weights", "read", "What each feature counts", api.weights,
          gives=schema.Weights, query=("person",)),
    Route("GET", f"{_ONE}/standing", "read", "The ranking by what people answered, and how sure it is", api.standing,
          gives=Standings, query=("person",)),
    Route("GET", f"{_ONE}/report", "read", "What the loop learned, measured", api.report,
          gives=schema.Report, query=("last",)),
    Route("GET", f"{_ONE}/decisions/{{id:path}}/explanation", "read", "Why the first stood first", api.explanation,
          gives=schema.Explanation, missing="not-found"),
    Route("GET", f"{_ONE}/events", "read", "The events as they come", api.events,
          gives=EVENTS, query=("after", "kinds", "follow"), headers=("Last-Event-ID",)),
    Route("DELETE", f"{_ONE}/people/{{person:path}}", "admin", "Forget a person", api.forget, gives=schema.Forgotten),
    Route("GET", "/metrics", "read", "For Prometheus", api.metrics, gives=TEXT),
    Route("GET", "/healthz", None, "Whether the server answers", healthz, gives=schema.Health),
    Route("GET", "/openapi.json", None, "This description", described),
)  # fmt: skip


def mount(service: Service) -> Starlette:
    """The application of these routes."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        began, tenant = time.perf_counter(), ""
        try:  # also for what is not there it takes a key
            tenant = _admitted(service, request, None).tenant
            problem = not_here(request, error)
        except Problem as refusal:
            problem = as_problem(refusal)
        service.metrics.request(tenant, ELSEWHERE, problem.status, time.perf_counter() - began)
        return _problem(problem)

    def not_here(request: Request, error: HTTPException) -> Problem:
        if error.status_code == 405:
            there = [route.methods or () for route in routes if route.matches(request.scope)[0] != Match.NONE]
            allowed = {"Allow": ", ".join(sorted({method for methods in there for method in methods}))}
            return Problem("not-allowed", f"{request.method} is not for this path", headers=allowed)
        return Problem("not-found", "there is nothing at this path; /openapi.json says what there is")

    routes = [Routed(route.path, _endpoint(service, route), methods=[route.method]) for route in ROUTES]
    app = Starlette(routes=routes, exception_handlers={HTTPException: refused})
    app.router.redirect_slashes = False
    return app


def _endpoint(service: Service, route: Route) -> Callable[[Request], Awaitable[Response]]:
    work, label = route.work, f"{route.method} {route.template}"
    if route.scope is None and work is not None:
        return work

    async def endpoint(request: Request) -> Response:
        if work is None:
            raise HTTPException(404)
        began, tenant = time.perf_counter(), ""
        try:
            caller = _admitted(service, request, route.scope)
            tenant = caller.tenant
            response = await _answered(service, route, work, request, caller)
        except Exception as error:
            response = _problem(as_problem(error, route.missing))
        service.metrics.request(tenant, label, response.status_code, time.perf_counter() - began)
        return response

    return endpoint


def _admitted(service: Service, request: Request, scope: str | None) -> Caller:
    headers: dict[bytes, bytes] = dict(request.scope["headers"])
    return service.gate.admit(headers.get(b"authorization"), headers.get(b"host"), source(headers), scope)


async def _answered(
    service: Service, route: Route, work: Callable[[Asked], Awaitable[Any]], request: Request, caller: Caller
) -> Response:
    headers: dict[bytes, bytes] = dict(request.scope["headers"])
    query, path, worker = codecs.once(request.query_params.multi_items(), route.query), request.path_params, None
    if "loop" in path:
        worker = service.loops.at(caller.tenant, path["loop"]) or await service.loops.open(caller.tenant, path["loop"])
    with nullcontext() if worker is None else worker:
        asked = Asked(service, caller, headers, query, path, None, worker)
        if route.takes is None:
            value = await work(asked)
        else:
            kind = codecs.form(headers)
            body = await codecs.read(headers, request.receive, service.limits, b"" if route.bulk else kind)
            large = len(body) > LARGE
            async with service.turn(caller.tenant) if large else nullcontext():
                reading = partial(codecs.decode, body, kind)
                given = await service.read(reading) if large else reading()
                value = await work(asked._replace(given=route.given(given, headers)))
    if isinstance(value, StreamingResponse) and request.method == "HEAD":
        return Response(media_type=value.media_type)
    if isinstance(value, Response):
        return value
    kind = codecs.answer_form(headers)
    return Response(codecs.encode(value, kind), route.status, {"cache-control": "no-store"}, kind.decode())


def _problem(problem: Problem) -> Response:
    return Response(
        problem.body, problem.status, problem.headers | {"cache-control": "no-store"}, codecs.PROBLEM.decode()
    )
