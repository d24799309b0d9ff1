"""What all pages share: the request that a handler is given, templates, forms, redirects, and static files."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import lru_cache, partial
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Concatenate, NamedTuple, ParamSpec, TypeVar
from urllib.parse import parse_qsl, urlencode
from urllib.parse import quote as url_quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from heedful.core.validation import describe
from heedful.loop import Loop
from heedful.server import codecs
from heedful.server.audit import Actor
from heedful.server.auth import Caller
from heedful.server.context import ServerContext
from heedful.server.loop_worker import LoopWorker
from heedful.server.pages.formatting import FILTERS
from heedful.server.problems import Problem
from heedful.server.request import until_gone
from heedful.server.server_log import request_id

if TYPE_CHECKING:
    from jinja2 import Environment

P = ParamSpec("P")
T = TypeVar("T")

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
"""Headers of every page: a browser loads nothing from other servers, runs no inline script, and shows no page in a
frame."""
FIELDS = 200
"""The most fields that a form may have."""
FORM = 2**20
"""The most bytes of a form: the largest one holds three lists of a hundred names."""
LOOPBACK = frozenset({"127.0.0.1", "::1"})
BETWEEN = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip")
"""Headers that a proxy adds; a request with one of them may come from another machine."""
_NEARBY = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
AT_ONCE = 2**14
"""The most bytes of a form that is parsed on the event loop; a larger one is parsed in another thread."""


class Visit(NamedTuple):
    """A request for a page whose sender was admitted."""

    service: ServerContext
    """what all requests of the server share: loops, keys, sessions, options"""
    caller: Caller
    """the sender: their tenant and the scopes of their key"""
    request: Request
    """the request as Starlette has it"""
    query: Mapping[str, str]
    """the query parameters, by name"""
    form: Mapping[str, str]
    """the fields of the form in the body, by name; empty for GET"""
    loop_worker: LoopWorker | None
    """the worker of the loop that the path names; None if the path names no loop"""

    @property
    def worker(self) -> LoopWorker:
        """The worker of the loop that the path names; only for paths that name one (else AssertionError)."""
        assert self.loop_worker is not None
        return self.loop_worker

    @property
    def loop(self) -> Loop:
        """The loop that the path names; only for paths that name one (else AssertionError)."""
        return self.worker.loop

    @property
    def name(self) -> str:
        """The name of the loop that the path names."""
        return str(self.request.path_params["loop"])

    @property
    def base(self) -> str:
        """The path of the loop's pages, such as "/loops/cars"; only for paths that name a loop."""
        return f"/loops/{url_quote(self.name)}"

    @property
    def scripted(self) -> bool:
        """True if a script on the page sent the request: then the answer has only the parts of the page that change."""
        return "hx-request" in self.request.headers

    async def analyse(self, question: Callable[Concatenate[Loop, P], T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do what `LoopWorker.analyse` does, until the visitor leaves."""
        return await until_gone(self.request.receive, self.worker.analyse(question, *args, **kwargs))

    @property
    def actor(self) -> Actor:
        """The visitor, for the audit log."""
        return Actor(self.caller.prefix, request_id())

    def may(self, *scopes: str) -> bool:
        """Return whether the caller's key has all of these `scopes`."""
        return self.caller.scopes.issuperset(scopes)

    def note(self, kind: str, result: str) -> None:
        """Count an event of the path's loop in the metrics, of a `kind` (feedback, ...) and `result` (applied, ...)."""
        self.service.metrics.events[self.caller.tenant, self.name, kind, result] += 1


class Page(NamedTuple):
    """A route of the pages. If its path has `{loop}`, the loop of that name is opened for the handler."""

    method: str
    """the HTTP method: "GET" or "POST\""""
    path: str
    """the path as Starlette writes it: "/loops/{loop}/why\""""
    scopes: tuple[str, ...]
    """the scopes that the caller's key needs, all of them; `read` is one if the answer shows data of a loop"""
    work: Callable[[Visit], Awaitable[Response]]
    """the handler, from a Visit to the response"""
    audit: str = ""
    """what the audit log calls it; "" if it has none of this page"""
    uploads: bool = False
    """whether the handler reads the form itself, as it has files"""


def render(visit: Visit, template: str, status: int = 200, /, **context: object) -> HTMLResponse:
    """Return a page, or a part of one, made from the file `template` for the sender of `visit`, with the HTTP `status`.

    The template knows the names in `context`, and also `visit`, `may`, `tab`, `signed_in` and `loop_name`."""
    visitor = {"visit": visit, "may": visit.may, "signed_in": visit.caller.prefix}
    return page(template, status, loop_name=visit.request.path_params.get("loop"), **{**visitor, **context})


def page(template: str, status: int = 200, /, **context: object) -> HTMLResponse:
    """Return a page, or a part of one, made from the file `template` for a visitor without a key, with the HTTP
    `status`.

    The template knows the names in `context`."""
    nobody = {"visit": None, "loop_name": None, "tab": None, "signed_in": "", "may": lambda *scopes: False}
    return HTMLResponse(fill_template(template, **(nobody | context)), status, SAFE)


def problem_page(template: str, problem: Problem, **context: object) -> HTMLResponse:
    """Return a page made from `template` that shows `problem`, with its HTTP status and headers."""
    response = page(template, problem.status, problem=problem, **context)
    response.headers.update(problem.headers)
    return response


def fill_template(template: str, **context: object) -> str:
    """Return the text of the file `template` (Jinja), filled with the values in `context`, by name."""
    return str(_templates().get_template(template).render(context))


async def in_thread(pool: Executor, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `work` with these arguments in a thread of `pool` and return its result."""
    return await asyncio.get_running_loop().run_in_executor(pool, partial(work, *args, **kwargs))


def example(visit: Visit) -> str:
    """Return the name of the loop that pages show to newcomers as an example; "" if there is none.

    It is also "" if the page of `visit` belongs to that loop."""
    name = visit.service.options.example
    there = name and name != visit.name and name in visit.service.loops.names(visit.caller.tenant)
    return name if there else ""


def folder_for(service: ServerContext, request: Request) -> str:
    """Return the path of the folder of loops, quoted for a shell, for commands that a page shows.

    Visitors who may not be on this machine, or come through a proxy, get "DIR" instead."""
    near = request.client is not None and request.client.host in LOOPBACK
    named = _NEARBY.fullmatch(request.headers.get("host", "")) is not None
    between = any(name in request.headers for name in BETWEEN)
    there = service.folder.resolve() if isinstance(service.folder, Path) else service.folder
    return quote(str(there)) if near and named and not between else "DIR"


def back(to: str, **query: str) -> Response:
    """Return a redirect (303 See Other) to the path `to`, with these query parameters."""
    return RedirectResponse(f"{to}?{urlencode(query)}" if query else to, 303, SAFE)


async def form_of(request: Request, service: ServerContext, most: int = FORM) -> dict[str, str]:
    """Return the fields of the HTML form (application/x-www-form-urlencoded) in the body of a request, by name.

    Raise Problem if the body is no such form, or longer than `most` bytes or than the server's limit. Raise ValueError
    if a field occurs twice."""
    headers: dict[bytes, bytes] = dict(request.scope["headers"])
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if kind != b"application/x-www-form-urlencoded":
        detail = f"Content-Type: expected application/x-www-form-urlencoded, got {describe(kind.decode('latin-1'))}"
        raise Problem("unsupported", detail, field="Content-Type")
    body = await codecs.read(headers, request.receive, service.limits._replace(body=min(most, service.limits.body)))
    parse = partial(parse_qsl, keep_blank_values=True, max_num_fields=FIELDS, errors="strict")
    try:
        text = body.decode()
        large = len(body) > AT_ONCE
        pairs = await in_thread(service.pool, parse, text) if large else parse(text)
    except ValueError as error:
        raise Problem("malformed", f"body: expected a form, got none: {error}", field="body") from None
    return codecs.unique_fields(pairs)


# ---------------------------------------------------------------------------- files of the package


@lru_cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("heedful.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["static"] = static_url
    made.filters |= FILTERS
    return made


@lru_cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Return the files of the folder static: path -> (content, digest of it).

    All are read once, so that no path in a request reaches the file system."""
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
    """Return the URL of the file `path` of the folder static, with a digest, so that it changes with the file."""
    return f"/static/{path}?v={static_files()[path][1]}"
