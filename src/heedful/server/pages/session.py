"""Signing in with a key, once, and out again."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from heedful.server.context import Service
from heedful.server.keys import SHAPE
from heedful.server.pages.page import back, folder_for, form_of, page
from heedful.server.problems import Problem

FORM = 2**12
"""Bytes of the form that takes a key, at most: anybody may send it."""
T = TypeVar("T")

Work = Callable[[Request], Awaitable[Response]]


@lru_cache
def cookies(folder: Path) -> tuple[str, str]:
    """What the cookie of a session is called: (over https, otherwise). Cookies know no ports, so each folder that is
    served on a machine has a name of its own."""
    name = f"heedful-session-{sha256(os.fsencode(folder.resolve())).hexdigest()[:8]}"
    return f"__Host-{name}", name


def same_origin(request: Request) -> None:
    """Problem where another page than one of this server sent what would change something, or has a page fetched that
    nobody looks at."""
    headers = request.headers
    if request.method in ("GET", "HEAD"):
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if elsewhere and headers.get("sec-fetch-mode") != "navigate":
            raise Problem("wrong-origin", "expected a visit, got what a page of somewhere else asks for by itself")
    elif not _ours(*(headers.get(name) for name in ("host", "origin", "sec-fetch-site"))):
        told = "expected a form of a page of this server, got one of somewhere else: open the page again, and try again"
        raise Problem("wrong-origin", told)


def _ours(host: str | None, origin: str | None, site: str | None) -> bool:
    if site is not None:  # the browser's own word, which no page can forge
        return site == "same-origin"
    return bool(host and origin) and str(origin).partition("://")[2].lower() == str(host).lower()


async def prefix_of(service: Service, request: Request) -> str | None:
    """The prefix of the key that the visitor signed in with; None where nobody did."""
    token = _token(service, request)
    return None if token is None else await _in_thread(service, partial(service.sessions.prefix_of, token))


async def holds(service: Service, request: Request) -> bool:
    """Whether the session that a request came with goes on."""
    token = _token(service, request)
    return token is not None and await _in_thread(service, partial(service.sessions.holds, token))


def _token(service: Service, request: Request) -> str | None:
    return next((request.cookies[name] for name in cookies(service.folder) if name in request.cookies), None)


def sign_in(service: Service) -> Work:
    """GET shows the form, POST takes a key."""

    async def work(request: Request) -> Response:
        same_origin(request)
        if request.method != "POST":
            return _form(service, request, request.query_params.get("next", "/"))
        given = await form_of(request, service, FORM)
        key, to = given.get("key", "").strip(), _local(given.get("next", "/"))
        headers: dict[bytes, bytes] = dict(request.scope["headers"])
        if not SHAPE.fullmatch(key):
            return _form(service, request, to, "This is no key: a key begins with hk_ and has 55 characters.", 422)
        try:
            host, origin = headers.get(b"host"), headers.get(b"origin")
            caller = service.gate.admit(b"Bearer " + key.encode(), host, origin, None)
        except Problem as problem:
            if problem.kind != "no-key":
                raise
            return _form(service, request, to, "This key is mistyped, unknown or revoked.", 401)
        response = back(to)
        if caller.prefix:  # "" where no key was ever made: everybody nearby is let in
            await begin(service, request, response, caller.prefix)
        return response

    return work


def sign_out(service: Service) -> Work:
    """End the session of the browser that asks."""

    async def work(request: Request) -> Response:
        same_origin(request)
        return await end(service, request)

    return work


async def begin(service: Service, request: Request, response: Response, prefix: str) -> None:
    """Sign the browser in with the key of that prefix, by a cookie of `response`."""
    former = _token(service, request)
    token = await _in_thread(service, partial(service.sessions.create, prefix, instead_of=former))
    # As the browser sees it, also where a proxy stands between.
    secure = request.headers.get("origin", "").startswith("https:")
    name = cookies(service.folder)[0 if secure else 1]
    response.set_cookie(name, token, path="/", httponly=True, samesite="strict", secure=secure)


async def end(service: Service, request: Request) -> Response:
    """Sign the browser out, and go where one signs in."""
    response = back("/sign-in")
    for name in cookies(service.folder):
        if (token := request.cookies.get(name)) is not None:
            await _in_thread(service, partial(service.sessions.end, token))
            secure = name.startswith("__Host-")
            response.delete_cookie(name, path="/", httponly=True, samesite="strict", secure=secure)
    return response


def _form(service: Service, request: Request, to: str, wrong: str | None = None, status: int = 200) -> Response:
    folder = folder_for(service, request)
    return page("sign_in.html", status, next=_local(to), wrong=wrong, keyed=service.gate.keyed, folder=folder)


def _local(to: str) -> str:
    """A path of this server; / for anything else."""
    fine = to.startswith("/") and not to.startswith("//") and "\\" not in to and to.isprintable()
    return to if fine else "/"


async def _in_thread(service: Service, work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(service.signing, work)
