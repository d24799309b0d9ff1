"""What all pages share: a visit, how it becomes a page, what a browser may do with it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import lru_cache, partial
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from shlex import quote
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.server import codecs
from heedful.server.auth import Caller
from heedful.server.context import Service
from heedful.server.loop_worker import LoopWorker
from heedful.server.problems import Problem

SAFE = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Not no-referrer: with that a browser sends "Origin: null" with a form, and where it came from cannot be told.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""Headers of every page: nothing from elsewhere, nothing inline, in nobody's frame."""
FIELDS = 200
"""Fields of a form, at most."""
FORM = 2**20
"""Bytes of a form, at most: what takes most is three lists of a hundred names."""
LOOPBACK = frozenset({"127.0.0.1", "::1"})
BETWEEN = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers that a proxy adds: who is behind it is not on this machine."""
_NEARBY = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
AT_ONCE = 2**14
"""Bytes of a form that is read without a thread."""


class Visit(NamedTuple):
    """One request for a page, past the gate."""

    service: Service
    caller: Caller
    request: Request
    query: Mapping[str, str]
    form: Mapping[str, str]
    """the fields of what was posted; empty otherwise"""
    worker: LoopWorker | None
    """of the loop that the path names; None where it names none"""

    @property
    def loop(self) -> Loop:
        """The loop that the path names."""
        assert self.worker is not None
        return self.worker.loop

    @property
    def name(self) -> str:
        """The name of that loop."""
        return str(self.request.path_params["loop"])

    @property
    def scripted(self) -> bool:
        """Whether a script of the page asks, for a part of it."""
        return "hx-request" in self.request.headers

    def may(self, *scopes: str) -> bool:
        """Whether the caller may do all of these."""
        return self.caller.scopes.issuperset(scopes)


class Page(NamedTuple):
    """One route as data; `{loop}` in the path opens that loop."""

    method: str
    path: str
    scopes: tuple[str, ...]
    """what the caller has to be allowed, all of it: also `read`, where the answer tells what is in a loop"""
    work: Callable[[Visit], Awaitable[Response]]


def render(visit: Visit, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page, or a part of one. Templates know `visit`, `may`, `tab` and what is given here."""
    told = {"tab": None} | context
    known = {"visit": visit, "may": visit.may, "signed_in": visit.caller.prefix}
    return page(template, status, loop_name=visit.request.path_params.get("loop"), **known, **told)


def page(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page without a visitor."""
    told = {"visit": None, "loop_name": None, "tab": None, "signed_in": "", "may": lambda *scopes: False} | context
    return HTMLResponse(fill_template(template, **told), status, SAFE)


def fill_template(template: str, **context: Any) -> str:
    """A template with what it tells."""
    return str(_templates().get_template(template).render(context))


def example(visit: Visit) -> str:
    """The loop that shows how it is done, where there is one, and it is another than this."""
    name = visit.service.options.example
    there = name and name != visit.name and name in visit.service.loops.names(visit.caller.tenant)
    return name if there else ""


def folder_for(service: Service, request: Request) -> str:
    """The folder that is served, as a command takes it: told to who is on this machine, as far as can be seen; to all
    others, and behind a proxy, "DIR"."""
    near = request.client is not None and request.client.host in LOOPBACK
    named = _NEARBY.fullmatch(request.headers.get("host", "")) is not None
    between = any(name in request.headers for name in BETWEEN)
    return quote(str(service.folder.resolve())) if near and named and not between else "DIR"


def back(to: str, **query: str) -> Response:
    """Go there next (303)."""
    return RedirectResponse(f"{to}?{urlencode(query)}" if query else to, 303, SAFE)


async def form_of(request: Request, service: Service, most: int = FORM) -> dict[str, str]:
    """Read the body of a request as an HTML form (application/x-www-form-urlencoded); returns its fields by name.

    Problem where the body is not such a form, or is longer than `most` bytes (or the server's limit, if that is
    less). ValueError where a field occurs twice.
    """
    headers: dict[bytes, bytes] = dict(request.scope["headers"])
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/x-www-form-urlencoded":
        told = f"Content-Type: expected application/x-www-form-urlencoded, got {describe(kind.decode('latin-1'))}"
        raise Problem("unsupported", told, field="Content-Type")
    body = await codecs.read(headers, request.receive, service.limits._replace(body=min(most, service.limits.body)))
    parse = partial(parse_qsl, keep_blank_values=True, max_num_fields=FIELDS, errors="strict")
    try:
        text = body.decode()
        large = len(body) > AT_ONCE
        pairs = await asyncio.get_running_loop().run_in_executor(service.pool, parse, text) if large else parse(text)
    except ValueError as error:
        raise Problem("malformed", f"body: expected a form, got none: {error}", field="body") from None
    return codecs.once(pairs)


# ---------------------------------------------------------------------------- files of the package


@lru_cache
def _templates() -> Any:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("heedful.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["static"] = static_url
    return made


@lru_cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Path -> (what is in a file of the folder static, a digest of that). All are read, once: no path that somebody
    asks for ever gets to the file system."""
    there = _within(files("heedful.server") / "static")
    return {path: (content, sha256(content).hexdigest()[:12]) for path, content in there}


def _within(folder: Traversable, under: str = "") -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _within(entry, f"{under}{entry.name}/")
        else:
            yield f"{under}{entry.name}", entry.read_bytes()


def static_url(path: str) -> str:
    """Where a browser finds a file of the folder static; another place when the file changes."""
    return f"/static/{path}?v={static_files()[path][1]}"
