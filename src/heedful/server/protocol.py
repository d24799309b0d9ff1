"""uvicorn's HTTP/1.1 protocol with heedful's limits: time, size of heads and bodies, requests sent ahead."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from heedful.server import framing
from heedful.server.codecs import problem_bytes
from heedful.server.metrics import ELSEWHERE
from heedful.server.problems import Problem, unavailable

MOST_HEADERS = 65_536
"""The most bytes of a request's target, headers and trailers together, counting four more for each header."""
AHEAD = 32
"""How many requests a connection may send before the first is answered (pipelining)."""
SHARED_KEEP_ALIVE, SHARED_UNREAD, SHARED_MOST = 10, 30, 1000
"""Limits of the port for participants: seconds after which an idle connection is closed; seconds after which one is
closed whose peer does not read its answer (longer, as the system may take a megabyte at a time, which a slow reader
needs a while for); and the most connections, so that visitors with a link cannot take all the files that the process
may open."""
FRAMES = 8
"""How many bytes may arrive for each byte of a chunked body: small chunks have large frames."""


_SANE_ID = re.compile(rb"[A-Za-z0-9._~:/+=@-]{1,100}")
_FIRST_ID = os.urandom(6).hex().encode()
_count = itertools.count()


def identify(headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the id of a request: that in its header X-Request-Id, or a new one, which is put there, if there is no
    such header, or it is too long, has odd characters or came twice."""
    given = [value for name, value in headers if name == b"x-request-id"]
    if len(given) == 1 and _SANE_ID.fullmatch(given[0]):
        return given[0]
    if given:
        headers[:] = [header for header in headers if header[0] != b"x-request-id"]
    id = b"%s-%06d" % (_FIRST_ID, next(_count))  # as long as any other, so answers are, too
    headers.append((b"x-request-id", id))
    return id


class HeadBuffer:
    """A transport for one answer, which sends its head together with the body, in one system call."""

    __slots__ = ("_head", "_transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = b""  # what is written first; None once that was sent

    def write(self, data: bytes) -> None:
        """Write `data` to the transport; the first call (the head) is held back until the second."""
        if self._head is None:
            self._transport.write(data)
        elif self._head:
            self._transport.write(self._head + data)
            self._head = None
        else:
            self._head = data

    def close(self) -> None:
        """Send the head if it is still held back, and close the transport."""
        if self._head:
            self.write(b"")
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the transport is closing."""
        return self._transport.is_closing()


class Refused(Exception):
    """Stops the parser: nothing more of the connection is read."""


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP/1.1 protocol of one connection, with heedful's limits of time and size."""

    began: float | None = None
    """when the request began that has not arrived completely, in the event loop's seconds; None if there is none"""
    _before_body = _headers_so_far = _so_far = _between = 0
    _offered = False  # the parser is at a request that offers another protocol, and is parsed again
    _last = False  # no request is read any more: one was refused, or said that it is the last
    _refusal: Problem | None = None  # what is told once the requests before it are answered
    _id = b""  # of the request that is arriving, or arrived last; empty until its head is complete
    shared = False
    """whether the connection came by the port for participants"""
    _patience = 0.0  # seconds in which something of an answer has to be taken
    _unread = 0, 0.0  # bytes of answers that nobody has taken yet; since when it has been so many
    _cycles: tuple[RequestResponseCycle, ...] = ()  # requests that are not answered yet, and perhaps one that is

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin a connection: note the time, and refuse it if there are too many."""
        super().connection_made(transport)
        self.began = self.loop.time()
        self._patience = self.timeout_keep_alive
        sharing = getattr(self.config.app, "sharing", None)
        self.shared = sharing is not None and self.server is not None and self.server[1] == sharing
        most: int | None = getattr(self.config.app, "connections", None)
        if self.shared:
            self.timeout_keep_alive, self._patience = SHARED_KEEP_ALIVE, SHARED_UNREAD
            most = SHARED_MOST if most is None else min(SHARED_MOST, most // 2)
            if sum(getattr(connection, "shared", False) for connection in self.connections) > most:
                transport.abort()
        elif most is not None and len(self.connections) > most:
            detail = f"expected at most {most} connections at once, got more: try again"
            self.refuse(unavailable(detail))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the handlers of all unanswered requests that the connection has ended."""
        for cycle in self._cycles:
            cycle.disconnected = True
            cycle.message_event.set()
        self._cycles = ()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take more bytes of a request; refuse it if they exceed a limit."""
        if self._last or self.transport.is_closing():
            return
        if self.began is None:
            self.began = self.loop.time()
        self._so_far += len(data)
        if self._before_body >= 0:
            self._before_body += len(data)
        else:
            self._between += len(data)  # until a part of the body comes: lines of chunks, and trailers
        # What is between the headers does not count, but it has to end as well. The parser keeps a line till it ends.
        most = 2 * MOST_HEADERS + len(data)
        if self._before_body > most or self._between > most:
            self._too_large("headers", MOST_HEADERS)
        elif self._so_far > MOST_HEADERS + FRAMES * self._most():
            self._too_large("body", self._most())
        else:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        while data:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as offered:
                data = self._without_offer(data[offered.args[0] :])
            except httptools.HttpParserError:  # also in a callback, which has refused the request
                self.send_400_response("")
                return

    def _without_offer(self, rest: bytes) -> bytes:
        """Return the bytes to parse again after an offer of another protocol, which is ignored (RFC 9110, 7.8).

        `rest` is what follows the head. Java's client makes such an offer with its first request, and the parser skips
        the body then, so the request is parsed again without the offer."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            self.send_400_response("")
            return b""
        self._offered = False
        head = [method + b" " + self.url + b" HTTP/" + self.parser.get_http_version().encode()]
        head += [name + b": " + value for name, value in self.headers if name not in framing.OFFER]
        self.parser = httptools.HttpRequestParser(self)
        return b"\r\n".join([*head, b"", b""]) + rest

    def _too_large(self, field: str, most: int) -> None:
        self.refuse(Problem("too-large", f"{field}: expected at most {most} bytes, got more", field=field))

    def _most(self) -> int:
        return self._service.limits.body if self._service is not None else 2**23

    @property
    def _service(self) -> Any:
        return getattr(self.config.app, "service", None)

    def on_message_begin(self) -> None:
        """Note when the first byte of a request came."""
        if self._last:
            raise Refused
        self._unset_keepalive_if_required()
        self._headers_so_far, self._before_body, self._between, self._id = 0, 1, 0, b""
        if self.began is None:
            self.began = self.loop.time()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take a part of the request's target (path and query), which the parser may deliver in several parts."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. A trailer (a header after the body) counts towards the limit but is dropped (RFC 9110,
        6.5.1)."""
        self._count(len(name) + len(value) + 4)
        if self._before_body >= 0:
            super().on_header(name, value)

    def _count(self, size: int) -> None:
        """Count `size` more bytes of a head or of its trailers."""
        self._headers_so_far += size
        if self._headers_so_far > MOST_HEADERS:
            self._too_large("headers", MOST_HEADERS)
            raise Refused

    def on_headers_complete(self) -> None:
        """Check the head of a request; refuse it, or begin to handle it."""
        if wrong := framing.fault(self.parser.get_http_version(), self.url, self.headers):
            self.refuse(Problem("malformed", wrong, field=wrong.partition(":")[0]))
            raise Refused
        if len(self.pipeline) >= AHEAD:
            self.transport.abort()  # a client that sends so much ahead does not wait for answers
            raise Refused
        self._before_body = -1
        if self.parser.should_upgrade():
            self._offered = True
            return
        authority, self.url = framing.split_target(self.url)
        if authority is not None:
            self.headers[:] = [(b"host", authority), *[header for header in self.headers if header[0] != b"host"]]
        self._id = identify(self.headers)
        super().on_headers_complete()
        self.cycle.default_headers = [*self.server_state.default_headers, (b"x-request-id", self._id)]
        self._cycles = (*self._unanswered_cycles(), self.cycle)
        if not self.expect_100_continue and self.scope["method"] != "HEAD":  # else a head is followed by nothing
            self.cycle.transport = HeadBuffer(self.transport)  # type: ignore[assignment]

    def _unanswered_cycles(self) -> list[RequestResponseCycle]:
        return [cycle for cycle in self._cycles if not cycle.response_complete]

    def on_body(self, body: bytes) -> None:
        """Take a part of a request's body."""
        self._between = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Note that a request has arrived completely, and whether the connection takes another."""
        if self._offered:
            return
        self._before_body, self._so_far, self.began = 0, 0, None
        super().on_message_complete()
        if not self.parser.should_keep_alive():  # a trailer may say so too: the parser reads nothing behind it
            self.cycle.keep_alive = False
        self._last = not self.cycle.keep_alive  # RFC 9112, 9.6

    def on_response_complete(self) -> None:
        """Begin the next request once this one is answered, or send a refusal that waited for the answer."""
        super().on_response_complete()
        if self._refusal is not None and not self._unanswered_cycles() and not self.transport.is_closing():
            self._say(self._refusal)

    def send_400_response(self, msg: str) -> None:
        """Refuse bytes that are not HTTP; `msg` is not used."""
        self.refuse(Problem("malformed", "request: expected HTTP/1.1, got something else", field="request"))

    def too_slow(self, seconds: float) -> None:
        """Refuse a request that has not arrived completely within `seconds`; close a connection that sent nothing."""
        if self._before_body == 0:  # not a byte of one has come
            self.transport.close()
            return
        field = "headers" if self._before_body > 0 else "body"
        self.refuse(Problem("too-slow", f"{field}: expected all of the request within {seconds:g} s", field=field))

    def refuse(self, problem: Problem) -> None:
        """Answer with `problem` once all earlier requests are answered, and close the connection."""
        if self._last or self.transport.is_closing():
            return
        began, self.began, self._last = self.began, None, True
        arriving = self._before_body < 0 and self.cycle is not None and self.cycle.more_body
        if arriving and self.cycle.response_complete:
            self.transport.close()  # it was answered before all of it had come: there is no second answer
            return
        if arriving and self.cycle.response_started:
            self.transport.abort()
            return
        if arriving:
            self._cycles = tuple(cycle for cycle in self._cycles if cycle is not self.cycle)
            if self.pipeline and self.pipeline[0][0] is self.cycle:
                self.pipeline.popleft()  # it is never begun
            self.cycle.disconnected = True  # its route counts it
            self.cycle.message_event.set()
        elif (service := self._service) is not None:
            seconds = 0.0 if began is None else self.loop.time() - began
            service.metrics.request("", ELSEWHERE, problem.status, seconds)
        if self._unanswered_cycles():
            self._refusal = problem
        else:
            self._say(problem)

    def _say(self, problem: Problem) -> None:
        id = self._id or identify([])
        problem.members["request_id"] = id.decode()
        headers, body = problem_bytes(problem)
        always = b"".join(
            [b"%s: %s\r\n" % each for each in (*self.server_state.default_headers, (b"x-request-id", id))]
        )
        head = [b"HTTP/1.1 %d %s\r\n" % (problem.status, problem.title.encode()), always, headers]
        self.transport.write(b"".join([*head, b"connection: close\r\n\r\n", body]))
        self.transport.close()

    def hang_up_unread(self) -> None:
        """Abort the connection if the client has read nothing of an answer for too long.

        The server calls this about once a second, which costs less than a timer for each connection."""
        now = self.loop.time()
        unread = self.transport.get_write_buffer_size()
        if not unread or unread != self._unread[0]:
            self._unread = unread, now
        elif now - self._unread[1] > self._patience:
            self.transport.abort()  # a close would wait for a peer that does not read
