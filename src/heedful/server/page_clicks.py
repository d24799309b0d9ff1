"""Clicks that browsers report from other people's pages, and the script that reports them.

The request has no header of its own, as `navigator.sendBeacon` sets none: the token is in the body, which is JSON as
text/plain, so that a browser asks nothing beforehand (no CORS preflight). A token says who may report a click, so
cookies do not count, and another site gains nothing from making a browser send one (no CSRF). Each candidate of a
decision counts as clicked once: the id of the event is made from both, so that a copied token can at most say
that what was shown was clicked."""

from __future__ import annotations

import re
import time
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from heedful.core.validation import describe
from heedful.loop.records import check_id
from heedful.server import codecs
from heedful.server.codecs import Receive, Send
from heedful.server.context import ServerContext
from heedful.server.decisions import answer_fields, outcome
from heedful.server.page_tokens import check_token
from heedful.server.problems import Problem, as_problem
from heedful.server.rate_limit import Buckets
from heedful.server.schema import Click

SIZE = 2**13
"""The most bytes of a reported click; one with the longest names has about 5,000."""
RATE = 2.0, 20.0
"""Rate limit of the clicks on one decision: (per second, at once)."""
AGE = 3600
"""Seconds for which browsers keep the script before they ask whether it has changed."""
TEXT = b"text/plain"
_ORIGIN = re.compile(r"https?://(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


def check_origin(value: str) -> str:
    """Return `value` if it is the origin of web pages, as browsers write it: "https://shop.example".

    Raise ValueError, beginning with "origin", if it is not."""
    if not isinstance(value, str) or not _ORIGIN.fullmatch(value):
        expected = "expected the origin of your pages, such as https://shop.example, in lower case and without a path"
        raise ValueError(f"origin: {expected}, got {describe(value)}")
    return value


class ClickEndpoint:
    """The ASGI application that takes the clicks that browsers report, with a token in the body in place of a key."""

    def __init__(self, service: ServerContext, label: str) -> None:
        """Take clicks for the loops of `service`; `label` is the name of the route in the metrics."""
        self._service, self._label = service, label
        self._origins = frozenset(check_origin(origin) for origin in service.options.origins)
        self._rates = Buckets(*RATE)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Answer a request; `scope["path_params"]` has the loop, as Starlette's router puts it there."""
        began, service, tenant = time.perf_counter(), self._service, ""
        headers: codecs.Headers = dict(scope["headers"])
        allowed: bytes | None = None
        try:
            allowed = self._check_sender(headers)
            click = await self._read(headers, receive)
            loop = scope["path_params"]["loop"]
            caller = check_token(click.token, loop, click.decision, service.authenticator.signer, time.time())
            tenant = caller.tenant
            service.authenticator.spend_page(caller)
            self._rates.take(f"{tenant}/{loop}/{click.decision}", time.monotonic())
            answer = await self._learn(tenant, loop, click)
            status, messages = 200, codecs.messages(answer)
        except Exception as error:
            problem = as_problem(error)
            status, messages = problem.status, codecs.problem_messages(problem)
        service.metrics.request(tenant, self._label, status, time.perf_counter() - began)
        more = [(b"vary", b"Origin")]
        if allowed is not None:
            more.append((b"access-control-allow-origin", allowed))
        messages[0]["headers"] += more
        for message in messages:
            await send(message)

    def _check_sender(self, headers: codecs.Headers) -> bytes | None:
        """Return the header Origin, None without one; raise Problem (403) if pages from there may not report."""
        origin = headers.get(b"origin")
        if origin is None:
            return None
        name = origin.decode("latin-1").lower()
        if name in self._origins or name.partition("://")[2] == headers.get(b"host", b"").decode("latin-1").lower():
            return origin
        hint = "; the page's Referrer-Policy may hide it" if name == "null" else ""
        expected = "expected one of those that heedful serve --origin names"
        raise Problem("wrong-origin", f"Origin: {expected}, got {describe(name)}{hint}", field="Origin")

    async def _read(self, headers: codecs.Headers, receive: Receive) -> Click:
        kind = headers.get(b"content-type", TEXT).partition(b";")[0].strip().lower()
        if kind not in (TEXT, codecs.JSON):
            got = describe(kind.decode("latin-1"))
            detail = f"Content-Type: expected text/plain or application/json, got {got}"
            raise Problem("unsupported", detail, field="Content-Type")
        limits = self._service.limits._replace(body=min(SIZE, self._service.limits.body))
        fields = codecs.check_fields(codecs.decode(await codecs.read(headers, receive, limits), codecs.JSON), Click)
        for name in Click.__struct_fields__:
            if not isinstance(fields.get(name), str):
                raise ValueError(f"{name}: expected a text, got {describe(fields.get(name))}")
        return Click(fields["token"], check_id("decision", fields["decision"]), check_id("item", fields["item"]))

    async def _learn(self, tenant: str, loop: str, click: Click) -> dict[str, Any]:
        """Apply a click to the `loop` of the `tenant` and return the answer as JSON fields."""
        loops = self._service.loops
        with await loops.open(tenant, loop) as worker:
            event = {"decision": click.decision, "id": event_id(click), "clicks": [click.item]}
            answer = await worker.feedback(event)
            self._service.metrics.events[tenant, loop, "feedback", outcome(answer)] += 1
            return answer_fields(answer)


def event_id(click: Click) -> str:
    """Return the id of a click's event, which is the same whenever the same item of the same decision is clicked."""
    both = f"{click.decision}\0{click.item}".encode()
    return f"click-{sha256(both).hexdigest()[:32]}"


# ---------------------------------------------------------------------------- the script


@cache
def script() -> tuple[bytes, str]:
    """Return (the script that reports clicks, a digest of it)."""
    content = (files("heedful.server") / "embed" / "heedful.js").read_bytes()
    return content, sha256(content).hexdigest()[:12]


async def send_script(request: Request) -> Response:
    """Send the script, which pages of any origin may load."""
    content, digest = script()
    headers = {
        "cache-control": f"public, max-age={AGE}",
        "cross-origin-resource-policy": "cross-origin",
        "access-control-allow-origin": "*",
    }
    return digested(request, content, digest, headers, "text/javascript")


def digested(request: Request, content: bytes, digest: str, headers: dict[str, str], media: str) -> Response:
    """Return the response that sends `content` of the type `media`, or 304 if the browser has it by its `digest`."""
    headers |= {"etag": f'"{digest}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media)
