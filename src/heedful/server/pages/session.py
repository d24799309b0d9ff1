"""Signing in with a key, signing out, and checking that a request comes from a page of this server."""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from heedful.server.context import ServerContext
from heedful.server.keys import SHAPE
from heedful.server.pages.page import back, folder_for, form_of, in_thread, page
from heedful.server.problems import Problem
from heedful.storage import Place

FORM = 2**12
"""The most bytes of the form for signing in, which anyone may send."""


@lru_cache
def cookies(folder: Place) -> tuple[str, str]:
    """Return the names of the session cookie: (over https, over http).

    They differ between folders of loops, since browsers do not separate the cookies of two servers on different ports
    of one machine."""
    there = os.fsencode(folder.resolve()) if isinstance(folder, Path) else str(folder).encode()
    name = f"heedful-session-{sha256(there).hexdigest()[:8]}"
    return f"__Host-{name}", name


def same_origin(request: Request) -> None:
    """Raise Problem if a page of another site sent `request` and it changes something, or loads a page without showing
    it."""
    headers = request.headers
    if request.method in ("GET", "HEAD"):
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if elsewhere and headers.get("sec-fetch-mode") != "navigate":
            raise Problem("wrong-origin", "expected a visit, got what a page of somewhere else asks for by itself")
    elif not _is_ours(*(headers.get(name) for name in ("host", "origin", "sec-fetch-site"))):
        expected = "expected a form of a page of this server, got one of somewhere else"
        raise Problem("wrong-origin", f"{expected}: open the page again, and try again")


def _is_ours(host: str | None, origin: str | None, site: str | None) -> bool:
    """Return whether a page of this server sent a request, by these headers of it, None for a missing one."""
    if site is not None:  # set by the browser itself: no page can forge it
        return site == "same-origin"
    return bool(host and origin) and str(origin).partition("://")[2].lower() == str(host).lower()


async def prefix_of(service: ServerContext, request: Request) -> str | None:
    """Return the prefix of the key with which the visitor signed in; None if they are not signed in."""
    token = _token(service, request)
    return None if token is None else await in_thread(service.signing, service.sessions.prefix_of, token)


async def holds(service: ServerContext, request: Request) -> bool:
    """Return whether the request has the cookie of a session that has not ended."""
    token = _token(service, request)
    return token is not None and await in_thread(service.signing, service.sessions.holds, token)


def _token(service: ServerContext, request: Request) -> str | None:
    """Return the session token in the cookie of a request; None if there is none."""
    return next((request.cookies[name] for name in cookies(service.folder) if name in request.cookies), None)


async def sign_in(service: ServerContext, request: Request) -> Response:
    """Render the form for signing in (GET), or handle it (POST): check the key and begin a session."""
    same_origin(request)
    if request.method != "POST":
        return _form(service, request, request.query_params.get("next", "/"))
    form = await form_of(request, service, FORM)
    key, to = form.get("key", "").strip(), _local(form.get("next", "/"))
    headers: dict[bytes, bytes] = dict(request.scope["headers"])
    if not SHAPE.fullmatch(key):
        return _form(service, request, to, "This is no key: a key begins with hk_ and has 55 characters.", 422)
    try:
        host, origin = headers.get(b"host"), headers.get(b"origin")
        caller = service.authenticator.admit(b"Bearer " + key.encode(), host, origin, None)
    except Problem as problem:
        if problem.kind != "no-key":
            raise
        return _form(service, request, to, "This key is mistyped, unknown, revoked or expired.", 401)
    response = back(to)
    if caller.prefix:  # "" if no key was ever made: visitors on this machine need none
        await begin(service, request, response, caller.prefix)
    return response


async def sign_out(service: ServerContext, request: Request) -> Response:
    """Handle the button that ends the session of this browser."""
    same_origin(request)
    return await end(service, request)


async def begin(service: ServerContext, request: Request, response: Response, prefix: str) -> None:
    """Begin a session with the key of this `prefix`, and set its cookie on `response`; an earlier session ends."""
    former = _token(service, request)
    token = await in_thread(service.signing, service.sessions.create, prefix, instead_of=former)
    # Origin is what the browser sees, also behind a proxy that ends TLS.
    secure = request.headers.get("origin", "").startswith("https:")
    name = cookies(service.folder)[0 if secure else 1]
    response.set_cookie(name, token, path="/", httponly=True, samesite="strict", secure=secure)


async def end(service: ServerContext, request: Request) -> Response:
    """End the session of this browser, and redirect it to the page for signing in."""
    response = back("/sign-in")
    for name in cookies(service.folder):
        if (token := request.cookies.get(name)) is not None:
            await in_thread(service.signing, service.sessions.end, token)
            secure = name.startswith("__Host-")
            response.delete_cookie(name, path="/", httponly=True, samesite="strict", secure=secure)
    return response


def _form(service: ServerContext, request: Request, to: str, wrong: str | None = None, status: int = 200) -> Response:
    """Render the form for signing in, which leads to the path `to`; `wrong` is an error message."""
    folder = folder_for(service, request)
    return page(
        "sign_in.html", status, next=_local(to), wrong=wrong, keyed=service.authenticator.takes_keys, folder=folder
    )


def _local(to: str) -> str:
    """Return `to` if it is a path on this server, otherwise "/". So no link can redirect to another site."""
    fine = to.startswith("/") and not to.startswith("//") and "\\" not in to and to.isprintable()
    return to if fine else "/"
