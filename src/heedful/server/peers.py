"""The servers of one database: which are there, which of them should own a loop, and a request that one of them gets
for a loop that another one owns.

Each server announces itself in the database. A loop should be owned by the server that rendezvous hashing gives for its
name among those that are there, so that all of them agree, and one that comes or goes moves its own share alone. A
request is passed on once, with a header that says so; docs/decisions/0061 says why, and what it costs.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from heedful.server import codecs
from heedful.server.codecs import Receive, Send
from heedful.server.metrics import PASSED_ON, Metrics
from heedful.server.problems import OWNER, Problem, unavailable

PASSED = b"heedful-passed"
"""The header of a request that another server has passed on."""
HERE = "heedful.here"
"""What is in the scope of a request that is not to be passed on unless the database says who owns the loop."""
CONNECT = 1.0
"""Seconds that connecting to another server may take."""
LOOK = 0.25
"""Seconds between two looks whether a server that has not answered is still there."""
ENDING = 1.0
"""Seconds for which a server that ends waits for the answers of others; after two it cuts off what is left."""
IDLE = 30.0
"""Seconds after which an idle connection to another server is not used again: it closes them after 75."""
HEAD = 2**16
"""The most bytes of the head of an answer."""
_HOP = {b"connection", b"keep-alive", b"transfer-encoding", b"content-length", b"expect", b"te", b"upgrade"}
"""Headers of a connection, not of the request on it."""
_OWN = {b"connection", b"date", b"x-content-type-options", b"x-request-id"}
"""Headers that every server sends with its answers itself."""


@lru_cache(20_000)
def rendezvous(name: str, servers: tuple[str, ...]) -> str:
    """Return which of `servers`, by their addresses, should own the loop `name`, a key of the database."""
    return max(servers, key=lambda server: hashlib.sha256(f"{server}/{name}".encode()).digest())


class Peers:
    """The other servers of this server's database."""

    def __init__(self, address: str, lease: float) -> None:
        """Know of no other server yet; this one is reached at `address` by others.

        One that could not be reached is left out for `lease` seconds."""
        self.address, self._lease = address, lease
        self.ready: Mapping[str, frozenset[int]] = {}
        """address of each other server that is there -> the numbers of the loops that it follows and should own"""
        self._away: dict[str, float] = {}

    def is_there(self, address: str) -> bool:
        """Return whether the other server at `address` has said lately that it is there, and could be reached."""
        return address in self.ready and not self.is_away(address)

    def is_away(self, address: str) -> bool:
        """Return whether the server at `address` could not be reached lately."""
        return time.monotonic() < self._away.get(address, 0.0)

    def lose(self, address: str) -> None:
        """Note that the server at `address` could not be reached."""
        self._away[address] = time.monotonic() + self._lease

    def rightful(self, name: str) -> str:
        """Return the address of the other server that should own the loop `name`; "" if it is this one."""
        server = rendezvous(name, (self.address, *filter(self.is_there, self.ready)))
        return "" if server == self.address else server


# ---------------------------------------------------------------------------- a request that is passed on


class Reply(NamedTuple):
    """The answer of another server."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def owner_of(status: int, headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Return the address of the server that owns a loop, from the head of an answer that says so; "" from any other."""
    return dict(headers).get(OWNER.lower().encode(), b"").decode("latin-1") if status == 421 else ""


class _Wire(NamedTuple):
    """A connection to another server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    since: float
    """when it was last used, by the clock that does not jump"""


class Passing:
    """An ASGI application around the one that answers: a request for a loop that another server owns goes there."""

    def __init__(
        self, app: Any, peers: Peers, metrics: Metrics, limits: codecs.Limits, stopping: asyncio.Event
    ) -> None:
        """Let `app` answer, unless it says in the header `OWNER` of its answer (421) that one of `peers` has to.

        `stopping` is set when this server begins to stop."""
        self._app, self._peers, self._metrics, self._limits = app, peers, metrics, limits
        self._stopping = stopping
        self._idle: dict[str, list[_Wire]] = {}

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        headers: codecs.Headers = dict(scope["headers"])
        if PASSED in headers:  # once is enough: the server that passed it on hears who owns the loop
            await self._app({**scope, HERE: True}, receive, send)
            return
        began, asked, taken = time.perf_counter(), set[str](), list[Any]()
        owner = ""

        async def keep() -> Any:
            taken.append(await receive())
            return taken[-1]

        async def again() -> Any:
            return taken.pop(0) if taken else await receive()

        async def answer(message: Any) -> None:
            nonlocal owner
            if message["type"] == "http.response.start":
                owner = owner_of(message["status"], message["headers"])
            if not owner:
                await send(message)

        await self._app(dict(scope), keep, answer)
        while owner and owner not in asked:
            asked.add(owner)
            try:
                body = await codecs.read(headers, again, self._limits)
                reply = await self._ask(owner, scope, body)
            except Problem as problem:
                await self._refuse(problem, began, send)
                return
            if reply is not None and not owner_of(reply.status, reply.headers):
                await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
                await send({"type": "http.response.body", "body": reply.body})
                return
            # Nothing was done there, so it is tried here: the loop may be free, or another one may own it by now.
            whole = {"type": "http.request", "body": body, "more_body": False}
            owner, taken[:] = "", [whole]
            await self._app({**scope, HERE: True}, again, answer)
            taken[:] = [whole]
        if owner:
            detail = "the server that owns this loop cannot be reached; nothing was changed: send it again"
            await self._refuse(unavailable(detail), began, send)

    async def _refuse(self, problem: Problem, began: float, send: Send) -> None:
        self._metrics.request("", PASSED_ON, problem.status, time.perf_counter() - began)
        for message in codecs.problem_messages(problem):
            await send(message)

    async def _ask(self, address: str, scope: Any, body: bytes) -> Reply | None:
        """Return the answer of the server at `address` to the request of `scope` with this `body`; None if it cannot be
        reached, and has done nothing.

        Raise Problem (503) if it got the request, and did not answer."""
        try:
            wire = await self._connect(address)
        except (OSError, TimeoutError, ValueError):
            self._peers.lose(address)
            return None
        was_there, until = self._peers.is_there(address), math.inf
        bodiless = scope["method"] == "HEAD"
        asking = asyncio.ensure_future(_exchange(wire, _request(address, scope, body), bodiless))
        try:
            while not asking.done() and (not was_there or self._peers.is_there(address)) and time.monotonic() < until:
                await asyncio.wait([asking], timeout=LOOK)
                if self._stopping.is_set():
                    until = min(until, time.monotonic() + ENDING)
            if asking.done():
                reply, kept = asking.result()
                if kept:
                    self._idle.setdefault(address, []).append(wire._replace(since=time.monotonic()))
                else:
                    wire.writer.close()
                return reply
        except (OSError, EOFError, ValueError, LookupError):
            pass
        asking.cancel()
        wire.writer.close()
        detail = "the server that owns this loop did not answer; whether anything was changed is not known"
        raise unavailable(f"{detail}: send it again, with its id")

    async def _connect(self, address: str) -> _Wire:
        """Return a connection to the server at `address`, an idle or a new one. Raise OSError, TimeoutError or
        ValueError if there is none."""
        idle = self._idle.get(address, [])
        while idle:
            wire = idle.pop()
            if time.monotonic() - wire.since < IDLE and not wire.reader.at_eof() and not wire.writer.is_closing():
                return wire
            wire.writer.close()
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https"):
            raise ValueError(f"expected the URL of a server, got {address!r}")
        secure = _security() if parts.scheme == "https" else None
        async with asyncio.timeout(CONNECT):
            port = parts.port or (443 if secure else 80)
            return _Wire(*await asyncio.open_connection(parts.hostname, port, ssl=secure, limit=HEAD), time.monotonic())

    def close(self) -> None:
        """Close the idle connections."""
        for wires in self._idle.values():
            for wire in wires:
                with suppress(Exception):
                    wire.writer.close()
        self._idle.clear()


@cache
def _security() -> ssl.SSLContext:
    return ssl.create_default_context()


def _request(address: str, scope: Any, body: bytes) -> bytes:
    """Return the bytes of the request of `scope` with this `body`, for the server at `address`."""
    path = urlsplit(address).path.rstrip("/").encode() + scope["raw_path"]
    query = b"?" + scope["query_string"] if scope["query_string"] else b""
    lines = [b"%s %s%s HTTP/1.1" % (scope["method"].encode(), path, query)]
    lines += [b"%s: %s" % header for header in scope["headers"] if header[0] not in _HOP]
    lines += [b"%s: 1" % PASSED, b"content-length: %d" % len(body), b"", body]
    return b"\r\n".join(lines)


async def _exchange(wire: _Wire, request: bytes, bodiless: bool) -> tuple[Reply, bool]:
    """Send a `request` on a connection; return (the answer, whether the connection can be used again).

    The answer to a `bodiless` one is a head alone. Raise OSError, EOFError, ValueError or LookupError if there is none
    that heedful sends."""
    wire.writer.write(request)
    await wire.writer.drain()
    try:
        head = await wire.reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise ValueError(f"expected a head of at most {HEAD} bytes") from error
    first, *lines = head[:-4].split(b"\r\n")
    named = [line.split(b":", 1) for line in lines]
    headers = [(name.strip().lower(), value.strip()) for name, value in named]
    status, by_name = int(first.split(b" ", 2)[1]), dict(headers)
    body = b"" if bodiless or status in (204, 304) else await wire.reader.readexactly(int(by_name[b"content-length"]))
    kept = by_name.get(b"connection", b"").lower() != b"close"
    return Reply(status, [each for each in headers if each[0] not in _OWN], body), kept
