"""The pages of the server: teach a loop, see what it learned, compare items, and look after loops and keys.

They are rendered on the server; scripts replace parts of them when events come in."""

from __future__ import annotations

import mimetypes
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from heedful.core.validation import describe
from heedful.server.auth import Caller
from heedful.server.codecs import unique_fields
from heedful.server.context import ServerContext
from heedful.server.keys import in_order
from heedful.server.page_clicks import digested
from heedful.server.pages import (
    begin,
    compare,
    health,
    keys,
    learned,
    loops,
    participant,
    proof,
    results,
    session,
    teach,
    why,
)
from heedful.server.pages.formatting import join_names
from heedful.server.pages.page import SAFE, Page, Visit, back, folder_for, form_of, problem_page, static_files
from heedful.server.problems import Problem, as_problem
from heedful.server.server_log import label_request

PAGES: tuple[Page, ...] = (
    *teach.PAGES,
    *learned.PAGES,
    *why.PAGES,
    *proof.PAGES,
    *health.PAGES,
    *compare.PAGES,
    *results.PAGES,
    *begin.PAGES,
    *loops.PAGES,
    *keys.PAGES,
)
FIRST = frozenset({"loops", "keys", "sign-in", "sign-out", "static", "s"})
"""The first segments of the paths of pages, other than "/"."""


def mount(service: ServerContext) -> Starlette:
    """Return the ASGI application with all pages (HTML) for the loops that `service` serves."""
    routes: dict[str, dict[str, Page]] = {}
    for page in PAGES:
        routes.setdefault(page.path, {})[page.method] = page
    mounted = [Route(path, _endpoint(service, by), methods=list(by)) for path, by in routes.items()]
    mounted += [
        Route("/sign-in", _with_error_pages(partial(session.sign_in, service)), methods=["GET", "POST"]),
        Route("/sign-out", _with_error_pages(partial(session.sign_out, service)), methods=["POST"]),
        Route("/static/{path:path}", _with_error_pages(static), methods=["GET"]),
        *participant.routes(service),
    ]
    app = Starlette(routes=mounted, exception_handlers={HTTPException: error_page})
    app.router.redirect_slashes = False
    return app


def _with_error_pages(work: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Return an endpoint that answers as `work` does, or with a page that explains the error that it raised."""

    async def endpoint(request: Request) -> Response:
        try:
            return await work(request)
        except Exception as error:
            return _problem(request, as_problem(error))

    return endpoint


def _endpoint(service: ServerContext, by: dict[str, Page]) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint of one path; `by` maps each HTTP method that it takes to the page that answers it."""

    async def endpoint(request: Request) -> Response:
        began = time.perf_counter()
        route = by["GET" if request.method == "HEAD" else request.method]
        caller = None
        try:
            caller = await page_caller(service, request)
            label_request(caller.tenant, caller.prefix, request.path_params.get("loop", ""))
            _check_scopes(service, request, caller, route.scopes)
            response = await _respond(service, route, request, caller)
            if route.audit and response.status_code < 400:
                await service.note_act(caller, route.audit, request.path_params["loop"])
        except Exception as error:
            response = _problem(request, as_problem(error, "not-found"), caller)
        label, tenant = f"{route.method} {route.path}", "" if caller is None else caller.tenant
        service.metrics.request(tenant, label, response.status_code, time.perf_counter() - began)
        return response

    return endpoint


async def page_caller(service: ServerContext, request: Request) -> Caller:
    """Return the sender of a request, by the session in its cookie.

    Raise Problem if a key is needed and nobody is signed in, or if a page of another site sent the request."""
    headers: dict[bytes, bytes] = dict(request.scope["headers"])
    session.same_origin(request)
    prefix = await session.prefix_of(service, request) if service.authenticator.takes_keys else None
    return service.authenticator.visit(prefix, headers.get(b"host"), headers.get(b"origin"))


def _check_scopes(service: ServerContext, request: Request, caller: Caller, scopes: Sequence[str]) -> None:
    """Raise Problem, with the command that grants them, if the caller's key lacks one of these `scopes`."""
    missing = in_order(set(scopes) - caller.scopes)
    if missing:
        detail = f"this takes a key that may {join_names(missing)}; yours may {join_names(in_order(caller.scopes))}"
        expected = " ".join(f"--scope {scope}" for scope in in_order({*caller.scopes, *missing}))
        command = f"heedful keys scopes {caller.prefix} {expected} --folder {folder_for(service, request)}"
        raise Problem("no-scope", detail, command=command)


async def _respond(service: ServerContext, route: Page, request: Request, caller: Caller) -> Response:
    """Return the response of the page `route`, after reading the query and the form, and opening the loop."""
    query = unique_fields(request.query_params.multi_items())
    form = await form_of(request, service) if request.method == "POST" and not route.uploads else {}
    name = request.path_params.get("loop")
    if name is None:
        return await route.work(Visit(service, caller, request, query, form, None))
    try:
        worker = await service.loops.open(caller.tenant, name)
    except Problem as problem:
        if problem.kind != "not-found":
            raise
        raise Problem("not-found", f"there is no loop called {describe(name)}") from None
    with worker:
        response = await route.work(Visit(service, caller, request, query, form, worker))
    if isinstance(response, StreamingResponse) and request.method == "HEAD":
        return Response(media_type=response.media_type)
    return response


def _problem(request: Request, problem: Problem, caller: Caller | None = None) -> Response:
    """Return the page that shows a problem, or only a part of it if a script sent the request."""
    # A stream of events, which a script opens, cannot be redirected to a page, either.
    scripted = "hx-request" in request.headers or "text/event-stream" in request.headers.get("accept", "")
    if problem.kind == "no-key":
        to = "/sign-in" if scripted else _sign_in(request)
        if not scripted:
            return back(to)
        return Response(status_code=401, headers=SAFE | {"hx-redirect": to})
    context: dict[str, object] = {"sign_in": _sign_in(request)}
    if caller is not None:
        context |= {"signed_in": caller.prefix, "may": lambda *scopes: caller.scopes.issuperset(scopes)}
    return problem_page("problem_part.html" if scripted else "problem.html", problem, **context)


def _sign_in(request: Request) -> str:
    """Return the URL for signing in, from which the visitor comes back to the page that `request` asked for."""
    path, query = request.scope["path"], request.scope["query_string"].decode("latin-1")
    here = f"{path}?{query}" if query else path
    goal = here if request.method in ("GET", "HEAD") else "/"
    return f"/sign-in?{urlencode({'next': goal})}" if goal != "/" else "/sign-in"


async def error_page(request: Request, error: Exception) -> Response:
    """Return the page for a path that does not exist (404), or does not take this method (405)."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return _problem(
            request, Problem("not-allowed", f"{request.method} is not for this page", headers=error.headers)
        )
    return _problem(request, Problem("not-found", "there is no such page"))


async def static(request: Request) -> Response:
    """Send the public file of the folder static that the path names; raise Problem (404) if there is none."""
    path = request.path_params["path"]
    if path not in static_files():
        raise Problem("not-found", "there is no such file")
    content, digest = static_files()[path]
    current = request.query_params.get("v") == digest
    headers = {
        "cache-control": "public, max-age=31536000, immutable" if current else "no-cache",
        "cross-origin-resource-policy": "same-origin",
    }
    return digested(request, content, digest, headers, mimetypes.guess_type(path)[0] or "application/octet-stream")
