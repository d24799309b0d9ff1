"""The routes of the HTTP interface for programs, in one table. Starlette's routes and the OpenAPI document are made
from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache, partial
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Match
from starlette.routing import Route as Routed

from heedful import __version__
from heedful.results.about import About, Items, Loops, Weights, Withdrawn
from heedful.results.answers import Answer, Decision, Forgotten, PersonEvents, Put, Ranking, RolledBack
from heedful.results.audit import Acts
from heedful.results.board import Board
from heedful.results.evaluation import Evaluation
from heedful.results.experiment import Experiment, PlannedExperiment, Promoted, Promotions
from heedful.results.explanation import Why
from heedful.results.health import Health
from heedful.results.report import Report
from heedful.results.style import Style
from heedful.server import api, codecs, parameters, schema
from heedful.server.auth import Caller, source
from heedful.server.codecs import Receive, Send
from heedful.server.context import LARGE, ServerContext
from heedful.server.decisions import decide, read_decision, read_feedback, take_feedback
from heedful.server.description import EVENTS, SCRIPT, TEXT, openapi
from heedful.server.metrics import ELSEWHERE
from heedful.server.page_clicks import ClickEndpoint, send_script
from heedful.server.parameters import Parameter
from heedful.server.peers import HERE
from heedful.server.problems import Problem, as_problem, unavailable
from heedful.server.request import ApiRequest
from heedful.server.server_log import label_request


class Route(NamedTuple):
    """One route of the HTTP interface for programs: method, path, handler, and what the OpenAPI document says of it."""

    method: str
    """the HTTP method: "GET", "POST", ..."""
    path: str
    """the path as Starlette writes it: `{name}` is one segment, `{name:path}` any number of segments"""
    scope: str | None
    """the scope that the API key needs; None if no key is needed"""
    summary: str
    """what it does, in the OpenAPI document"""
    work: Callable[..., Any]
    """the handler, from an ApiRequest to the answer (a value or a Response); without a scope, a Starlette endpoint, or
    the class of one that takes a token in its body"""
    takes: Any = None
    """the type of its body; None without one"""
    gives: Any = None
    """the type of its answer, or its media type and schema (Text); None for any JSON"""
    query: tuple[Parameter, ...] = ()
    """the parameters of its query"""
    headers: tuple[str, ...] = ()
    """the names of the headers that it takes in addition to those of every route"""
    numbers: bool = False
    """whether its body may be raw numbers, with the other fields in the query, or be left out"""
    plain: bool = False
    """whether it takes a token in its body in place of a key, which is JSON as text/plain"""
    bulk: bool = False
    """whether its JSON body may be larger than `Limits.json`, up to `Limits.body`"""
    status: int = 200
    """the HTTP status of a successful answer"""
    codec: Callable[[ApiRequest, bytes, bytes], object] | None = None
    """decodes a body, from its media type and bytes, for `work`; None for an object with the fields of `takes`"""
    direct: bool = False
    """whether requests are matched to it by the last segment of the path, without Starlette's router, to save time"""
    missing: str = "bad-input"
    """the kind of problem (a key of `problems.TITLES`) that answers a LookupError"""
    audit: str = ""
    """what the audit log calls a request that was answered; "" if it has none of this route"""

    @property
    def template(self) -> str:
        """the path as OpenAPI writes it, without `:path`"""
        return self.path.replace(":path}", "}")

    @property
    def label(self) -> str:
        """the name of the route in the metrics"""
        return self.path.rpartition("/")[2] if self.direct else f"{self.method} {self.template}"

    def read(self, request: ApiRequest, kind: bytes, body: bytes) -> object:
        """Return the body of `request`, decoded for the handler `work`; `body` are its bytes, `kind` is its media type.

        Raise ValueError, beginning with the name of the field, or Problem if it has another form."""
        if self.codec is not None:
            return self.codec(request, kind, body)
        value = codecs.decode(body, kind)
        if isinstance(self.takes, type):
            value = codecs.check_fields(value, self.takes)
        return codecs.with_key(value, codecs.key(request.headers)) if self.headers == _KEY else value


@cache
def description() -> bytes:
    """Return the OpenAPI document of all routes as JSON."""
    return openapi(ROUTES, __version__)


async def healthz(request: Request) -> Response:
    return Response(b'{"status":"ok"}', media_type="application/json")


async def readyz(request: Request) -> Response:
    if why := await request.app.state.service.why_unready():
        problem = unavailable(why)
        return Response(problem.body, problem.status, problem.headers, codecs.PROBLEM.decode())
    return Response(b'{"status":"ready"}', media_type="application/json")


async def openapi_document(request: Request) -> Response:
    return Response(description(), media_type="application/json")


_KEY = ("Idempotency-Key",)
_ALL = "/v1/loops"
_ONE = f"{_ALL}/{{loop}}"

ROUTES = (
    Route("GET", _ALL, "read", "The loops there are", api.loops, gives=Loops),
    Route("POST", _ALL, "admin", "Make a loop", api.new_loop, schema.NewLoop, About, bulk=True, status=201,
          audit="make loop"),
    Route("GET", _ONE, "read", "What there is to know of a loop", api.one_loop, gives=About),
    Route("PUT", f"{_ONE}/items", "admin", "Put items on offer, new or changed", api.put_items,
          list[schema.Object], Put, bulk=True),
    Route("GET", f"{_ONE}/items", "read", "The items on offer", api.items,
          gives=Items, query=parameters.PAGE),
    Route("DELETE", f"{_ONE}/items/{{item:path}}", "admin", "Take an item off offer", api.withdraw,
          gives=Withdrawn),
    Route("POST", f"{_ONE}/decisions", "decide", "Decide what to show", decide,
          schema.Decide, Decision, query=parameters.DECISION, headers=_KEY, numbers=True, codec=read_decision,
          direct=True),
    Route("POST", f"{_ONE}/rank", "read", "The model's order of candidates; nothing is logged", api.rank,
          schema.Rank, Ranking),
    Route("POST", f"{_ONE}/records", "decide", "Tell what somebody else decided", api.record,
          schema.Record, Decision, headers=_KEY),
    Route("POST", f"{_ONE}/feedback", "feedback", "Tell what people answered, one or many", take_feedback,
          schema.Feedback | list[schema.Feedback], Answer | list[Answer], headers=_KEY,
          codec=read_feedback, direct=True),
    Route("POST", f"{_ONE}/clicks", None, "Report a click from a page, with its token", ClickEndpoint,
          schema.Click, Answer, plain=True),
    Route("POST", f"{_ONE}/activate", "feedback", "Say that a deferred decision was shown", api.activate,
          schema.Activate, Answer),
    Route("POST", f"{_ONE}/undo", "feedback", "Take one piece of feedback back", api.undo,
          schema.Undo, Answer, headers=_KEY, audit="undo"),
    Route("POST", f"{_ONE}/rollback", "admin", "Go back to an earlier version of the model", api.rollback,
          schema.Rollback, RolledBack, headers=_KEY, audit="rollback"),
    Route("POST", f"{_ONE}/experiments", "admin", "Try a learner next to the one that serves", api.start_experiment,
          schema.StartExperiment, Answer, headers=_KEY, audit="start experiment"),
    Route("POST", f"{_ONE}/experiments/stop", "admin", "End the experiment that is running", api.stop_experiment,
          schema.StopExperiment, Answer, headers=_KEY, missing="not-found", audit="stop experiment"),
    Route("GET", f"{_ONE}/experiments/latest", "read", "What the newest experiment says so far", api.experiment,
          gives=Experiment, missing="not-found"),
    Route("GET", f"{_ONE}/experiments/plan", "read", "How long an experiment would take", api.plan_experiment,
          gives=PlannedExperiment, query=parameters.PLAN),
    Route("POST", f"{_ONE}/promotions", "admin", "Let another learner serve, if it is better", api.promote,
          schema.Promote, Promoted, headers=_KEY, audit="promote"),
    Route("GET", f"{_ONE}/promotions", "read", "The promotions, and what is left of their evidence", api.promotions,
          gives=Promotions),
    Route("POST", f"{_ONE}/evaluations", "read", "What the log says about learners, and how sure that is",
          api.evaluation, schema.Evaluate, Evaluation),
    Route("GET", f"{_ONE}/weights", "read", "What each feature counts", api.weights,
          gives=Weights, query=(parameters.PERSON,)),
    Route("GET", f"{_ONE}/standing", "read", "The ranking by what people answered, and how sure it is", api.standing,
          gives=Board, query=(parameters.PERSON, parameters.WITHOUT)),
    Route("GET", f"{_ONE}/style", "read", "What a person's edits tell about their style", api.style,
          gives=Style, query=(parameters.PERSON, parameters.ALPHA_)),
    Route("POST", f"{_ONE}/style", "admin", "Correct by hand what is said of a person's style", api.correct_style,
          schema.CorrectStyle, Answer, headers=_KEY),
    Route("GET", f"{_ONE}/report", "read", "What the loop learned, measured", api.report,
          gives=Report, query=(parameters.LAST,)),
    Route("GET", f"{_ONE}/health", "read", "Whether feedback is sound, and the model still predicts it", api.health,
          gives=Health, query=(parameters.ALPHA_,)),
    Route("GET", f"{_ONE}/decisions/{{id:path}}/why", "read", "Why an item of a decision had its score", api.why,
          gives=Why, query=parameters.OF_ITEM, missing="not-found"),
    Route("GET", f"{_ONE}/events", "read", "The events as they come", api.events,
          gives=EVENTS, query=parameters.STREAM, headers=("Last-Event-ID",), audit="export"),
    Route("GET", f"{_ONE}/people/{{person:path}}", "read", "What the loop has about a person", api.person,
          gives=PersonEvents, audit="export"),
    Route("POST", f"{_ONE}/forget", "admin", "Forget a person", api.forget, schema.Forget, Forgotten,
          audit="forget"),
    Route("GET", "/v1/audit", "admin", "What was done with the keys", api.audit, gives=Acts, query=parameters.ACTS),
    Route("GET", "/metrics", "metrics", "For Prometheus", api.metrics, gives=TEXT),
    Route("GET", "/healthz", None, "Whether the server answers", healthz, gives=schema.Serving),
    Route("GET", "/readyz", None, "Whether the server should be sent requests", readyz, gives=schema.Ready),
    Route("GET", "/openapi.json", None, "This description", openapi_document),
    Route("GET", "/heedful.js", None, "The script that reports the clicks of a page", send_script, gives=SCRIPT),
)  # fmt: skip


DIRECT = {route.path.rpartition("/")[2]: route for route in ROUTES if route.direct}
"""The routes that are found without Starlette's router, by the last segment of their path: POST
/v1/loops/{loop}/SEGMENT."""


class Endpoint:
    """The ASGI application that answers the requests of one route which needs an API key."""

    def __init__(self, service: ServerContext, route: Route) -> None:
        self._service, self._route, self._label = service, route, route.label

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request; `scope["path_params"]` has the variable parts of the path."""
        began, service, route, tenant = time.perf_counter(), self._service, self._route, ""
        headers: codecs.Headers = dict(scope["headers"])
        response: Response | None = None
        try:
            caller = check_caller(service, headers, route.scope)
            tenant = caller.tenant
            label_request(tenant, caller.prefix, scope["path_params"].get("loop", ""))
            value = await self._value(scope, receive, headers, caller)
            status = route.status
            if isinstance(value, StreamingResponse) and scope["method"] == "HEAD":
                response = Response(media_type=value.media_type)
            elif isinstance(value, Response):
                response = value
            else:
                messages = codecs.messages(value, codecs.answer_form(headers), route.status)
            if route.audit:
                await service.note_act(caller, route.audit, _loop_of(scope, value))
            if response is not None:
                status = response.status_code
        except Exception as error:
            problem, response = as_problem(error, route.missing), None
            status, messages = problem.status, codecs.problem_messages(problem)
        service.metrics.request(tenant, self._label, status, time.perf_counter() - began)
        if response is not None:
            await response(scope, receive, send)
            return
        for message in messages:
            await send(message)

    async def _value(self, scope: Any, receive: Receive, headers: codecs.Headers, caller: Caller) -> object:
        """Return what the handler of the route returns, after opening the loop in the path and decoding the body."""
        service, route, path = self._service, self._route, scope["path_params"]
        query: Mapping[str, Any] = {}
        if scope["query_string"] or (route.query and not route.numbers):
            pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
            query = codecs.unique_fields(pairs) if route.numbers else parameters.read_query(pairs, route.query)
        worker = None
        if "loop" in path:
            tenant, name = caller.tenant, path["loop"]
            if route.scope != "read" and HERE not in scope:
                service.loops.check_owner(tenant, name)
            worker = await service.loops.open(tenant, name)
        with _NOTHING if worker is None else worker:
            request = ApiRequest(service, caller, headers, query, path, None, worker, receive)
            if route.takes is None:
                return await route.work(request)
            kind = codecs.media_type(headers)
            body = await codecs.read(headers, receive, service.limits, b"" if route.bulk else kind)
            if kind == codecs.FLOAT32 or len(body) <= LARGE:
                return await route.work(request._replace(body=route.read(request, kind, body)))
            async with service.turns.of(caller.tenant, "large"):
                decoded = await service.read(partial(route.read, request, kind, body))
                return await route.work(request._replace(body=decoded, large=True))


def _loop_of(scope: Any, value: Any) -> str:
    """Return the name of the loop that a request was about: that in its path, or that which it made."""
    path: Mapping[str, str] = scope["path_params"]
    return path["loop"] if "loop" in path else str(value["name"])


_NOTHING = nullcontext()


def mount(service: ServerContext) -> Starlette:
    """Return the Starlette application of all routes of the table."""

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        began, tenant = time.perf_counter(), ""
        try:  # also for what is not there it takes a key
            tenant = check_caller(service, dict(request.scope["headers"]), None).tenant
            problem = not_here(request, error)
        except Problem as refusal:
            problem = as_problem(refusal)
        service.metrics.request(tenant, ELSEWHERE, problem.status, time.perf_counter() - began)
        headers = problem.headers | {"cache-control": "no-store"}
        return Response(problem.body, problem.status, headers, codecs.PROBLEM.decode())

    def not_here(request: Request, error: HTTPException) -> Problem:
        if error.status_code == 405:
            there = [route.methods or () for route in routes if route.matches(request.scope)[0] != Match.NONE]
            allowed = {"Allow": ", ".join(sorted({method for methods in there for method in methods}))}
            return Problem("not-allowed", f"{request.method} is not for this path", headers=allowed)
        return Problem("not-found", "there is nothing at this path; /openapi.json says what there is")

    def endpoint(route: Route) -> Any:
        if route.plain:
            return route.work(service, route.label)
        return route.work if route.scope is None else Endpoint(service, route)

    routes = [Routed(route.path, endpoint(route), methods=[route.method]) for route in ROUTES]
    app = Starlette(routes=routes, exception_handlers={HTTPException: refuse})
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def check_caller(service: ServerContext, headers: codecs.Headers, scope: str | None) -> Caller:
    """Return the sender of a request; raise Problem unless their key has `scope` (None: any key)."""
    return service.authenticator.admit(headers.get(b"authorization"), headers.get(b"host"), source(headers), scope)
